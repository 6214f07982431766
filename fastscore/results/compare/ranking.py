"""Ranking three systems or more: simultaneous intervals, bootstrap places, what cannot be told."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from string import ascii_lowercase
from typing import Any

import numpy as np
import polars as pl

from fastscore.results.compare.differences import Inference, Side
from fastscore.results.dialogue_sums import CLUSTER, KEY
from fastscore.statistics.bootstrap import resample_means
from fastscore.statistics.clustered import LEVEL, clustered_mean
from fastscore.statistics.samples import Values
from fastscore.suites.declarations import Metric

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
        common = reduce(
            lambda kept, rows: kept.join(rows, on=KEY, how="semi"), columns.values()
        ).select(KEY)
        if not common.is_empty():
            columns = {
                name: rows.join(common, on=KEY, how="semi") for name, rows in columns.items()
            }
        yield from _ranked(sides[0].group, columns, metric, tested, how, len(common) > 0)


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
        for other in range(start + 1, n):
            if all(
                not differ.get((ordered[min(i, other)], ordered[max(i, other)]), False)
                for i in members
            ):
                members.add(other)
        if not any(members <= group for group in groups):
            groups.append(members)
    # every pair that cannot be told apart shares a group
    for i in range(n):
        for j in range(i + 1, n):
            alike = not differ.get((ordered[i], ordered[j]), False)
            if alike and not any({i, j} <= group for group in groups):
                groups.append({i, j})
    groups = [group for group in groups if not any(group < other for other in groups)]
    groups.sort(key=lambda group: (min(group), max(group)))
    names = [_letter(number) for number in range(len(groups))]
    return [
        "".join(name for name, group in zip(names, groups, strict=True) if place in group)
        for place in range(n)
    ]


def _letter(number: int) -> str:
    n = len(ascii_lowercase)
    return ascii_lowercase[number % n] + ("'" * (number // n))


def _ranked(
    group: str | None,
    columns: Mapping[str, pl.DataFrame],
    metric: Metric,
    tested: Mapping[tuple[str, str, str], bool | None],
    how: Inference,
    paired: bool,
) -> Iterator[dict[str, Any]]:
    level = 1 - (1 - LEVEL) / len(columns)
    sums, counts = _matrices(list(columns.values()))
    estimates = {
        name: clustered_mean(
            sums[:, place],
            counts[:, place],
            minimum=metric.minimum,
            maximum=metric.maximum,
            level=level,
        )
        for place, name in enumerate(columns)
    }
    sign = -1.0 if metric.better == "higher" else 1.0
    names = sorted(columns, key=lambda name: (sign * _known(estimates[name].value), name))
    places = _places(sums, counts, sign, how, paired=paired)
    spans = dict(zip(columns, places, strict=True))
    differ = {
        (a, b): bool(tested.get((metric.id, a, b), tested.get((metric.id, b, a))))
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }
    letters = letter_groups(names, differ)
    scores = [sign * _known(estimates[name].value) for name in names]
    ranks = [1 + sum(other < score for other in scores) for score in scores]
    for name, rank, letter in zip(names, ranks, letters, strict=True):
        found = estimates[name]
        yield {
            "group": group,
            "metric": metric.id,
            "place": rank,
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


def _known(value: float | None) -> float:
    assert value is not None
    return value


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
    if paired:
        means = resample_means(sums, counts, samples=how.samples, seed=how.seed)
    else:
        means = np.column_stack(
            [
                resample_means(
                    sums[counts[:, k] > 0][:, [k]],
                    counts[counts[:, k] > 0][:, [k]],
                    samples=how.samples,
                    seed=how.seed,
                    stream=k,
                )
                for k in range(n_systems)
            ]
        )
    means = sign * means[~np.isnan(means).any(axis=1)]
    if not len(means) or (counts > 0).sum(axis=0).min() < LEAST_FOR_PLACES:
        return [(None, None)] * n_systems
    places = 1 + (means[:, np.newaxis, :] < means[:, :, np.newaxis]).sum(axis=2)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low = np.quantile(places, tails[0], axis=0, method="lower")
    high = np.quantile(places, tails[1], axis=0, method="higher")
    return [(int(a), int(b)) for a, b in zip(low, high, strict=True)]
