"""Sums of metrics by dialogue, the same for any split of rows, and estimates of means from them.

Sums are kept in whole numbers: each value is rounded to a fixed-point grid that is chosen from
the metric's range (or, without one, its largest magnitude) and the number of rows, and the 128-bit
sums of those numbers and of their squares do not depend on the order. The grid is as fine as such
sums allow: 2^-60 of the largest magnitude for tens of rows, 2^-52 for millions, 2^-48 for a
thousand million. The rounding error is of the order of a double's own last bits.

One function gives a metric's mean, unit, interval, exclusions and nulls (`estimate`). Rows whose
value a definition fixes (`Metric.fixed_where`) are left out, and rows of different scales
(`Scale.by`) are kept apart. The unit is that of the design.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import segment_moments
from fastscore_kernels.segments import Moments

from fastscore.errors import UsageError, did_you_mean, listed
from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.suites.base import Suite
from fastscore.suites.columns import BATCH_ROWS, Rows, collected, filled
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS_DTYPE, Design, Metric

_GRID_BITS = 62
_SUM_BITS = 126
_LOWEST_EXPONENT = -900
_WIDEST = 1024.0
"""Beyond this end of a range, the largest magnitude is read as if there was no range."""
_RUNS_AT_ONCE = 1 << 20
"""The number of sums that are merged at once, or twice what the last merge left if that is more."""
TOTALS = (
    pl.col(r"^.*:(rows|n|sum|squares|fixed|at_minimum|at_maximum|parts)$").sum(),
    pl.col(r"^.*:(minimum|least)$").min(),
    pl.col(r"^.*:(maximum|largest)$").max(),
)
"""How the sums of rows (`sum_rows`) are added up again."""


def summed_columns(metrics: Iterable[Metric]) -> dict[str, pl.Expr]:
    """Return the columns that are summed for metrics, by name."""
    columns: dict[str, pl.Expr] = {}
    for metric in metrics:
        for name in (metric.id, *(metric.micro or ())):
            columns[name] = pl.col(name).cast(pl.Float64)
        if metric.fixed_where:
            columns[open_column(metric)] = defined_value(metric).cast(pl.Float64)
    return columns


def open_column(metric: Metric) -> str:
    """Return the summed column of the values that a metric's definition leaves open."""
    return f"{metric.id}:open" if metric.fixed_where else metric.id


def scale_columns(metrics: Iterable[Metric]) -> dict[str, pl.Expr]:
    """Return the scale of each open value, of metrics that have several."""
    return {
        f"{metric.id}:scale": pl.when(defined_value(metric).is_not_null()).then(metric.scale.by)
        for metric in metrics
        if metric.scale.by
    }


def size_of(rows: Rows, metrics: Sequence[Metric]) -> pl.DataFrame:
    """Return what grids depend on: ``:rows``, and the largest magnitudes without a range."""
    ranges = _largest_of_ranges(metrics)
    # open values are among all values
    columns = (name for name in summed_columns(metrics) if not name.endswith(":open"))
    unbounded = [column for column in columns if column not in ranges]
    n_rows = pl.len().cast(pl.Int64).alias(":rows")
    return collected(rows.select(n_rows, pl.col(unbounded).cast(pl.Float64).abs().max()))


