"""Recommenders that answer simulated users: offline by rules, a Python callable or a chat model.

An agent is opened once for a session and then answers turn after turn. ``offline`` reads
constraints from what the user says, retrieves, and answers by a template. A callable of the user's
own is named as ``python:module.object`` or installed under the entry-point group
``fastscore.agents``.

A model recommends from what retrieval found, told so by its prompt; what it says is checked
against the catalogue, because a prompt binds nobody. A user's model only rewords the planned turn:
state, shifts and constraints stay the plan's.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from fastscore.errors import UsageError, did_you_mean
from fastscore.llm.client import ChatClient
from fastscore.llm.requests import (
    OPENAI,
    Answer,
    ChatRequest,
    read_prompts,
)
from fastscore.llm.transcripts import DATA, quoted
from fastscore.settings.extras import entry_points, load_entry
from fastscore.simulation.scenario import MARK, OFFLINE, OffCatalogue, Refusals
from fastscore.simulation.users import GENRE, ConstraintReader, Draws, Item, Retrieval
from fastscore.suites.preference_shift.catalogue import NAME

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

    It is called with the conversation so far, a list of turns as logs have them, and returns a text
    or a mapping with ``text`` and, where it has them, ``constraints`` and ``rec_titles``. A class
    is instantiated for every session.
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
    or first asked about again, or not looked for. Refusals are treated by `refusals`.
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
            f"refusals={self.refusals} {_READING} "
            f"{PROMPTS_DIGEST}"
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
            looks = self.off_catalogue != "ignore" and not answer.declined
            unknown = unknown_titles(answer.content, self.retrieval) if looks else []
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
