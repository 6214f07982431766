"""Simulating sessions into shards of logs: equal for any number of workers, finished on a rerun.

A shard holds the logs of consecutive sessions as JSON Lines, and is a function of the simulation's
fingerprint and their numbers alone. It appears whole; its receipt, in a hidden folder beside it
that readers of logs leave aside, says that it did.
"""

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from fastscore.errors import FastscoreError, RunConflictError, RunError
from fastscore.llm.client import ChatClient, ClosedError, Spent
from fastscore.llm.threads import SpendingProgress, as_done, asking_threads
from fastscore.run.commit import commit_bytes, commit_json, remove_temporaries
from fastscore.run.lock import sole_writer
from fastscore.run.progress import Reporter, StageProgress
from fastscore.run.receipts import Receipt, committed_receipt, save_receipt
from fastscore.simulation.world import Simulation, World, fingerprint, open_world

STATE = ".simulation"
_DESCRIPTION = "simulation.json"
_STAGE = "simulate"
SESSIONS_A_SHARD = 50


@dataclass(frozen=True, slots=True)
class Simulated:
    """What was done: shards that stood already, and shards, sessions and turns that were made.

    ``spent`` says what chat models were asked, None without any.
    """

    kept: int
    shards: int
    sessions: int
    turns: int
    spent: Spent | None = None


@dataclass(frozen=True, slots=True)
class _Shard:
    """Some sessions and the file that holds their logs."""

    index: int
    sessions: range
    fingerprint: str

    @property
    def name(self) -> str:
        return f"sessions-{self.index:05}.jsonl"


def simulate(simulation: Simulation, reporter: Reporter) -> Simulated:
    """Simulate what is not there yet.

    Parameters
    ----------
    simulation
        What to simulate, and where to.
    reporter
        Shows the progress.

    Raises
    ------
    UsageError
        An argument cannot be used.
    RunConflictError
        The folder holds other logs, or another process writes there.
    RunError
        A log cannot be written, or an agent failed.
    """
    world = open_world(simulation)
    folder, state = simulation.output, simulation.output / STATE
    described = fingerprint(world)
    check_folder(simulation, described)
    with sole_writer(state):
        remove_temporaries(folder)
        commit_json(state / _DESCRIPTION, {**described, "sessions": simulation.sessions})
        shards = _shards(simulation.sessions, described)
        left = [shard for shard in shards if not _is_done(folder, shard)]
        done = sum(len(shard.sessions) for shard in left)
        if world.client is None:
            with reporter.stage(_STAGE, len(left)) as progress:
                _simulate_shards(world, left, progress)
        else:
            with reporter.stage(_STAGE, done) as progress:
                _simulate_sessions(world, world.client, left, progress)
    spent = world.client.spent if world.client else None
    return Simulated(len(shards) - len(left), len(left), done, done * simulation.turns, spent)


