"""Schedulers and workers that were started on their own, as by somebody else."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.engines.runs import HOOKS

START_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler's address, its process, and those of its workers."""

    address: str
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def dask_cluster(
    folder: Path,
    workers: int = 2,
    *,
    worker_ttl: str = "300s",
    preload: Path | None = None,
    path: Path | str = HOOKS,
) -> Iterator[Cluster]:
    """Start a Dask scheduler and workers with a working directory and a cache of their own.

    The scheduler takes a worker for dead that is not heard of for `worker_ttl`; the first worker
    runs `preload` before anything else, and `path` is where all look for modules first.
    """
    import distributed  # which may be absent

    elsewhere = folder / "elsewhere"
    elsewhere.mkdir(parents=True)
    environment = {
        **os.environ,
        "FASTSCORE_CACHE": str(folder / "cache-of-workers"),
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": worker_ttl,
        "PYTHONPATH": str(path),
    }
    place = folder / "scheduler.json"

    def start(*words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=elsewhere,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    words = ["--host", "127.0.0.1", "--port", "0", "--no-show", "--no-dashboard"]
    scheduler = start("distributed.cli.dask_scheduler", *words, "--scheduler-file", str(place))
    try:
        address = wait_for_address(place)
    except TimeoutError:
        end(scheduler)
        raise
    cluster = Cluster(address, scheduler)
    try:
        for number in range(workers):
            words = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0"]
            if preload is not None and number == 0:
                words += ["--preload", str(preload)]
            worker = start("distributed.cli.dask_worker", address, *words)
            cluster.workers.append(worker)
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=START_SECONDS)
        yield cluster
    finally:
        for process in (*cluster.workers, scheduler):
            end(process)


@contextmanager
def ray_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a Ray cluster of one node on the loopback address, elsewhere than the driver."""
    elsewhere, temporary = folder / "elsewhere", tempfile.mkdtemp(prefix="ray-")  # short: sockets
    elsewhere.mkdir(parents=True)
    port = free_port()
    head = subprocess.Popen(
        [
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
            *("--node-ip-address", "127.0.0.1", "--port", str(port), "--num-cpus", "2"),
            *("--include-dashboard", "false", "--object-store-memory", "100000000"),
            *("--temp-dir", temporary),
        ],
        cwd=elsewhere,
        env={
            **os.environ,
            "FASTSCORE_CACHE": str(folder / "cache-of-workers"),
            "RAY_AUTH_MODE": "disabled",
            "PYTHONPATH": HOOKS,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for_port(port)
        yield Cluster(f"127.0.0.1:{port}", head)
    finally:
        children = psutil.Process(head.pid).children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.kill()
        end(head)
        shutil.rmtree(temporary, ignore_errors=True)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, a stopped one too."""
    process.kill()
    process.send_signal(signal.SIGCONT)
    process.wait(timeout=30)


def wait_for_address(place: Path) -> str:
    """Return where a scheduler listens, which it writes to a file when it does."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError, ValueError):
            return str(json.loads(place.read_text())["address"])
        time.sleep(0.05)
    raise TimeoutError(f"no scheduler wrote {place}")


def wait_for_port(port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nobody listens at port {port}")
