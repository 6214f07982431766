"""What the rows of a run lack: how often needed columns are null, and which metrics that costs.

Counted while rows are read, added up over shards by their receipts, said at the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from fastscore.errors import InputError
from fastscore.logs.inputs.found_keys import FoundKeys, count_keys
from fastscore.logs.inputs.similar_names import KINDS, json_types, nearest_key, owned
from fastscore.suites.base import ALL_METRICS, Column, Events, Nulls, Source
from fastscore.suites.summary import ALL

NULL, ASKED, EMPTY = "null:", "asked:", "empty:"
"""Before the path of a needed column, in counts: rows that lack it, rows that should have it, and
those of them that count as having an empty one."""
_SHOWN = 8
_ROWS_COUNTED = 100


def count_nulls(frame: pl.DataFrame, source: Source, events: Events) -> dict[str, int]:
    """Count the nulls of all needed columns of some rows, as they stand in receipts.

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
        column.name: _nulls(frame, column, source) for column in source.columns if column.needed_by
    }
    texts = {path for path, column in _by_path(source) if column.kind == "text"}
    for path, found in (nulls | dict(events.nulls)).items():
        counts[NULL + path], counts[ASKED + path] = found.null, found.asked
        as_empty = events.nulls_are_empty and path in texts
        counts[EMPTY + path] = found.null if as_empty else 0
    return counts


def _nulls(frame: pl.DataFrame, column: Column, source: Source) -> Nulls:
    values = frame[column.name]
    asked = None
    for holder in source.columns:
        if any(item.name == column.name for item in holder.items):
            asked = frame[holder.name].is_null()
    if column.only_where is not None:
        name, value = column.only_where
        asked = (frame[name] == value).fill_null(False)
    if asked is None:
        return Nulls(values.null_count(), frame.height)
    return Nulls(int((values.is_null() & asked).sum()), int(asked.sum()))


@dataclass(frozen=True, slots=True)
class Missing:
    """A column that is null somewhere.

    Parameters
    ----------
    path
        Its name, with that of the array that holds it.
    nulls
        How often it is null.
    n_empty
        How many of these count as empty texts.
    """

    path: str
    nulls: Nulls
    n_empty: int = 0


def missing_columns(counts: dict[str, int]) -> list[Missing]:
    """Take the nulls of needed columns out of a run's counts."""
    paths = [name.removeprefix(NULL) for name in counts if name.startswith(NULL)]
    found = []
    for path in paths:
        nulls = Nulls(counts.pop(NULL + path), counts.pop(ASKED + path))
        n_empty = counts.pop(EMPTY + path)
        found.append(Missing(path, nulls, n_empty))
    return found


def notes_on_missing(missing: Iterable[Missing], source: Source) -> list[str]:
    """Say of columns that all metrics need how often they are null."""
    needed = {path for path, column in _by_path(source) if column.needed_by == ALL_METRICS}
    notes = []
    for each in missing:
        if each.path in needed and each.nulls.null:
            objects = "object" if "[]" in each.path else "row"
            what = f"{objects}s" if each.nulls.asked != 1 else objects
            note = f"{each.path}: null in {each.nulls.null:,} of {each.nulls.asked:,} {what}"
            taken = "; counted as empty, as published" if each.n_empty else ""
            notes.append(note + taken)
    return notes


def _by_path(source: Source) -> list[tuple[str, Column]]:
    found = []
    for column in source.columns:
        found.append((column.name, column))
        found += [(f"{column.name}[].{item.name}", item) for item in column.items]
    return found


@dataclass(frozen=True, slots=True)
class Lacking:
    """Metrics that are null in every row, or another, and a column that they lack everywhere."""

    path: str
    column: Column
    metrics: tuple[str, ...]

    def told(self, found: FoundKeys, source: Source) -> str:
        """Say so, with the keys that were found and what to type."""
        array = self.path.rpartition("[].")[0]
        keys = found.below(array)
        verb = "is" if len(self.metrics) == 1 else "are"
        how = "scored without it" if self.metrics == self.column.sways else "null in every row"
        null = f"{', '.join(self.metrics)} {verb} {how}"
        for key in (keys[name] for name in self.column.keys if name in keys):
            if key.types and json_types(self.column).isdisjoint(key.types):
                types = ", ".join(f"{each}s" for each in key.types)
                return f"{null}: {self.path}: found {types}, expected {KINDS[self.column.kind]}"
        taken = owned((column for _, column in _by_path(source)), self.column.name)
        nearest = nearest_key(self.column, keys, taken)
        listed = ", ".join(f"{path} ({key.count:,})" for path, key in list(keys.items())[:_SHOWN])
        more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
        advice = f"; type --column {self.column.name}={nearest}" if nearest else ""
        return (
            f"{null}: no row has {self.path} (looked for: "
            f"{', '.join(self.column.keys)}; found: {listed or 'nothing'}{more}{advice})"
        )


def lacking_columns(
    missing: Iterable[Missing], source: Source, summary: pl.DataFrame
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
    """
    asked = [each for each in missing if each.nulls.asked]
    everywhere = {each.path for each in asked if each.nulls.null == each.nulls.asked}
    whole = summary.filter(pl.col("group") == ALL)
    null = set(whole.filter(pl.col("n") == 0)["metric"])
    given = {each.path.rpartition("[].")[2] for each in asked if each.path not in everywhere}
    found = []
    for path, column in _by_path(source):
        metrics = tuple(name for name in column.needed_by if name in null)
        if column.needed_by == ALL_METRICS:
            metrics = ("every metric",)
        metrics = metrics or tuple(name for name in column.sways if name not in null)
        if path in everywhere and metrics and column.name not in given:
            found.append(Lacking(path, column, metrics))
    # what is null comes before what has another value
    return sorted(found, key=lambda each: each.metrics == each.column.sways)


@dataclass(frozen=True, slots=True)
class NotesOnRun:
    """What a run lacks.

    Parameters
    ----------
    lacking
        Metrics that are null in every row, and the columns that they lack.
    notes
        Columns that are null in some rows.
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
    rows: Iterable[dict[str, object]],
) -> NotesOnRun:
    """Say what a run lacks, taking the nulls out of its counts.

    Parameters
    ----------
    counts
        The run's counts.
    source
        The source that its rows were read by.
    summary
        Its summary.
    rows
        Some of its rows, to name the keys that were found; read only where a metric is null.

    Returns
    -------
    NotesOnRun
    """
    missing = missing_columns(counts)
    lacking = lacking_columns(missing, source, summary)
    found = count_keys(rows, _ROWS_COUNTED) if lacking else FoundKeys()
    whole = summary.filter(pl.col("group") == ALL)
    return NotesOnRun(
        [each.told(found, source) for each in lacking],
        notes_on_missing(missing, source),
        any(each.column.needed_by == ALL_METRICS for each in lacking)
        or (whole.height > 0 and not (whole["n"] > 0).any()),
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
