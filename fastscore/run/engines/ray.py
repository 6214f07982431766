"""The Ray engine: tasks in the worker processes of a Ray cluster.

Only Ray's core is used: a process does one task at a time, on one processor of the cluster.
"""

import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any

import ray
from fastscore_jit.system import safe_import_path
from ray.exceptions import (
    NodeDiedError,
    OutOfMemoryError,
    RayError,
    RayTaskError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from fastscore.errors import RunError
from fastscore.logs.integrity.limits import Limits
from fastscore.run.engines.engine import (
    Answer,
    Check,
    Done,
    Key,
    Lost,
    attempt,
    done_or_raise,
    load_tasks,
    thread_variables,
    threads_each,
)

TASKS_PER_SLOT = 2
ATTEMPTS = 4
POLL_SECONDS = 2.0
OBJECT_STORE_BYTES = 100 * 2**20
"""Of a cluster of our own: nothing large goes through it."""

_QUOTED = 500
_DEATHS = (WorkerCrashedError, NodeDiedError, OutOfMemoryError)


class RayEngine:
    """Does tasks on a cluster that this process is connected to."""

    def __init__(self, address: str, limits: Limits, check: Check) -> None:
        self._address = address
        self._limits, self._check = limits, check
        self._looked = -POLL_SECONDS
        self._slots = 1

    def map(
        self,
        task: Callable[[Key], Done],
        keys: Sequence[Key],
        *,
        exclusive: bool = False,
        lost: Lost = lambda worker, tasks: None,
    ) -> Iterator[Done]:
        """Do a task for every key.

        What has not begun when this ends is dropped when the engine is closed, not before: Ray
        ends this process now and then if a task is cancelled while its result arrives.
        """
        limits, check = self._limits, self._check
        remote = ray.remote(num_cpus=1, max_retries=0)(
            lambda key: attempt(limits, check, task, key)
        )
        waiting = ((key, 1) for key in keys)
        running: dict[Any, tuple[Key, int]] = {}
        try:
            while True:
                self._count_processors()
                room = self._slots * TASKS_PER_SLOT - len(running)
                for key, number in islice(waiting, max(0, room)):
                    running[remote.remote(key)] = key, number
                if not running:
                    return
                done, _ = ray.wait(list(running), timeout=POLL_SECONDS)
                for reference in done:
                    key, number = running.pop(reference)
                    try:
                        outcome = ray.get(reference)
                    except _DEATHS as error:
                        lost(self._address, 1)
                        if number == ATTEMPTS:
                            raise self._workers_died(task, key) from error
                        running[remote.remote(key)] = key, number + 1
                    else:
                        yield done_or_raise(outcome)
        except (RayError, ConnectionError) as error:
            raise (self._failed(error) if self._is_reachable() else self._cluster_lost()) from error

    def processes(self) -> int:
        """Count the processors, each of which has a process."""
        self._count_processors()
        return self._slots

    def ask(self, question: Callable[[], Answer]) -> dict[str, Answer]:
        """Put a question to a process on each node."""
        remote = ray.remote(num_cpus=0, max_retries=0)(lambda: question())
        asked = {}
        for node in ray.nodes():
            if node["Alive"]:
                there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
                worker = f"{node['NodeManagerAddress']}, node {node['NodeID'][:8]}"
                asked[worker] = remote.options(scheduling_strategy=there).remote()
        try:
            return {worker: ray.get(answer) for worker, answer in asked.items()}
        except RayTaskError as error:
            raise error.cause from None

    def _count_processors(self) -> None:
        """Count processors now and then; raise if nobody listens at the address any more.

        Ray itself would wait for a minute, and end this process.
        """
        if time.monotonic() - self._looked < POLL_SECONDS:
            return
        if not self._is_reachable():
            raise self._cluster_lost()
        self._slots = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._looked = time.monotonic()

    def _is_reachable(self) -> bool:
        """Tell whether anybody listens at the address."""
        host, _, port = self._address.removeprefix("ray://").rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        except OSError:
            return False
        return True

    def _failed(self, error: Exception) -> RunError:
        reason = " ".join(str(error).split())[:_QUOTED]
        return RunError(
            f"The Ray cluster at {self._address} did not do a task: "
            f"{type(error).__name__}: {reason}",
            "Its logs say more; run the same command again, what is committed is kept.",
        )

    def _cluster_lost(self) -> RunError:
        return RunError(
            f"The Ray cluster at {self._address} went away.",
            "Start it and run the same command again; what is committed is kept.",
        )

    def _workers_died(self, task: Any, key: Any) -> RunError:
        name = getattr(getattr(task, "func", task), "__name__", "a task")
        index = getattr(key, "index", key)
        return RunError(
            f"Workers of {self._address} died {ATTEMPTS} times while they did {name} {index}.",
            "It may need more memory than they have: see shard_size.",
        )


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Let a cluster that is started meanwhile listen only on the loopback address.

    Ray does so by itself on macOS and Windows. Elsewhere it maps the loopback address to the
    machine's own and listens on every interface.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


@contextmanager
def open_engine(
    address: str | None, workers: int, limits: Limits, check: Check = lambda: None
) -> Iterator[RayEngine]:
    """Connect to a cluster, or start one with so many worker processes on this machine."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    threads = threads_each(workers) if address is None else 1
    runtime: dict[str, Any] = {"env_vars": thread_variables(threads)}
    own: dict[str, Any] = {}
    if address is None:
        own = {"num_cpus": workers, "object_store_memory": OBJECT_STORE_BYTES}
        runtime["worker_process_setup_hook"] = load_tasks
    try:
        with safe_import_path(), _on_loopback() if address is None else nullcontext():
            context = ray.init(
                address="local" if address is None else address,
                include_dashboard=None if address else False,
                log_to_driver=False,
                logging_level="CRITICAL",
                runtime_env=runtime,
                **own,
            )
    except Exception as error:  # Ray raises that itself where a node does not start in time
        if address is None:
            raise RunError(
                f"Ray does not start on this machine: {error}",
                "Run the command again when the machine has less to do, or leave out engine: "
                "this process has threads of its own.",
            ) from error
        raise RunError(
            f"No Ray cluster answers at {address}: {error}.",
            "Start one there (`ray start --head`), or leave out address.",
        ) from error
    for number, handler in handlers.items():
        signal.signal(number, handler)  # Ray's own would exit with the signal's number
    engine = RayEngine(address if address else context.address_info["gcs_address"], limits, check)
    try:
        yield engine
    finally:
        ray.shutdown()
