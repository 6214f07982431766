"""The Dask engine: tasks on the workers of a ``dask.distributed`` scheduler.

A worker does as many tasks at once as it has threads, on that many threads in all. What needs all
of them (an embedding) takes the worker's only `EXCLUSIVE`.
"""

import asyncio
import contextlib
import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import Any

import dask.config
from distributed import Client, KilledWorker, LocalCluster, Worker, WorkerPlugin, as_completed
from distributed.comm import CommClosedError
from fastscore_jit.system import safe_import_path

from fastscore.errors import RunError
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, Limits
from fastscore.run.engines.engine import (
    Answer,
    Check,
    Done,
    Key,
    Lost,
    attempt,
    done_or_raise,
    load_tasks,
    set_threads,
    thread_variables,
    threads_each,
)
from fastscore.settings.options import THREADS_VARIABLE

EXCLUSIVE = "fastscore-exclusive"
TASKS_PER_SLOT = 2
"""One that is done and one that waits, so that nobody has a queue while others are idle."""
COUNT_SECONDS = 2.0
CONNECT_SECONDS = 10
WORKERLESS_SECONDS = 60
"""How long a cluster of our own may be without a worker: one that died is started anew in less."""

_SILENT = logging.CRITICAL + 1
_PACKAGE = "distributed."
_LOOP = "tornado.application"
"""Where the loop says that what an interrupt cancelled had not begun: `distributed.utils.sync`."""


class WorkerSetup(WorkerPlugin):
    """Sets up every worker, those too that join later: its threads, and its one `EXCLUSIVE`."""

    def __init__(self, threads: int | None) -> None:
        # None, as for workers that are not our own: as many as a worker does tasks at once
        self.threads = threads

    async def setup(self, worker: Worker) -> None:
        """Set up a worker; what tasks import is there before the first of them begins."""
        set_threads(self.threads or worker.state.nthreads)
        await worker.set_resources(**{EXCLUSIVE: 1})
        await asyncio.to_thread(load_tasks)


class DaskEngine:
    """Does tasks on a scheduler's workers."""

    def __init__(self, client: Client, threads: int | None, limits: Limits, check: Check) -> None:
        self._client = client
        self._attempt = partial(attempt, limits, check)
        self._is_own = threads is not None
        self._address = str(client.scheduler.address) if client.scheduler else ""
        self._workers: dict[str, int] = {}
        self._counted = -COUNT_SECONDS
        self._removed: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._setup = f"fastscore-{uuid.uuid4().hex}"
        client.register_plugin(WorkerSetup(threads), name=self._setup)
        client.subscribe_topic("all", self._note_removal)

    def close(self) -> None:
        """Leave the workers to others."""
        with contextlib.suppress(OSError, RuntimeError, TimeoutError, ValueError):
            self._client.unsubscribe_topic("all")
            self._client.unregister_worker_plugin(self._setup)

    def map(
        self,
        task: Callable[[Key], Done],
        keys: Sequence[Key],
        *,
        exclusive: bool = False,
        lost: Lost = lambda worker, tasks: None,
    ) -> Iterator[Done]:
        """Do a task for every key; what has not begun when this ends is cancelled."""
        submit = partial(self._client.submit, partial(self._attempt, task), pure=False)
        resources = {EXCLUSIVE: 1} if exclusive else None
        waiting = iter(keys)
        running = as_completed(loop=self._client.loop)
        open_futures: dict[Any, Any] = {}
        try:
            while True:
                room = self._slots(exclusive) * TASKS_PER_SLOT - len(open_futures)
                for key in islice(waiting, max(0, room)):
                    future = submit(key, resources=resources)
                    open_futures[future.key] = future
                    running.add(future)
                if not open_futures:
                    return
                self._wait(running)
                done = running.next_batch()
                self._report(open_futures, lost)
                yield from map(done_or_raise, self._client.gather(done))
                for future in done:
                    del open_futures[future.key]
        except KilledWorker as error:
            raise RunError(
                f"Workers of {self._address} died {error.allowed_failures + 1} times while they "
                f"did {error.task}, the last at {error.last_worker.address}.",
                "It may need more memory than they have: see shard_size.",
            ) from error
        except CommClosedError as error:  # the client may not have noticed yet
            raise self._scheduler_lost() from error
        except (CancelledError, OSError) as error:
            if self._client.status == "running":
                raise
            raise self._scheduler_lost() from error
        finally:
            with contextlib.suppress(OSError, RuntimeError):
                self._client.cancel(list(open_futures.values()))

    def processes(self) -> int:
        """Count the workers."""
        return len(self._client.nthreads())

    def ask(self, question: Callable[[], Answer]) -> dict[str, Answer]:
        """Put a question to each worker."""
        answers: dict[str, Answer] = self._client.run(question)
        return answers

    def _wait(self, running: Any) -> None:
        """Wait until a task is done; raise when none of our own workers is left to do it."""
        alone_since: float | None = None
        while True:
            with running.thread_condition:
                if not running.has_ready():
                    running.thread_condition.wait(COUNT_SECONDS)
            if running.has_ready():
                return
            if not self._is_own or self._client.nthreads():
                alone_since = None
            elif alone_since is None:
                alone_since = time.monotonic()
            elif time.monotonic() - alone_since > WORKERLESS_SECONDS:
                raise RunError(
                    "All worker processes ended, and no other could be started.",
                    "Run the same command again; what is committed is kept.",
                )

    def _slots(self, exclusive: bool) -> int:
        """Return how many tasks the workers do at once; they are counted now and then."""
        if time.monotonic() - self._counted >= COUNT_SECONDS:
            self._workers = self._client.nthreads()
            self._counted = time.monotonic()
        return max(1, len(self._workers) if exclusive else sum(self._workers.values()))

    def _note_removal(self, event: tuple[float, dict[str, Any]]) -> None:
        if event[1].get("action") == "remove-worker" and not event[1]["expected"]:
            self._removed.put(event[1])

    def _report(self, futures: dict[Any, Any], lost: Lost) -> None:
        """Say which workers died since it was last asked."""
        while not self._removed.empty():
            removed = self._removed.get()
            again = {*removed["processing-tasks"], *removed["lost-computed-tasks"]}
            lost(removed["worker"], len(again & futures.keys()))

    def _scheduler_lost(self) -> RunError:
        return RunError(
            f"The Dask scheduler at {self._address} went away.",
            "Start it and run the same command again; what is committed is kept.",
        )


