"""Arrow IPC files and streams, Feather among them: their rows, some at a time."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from fastscore.logs.inputs.first_bytes import ARROW_FILE, ARROW_STREAM

ROWS_AT_ONCE = 1 << 16


def is_arrow(source: Any) -> bool:
    """Tell whether a path, or an open file, holds Arrow's format of files or of streams."""
    if isinstance(source, str):
        with open(source, "rb") as file:
            head = file.read(len(ARROW_FILE))
    else:
        head = source.read(len(ARROW_FILE))
        source.seek(0)
    return head.startswith((ARROW_FILE, ARROW_STREAM))


def arrow_schema(source: Any) -> pl.Schema:
    """Return the columns of an Arrow file and their types, as polars has them."""
    with _opened(source) as file:
        empty = pl.from_arrow(_reader(file).schema.empty_table())
    assert isinstance(empty, pl.DataFrame)
    return empty.schema


def arrow_rows(source: Any) -> int:
    """Count the rows of an Arrow file."""
    return sum(batch.num_rows for batch in _batches(source, ()))


def arrow_frames(
    source: Any, columns: Sequence[str] | None = None, start: int = 0, stop: int | None = None
) -> Iterator[pl.DataFrame]:
    """Yield rows of an Arrow file, in order.

    Parameters
    ----------
    source
        Its path, or its bytes as an open file.
    columns
        The columns that are read, None for all.
    start, stop
        Which rows.
    """
    first = 0
    for batch in _batches(source, columns):
        last = first + batch.num_rows
        if columns or columns is None:
            batch.validate(full=True)  # what its bytes say of themselves is not taken for true
        low, high = max(start, first), last if stop is None else min(stop, last)
        for begin in range(low, high, ROWS_AT_ONCE):
            count = min(high - begin, ROWS_AT_ONCE)
            if columns is not None and not columns:
                yield pl.DataFrame(height=count)
                continue
            frame = pl.from_arrow(batch.slice(begin - first, count))
            assert isinstance(frame, pl.DataFrame)
            yield frame if columns is None else frame.select(columns)
        first = last
        if stop is not None and last >= stop:
            return


def _batches(source: Any, columns: Sequence[str] | None) -> Iterator[Any]:
    """Yield the record batches; of columns that are not wanted the first alone is unpacked."""
    import pyarrow as pa

    with _opened(source) as file:
        schema = _reader(file).schema
        fields = [index for index, name in enumerate(schema.names) if name in (columns or ())]
        wanted = [] if columns is None else fields or [0][: len(schema.names)]
        file.seek(0)
        reader = _reader(file, pa.ipc.IpcReadOptions(included_fields=wanted))
        if isinstance(reader, pa.ipc.RecordBatchFileReader):
            yield from (reader.get_batch(index) for index in range(reader.num_record_batches))
        else:
            yield from reader


def _opened(source: Any) -> Any:
    import pyarrow as pa

    # not mapped: a file that shrinks meanwhile would end the process
    return pa.OSFile(source) if isinstance(source, str) else pa.BufferReader(source.getvalue())


def _reader(file: Any, options: Any = None) -> Any:
    import pyarrow as pa

    head = file.read(len(ARROW_FILE))
    file.seek(0)
    is_file = bytes(head) == ARROW_FILE
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(file, options=options)
