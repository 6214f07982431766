"""Logs as frames: conversations, their turns in pairs, shift points and gold constraints.

A turn of the suite is a pair: a USER turn at an even place of the conversation and the SYSTEM turn
behind it, as published. Turns that pair with nothing are listed; a conversation with a value that
cannot be used is a reject as a whole, and the others are read on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels.jsonl import ARRAY, INTEGER, OBJECT

from fastscore.suites.base import PARTIAL_REJECTS, REJECT_SCHEMA, ROW_SCHEMA, Events
from fastscore.suites.columns import first_of_group, list_column, place_in_group
from fastscore.suites.json_values import (
    JsonValues,
    Problems,
    column_values,
    elements,
    expect,
    expect_texts,
    members,
    python_texts,
    raw_texts,
    texts,
    truths,
    whole_numbers,
)
from fastscore.suites.preference_shift.options import PLOT, PreferenceShiftOptions

Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

USER, SYSTEM = "USER", "SYSTEM"
_ALIASES = {"title": "name", "plot_keywords": PLOT}
_SUFFIXES = r"(\.(json|jsonl|ndjson|parquet))?(\.(gz|zst))?$"


def read_logs(raw: pl.DataFrame, options: PreferenceShiftOptions) -> Events:
    """Read conversations.

    Parameters
    ----------
    raw
        One conversation a row: `ROW_SCHEMA`, then the columns of the suite's source.
    options
        Whether turns of one speaker are joined, and which fields constraints may name.

    Returns
    -------
    Events
        ``dialogues`` (one a conversation), ``turns`` (its pairs, with ``dialogue_row``),
        ``shifts`` (sorted points, with ``dialogue_row``) and ``gold`` (constraints, with
        ``turn_row``, ``field`` and ``text``), in input order.
    """
    read = _read(raw, options)
    if not read.problems.by_dialogue:
        return _events(read, [read.rejects])
    whole = _problem_rejects(raw, read.problems)
    sound = np.setdiff1d(np.arange(raw.height), list(read.problems.by_dialogue))
    read = _read(raw[sound], options)
    return _events(read, [whole, read.rejects])


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read, what could not be, and the parts that were left aside."""

    frames: dict[str, pl.DataFrame]
    problems: Problems
    rejects: pl.DataFrame


def _events(read: _Read, rejects: Sequence[pl.DataFrame]) -> Events:
    frames = read.frames
    counts = {
        "dialogues": frames["dialogues"].height,
        "turns": frames["turns"].height,
        "unpaired_turns": int(frames["dialogues"]["n_unpaired"].sum()),
        PARTIAL_REJECTS: read.rejects.height,
    }
    return Events(frames, pl.concat(rejects), counts)


def _read(raw: pl.DataFrame, options: PreferenceShiftOptions) -> _Read:
    problems = Problems()
    arrays = column_values(raw["conversation"])
    problems.note(arrays, np.flatnonzero(arrays.is_missing), "an array of turns", "missing_field")
    problems.note(arrays, np.flatnonzero(arrays.tags != ARRAY), "an array of turns")
    turn, dialogue = elements(arrays)
    problems.note(turn, np.flatnonzero(turn.tags != OBJECT), "an object that holds a turn")
    spoken = members(turn, ("speaker", "text", "user_meta", "meta"), problems)
    place = place_in_group(dialogue)
    said = _Said(
        dialogue=dialogue,
        place=place,
        speaker=expect_texts(spoken["speaker"], problems, null=None),
        text=expect_texts(spoken["text"], problems, null=""),
        meta=_metadata(spoken, problems),
        first=np.arange(len(turn)),
    )
    flags = members(said.meta, ("shift_event", "is_shift"), problems)
    shifts = truths(flags["shift_event"]) | truths(flags["is_shift"])
    of_turn = np.arange(len(turn))
    if options.merge_speakers:
        said, of_turn = _merged(said)
        shifts = np.logical_or.reduceat(shifts, said.first) if len(said.first) else shifts
    user_rows, system_rows = _pairs(said, drop_leading=options.merge_speakers)

    paired = np.zeros(len(said.dialogue), np.bool_)
    paired[user_rows] = paired[system_rows] = True
    unpaired = np.flatnonzero(~paired[of_turn])
    owner = said.dialogue[user_rows]
    meta = said.meta.take(user_rows)
    events, metadata, ignored = _shift_events(raw["shift_events"], problems)
    by_user = _flagged_users(said, shifts)
    speaks_user = (said.speaker == USER).fill_null(False).to_numpy()
    metadata[said.dialogue[speaks_user & (said.meta.tags == OBJECT)]] = True
    turns = pl.DataFrame(
        {
            "dialogue_row": owner,
            "turn": 1 + place_in_group(owner),
            "user_text": said.text.gather(user_rows),
            "system_text": said.text.gather(system_rows),
            "user_meta": raw_texts(meta),
        }
    )
    gold, has_gold = _read_gold(meta, options, problems)
    frames = {
        "dialogues": _dialogues(raw).with_columns(
            pl.Series("has_shift_metadata", metadata),
            pl.Series("n_unpaired", np.bincount(dialogue[unpaired], minlength=raw.height)),
        ),
        "turns": turns.with_columns(pl.Series("has_gold", has_gold)),
        "shifts": pl.concat([events, by_user]).unique().sort("dialogue_row", "turn"),
        "gold": gold,
    }
    rejects = pl.concat([_unpaired_rejects(raw, dialogue, place, spoken, unpaired), ignored(raw)])
    return _Read(frames, problems, rejects)


