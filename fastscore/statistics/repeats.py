"""Repeated runs: what varies from run to run, beside what varies from dialogue to dialogue.

If every repeat has the same dialogues, the two are crossed: a value is ``mean + dialogue + repeat +
rest``. The variance of the mean is ``V_dialogues + V_repeats - V_rest``, each of the first two
cluster-robust over its own units, because both contain the rest (Cameron, Gelbach and Miller 2011,
with the rest in the place of their intersection, which is too large for few repeats).
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore.statistics.clustered import (
    Clusters,
    Estimate,
    clustered_difference,
    satterthwaite_degrees,
    t_quantile,
)
from fastscore.statistics.samples import Values

Codes = npt.NDArray[np.int64]


def variance_components(
    values: Values, dialogues: Codes, repeats: Codes
) -> tuple[float | None, float | None, float | None]:
    """Estimate the variances between dialogues, between repeats and of the rest.

    Half the mean squared difference of two values is, in expectation, ``repeat + rest`` for one
    dialogue in two repeats, ``dialogue + rest`` for two dialogues in one repeat, and the sum of all
    three for values that share neither. In a balanced design this is the analysis of variance.

    Parameters
    ----------
    values
        float64 (n,): one value for each dialogue and repeat.
    dialogues, repeats
        int64 (n,): the dialogue and the repeat of each value, from 0.

    Returns
    -------
    tuple
        The three variances; a negative estimate is 0. None if there are no such pairs of values.
    """
    shares = [_half_squares(values, codes) for codes in (dialogues, repeats)]
    whole, pairs = _half_squares(values, np.zeros(values.size, np.int64))
    whole, pairs = whole - sum(each for each, _ in shares), pairs - sum(n for _, n in shares)
    if not pairs or not all(n for _, n in shares):
        return None, None, None
    in_dialogue, in_repeat = (each / n for each, n in shares)
    apart = whole / pairs
    parts = apart - in_dialogue, apart - in_repeat, in_dialogue + in_repeat - apart
    return tuple(max(0.0, float(part)) for part in parts)  # type: ignore[return-value]


def repeated_difference(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    minimum: float | None = None,
    maximum: float | None = None,
) -> Estimate:
    """Return the difference of two means, with an interval for new dialogues and new repeats.

    Parameters
    ----------
    first, second
        Each side's cells: ``sums`` and ``counts`` (n_cells,), and the labels ``clusters`` and
        ``repeats`` of each. Clusters of both sides are shared, repeats are each side's own.
    minimum, maximum
        The metric's range.

    Returns
    -------
    Estimate
        As `clustered_difference`, with the larger error of both kinds.
    """
    sides = _by_label(first, second, "clusters")
    shared = bool(((sides[0].counts > 0) & (sides[1].counts > 0)).any())
    found = clustered_difference(*sides, shared=shared, minimum=minimum, maximum=maximum)
    if not found.standard_error or found.value is None or found.degrees_of_freedom is None:
        return found
    of_dialogues = found.standard_error**2
    variance, uncertain = of_dialogues, of_dialogues**2 / found.degrees_of_freedom
    for cells in (first, second):
        of_repeats, rest, degrees = _repeat_variance(cells)
        variance += of_repeats - rest
        uncertain += of_repeats**2 / degrees
    variance = max(variance, of_dialogues)
    degrees = variance**2 / uncertain
    half = t_quantile(degrees) * math.sqrt(variance)
    low, high = found.value - half, found.value + half
    if minimum is not None and maximum is not None:
        low, high = max(low, minimum - maximum), min(high, maximum - minimum)
    return Estimate(found.value, low, high, math.sqrt(variance), degrees, found.n_units)


def _repeat_variance(cells: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the variance of a side's mean over repeats, that of the rest, and its degrees."""
    labels, repeats = np.unique(cells["repeats"], return_inverse=True)
    _, clusters = np.unique(cells["clusters"], return_inverse=True)
    if labels.size < 2:
        return 0.0, 0.0, 1.0
    of_repeats = _clusters(repeats, cells, labels.size)
    shares = cells["counts"] / cells["counts"].sum()
    rest = variance_components(cells["sums"] / cells["counts"], clusters, repeats)[2] or 0.0
    variance = float((of_repeats.influences**2).sum())
    return (
        variance,
        min(variance, rest * float((shares**2).sum())),
        satterthwaite_degrees(of_repeats.shares),
    )


def _by_label(first: Mapping[str, Any], second: Mapping[str, Any], label: str) -> list[Clusters]:
    labels = np.unique(np.concatenate([first[label], second[label]]))
    return [
        _clusters(np.searchsorted(labels, cells[label]), cells, labels.size)
        for cells in (first, second)
    ]


def _clusters(codes: Codes, cells: Mapping[str, Any], n_clusters: int) -> Clusters:
    sums, counts = (
        np.bincount(codes, cells[part], n_clusters).astype(np.float64)
        for part in ("sums", "counts")
    )
    return Clusters(sums, counts)


def _half_squares(values: Values, groups: Codes) -> tuple[float, int]:
    """Add up half the squared differences of ordered pairs within groups, and count the pairs."""
    sizes = np.bincount(groups)
    centred = values - values.mean()
    totals, squares = np.bincount(groups, centred), np.bincount(groups, centred**2)
    return float((sizes * squares - totals**2).sum()), int((sizes * (sizes - 1)).sum())
