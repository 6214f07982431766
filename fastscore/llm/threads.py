"""Threads that wait for a chat model."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from fastscore.llm.client import ChatClient, Spent
from fastscore.run.interrupt import POLL_SECONDS
from fastscore.run.progress import StageProgress


@contextmanager
def asking_threads(client: ChatClient) -> Iterator[ThreadPoolExecutor]:
    """Open as many threads as requests may run at once.

    When the block ends early what waits is given up; what is being sent ends and is kept, so that
    it is not asked again.
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


class SpendingProgress:
    """Shows, with what else is counted, what a client spent meanwhile."""

    def __init__(self, progress: StageProgress, client: ChatClient) -> None:
        self._progress, self._client, self._before = progress, client, Spent()

    def advance(self, **counts: int) -> None:
        """One more task is done."""
        before, now = self._before, self._client.spent
        self._before = now
        spent = {"requests": now.requests - before.requests, "tokens": now.tokens - before.tokens}
        self._progress.advance({**counts, **spent})
