"""Structured answers: read strictly, asked for again if they cannot be used.

Answers to one sample come in rounds of `MOST_ANSWERS`. Within a round the model is told why its
last answer was not usable. A round that brought nothing is the sample's failure. The next run of
the same command finds that round among the kept answers and begins another one, with other seeds.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fastscore.llm.client import ChatClient
from fastscore.llm.requests import (
    ASSISTANT,
    LENGTH,
    USER,
    Answer,
    ChatRequest,
    NoObjectError,
    find_object,
    is_refusal,
)
from fastscore.llm.spending import CUT_OFF, FILTERED, REFUSED, UNUSABLE, Failure, SampleError
from fastscore.run.interrupt import POLL_SECONDS
from fastscore.run.progress import Reporter, StageProgress

MOST_ANSWERS = 3
"""The most answers of one round."""

Read = TypeVar("Read")


class UnusableError(Exception):
    """An answer that is not what was asked for.

    Parameters
    ----------
    reason
        Why.
    kind
        One of `fastscore.llm.spending.KINDS`.
    """

    def __init__(self, reason: str, kind: str = UNUSABLE) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Structured(Generic[Read]):
    """The result for one sample.

    Parameters
    ----------
    value
        What was read; None if the sample failed.
    failure
        Why it failed; None if it did not.
    attempts
        How many answers there were.
    """

    value: Read | None
    failure: Failure | None
    attempts: int


def ask_until_read(
    client: ChatClient,
    request: ChatRequest,
    read: Callable[[dict[str, Any]], Read],
    again: Callable[[str], str],
) -> Structured[Read]:
    """Ask for a JSON object until one can be used, at most `MOST_ANSWERS` times.

    Answers that are kept from earlier runs are read first and are not counted.

    Parameters
    ----------
    client, request
        Who asks what.
    read
        Reads the object; raises `UnusableError`.
    again
        What a model is told after an answer with this fault.
    """
    attempts, failure, is_new = 0, None, False
    while not is_new:
        asked = request.again(by=attempts)
        for _ in range(MOST_ANSWERS):
            is_kept = client.has_kept(asked)
            if client.options.replay and failure is not None and not is_kept:
                return Structured(None, failure, attempts)
            is_new = is_new or not is_kept
            try:
                answer = client.ask(asked)
            except SampleError as error:
                said = failure.answer if failure else ""
                last = Failure(error.kind, error.reason, said, attempts, error.hint)
                return Structured(None, last, attempts)
            attempts += 1
            try:
                return Structured(read(read_object(answer)), None, attempts)
            except UnusableError as error:
                failure = Failure(error.kind, str(error), answer.text, attempts)
            last_said = (ASSISTANT, answer.said or "(nothing)")
            asked = asked.again(last_said, (USER, again(failure.reason)))
    return Structured(None, failure, attempts)


def read_object(answer: Answer) -> dict[str, Any]:
    """Read an answer that holds one JSON object.

    Raises
    ------
    UnusableError
        It does not.
    """
    if answer.refused:
        raise UnusableError("refused", REFUSED)
    if answer.cut_off:
        is_length = answer.cut_off == LENGTH
        raise UnusableError(
            "cut off before its end" if is_length else "cut off by a content filter",
            CUT_OFF if is_length else FILTERED,
        )
    try:
        return find_object(answer.text)
    except NoObjectError as error:
        if is_refusal(answer.text):
            raise UnusableError("refused", REFUSED) from None
        raise UnusableError(str(error)) from None


Task = TypeVar("Task")


@contextmanager
def asking_threads(client: ChatClient) -> Iterator[ThreadPoolExecutor]:
    """Open as many threads as requests may run at once.

    When the block ends early, waiting tasks are cancelled. Requests under way end and are kept, so
    that they are not sent again.
    """
    pool = ThreadPoolExecutor(client.options.concurrency)
    try:
        yield pool
    except BaseException:
        client.close()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def as_done(futures: dict[Future[Any], Any]) -> Iterator[Future[Any]]:
    """Yield futures as they end; a signal is heard meanwhile, whichever thread it came to."""
    left = set(futures)
    while left:
        done, left = wait(left, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        yield from done


def ask_each(
    client: ChatClient,
    tasks: Sequence[Task],
    ask: Callable[[Task], Structured[Read]],
    reporter: Reporter,
    *,
    stage: str,
    noun: str,
    sample_of: Callable[[int], int] = lambda number: number,
) -> list[Structured[Read] | None]:
    """Ask for every task, in threads, until more samples failed than may.

    Parameters
    ----------
    client, tasks, ask
        Who asks what, and how.
    reporter, stage, noun
        Where the progress is shown, and what a task is called there.
    sample_of
        The sample that a task, by its number, belongs to.

    Returns
    -------
    list of Structured or None
        A result for each task; None if it was not asked for after too many failures.
    """
    n_samples = len({sample_of(number) for number in range(len(tasks))})
    allowed = client.options.failure_limit.allowed(n_samples)
    found: list[Structured[Read] | None] = [None] * len(tasks)
    failed: set[int] = set()
    stopped: list[bool] = []
    with reporter.stage(stage, len(tasks)) as progress, asking_threads(client) as pool:
        shown = SpendingProgress(progress, client)
        futures = {pool.submit(ask, task): number for number, task in enumerate(tasks)}
        for future in as_done(futures):
            if future.cancelled():
                continue
            number = futures[future]
            found[number] = result = future.result()
            if result.failure is not None and sample_of(number) not in failed:
                failed.add(sample_of(number))
                client.meter.count(failures=1)
            if len(failed) > allowed and not stopped:
                stopped = [waiting.cancel() for waiting in futures]
            shown.advance(**{noun: 1})
    return found


class SpendingProgress:
    """Shows what a client spends, beside other counts."""

    def __init__(self, progress: StageProgress, client: ChatClient) -> None:
        self._progress, self._client, self._before = progress, client, client.spent

    def advance(self, **counts: int) -> None:
        """Count one more task."""
        before, now = self._before, self._client.spent
        self._before = now
        spent = {"requests": now.requests - before.requests, "tokens": now.tokens - before.tokens}
        self._progress.advance({**counts, **spent})
