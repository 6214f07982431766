"""The local engine: threads of this process.

Kernels, polars and the embedder release the interpreter lock, so threads share one model and one
set of mapped vectors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass

from fastscore_jit.stopping import POLL_SECONDS, StoppablePool

from fastscore.logs.integrity.limits import Limits
from fastscore.run.engines.engine import Answer, Done, Key, Lost
from fastscore.run.interrupt import clear_stop, request_stop

TASKS_PER_WORKER = 2


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Does tasks on threads of this process."""

    workers: int

    def map(
        self,
        task: Callable[[Key], Done],
        keys: Sequence[Key],
        *,
        alone: bool = False,
        lost: Lost = lambda worker, tasks: None,
    ) -> Iterator[Done]:
        """Do a task for every key; yields what they return as it comes.

        An exception in a task, in the consumer, or from the keyboard drops the tasks that have not
        started and asks the others to end; it is raised when they have.
        """
        workers = 1 if alone else self.workers
        pool = StoppablePool(max_workers=workers, thread_name_prefix="fastscore")
        waiting: Iterable[Key] = iter(keys)
        running: set[Future[Done]] = set()
        try:
            for key in waiting:
                running.add(pool.submit(task, key))
                if len(running) >= workers * TASKS_PER_WORKER:
                    done, running = _first_done(running)
                    yield from (future.result() for future in done)
            while running:
                done, running = _first_done(running)
                yield from (future.result() for future in done)
        except BaseException:
            request_stop()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            clear_stop()

    def processes(self) -> int:
        """Count this process."""
        return 1

    def ask(self, question: Callable[[], Answer]) -> dict[str, Answer]:
        """Ask nobody: this process is the only worker."""
        return {}


def _first_done(running: set[Future[Done]]) -> tuple[set[Future[Done]], set[Future[Done]]]:
    """Wait until a task is done.

    Polars' handler of Ctrl-C has system calls begin again, so that Python would look for signals
    only when the wait is over: it is over now and then.
    """
    done: set[Future[Done]] = set()
    while not done:
        done, running = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
    return done, running


@contextmanager
def open_engine(address: None, workers: int, limits: Limits) -> Iterator[LocalEngine]:
    """Open the engine of this process; it has no address, and whoever maps watches its memory."""
    yield LocalEngine(workers)
