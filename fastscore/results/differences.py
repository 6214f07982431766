"""Two sides of a comparison, metric by metric: what each holds, and how they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.results.dialogue_sums import KEY, DialogueSums
from fastscore.statistics import significance as statistics
from fastscore.statistics.bootstrap import percentile_interval, resample_means
from fastscore.statistics.samples import Values
from fastscore.statistics.significance import Effect, Interval, Significance
from fastscore.suites.declarations import NULL_REASONS


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The dialogues of one side by one table.

    Parameters
    ----------
    group
        The group to which both sides belong, or None.
    name
        The side's name.
    sums
        Its dialogues, unique and ascending.
    """

    group: str | None
    name: str
    sums: DialogueSums


@dataclass(frozen=True, slots=True)
class Resampling:
    """How many bootstrap samples are drawn, and their seed."""

    samples: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of values and their numbers, each of shape (dialogues, metrics)."""

    sums: Values
    counts: Values

    @property
    def means(self) -> Values:
        """Each dialogue's mean, NaN where it has no value."""
        undefined = np.full(self.sums.shape, np.nan)
        return np.asarray(np.divide(self.sums, self.counts, out=undefined, where=self.counts > 0))

    def mean(self, metric: int, dialogues: npt.NDArray[np.bool_]) -> float | None:
        """Return the mean over the rows of some dialogues."""
        count = self.counts[dialogues, metric].sum()
        return float(self.sums[dialogues, metric].sum() / count) if count else None


def describe_side(
    side: Side, metrics: Sequence[str], *, published: bool = False
) -> Iterator[dict[str, Any]]:
    """Say of every metric how many values a side has, their mean and its intervals.

    The normal interval's deviation is the published one, over n, if that is asked for.
    """
    of_side = _sums(side.sums.values, metrics)
    null_rows = {
        (metric, reason): n
        for metric, reason, n in side.sums.nulls.select("metric", "reason", "n").rows()
    }
    for position, metric in enumerate(metrics):
        measured = of_side.counts[:, position] > 0
        means = of_side.means[measured, position]
        by_t = statistics.mean_interval(means)
        normal = statistics.mean_interval(means, method="normal", ddof=0 if published else 1)
        nulls = {f"n_{reason}": null_rows.get((metric, reason), 0) for reason in NULL_REASONS}
        yield {
            "group": side.group,
            "side": side.name,
            "metric": metric,
            "n": int(of_side.counts[:, position].sum()),
            "n_null": sum(nulls.values()),
            **nulls,
            "mean": of_side.mean(position, measured),
            "n_dialogues": len(means),
            "dialogue_mean": by_t.value,
            "t_low": by_t.low,
            "t_high": by_t.high,
            "normal_low": normal.low,
            "normal_high": normal.high,
        }


def paired_differences(
    a: Side, b: Side, metrics: Sequence[str], resampling: Resampling
) -> Iterator[dict[str, Any]]:
    """Compare the dialogues that both sides hold, pair by pair; nothing where there are none."""
    pairs = a.sums.values.join(b.sums.values, on=KEY, suffix="/b").sort(KEY)
    if pairs.is_empty():
        return
    first, second = _sums(pairs, metrics), _sums(pairs, metrics, suffix="/b")
    both = (first.counts > 0) & (second.counts > 0)
    resampled = _resample_pairs(first, second, both, resampling)
    for position, metric in enumerate(metrics):
        chosen = both[:, position]
        x, y = first.means[chosen, position], second.means[chosen, position]
        means = first.mean(position, chosen), second.mean(position, chosen)
        yield _row(
            (a, b, metric, "paired"),
            (len(x), len(y)),
            means,
            _interval(means, resampled[:, position], len(x)),
            statistics.cohens_dz(y, x),
            statistics.paired_t(y, x),
            statistics.wilcoxon_signed_rank(y, x),
        )


