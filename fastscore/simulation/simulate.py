"""Simulations: recommenders, what users say to them, and shards of sessions.

An agent is opened once for a session and then answers turn after turn. ``offline`` reads
constraints from what the user says, retrieves, and answers by a template. A callable of the user's
own is named as ``python:module.object`` or installed under the entry-point group
``fastscore.agents``.

A model recommends from what retrieval found, told so by its prompt; what it says is checked
against the catalogue, because a prompt binds nobody. A user's model only rewords the planned turn:
state, shifts and constraints stay the plan's.

A shard holds the logs of consecutive sessions as JSON Lines, and depends only on the simulation's
fingerprint and their numbers. It appears complete; its receipt, in a hidden folder beside it
that readers of logs leave aside, says that it did.
"""

import hashlib
import importlib
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
from fastscore_jit.system import safe_import_path, without_interrupts

from fastscore.errors import FastscoreError, RunConflictError, RunError, UsageError, did_you_mean
from fastscore.files import SIMULATION, check_output
from fastscore.llm.client import ChatClient, ClosedError, Structured, as_done, ask_each
from fastscore.llm.requests import OPENAI, Answer, ChatRequest, read_prompts
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
from fastscore.llm.transcripts import DATA, quoted
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
from fastscore.settings.extras import entry_points, load_entry
from fastscore.simulation.scenario import (
    MARK,
    OFFLINE,
    TEMPLATE,
    OffCatalogue,
    Refusals,
    Simulation,
)
from fastscore.simulation.users import (
    AGENT,
    GENRE,
    PHRASING,
    ConstraintReader,
    Draws,
    Item,
    Policy,
    Retrieval,
    load_policy,
    load_retrieval,
    plan_user,
)
from fastscore.suites.preference_shift.catalogue import NAME

# Agents

_WORDS, _ = read_prompts(__package__, "agent.toml")
PROMPTS, PROMPTS_DIGEST = read_prompts(__package__, "models.toml")

PYTHON = "python:"
GROUP = "fastscore.agents"
OFFLINE_VERSION = "0.1.0"
"""Rises when the offline agent may answer otherwise."""
SHOWN = 4
"""How many of what was retrieved an agent considers, and the most titles that a log states."""

Turn = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answers: words, constraints that it understood, titles that it chose from.

    `notes` are further keys of the log's turn.
    """

    text: str
    constraints: Mapping[str, Any] = field(default_factory=dict)
    titles: Sequence[str] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)


Respond = Callable[[Sequence[Turn]], Reply]
"""Answers the conversation so far, whose last turn is the user's."""


@dataclass(frozen=True, slots=True)
class OfflineAgent:
    """Restates the constraints that it read, and names one or two items that fit."""

    retrieval: Retrieval
    name: str = OFFLINE
    identity: str = f"{OFFLINE} {OFFLINE_VERSION}"

    def open(self, draws: Draws) -> Respond:
        """Begin a session."""
        reader = ConstraintReader(self.retrieval)

        def respond(conversation: Sequence[Turn]) -> Reply:
            constraints = reader.read(conversation[-1]["text"])
            rows = self.retrieval.recommend(constraints, draws)[:SHOWN]
            titles = self.retrieval.titles(rows)
            named = titles[: 2 if draws.happens(0.5) else 1]
            phrase = draws.choose(_WORDS["phrases"][("nothing", "one", "two")[len(named)]])
            words = {"understood": restate_constraints(constraints)}
            words |= zip(("first", "second"), named, strict=False)
            return Reply(phrase.format(**words), constraints, titles)

        return respond