@dataclass(frozen=True, slots=True)
class _Said:
    """Turns in input order: of which conversation, at which place, by whom, what.

    ``first`` is the row of the log's first turn in each, before speakers were merged.
    """

    dialogue: Indices
    place: Indices
    speaker: pl.Series
    text: pl.Series
    meta: JsonValues
    first: Indices


def _metadata(spoken: Mapping[str, JsonValues], problems: Problems) -> JsonValues:
    """Return each turn's user_meta, or its meta where there is none."""
    own = expect(spoken["user_meta"], OBJECT, "an object or null", problems)
    other = expect(spoken["meta"], OBJECT, "an object or null", problems)
    instead = (own.tags != OBJECT) & (other.tags == OBJECT)
    if not instead.any():
        return own
    return replace(
        own,
        tags=np.where(instead, other.tags, own.tags),
        start=np.where(instead, other.start, own.start),
        end=np.where(instead, other.end, own.end),
        path=lambda row: other.path(row) if instead[row] else own.path(row),
    )


def _merged(said: _Said) -> tuple[_Said, Indices]:
    """Join consecutive turns of one speaker; return them and the run of each turn.

    A run has its texts on lines of their own, and the last metadata in it.
    """
    if not len(said.dialogue):
        return said, said.first
    begins = np.ones(len(said.dialogue), np.bool_)
    changes = said.speaker.ne_missing(said.speaker.shift()).to_numpy()
    begins[1:] = changes[1:] | (said.dialogue[1:] != said.dialogue[:-1])
    first = np.flatnonzero(begins)
    run = np.cumsum(begins) - 1
    last_meta = np.maximum.accumulate(np.where(said.meta.tags == OBJECT, said.first, -1))
    last_meta = last_meta[np.append(first[1:], len(begins)) - 1]
    meta = said.meta.take(np.where(last_meta >= first, last_meta, first))
    dialogue = said.dialogue[first]
    merged = _Said(
        dialogue=dialogue,
        place=place_in_group(dialogue),
        speaker=said.speaker.gather(first),
        text=list_column(said.text, np.append(first, len(begins))).list.join("\n"),
        meta=meta.where(last_meta >= first),
        first=first,
    )
    return merged, run


def _pairs(said: _Said, *, drop_leading: bool) -> tuple[Indices, Indices]:
    """Return the rows of USER turns at even places, and of the SYSTEM turns behind them."""
    user = (said.speaker == USER).fill_null(False).to_numpy()
    system = (said.speaker == SYSTEM).fill_null(False).to_numpy()
    place = said.place
    if drop_leading:
        led = system & (place == 0)
        place = place - led[first_of_group(said.dialogue)]
    found = np.flatnonzero(
        user[:-1] & system[1:] & (said.dialogue[:-1] == said.dialogue[1:]) & (place[:-1] % 2 == 0)
    )
    return found, found + 1


def _flagged_users(said: _Said, shifts: Mask) -> pl.DataFrame:
    """Return the ordinals of user turns whose metadata says that the preference shifts."""
    user = (said.speaker == USER).fill_null(False).to_numpy()
    rows = np.flatnonzero(user)
    owner = said.dialogue[rows]
    ordinal = 1 + place_in_group(owner)
    flagged = shifts[rows]
    return pl.DataFrame({"dialogue_row": owner[flagged], "turn": ordinal[flagged]})


def _shift_events(column: pl.Series, problems: Problems) -> tuple[pl.DataFrame, Mask, "_Ignored"]:
    """Read top-level shift events: their turns, whose logs have any, and those without a turn."""
    arrays = column_values(column)
    problems.note(
        arrays,
        np.flatnonzero((arrays.tags != ARRAY) & ~arrays.is_missing),
        "an array of shift events or null",
    )
    event, owner = elements(arrays)
    problems.note(event, np.flatnonzero(event.tags != OBJECT), "an object that holds a shift event")
    turn = members(event, ("turn",), problems)["turn"]
    number = whole_numbers(turn.where(turn.tags == INTEGER), problems)
    usable = number >= 1
    frame = pl.DataFrame({"dialogue_row": owner[usable], "turn": number[usable]})
    return frame, arrays.tags == ARRAY, _Ignored(turn, owner, np.flatnonzero(~usable))