@contextmanager
def open_engine(
    address: str | None, workers: int, limits: Limits = DEFAULT_LIMITS, check: Check = lambda: None
) -> Iterator[DaskEngine]:
    """Connect to a scheduler, or start one with so many worker processes on this machine."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_silence_loggers())
        threads = None
        target: Any = address
        if address is None:
            threads = threads_each(workers)
            stack.enter_context(_own_processes(threads))
            stack.enter_context(safe_import_path())
            try:
                target = stack.enter_context(_local_cluster(workers))
            except RuntimeError as error:
                raise RunError(
                    f"Dask does not start workers on this machine: {error}",
                    'In a script call it below `if __name__ == "__main__":`, or leave out engine: '
                    "this process has threads of its own.",
                ) from error
        try:
            client = stack.enter_context(
                Client(target, timeout=CONNECT_SECONDS, set_as_default=False)
            )
        except (OSError, ValueError) as error:
            raise RunError(
                f"No Dask scheduler answers at {address}: {error}.",
                "Start one there (`dask scheduler`), or leave out address.",
            ) from error
        engine = DaskEngine(client, threads, limits, check)
        stack.callback(engine.close)
        yield engine


def _local_cluster(workers: int) -> LocalCluster:
    """Start a scheduler in this process, and processes that do one task at a time each."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,
        silence_logs=_SILENT,
    )


@contextmanager
def _own_processes(threads: int) -> Iterator[None]:
    """Say how worker processes begin; the package gives this one their environment as well."""
    begun_with = {"OMP_NUM_THREADS": str(threads), **thread_variables(threads)}
    del begun_with[THREADS_VARIABLE]  # which we listen to ourselves: workers are told later
    before = {name: os.environ.get(name) for name in begun_with}
    settings = {
        "distributed.nanny.pre-spawn-environ": begun_with,
        "distributed.worker.profile.enabled": False,
    }
    try:
        with dask.config.set(settings):
            yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _silence_loggers() -> Iterator[None]:
    """Let the messages of the package pass away, whose parts have levels of their own."""
    known = logging.root.manager.loggerDict
    names = [_LOOP, *(name for name in known if f"{name}.".startswith(_PACKAGE))]
    levels = {name: logging.getLogger(name).level for name in names}
    try:
        for name in names:
            logging.getLogger(name).setLevel(_SILENT)
        yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)
