"""Checks of arguments: one sentence for each invalid one."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal

from fastscore.errors import UsageError, did_you_mean
from fastscore.options import option_values
from fastscore.run.context import NO_EMBEDDER
from fastscore.suites.base import Suite
from fastscore.suites.registry import suite_names

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


def named_options(
    suite: Any, source: Any = None, call: str = "score"
) -> tuple[str, dict[str, Any]]:
    """Return a suite's name and its options by name."""
    if _is_suite(suite):
        if isinstance(suite, str | Suite):
            return str(getattr(suite, "name", suite)), {}
        return str(suite.suite), option_values(suite)
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
    if isinstance(given, Suite):
        return True
    return is_dataclass(given) and not isinstance(given, type) and hasattr(given, "suite")


def check_mapping(name: str, value: object, example: Mapping[str, Any]) -> None:
    """Refuse a value that is not a mapping. None is accepted."""
    if value is not None and not isinstance(value, Mapping):
        raise UsageError(f"{name} is of type {type(value).__name__}, expected a dict: {example}.")


def given_embedder(embedder: Any, precision: str, device: str) -> dict[str, Any]:
    """Return what a run is asked for: the embedder, its precision and its device."""
    given = {"embedder": embedder, "precision": precision, "device": device}
    if embedder is None or (isinstance(embedder, str) and embedder == NO_EMBEDDER):
        return given | {"embedder": None}
    if isinstance(embedder, str | os.PathLike):
        return given | {"embedder": os.fspath(embedder)}
    from fastscore.vectors.embedder import Embedder, FunctionEmbedder

    if isinstance(embedder, Embedder):
        folder = str(embedder.exported.folder.absolute())
        return {"embedder": folder, "precision": embedder.precision, "device": embedder.device}
    if callable(embedder) and not isinstance(embedder, type) and not hasattr(embedder, "encode"):
        return {"embedder": FunctionEmbedder(embedder), "precision": "fp32", "device": "cpu"}
    kind = type(embedder).__name__
    raise UsageError(
        f"The embedder is of type {kind}; expected the name or folder of a model, a "
        "fastscore.Embedder, or a function from a list of texts to a matrix.",
        f"Pass the method: embedder=model.encode, of your {kind}."
        if hasattr(embedder, "encode")
        else None,
    )


def check_number(name: str, value: object) -> None:
    """Refuse a value that is not an integer of at least 1. None is accepted."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} is {value!r}, expected an integer of at least 1.")


def check_list(name: str, value: object) -> None:
    """Refuse a value that is not a sequence, and a text, which is a sequence of characters."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise UsageError(f"{name} is of type {type(value).__name__}, expected a list.")


def check_paths(call: str, paths: Sequence[object]) -> list[str]:
    """Return paths given as a list."""
    for path in paths:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(
                f"A log is of type {type(path).__name__}; expected files, folders and globs.",
                f"Give each as an argument of its own: fastscore.{call}(*logs).",
            )
    return [os.fspath(path) for path in paths if isinstance(path, str | os.PathLike)]
