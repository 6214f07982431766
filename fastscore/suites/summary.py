"""Summary statistics of committed tables, the same for any order of rows and any shards.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the metric's range (or, without one, its largest magnitude) and the number of rows, and the 128-bit
sums of those numbers and of their squares do not depend on the order. The grid is as fine as such
sums allow: 2^-60 of the largest magnitude for tens of rows, 2^-52 for millions, 2^-48 for a
thousand million. What rounding costs is of the order of a double's own last bits.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels.sums import COUNT, ExactSums

from fastscore.suites.base import NULL_REASONS, Metric, NullReason

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

Longs = npt.NDArray[np.int64]

ALL = "all"
NORMAL_QUANTILE = 1.96
"""Half the width of a published 95 % interval, in standard errors."""
_GRID_BITS = 62
_SUM_BITS = 126
_LOWEST_EXPONENT = -900
_BATCH_ROWS = 1 << 17
_CELL = "_cell"
_NO_REASONS = pl.DataFrame(
    schema={_CELL: pl.Int64, "metric": pl.String, "reason": pl.String, "len": pl.Int64}
)


def summarise_metrics(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    *,
    suite: str,
    label_table: str = "dialogues",
    key: str = "dialogue",
    switched_off: Mapping[str, NullReason] = MappingProxyType({}),
    sole_reasons: Mapping[str, NullReason] = MappingProxyType({}),
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
    switched_off
        Metrics that the options alone make null in every row, and the reason that stands there:
        it is counted without being read.
    sole_reasons
        Metrics all nulls of which have one reason, whatever the options, and that reason.

    Returns
    -------
    pl.DataFrame
        In `SUMMARY_SCHEMA`, ordered by group (``all`` first), value and metric as declared. Rows
        without the label have no row in that label's group.
    """
    labels = tables[label_table].select(key, *groups)
    cells = _Cells.of_labels(labels, key, _present_labels(labels, groups))
    names = dict.fromkeys(metric.table for metric in metrics)
    of_table = {name: [metric for metric in metrics if metric.table == name] for name in names}
    # a query alone does not fill the processors
    with ThreadPoolExecutor(max_workers=max(1, len(names))) as pool:
        summaries = pool.map(
            lambda name: _summarise_table(
                tables[name], of_table[name], cells, switched_off, sole_reasons
            ),
            names,
        )
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


@dataclass(frozen=True, slots=True)
class _Cells:
    """The combinations of labels that dialogues have, and each dialogue's.

    Parameters
    ----------
    key
        The column that names a dialogue.
    labels
        `_CELL`, then the labels of each cell, whose number is its row.
    hashes, numbers
        Hashes of the dialogues' keys, ascending and distinct; their cells.
    seed
        What the keys were hashed with.
    """

    key: str
    labels: pl.DataFrame
    hashes: npt.NDArray[np.uint64]
    numbers: Longs
    seed: int

    @classmethod
    def of_labels(cls, labels: pl.LazyFrame, key: str, present: Sequence[str]) -> "_Cells":
        """Give the combinations numbers; without labels all dialogues are of one cell."""
        if not present:
            one = pl.DataFrame({_CELL: pl.Series([0], dtype=pl.Int64)})
            return cls(key, one, np.zeros(0, np.uint64), np.zeros(0, np.int64), 0)
        dialogues = labels.unique(key, keep="first").collect(engine="streaming")
        cells = dialogues.select(*present).unique().with_row_index(_CELL).cast({_CELL: pl.Int64})
        numbers = dialogues.join(
            cells, on=present, how="left", nulls_equal=True, maintain_order="left"
        )[_CELL].to_numpy()
        for seed in itertools.count():
            hashes, places = np.unique(dialogues[key].hash(seed).to_numpy(), return_index=True)
            if hashes.size == dialogues.height:
                break
        return cls(key, cells, hashes, numbers[places], seed)

    @property
    def size(self) -> int:
        """How many cells there are; one more, the last, is of rows of no known dialogue."""
        return self.labels.height

    @property
    def columns(self) -> list[str]:
        """What must be read of a table to find its rows' cells."""
        return [self.key] if self.hashes.size else []

    def of_rows(self, rows: pl.DataFrame) -> Longs:
        """Return the cell of each row."""
        if not self.hashes.size:
            return np.zeros(rows.height, np.int64)
        hashes = rows[self.key].hash(self.seed).to_numpy()
        starts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))[: rows.height]
        of_runs = hashes[starts]
        places = np.minimum(np.searchsorted(self.hashes, of_runs), self.hashes.size - 1)
        cells = np.where(self.hashes[places] == of_runs, self.numbers[places], self.size)
        return np.repeat(cells, np.diff(np.append(starts, rows.height)))


