"""What the output tables of several suites are declared with."""

import polars as pl

from fastscore.suites.declarations import NULL_REASONS_DTYPE, Metric, OutputColumn

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


def metric_column(metric: Metric, description: str = "", dtype: pl.DataType = REAL) -> OutputColumn:
    """Declare the column of a metric. Default of its description: the metric's name."""
    return column(
        metric.id,
        dtype,
        description or f"{metric.name}.",
        metric=metric.id,
        nullable=metric.can_be_null,
    )


DIALOGUE_COLUMN = column(
    "dialogue",
    TEXT,
    "Name of the dialogue, unique in its run: its id, its variants and, where needed, its place.",
)
NULL_REASONS_COLUMN = column(
    "null_reasons", NULL_REASONS_DTYPE, "Which metrics of the row are null, and why."
)
