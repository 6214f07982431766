"""Checks of arguments: one sentence for each invalid one."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Literal

from fastscore.errors import UsageError, did_you_mean
from fastscore.logs.score_input import ScoreInput
from fastscore.run.request import SETTINGS, Request
from fastscore.suites.base import Suite
from fastscore.suites.registry import is_installed, load_suite, suite_names

SuiteName = Literal[
    "group_travel", "guest_simulation", "memory_finance", "preference_shift", "score_dialogue"
]
"""The suites that come with the package. Others are chosen by their options."""

TableName = Literal[
    "dialogues",
    "messages",
    "pairs",
    "places",
    "rejects",
    "segments",
    "shifts",
    "steps",
    "turns",
    "utterances",
]
"""The tables of these suites, and the rejects. A checker refuses other names of `Scorer`."""


def request_of(arguments: Mapping[str, Any], call: str = "score") -> Request:
    """Return what a caller asks for: the arguments by name, of `score` or of less than it."""
    suite, options = _named_suite(arguments["suite"], arguments.get("source"), call)
    logs: dict[str, Any] = {}
    if "source" in arguments:
        given = ScoreInput.of(arguments["source"], arguments.get("format"))
        logs = {"inputs": given.paths, "memory": given if given.is_frame else None}
    options = None if call == "scan" else options
    if getattr(options, "legacy_files", False) and arguments.get("output") is None:
        raise UsageError(
            "legacy_files writes files into a run directory, and no output is named.",
            "Name a run directory as output.",
        )
    settings = {each.name: arguments[each.name] for each in SETTINGS if each.name in arguments}
    return Request(suite=suite, options=options, **logs, **settings)


def check_workers_find(suite: str) -> None:
    """Refuse a suite that only this process declares."""
    if not is_installed(suite):
        raise UsageError(
            f"Suite {suite!r} is declared in this process alone, and workers do not find it.",
            "Install it by an entry point of the group fastscore.suites.",
        )


def unknown_keyword(
    name: str, suite: Any, function: Callable[..., Any], call: str = "score(logs, "
) -> TypeError:
    """Return the error of a keyword that a function lacks, such as an option of the suite."""
    suite = load_suite(suite) if isinstance(suite, str) else suite
    options = suite.options if isinstance(suite, Suite) else type(suite)
    kind = options.__name__
    own = [each for each in inspect.signature(function).parameters if each[0] != "_"]
    known = [each.name for each in fields(options)] if is_dataclass(options) else []
    meant = name if name in known else (*get_close_matches(name, [*own, *known], n=1), "")[0]
    found = f"{call.partition('(')[0]}() has no argument {name!r}. "
    if meant in known and meant not in own:
        return TypeError(
            f"{found * (meant != name)}{meant} is an option of the suite: "
            f"fastscore.{call}fastscore.{kind}({meant}=...))"
        )
    return TypeError(
        f"{found}{did_you_mean(name, own)} Options of the suite are given as "
        f"fastscore.{call}fastscore.{kind}(...))."
    )


def _named_suite(suite: Any, source: Any, call: str) -> tuple[str, Any]:
    """Return a suite's name, and its options if they are given."""
    if _is_suite(suite):
        if isinstance(suite, str | Suite):
            return str(getattr(suite, "name", suite)), {}
        return str(suite.suite), suite
    if _is_suite(source):
        name = repr(source) if isinstance(source, str) else "options"
        raise UsageError(
            "The suite is given first and the logs second.",
            f"The logs come first: fastscore.{call}(logs, {name}).",
        )
    if isinstance(suite, type) and hasattr(suite, "suite"):
        raise UsageError(
            f"{suite.__name__} is a class of options.", f"Make options of it: {suite.__name__}()."
        )
    if isinstance(suite, str):
        raise UsageError(f"Unknown suite {suite!r}.", did_you_mean(suite, suite_names()))
    raise UsageError(
        f"The suite is of type {type(suite).__name__}; expected its name or its options.",
        f"For example: fastscore.{call}(logs, fastscore.ScoreDialogue()).",
    )


def _is_suite(given: Any) -> bool:
    """Return whether an argument is a suite, its name, or options of one."""
    if isinstance(given, str):
        return given in suite_names()
    is_made = is_dataclass(given) and not isinstance(given, type)
    return isinstance(given, Suite) or (is_made and hasattr(given, "suite"))
