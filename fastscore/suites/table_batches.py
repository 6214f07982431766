"""Reading a table of any length a batch of rows at a time."""

from collections.abc import Iterator

import polars as pl
from fastscore_machine.stopping import raise_if_stopped

BATCH_ROWS = 1 << 17

Rows = pl.DataFrame | pl.LazyFrame


def hold_if_small(rows: pl.LazyFrame) -> Rows:
    """Read a table of no more than a batch once, for all that is asked of it."""
    first = rows.head(BATCH_ROWS + 1).collect(engine="streaming")
    return first.rechunk() if first.height <= BATCH_ROWS else rows


def batches_of(rows: Rows) -> Iterator[pl.DataFrame]:
    """Yield the rows in order, until asked to stop; those that are held already, at once."""
    if isinstance(rows, pl.DataFrame):
        yield rows
        return
    for batch in rows.collect_batches(
        chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming"
    ):
        raise_if_stopped()
        yield batch


def collected(rows: Rows) -> pl.DataFrame:
    """Return all rows, of what is small whatever the table's length."""
    return rows.lazy().collect(engine="streaming")
