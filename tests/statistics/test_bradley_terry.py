"""Strengths of Bradley and Terry beside closed forms, SciPy's optimiser and simulations."""

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from fastscore.results.pair_ranking import bradley_terry


def test_two_systems_have_the_logarithm_of_their_odds():
    # 7 wins, 2 losses and a tie: 7.5 to 2.5
    found = bradley_terry([0] * 10, [1] * 10, [1] * 7 + [0] * 2 + [0.5], range(10), 2)
    assert found.strengths == pytest.approx([np.log(3) / 2, -np.log(3) / 2])
    # without one win 6.5 / 9, ...: the differences move by (y - .75) / (9 pairs' information)
    moved = np.array([1 - 0.75] * 7 + [-0.75] * 2 + [0.5 - 0.75]) / (9 * 0.75 * 0.25)
    error = (9 / 10 * ((moved - moved.mean()) ** 2).sum()) ** 0.5
    value, low, high, p = found.contrast([1, -1])
    assert value == pytest.approx(np.log(3))
    assert (high - low) / 2 == pytest.approx(2.262157163 * error)
    assert 0.05 < p < 0.3
    # the other way round it is the same
    other = bradley_terry([1] * 10, [0] * 10, [0] * 7 + [1] * 2 + [0.5], range(10), 2)
    assert other.contrast([1, -1]) == pytest.approx((value, low, high, p))


def draw(random, n, strengths, spread):
    """Draw verdicts on all pairs of n dialogues, whose strengths differ; one in five is a tie."""
    pairs = list(combinations(range(len(strengths)), 2))
    own = np.asarray(strengths) + random.normal(0, spread, (n, len(strengths)))
    first, second = (np.tile([pair[side] for pair in pairs], n) for side in (0, 1))
    dialogue = np.repeat(np.arange(n), len(pairs))
    chance = 1 / (1 + np.exp(own[dialogue, second] - own[dialogue, first]))
    level = random.random(chance.size)
    outcomes = np.where(level < 0.8 * chance, 1.0, np.where(level < 0.8 * chance + 0.2, 0.5, 0.0))
    return first, second, outcomes, dialogue


def test_strengths_have_the_largest_likelihood():
    first, second, outcomes, dialogue = draw(np.random.default_rng(4), 30, [1, 0, 0, -1], 0.5)

    def loss(strengths):
        difference = strengths[first] - strengths[second]
        return (np.log1p(np.exp(difference)) - outcomes * difference).sum()

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    found = bradley_terry(first, second, outcomes, dialogue, 4)
    assert found.strengths == pytest.approx(best - best.mean(), abs=1e-5)
    assert found.strengths.sum() == pytest.approx(0)


def test_verdicts_of_one_dialogue_count_once():
    drawn = draw(np.random.default_rng(5), 25, [1, 0, -1], 0.5)
    alone = bradley_terry(*drawn, 3)
    doubled = bradley_terry(*(np.repeat(each, 2) for each in drawn), 3)
    assert doubled.strengths == pytest.approx(alone.strengths)
    assert doubled.covariance == pytest.approx(alone.covariance)
    assert doubled.n_clusters == 25


@pytest.mark.parametrize("n", [8, 20])
def test_intervals_cover_what_they_should(n):
    random = np.random.default_rng(6)
    strengths, spread = [0.8, 0.2, -0.3, -0.7], 0.8
    first, second, outcomes, dialogue = draw(random, 50_000, strengths, spread)
    truth = bradley_terry(first, second, outcomes, dialogue % 7, 4).strengths
    covered = []
    for _ in range(250):
        found = bradley_terry(*draw(random, n, strengths, spread), 4)
        for i, j in combinations(range(4), 2):
            _, low, high, _ = found.contrast(np.eye(4)[i] - np.eye(4)[j])
            covered.append(low <= truth[i] - truth[j] <= high)
    assert 0.93 < np.mean(covered) < 0.98


def test_what_cannot_be_told_has_a_reason():
    always = bradley_terry([0, 0, 0], [1, 1, 1], [1, 1, 1], range(3), 2)
    assert (always.strengths, always.reason, always.contrast([1, -1])) == (None, "separated", None)
    # systems 0 and 1 are never compared with 2 and 3
    apart = bradley_terry([0, 1, 2, 3], [1, 0, 3, 2], [1, 1, 1, 1], range(4), 4)
    assert apart.reason == "separated"
    few = bradley_terry([0, 0], [1, 1], [1, 0], [1, 2], 2)
    assert (few.covariance, few.reason) == (None, "too_few_units")
    # without the only dialogue that has system 2 nothing is known of it
    one = bradley_terry([0, 0, 0, 0, 0], [1, 1, 1, 2, 2], [1, 0, 1, 0, 1], [1, 2, 3, 4, 4], 3)
    assert (one.covariance, one.reason) == (None, "too_few_units")
    ties = bradley_terry([0] * 4, [1] * 4, [0.5] * 4, range(4), 2)
    assert (ties.strengths.tolist(), ties.reason) == ([0, 0], "zero_variance")
