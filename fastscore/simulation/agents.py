"""Recommenders that answer simulated users: offline by rules, or any Python callable.

An agent is opened once for a session and then answers turn after turn. ``offline`` reads
constraints from what the user says, retrieves, and answers by a template. A callable of the user's
own is named as ``python:module.object`` or installed under the entry-point group
``fastscore.agents``.
"""

import importlib
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from fastscore.errors import UsageError, did_you_mean
from fastscore.extras import entry_points
from fastscore.simulation.draws import Draws
from fastscore.simulation.retrieval import GENRE, Retrieval
from fastscore.simulation.users import ConstraintReader

OFFLINE, PYTHON = "offline", "python:"
GROUP = "fastscore.agents"
OFFLINE_VERSION = "0.1.0"
"""Rises when the offline agent may answer otherwise."""
SHOWN = 4
"""How many of what was retrieved an agent considers, and the most titles that a log states."""

Turn = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answers.

    Parameters
    ----------
    text
        The words.
    constraints
        What it takes the user to want, lists of values by field.
    titles
        What it chose from, at most `SHOWN` titles.
    notes
        What else the log's turn should say, by key.
    """

    text: str
    constraints: Mapping[str, Any] = field(default_factory=dict)
    titles: Sequence[str] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)


Respond = Callable[[Sequence[Turn]], Reply]
"""Answers the conversation so far, whose last turn is the user's."""


class Agent(Protocol):
    """A recommender."""

    @property
    def name(self) -> str:
        """The log's ``model_name``."""

    @property
    def identity(self) -> str:
        """What decides its answers, for the fingerprint of a simulation."""

    def open(self, draws: Draws) -> Respond:
        """Begin a session."""


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
            return Reply(_compose_reply(constraints, titles, draws), constraints, titles)

        return respond


def _compose_reply(
    constraints: Mapping[str, Sequence[str]], titles: Sequence[str], draws: Draws
) -> str:
    content = _words()
    named = titles[: 2 if draws.happens(0.5) else 1]
    phrases = content["phrases"][("nothing", "one", "two")[len(named)]]
    values = dict(zip(("first", "second"), named, strict=False))
    return str(draws.choose(phrases).format(understood=restate_constraints(constraints), **values))


def restate_constraints(constraints: Mapping[str, Sequence[str]]) -> str:
    """Say constraints back in words."""
    words = _words()["understood"]
    genre = words[GENRE] if constraints.get(GENRE) else words["without_genre"]
    parts = [genre.format(value=" or ".join(constraints.get(GENRE, ())))]
    parts += [
        words[name].format(value=" and ".join(values))
        for name, values in constraints.items()
        if name != GENRE and values
    ]
    return " ".join(parts)


@cache
def _words() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("agent.toml").read_text(encoding="utf-8"))


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
        return lambda conversation: self._reply(called(list(conversation)))

    def _reply(self, answer: object) -> Reply:
        if isinstance(answer, str):
            return Reply(answer)
        if isinstance(answer, Mapping) and isinstance(answer.get("text"), str):
            constraints, titles = answer.get("constraints") or {}, answer.get("rec_titles") or ()
            if isinstance(constraints, Mapping) and isinstance(titles, list | tuple):
                return Reply(answer["text"], constraints, tuple(titles)[:SHOWN])
        raise UsageError(
            f"The agent {self.name} returned {answer!r:.80}, expected a text, or a mapping with "
            "a text under 'text', a mapping under 'constraints' and a list under 'rec_titles'."
        )


def local_agent(name: str, retrieval: Retrieval) -> Agent:
    """Return an agent that needs no chat model.

    Parameters
    ----------
    name
        ``offline``, ``python:module.object`` or the name of an entry point.
    retrieval
        The catalogue that ``offline`` recommends from.

    Raises
    ------
    UsageError
        The name is not known, or what it names cannot be imported or called.
    """
    if name == OFFLINE:
        return OfflineAgent(retrieval)
    if name.startswith(PYTHON):
        return CallableAgent(name, _callable(name, _imported(name.removeprefix(PYTHON))))
    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        raise UsageError(
            f"Unknown agent {name!r}.",
            did_you_mean(name, (OFFLINE, *installed))
            + " Others: openai:MODEL, python:module.object.",
        )
    return CallableAgent(name, _callable(name, installed[name].load()))


def _imported(path: str) -> object:
    module, _, name = path.rpartition(".")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # modules beside the logs, as `python -m` finds them
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--agent {PYTHON}{path}: cannot be imported: {error}.",
            "Expected python:module.object of a module that Python finds from here.",
        ) from error


def _callable(name: str, found: object) -> Callable[..., Any]:
    if not callable(found):
        raise UsageError(f"--agent {name}: is {found!r:.60}, expected something to call.")
    return found
