"""Logs as frames: conversations, their turns in pairs, shift points and gold constraints.

A turn of the suite is a pair: a USER turn at an even place of the conversation and the SYSTEM turn
after it, as published. Turns that pair with nothing are listed; a conversation with a value that
cannot be used is rejected. All others are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, INTEGER, OBJECT

from fastscore.suites.base import Events, Nulls
from fastscore.suites.columns import list_column, unknown_words
from fastscore.suites.declarations import (
    PAIRED_TURNS,
    PARTIAL_REJECTS,
    REJECT_SCHEMA,
    ROW_SCHEMA,
    UNPAIRED_TURNS,
)
from fastscore.suites.grouping import first_of_group, place_in_group
from fastscore.suites.identity import IDENTITY, identify
from fastscore.suites.json_values import (
    JsonValues,
    Problems,
    booleans,
    column_values,
    elements,
    expect,
    expect_texts,
    members,
    python_texts,
    raw_texts,
    whole_numbers,
)
from fastscore.suites.preference_shift.catalogue import load_catalogue
from fastscore.suites.preference_shift.concepts import concepts_of, joined_topics
from fastscore.suites.preference_shift.options import PLOT, PreferenceShift
from fastscore.suites.preference_shift.schema import SOURCE, SYSTEM, USER

_SPEAKER = next(
    item for column in SOURCE.columns for item in column.items if item.name == "speaker"
)
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_ALIASES = {"title": "name", "plot_keywords": PLOT}
_SUFFIXES = r"(\.(json|jsonl|ndjson|parquet))?(\.(gz|zst))?$"


@dataclass(frozen=True, slots=True)
class Turns:
    """Turns in input order.

    Of which conversation, at which place in it, by whom, what (the empty text where there is
    none) and whether there is a text, with which metadata, and whether these say that the
    preference shifts.
    """

    dialogue: Indices
    place: Indices
    speaker: pl.Series
    text: pl.Series
    has_text: Mask
    meta: JsonValues
    shifts: Mask

    def __len__(self) -> int:
        return len(self.dialogue)

    def by(self, speaker: str) -> Mask:
        """Return which turns are this speaker's."""
        spoken: Mask = (self.speaker == speaker).fill_null(False).to_numpy()
        return spoken


def read_turns(conversations: pl.Series, problems: Problems) -> Turns:
    """Read the arrays of turns, one a conversation; note what cannot be used."""
    arrays = column_values(conversations)
    problems.note(arrays, np.flatnonzero(arrays.is_missing), "an array of turns", "missing_field")
    problems.note(arrays, np.flatnonzero(arrays.tags != ARRAY), "an array of turns")
    turn, dialogue = elements(arrays)
    problems.note(turn, np.flatnonzero(turn.tags != OBJECT), "an object that holds a turn")
    spoken = members(turn, ("speaker", "text", "user_meta", "meta"), problems)
    meta = _metadata(spoken, problems)
    flags = members(meta, ("shift_event", "is_shift"), problems)
    return Turns(
        dialogue=dialogue,
        place=place_in_group(dialogue),
        speaker=expect_texts(spoken["speaker"], problems, or_empty=False),
        text=expect_texts(spoken["text"], problems, or_empty=True),
        has_text=~spoken["text"].is_missing,
        meta=meta,
        shifts=booleans(flags["shift_event"], problems) | booleans(flags["is_shift"], problems),
    )


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


def merge_speakers(messages: Turns) -> tuple[Turns, Indices]:
    """Join consecutive turns of one speaker; return them and which each turn is in.

    What is joined has its texts on lines of their own, the last metadata, and any turn's shift.
    """
    if not len(messages):
        return messages, np.arange(0)
    begins = np.ones(len(messages), np.bool_)
    changes = messages.speaker.ne_missing(messages.speaker.shift()).to_numpy()
    begins[1:] = changes[1:] | (messages.dialogue[1:] != messages.dialogue[:-1])
    first = np.flatnonzero(begins)
    bounds = np.append(first, len(messages))
    last_meta = np.maximum.accumulate(
        np.where(messages.meta.tags == OBJECT, np.arange(len(messages)), -1)
    )
    last_meta = last_meta[bounds[1:] - 1]
    dialogue = messages.dialogue[first]
    merged = Turns(
        dialogue=dialogue,
        place=place_in_group(dialogue),
        speaker=messages.speaker.gather(first),
        text=list_column(messages.text, bounds).list.join("\n"),
        has_text=np.logical_or.reduceat(messages.has_text, first),
        meta=messages.meta.take(np.maximum(last_meta, first)).where(last_meta >= first),
        shifts=np.logical_or.reduceat(messages.shifts, first),
    )
    return merged, np.cumsum(begins) - 1