def restate_constraints(constraints: Mapping[str, Sequence[str]]) -> str:
    """Say constraints back in words."""
    words = _WORDS["understood"]
    genre = words[GENRE] if constraints.get(GENRE) else words["without_genre"]
    parts = [genre.format(value=" or ".join(constraints.get(GENRE, ())))]
    parts += [
        words[name].format(value=" and ".join(values))
        for name, values in constraints.items()
        if name != GENRE and values
    ]
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class CallableAgent:
    """Answers by a callable of the user's own.

    It is called with the turns so far, as logs have them, and returns a text, or a mapping with
    ``text`` and maybe ``constraints`` and ``rec_titles``. A class makes an object a session.
    """

    name: str
    called: Callable[..., Any]

    @property
    def identity(self) -> str:
        """Its name: what it computes cannot be known."""
        return self.name

    def open(self, draws: Draws) -> Respond:
        """Begin a session."""
        called = self.called() if isinstance(self.called, type) else self.called

        def respond(conversation: Sequence[Turn]) -> Reply:
            answer = called(list(conversation))
            if isinstance(answer, str):
                return Reply(answer)
            if isinstance(answer, Mapping) and isinstance(answer.get("text"), str):
                constraints = answer.get("constraints") or {}
                titles = answer.get("rec_titles") or ()
                if isinstance(constraints, Mapping) and isinstance(titles, list | tuple):
                    return Reply(answer["text"], constraints, tuple(titles)[:SHOWN])
            raise UsageError(
                f"The agent {self.name} returned {answer!r:.80}, expected a text, or a mapping "
                "with a text under 'text', a mapping under 'constraints' and a list under "
                "'rec_titles'."
            )

        return respond


def local_agent(name: str, retrieval: Retrieval) -> OfflineAgent | CallableAgent:
    """Return an agent that needs no chat model."""
    if name == OFFLINE:
        return OfflineAgent(retrieval)
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name.startswith(PYTHON):
        module, _, member = name.removeprefix(PYTHON).rpartition(".")
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())  # modules beside the logs, as `python -m` finds them
        try:
            found = getattr(importlib.import_module(module), member)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(
                f"agent {name}: cannot be imported: {error}.",
                "Expected python:module.object of a module that Python finds from here.",
            ) from error
    elif name in installed:
        found = load_entry(installed[name], "agent")
    else:
        raise UsageError(
            f"Unknown agent {name!r}.",
            did_you_mean(name, (OFFLINE, *installed))
            + " Others: openai:MODEL, python:module.object.",
        )
    if not callable(found):
        raise UsageError(f"agent {name}: is {found!r:.60}, expected something to call.")
    return CallableAgent(name, found)


MOST_AGAIN = 2
"""How often an answer of no use is asked for again."""

_READING = "reading=3"
"""How answers become turns; the number rises if equal answers give other turns."""

_PLOT_LENGTH = 300
_QUOTED = re.compile(
    r'"([^"\n]{1,120})"|\u201c([^\u201d\n]{1,120})\u201d|\*{1,2}([^*\n]{1,120})\*{1,2}'
)
_DATED = re.compile(
    r"((?:(?<![\w'\u2019:&,.!-])[A-Z0-9][\w'\u2019:&,.!-]*\s+)"  # words from their beginning
    r"(?:[\w'\u2019:&,.!-]+\s+){0,8}?)\(((?:18|19|20)\d\d)\)"
)
_YEAR_AFTER = re.compile(r"\s*\((?:1[89]|20)\d\d\)$")


