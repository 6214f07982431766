"""The clustered bootstrap against samples written out row by row."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.statistics import resampling
from fastscore.statistics.resampling import resample_means

SAMPLES = 60
ROWS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from("abcd")), min_size=1, max_size=14)


def resampled(
    values: npt.ArrayLike, clusters: npt.ArrayLike, *, samples: int = SAMPLES, seed: int = 0
) -> npt.NDArray[np.float64]:
    """Return the means of one column over resampled clusters."""
    numbers = np.asarray(values, np.float64)
    labels, codes = np.unique(np.asarray(clusters), return_inverse=True)
    order = np.lexsort((numbers, codes))
    sums = np.bincount(codes[order], numbers[order], labels.size)[:, None]
    counts = np.bincount(codes, minlength=labels.size)[:, None].astype(float)
    return resample_means(sums, counts, samples=samples, seed=seed)[:, 0]


@given(ROWS, st.integers(0, 5))
def test_means_of_written_out_samples(rows: list[tuple[int, str]], seed: int) -> None:
    labels = sorted({label for _, label in rows})
    expected = []
    for sample in range(SAMPLES):
        drawn = np.random.default_rng((seed, 0, sample)).integers(0, len(labels), len(labels))
        expected.append(np.mean([x for i in drawn for x, label in rows if label == labels[i]]))
    found = resampled(*zip(*rows, strict=True), seed=seed)
    assert found.tolist() == pytest.approx(expected)


def test_rows_of_a_cluster_stay_together() -> None:
    # two clusters: samples have mean 0, 1/2 or 1
    found = resampled([0.0, 0.0, 1.0, 1.0], [7, 7, 9, 9], samples=200)
    assert set(found.tolist()) == {0.0, 0.5, 1.0}


def test_single_rows_have_the_percentiles_of_the_normal_law() -> None:
    values = np.random.default_rng(3).normal(size=4_000)
    low, high = np.quantile(resampled(values, np.arange(4_000), samples=4_000), [0.025, 0.975])
    half = 1.96 * values.std() / math.sqrt(4_000)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=half / 10)


def test_neither_order_nor_block_size_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    values = generator.normal(size=300)
    clusters = generator.integers(0, 40, size=300)
    order = generator.permutation(300)
    expected = resampled(values, clusters)
    for block in (1, 1_000, 10**9):
        monkeypatch.setattr(resampling, "_BLOCK_VALUES", block)
        assert np.array_equal(resampled(values[order], clusters[order]), expected)
    assert not np.array_equal(resampled(values, clusters, seed=1), expected)


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
        monkeypatch.setattr(resampling, "_BLOCK_VALUES", block)
        assert np.array_equal(resample_means(sums, counts, samples=40), found)
    for k in range(5):
        alone = resample_means(sums[:, [k]], counts[:, [k]], samples=40)
        assert np.array_equal(alone[:, 0], found[:, k])


def test_a_sample_without_a_value_has_no_mean() -> None:
    # the second cluster has no value: a sample of it alone has none
    found = resample_means(np.array([[3.0], [0.0]]), np.array([[2.0], [0.0]]), samples=50)[:, 0]
    assert set(found[~np.isnan(found)].tolist()) == {1.5}
    assert np.isnan(found).any()


def test_draws_that_are_kept_are_those_that_are_drawn_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    x, clusters = rng.normal(size=40), np.arange(40) // 3
    kept = resampled(x, clusters, seed=5)
    monkeypatch.setattr(resampling, "_KEPT_VALUES", 0)
    assert np.array_equal(resampled(x, clusters, seed=5), kept)
