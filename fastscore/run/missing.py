"""What the rows of a run lack: how often needed columns are null, and which metrics that costs.

Counted while rows are read; added up over shards by their receipts, the words that a suite does
not know by a table of their own; said at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import polars as pl

from fastscore.errors import InputError, counted
from fastscore.logs.inputs.column_map import EACH
from fastscore.logs.inputs.found_keys import SHOWN, FoundKeys, count_keys, listed
from fastscore.logs.inputs.needs import Need, all_columns
from fastscore.logs.inputs.similar_names import (
    KINDS,
    column_flag,
    json_types,
    nearest_key,
    nearest_words,
    owned,
)
from fastscore.options import other_ways
from fastscore.suites.base import Events, Nulls
from fastscore.suites.columns import unknown_words
from fastscore.suites.declarations import ALL_METRICS, Column, Source
from fastscore.suites.summary import ALL

NULL, ASKED, EMPTY = "null:", "asked:", "empty:"
"""Before the path of a column, in counts: rows that lack it, rows that should have it, those of
them that count as having an empty one."""
JOINED_LINES, JOINED_DIALOGUES = "joined_lines", "joined_dialogues"
"""How many lines of rows share the name of a dialogue with another line, and how many names."""
UNKNOWN_SCHEMA = {"column": pl.String, "word": pl.String, "rows": pl.Int64}
"""Words that a suite does not know: of which column, and in how many rows or objects."""
MOST_NAMED = 100
"""How many of a column's unknown words are looked at to say what to type."""
_LONGEST_WORD = 40
_ROWS_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted of rows.

    Parameters
    ----------
    counts
        By name, as it stands in receipts.
    unknown
        Every word that the suite does not know, `UNKNOWN_SCHEMA`.
    """

    counts: dict[str, int]
    unknown: pl.DataFrame


def count_lacks(frame: pl.DataFrame, source: Source, events: Events) -> Counted:
    """Count what rows lack: nulls, names of their own, words that the suite knows.

    Parameters
    ----------
    frame
        The rows as read.
    source
        The source that they were read by.
    events
        What a suite made of them: it counts the items of arrays.
    """
    counts: dict[str, int] = {}
    places = {where for column in source.columns if (where := _where(column)) is not None}
    rows_where = {where: frame[where[0]] == where[1] for where in places}
    nulls = {
        column.name: _nulls(frame, column, source, rows_where)
        for column in source.columns
        if column.needed_by or column.knows
    }
    said = {
        each.place
        for each in all_columns(source)
        if each.column.kind == "text" and not each.column.knows
    }
    unknown = []
    for path, found in (nulls | dict(events.nulls)).items():
        counts[NULL + path], counts[ASKED + path] = found.null, found.asked
        as_empty = events.nulls_are_empty and path in said
        counts[EMPTY + path] = found.null if as_empty else 0
        unknown += [(path, word, count) for word, count in found.unknown.items()]
    words = pl.DataFrame(unknown, schema=UNKNOWN_SCHEMA, orient="row")
    return Counted(counts | _joined(frame, source), words.sort("column", "word"))


def _where(column: Column) -> tuple[str, str] | None:
    """Return the column and the word of the rows in which another is read, or missed."""
    return column.only_where or column.needed_where


def _nulls(
    frame: pl.DataFrame,
    column: Column,
    source: Source,
    rows_where: Mapping[tuple[str, str], pl.Series],
) -> Nulls:
    values, where = frame[column.name], _where(column)
    known = sum(
        rows.sum()
        for (name, word), rows in rows_where.items()
        if name == column.name and word in column.knows
    )
    all_known = known + values.null_count() == frame.height
    unknown = {} if all_known else unknown_words(values, column)
    asked = None
    for holder in source.columns:
        if any(item.name == column.name for item in holder.items):
            asked = frame[holder.name].is_null()
    if where is not None:
        asked = rows_where[where]
    if asked is None:
        return Nulls(values.null_count(), frame.height, unknown)
    lacking = int((values.is_null() & asked).sum()) if values.null_count() else 0
    return Nulls(lacking, int(asked.sum()), unknown)


def _joined(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the lines whose arrays are put together for want of a name of their own."""
    if not (source.rows and source.dialogue_key):
        return {}
    dialogue = ("file", *source.dialogue_key)
    lines = frame.select(*dialogue, "line").unique().group_by(dialogue).len("lines")["lines"]
    several = lines.filter(lines > 1)
    return {JOINED_LINES: int(several.sum()), JOINED_DIALOGUES: len(several)}


@dataclass(frozen=True, slots=True)
class UnknownWords:
    """Words of a column that the suite does not know.

    Parameters
    ----------
    rows
        In how many rows or objects one of them stands.
    distinct
        How many different ones there are.
    named
        The most frequent ones, with their numbers: `MOST_NAMED` at most; of equally frequent ones
        those that sort first.
    """

    rows: int
    distinct: int
    named: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Missing:
    """What a column lacks.

    Parameters
    ----------
    path
        Its name, with that of the array that holds it.
    null, asked
        In how many rows, or objects, it is null, and in how many it should stand.
    n_empty
        How many of the nulls count as empty texts.
    unknown
        The words that the suite does not know, where there are any.
    """

    path: str
    null: int
    asked: int
    n_empty: int = 0
    unknown: UnknownWords | None = None


