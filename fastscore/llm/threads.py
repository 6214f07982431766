"""Threads that wait for a chat model."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

from fastscore.llm.client import ChatClient
from fastscore.llm.structured import Structured
from fastscore.run.interrupt import POLL_SECONDS
from fastscore.run.progress import Reporter, StageProgress

Task = TypeVar("Task")
Read = TypeVar("Read")


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
