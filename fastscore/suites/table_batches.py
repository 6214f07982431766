"""Reading a table once if it is small, and in a streaming fashion if it is not."""

import polars as pl

BATCH_ROWS = 1 << 17

Rows = pl.DataFrame | pl.LazyFrame


def hold_if_small(rows: pl.LazyFrame) -> Rows:
    """Read a table of no more than a batch once, for all that is asked of it."""
    first = rows.head(BATCH_ROWS + 1).collect(engine="streaming")
    return first.rechunk() if first.height <= BATCH_ROWS else rows


def collected(rows: Rows) -> pl.DataFrame:
    """Return all rows of a result that is small compared with its table."""
    return rows.lazy().collect(engine="streaming")