def missing_columns(counts: dict[str, int], unknown: pl.LazyFrame) -> list[Missing]:
    """Take what columns lack out of a run's counts.

    Parameters
    ----------
    counts
        The run's counts.
    unknown
        The unknown words of all its shards, `UNKNOWN_SCHEMA`.
    """
    words = _unknown_words(unknown)
    paths = [name.removeprefix(NULL) for name in counts if name.startswith(NULL)]
    return [
        Missing(
            path,
            counts.pop(NULL + path),
            counts.pop(ASKED + path),
            counts.pop(EMPTY + path),
            words.get(path),
        )
        for path in paths
    ]


def _unknown_words(unknown: pl.LazyFrame) -> dict[str, UnknownWords]:
    """Add up unknown words by column: totals are exact, however the rows were sharded."""
    of_words = unknown.group_by("column", "word").agg(pl.col("rows").sum())
    ranked = of_words.sort("rows", "word", descending=[True, False])
    of_columns = (
        ranked.group_by("column", maintain_order=True)
        .agg(
            pl.col("rows").sum().alias("total"),
            pl.len().alias("distinct"),
            pl.col("word", "rows").head(MOST_NAMED),
        )
        .collect()
    )
    return {
        column: UnknownWords(total, distinct, dict(zip(words, counts, strict=True)))
        for column, total, distinct, words, counts in of_columns.iter_rows()
    }


def notes_on_missing(missing: Iterable[Missing], source: Source) -> list[str]:
    """Say of columns how often they are null, where all metrics need them, and of their words."""
    columns = {each.place: each.column for each in all_columns(source)}
    notes = []
    for each in missing:
        objects = "objects" if EACH[:-1] in each.path else "rows"
        of_all = f"of {counted(each.asked, objects)}"
        column = columns.get(each.path)
        if column and column.needed_by == ALL_METRICS and each.null:
            note = f"{each.path}: null in {each.null:,} {of_all}"
            taken = "; counted as empty, as published" if each.n_empty else ""
            notes.append(note + taken)
        if each.unknown:
            notes.append(f"{each.path}: {_told_words(each.unknown, of_all, column)}")
    return notes


def _told_words(unknown: UnknownWords, of_all: str, column: Column | None) -> str:
    """Name the words that a suite does not know, and what to type."""
    shown = [f"{_shown(word)} in {count:,}" for word, count in islice(unknown.named.items(), SHOWN)]
    note = ", ".join(shown)
    if unknown.distinct > SHOWN:
        note += f" and {unknown.distinct - SHOWN:,} more words, in {unknown.rows:,} together"
    note += f" {of_all}"
    if column is None:
        return note + ", which no rule knows"
    flags = nearest_words(column.name, unknown.named, column.knows)
    known = ", ".join(word for word in column.knows if word)
    return f"{note}; known: {known}" + (f"; type {' '.join(flags)}" if flags else "")


def _shown(word: str) -> str:
    return repr(word if len(word) <= _LONGEST_WORD else word[: _LONGEST_WORD - 1] + "…")


def _note_on_lines(counts: dict[str, int], source: Source) -> list[str]:
    """Say how many lines are put together, taking that out of the counts."""
    lines, dialogues = counts.pop(JOINED_LINES, 0), counts.pop(JOINED_DIALOGUES, 0)
    if not lines:
        return []
    name = source.dialogue_key[0]
    return [
        f"{name}: {lines:,} lines have the names of {counted(dialogues, 'dialogues')} and are put "
        f"together by them; type --column {name}=KEY if each line is a dialogue of its own"
    ]


@dataclass(frozen=True, slots=True)
class Lacking:
    """A column that is null everywhere, and the metrics that lack it in every row.

    Parameters
    ----------
    need
        The column.
    null
        The metrics that are null without it.
    swayed
        The metrics that have another value without it.
    """

    need: Need
    null: tuple[str, ...]
    swayed: tuple[str, ...]

    def told(self, found: FoundKeys, source: Source) -> str:
        """Say so, with the keys that were found and what to type."""
        lost = [
            f"{', '.join(metrics)} {'is' if len(metrics) == 1 else 'are'} {how}"
            for metrics, how in (
                (self.null, "null in every row"),
                (self.swayed, "scored without it"),
            )
            if metrics
        ]
        place, column, holder = self.need.place, self.need.column, self.need.holder
        keys = found.around(source, holder)
        for key in (keys[name] for name in column.keys if name in keys):
            if key.types and json_types(column).isdisjoint(key.types):
                types = ", ".join(f"{each}s" for each in key.types)
                return f"{', '.join(lost)}: {place}: found {types}, expected {KINDS[column.kind]}"
        siblings = holder.items if holder else source.columns
        nearest = nearest_key(column, keys, owned(siblings, column.name))
        advice = f"; type {column_flag(column.name, nearest)}" if nearest else ""
        if column.given_by:
            advice += f"; also given by {' or '.join(other_ways(column))}"
        return (
            f"{', '.join(lost)}: no row has {place} (looked for: {', '.join(column.keys)}; "
            f"found: {listed(keys)}{advice})"
        )


