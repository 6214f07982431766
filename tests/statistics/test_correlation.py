"""Rank correlations against values worked by hand and samples written out row by row."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fastscore.statistics import bootstrap, correlation
from fastscore.statistics.correlation import (
    bootstrap_kendall,
    bootstrap_spearman,
    kendall,
    spearman,
)
from fastscore.statistics.significance import Interval
from tests.statistics.test_bootstrap import ROWS, SAMPLES, matches, written_out


def test_correlations_by_hand() -> None:
    a, b = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 5.0]
    assert spearman(a, b).statistic == pytest.approx(1 - 6 * 4 / (5 * 24))
    assert kendall(a, b).statistic == pytest.approx((8 - 2) / 10)
    # one pair tied in a: 2 / sqrt(2 * 3); rho of mean ranks 1.5, 1.5, 3
    assert kendall([1.0, 1.0, 2.0], [1.0, 2.0, 3.0]).statistic == pytest.approx(2 / math.sqrt(6))
    assert spearman([1.0, 1.0, 2.0], [1.0, 2.0, 3.0]).statistic == pytest.approx(
        1.5 / math.sqrt(1.5 * 2)
    )


def test_too_few_pairs_and_constant_sides_give_reasons() -> None:
    for measure in (spearman, kendall):
        assert measure([1.0, 2.0], [1.0, 2.0]).reason == "too_few_values"
        assert measure([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]).reason == "zero_variance"
    with pytest.raises(ValueError, match=r"clusters has shape \(1,\), expected \(2,\)"):
        bootstrap_spearman([1.0, 2.0], [1.0, 2.0], ["a"])


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=3), st.randoms())
def test_order_never_matters(pairs: list[tuple[float, float]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for measure in (spearman, kendall):
        assert measure(*np.array(pairs).T) == measure(*np.array(shuffled).T)


def test_neither_order_nor_block_size_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    values, others = generator.normal(size=(2, 300))
    clusters = generator.integers(0, 40, size=300)
    order = generator.permutation(300)
    for block in (1, 1_000, 10**9):
        monkeypatch.setattr(bootstrap, "_BLOCK_VALUES", block)
        assert bootstrap_spearman(
            values[order], others[order], clusters[order], samples=100
        ) == bootstrap_spearman(values, others, clusters, samples=100)


def correlated(measure: Callable[..., object]) -> Callable[[np.ndarray], float]:
    def estimate(rows: np.ndarray) -> float:
        x, y = rows.T
        if np.ptp(x) == 0 or np.ptp(y) == 0:
            return math.nan
        return float(measure(x, y).statistic)  # type: ignore[attr-defined]

    return estimate


@given(ROWS, st.integers(0, 5))
def test_correlations_of_written_out_samples(rows: list[tuple[int, int, str]], seed: int) -> None:
    x, y, labels = zip(*rows, strict=True)
    for ours, measure in (
        (bootstrap_spearman, stats.spearmanr),
        (bootstrap_kendall, stats.kendalltau),
    ):
        found = ours(x, y, labels, samples=SAMPLES, seed=seed)
        if len(set(x)) == 1 or len(set(y)) == 1:
            assert found == Interval(None, None, None, "zero_variance")
        else:
            assert matches(found, written_out(correlated(measure), rows, seed))


def test_kendall_without_a_table_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(7)
    x, y = generator.integers(0, 9, size=(2, 80)).astype(float)
    clusters = generator.integers(0, 12, size=80)
    by_table = bootstrap_kendall(x, y, clusters, samples=100)
    monkeypatch.setattr(correlation, "_LARGEST_PAIR_TABLE", 10)
    written_out = bootstrap_kendall(x, y, clusters, samples=100)
    assert (by_table.low, by_table.high) == pytest.approx((written_out.low, written_out.high))