@dataclass(frozen=True, slots=True)
class ModelAgent:
    """A chat model that recommends from what is retrieved.

    Titles that the catalogue lacks are treated by `off_catalogue`: listed in the log's turn,
    at once or after the model was asked again. Refusals are treated by `refusals`.
    """

    name: str
    retrieval: Retrieval
    client: ChatClient
    off_catalogue: OffCatalogue = MARK
    refusals: Refusals = MARK

    @property
    def identity(self) -> str:
        """Model, server, prompt and what is done about unknown titles."""
        asked = self.client.options
        return (
            f"{OPENAI}{self.name} {asked.endpoint} temperature={asked.temperature} "
            f"tokens={asked.answer_tokens} off-catalogue={self.off_catalogue} "
            f"refusals={self.refusals} {_READING} {PROMPTS_DIGEST}"
        )

    def open(self, draws: Draws) -> Respond:
        """Begin a session."""
        reader = ConstraintReader(self.retrieval)

        def respond(conversation: Sequence[Turn]) -> Reply:
            constraints = reader.read(conversation[-1]["text"])
            rows = self.retrieval.recommend(constraints, draws)[:SHOWN]
            shown = [self.retrieval.items[row] for row in rows]
            request = self._request(conversation, constraints, shown, draws)
            answer, unknown = self._answer(request)
            notes: dict[str, Any] = {}
            if unknown:
                notes["unknown_titles"] = unknown
            if answer.declined:
                notes["refused"] = True
                if self.refusals == "leave-out":  # a turn without a text is in no mean
                    notes |= {"text": None, "refusal": answer.content}
            if answer.cut_off:
                notes["cut_off"] = answer.cut_off
            return Reply(answer.content, constraints, [item.title for item in shown], notes)

        return respond

    def _request(
        self,
        conversation: Sequence[Turn],
        constraints: Mapping[str, Sequence[str]],
        shown: Sequence[Item],
        draws: Draws,
    ) -> ChatRequest:
        words = PROMPTS["agent"]
        system = words["system"].format(
            constraints=restate_constraints(constraints),
            candidates="\n".join(_candidate(item, words) for item in shown) or "(none)",
        )
        roles = {"USER": "user", "SYSTEM": "assistant"}
        history = conversation[-1 - words["history"] :]
        # templates of many models want a user's message first
        while history and history[0]["speaker"] != "USER":
            history = history[1:]
        turns = ((roles[turn["speaker"]], _said(turn)) for turn in history)
        return self.client.options.request(
            self.name, ("system", system.strip()), *turns, seed=_seed(draws)
        )

    def _answer(self, request: ChatRequest) -> tuple[Answer, list[str]]:
        """Ask; ask again for an empty answer, and about unknown titles where that is wanted."""
        for attempt in range(MOST_AGAIN + 1):
            answer = self.client.ask(request)
            unknown = [] if answer.declined else unknown_titles(answer.content, self.retrieval)
            is_last = attempt == MOST_AGAIN
            if not answer.content and not is_last:
                request = request.again()
            elif unknown and self.off_catalogue == "ask-again" and not is_last:
                titles = ", ".join(f'"{title}"' for title in unknown)
                again = PROMPTS["agent"]["again"].format(titles=titles).strip()
                request = request.again(("assistant", answer.content), ("user", again))
            else:
                break
        return answer, unknown


def _said(turn: Turn) -> str:
    return str(turn["text"] if turn["text"] is not None else turn["refusal"])


def _candidate(item: Item, words: Mapping[str, str]) -> str:
    years, actors = item.values.get("year", ()), item.values.get("actor", ())
    plot = item.plot[:_PLOT_LENGTH]
    return words["candidate"].format(
        title=item.title,
        year=words["year"].format(value=years[0]) if years else "",
        actors=words["actors"].format(value=", ".join(actors[:3])) if actors else "",
        plot=words["plot"].format(value=plot) if plot else "",
    )


def unknown_titles(text: str, retrieval: Retrieval) -> list[str]:
    """Return what a text names as titles that the catalogue does not have.

    Titles are words in double quotes or between asterisks, and words in capitals before a
    year in brackets. The catalogue's titles count with and without the year.
    """
    known = _known_titles(retrieval)
    found: dict[str, None] = {}
    for match in _QUOTED.finditer(text):
        found[next(part for part in match.groups() if part)] = None
    bare = _QUOTED.sub("|", text)  # no title goes on beyond a quoted one
    for match in _DATED.finditer(bare):
        words = match[1].strip()
        ends = (words.split(" ", skipped)[-1] for skipped in range(words.count(" ") + 1))
        if not any(_plain(end) in known for end in ends):
            found[f"{words} ({match[2]})"] = None
    return [title for title in found if _plain(title) and _plain(title) not in known]