def grids_of(size: pl.DataFrame, metrics: Sequence[Metric]) -> dict[str, int]:
    """Return the grid of every summed column of a table of this size: bits after the point.

    A metric's largest magnitude is that of its declared range; only columns without one are read.
    """
    found = size.row(0, named=True)
    largest = {**{name: end or 0.0 for name, end in found.items()}, **_largest_of_ranges(metrics)}
    bits = min(_GRID_BITS, (_SUM_BITS - found[":rows"].bit_length()) // 2)
    return {
        column: bits - max(math.frexp(largest[column.removesuffix(":open")])[1], _LOWEST_EXPONENT)
        for column in summed_columns(metrics)
    }


def _largest_of_ranges(metrics: Sequence[Metric]) -> dict[str, float]:
    ends = {metric.id: (metric.scale.minimum, metric.scale.maximum) for metric in metrics}
    largest = {
        id: max(abs(low), abs(high))
        for id, (low, high) in ends.items()
        if low is not None and high is not None
    }
    # values may be far below the ends of a wide range: they would all be 0 on its grid
    return {id: end for id, end in largest.items() if end <= _WIDEST}


def mean_of(total: int, count: int, bits: int) -> float:
    """Return total * 2^-bits / count, rounded once."""
    return total / (count << bits) if bits >= 0 else (total << -bits) / count


def sum_rows(
    rows: Rows,
    keys: Sequence[str],
    by: Sequence[str | pl.Expr],
    grids: Mapping[str, int],
    scales: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> pl.DataFrame:
    """Return the number of rows, sums of values, ends of scales and true flags.

    Each run of rows with equal ``keys`` is summed first. ``by`` are expressions of the keys.
    Scales and flags are named ``ID:scale`` and ``ID:FLAG``.
    """
    # of a table that is scanned, what other passes add up is not read
    rows = rows.lazy().select(*dict.fromkeys((*keys, *grids, *scales, *flags)))
    others = [
        *(pl.col(scales).min().name.suffix(":least"), pl.col(scales).max().name.suffix(":largest")),
        pl.col(flags).sum().cast(pl.Int64),
    ]

    def sum_runs(batch: pl.DataFrame) -> pl.DataFrame:
        runs = batch.select(pl.struct(keys).rle_id().alias(":run")).to_series()
        begins = np.flatnonzero(np.diff(runs.to_numpy(), prepend=np.uint32(0xFFFFFFFF)))
        offsets = np.append(begins, batch.height)
        sums = _moments_of_runs(batch, offsets, grids)
        summed = batch.select(keys)[begins].select(*by).hstack(sums)
        if not scales and not flags:
            return summed
        return summed.hstack(batch.group_by(runs, maintain_order=True).agg(others).drop(":run"))

    def merged() -> pl.DataFrame:
        names = parts[0].columns
        return merge_sums(pl.concat(parts).lazy(), names[: len(by)], grids).select(names)

    parts: list[pl.DataFrame] = []
    height, most = 0, _RUNS_AT_ONCE
    for batch in rows.collect_batches(chunk_size=4 * BATCH_ROWS, engine="streaming"):
        parts.append(sum_runs(batch))
        height += parts[-1].height
        if height > most:
            parts = [merged()]
            height, most = parts[0].height, max(most, 2 * parts[0].height)
    if not parts:  # a table without rows may have no batch
        parts = [sum_runs(collected(rows.head(0)))]
    return merged()


def _moments_of_runs(
    rows: pl.DataFrame, offsets: npt.NDArray[np.int64], grids: Mapping[str, int]
) -> list[pl.Series]:
    """Return the rows of each run, and of each column its sums on a grid and its ends."""
    moments = {}
    for column, bits in grids.items():
        values = rows[column]
        if values.null_count() == rows.height:  # as of what the options switch off
            found = segment_moments(np.empty(0), np.zeros_like(offsets), bits)
        else:
            found = segment_moments(filled(values, math.nan).to_numpy(), offsets, bits)
        _check_values(values, found, bits)
        moments[column] = found
    # of all columns in one query
    whole = _whole_numbers([half for of in moments.values() for half in (of.sums, of.squares)])
    sums, n = [pl.Series(":rows", np.diff(offsets))], offsets.size - 1
    for place, (column, found) in enumerate(moments.items()):
        sums += [
            pl.Series(f"{column}:n", found.counts),
            whole.slice(2 * place * n, n).alias(f"{column}:sum"),
            whole.slice((2 * place + 1) * n, n).alias(f"{column}:squares"),
            pl.Series(f"{column}:minimum", found.ends[0], nan_to_null=True),
            pl.Series(f"{column}:maximum", found.ends[1], nan_to_null=True),
        ]
    return sums


def _whole_numbers(words: Sequence[npt.NDArray[np.uint64]]) -> pl.Series:
    """Return 128-bit integers of their upper and lower halves, those of all arrays in a row."""
    high, low = np.concatenate(words, axis=1)
    halves = pl.DataFrame({"high": high.view(np.int64), "low": low})
    upper, lower = pl.col("high").cast(pl.Int128), pl.col("low").cast(pl.Int128)
    return halves.select(upper * pl.lit(1 << 64, pl.Int128) + lower).to_series()


def _check_values(values: pl.Series, found: Moments, bits: int) -> None:
    """Refuse a column with NaN, infinities or values beyond its grid."""
    if found.counts.sum() < len(values) - values.null_count():
        raise ValueError(f"column {values.name!r} holds NaN; expected null if there is no value")
    if np.fmax.reduce(np.abs(found.ends), axis=None, initial=0.0) > 2.0 ** (_GRID_BITS - bits):
        raise ValueError(
            f"column {values.name!r}, far out of its declared range: a value lies beyond "
            f"2**{_GRID_BITS - bits} in magnitude"
        )


def merge_sums(
    sums: pl.LazyFrame, by: Sequence[str | pl.Expr], grids: Iterable[str]
) -> pl.DataFrame:
    """Add up sums of several tables, made by `sum_rows` by finer columns."""
    of_columns = (pl.col(rf"^{re.escape(name)}:(scale:)?\w+$") for name in grids)
    chosen = sums.select(*by, ":rows", *of_columns)
    names = chosen.collect_schema().names()[: len(by)]
    return collected(chosen.group_by(names).agg(*TOTALS))


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The metrics of one table, by dialogue.

    ``frame`` has a row for each dialogue, with rows in the table or without: ``id``, ``pair``,
    ``unit``, ``repeat``, ``label:NAME``, ``rows``, and ``scale:NAME`` for each column of `Scale.by`
    (a row for each scale then). For each metric, of the rows in which its definition leaves the
    value open: ``ID:exact`` (the sum in multiples of 2^-bits), ``ID:sum`` (rounded once), ``ID:n``,
    ``ID:at_minimum`` and ``ID:at_maximum`` (values at the ends of its range). Of the others:
    ``ID:fixed`` (rows) and ``ID:left_out`` (values). ``ID:parts`` counts what was asked for
    (`Design.asked`). ``nulls`` has ``id``, ``metric``, ``reason`` and ``n``. ``lacking`` counts by
    columns of the design the dialogues in which all are null: such a dialogue is a unit of its own,
    and a pair with those of its name in other runs.
    """

    metrics: tuple[Metric, ...]
    frame: pl.DataFrame
    nulls: pl.DataFrame
    bits: Mapping[str, int]
    lacking: Mapping[tuple[str, ...], int]

    def where(self, rows: pl.Expr) -> "Sums":
        """Keep the dialogues for which a condition holds."""
        frame = self.frame.filter(rows)
        nulls = self.nulls.join(frame.select("id").unique(), on="id", how="semi")
        return replace(self, frame=frame, nulls=nulls)


def sum_metrics(
    suite: Suite,
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    *,
    options: Any,
    design: Design,
    labels: Sequence[str] = (),
) -> list[Sums]:
    """Add up metrics of any tables, those of dialogues that a suite merges by themselves."""
    merging = {
        metric.id: one.dialogues
        for one in suite.summarised(options, (*design.columns, *labels))
        for metric in one.metrics
    }
    groups: dict[Any, list[Metric]] = {}
    for metric in metrics:
        groups.setdefault((metric.table, merging.get(metric.id)), []).append(metric)
    found = []
    for (_, merge), chosen in groups.items():
        dialogues = tables[LABEL_TABLE]
        named = {**tables, LABEL_TABLE: dialogues if merge is None else merge(dialogues)}
        found.append(sum_by_dialogue(named, chosen, design, labels))
    return found


def sum_by_dialogue(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    design: Design,
    labels: Sequence[str] = (),
) -> Sums:
    """Add up metrics of one table by dialogue."""
    rows = tables[metrics[0].table]
    places = dialogue_places(tables[LABEL_TABLE], design, labels)
    columns = rows.collect_schema()
    if "null_reasons" not in columns:  # of dialogues that a suite merged
        rows = rows.with_columns(null_reasons=pl.lit(None, NULL_REASONS_DTYPE))
    # an older run may lack a column by which values are fixed
    known = [
        replace(
            metric,
            fixed_where=tuple(one for one in metric.fixed_where if one.column in columns),
            micro=None,
        )
        for metric in metrics
    ]
    grids = grids_of(size_of(rows, known), known)
    flags = {}
    for metric in known:
        value, ends = defined_value(metric), metric.scale.ends
        for name, end in zip(("at_minimum", "at_maximum"), ends, strict=True):
            flags[f"{metric.id}:{name}"] = pl.lit(False) if end is None else value.eq(end)
        flags[f"{metric.id}:fixed"] = is_fixed(metric)
    for metric in metrics:
        part = metric.micro[1] if metric.micro else ""
        if metric.table in design.asked:
            flags[f"{metric.id}:parts"] = pl.col(metric.id).is_not_null()
        elif part in design.asked and part in columns:
            flags[f"{metric.id}:parts"] = pl.col(part)
    # a metric may be called as a column of places is
    own = {name: f":{name}" for name in places.drop("dialogue").columns}
    placed = rows.join(places.rename(own).lazy(), on="dialogue", how="left", nulls_equal=True)
    scales = {f":scale:{metric.scale.by}": metric.scale.by for metric in metrics if metric.scale.by}
    by = [*own.values(), *scales]
    added = {**{name: pl.col(scale) for name, scale in scales.items()}, **flags}
    numbers = placed.with_columns(**added, **summed_columns(known)).select(*by, *grids, *flags)
    found = sum_rows(numbers, by, by, grids, flags=tuple(flags))
    without_rows = places.rename(own).drop("dialogue").join(found, on=":id", how="anti")
    found = pl.concat([found, without_rows], how="diagonal")
    frame = found.with_columns(pl.exclude(by).fill_null(0)).sort(by)
    named = [
        pl.col(by).name.map(lambda name: name.removeprefix(":")),
        pl.col(":rows").alias("rows"),
    ]
    for metric in known:
        id, bits = metric.id, grids[metric.id]
        exact, n = (pl.col(f"{open_column(metric)}:{of}") for of in ("sum", "n"))
        named += [
            exact.alias(f"{id}:exact"),
            (exact.cast(pl.Float64) * 2.0**-bits).alias(f"{id}:sum"),
            n.alias(f"{id}:n"),
            (pl.col(f"{id}:n") - n).alias(f"{id}:left_out"),
            pl.col(f"^{re.escape(id)}:(at_minimum|at_maximum|fixed|parts)$"),
        ]
    nulls = list_reasons(placed, [":id"], metrics).sort(":id", ":metric", ":reason")
    alone = {
        columns: int(places[name].str.starts_with(ALONE).sum())
        for name, columns in (("pair", design.pair), ("unit", design.unit))
    }
    return Sums(
        metrics=tuple(metrics),
        frame=frame.select(named),
        nulls=collected(nulls).rename(lambda name: name.removeprefix(":")),
        bits={metric.id: grids[metric.id] for metric in metrics},
        lacking={columns: n for columns, n in alone.items() if n},
    )


def sum_values(rows: pl.DataFrame, metric: Metric, *by: str) -> pl.DataFrame:
    """Return by columns of `Sums`, in their order, a metric's ``sum`` of values and their ``n``."""
    sum_, n = (pl.col(f"{metric.id}:{of}").sum() for of in ("sum", "n"))
    return rows.group_by(by).agg(sum=sum_, n=n.cast(pl.Float64)).sort(by)


ALONE = "\0"
"""What a unit or a pair begins with that is a dialogue by itself."""


def dialogue_places(dialogues: pl.LazyFrame, design: Design, labels: Sequence[str]) -> pl.DataFrame:
    """Return each ``dialogue`` with ``id``, ``pair``, ``unit``, ``repeat``, labels."""
    require_labels(dialogues, [*design.columns, *labels])
    repeat = pl.col(design.repeat) if design.repeat else pl.lit(None)
    id = pl.col("dialogue").cast(pl.String).fill_null("")
    return (
        dialogues.select(
            "dialogue",
            id.alias("id"),
            *(
                name_of(columns).fill_null(pl.lit(ALONE) + id).alias(name)
                for name, columns in (("pair", design.pair), ("unit", design.unit))
            ),
            repeat.cast(pl.String).alias("repeat"),
            *(pl.col(label).cast(pl.String).alias(f"label:{label}") for label in labels),
        )
        .unique("dialogue", keep="first", maintain_order=True)
        .collect(engine="streaming")
    )


def shown_name(name: str) -> str:
    """Return a unit's name as messages show it: of a unit of its own, the dialogue."""
    return name.removeprefix(ALONE)


BETWEEN = " / "
_LIKE_ALONE = r"\x00"
_NULL = "null"
_LIKE_SEVERAL = r'^$|^null$|^"|^/ | / | /$|^/$|\x00'
"""Values that could be taken for a null, for several joined values, or for `ALONE`."""


def name_of(columns: Sequence[str]) -> pl.Expr:
    """Return the name of values of several columns, which no others have; null if all are null."""
    if len(columns) == 1:
        return _quoted_if(_LIKE_ALONE, columns[0])
    joined = joined_values(columns, null=_NULL)
    return pl.when(pl.any_horizontal(pl.col(columns).is_not_null())).then(joined)


def joined_values(columns: Sequence[str], null: str | None = None) -> pl.Expr:
    """Write values of columns as one text, which no other values have; null if one is null."""
    if len(columns) == 1:
        return pl.col(columns[0]).cast(pl.String)
    parts = [_quoted_if(_LIKE_SEVERAL, column) for column in columns]
    if null is not None:
        parts = [part.fill_null(null) for part in parts]
    return pl.concat_str(parts, separator=BETWEEN)


def _quoted_if(pattern: str, column: str) -> pl.Expr:
    """Write values as text, those that match a pattern in quotation marks."""
    text = pl.col(column).cast(pl.String)
    escaped = text.str.replace_all("\\", "\\\\", literal=True)
    escaped = escaped.str.replace_all('"', '\\"', literal=True)
    return pl.when(text.str.contains(pattern)).then('"' + escaped + '"').otherwise(text)


def require_labels(
    dialogues: pl.LazyFrame,
    columns: Iterable[str],
    run: str = "the run",
    groups: Collection[str] = (),
) -> None:
    """Refuse columns that table ``dialogues`` lacks, or that cannot name groups or units."""
    known = [name for name, dtype in dialogues.collect_schema().items() if can_label(dtype)]
    for column in columns:
        if column not in known:
            close = get_close_matches(column, known, n=1)
            hint = did_you_mean(column, likely_labels(dialogues, {*groups, *close}))
            if not close:
                hint += (
                    f" Score with --column LABEL={column} to read a label from the log's {column}."
                )
            raise UsageError(f"{run}: table {LABEL_TABLE!r} has no label column {column!r}.", hint)


def likely_labels(dialogues: pl.LazyFrame, meant: Collection[str] = ()) -> list[str]:
    """Return label columns; counts are labels too, but seldom meant."""
    schema = dialogues.collect_schema()
    return [
        name
        for name, dtype in schema.items()
        if can_label(dtype) and (name in meant or not dtype.is_integer())
    ]


def can_label(dtype: pl.DataType) -> bool:
    """Return whether values of a type can be labels."""
    return not (dtype.is_nested() or dtype.is_float())


def list_reasons(rows: pl.LazyFrame, by: Sequence[str], metrics: Sequence[Metric]) -> pl.LazyFrame:
    """Count by these columns, metric and reason how often a reason is listed."""
    return (
        rows.select(*by, pl.col("null_reasons").alias(":listed"))
        .explode(":listed", keep_nulls=False)
        .with_columns(
            pl.col(":listed").struct.field("metric").alias(":metric"),
            pl.col(":listed").struct.field("reason").cast(pl.String).alias(":reason"),
        )
        .filter(pl.col(":metric").is_in([metric.id for metric in metrics]))
        .group_by(*by, ":metric", ":reason")
        .agg(pl.len().cast(pl.Int64).alias(":n"))
    )


def defined_value(metric: Metric) -> pl.Expr:
    """Return a metric's column, null where its definition fixes the value."""
    return pl.when(~is_fixed(metric)).then(pl.col(metric.id))


def is_fixed(metric: Metric) -> pl.Expr:
    """Tell in which rows a definition gives a metric's value, whatever the dialogue."""
    return pl.any_horizontal(
        pl.lit(False),
        *(pl.col(one.column).eq(one.value).fill_null(False) for one in metric.fixed_where),
    )


PartKey = tuple[str, str | int | bool | None]
"""A metric's id and the scale of a part of it."""
UNIT = "unit"
VALUES_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The rows of a metric that are on one scale, by dialogue.

    ``where`` says which rows, as a reader names them: ``condition C4, C5``; nothing for all.
    ``scale`` is their value of `Scale.by`. ``units`` has of each dialogue with a value ``unit``,
    the labels, and ``exact`` (of ``bits``), ``sum``, ``n``, ``at_minimum`` and ``at_maximum`` of
    `Sums`.
    """

    metric: Metric
    where: str
    scale: str | int | bool | None
    units: pl.DataFrame
    bits: int

    @property
    def key(self) -> PartKey:
        """What names the part."""
        return self.metric.id, self.scale

    @property
    def n(self) -> int:
        """The number of values."""
        return int(self.units["n"].sum())

    @property
    def estimate(self) -> Estimate:
        """The mean over the rows with its interval over units."""
        units = self.units.group_by(UNIT).agg(pl.col("exact", "n").sum())
        found = clustered_mean(
            (units["exact"].cast(pl.Float64) * 2.0**-self.bits).to_numpy(),
            units["n"].cast(pl.Float64).to_numpy(),
            self.metric.scale.ends,
        )
        total, n = (int(self.units[name].sum()) for name in ("exact", "n"))
        return replace(found, value=mean_of(total, n, self.bits) if n else None)


def estimate(sums: Sums, metrics: Sequence[Metric] | None = None) -> list[Part]:
    """Return the parts of metrics that have a value, in the order of the metrics."""
    return [part for metric in metrics or sums.metrics for part in _parts(metric, sums)]


def joint_estimate(parts: Sequence[Part]) -> Estimate:
    """Return a metric's estimate over all its parts: no mean if they are on several scales."""
    if len(parts) == 1:
        return parts[0].estimate
    units = {unit for part in parts for unit in part.units[UNIT]}
    return Estimate(None, n_units=len(units), reason="several_scales" if parts else "too_few_units")


def _parts(metric: Metric, sums: Sums) -> list[Part]:
    """Keep apart what is on different scales, and name what was left out by its labels."""
    scale_by = f"scale:{metric.scale.by}"
    prefix = f"{metric.id}:"
    labels = [name for name in sums.frame.columns if name.startswith("label:")]
    rows = sums.frame.select(
        UNIT,
        pl.col(labels).name.map(lambda name: name.removeprefix("label:")),
        *([scale_by] if metric.scale.by else []),
        pl.col(f"^{prefix}.*$").name.map(lambda name: name.removeprefix(prefix)),
    )
    labels = [label.removeprefix("label:") for label in labels]
    has_value = rows.filter(pl.col("n") > 0)
    scales = has_value[scale_by].unique().sort().to_list() if metric.scale.by else [None]
    parts = []
    for scale in scales:
        is_own = pl.lit(True) if scale is None else pl.col(scale_by).eq_missing(scale)
        own = has_value.filter(is_own)
        others = rows.filter(pl.col("fixed").gt(0) | pl.col("n").gt(0).and_(~is_own))
        if own.is_empty():
            continue
        parts.append(
            Part(
                metric=metric,
                where=_where(metric, own, others, labels, scale),
                scale=scale,
                units=own.drop("fixed", "left_out", scale_by, strict=False),
                bits=sums.bits[metric.id],
            )
        )
    return parts


def _where(
    metric: Metric,
    own: pl.DataFrame,
    others: pl.DataFrame,
    labels: Sequence[str],
    scale: str | int | bool | None,
) -> str:
    """Say which rows are of a part: by the label whose values tell them from the others."""
    if others.is_empty():
        return ""
    for label in labels:
        values, left = (set(rows[label].cast(pl.String)) for rows in (own, others))
        if None not in values and values.isdisjoint(left):
            return f"{label} {listed(sorted(values), VALUES_NAMED)}"
    if scale is not None:
        return f"{metric.scale.by} {str(scale).lower()}"
    fixed: dict[str, list[str]] = {}
    for one in metric.fixed_where:
        fixed.setdefault(one.column, []).append(str(one.value).lower())
    return " and ".join(f"{column} not {' or '.join(values)}" for column, values in fixed.items())
