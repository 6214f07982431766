"""What the output tables of several suites are declared with."""

import polars as pl

from fastscore.suites.declarations import NULL_REASONS_DTYPE, OutputColumn

TEXT = pl.String()
TEXTS = pl.List(pl.String())
WHOLE = pl.Int64()
REAL = pl.Float64()
BOOLEAN = pl.Boolean()


def column(
    name: str,
    dtype: pl.DataType,
    description: str,
    *,
    metric: str | None = None,
    nullable: bool = False,
) -> OutputColumn:
    """Declare a column of an output table in a line."""
    return OutputColumn(
        name=name, dtype=dtype, description=description, metric=metric, nullable=nullable
    )


NULL_REASONS_COLUMN = column(
    "null_reasons", NULL_REASONS_DTYPE, "Which metrics of the row are null, and why."
)
