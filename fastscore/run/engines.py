"""Running a map of idempotent tasks; the local engine uses the threads of this process.

Kernels, polars and the embedder release the interpreter lock, so threads share one model and one
set of mapped vectors. An engine sees task keys and receipts, never data.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from fastscore.run.interrupt import allow_again, ask_to_stop
from fastscore.run.receipts import Receipt

Key = TypeVar("Key")

TASKS_PER_WORKER = 2


def map_local(
    task: Callable[[Key], Receipt], keys: Sequence[Key], *, workers: int
) -> Iterator[Receipt]:
    """Run a task for every key, at most `workers` at once; yields receipts as they come.

    An exception in a task, in the consumer, or from the keyboard drops the tasks that have not
    started and asks the others to end; it is raised when they have.
    """
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="fastscore")
    waiting: Iterable[Key] = iter(keys)
    running: set[Future[Receipt]] = set()
    try:
        for key in waiting:
            running.add(pool.submit(task, key))
            if len(running) >= workers * TASKS_PER_WORKER:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    except BaseException:
        ask_to_stop()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        allow_again()
