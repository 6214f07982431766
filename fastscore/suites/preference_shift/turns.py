"""Turns of conversations: read in input order, joined by speaker where asked, and paired."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, OBJECT

from fastscore.suites.columns import list_column
from fastscore.suites.grouping import first_of_group, place_in_group
from fastscore.suites.json_values import (
    JsonValues,
    Problems,
    booleans,
    column_values,
    elements,
    expect,
    expect_texts,
    members,
)
from fastscore.suites.preference_shift.schema import SYSTEM, USER


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


def merge_speakers(said: Turns) -> tuple[Turns, Indices]:
    """Join consecutive turns of one speaker; return them and which each turn is in.

    What is joined has its texts on lines of their own, the last metadata, and any turn's shift.
    """
    if not len(said):
        return said, np.arange(0)
    begins = np.ones(len(said), np.bool_)
    changes = said.speaker.ne_missing(said.speaker.shift()).to_numpy()
    begins[1:] = changes[1:] | (said.dialogue[1:] != said.dialogue[:-1])
    first = np.flatnonzero(begins)
    bounds = np.append(first, len(said))
    last_meta = np.maximum.accumulate(np.where(said.meta.tags == OBJECT, np.arange(len(said)), -1))
    last_meta = last_meta[bounds[1:] - 1]
    dialogue = said.dialogue[first]
    merged = Turns(
        dialogue=dialogue,
        place=place_in_group(dialogue),
        speaker=said.speaker.gather(first),
        text=list_column(said.text, bounds).list.join("\n"),
        has_text=np.logical_or.reduceat(said.has_text, first),
        meta=said.meta.take(np.maximum(last_meta, first)).where(last_meta >= first),
        shifts=np.logical_or.reduceat(said.shifts, first),
    )
    return merged, np.cumsum(begins) - 1


def pair_turns(said: Turns, *, drop_leading: bool) -> tuple[Indices, Indices]:
    """Return the rows of USER turns at even places, and of the SYSTEM turns after them."""
    user, system = said.by(USER), said.by(SYSTEM)
    place = said.place
    if drop_leading:
        led = system & (place == 0)
        place = place - led[first_of_group(said.dialogue)]
    found = np.flatnonzero(
        user[:-1] & system[1:] & (said.dialogue[:-1] == said.dialogue[1:]) & (place[:-1] % 2 == 0)
    )
    return found, found + 1