def check_folder(simulation: Simulation, described: dict[str, Any]) -> None:
    """Refuse a folder that holds anything else than part of this simulation, or clear it."""
    folder, state = simulation.output, simulation.output / STATE
    if not folder.exists() or not any(folder.iterdir()):
        return
    try:
        found = orjson.loads((state / _DESCRIPTION).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        found = None
    if found is None:
        if [path.name for path in folder.iterdir()] == [STATE]:
            return  # a simulation that was interrupted at its very start
        raise RunConflictError(
            f"{folder}: holds files that no simulation wrote.", "Choose another folder with -o."
        )
    differing = [name for name, value in described.items() if found.get(name) != value]
    more = found.get("sessions", 0) > simulation.sessions
    if not differing and not more:
        return
    if simulation.overwrite:
        with sole_writer(state):
            for path in folder.glob("sessions-*.jsonl"):
                path.unlink()
            for path in state.glob("*.json"):
                path.unlink()
        return
    what = f"another {' and another '.join(differing)}" if differing else "more sessions"
    raise RunConflictError(
        f"{folder}: holds a simulation with {what}.",
        "Choose another folder with -o, or replace it with --overwrite.",
    )


def _shards(sessions: int, described: dict[str, Any]) -> list[_Shard]:
    shards = []
    for index, first in enumerate(range(0, sessions, SESSIONS_A_SHARD)):
        numbers = range(first, min(first + SESSIONS_A_SHARD, sessions))
        content = orjson.dumps([described, numbers.start, numbers.stop])
        shards.append(_Shard(index, numbers, hashlib.blake2b(content, digest_size=16).hexdigest()))
    return shards


def _is_done(folder: Path, shard: _Shard) -> bool:
    outputs = frozenset({shard.name})
    receipt = committed_receipt(
        folder, folder / STATE, _STAGE, shard.index, shard.fingerprint, outputs
    )
    return receipt is not None


def commit_shard(folder: Path, shard: _Shard, lines: list[bytes]) -> None:
    """Make a shard's file appear, and then its receipt."""
    committed = commit_bytes(folder / shard.name, b"".join(lines))
    receipt = Receipt(
        stage=_STAGE, index=shard.index, fingerprint=shard.fingerprint, outputs=(committed,)
    )
    save_receipt(folder / STATE, receipt)


def _simulate_shards(world: World, shards: list[_Shard], progress: StageProgress) -> None:
    simulation = world.simulation
    workers = min(simulation.workers, len(shards))
    if workers <= 1:
        for shard in shards:
            _simulate_shard(world, shard)
            progress.advance(_counts(shard, simulation))
        return
    with _processes(simulation, workers) as pool:
        # a terminal's Ctrl-C goes to workers, too, that still import what ignores it
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            futures = {pool.submit(_simulate_in_worker, shard): shard for shard in shards}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for future in as_done(futures):
            future.result()
            progress.advance(_counts(futures[future], simulation))


def _counts(shard: _Shard, simulation: Simulation) -> dict[str, int]:
    count = len(shard.sessions)
    return {"sessions": count, "turns": count * simulation.turns}


def _simulate_shard(world: World, shard: _Shard) -> None:
    lines = [_simulate_session(world, number) for number in shard.sessions]
    commit_shard(world.simulation.output, shard, lines)


def _simulate_session(world: World, number: int) -> bytes:
    try:
        return world.session(number)
    except (FastscoreError, ClosedError):
        raise
    except Exception as error:
        raise agent_failure(world.agent.name, number, error) from error


def _simulate_sessions(
    world: World, client: ChatClient, shards: list[_Shard], progress: StageProgress
) -> None:
    """Simulate sessions in threads, which wait for models; a shard is written with its last one."""
    shown = SpendingProgress(progress, client)
    with asking_threads(client) as threads:
        futures = {
            threads.submit(_simulate_session, world, number): (shard, number)
            for shard in shards
            for number in shard.sessions
        }
        lines: dict[int, dict[int, bytes]] = {shard.index: {} for shard in shards}
        for future in as_done(futures):
            shard, number = futures[future]
            done = lines[shard.index]
            done[number] = future.result()
            shown.advance(turns=world.simulation.turns)
            if len(done) == len(shard.sessions):
                commit_shard(world.simulation.output, shard, [done[n] for n in shard.sessions])
                del lines[shard.index]


def agent_failure(name: str, session: int, error: Exception) -> RunError:
    """Say where in an agent's own code a session failed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace else ""
    return RunError(
        f"The agent {name} failed in session {session:05}{place}: {type(error).__name__}: {error}.",
        "Mend it and run the same command again; finished shards are kept.",
    )


@contextmanager
def _processes(simulation: Simulation, workers: int) -> Iterator[Executor]:
    """Open worker processes that end with this one, however it ends."""
    pool = ProcessPoolExecutor(
        workers,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(simulation, os.getpid()),
    )
    try:
        yield pool
    except BrokenProcessPool as error:
        raise RunError(
            "A worker process died, killed or out of memory.",
            "Run the same command again, with fewer --workers; finished shards are kept.",
        ) from error
    except BaseException:
        for process in (pool._processes or {}).values():
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_world: World | None = None


def _start_worker(simulation: Simulation, parent: int) -> None:
    global _world
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is interrupted, and ends its workers
    threading.Thread(target=_exit_after_parent, args=(parent,), daemon=True).start()
    _world = open_world(simulation)


def _exit_after_parent(parent: int) -> None:
    """End this process soon after its parent has gone: nobody would read what it does."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _simulate_in_worker(shard: _Shard) -> None:
    assert _world is not None
    _simulate_shard(_world, shard)
