"""Estimates of means: one function gives a metric's mean, unit, interval, exclusions and nulls.

Rows whose value a definition fixes (`Metric.fixed_where`) are left out, and rows of different
scales (`Scale.by`) are kept apart. The unit is that of the design.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from fastscore.errors import listed
from fastscore.statistics.clustered import Estimate, clustered_mean
from fastscore.suites.base import Suite
from fastscore.suites.declarations import Metric
from fastscore.suites.sums import Sums, mean_of, sum_metrics

PartKey = tuple[str, str | int | bool | None]
"""A metric's id and the scale of a part of it."""
UNIT = "unit"
VALUES_NAMED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The rows of a metric that are on one scale, by dialogue.

    ``where`` says which rows, as a reader names them: ``condition C4, C5``; nothing for all.
    ``scale`` is their value of `Scale.by`. ``units`` has of each dialogue with a value
    ``id``, ``pair``, ``unit``, ``repeat``, the labels, and ``exact`` (of ``bits``), ``sum``, ``n``,
    ``at_minimum`` and ``at_maximum`` of `Sums`. Of all rows of the metric, ``nulls`` counts those
    without a value by reason, ``left_out`` the values that its definition fixes.
    """

    metric: Metric
    where: str
    scale: str | int | bool | None
    units: pl.DataFrame
    bits: int = 0
    nulls: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0

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
            minimum=self.metric.scale.minimum,
            maximum=self.metric.scale.maximum,
        )
        total, n = (int(self.units[name].sum()) for name in ("exact", "n"))
        return replace(found, value=mean_of(total, n, self.bits) if n else None)


def estimate_metrics(
    suite: Suite,
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    *,
    options: Any,
    labels: Sequence[str] = (),
    cluster: str | None = None,
) -> list[Part]:
    """Return the parts of metrics that have a value, in order; `cluster` names other units."""
    design = suite.design.clustered_by(cluster)
    sums = sum_metrics(suite, tables, metrics, options=options, design=design, labels=labels)
    places = {metric.id: place for place, metric in enumerate(metrics)}
    found = (part for one in sums for part in estimate(one))
    return sorted(found, key=lambda part: places[part.metric.id])


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
        "id",
        "pair",
        UNIT,
        "repeat",
        pl.col(labels).name.map(lambda name: name.removeprefix("label:")),
        *([scale_by] if metric.scale.by else []),
        pl.col(f"^{prefix}.*$").name.map(lambda name: name.removeprefix(prefix)),
    )
    labels = [label.removeprefix("label:") for label in labels]
    has_value = rows.filter(pl.col("n") > 0)
    scales = has_value[scale_by].unique().sort().to_list() if metric.scale.by else [None]
    nulls = sums.nulls.filter(metric=metric.id).group_by("reason").agg(pl.col("n").sum())
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
                nulls=dict(nulls.sort("reason").iter_rows()),
                left_out=int(rows["left_out"].sum()),
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
    rules = [f"{one.column} is not {str(one.value).lower()}" for one in metric.fixed_where]
    return " and ".join(rules)
