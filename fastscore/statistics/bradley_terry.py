"""Strengths of systems that were judged in pairs: the model of Bradley and Terry (1952).

System i is preferred to j with probability ``1 / (1 + exp(s_j - s_i))``, where the strengths s sum
to 0. A tie counts as half a preference for each. Strengths are those of maximum likelihood. Their
covariance is the jackknife's over clusters, each left out by one step of Newton's method, with t of
n_clusters - 1 degrees of freedom. With four systems and strengths that differ between dialogues,
intervals cover .95 to .96 from 8 dialogues on (`tests/statistics/test_bradley_terry.py`).
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from fastscore.statistics.clustered import LEAST_UNITS, t_quantile
from fastscore.statistics.samples import Values
from fastscore.statistics.significance import t_below

StrengthReason = Literal["separated", "too_few_units", "zero_variance"]
"""Why strengths or their intervals are missing: some systems are preferred to the others always, or
never compared with them, so that no finite strengths fit best; too few clusters, or one without
which that is so; no cluster makes a difference."""

_MOST_STEPS = 100
_LARGEST_STEP = 2.0
_CLOSE = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class BradleyTerry:
    """Strengths in natural logarithms of odds, which sum to 0, and their covariance.

    ``reason`` says why strengths or intervals are missing.
    """

    strengths: Values | None
    covariance: Values | None
    n_clusters: int
    reason: StrengthReason | None = None

    def contrast(self, weights: npt.ArrayLike) -> tuple[float, float, float, float] | None:
        """Return a weighted sum of strengths with its 95 % interval, and p of a sum of 0."""
        if self.strengths is None or self.covariance is None:
            return None
        w = np.asarray(weights, np.float64)
        value, error = float(w @ self.strengths), math.sqrt(float(w @ self.covariance @ w))
        half = t_quantile(self.n_clusters - 1) * error
        p = 2 * t_below(self.n_clusters - 1, -abs(value) / error) if error else math.nan
        return value, value - half, value + half, p


def bradley_terry(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    clusters: npt.ArrayLike,
    n_systems: int,
) -> BradleyTerry:
    """Estimate the strengths of systems from preferences."""
    i, j = np.asarray(first, np.int64), np.asarray(second, np.int64)
    y = np.asarray(outcomes, np.float64)
    labels, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    shape = n_systems, n_systems
    wins = np.zeros(shape)
    np.add.at(wins, (i, j), y)
    np.add.at(wins, (j, i), 1 - y)
    if not _is_connected(wins > 0):
        return BradleyTerry(None, None, labels.size, "separated")
    strengths = _fitted(wins)
    chances = 1 / (1 + np.exp(strengths[j] - strengths[i]))
    # each cluster's part of the gradient and of the information, with one sign for each system
    gradient = np.zeros((labels.size, n_systems))
    information = np.zeros((labels.size, *shape))
    weight = chances * (1 - chances)
    for row, column, sign in ((i, j, 1), (j, i, -1)):
        np.add.at(gradient, (cluster, row), sign * (y - chances))
        np.add.at(information, (cluster, row, row), weight)
        np.add.at(information, (cluster, row, column), -weight)
    if labels.size < LEAST_UNITS:
        return BradleyTerry(strengths, None, labels.size, "too_few_units")
    rest = information.sum(axis=0) - information
    if np.linalg.matrix_rank(rest, hermitian=True).min() < n_systems - 1:
        return BradleyTerry(strengths, None, labels.size, "too_few_units")
    moved = (np.linalg.pinv(rest, hermitian=True) @ gradient[:, :, None])[:, :, 0]
    moved -= moved.mean(axis=0)
    covariance = (labels.size - 1) / labels.size * moved.T @ moved
    if np.abs(covariance).max() < _CLOSE:
        return BradleyTerry(strengths, None, labels.size, "zero_variance")
    return BradleyTerry(strengths, covariance, labels.size)


def _is_connected(beats: npt.NDArray[np.bool_]) -> bool:
    """Return whether a chain of preferences leads from each system to each other (Ford 1957)."""
    reached = beats | np.eye(len(beats), dtype=bool)
    for _ in range(len(beats).bit_length()):
        reached = (reached.astype(np.int64) @ reached) > 0
    return bool(reached.all())


def _fitted(wins: Values) -> Values:
    """Return the strengths of maximum likelihood, by Newton's method with limited steps."""
    strengths, n = np.zeros(len(wins)), wins + wins.T
    for _ in range(_MOST_STEPS):
        chances = 1 / (1 + np.exp(strengths - strengths[:, None]))
        weights = n * chances * (1 - chances)
        information = np.diag(weights.sum(axis=1)) - weights
        step = np.linalg.pinv(information, hermitian=True) @ (wins - n * chances).sum(axis=1)
        strengths += step * min(1.0, _LARGEST_STEP / max(np.abs(step).max(), _CLOSE))
        if np.abs(step).max() < _CLOSE:
            break
    return np.asarray(strengths - strengths.mean())