def lacking_columns(
    missing: Iterable[Missing], source: Source, summary: pl.DataFrame, options: Any
) -> list[Lacking]:
    """Find the columns that are null everywhere and leave metrics that need them null.

    Parameters
    ----------
    missing
        What is null.
    source
        The source that rows were read by.
    summary
        The run's summary.
    options
        The suite's options, some of which give what a column does.
    """
    asked = [each for each in missing if each.asked]
    everywhere = {each.path for each in asked if each.null == each.asked}
    whole = summary.filter(pl.col("group") == ALL)
    null = set(whole.filter(pl.col("n") == 0)["metric"])
    given = {each.path.rpartition(EACH)[2] for each in asked if each.path not in everywhere}
    found = []
    for need in all_columns(source):
        column = need.column
        if need.place not in everywhere or column.name in given:
            continue
        if column.given_by and getattr(options, column.given_by[0]):
            continue
        lost = tuple(name for name in column.needed_by if name in null)
        if column.needed_by == ALL_METRICS:
            lost = ("every metric",)
        swayed = tuple(name for name in column.sways if name not in null)
        if lost or swayed:
            found.append(Lacking(need, lost, swayed))
    # what is null comes before what has another value
    return sorted(found, key=lambda each: not each.null)


@dataclass(frozen=True, slots=True)
class NotesOnRun:
    """What a run lacks.

    Parameters
    ----------
    lacking
        Metrics that are null in every row, and the columns that they lack.
    notes
        What else there is to say of its rows.
    nothing_scored
        Whether every metric is null in every row, or a column that all of them need.
    """

    lacking: list[str]
    notes: list[str]
    nothing_scored: bool


def notes_on_run(
    counts: dict[str, int],
    unknown: pl.LazyFrame,
    source: Source,
    summary: pl.DataFrame,
    options: Any,
    rows: Iterable[dict[str, Any]],
) -> NotesOnRun:
    """Say what a run lacks, taking that out of its counts.

    Parameters
    ----------
    counts
        The run's counts.
    unknown
        The words of its rows that the suite does not know, `UNKNOWN_SCHEMA`.
    source
        The source that its rows were read by.
    summary
        Its summary.
    options
        The suite's options.
    rows
        Some of its rows, to name the keys that were found; read only where a metric is null.

    Returns
    -------
    NotesOnRun
    """
    missing = missing_columns(counts, unknown)
    lacking = lacking_columns(missing, source, summary, options)
    found = count_keys(rows, _ROWS_COUNTED) if lacking else FoundKeys()
    whole = summary.filter(pl.col("group") == ALL)
    return NotesOnRun(
        [each.told(found, source) for each in lacking],
        [*notes_on_missing(missing, source), *_note_on_lines(counts, source)],
        any(each.need.column.needed_by == ALL_METRICS for each in lacking)
        or (whole.height > 0 and not (whole["n"] > 0).any()),
    )


def no_row_error(
    table: str,
    counts: Mapping[str, int],
    notes: Sequence[str],
    inputs: str,
    rejects: str | None,
) -> InputError:
    """Make the error of a run without a row.

    Parameters
    ----------
    table
        The table that is empty.
    counts
        The run's counts.
    notes
        What else there is to say of its rows.
    inputs
        What was read.
    rejects
        What to say of its rejects.
    """
    lines = counts.get("lines", 0) - counts.get("blank", 0)
    found = ", ".join(counted(value, name) for name, value in counts.items() if value)
    return InputError(
        f"Nothing was scored: there is no row for {table} in {counted(lines, 'lines')} of "
        f"{inputs} ({found or 'nothing was read'})." + "".join(f"\n  {each}" for each in notes),
        rejects,
    )


def told_reject(reject: Mapping[str, Any]) -> str:
    """Tell of a reject, a row of `REJECT_SCHEMA`."""
    field = f", field {reject['field']}" if reject["field"] else ""
    return (
        f"The first: {reject['file']}:{reject['line']}{field}: {reject['reason']} (found "
        f"{reject['found']}, expected {reject['expected']})"
    )


def nothing_error(suite: str, lacking: Sequence[str]) -> InputError:
    """Make the error of a run in which every metric is null."""
    return InputError(
        f"Nothing was scored: every metric of {suite} is null in every row."
        + "".join(f"\n  {each}" for each in lacking),
        "The tables say why, row by row, in null_reasons.",
    )


def strict_error(notes: Sequence[str]) -> InputError:
    """Make the error of ``--strict``."""
    return InputError(
        "Metrics lack a column in every row, and --strict is given; all else is scored.\n  "
        + "\n  ".join(notes),
        "Map the columns, or leave --strict out.",
    )
