"""Transcripts: speakers and texts of the logs of any suite, dialogue by dialogue.

A dialogue is what the suite takes for one, under the id that its tables have. A row that cannot be
read is no part of a transcript; the reader counts it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import orjson
import polars as pl

from fastscore.api.reading import inspect
from fastscore.errors import InputError, UsageError, did_you_mean
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, map_from, map_source
from fastscore.logs.read.rows import join_parts
from fastscore.logs.score_input import ScoreInput
from fastscore.options import build_options
from fastscore.results.dialogues import place_of_log
from fastscore.results.runs import open_run
from fastscore.run.manifest import MANIFEST_NAME
from fastscore.suites.registry import load_suite

Row = dict[str, Any]
Speech = tuple[str, str]
Frames = Mapping[str, pl.DataFrame]
Options = Mapping[str, Any]

_SUFFIXES = re.compile(r"(\.(json|jsonl|ndjson|parquet))?(\.(gz|zst))?$")


@dataclass(frozen=True, slots=True)
class Transcript:
    """A dialogue as a judge reads it.

    Parameters
    ----------
    dialogue, model
        The ids by which a run's dialogue is known; no model where logs name none.
    file, line
        Where it begins.
    turns
        Pairs of a speaker and a text.
    """

    dialogue: str
    model: str | None
    file: str
    line: int
    turns: tuple[Speech, ...]


@dataclass(frozen=True, slots=True)
class Transcripts:
    """The dialogues of logs, in order, and the rejects that are no part of them."""

    dialogues: tuple[Transcript, ...]
    rejects: pl.DataFrame


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs whose dialogues are read.

    Parameters
    ----------
    inputs, suite
        Files, folders and globs, and the suite whose logs they are.
    columns
        Where the suite's columns are, if they have other names.
    options
        The suite's options; they decide which messages are one dialogue.
    """

    inputs: tuple[str, ...]
    suite: str
    columns: ColumnMap = NO_MAP
    options: Options = field(default_factory=dict)


def find_logs(inputs: Sequence[str], suite: str | None = None) -> Logs:
    """Find logs and the suite whose logs they are.

    Parameters
    ----------
    inputs
        Files, folders and globs of logs, or one run directory, whose logs and suite are taken.
    suite
        The suite; None to take the only one that reads the logs.

    Raises
    ------
    InputError
        Nothing is there, or a log of the run is gone.
    UsageError
        The suite is unknown, or several or none read the logs.
    """
    folders = [one for one in inputs if (Path(one) / MANIFEST_NAME).is_file()]
    if folders:
        return _logs_of_run(inputs, suite)
    if suite is None:
        suite = _only_suite(inputs)
    elif suite not in _READERS:
        raise UsageError(f"Logs of {suite!r} cannot be judged.", did_you_mean(suite, _READERS))
    return Logs(tuple(inputs), suite)


def _logs_of_run(inputs: Sequence[str], suite: str | None) -> Logs:
    if len(inputs) > 1:
        raise UsageError("A run is given beside other inputs.", "Name one run, or logs alone.")
    run = open_run(inputs[0])
    found = run.manifest.suite
    if suite not in (None, found):
        raise UsageError(f"{run.path} is a run of {found}, not of {suite}.", "Leave out --suite.")
    if found not in _READERS:
        raise UsageError(f"Logs of {found!r} cannot be judged.", did_you_mean(found, _READERS))
    names = tuple(place_of_log(about) for about in run.manifest.inputs)
    return Logs(names, found, map_from(run.manifest.column_map), run.manifest.options)


def _only_suite(inputs: Sequence[str]) -> str:
    """Return the one suite that reads these logs as they are."""
    shown = ", ".join(map(str, inputs))
    fits = [
        {fit.suite for fit in file.fits if not fit.flags and fit.suite in _READERS}
        for file in inspect(*inputs).files
    ]
    found = sorted(set.intersection(*fits)) if fits else []
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{shown}: can be logs of {' or '.join(found)}.", "Name the suite with --suite."
        )
    raise UsageError(
        f"{shown}: no suite reads all of these logs as they are.",
        f"Name the suite with --suite, or look with `fastscore inspect {shown}`.",
    )


def read_transcripts(logs: Logs) -> Transcripts:
    """Read the dialogues of logs.

    Raises
    ------
    InputError
        Nothing can be read.
    """
    source = map_source(load_suite(logs.suite).source, logs.columns)
    # what files lack for metrics is of no concern
    given, _ = ScoreInput.of(list(logs.inputs)).logs(source, logs.suite)
    read = join_parts(given.read(source), source)
    found = _READERS[logs.suite](read.frame, logs.options)
    dialogues = tuple(each for each in found if each.turns)
    if not dialogues:
        shown = ", ".join(map(str, logs.inputs))
        raise InputError(f"{shown}: no dialogue of {logs.suite} says anything.")
    return Transcripts(dialogues, read.rejects)


def _frames(rows: pl.DataFrame, suite: str, options: Options) -> Frames:
    """Return what a suite makes of rows: its dialogues, with their ids, and their turns."""
    declared = load_suite(suite)
    return declared.read(rows, build_options(declared.options, options)).frames


