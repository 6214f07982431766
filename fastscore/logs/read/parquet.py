"""Logs of stored columns, Parquet and Arrow, read in batches of rows."""

from collections.abc import Iterator, Sequence

import polars as pl

from fastscore.errors import InputError
from fastscore.logs.file_ranges import FileRange
from fastscore.logs.inputs.arrow_files import arrow_frames, arrow_rows, arrow_schema, is_arrow
from fastscore.logs.inputs.parquet_footer import group_sizes
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import UNREADABLE_PARQUET, Reject, reason_of
from fastscore.logs.read.stored_columns import StoredColumns, check_stored, convert_stored
from fastscore.suites.declarations import Column

MOST_ROWS = 1 << 18
_READ_BYTES = 64 << 20
_DECODED = 2
"""Memory of rows while they are read: unpacked, and as columns."""


def parquet_rows(path: str, name: str) -> int:
    """Count the rows of the file at ``path``, called ``name`` in errors."""
    try:
        if is_arrow(path):
            return arrow_rows(path)
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except UNREADABLE_PARQUET as error:
        raise _unreadable(name, error) from error


def read_parquet(
    file_range: FileRange, columns: Sequence[Column], *, rows: int | None = None
) -> Iterator[tuple[int, pl.DataFrame, list[Reject]]]:
    """Read a byte range's rows in batches.

    Parameters
    ----------
    file_range
        The range.
    columns
        The declared columns.
    rows
        Rows per batch; None for about `_READ_BYTES`.

    Yields
    ------
    tuple
        The number of rows read; the good rows: ``line`` and the declared columns; the rejects.

    Raises
    ------
    InputError
        When the file is damaged, lacks a required column, or has a column of an unusable type.
    MemoryLimitError
        When rows exceed the memory limit.
    """
    stored = _stored(file_range, columns)
    for start, raw in _frames(file_range, stored, rows):
        count = raw.height
        frame, rejects = convert_stored(stored, raw, start + 1)
        long = _too_long(file_range.file, raw, start + 1)
        if long:
            lines = {reject.line for reject in long}
            frame = frame.filter(~pl.col("line").is_in(lines))
            rejects = [*long, *(reject for reject in rejects if reject.line not in lines)]
            rejects.sort(key=lambda reject: reject.line)
        yield count, frame, rejects


def _frames(
    file_range: FileRange, stored: StoredColumns, rows: int | None
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield rows of the wanted columns, with the number of rows before them."""
    if not is_arrow(file_range.path):
        sizes = _group_sizes(file_range, stored)
        rows = rows or _rows_at_once(sizes)
        for start in range(file_range.start, file_range.stop, rows):
            count = min(rows, file_range.stop - start)
            taken = _DECODED * _slice_size(sizes, start, count)
            file_range.limits.check_memory(file_range.file, taken)
            yield start, _read(file_range, stored, start, count)
        return
    start = file_range.start
    try:
        for frame in arrow_frames(file_range.path, [*stored.dtypes], start, file_range.stop):
            file_range.limits.check_memory(file_range.file)
            yield start, frame
            start += frame.height
    except UNREADABLE_PARQUET as error:
        raise _unreadable(file_range.file, error) from error


def _too_long(file: str, raw: pl.DataFrame, first_line: int) -> list[Reject]:
    """Return the rejects of rows whose texts are too long together."""
    texts = [name for name, dtype in raw.schema.items() if dtype == pl.String]
    if not texts:
        return []
    sizes = raw.select(pl.sum_horizontal(pl.col(texts).str.len_bytes().cast(pl.Int64))).to_series()
    return [
        Reject(
            file,
            first_line + row,
            None,
            None,
            "line_too_long",
            f"{sizes[row]} bytes",
            f"at most {MAX_RECORD_BYTES} bytes a row",
            "",
        )
        for row in (sizes > MAX_RECORD_BYTES).arg_true().to_list()
    ]


def _unreadable(path: str, error: BaseException) -> InputError:
    """Return the error for a file that cannot be read."""
    return InputError(
        f"The file {path!r} cannot be read: {reason_of(error)}.",
        "Write it again from its source.",
    )


def _stored(file_range: FileRange, columns: Sequence[Column]) -> StoredColumns:
    try:
        if is_arrow(file_range.path):
            schema = arrow_schema(file_range.path)
        else:
            schema = pl.scan_parquet(file_range.path, glob=False).collect_schema()
    except UNREADABLE_PARQUET as error:
        raise _unreadable(file_range.file, error) from error
    return check_stored(file_range.file, schema, columns, "Write the file again with that type.")


def _group_sizes(file_range: FileRange, stored: StoredColumns) -> list[tuple[int, int]]:
    """Return the rows of each row group, and the unpacked bytes of the wanted columns."""
    try:
        return group_sizes(file_range.path, stored.dtypes)
    except OSError as error:
        raise _unreadable(file_range.file, error) from error


def _rows_at_once(sizes: Sequence[tuple[int, int]]) -> int:
    """Return the number of rows per batch, from the mean size of a row."""
    n_rows, n_bytes = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
    return min(max(_READ_BYTES * n_rows // max(n_bytes, 1), 1), MOST_ROWS)


def _slice_size(sizes: Sequence[tuple[int, int]], start: int, count: int) -> int:
    """Estimate the unpacked bytes of some rows, by their share of each row group."""
    total = first = 0
    for rows, size in sizes:
        inside = min(start + count, first + rows) - max(start, first)
        total += size * inside // rows if inside > 0 else 0
        first += rows
    return total


def _read(file_range: FileRange, stored: StoredColumns, start: int, count: int) -> pl.DataFrame:
    """Read some rows of the wanted columns."""
    if not stored.dtypes:
        return pl.DataFrame(height=count)
    try:
        scan = pl.scan_parquet(file_range.path, glob=False).slice(start, count)
        return scan.select(*stored.dtypes).collect()
    except UNREADABLE_PARQUET as error:
        raise _unreadable(file_range.file, error) from error