def pair_turns(messages: Turns, *, drop_leading: bool) -> tuple[Indices, Indices]:
    """Return the rows of USER turns at even places, and of the SYSTEM turns after them."""
    user, system = messages.by(USER), messages.by(SYSTEM)
    place = messages.place
    if drop_leading:
        led = system & (place == 0)
        place = place - led[first_of_group(messages.dialogue)]
    found = np.flatnonzero(
        user[:-1]
        & system[1:]
        & (messages.dialogue[:-1] == messages.dialogue[1:])
        & (place[:-1] % 2 == 0)
    )
    return found, found + 1


def read_events(raw: pl.DataFrame, options: PreferenceShift) -> Events:
    """Read conversations."""
    read = _read(raw, options)
    if not read.problems.by_dialogue:
        return _events(read, [read.rejects], options)
    rejected = read.problems.rejects(raw)
    sound = np.setdiff1d(np.arange(raw.height), list(read.problems.by_dialogue))
    read = _read(raw[sound], options)
    return _events(read, [rejected, read.rejects], options)


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read, what could not be, the parts that were left aside, and what is null.

    Of a conversation no turn of which pairs, one of the parts left aside weighs as a reject.
    """

    frames: dict[str, pl.DataFrame]
    problems: Problems
    rejects: pl.DataFrame
    nulls: dict[str, Nulls]
    n_without_pair: int


def _events(read: _Read, rejects: Sequence[pl.DataFrame], options: PreferenceShift) -> Events:
    frames = read.frames
    counts = {
        "dialogues": frames["dialogues"].height,
        PAIRED_TURNS: frames["turns"].height,
        UNPAIRED_TURNS: int(frames["dialogues"]["n_unpaired"].sum()),
        PARTIAL_REJECTS: read.rejects.height - read.n_without_pair,
    }
    as_empty = options.zero_without_turns
    return Events(
        frames,
        pl.concat(rejects),
        counts,
        read.nulls,
        nulls_are_empty=as_empty,
        n_units=frames["turns"].height,
    )


def _read(raw: pl.DataFrame, options: PreferenceShift) -> _Read:
    problems = Problems()
    turns = read_turns(raw["conversation"], problems)
    messages, merged = (
        merge_speakers(turns) if options.merge_speakers else (turns, np.arange(len(turns)))
    )
    user, system = pair_turns(messages, drop_leading=options.merge_speakers)
    paired = np.zeros(len(messages), np.bool_)
    paired[user] = paired[system] = True
    unpaired = np.flatnonzero(~paired[merged])

    events, metadata, ignored = _read_shift_events(raw["shift_events"], problems)
    if options.merge_speakers:
        events = _renumber_shift_events(events, turns, messages, merged)
    metadata[messages.dialogue[messages.by(USER) & (messages.meta.tags == OBJECT)]] = True
    gold, has_gold = _read_gold(messages.meta.take(user), options, problems)
    lost = np.bincount(turns.dialogue[unpaired], minlength=raw.height)
    has_pair = np.bincount(messages.dialogue[user], minlength=raw.height) > 0
    frames = {
        "dialogues": name_dialogues(raw).with_columns(
            pl.Series("has_shift_metadata", metadata),
            pl.Series("n_unpaired", lost),
            dialogue_row=pl.int_range(raw.height),
        ),
        "turns": _paired(messages, user, system).with_columns(
            pl.Series("has_gold", has_gold),
            pl.Series("has_user_text", messages.has_text[user] | options.zero_without_turns),
            pl.Series("has_system_text", messages.has_text[system] | options.zero_without_turns),
        ),
        "shifts": pl.concat([events, _flagged(messages)]).unique().sort("dialogue_row", "turn"),
        "gold": gold,
    }
    return _Read(
        frames,
        problems,
        pl.concat([_unpaired_rejects(raw, turns, unpaired), ignored(raw)]),
        _nulls(turns),
        int(np.count_nonzero((lost > 0) & ~has_pair)),
    )


def _nulls(turns: Turns) -> dict[str, Nulls]:
    """Count what turns lack; metadata are asked of the user's."""
    user = turns.by(USER)
    words = unknown_words(turns.speaker, _SPEAKER.vocabulary)
    return {
        "conversation[].speaker": Nulls(turns.speaker.null_count(), len(turns), words),
        "conversation[].text": Nulls(int((~turns.has_text).sum()), len(turns)),
        "conversation[].user_meta": Nulls(
            int((user & (turns.meta.tags != OBJECT)).sum()), int(user.sum())
        ),
    }


