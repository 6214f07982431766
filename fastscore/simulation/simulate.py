"""What a simulation is, and its sessions.

A shard holds the logs of consecutive sessions as JSON Lines, and depends only on the simulation's
fingerprint and their numbers. It appears complete; its receipt, in a hidden folder beside it
that readers of logs leave aside, says that it did.
"""

import hashlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from fastscore_jit.system import safe_import_path, without_interrupts

from fastscore.errors import FastscoreError, RunConflictError, RunError, UsageError
from fastscore.files import SIMULATION, check_output
from fastscore.llm.client import ChatClient, ClosedError, Structured, as_done, ask_each
from fastscore.llm.requests import OPENAI
from fastscore.llm.spending import (
    FAILURES,
    MANIFEST,
    Failure,
    Meter,
    SampleError,
    Spent,
    TooManyFailuresError,
    differing,
    read_object,
)
from fastscore.run.commit import (
    Receipt,
    commit_bytes,
    commit_json,
    commit_lines,
    committed_receipt,
    remove_temporaries,
    save_receipt,
)
from fastscore.run.progress import Reporter, StageProgress
from fastscore.run.writer import run_lock
from fastscore.simulation.agents import (
    SHOWN,
    Agent,
    ModelAgent,
    ModelPhrasing,
    Turn,
    local_agent,
)
from fastscore.simulation.scenario import TEMPLATE, Simulation
from fastscore.simulation.users import (
    AGENT,
    GENRE,
    PHRASING,
    Draws,
    Policy,
    Retrieval,
    load_policy,
    load_retrieval,
    plan_user,
)


def converse(
    retrieval: Retrieval,
    policy: Policy,
    agent: Agent,
    *,
    seed: int,
    session: int,
    turns: int,
    phrase: ModelPhrasing | None = None,
    ids: str = "",
) -> dict[str, Any]:
    """Let a planned user talk to an agent."""
    plan = plan_user(retrieval, policy, seed=seed, session=session, turns=turns)
    phrasing = Draws(seed, session, PHRASING)
    respond = agent.open(Draws(seed, session, AGENT))
    conversation: list[Turn] = []
    named: Sequence[str] = ()
    for planned in plan.turns:
        text, meta = planned.text(named), planned.meta
        if phrase is not None:
            text, notes = phrase(conversation, text, phrasing)
            meta = {**meta, **notes}
        conversation.append({"speaker": "USER", "text": text, "user_meta": meta})
        reply = respond(conversation)
        if policy.follows_system:
            named = retrieval.find_titles(reply.text) or named
        conversation.append(
            {
                "speaker": "SYSTEM",
                "text": reply.text,
                "constraints": reply.constraints,
                "rec_titles": list(reply.titles[:SHOWN]),
                **reply.notes,
            }
        )
    return {
        "session_id": f"{ids}{session:05}",
        "model_name": agent.name,
        "true_genre": plan.true_genre,
        "conversation": conversation,
        "shift_events": plan.shift_events,
    }


VERSION = 1
"""Rises whenever the same arguments give other logs."""


@dataclass(frozen=True, slots=True)
class World:
    """What every session of a simulation shares."""

    simulation: Simulation
    retrieval: Retrieval
    policy: Policy
    agent: Agent
    phrase: ModelPhrasing | None = None
    client: ChatClient | None = None

    def session(self, number: int) -> bytes:
        """Simulate a session; return its log as a line."""
        asked = self.simulation
        try:
            log = converse(
                self.retrieval,
                self.policy,
                self.agent,
                seed=asked.seed,
                session=number,
                turns=asked.turns,
                phrase=self.phrase,
                ids=asked.ids,
            )
            return orjson.dumps(log, option=orjson.OPT_APPEND_NEWLINE)
        except (FastscoreError, ClosedError, SampleError):
            raise
        except Exception as error:
            # the agent's own code is the last that was called
            *_, last = traceback.extract_tb(error.__traceback__)
            raise RunError(
                f"The agent {self.agent.name} failed in session {number:05} at "
                f"{last.filename}:{last.lineno}: {type(error).__name__}: {error}.",
                "Mend it and run the same command again; finished shards are kept.",
            ) from error


