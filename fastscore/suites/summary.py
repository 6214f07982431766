"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the largest magnitude and the number of values in the column, and the 128-bit sums of those
numbers do not depend on their order. The grid is at least 2^-52 of the largest magnitude for
means, and never coarser than 2^-40 of it for standard deviations (up to 2^46 rows), so what
rounding costs is of the order of a double's own last bit, or of 1e-12 of the range.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
    "minimum": pl.Float64(),
    "maximum": pl.Float64(),
    "micro_numerator": pl.Float64(),
    "micro_denominator": pl.Float64(),
    "micro": pl.Float64(),
}
"""One row for each group, value of it and metric. ``group`` is ``all`` (``value`` null) or a label
column; ``n`` counts values, ``n_null`` the rest, split by reason; ``sd`` is the sample standard
deviation (n - 1), null for fewer than two values; ``micro`` is the ratio of the two sums."""

ALL = "all"
_MEAN_BITS = 52
_SUM_BITS = 126
_LOWEST_EXPONENT = -900
_NO_VALUE = pl.lit(None, dtype=pl.String).alias("_value")


@dataclass(frozen=True, slots=True)
class _Grid:
    """Fixed-point scales of a column: values are rounded to multiples of 2^-bits."""

    mean_bits: int
    square_bits: int

    @classmethod
    def of(cls, magnitude: float, count: int) -> "_Grid":
        exponent = max(math.frexp(magnitude)[1], _LOWEST_EXPONENT)
        room = (_SUM_BITS - count.bit_length()) // 2
        return cls(_MEAN_BITS - exponent, min(_MEAN_BITS, room) - exponent)


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
    summaries = []
    for name in dict.fromkeys(metric.table for metric in metrics):
        table = tables[name]
        if present and name != label_table:
            table = table.join(labels.select(key, *present), on=key, how="left")
        of_table = [metric for metric in metrics if metric.table == name]
        summaries.append(_summarise_table(table, of_table, present))
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
    table: pl.LazyFrame, metrics: Sequence[Metric], groups: Sequence[str]
) -> pl.DataFrame:
    grids = _choose_grids(table, metrics)
    sums = [expression for metric in metrics for expression in _sums(metric, grids)]
    has_reasons = "null_reasons" in table.collect_schema().names()
    queries = []
    for group in (ALL, *groups):
        rows = table.with_columns(
            pl.lit(group).alias("_group"),
            _NO_VALUE if group == ALL else pl.col(group).alias("_value"),
        )
        if group == ALL:
            queries.append(rows.select(pl.lit(ALL).alias("_group"), _NO_VALUE, *sums))
        else:
            rows = rows.filter(pl.col("_value").is_not_null())
            queries.append(rows.group_by("_group", "_value").agg(*sums))
        if has_reasons:
            queries.append(_count_reasons(rows))
    frames = pl.collect_all(queries, engine="streaming")
    width = 2 if has_reasons else 1
    records = [
        _record(row, metric, grids, _reasons_of(frames[position + 1]) if has_reasons else {})
        for position in range(0, len(frames), width)
        for row in frames[position].to_dicts()
        for metric in metrics
    ]
    schema = {name: dtype for name, dtype in SUMMARY_SCHEMA.items() if name != "suite"}
    return pl.DataFrame(records, schema=schema, orient="row")


def _summed_columns(metric: Metric) -> list[str]:
    extra = (metric.numerator, metric.denominator)
    return [metric.id, *(column for column in extra if column is not None)]


def _choose_grids(table: pl.LazyFrame, metrics: Sequence[Metric]) -> dict[str, _Grid]:
    columns = list(dict.fromkeys(name for metric in metrics for name in _summed_columns(metric)))
    found = table.select(
        pl.len().alias("_rows"), pl.col(*columns).cast(pl.Float64).abs().max()
    ).collect(engine="streaming")
    rows = found["_rows"].item()
    return {column: _Grid.of(found[column].item() or 0.0, rows) for column in columns}


