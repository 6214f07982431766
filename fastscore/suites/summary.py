"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the metric's range (or, without one, its largest magnitude) and the number of rows, and the 128-bit
sums of those numbers and of their squares do not depend on the order. The grid is as fine as such
sums allow: 2^-60 of the largest magnitude for tens of rows, 2^-52 for millions, 2^-48 for a
thousand million. What rounding costs is of the order of a double's own last bits.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fastscore.suites.base import NULL_REASONS, Metric

SUMMARY_SCHEMA: dict[str, pl.DataType] = {
    "suite": pl.String(),
    "group": pl.String(),
    "value": pl.String(),
    "metric": pl.String(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    **{f"n_{reason}": pl.Int64() for reason in NULL_REASONS},
    "mean": pl.Float64(),
    "sd": pl.Float64(),
    "ci_low": pl.Float64(),
    "ci_high": pl.Float64(),
    "minimum": pl.Float64(),
    "maximum": pl.Float64(),
    "micro_numerator": pl.Float64(),
    "micro_denominator": pl.Float64(),
    "micro": pl.Float64(),
}
"""One row for each group, value of it and metric. ``group`` is ``all`` (``value`` null) or a label
column; ``n`` counts values, ``n_null`` the rest, split by reason; ``sd`` is the sample standard
deviation (n - 1), ``ci_low`` and ``ci_high`` the mean -/+ 1.96 sd / sqrt(n), all three null for
fewer than two values; ``micro`` is the ratio of the two sums."""

ALL = "all"
NORMAL_QUANTILE = 1.96
"""Half the width of a published 95 % interval, in standard errors."""
_GRID_BITS = 62
_SUM_BITS = 126
_LOWEST_EXPONENT = -900
_CELL = "_cell"
_NO_REASONS = pl.DataFrame(
    schema={_CELL: pl.UInt32, "metric": pl.String, "reason": pl.String, "len": pl.Int64}
)


def summarise_metrics(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    *,
    suite: str,
    label_table: str = "dialogues",
    key: str = "dialogue",
) -> pl.DataFrame:
    """Summarise metrics over all rows, and by each label.

    Parameters
    ----------
    tables
        Lazy frames of the committed tables by name; read in a streaming fashion.
    metrics
        What to summarise; each names its table, and its column by its id.
    groups
        Label columns of `label_table` to group by; left out where no row has the label.
    suite
        The suite's name, for the first column.
    label_table, key
        The table that holds the labels, and the column by which the other tables join it.

    Returns
    -------
    pl.DataFrame
        In `SUMMARY_SCHEMA`, ordered by group (``all`` first), value and metric as declared. Rows
        without the label have no row in that label's group.
    """
    labels = tables[label_table].select(key, *groups)
    present = _present_labels(labels, groups)
    cells = labels.select(*present).unique().collect(engine="streaming").with_row_index(_CELL)
    summaries = []
    for name in dict.fromkeys(metric.table for metric in metrics):
        rows = tables[name].with_columns(pl.lit(0, dtype=pl.UInt32).alias(_CELL))
        if present:
            cell_of_key = labels.unique(key, keep="first").join(
                cells.lazy(), on=present, how="left", nulls_equal=True
            )
            rows = tables[name].join(cell_of_key.select(key, _CELL), on=key, how="left")
        of_table = [metric for metric in metrics if metric.table == name]
        grids = choose_grids(tables[name], of_table)
        summaries.append(_summarise_table(rows, of_table, grids, present, cells))
    order = {metric.id: position for position, metric in enumerate(metrics)}
    rank = {group: position for position, group in enumerate((ALL, *groups))}
    return (
        pl.concat(summaries)
        .with_columns(pl.lit(suite).alias("suite"))
        .select(*SUMMARY_SCHEMA)
        .sort(
            pl.col("group").replace_strict(rank, return_dtype=pl.Int64),
            "value",
            pl.col("metric").replace_strict(order, return_dtype=pl.Int64),
        )
    )


def _present_labels(labels: pl.LazyFrame, groups: Sequence[str]) -> list[str]:
    if not groups:
        return []
    found = labels.select(pl.col(*groups).is_not_null().any()).collect(engine="streaming")
    return [group for group in groups if found[group].item()]


def _summarise_table(
    rows: pl.LazyFrame,
    metrics: Sequence[Metric],
    grids: Mapping[str, int],
    groups: Sequence[str],
    cells: pl.DataFrame,
) -> pl.DataFrame:
    """Sum once by combination of labels (cell), then by label over the few sums."""
    sums = [expression for metric in metrics for expression in _sums(metric, grids)]
    if groups:
        by_cell = rows.group_by(_CELL).agg(*sums).collect(engine="streaming")
    else:
        by_cell = rows.select(pl.lit(0, dtype=pl.UInt32).alias(_CELL), *sums).collect(
            engine="streaming"
        )
    any_null = by_cell.select(pl.col(r"^.*:null$").sum()).sum_horizontal().sum() > 0
    reasons = _count_reasons(rows) if any_null else _NO_REASONS
    records: list[dict[str, Any]] = []
    for group in (ALL, *groups):
        found = {
            (value, metric, reason): count
            for value, metric, reason, count in _by_value(reasons, cells, group)
            .group_by("value", "metric", "reason")
            .agg(pl.col("len").sum())
            .rows()
        }
        total = _reduce(_by_value(by_cell, cells, group), to_one_row=group == ALL)
        records.extend(
            {"group": group, **_record(row, metric, grids, found)}
            for row in total.to_dicts()
            for metric in metrics
        )
    schema = {name: dtype for name, dtype in SUMMARY_SCHEMA.items() if name != "suite"}
    return pl.DataFrame(records, schema=schema, orient="row")


def _by_value(frame: pl.DataFrame, cells: pl.DataFrame, group: str) -> pl.DataFrame:
    """Put the value of a label, in place of the cell, before each row that has one."""
    if group == ALL:
        return frame.with_columns(pl.lit(None, dtype=pl.String).alias("value")).drop(_CELL)
    value_of_cell = cells.select(_CELL, pl.col(group).alias("value"))
    return frame.join(value_of_cell, on=_CELL).drop_nulls("value").drop(_CELL)


def _reduce(sums: pl.DataFrame, *, to_one_row: bool) -> pl.DataFrame:
    """Add up the cells of each value; an empty table still gives its one row."""
    reduced = [
        pl.col(r"^.*:(n|null|sum|squares)$").sum(),
        pl.col(r"^.*:min$").min(),
        pl.col(r"^.*:max$").max(),
    ]
    if to_one_row:
        return sums.select(pl.lit(None, dtype=pl.String).alias("value"), *reduced)
    return sums.group_by("value").agg(*reduced)


def _summed_columns(metric: Metric) -> list[str]:
    extra = (metric.numerator, metric.denominator)
    return [metric.id, *(column for column in extra if column is not None)]


def choose_grids(rows: pl.LazyFrame, metrics: Sequence[Metric]) -> dict[str, int]:
    """Return the grid of every column that these metrics sum, as the bits after the point.

    A metric's largest magnitude is that of its declared range; only columns without one are read.
    """
    columns = list(dict.fromkeys(name for metric in metrics for name in _summed_columns(metric)))
    largest = {
        metric.id: max(abs(metric.minimum), abs(metric.maximum))
        for metric in metrics
        if metric.minimum is not None and metric.maximum is not None
    }
    unbounded = [column for column in columns if column not in largest]
    found = rows.select(
        pl.len().alias("_rows"), pl.col(unbounded).cast(pl.Float64).abs().max()
    ).collect(engine="streaming")
    largest |= {column: found[column].item() or 0.0 for column in unbounded}
    bits = min(_GRID_BITS, (_SUM_BITS - int(found["_rows"].item()).bit_length()) // 2)
    return {
        column: bits - max(math.frexp(largest[column])[1], _LOWEST_EXPONENT) for column in columns
    }


def fixed_point(column: str, bits: int) -> pl.Expr:
    """Return a column in multiples of 2^-bits, as 128-bit integers whose sums are exact."""
    return (pl.col(column).cast(pl.Float64) * 2.0**bits).round().cast(pl.Int128)


def _sums(metric: Metric, grids: Mapping[str, int]) -> list[pl.Expr]:
    name = metric.id
    fixed = fixed_point(name, grids[name])
    return [
        pl.col(name).count().cast(pl.Int64).alias(f"{name}:n"),
        pl.col(name).null_count().cast(pl.Int64).alias(f"{name}:null"),
        pl.col(name).min().cast(pl.Float64).alias(f"{name}:min"),
        pl.col(name).max().cast(pl.Float64).alias(f"{name}:max"),
        fixed.sum().alias(f"{name}:sum"),
        (fixed * fixed).sum().alias(f"{name}:squares"),
        *(
            fixed_point(column, grids[column]).sum().alias(f"{name}:{column}:sum")
            for column in _summed_columns(metric)[1:]
        ),
    ]


def _count_reasons(rows: pl.LazyFrame) -> pl.DataFrame:
    return (
        rows.select(_CELL, "null_reasons")
        .filter(pl.col("null_reasons").list.len() > 0)
        .explode("null_reasons")
        .unnest("null_reasons")
        .group_by(_CELL, "metric", "reason")
        .agg(pl.len().cast(pl.Int64))
        .with_columns(pl.col("reason").cast(pl.String))
        .select(*_NO_REASONS.columns)
        .collect(engine="streaming")
    )


def _record(
    row: Mapping[str, Any],
    metric: Metric,
    grids: Mapping[str, int],
    reasons: Mapping[tuple[str | None, str, str], int],
) -> dict[str, Any]:
    name, value = metric.id, row["value"]
    count, total, squares = row[f"{name}:n"], row[f"{name}:sum"], row[f"{name}:squares"]
    mean = _scaled(total, count, grids[name]) if count else None
    deviation = _deviation(total, squares, count, grids[name]) if count > 1 else None
    half = None if deviation is None else NORMAL_QUANTILE * deviation / math.sqrt(count)
    record = {
        "value": value,
        "metric": name,
        "n": count,
        "n_null": row[f"{name}:null"],
        **{f"n_{reason}": reasons.get((value, name, reason), 0) for reason in NULL_REASONS},
        "mean": mean,
        "sd": deviation,
        "ci_low": None if mean is None or half is None else mean - half,
        "ci_high": None if mean is None or half is None else mean + half,
        "minimum": row[f"{name}:min"],
        "maximum": row[f"{name}:max"],
    }
    if metric.numerator is not None and metric.denominator is not None:
        numerator, denominator = (
            _scaled(row[f"{name}:{column}:sum"], 1, grids[column])
            for column in (metric.numerator, metric.denominator)
        )
        record["micro_numerator"] = numerator
        record["micro_denominator"] = denominator
        record["micro"] = numerator / denominator if denominator else None
    return record


def _scaled(total: int, count: int, bits: int) -> float:
    """Return total * 2^-bits / count, rounded once."""
    return total / (count << bits) if bits >= 0 else (total << -bits) / count


def _deviation(total: int, squares: int, count: int, bits: int) -> float:
    """Return the sample standard deviation of whole numbers that stand for multiples of 2^-bits."""
    variance = (count * squares - total * total) / (count * (count - 1))
    return math.ldexp(math.sqrt(variance), -bits)