def _spoken(turns: Iterable[Speech]) -> tuple[Speech, ...]:
    return tuple((speaker, text) for speaker, text in turns if text.strip())


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


def _of_conversations(rows: pl.DataFrame, options: Options) -> Iterator[Transcript]:
    for row in rows.iter_rows(named=True):
        turns = (
            (_text(turn.get("speaker")), _text(turn.get("text")))
            for turn in _turns(row["conversation"])
        )
        dialogue = row["session_id"]
        if dialogue is None:
            dialogue = _SUFFIXES.sub("", PurePath(row["file"]).name)
        yield Transcript(dialogue, row["model_name"], row["file"], row["line"], _spoken(turns))


def _of_traces(rows: pl.DataFrame, options: Options) -> Iterator[Transcript]:
    for row in rows.iter_rows(named=True):
        turns: list[Speech] = []
        for turn in _turns(row["turns"]):
            if turn.get("role"):
                turns.append((_text(turn["role"]), _text(turn.get("text"))))
            else:
                turns.append(("USER", _text(turn.get("user_text"))))
                turns.append(("ASSISTANT", _text(turn.get("pred_assistant_text"))))
        dialogue = row["dialog_id"]
        if dialogue is None:
            dialogue = f"{row['file']}:{row['line']}"
        yield Transcript(dialogue, None, row["file"], row["line"], _spoken(turns))


def _of_travellers(rows: pl.DataFrame, options: Options) -> Iterator[Transcript]:
    frames = _frames(rows, "group_travel", options)
    speaker = (
        pl.when("is_system")
        .then(pl.lit("SYSTEM"))
        .when(pl.col("is_everyone") | (pl.col("member") == ""))
        .then(pl.lit("everyone"))
        .otherwise("member")
    )
    turns = _gather_speech(frames["turns"].select("dialogue_row", speaker, text="utterance"))
    for row, dialogue in enumerate(frames["dialogues"].iter_rows(named=True)):
        place = (dialogue["file"], dialogue["line"])
        yield Transcript(dialogue["dialogue"], None, *place, _spoken(turns.get(row, ())))


def _gather_speech(turns: pl.DataFrame) -> dict[int, list[Speech]]:
    """Gather speakers and texts by the number of their dialogue."""
    found: dict[int, list[Speech]] = {}
    for row, speaker, text in turns.iter_rows():
        found.setdefault(row, []).append((speaker or "", text or ""))
    return found


def _of_guests(rows: pl.DataFrame, options: Options) -> Iterator[Transcript]:
    ids = {
        (file, line): dialogue
        for file, line, dialogue in _frames(rows, "guest_simulation", options)["conversations"]
        .select("file", "line", "dialogue")
        .iter_rows()
    }
    found: dict[tuple[Any, ...], tuple[Row, list[Speech]]] = {}
    for row in rows.iter_rows(named=True):
        key = (row["file"], row["conversation_id"], row["experiment_level"])
        _, turns = found.setdefault(key, (row, []))
        if row["name"] != "test_case_info":
            turns.append((_text(row["name"] or row["role"]), _text(row["content"])))
    for first, turns in found.values():
        place = (first["file"], first["line"])
        if place in ids:
            yield Transcript(ids[place], None, *place, _spoken(turns))


def _of_miners(rows: pl.DataFrame, options: Options) -> Iterator[Transcript]:
    frames = _frames(rows, "score_dialogue", options)
    utterances = frames["utterances"].with_row_index("utterance_row")
    of_utterance = pl.col("utterance_index").cast(pl.String)
    predicted = (
        frames["steps"]
        .join(utterances.cast({"utterance_row": pl.Int64}), on="utterance_row", how="left")
        .select(
            "dialogue_row",
            "utterance_index",
            "step",
            speaker=pl.format("PREDICTION {} OF {}", "step", of_utterance),
            text="prediction",
            line="line",
        )
    )
    spoken = utterances.select(
        "dialogue_row",
        "utterance_index",
        pl.lit(None, dtype=pl.Int64).alias("step"),
        speaker=pl.format("UTTERANCE {}", of_utterance),
        text="ground_truth",
        line="line",
    )
    turns = pl.concat([predicted, spoken]).sort(
        "dialogue_row", "utterance_index", "step", nulls_last=True
    )
    lines = dict(turns.group_by("dialogue_row").agg(pl.col("line").min()).iter_rows())
    speech = _gather_speech(turns.select("dialogue_row", "speaker", "text"))
    for row, dialogue in enumerate(frames["dialogues"].iter_rows(named=True)):
        if row in speech:
            yield Transcript(
                dialogue["dialogue"], None, dialogue["file"], lines[row], _spoken(speech[row])
            )


_READERS: dict[str, Callable[[pl.DataFrame, Options], Iterator[Transcript]]] = {
    "preference_shift": _of_conversations,
    "memory_finance": _of_traces,
    "group_travel": _of_travellers,
    "guest_simulation": _of_guests,
    "score_dialogue": _of_miners,
}
