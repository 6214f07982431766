"""What the rows of a run lack: how often needed columns are null, and which metrics that costs.

Counted while rows are read, with the words that a suite does not know; added up over shards by
their receipts, said at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.errors import InputError, counted
from fastscore.logs.inputs.column_map import EACH
from fastscore.logs.inputs.found_keys import FoundKeys, count_keys, listed, shortened
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

NULL, ASKED, EMPTY, UNKNOWN = "null:", "asked:", "empty:", "unknown:"
"""Before the path of a column, in counts: rows that lack it, rows that should have it, those of
them that count as having an empty one; and, with a word behind it, rows that have that word."""
JOINED_LINES, JOINED_DIALOGUES = "joined_lines", "joined_dialogues"
"""How many lines of rows share the name of a dialogue with another line, and how many names."""
_ROWS_COUNTED = 100


def count_nulls(frame: pl.DataFrame, source: Source, events: Events) -> dict[str, int]:
    """Count what rows lack, as it stands in receipts: nulls, unknown words, names of their own.

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
    nulls = {
        column.name: _nulls(frame, column, source)
        for column in source.columns
        if column.needed_by or column.knows
    }
    said = {
        each.place
        for each in all_columns(source)
        if each.column.kind == "text" and not each.column.knows
    }
    for path, found in (nulls | dict(events.nulls)).items():
        counts[NULL + path], counts[ASKED + path] = found.null, found.asked
        as_empty = events.nulls_are_empty and path in said
        counts[EMPTY + path] = found.null if as_empty else 0
        counts |= {f"{UNKNOWN}{path}:{word}": count for word, count in found.unknown.items()}
    return counts | _joined(frame, source)


def _nulls(frame: pl.DataFrame, column: Column, source: Source) -> Nulls:
    values = frame[column.name]
    unknown = unknown_words(values, column)
    asked = None
    for holder in source.columns:
        if any(item.name == column.name for item in holder.items):
            asked = frame[holder.name].is_null()
    where = column.only_where or column.needed_where
    if where is not None:
        asked = (frame[where[0]] == where[1]).fill_null(False)
    if asked is None:
        return Nulls(values.null_count(), frame.height, unknown)
    return Nulls(int((values.is_null() & asked).sum()), int(asked.sum()), unknown)


def _joined(frame: pl.DataFrame, source: Source) -> dict[str, int]:
    """Count the lines whose arrays are put together for want of a name of their own."""
    if not (source.rows and source.dialogue_key):
        return {}
    dialogue = ("file", *source.dialogue_key)
    lines = frame.select(*dialogue, "line").unique().group_by(dialogue).len("lines")["lines"]
    several = lines.filter(lines > 1)
    return {JOINED_LINES: int(several.sum()), JOINED_DIALOGUES: len(several)}


@dataclass(frozen=True, slots=True)
class Missing:
    """What a column lacks.

    Parameters
    ----------
    path
        Its name, with that of the array that holds it.
    nulls
        How often it is null, and the words that the suite does not know.
    n_empty
        How many of the nulls count as empty texts.
    """

    path: str
    nulls: Nulls
    n_empty: int = 0


def missing_columns(counts: dict[str, int]) -> list[Missing]:
    """Take what columns lack out of a run's counts."""
    unknown: dict[str, dict[str, int]] = {}
    for name in [name for name in counts if name.startswith(UNKNOWN)]:
        path, _, word = name.removeprefix(UNKNOWN).partition(":")
        unknown.setdefault(path, {})[word] = counts.pop(name)
    paths = [name.removeprefix(NULL) for name in counts if name.startswith(NULL)]
    found = []
    for path in paths:
        null, asked = counts.pop(NULL + path), counts.pop(ASKED + path)
        nulls = Nulls(null, asked, unknown.get(path, {}))
        found.append(Missing(path, nulls, counts.pop(EMPTY + path)))
    return found


def notes_on_missing(missing: Iterable[Missing], source: Source) -> list[str]:
    """Say of columns how often they are null, where all metrics need them, and of their words."""
    columns = {each.place: each.column for each in all_columns(source)}
    notes = []
    for each in missing:
        objects = "objects" if EACH[:-1] in each.path else "rows"
        of_all = f"of {counted(each.nulls.asked, objects)}"
        column = columns.get(each.path)
        if column and column.needed_by == ALL_METRICS and each.nulls.null:
            note = f"{each.path}: null in {each.nulls.null:,} {of_all}"
            taken = "; counted as empty, as published" if each.n_empty else ""
            notes.append(note + taken)
        if each.nulls.unknown:
            notes.append(_note_on_words(each, of_all, column))
    return notes


def _note_on_words(missing: Missing, of_all: str, column: Column | None) -> str:
    """Name the words that a suite does not know, and what to type."""
    words = sorted(missing.nulls.unknown.items(), key=lambda item: (-item[1], item[0]))
    note = f"{missing.path}: {shortened([f'{word!r} in {count:,}' for word, count in words])}"
    note += f" {of_all}"
    if column is None:
        return note + ", which no rule knows"
    flags = nearest_words(column.name, [word for word, _ in words], column.knows)
    known = ", ".join(word for word in column.knows if word)
    return f"{note}; known: {known}" + (f"; type {' '.join(flags)}" if flags else "")


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
    asked = [each for each in missing if each.nulls.asked]
    everywhere = {each.path for each in asked if each.nulls.null == each.nulls.asked}
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
    missing = missing_columns(counts)
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
    table: str, counts: Mapping[str, int], inputs: str, rejects: str | None
) -> InputError:
    """Make the error of a run without a row.

    Parameters
    ----------
    table
        The table that is empty.
    counts
        The run's counts.
    inputs
        What was read.
    rejects
        What to say of its rejects.
    """
    lines = counts.get("lines", 0) - counts.get("blank", 0)
    found = ", ".join(counted(value, name) for name, value in counts.items() if value)
    return InputError(
        f"Nothing was scored: there is no row for {table} in {counted(lines, 'lines')} of "
        f"{inputs} ({found or 'nothing was read'}).",
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
