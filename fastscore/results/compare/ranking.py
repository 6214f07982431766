"""The tables of a comparison, and the ranking of three systems or more in one of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from string import ascii_lowercase
from typing import Any, cast

import numpy as np
import polars as pl

from fastscore.results.compare.differences import Inference, Side
from fastscore.results.dialogue_sums import CLUSTER, KEY
from fastscore.results.repeats import PASS_SCHEMA, REPEATS_SCHEMA
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import LEVEL, clustered_mean
from fastscore.statistics.resampling import resample_means
from fastscore.statistics.samples import Values
from fastscore.suites.declarations import NULL_REASONS, Metric

SIDES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "side": pl.String(),
    "metric": pl.String(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    **{f"n_{reason}": pl.Int64() for reason in NULL_REASONS},
    "n_dialogues": pl.Int64(),
    "n_units": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "standard_error": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "reason": pl.String(),
}
"""One row a group, side and metric, over all rows of the side: rows with and without a value, the
dialogues and units with a value, the mean over rows with its 95 % interval, and why it has none."""

DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "a": pl.String(),
    "b": pl.String(),
    "metric": pl.String(),
    "design": pl.Enum(["paired", "independent"]),
    "n_a": pl.Int64(),
    "n_b": pl.Int64(),
    "n_units": pl.Int64(),
    "mean_a": pl.Float64(),
    "mean_b": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "standard_error": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "test": pl.String(),
    "p": pl.Float64(),
    "p_holm": pl.Float64(),
    "family": pl.String(),
    "family_size": pl.Int64(),
    "alpha": pl.Float64(),
    "significant": pl.Boolean(),
    "verdict": pl.String(),
    "effect": pl.Float64(),
    "effect_low": pl.Float64(),
    "effect_high": pl.Float64(),
    "detectable": pl.Float64(),
    "reason": pl.String(),
}
"""One row a group, pair of sides and metric. ``n_a`` and ``n_b`` count dialogues with a value (of
pairs, those with a value on both sides), ``n_units`` the clusters. ``difference`` is ``mean_b -
mean_a`` with its 95 % interval; ``p`` tests that difference, by ``test``; ``p_holm`` is corrected
over the ``family_size`` distinct tests of its ``family``. ``verdict`` is ``better``, ``worse``,
``higher`` or ``lower`` if `significant` and the interval excludes 0, else empty. ``effect`` is
Hedges' g with its interval. ``detectable`` is the smallest true difference that would have been
significant with a probability of .8. ``reason`` tells why there is no interval or no test."""

PUBLISHED_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "a": pl.String(),
    "b": pl.String(),
    "metric": pl.String(),
    "n_a": pl.Int64(),
    "n_b": pl.Int64(),
    "mean_a": pl.Float64(),
    "normal_low_a": pl.Float64(),
    "normal_high_a": pl.Float64(),
    "mean_b": pl.Float64(),
    "normal_low_b": pl.Float64(),
    "normal_high_b": pl.Float64(),
    "cohens_d": pl.Float64(),
    "student_t": pl.Float64(),
    "student_p": pl.Float64(),
    "welch_t": pl.Float64(),
    "welch_p": pl.Float64(),
    "mann_whitney_u": pl.Float64(),
    "mann_whitney_p": pl.Float64(),
}
"""The statistics of the public guest_simulation code and document, one row a group, pair of sides
and metric: independent samples of one value a dialogue. ``normal`` is the mean -/+ 1.96 standard
errors with variances over n, as is the pooled deviation of ``cohens_d``. Nothing is corrected."""

RANKING_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "metric": pl.String(),
    "place": pl.Int64(),
    "system": pl.String(),
    "n_dialogues": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "place_low": pl.Int64(),
    "place_high": pl.Int64(),
    "letters": pl.String(),
    "is_best": pl.Boolean(),
}
"""One row a group, metric and system, best first. Means are over the dialogues of all systems, or
over each system's own if they share none. ``low`` and ``high`` hold for all systems at once with
95 % (Bonferroni). ``place_low`` and ``place_high`` are a 95 % bootstrap interval of the place.
Systems with a letter in common cannot be told apart; ``is_best`` if that letter is the first's."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` returns.

    Parameters
    ----------
    suite
        The suite of the runs.
    sides
        In `SIDES_SCHEMA`.
    differences
        In `DIFFERENCES_SCHEMA`.
    ranking
        In `RANKING_SCHEMA`; no row for two systems.
    notes
        What a reader must know: other signatures, dialogues without a partner, too few units.
    unit
        The column whose values are the units: ``dialogue`` or the cluster column.
    alpha
        The level below which a corrected p-value is significant.
    metrics
        What is compared. A judge's scores are among it.
    published
        In `PUBLISHED_SCHEMA`; no row unless they were asked for.
    repeats
        In `REPEATS_SCHEMA`; no row without a column of repeats.
    pass_k
        In `PASS_SCHEMA`: pass^k of metrics that are 0 or 1; no row without a column of repeats.
    differing
        The parts of signatures that differ.

    Examples
    --------
    >>> found = fastscore.compare("run", by="miner_uid", metrics=["average_U_best_early"])
    >>> found.ranking.head(3)
    """

    suite: str
    sides: pl.DataFrame
    differences: pl.DataFrame
    ranking: pl.DataFrame
    notes: tuple[str, ...]
    unit: str = "dialogue"
    alpha: float = ALPHA
    metrics: tuple[Metric, ...] = ()
    published: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PUBLISHED_SCHEMA))
    repeats: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REPEATS_SCHEMA))
    pass_k: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PASS_SCHEMA))
    differing: tuple[str, ...] = ()

    @property
    def metric_by_id(self) -> dict[str, Metric]:
        """What is compared, by id."""
        return {metric.id: metric for metric in self.metrics}

    def __str__(self) -> str:
        """Return the headline: what differs and in which direction."""
        from fastscore.results.compare.show import headline

        return headline(self)

    def _repr_html_(self) -> str:
        """Show the differences as a small table, in a notebook."""
        from fastscore.results.compare.show import comparison_html

        return comparison_html(self)


LEAST_SYSTEMS = 3
LEAST_FOR_PLACES = 8
"""The fewest units of a system from which places are bootstrapped: fewer give too narrow ones."""


def rank_systems(
    sides: Sequence[Side],
    metrics: Sequence[Metric],
    tested: Mapping[tuple[str, str, str], bool | None],
    how: Inference,
) -> Iterator[dict[str, Any]]:
    """Rank the systems of one group by each metric that has a direction.

    Parameters
    ----------
    sides
        The systems, all of one group.
    metrics
        Metrics of one table.
    tested
        By metric and two systems, in either order, whether their corrected difference is
        significant.
    how
        The number of bootstrap samples and their seed.

    Yields
    ------
    dict
        Rows of `RANKING_SCHEMA`, best first. Nothing for a metric without a direction, or with a
        value in fewer than two systems.
    """
    for metric in metrics:
        if metric.better == "neither":
            continue
        columns = {side.name: _by_key(side, metric) for side in sides}
        columns = {name: rows for name, rows in columns.items() if rows.height}
        if len(columns) < 2:
            continue
        common = reduce(lambda kept, rows: kept.join(rows, on=KEY, how="semi"), columns.values())
        if common.height:
            columns = {
                name: rows.join(common, on=KEY, how="semi") for name, rows in columns.items()
            }
        yield from _ranked(sides[0].group, columns, metric, tested, how, common.height > 0)


def letter_groups(ordered: Sequence[str], differ: Mapping[tuple[str, str], bool]) -> list[str]:
    """Return letters for systems in their order: those that share one cannot be told apart.

    Parameters
    ----------
    ordered
        The systems, best first.
    differ
        By two systems, in their order, whether they differ significantly.
    """
    n = len(ordered)
    groups: list[set[int]] = []
    for start in range(n):
        members = {start}
        for other in range(start + 1, n):  # after all members, so pairs are in their order
            if not any(differ.get((ordered[i], ordered[other]), False) for i in members):
                members.add(other)
        if not any(members <= group for group in groups):
            groups.append(members)
    # every pair that cannot be told apart shares a group
    for i, j in combinations(range(n), 2):
        alike = not differ.get((ordered[i], ordered[j]), False)
        if alike and not any({i, j} <= group for group in groups):
            groups.append({i, j})
    groups = [group for group in groups if not any(group < other for other in groups)]
    groups.sort(key=lambda group: (min(group), max(group)))
    letters = len(ascii_lowercase)
    names = [
        ascii_lowercase[number % letters] + "'" * (number // letters)
        for number in range(len(groups))
    ]
    return [
        "".join(name for name, group in zip(names, groups, strict=True) if place in group)
        for place in range(n)
    ]


def _ranked(
    group: str | None,
    columns: Mapping[str, pl.DataFrame],
    metric: Metric,
    tested: Mapping[tuple[str, str, str], bool | None],
    how: Inference,
    paired: bool,
) -> Iterator[dict[str, Any]]:
    how_bounded: dict[str, Any] = {"minimum": metric.minimum, "maximum": metric.maximum}
    level = 1 - (1 - LEVEL) / len(columns)
    sums, counts = _matrices(list(columns.values()))
    estimates = {
        name: clustered_mean(sums[:, place], counts[:, place], level=level, **how_bounded)
        for place, name in enumerate(columns)
    }
    sign = -1.0 if metric.better == "higher" else 1.0
    scores = {name: sign * cast("float", found.value) for name, found in estimates.items()}
    names = sorted(columns, key=lambda name: (scores[name], name))
    places = _places(sums, counts, sign, how, paired=paired)
    spans = dict(zip(columns, places, strict=True))
    differ = {
        (a, b): bool(tested.get((metric.id, a, b), tested.get((metric.id, b, a))))
        for a, b in combinations(names, 2)
    }
    letters = letter_groups(names, differ)
    for name, letter in zip(names, letters, strict=True):
        found = estimates[name]
        yield {
            "group": group,
            "metric": metric.id,
            "place": 1 + sum(other < scores[name] for other in scores.values()),
            "system": name,
            "n_dialogues": columns[name][KEY].n_unique(),
            "mean": found.value,
            "low": found.low,
            "high": found.high,
            "place_low": spans[name][0],
            "place_high": spans[name][1],
            "letters": letter,
            "is_best": bool(set(letters[0]) & set(letter)),
        }


def _by_key(side: Side, metric: Metric) -> pl.DataFrame:
    return (
        side.sums.values.filter(pl.col(f"{metric.id}:n") > 0)
        .select(KEY, CLUSTER, sum=f"{metric.id}:sum", n=f"{metric.id}:n")
        .sort(KEY, CLUSTER)
    )


def _matrices(columns: Sequence[pl.DataFrame]) -> tuple[Values, Values]:
    """Return sums and counts, each (clusters, systems)."""
    clusters = pl.concat([rows.select(CLUSTER) for rows in columns]).unique().sort(CLUSTER)
    parts = [
        clusters.join(
            rows.group_by(CLUSTER).agg(pl.col("sum", "n").sum()),
            on=CLUSTER,
            how="left",
            maintain_order="left",
        ).with_columns(pl.col("sum", "n").fill_null(0).cast(pl.Float64))
        for rows in columns
    ]
    sums, counts = (
        np.column_stack([part[name].to_numpy() for part in parts]) for name in ("sum", "n")
    )
    return sums, counts


def _places(
    sums: Values, counts: Values, sign: float, how: Inference, *, paired: bool
) -> list[tuple[int | None, int | None]]:
    """Return the 95 % interval of each system's place over resampled clusters."""
    n_systems = sums.shape[1]
    draws: dict[str, int] = {"samples": how.samples, "seed": how.seed}
    if paired:
        means = resample_means(sums, counts, **draws)
    else:
        own = [counts[:, k] > 0 for k in range(n_systems)]
        means = np.column_stack(
            [
                resample_means(sums[rows][:, [k]], counts[rows][:, [k]], stream=k, **draws)
                for k, rows in enumerate(own)
            ]
        )
    means = sign * means[~np.isnan(means).any(axis=1)]
    if not len(means) or (counts > 0).sum(axis=0).min() < LEAST_FOR_PLACES:
        return [(None, None)] * n_systems
    places = 1 + (means[:, np.newaxis, :] < means[:, :, np.newaxis]).sum(axis=2)
    low = np.quantile(places, (1 - LEVEL) / 2, axis=0, method="lower")
    high = np.quantile(places, (1 + LEVEL) / 2, axis=0, method="higher")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
