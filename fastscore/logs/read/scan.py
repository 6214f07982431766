"""Logs as a polars source: lazily scanned, with the rows and rejects of `rows.read_parts`.

What a query asks for never changes which rows there are: a line is a reject whether or not the
faulty column is asked for. So columns that can refuse a row are always looked at; of the others
only those that are asked for are read.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import polars as pl
from polars.io.plugins import register_io_source

from fastscore.logs.integrity.rejects import FileRejects, Reject, reject_frame
from fastscore.logs.read.rows import Part, row_schema
from fastscore.suites.declarations import REJECTS_TABLE, Column, Source
from fastscore.wording import worded

_SPARSE = 4
"""Rows are few where they are less than one such part of a batch."""

ReadParts = Callable[[Source], Iterator[Part]]


class RejectsWarning(UserWarning):
    """Lines that cannot be parsed were skipped while logs were scanned.

    Examples
    --------
    >>> warnings.simplefilter("error", fastscore.RejectsWarning)
    """


class LogsWarning(UserWarning):
    """Logs lack what a suite needs, or some files were skipped because the suite cannot read them.

    Examples
    --------
    >>> warnings.simplefilter("ignore", fastscore.LogsWarning)
    """

    def __str__(self) -> str:
        return worded(super().__str__())


def scan_rows(read: ReadParts, source: Source, name: str) -> pl.LazyFrame:
    """Scan rows lazily.

    Parameters
    ----------
    read
        Reads parts by a source, anew each time it is called.
    source
        The columns.
    name
        What the plan of a query calls the input.

    Returns
    -------
    pl.LazyFrame
        The columns of `row_schema`, in input order. Projections, predicates and row limits of a
        query are used while it is read; a `RejectsWarning` at the end says how many lines were
        left aside.
    """

    def rows(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        rejects: list[Reject] = []
        counted = _warn_of_rejects(read(_select_columns(source, names)), rejects)
        # polars limits rows before it filters them
        for frame in _limited((part.frame for part in counted), limit):
            found = frame if predicate is None else _kept(frame, predicate)
            yield found if names is None else found.select(names)

    return register_io_source(
        rows, schema=row_schema(source), is_pure=True, explain_name="fastscore", explain_detail=name
    )


def scan_rejects(read: ReadParts, source: Source, name: str) -> pl.LazyFrame:
    """Scan lazily what no row can be made of, in `REJECTS_TABLE`; arguments as `scan_rows`."""

    def rejects(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        narrowed = _select_columns(source, [])
        for frame in _limited(_reject_frames(read(narrowed)), limit):
            found = frame if predicate is None else frame.filter(predicate)
            yield found if names is None else found.select(names)

    return register_io_source(
        rejects, schema=REJECTS_TABLE, is_pure=True, explain_name="fastscore", explain_detail=name
    )


def _reject_frames(parts: Iterable[Part]) -> Iterator[pl.DataFrame]:
    """Yield rejects as they come, and at the end how many more there are."""
    of_files = FileRejects()
    for part in parts:
        if part.rejects:
            yield reject_frame(of_files.take(part.rejects))
    yield reject_frame(of_files.more())


def _warn_of_rejects(parts: Iterable[Part], rejects: list[Reject]) -> Iterator[Part]:
    """Hand parts on; warn of their rejects when there are no more."""
    count = lines = 0
    for part in parts:
        rejects += part.rejects[: 1 - len(rejects)]
        count += sum(reject.count for reject in part.rejects)
        lines += part.lines - part.blank
        yield part
    if rejects:
        first = rejects[0]
        field = f", field {first.field}" if first.field else ""
        warnings.warn(
            f"Left aside, as no row can be made of them: {count:,} of {lines:,} lines. The first: "
            f"{first.file}:{first.line}{field}: {first.reason} (found {first.found}, expected "
            f"{first.expected}). All of them: fastscore.scan(..., rejects=True).",
            RejectsWarning,
            stacklevel=2,
        )


def _limited(frames: Iterable[pl.DataFrame], limit: int | None) -> Iterator[pl.DataFrame]:
    """Hand frames on until there are as many rows as are wanted."""
    left = limit
    if left == 0:
        return
    for frame in frames:
        if left is None:
            yield frame
            continue
        yield frame.head(left)
        left -= frame.height
        if left <= 0:
            return


def _kept(frame: pl.DataFrame, predicate: pl.Expr) -> pl.DataFrame:
    """Filter rows; few of them do not keep the block in memory that their texts stand in."""
    kept = frame.filter(predicate)
    if kept.height * _SPARSE > frame.height:
        return kept
    return pl.DataFrame(kept.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _select_columns(source: Source, names: Sequence[str] | None) -> Source:
    """Leave out the columns that nobody asks for and that refuse no row."""
    if names is None:
        return source
    needed = {column.name for column in source.columns if _can_reject(column)} | set(names)
    needed |= {column.only_where[0] for column in source.columns if column.only_where is not None}
    needed |= {*source.dialogue_key, source.array_column or ""}
    return replace(
        source, columns=tuple(column for column in source.columns if column.name in needed)
    )


def _can_reject(column: Column) -> bool:
    """Tell whether a value, or none, in the column can make a row a reject."""
    if column.required or column.kind == "text":  # a lone surrogate is no text
        return True
    return column.kind != "json" and column.otherwise == "reject"
