"""Reading a table of any length a batch of rows at a time."""

from collections.abc import Iterable

import polars as pl

BATCH_ROWS = 1 << 17

Rows = pl.DataFrame | pl.LazyFrame


def hold_if_small(rows: pl.LazyFrame) -> Rows:
    """Read a table of no more than a batch once, for all that is asked of it."""
    first = rows.head(BATCH_ROWS + 1).collect(engine="streaming")
    return first.rechunk() if first.height <= BATCH_ROWS else rows


def batches_of(rows: Rows) -> Iterable[pl.DataFrame]:
    """Yield the rows in order; those that are held already, at once."""
    if isinstance(rows, pl.DataFrame):
        return (rows,)
    return rows.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True, engine="streaming")


def collected(rows: Rows) -> pl.DataFrame:
    """Return all rows, of what is small whatever the table's length."""
    return rows.lazy().collect(engine="streaming")