def open_world(
    simulation: Simulation, meter: Meter | None = None, client: ChatClient | None = None
) -> World:
    """Load what a simulation needs, and connect to its models' server without a client."""
    retrieval = load_retrieval(simulation.catalogue)
    if not retrieval.index.get(GENRE):
        raise UsageError(
            f"catalogue {simulation.catalogue}: has no genres, which simulated users begin with."
        )
    policy = load_policy(simulation.policy)
    if simulation.user != TEMPLATE and not simulation.user.startswith(OPENAI):
        raise UsageError(f"user is {simulation.user!r}, expected {TEMPLATE} or {OPENAI}MODEL.")
    for flag, name in (("agent", simulation.agent), ("user", simulation.user)):
        if name == OPENAI:
            raise UsageError(f"{flag} {OPENAI} names no model.", f"Name one: {OPENAI}MODEL.")
    if client is None and simulation.asks_models:
        client = ChatClient(simulation.models, meter)
    agent: Agent
    if client is not None and simulation.agent.startswith(OPENAI):
        model = simulation.agent.removeprefix(OPENAI)
        agent = ModelAgent(model, retrieval, client, simulation.off_catalogue, simulation.refusals)
    else:
        agent = local_agent(simulation.agent, retrieval)
    phrase = None
    if client is not None and simulation.user.startswith(OPENAI):
        phrase = ModelPhrasing(simulation.user.removeprefix(OPENAI), client)
    return World(simulation, retrieval, policy, agent, phrase, client)


def fingerprint(world: World) -> dict[str, Any]:
    """Return what decides the logs, but for the number of sessions."""
    return {
        "version": VERSION,
        "catalogue": world.retrieval.digest,
        "policy": world.policy.digest,
        "agent": world.agent.identity,
        "user": world.phrase.identity if world.phrase else TEMPLATE,
        "turns": world.simulation.turns,
        "seed": world.simulation.seed,
        **({"ids": world.simulation.ids} if world.simulation.ids else {}),
    }


