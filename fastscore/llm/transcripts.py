"""Transcripts: what was said by whom in the logs of any suite, dialogue by dialogue.

A row that cannot be read is no part of a transcript; the reader counts it.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import orjson
import polars as pl

from fastscore.api import scan
from fastscore.errors import InputError, UsageError, nearest

Row = dict[str, Any]
Said = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Transcript:
    """A dialogue as a judge reads it.

    Parameters
    ----------
    dialogue, model
        The ids by which a run's dialogue is known; no model where logs name none.
    file, line
        Where it begins.
    said
        Pairs of a speaker and a text.
    """

    dialogue: str
    model: str | None
    file: str
    line: int
    said: tuple[Said, ...]


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The dialogues of logs, in order, and the rejects that are no part of them."""

    dialogues: tuple[Transcript, ...]
    rejects: pl.DataFrame


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where a suite's logs say what: the key's columns, the model's, and what a row says."""

    key: tuple[str, ...]
    model: str | None
    said: Callable[[Row], Iterator[Said]]
    row_is_dialogue: bool = False


def read_transcripts(inputs: Sequence[str], suite: str) -> Transcripts:
    """Read the dialogues of a suite's logs.

    Parameters
    ----------
    inputs
        Files, folders and globs.
    suite
        Whose logs they are.

    Raises
    ------
    InputError
        Nothing can be read.
    UsageError
        The suite is not known here.
    """
    if suite not in _LAYOUTS:
        raise UsageError(f"Logs of {suite!r} cannot be judged.", nearest(suite, _LAYOUTS))
    layout = _LAYOUTS[suite]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rejects are collected below
        rows = scan(list(inputs), suite).collect()
    rejects = scan(list(inputs), suite, rejects=True).collect()
    found: dict[tuple[Any, ...], list[Any]] = {}
    for number, row in enumerate(rows.iter_rows(named=True)):
        key = _key(row, layout, number)
        begun = found.setdefault(key, [row, []])
        begun[1] += [(speaker, text) for speaker, text in layout.said(row) if text.strip()]
    dialogues = tuple(
        Transcript(_name(row, layout), _model(row, layout), row["file"], row["line"], tuple(said))
        for row, said in found.values()
        if said
    )
    if not dialogues:
        raise InputError(f"{', '.join(map(str, inputs))}: no dialogue of {suite} says anything.")
    return Transcripts(dialogues, rejects)


def _key(row: Row, layout: _Layout, number: int) -> tuple[Any, ...]:
    if layout.row_is_dialogue:
        return (number,)
    return (row["file"], *(row[name] for name in layout.key))


def _name(row: Row, layout: _Layout) -> str:
    """Return the dialogue's id as the suite's tables have it: its key, else its file's stem."""
    value = row[layout.key[0]]
    if value is not None:
        return str(value)
    return PurePath(row["file"]).name.split(".")[0]


def _model(row: Row, layout: _Layout) -> str | None:
    return None if layout.model is None or row[layout.model] is None else str(row[layout.model])


def _turns(cell: str | None) -> Iterator[Row]:
    """Yield the objects of a JSON array; none where it is no array."""
    try:
        turns = orjson.loads(cell or "null")
    except orjson.JSONDecodeError:
        return
    for turn in turns if isinstance(turns, list) else ():
        if isinstance(turn, dict):
            yield turn


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _of_conversation(row: Row) -> Iterator[Said]:
    for turn in _turns(row["conversation"]):
        yield _text(turn.get("speaker")), _text(turn.get("text"))


def _of_traces(row: Row) -> Iterator[Said]:
    for turn in _turns(row["turns"]):
        if turn.get("role"):
            yield _text(turn["role"]), _text(turn.get("text"))
        else:
            yield "USER", _text(turn.get("user_text"))
            yield "ASSISTANT", _text(turn.get("pred_assistant_text"))


def _of_travellers(row: Row) -> Iterator[Said]:
    for turn in (row, *_turns(row["turns"])):
        yield _text(turn.get("speaker")), _text(turn.get("utterance") or turn.get("text"))


def _of_guests(row: Row) -> Iterator[Said]:
    if row["name"] != "test_case_info":
        yield _text(row["name"] or row["role"]), _text(row["content"])


def _of_miners(row: Row) -> Iterator[Said]:
    if row["event"] == "predicted":
        yield f"PREDICTION {row['step']} OF {row['utterance_index']}", _text(row["prediction"])
    elif row["event"] == "utterance_complete":
        yield f"UTTERANCE {row['utterance_index']}", _text(row["ground_truth"])


_LAYOUTS = {
    "preference_shift": _Layout(("session_id",), "model_name", _of_conversation, True),
    "memory_finance": _Layout(("dialog_id",), None, _of_traces, True),
    "group_travel": _Layout(("dialogue_id",), None, _of_travellers),
    "guest_simulation": _Layout(("conversation_id", "experiment_level"), None, _of_guests),
    "score_dialogue": _Layout(("dialogue_uid",), None, _of_miners),
}