def independent_differences(
    a: Side, b: Side, metrics: Sequence[str], resampling: Resampling, *, published: bool = False
) -> Iterator[dict[str, Any]]:
    """Compare all dialogues of both sides as independent samples.

    By Welch's t and the pooled sample deviation; as guest_simulation's code published it, by
    Student's t and the deviation over n.
    """
    t_test = statistics.student_t if published else statistics.welch_t
    pooling: Literal["sample", "population"] = "population" if published else "sample"
    first, second = _sums(a.sums.values, metrics), _sums(b.sums.values, metrics)
    resampled = _resample(second, resampling, stream=1) - _resample(first, resampling, stream=0)
    for position, metric in enumerate(metrics):
        chosen = [side.counts[:, position] > 0 for side in (first, second)]
        x, y = (
            side.means[rows, position] for side, rows in zip((first, second), chosen, strict=True)
        )
        means = first.mean(position, chosen[0]), second.mean(position, chosen[1])
        yield _row(
            (a, b, metric, "independent"),
            (len(x), len(y)),
            means,
            _interval(means, resampled[:, position], min(len(x), len(y))),
            statistics.cohens_d(y, x, pooling=pooling),
            t_test(y, x),
            statistics.mann_whitney_u(y, x),
        )


def _sums(values: pl.DataFrame, metrics: Sequence[str], suffix: str = "") -> _Sums:
    sums, counts = (
        values.select(f"{metric}:{part}{suffix}" for metric in metrics)
        .cast(pl.Float64)
        .to_numpy(order="c")
        for part in ("sum", "n")
    )
    return _Sums(sums, counts)


def _resample_pairs(
    first: _Sums, second: _Sums, both: npt.NDArray[np.bool_], resampling: Resampling
) -> Values:
    """Resample the difference of means, shape (samples, metrics), over each metric's own pairs."""
    found = np.full((resampling.samples, both.shape[1]), np.nan)
    for chosen, columns in _patterns(both):
        sides = [
            (side.sums[chosen][:, columns], side.counts[chosen][:, columns])
            for side in (first, second)
        ]
        sums, counts = (np.hstack(parts) for parts in zip(*sides, strict=True))
        means = resample_means(sums, counts, samples=resampling.samples, seed=resampling.seed)
        found[:, columns] = means[:, len(columns) :] - means[:, : len(columns)]
    return found


def _resample(side: _Sums, resampling: Resampling, *, stream: int) -> Values:
    """Resample the means of one side, shape (samples, metrics), over each metric's dialogues."""
    found = np.full((resampling.samples, side.counts.shape[1]), np.nan)
    for chosen, columns in _patterns(side.counts > 0):
        found[:, columns] = resample_means(
            side.sums[chosen][:, columns],
            side.counts[chosen][:, columns],
            samples=resampling.samples,
            seed=resampling.seed,
            stream=stream,
        )
    return found


def _patterns(
    measured: npt.NDArray[np.bool_],
) -> Iterator[tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]]:
    """Yield the dialogues that some metrics have values in, with those metrics: drawn but once."""
    patterns, pattern_of = np.unique(measured, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        if pattern.any():
            yield pattern, np.flatnonzero(pattern_of == number)


def _interval(
    means: tuple[float | None, float | None], resampled: Values, clusters: int
) -> Interval:
    first, second = means
    if first is None or second is None:
        return Interval(None, None, None, "too_few_values")
    return percentile_interval(second - first, resampled, clusters=clusters)


def _row(
    what: tuple[Side, Side, str, str],
    sizes: tuple[int, int],
    means: tuple[float | None, float | None],
    difference: Interval,
    effect: Effect,
    t: Significance,
    rank: Significance,
) -> dict[str, Any]:
    a, b, metric, design = what
    return {
        "group": a.group,
        "a": a.name,
        "b": b.name,
        "metric": metric,
        "design": design,
        "n_a": sizes[0],
        "n_b": sizes[1],
        "mean_a": means[0],
        "mean_b": means[1],
        "difference": difference.value,
        "low": difference.low,
        "high": difference.high,
        "effect": effect.value,
        "t": t.statistic,
        "degrees_of_freedom": t.degrees_of_freedom,
        "t_p": t.p_value,
        "rank": rank.statistic,
        "rank_p": rank.p_value,
        "reason": t.reason or rank.reason or difference.reason,
    }