STATE = ".simulation"
_DESCRIPTION, _STAGE = "simulation.json", "simulate"
SESSIONS_A_SHARD = 50


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result: shards that were complete before, and what was made now.

    Failed sessions are missing from their shards. Refused turns are those of all shards.
    """

    kept: int
    shards: int
    sessions: int
    turns: int
    failed: int = 0
    refused: int = 0
    spent: Spent | None = None
    refusal: TooManyFailuresError | None = None


@dataclass(frozen=True, slots=True)
class _Shard:
    """Some sessions and the file that holds their logs."""

    index: int
    sessions: range
    fingerprint: str

    @property
    def name(self) -> str:
        return f"sessions-{self.index:05}.jsonl"

    def counts(self, simulation: Simulation) -> dict[str, int]:
        n = len(self.sessions)
        return {"sessions": n, "turns": n * simulation.turns}


def simulate(simulation: Simulation, reporter: Reporter, meter: Meter | None = None) -> Simulated:
    """Simulate what is not there yet."""
    world = open_world(simulation, meter)
    folder, state = simulation.output, simulation.output / STATE
    described = fingerprint(world)
    check_folder(simulation, described)
    with run_lock(state):
        remove_temporaries(folder)
        commit_json(state / _DESCRIPTION, {**described, "sessions": simulation.sessions})
        shards = _shards(simulation.sessions, described)
        left = [
            shard
            for shard in shards
            if not committed_receipt(
                folder, state, _STAGE, shard.index, shard.fingerprint, frozenset({shard.name})
            )
        ]
        done = sum(len(shard.sessions) for shard in left)
        if world.client is not None:
            kept = len(shards) - len(left)
            return _simulate_asking(world, world.client, described, left, kept, reporter)
        with reporter.stage(_STAGE, len(left)) as progress:
            _simulate_shards(world, left, progress)
    return Simulated(len(shards) - len(left), len(left), done, done * simulation.turns)


def check_folder(simulation: Simulation, described: dict[str, Any]) -> None:
    """Refuse a folder that holds anything else than part of this simulation, or clear it."""
    folder, state = simulation.output, simulation.output / STATE
    if not folder.exists() or not any(folder.iterdir()):
        return
    check_output(folder, SIMULATION, (STATE,))  # alone if it was interrupted at its very start
    found = read_object(state / _DESCRIPTION)
    others = differing(found, described)
    if not others and found.get("sessions", 0) <= simulation.sessions:
        return
    if simulation.overwrite:
        with run_lock(state):
            for path in (*folder.glob("sessions-*.jsonl"), *state.glob("*.json")):
                path.unlink()
        return
    raise RunConflictError(
        f"{folder}: holds a simulation with {f'another {others}' if others else 'more sessions'}.",
        "Choose another folder as output, or set overwrite to replace it.",
    )


def _shards(sessions: int, described: dict[str, Any]) -> list[_Shard]:
    shards = []
    for index, first in enumerate(range(0, sessions, SESSIONS_A_SHARD)):
        numbers = range(first, min(first + SESSIONS_A_SHARD, sessions))
        content = orjson.dumps([described, numbers.start, numbers.stop])
        shards.append(_Shard(index, numbers, hashlib.blake2b(content, digest_size=16).hexdigest()))
    return shards


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
            progress.advance(shard.counts(simulation))
        return
    with safe_import_path():
        pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(simulation, os.getpid()),
        )
        try:
            # a terminal's Ctrl-C goes to workers, too, that still import what ignores it
            with without_interrupts():
                futures = {pool.submit(_simulate_in_worker, shard): shard for shard in shards}
            for future in as_done(futures):
                future.result()
                progress.advance(futures[future].counts(simulation))
        except BrokenProcessPool as error:
            raise RunError(
                "A worker process died, killed or out of memory.",
                "Run the same command again, with fewer workers; finished shards are kept.",
            ) from error
        except BaseException:
            for process in (pool._processes or {}).values():
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _simulate_shard(world: World, shard: _Shard) -> None:
    lines = [world.session(number) for number in shard.sessions]
    commit_shard(world.simulation.output, shard, lines)


def _simulate_asking(
    world: World,
    client: ChatClient,
    described: dict[str, Any],
    left: list[_Shard],
    kept: int,
    reporter: Reporter,
) -> Simulated:
    """Simulate what is left with chat models; record what that costs and which sessions fail.

    A shard is written with its last session. One of which a session failed has no receipt: the
    next run makes it again.
    """
    simulation, state, before = world.simulation, world.simulation.output / STATE, client.spent
    tasks = [(shard, number) for shard in left for number in shard.sessions]
    open_shards: dict[int, dict[int, bytes | None]] = {shard.index: {} for shard in left}

    def ask(task: tuple[_Shard, int]) -> Structured[bytes]:
        try:
            return Structured(world.session(task[1]), None, 1)
        except SampleError as error:
            return Structured(None, Failure(error.kind, error.reason, hint=error.hint), 0)

    def keep(task: tuple[_Shard, int], session: Structured[bytes]) -> None:
        shard, number = task
        done = open_shards[shard.index]
        done[number] = session.value
        if len(done) < len(shard.sessions):
            return
        complete = [line for each in shard.sessions if (line := done[each]) is not None]
        if len(complete) == len(shard.sessions):
            commit_shard(simulation.output, shard, complete)
        elif complete:
            commit_bytes(simulation.output / shard.name, b"".join(complete))
        done.clear()

    def write(
        sessions: Sequence[Structured[bytes] | None], outcome: dict[str, Any]
    ) -> tuple[int, int]:
        failed = [
            {"session": number, "kind": one.failure.kind, "reason": one.failure.reason}
            for (_, number), one in zip(tasks, sessions, strict=True)
            if one is not None and one.failure is not None
        ]
        texts = [path.read_bytes() for path in simulation.output.glob("sessions-*.jsonl")]
        refused = sum(text.count(mark) for text in texts for mark in _REFUSED)
        outcome["refused_turns"] = refused
        commit_lines(state / FAILURES, failed)
        return len(failed), refused

    (failed, refused), refusal = ask_each(
        client,
        tasks,
        ask,
        write,
        reporter,
        stage=_STAGE,
        noun="sessions",
        described=described,
        manifest=state / MANIFEST,
        failures=state / FAILURES,
        counts={"turns": simulation.turns},
        samples=[number for _, number in tasks],
        n_samples=simulation.sessions,
        done=keep,
    )
    made, spent = len(tasks) - failed, client.spent - before
    turns = made * simulation.turns
    return Simulated(kept, len(left), made, turns, failed, refused, spent, refusal)


_REFUSED = (b'"refused":true', b'"not_reworded":"refused"')
"""How logs mark what an agent or a user's model declined."""


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
