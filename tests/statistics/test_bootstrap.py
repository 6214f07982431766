"""The clustered bootstrap against samples written out row by row."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.statistics import bootstrap
from fastscore.statistics.bootstrap import number_clusters, percentile_interval, resample_means
from fastscore.statistics.significance import Interval

SAMPLES = 60
ROWS = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.sampled_from("abcd")),
    min_size=3,
    max_size=14,
)


def mean_interval(
    values: npt.ArrayLike, clusters: npt.ArrayLike, *, samples: int = 2_000, seed: int = 0
) -> Interval:
    """Return the percentile interval of a mean over resampled clusters."""
    numbers = np.asarray(values, np.float64)
    n_clusters, codes = number_clusters(clusters, numbers.size)
    if not n_clusters:
        return Interval(None, None, None, "too_few_values")
    order = np.lexsort((numbers, codes))
    sums = np.bincount(codes[order], numbers[order], n_clusters)[:, None]
    counts = np.bincount(codes, minlength=n_clusters)[:, None].astype(float)
    found = resample_means(sums, counts, samples=samples, seed=seed)
    mean = float(sums.sum() / counts.sum())
    return percentile_interval(mean, found[:, 0], clusters=n_clusters)


def written_out(
    statistic: Callable[[np.ndarray], float], rows: list[tuple[int, int, str]], seed: int
) -> tuple[float, float] | None:
    """Repeat the rows of every drawn cluster and take the percentiles of what comes out."""
    labels = sorted({label for _, _, label in rows})
    found = []
    for sample in range(SAMPLES):
        drawn = np.random.default_rng((seed, 0, sample)).integers(0, len(labels), len(labels))
        repeated = [row[:2] for i in drawn for row in rows if row[2] == labels[i]]
        estimate = statistic(np.array(repeated, dtype=float))
        if not math.isnan(estimate):
            found.append(estimate)
    if len(labels) < 2 or not found:
        return None
    return float(np.quantile(found, 0.025)), float(np.quantile(found, 0.975))


def matches(found: Interval, expected: tuple[float, float] | None) -> bool:
    if expected is None:
        return found.low is None and found.reason == "too_few_values"
    return (found.low, found.high) == pytest.approx(expected, abs=1e-12)


@given(ROWS, st.integers(0, 5))
def test_mean_of_written_out_samples(rows: list[tuple[int, int, str]], seed: int) -> None:
    x, _, labels = zip(*rows, strict=True)
    found = mean_interval(x, labels, samples=SAMPLES, seed=seed)
    assert found.value == pytest.approx(np.mean(x))
    assert matches(found, written_out(lambda part: float(part[:, 0].mean()), rows, seed))


def test_rows_of_a_cluster_stay_together() -> None:
    # two clusters: samples have mean 0, 1/2 or 1 with probability 1/4, 1/2, 1/4
    found = mean_interval([0.0, 0.0, 1.0, 1.0], [7, 7, 9, 9])
    assert found == Interval(0.5, 0.0, 1.0)


def test_single_rows_give_the_interval_of_the_normal_law() -> None:
    values = np.random.default_rng(3).normal(size=4_000)
    found = mean_interval(values, np.arange(4_000), samples=4_000)
    half = 1.96 * values.std() / math.sqrt(4_000)
    assert (found.low, found.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=half / 10
    )


def test_neither_order_nor_block_size_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    values = generator.normal(size=300)
    clusters = generator.integers(0, 40, size=300)
    order = generator.permutation(300)
    for block in (1, 1_000, 10**9):
        monkeypatch.setattr(bootstrap, "_BLOCK_VALUES", block)
        found = mean_interval(values[order], clusters[order], samples=100)
        assert found == mean_interval(values, clusters, samples=100)
    assert mean_interval(values, clusters, seed=1) != mean_interval(values, clusters, seed=2)


def test_means_are_exact_whatever_stands_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(9)
    sums = generator.normal(size=(331, 5)) * [1e-9, 1.0, 1.0, 1e6, 0.0]
    counts = generator.integers(1, 4, size=(331, 5)).astype(float)
    found = resample_means(sums, counts, samples=40)
    for sample in range(40):
        drawn = np.random.default_rng((0, 0, sample)).integers(0, 331, size=331)
        expected = [math.fsum(column[drawn]) for column in sums.T] / counts[drawn].sum(axis=0)
        assert found[sample].tolist() == expected.tolist()
    for block in (2_100, 900, 1):
        monkeypatch.setattr(bootstrap, "_BLOCK_VALUES", block)
        assert np.array_equal(resample_means(sums, counts, samples=40), found)
    for k in range(5):
        alone = resample_means(sums[:, [k]], counts[:, [k]], samples=40)
        assert np.array_equal(alone[:, 0], found[:, k])


def test_too_little_to_resample() -> None:
    assert mean_interval([], []) == Interval(None, None, None, "too_few_values")
    assert mean_interval([1.0, 2.0], ["a", "a"]) == Interval(1.5, None, None, "too_few_values")


def test_draws_that_are_kept_are_those_that_are_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    x, clusters = rng.normal(size=40), np.arange(40) // 3
    kept = mean_interval(x, clusters, seed=5)
    monkeypatch.setattr(bootstrap, "_KEPT_VALUES", 0)
    assert mean_interval(x, clusters, seed=5) == kept