def _summarise_table(
    rows: pl.LazyFrame,
    metrics: Sequence[Metric],
    cells: _Cells,
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> pl.DataFrame:
    """Sum once by combination of labels (cell), then by label over the few sums."""
    grids = choose_grids(rows, metrics)
    by_cell = _sum_by_cell(rows, metrics, grids, cells)
    reasons = _known_reasons(by_cell, metrics, switched_off, sole_reasons)
    if reasons is None:
        reasons = _count_reasons(rows, cells)
    records: list[dict[str, Any]] = []
    for group in (ALL, *cells.labels.columns[1:]):
        found = {
            (value, metric, reason): count
            for value, metric, reason, count in _by_value(reasons, cells.labels, group)
            .group_by("value", "metric", "reason")
            .agg(pl.col("len").sum())
            .rows()
        }
        total = _reduce(_by_value(by_cell, cells.labels, group), to_one_row=group == ALL)
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


def _sum_by_cell(
    rows: pl.LazyFrame, metrics: Sequence[Metric], grids: Mapping[str, int], cells: _Cells
) -> pl.DataFrame:
    """Add up every column by cell: a row for each cell that has rows, or the one of no labels."""
    n_rows = np.zeros(cells.size + 1, np.int64)
    n_values = dict.fromkeys(grids, 0)
    sums = {column: ExactSums(cells.size + 1, bits) for column, bits in grids.items()}
    read = rows.select(*cells.columns, *(pl.col(name).cast(pl.Float64) for name in sums))
    for batch in read.collect_batches(chunk_size=_BATCH_ROWS, engine="streaming"):
        cell = cells.of_rows(batch)
        n_rows += np.bincount(cell, minlength=n_rows.size)
        for name, of_column in sums.items():
            n_values[name] += batch.height - batch[name].null_count()
            if batch[name].null_count() < batch.height:
                _add(of_column, name, batch[name].to_numpy(), cell)
    for name, of_column in sums.items():
        if of_column.limbs[:, COUNT].sum() != n_values[name]:
            raise ValueError(f"column {name!r} holds NaN; expected null where there is no value")
    columns: dict[str, pl.Series] = {}
    for metric in metrics:
        name, found = metric.id, sums[metric.id]
        count = found.limbs[:, COUNT]
        least, largest = (
            # no zero is negative: which of two equal ones came first is chance
            pl.Series(np.where(count > 0, found.extremes[:, side] + 0.0, np.nan))
            for side in (0, 1)
        )
        columns |= {
            f"{name}:n": pl.Series(count),
            f"{name}:null": pl.Series(n_rows - count),
            f"{name}:min": least.fill_nan(None),
            f"{name}:max": largest.fill_nan(None),
            f"{name}:squares": pl.Series(found.squares(), dtype=pl.Int128),
        }
        for column in _summed_columns(metric):
            label = f"{name}:sum" if column == name else f"{name}:{column}:sum"
            columns[label] = pl.Series(sums[column].totals(), dtype=pl.Int128)
    known = pl.concat([cells.labels[_CELL], pl.Series(_CELL, [None], dtype=pl.Int64)])
    used = n_rows > 0
    used[0] |= not cells.columns
    return pl.DataFrame({_CELL: known, **columns}).filter(pl.Series(used))


def _add(sums: ExactSums, column: str, values: npt.NDArray[np.float64], cell: Longs) -> None:
    try:
        sums.add(values, cell)
    except ValueError as error:
        raise ValueError(f"column {column!r}, far out of its declared range: {error}") from error


def _known_reasons(
    by_cell: pl.DataFrame,
    metrics: Sequence[Metric],
    switched_off: Mapping[str, NullReason],
    sole_reasons: Mapping[str, NullReason],
) -> pl.DataFrame | None:
    """Count the reasons where those of all nulls are known without being read; else None."""
    counted = [_NO_REASONS]
    for metric in metrics:
        nulls = by_cell[f"{metric.id}:null"]
        if not nulls.sum():
            continue
        reason = sole_reasons.get(metric.id)
        if reason is None and not by_cell[f"{metric.id}:n"].sum():
            reason = switched_off.get(metric.id)
        if reason is None:
            return None
        counted.append(
            by_cell.select(
                _CELL,
                pl.lit(metric.id).alias("metric"),
                pl.lit(reason).alias("reason"),
                nulls.alias("len"),
            )
        )
    return pl.concat(counted)


def _count_reasons(rows: pl.LazyFrame, cells: _Cells) -> pl.DataFrame:
    """Count the reasons of nulls by cell and metric."""
    counted = _NO_REASONS
    for batch in rows.select(*cells.columns, "null_reasons").collect_batches(
        chunk_size=_BATCH_ROWS, engine="streaming"
    ):
        cell = cells.of_rows(batch)
        listed = batch["null_reasons"]
        reasons = listed.explode(empty_as_null=False, keep_nulls=False).struct.unnest()
        of_reason = np.repeat(cell, listed.list.len().fill_null(0).to_numpy())
        found = (
            reasons.select(
                pl.Series(_CELL, of_reason),
                "metric",
                pl.col("reason").cast(pl.String),
            )
            .group_by(_CELL, "metric", "reason")
            .agg(pl.len().cast(pl.Int64))
        )
        counted = (
            pl.concat([counted, found]).group_by(_CELL, "metric", "reason").agg(pl.col("len").sum())
        )
    return counted


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