def _plain(title: str) -> str:
    return _YEAR_AFTER.sub("", title.strip().strip(".,!?:;").lower()).strip()


@lru_cache(1)
def _known_titles(retrieval: Retrieval) -> frozenset[str]:
    return frozenset(map(_plain, retrieval.index.get(NAME, {})))


Agent = OfflineAgent | CallableAgent | ModelAgent
"""A recommender: its ``name`` is the log's, its ``identity`` what decides its answers."""


@dataclass(frozen=True, slots=True)
class ModelPhrasing:
    """A chat model that says a planned turn in other words."""

    model: str
    client: ChatClient

    @property
    def identity(self) -> str:
        """Model, server and prompt."""
        asked = self.client.options
        how = f"temperature={asked.temperature} {_READING} {PROMPTS_DIGEST}"
        return f"{OPENAI}{self.model} {asked.endpoint} {how}"

    def __call__(
        self, conversation: Sequence[Turn], text: str, draws: Draws
    ) -> tuple[str, dict[str, Any]]:
        """Return the words, and what the turn's metadata should say of them.

        If the model refuses, says nothing or is cut off, the template's words are used, and
        ``not_reworded`` in the metadata gives the reason.
        """
        words = PROMPTS["user"]
        lines = [f"{turn['speaker']}: {_said(turn)}" for turn in conversation[-words["history"] :]]
        message = words["message"].format(
            conversation=quoted("conversation", lines) if lines else "(nothing yet)", text=text
        )
        request = self.client.options.request(
            self.model,
            ("system", words["system"].strip() + DATA),
            ("user", message.strip()),
            seed=_seed(draws),
        )
        for _ in range(MOST_AGAIN + 1):
            answer = self.client.ask(request)
            reworded = answer.content.strip('"')
            if answer.declined:
                return text, {"template": text, "not_reworded": "refused"}
            if reworded and not answer.cut_off:
                return reworded, {"template": text}
            request = request.again()
        return text, {"template": text, "not_reworded": answer.cut_off or "empty"}


def _seed(draws: Draws) -> int:
    return int(draws.uniform() * 2**31)


# Sessions and shards


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
        try:
            return orjson.dumps(self.log(number), option=orjson.OPT_APPEND_NEWLINE)
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

    def log(self, number: int) -> dict[str, Any]:
        """Let the planned user of a session talk to the agent."""
        asked, seed = self.simulation, self.simulation.seed
        plan = plan_user(self.retrieval, self.policy, seed=seed, session=number, turns=asked.turns)
        phrasing = Draws(seed, number, PHRASING)
        respond = self.agent.open(Draws(seed, number, AGENT))
        conversation: list[Turn] = []
        named: Sequence[str] = ()
        for planned in plan.turns:
            text, meta = planned.text(named), planned.meta
            if self.phrase is not None:
                text, notes = self.phrase(conversation, text, phrasing)
                meta = {**meta, **notes}
            conversation.append({"speaker": "USER", "text": text, "user_meta": meta})
            reply = respond(conversation)
            if self.policy.follows_system:
                named = self.retrieval.find_titles(reply.text) or named
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
            "session_id": f"{asked.ids}{number:05}",
            "model_name": self.agent.name,
            "true_genre": plan.true_genre,
            "conversation": conversation,
            "shift_events": plan.shift_events,
        }


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
    check_output(folder, SIMULATION, (STATE,))  # alone if it was interrupted at its very start
    if not folder.exists() or not any(folder.iterdir()):
        return
    found = read_object(state / _DESCRIPTION)
    others = differing(found, described)
    if simulation.overwrite:
        with run_lock(state):
            for path in (*folder.glob("sessions-*.jsonl"), *state.glob("*.json")):
                path.unlink()
        return
    if not others and found.get("sessions", 0) <= simulation.sessions:
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

    A shard of which a session failed has no receipt: the next run makes it again.
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