@dataclass(frozen=True, slots=True)
class _Ignored:
    """Shift events that name no turn: as published they count for nothing, but are listed."""

    turn: JsonValues
    owner: Indices
    rows: Indices

    def __call__(self, raw: pl.DataFrame) -> pl.DataFrame:
        rows = self.rows.tolist()
        return _rejects(
            raw,
            self.owner[self.rows],
            field=[self.turn.path(row) for row in rows],
            reason="out_of_range",
            found=[self.turn.describe(row) for row in rows],
            expected="the number of a user turn, from 1",
        )


def _read_gold(
    meta: JsonValues, options: PreferenceShiftOptions, problems: Problems
) -> tuple[pl.DataFrame, Mask]:
    """Read the constraints that user turns carry, a row a value, and which turns carry any."""
    constraints = expect(
        members(meta, ("constraints",), problems)["constraints"],
        OBJECT,
        "an object of values by field, or null",
        problems,
    )
    fields = (*options.field_names, *((PLOT,) if options.plot_keywords else ()))
    keys = (*fields, *(alias for alias, name in _ALIASES.items() if name in fields))
    frames = [_gold_frame(np.zeros(0, np.int64), "", pl.Series("", [], dtype=pl.String))]
    for key, values in members(constraints, keys, problems).items():
        name = _ALIASES.get(key, key)
        array = values.tags == ARRAY
        listed, owner = elements(values)
        alone = np.flatnonzero(~array & ~values.is_missing)
        frames += [
            _gold_frame(owner, name, _value_texts(listed, problems)),
            _gold_frame(alone, name, _value_texts(values.take(alone), problems)),
        ]
    return pl.concat(frames).sort("turn_row", maintain_order=True), constraints.tags == OBJECT


def _value_texts(values: JsonValues, problems: Problems) -> pl.Series:
    nested = np.flatnonzero((values.tags == ARRAY) | (values.tags == OBJECT))
    problems.note(values, nested, "a text or a number")
    return python_texts(values, problems, falsy_is_empty=True)


def _gold_frame(turn_row: Indices, name: str, text: pl.Series) -> pl.DataFrame:
    frame = pl.DataFrame({"turn_row": turn_row, "text": text})
    return frame.select("turn_row", pl.lit(name).alias("field"), "text").filter(
        pl.col("text").str.strip_chars() != ""
    )


def _dialogues(raw: pl.DataFrame) -> pl.DataFrame:
    stem = pl.col("file").str.split("/").list.last().str.replace(_SUFFIXES, "")
    return raw.select(
        "file",
        "line",
        pl.coalesce("session_id", stem).alias("dialogue"),
        pl.col("model_name").alias("model"),
        "true_genre",
        "judge",
    )


def _unpaired_rejects(
    raw: pl.DataFrame,
    dialogue: Indices,
    place: Indices,
    spoken: Mapping[str, JsonValues],
    unpaired: Indices,
) -> pl.DataFrame:
    speaker = texts(spoken["speaker"].take(unpaired), Problems())
    field = pl.DataFrame({"place": place[unpaired]}).select(pl.format("conversation[{}]", "place"))
    found = pl.DataFrame({"speaker": speaker}).select(
        pl.format("a turn of {}", pl.col("speaker").fill_null("nobody"))
    )
    return _rejects(
        raw,
        dialogue[unpaired],
        field=field.to_series(),
        reason="unpaired_turn",
        found=found.to_series(),
        expected="USER at an even place (from 0) with SYSTEM behind it",
    )


def _problem_rejects(raw: pl.DataFrame, problems: Problems) -> pl.DataFrame:
    rows = sorted(problems.by_dialogue)
    noted = [problems.by_dialogue[row] for row in rows]
    return _rejects(
        raw,
        np.array(rows, np.int64),
        field=[problem.field for problem in noted],
        reason=[problem.reason for problem in noted],
        found=[problem.found for problem in noted],
        expected=[problem.expected for problem in noted],
    )


def _rejects(
    raw: pl.DataFrame, rows: Indices, **columns: str | Sequence[str] | pl.Series
) -> pl.DataFrame:
    """Make rejects of these conversations; a text stands in every row."""
    places = raw.select(*ROW_SCHEMA)[rows]
    constant = [pl.lit(v).alias(k) for k, v in columns.items() if isinstance(v, str)]
    varying = [
        pl.Series(k, v, dtype=pl.String) for k, v in columns.items() if not isinstance(v, str)
    ]
    return places.with_columns(
        *varying, *constant, pl.lit(None, dtype=pl.String).alias("raw")
    ).select(*(pl.col(name).cast(dtype) for name, dtype in REJECT_SCHEMA.items()))