def _renumber_shift_events(
    events: pl.DataFrame, turns: Turns, messages: Turns, merged: Indices
) -> pl.DataFrame:
    """Renumber shift events, which count USER turns, by merged USER turns.

    Points beyond the last turn stay as far beyond the last that is merged.
    """
    of_turn, of_merged = np.flatnonzero(turns.by(USER)), np.flatnonzero(messages.by(USER))
    owner = events["dialogue_row"].to_numpy()
    ordinal = np.zeros(len(messages), np.int64)
    ordinal[of_merged] = 1 + place_in_group(messages.dialogue[of_merged])
    first, after = (np.searchsorted(turns.dialogue[of_turn], owner, side) for side in _SIDES)
    begin, end = (np.searchsorted(messages.dialogue[of_merged], owner, side) for side in _SIDES)
    turn = events["turn"].to_numpy()
    beyond = turn - (after - first)
    inside = beyond <= 0
    moved = end - begin + beyond
    moved[inside] = ordinal[merged[of_turn[first[inside] + turn[inside] - 1]]]
    return events.with_columns(pl.Series("turn", moved))


def _paired(messages: Turns, user: Indices, system: Indices) -> pl.DataFrame:
    owner = messages.dialogue[user]
    return pl.DataFrame(
        {
            "dialogue_row": owner,
            "turn": 1 + place_in_group(owner),
            "user_text": messages.text.gather(user),
            "system_text": messages.text.gather(system),
            "user_meta": raw_texts(messages.meta.take(user)),
        }
    )


def _flagged(messages: Turns) -> pl.DataFrame:
    """Return the ordinals of user turns whose metadata says that the preference shifts."""
    rows = np.flatnonzero(messages.by(USER))
    owner = messages.dialogue[rows]
    flagged = messages.shifts[rows]
    ordinal = 1 + place_in_group(owner)
    return pl.DataFrame({"dialogue_row": owner[flagged], "turn": ordinal[flagged]})


def _read_shift_events(
    column: pl.Series, problems: Problems
) -> tuple[pl.DataFrame, Mask, "_Ignored"]:
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
    meta: JsonValues, options: PreferenceShift, problems: Problems
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
        single = np.flatnonzero(~array & ~values.is_missing)
        frames += [
            _gold_frame(owner, name, _value_texts(listed, problems)),
            _gold_frame(single, name, _value_texts(values.take(single), problems)),
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


def name_dialogues(raw: pl.DataFrame) -> pl.DataFrame:
    """Return what names each conversation and where it is; without an id its file does."""
    stem = pl.col("file").str.split("/").list.last().str.replace(_SUFFIXES, "")
    return identify(raw, SOURCE).select(
        "file",
        "line",
        pl.col(IDENTITY).alias("dialogue"),
        pl.coalesce("session_id", stem),
        pl.col("model_name").alias("model"),
        "true_genre",
        "judge",
    )


def _unpaired_rejects(raw: pl.DataFrame, turns: Turns, unpaired: Indices) -> pl.DataFrame:
    about = pl.DataFrame(
        {"place": turns.place[unpaired], "speaker": turns.speaker.gather(unpaired)}
    ).select(
        pl.format("conversation[{}]", "place").alias("field"),
        pl.format("a turn of {}", pl.col("speaker").fill_null("nobody")).alias("found"),
    )
    return _rejects(
        raw,
        turns.dialogue[unpaired],
        field=about["field"],
        reason="unpaired_turn",
        found=about["found"],
        expected="USER at an even place (from 0) with SYSTEM after it",
    )


def _rejects(
    raw: pl.DataFrame, rows: Indices, **columns: str | Sequence[str] | pl.Series
) -> pl.DataFrame:
    """Make rejects of these conversations, with a text in every row."""
    places = raw.select(*ROW_SCHEMA)[rows]
    constant = [pl.lit(v).alias(k) for k, v in columns.items() if isinstance(v, str)]
    varying = [
        pl.Series(k, v, dtype=pl.String) for k, v in columns.items() if not isinstance(v, str)
    ]
    return places.with_columns(
        *varying, *constant, pl.lit(None, dtype=pl.String).alias("raw")
    ).select(*(pl.col(name).cast(dtype) for name, dtype in REJECT_SCHEMA.items()))


def texts_to_embed(events: Events, options: PreferenceShift) -> pl.Series:
    """Return the distinct texts that need a vector with these options.

    For the extractor ``embed`` all texts and all values; for segments the user's texts in
    conversations of several turns without shift metadata.
    """
    turns, dialogues = events.frames["turns"], events.frames["dialogues"]
    parts = [pl.Series("text", [], dtype=pl.String)]
    if options.extract == "embed":
        concepts = concepts_of(load_catalogue(options.catalogue), options)
        texts = [turns["user_text"], turns["system_text"], events.frames["gold"]["text"]]
        parts += [*texts, concepts.terms["value"]]
    if options.is_legacy:
        texts = [turns["user_text"], turns["system_text"]]
        parts += [*texts, *map(joined_topics, texts)]
    elif options.extract != "embed" and options.segments != "metadata":
        several = turns["dialogue_row"].is_duplicated()
        without = ~dialogues["has_shift_metadata"].gather(turns["dialogue_row"])
        parts.append(turns["user_text"].filter(several & without))
    return pl.concat([part.rename("text") for part in parts]).unique(maintain_order=True)