def _fixed(column: str, bits: int) -> pl.Expr:
    return (pl.col(column).cast(pl.Float64) * 2.0**bits).round().cast(pl.Int128)


def _sums(metric: Metric, grids: Mapping[str, _Grid]) -> list[pl.Expr]:
    name, grid = metric.id, grids[metric.id]
    coarse = _fixed(name, grid.square_bits)
    expressions = [
        pl.col(name).count().alias(f"{name}:n"),
        pl.col(name).null_count().alias(f"{name}:null"),
        pl.col(name).min().cast(pl.Float64).alias(f"{name}:min"),
        pl.col(name).max().cast(pl.Float64).alias(f"{name}:max"),
        _fixed(name, grid.mean_bits).sum().alias(f"{name}:sum"),
        coarse.sum().alias(f"{name}:coarse"),
        (coarse * coarse).sum().alias(f"{name}:squares"),
    ]
    for column in _summed_columns(metric)[1:]:
        total = _fixed(column, grids[column].mean_bits).sum()
        expressions.append(total.alias(f"{name}:{column}:sum"))
    return expressions


def _count_reasons(rows: pl.LazyFrame) -> pl.LazyFrame:
    return (
        rows.select("_value", "null_reasons")
        .filter(pl.col("null_reasons").list.len() > 0)
        .explode("null_reasons")
        .unnest("null_reasons")
        .group_by("_value", "metric", "reason")
        .len()
    )


def _reasons_of(counts: pl.DataFrame) -> dict[tuple[str | None, str], dict[str, int]]:
    found: dict[tuple[str | None, str], dict[str, int]] = {}
    for value, metric, reason, count in counts.rows():
        found.setdefault((value, metric), {})[f"n_{reason}"] = count
    return found


def _record(
    row: Mapping[str, object],
    metric: Metric,
    grids: Mapping[str, _Grid],
    reasons: Mapping[tuple[str | None, str], Mapping[str, int]],
) -> dict[str, object]:
    name, grid = metric.id, grids[metric.id]
    value = row["_value"]
    assert value is None or isinstance(value, str)
    count = _whole(row[f"{name}:n"])
    of_value = reasons.get((value, name), {})
    record: dict[str, object] = {
        "group": row["_group"],
        "value": value,
        "metric": name,
        "n": count,
        "n_null": row[f"{name}:null"],
        **{f"n_{reason}": of_value.get(f"n_{reason}", 0) for reason in NULL_REASONS},
        "mean": _ratio(_whole(row[f"{name}:sum"]), count, grid.mean_bits),
        "sd": _deviation(
            _whole(row[f"{name}:coarse"]),
            _whole(row[f"{name}:squares"]),
            count,
            grid.square_bits,
        ),
        "minimum": row[f"{name}:min"],
        "maximum": row[f"{name}:max"],
    }
    if metric.numerator is not None and metric.denominator is not None:
        numerator = _micro_sum(row, metric, metric.numerator, grids)
        denominator = _micro_sum(row, metric, metric.denominator, grids)
        record["micro_numerator"] = numerator
        record["micro_denominator"] = denominator
        record["micro"] = numerator / denominator if denominator else None
    return record


def _micro_sum(
    row: Mapping[str, object], metric: Metric, column: str, grids: Mapping[str, _Grid]
) -> float:
    return _ratio(_whole(row[f"{metric.id}:{column}:sum"]), 1, grids[column].mean_bits) or 0.0


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


def _ratio(total: int, count: int, bits: int) -> float | None:
    """Return total * 2^-bits / count, rounded once; None for nothing."""
    if count == 0:
        return None
    return total / (count << bits) if bits >= 0 else (total << -bits) / count


def _deviation(total: int, squares: int, count: int, bits: int) -> float | None:
    """Return the sample standard deviation of whole numbers that stand for multiples of 2^-bits."""
    if count < 2:
        return None
    variance = (count * squares - total * total) / (count * (count - 1))
    return math.ldexp(math.sqrt(variance), -bits)
