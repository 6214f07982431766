"""Showing single dialogues: rows, marks, and where two texts agree.

Plain data. A suite fills it by pure functions over frames; terminals and pages show it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import Any

import polars as pl

Number = float | int | None

Row = Mapping[str, Any]
"""A row of a table, by column."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Characters ``[start, stop)`` of a text that count for something."""

    # places in the text, in characters
    start: int
    stop: int
    good: bool = True  # whether they speak for a better number
    label: str = ""  # what they are


def marked_parts(
    text: str, marks: Sequence[Mark], start: int, stop: int
) -> Iterator[tuple[str, Mark | None]]:
    """Cut ``text[start:stop]`` where marks begin and end; yield each piece with its mark.

    Of marks that overlap, the later one is cut.
    """
    place = start
    for mark in marks:
        begin, end = max(place, mark.start), min(mark.stop, stop)
        if begin < end:
            yield text[place:begin], None
            yield text[begin:end], mark
            place = end
    yield text[place:stop], None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn of a dialogue as a person reads it."""

    speaker: str  # who speaks, or what the text is
    text: str
    place: str = ""  # which turn it is: ``3``, ``utterance 2, step 1``
    scores: Mapping[str, Number] = field(default_factory=dict)  # numbers of this turn by name
    marks: tuple[Mark, ...] = ()  # the evidence in the text
    notes: tuple[str, ...] = ()  # what else decided its numbers, a few words each


SPOKEN_TURNS = {
    "number": pl.Int64(),
    **dict.fromkeys(("dialogue", "model", "unit", "file"), pl.String()),
    "line": pl.Int64(),
    "speaker": pl.String(),
    "text": pl.String(),
}
"""Turns as a judge reads them, those of one dialogue after those of another: the dialogue's number,
the ids by which a run knows it, what the suite's design takes for a unit, and where it begins; who
speaks, and what is said."""


def spoken(
    turns: pl.DataFrame, dialogues: pl.DataFrame, unit: Sequence[str] = ("dialogue",)
) -> pl.DataFrame:
    """Return ``dialogue_row``, ``speaker`` and ``text`` as `SPOKEN_TURNS`, by dialogue.

    Dialogues have ``dialogue``, ``file`` and ``line`` by row, ``model`` where logs name one, and
    the columns of ``unit``, which name the units of the suite's design.
    """
    named = dialogues.with_columns(
        number=pl.int_range(pl.len()),
        model="model" if "model" in dialogues.columns else pl.lit(None),
        unit=pl.when(pl.any_horizontal(pl.col(unit).is_not_null()))
        .then(pl.concat_str(pl.col(unit).cast(pl.String).fill_null(""), separator=" / "))
        .otherwise("dialogue"),
    ).select("number", "dialogue", "model", "unit", "file", "line")
    ordered = turns.select(
        pl.col("dialogue_row").cast(pl.Int64).alias("number"), "speaker", "text"
    ).sort("number", maintain_order=True)
    return ordered.join(named, on="number", maintain_order="left").select(
        pl.col(name).cast(dtype) for name, dtype in SPOKEN_TURNS.items()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A small table."""

    title: str  # its heading
    frame: pl.DataFrame  # its rows; columns named as they are to be read
    # columns of texts that begin with a number: they are aligned and sorted as numbers
    written: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueView:
    """A dialogue turn by turn, and what is counted over it."""

    turns: tuple[Turn, ...]
    listings: tuple[Listing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRows:
    """What shows the parts of a metric's value: columns of the suite's tables."""

    # the columns. In rows of another table the first one must not be null. Empty: the text alone;
    # without one all columns of a row of another table that are not null.
    columns: tuple[str, ...] = ()
    # a table or frame that the suite's `evidence` returns, else a frame of its events, of the same
    # dialogue, or ``log``: its rows as they were read. Empty: the columns are those of the metric's
    # own row.
    table: str = ""
    names: tuple[str, ...] = ()  # the columns that name a row
    text: str = ""  # the column with the text in which something was found
    # finds the places in the text that count, from the row with the text
    marks: Callable[[Row], Sequence[Mark]] | None = None
    # which rows count: an expression, or a function that returns it for the metric's row and the
    # options
    where: pl.Expr | Callable[[Row, Any], pl.Expr] | None = field(default=None, compare=False)
    same: tuple[str, ...] = ()  # columns in which the rows equal the metric's row
    within: str = ""  # a column of the metric's own row with a list of structs: these are the rows
    # an option, or a property of the options, and the value with which this is evidence
    only_with: tuple[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something that a number was computed from."""

    what: str  # what it is
    found: str | Number = None  # what was found: a number or words
    text: str = ""  # the text that it was found in, empty if there is none
    marks: tuple[Mark, ...] = ()  # its places in the text
    # the values that were found, by their columns
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a number is what it is."""

    metric: str  # the metric's id
    place: str = ""  # which of the dialogue's rows it is of, empty if there is only one
    value: Number = None  # the number; None where it is null
    reason: str = ""  # why it is null
    # their values, where it is a ratio
    numerator: Number = None
    denominator: Number = None
    working: str = ""  # the formula with the values in it
    result: Number = None  # the number that those values give
    evidence: tuple[Evidence, ...] = ()  # what the values were counted from
    lines: tuple[int, ...] = ()  # the 1-based lines of the log that contain it


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of a chart, with intervals where there are any."""

    name: str  # what the legend calls it
    # ``x`` (numbers or names), ``y``, and ``low`` and ``high`` where it has intervals
    frame: pl.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: lines over numbers, points with intervals over names, or bars."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    bars: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A finished SVG drawing with the name of its file, its title and what it shows."""

    name: str
    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a report that only one suite has, or of a suite's analysis."""

    title: str
    text: str
    charts: tuple[Chart, ...] = ()
    listings: tuple[Listing, ...] = ()
    drawings: tuple[Drawing, ...] = ()


LONGEST = 2_000
_KEPT = 1 << 12
"""Every metric of a row is shown with the same texts."""


@lru_cache(_KEPT)
def matched_characters(text: str, other: str) -> tuple[Mark, ...]:
    """Return the runs of a text's characters that a shortest edit leaves as they are.

    All others of the longer text, and those exchanged, make up the Levenshtein distance. There are
    no runs where a text is longer than `LONGEST` characters.
    """
    if not text or not other or max(len(text), len(other)) > LONGEST:
        return ()
    kept = set()
    rows = _distances(text, other)
    i, j = len(text), len(other)
    while i and j:
        here = rows[i][j]
        if text[i - 1] == other[j - 1] and rows[i - 1][j - 1] == here:
            kept.add(i - 1)
            i, j = i - 1, j - 1
        elif rows[i - 1][j - 1] + 1 == here:
            i, j = i - 1, j - 1
        elif rows[i - 1][j] + 1 == here:
            i -= 1
        else:
            j -= 1
    runs = groupby(enumerate(sorted(kept)), lambda numbered: numbered[1] - numbered[0])
    places = ([place for _, place in run] for _, run in runs)
    return tuple(Mark(run[0], run[-1] + 1, label="matched") for run in places)


def occurrences(text: str, words: str, *, good: bool = True, label: str = "") -> tuple[Mark, ...]:
    """Return the places of words in a text, whatever their case."""
    if not words:
        return ()
    found = []
    low, wanted = text.lower(), words.lower()
    if len(low) != len(text):  # lowering changed the places
        low, wanted = text, words
    start = low.find(wanted)
    while start >= 0:
        found.append(Mark(start, start + len(wanted), good, label or words))
        start = low.find(wanted, start + len(wanted))
    return tuple(found)


def disjoint(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Keep the longest of marks that overlap, in the order of the text."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.start - mark.stop, mark.start)):
        if all(mark.stop <= other.start or mark.start >= other.stop for other in kept):
            kept.append(mark)
    return tuple(sorted(kept, key=lambda mark: mark.start))


def _distances(text: str, other: str) -> list[list[int]]:
    rows = [list(range(len(other) + 1))]
    for i, character in enumerate(text, start=1):
        above, row = rows[-1], [i]
        for j, against in enumerate(other, start=1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (character != against)))
        rows.append(row)
    return rows
