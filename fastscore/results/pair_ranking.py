"""Systems ranked by verdicts on pairs: strengths of Bradley and Terry (1952).

System i is preferred to j with probability ``1 / (1 + exp(s_j - s_i))``, where the strengths s sum
to 0. A tie counts as half a preference for each. Strengths are those of maximum likelihood. Their
covariance is the jackknife's over clusters, each left out by one step of Newton's method, with t of
n_clusters - 1 degrees of freedom. With four systems and strengths that differ between dialogues,
intervals cover .95 to .96 from 8 dialogues on (`tests/statistics/test_bradley_terry.py`).
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.errors import UsageError, counted, names_arguments
from fastscore.results.agreement import judge_names, read_ratings, with_keys
from fastscore.results.comparison import apart_text
from fastscore.results.metric_text import NONE, REASONS, interval_text, show_found
from fastscore.settings.options import check_arguments
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import LEAST_UNITS, t_quantile
from fastscore.statistics.significance import Values, holm, t_below
from fastscore.terminal.grids import Format, Grid, column_of, html_tables

_ANY_SCORE = (-sys.float_info.max, sys.float_info.max)
STRENGTHS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("dimension", "rater"), pl.String()),
    "place": pl.Int64(),
    "system": pl.String(),
    **dict.fromkeys(("n", "wins", "ties", "losses"), pl.Int64()),
    **dict.fromkeys(("strength", "low", "high"), pl.Float64()),
    "apart_from_next": pl.Boolean(),
    "reason": pl.String(),
}
"""One row a dimension, rater (null: all of several) and system, the strongest first: verdicts on
it, its strength with a 95 % confidence interval over dialogues, and why one is missing. Strengths
are natural logarithms of odds and sum to 0. ``apart_from_next``: the difference from the next
system is significant; null for the last one, or without a test."""

PAIR_DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("dimension", "rater", "a", "b"), pl.String()),
    **dict.fromkeys(("difference", "low", "high", "p", "p_holm"), pl.Float64()),
}
"""One row a dimension, rater and two systems: strength of b - strength of a with its interval and
p, corrected over all pairs and dimensions of the rater; null if the two always tie."""


@dataclass(frozen=True, slots=True)
class PairRanking:
    """What `rank` returns.

    Parameters
    ----------
    strengths, differences
        ``strengths`` has one row for each dimension, rater and system, the strongest first: ``n``,
        ``wins``, ``ties``, ``losses``, ``strength`` (log odds) with its 95 % confidence interval
        ``low`` and ``high``. ``differences`` has one row for each pair: ``difference``, ``low``,
        ``high``, ``p``, ``p_holm``.
    notes
        What was left out.

    Examples
    --------
    >>> rows = [("u1", "x", "y", "A"), ("u2", "x", "y", "B"), ("u3", "x", "y", "A")]
    >>> names = ["dialogue", "model_a", "model_b", "overall"]
    >>> pl.DataFrame(rows, names, orient="row").write_csv("verdicts.csv")
    >>> found = fastscore.rank("verdicts.csv")
    >>> found.strengths["system"].to_list()
    ['x', 'y']
    """

    strengths: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        best = self.strengths.filter(pl.col("place") == 1).unique("dimension", maintain_order=True)
        named = [f"{row['dimension']}: {row['system']}" for row in best.iter_rows(named=True)]
        n = self.strengths["system"].n_unique()
        return f"Ranking of {counted(n, 'systems')}, first: {', '.join(named) or 'none'}"

    def _repr_html_(self) -> str:
        """Show the tables that are printed, every text escaped, in a notebook."""
        return html_tables(_grids(self))


@names_arguments
def rank(
    *files: str | PathLike[str] | pl.DataFrame | Sequence[Mapping[str, Any]],
    columns: Sequence[str] = (),
) -> PairRanking:
    """Rank systems by verdicts on pairs of their dialogues, with the model of Bradley and Terry.

    Parameters
    ----------
    *files
        ``pairs.jsonl`` of `fastscore judge --against`, or people's files: JSON, JSON Lines, CSV or
        Parquet, a row a pair and rater. Or frames, or lists of dicts. A row has ``dialogue``,
        ``model_a``, ``model_b``, and the verdicts ``A``, ``B`` or ``tie`` in an object ``verdict``
        or in columns.
    columns
        Names of columns with verdicts, beside the bundled rubric's and ``overall``.

    Raises
    ------
    InputError
        A file cannot be read, or a rater judged a pair twice.
    UsageError
        A file has scores, not verdicts, or does not name both models, or names one model twice.

    Examples
    --------
    >>> rows = [("u1", "x", "y", "A"), ("u1", "y", "z", "A"), ("u2", "x", "z", "B")]
    >>> names = ["dialogue", "model_a", "model_b", "overall"]
    >>> pl.DataFrame(rows, names, orient="row").write_csv("verdicts.csv")
    >>> fastscore.rank("verdicts.csv").strengths.select("system", "wins", "strength")
    """
    check_arguments(rank, locals())
    rated, notes = read_ratings(files, columns, _ANY_SCORE)
    named = []
    for ratings, file in zip(rated, judge_names(files), strict=True):
        if not ratings["is_pair"].all():
            raise UsageError(
                f"{file} has scores of dialogues, not verdicts on pairs.",
                "Verdicts are A, B or tie.",
            )
        if ratings["system_a"].has_nulls():
            raise UsageError(
                f"{file} does not name the models of its pairs.",
                "Give the columns model_a and model_b.",
            )
        of_itself = ratings.filter(pl.col("system_a") == pl.col("system_b"))["system_a"]
        if of_itself.len():
            raise UsageError(
                f"{file} compares {of_itself[0]!r} with itself.",
                "Give the two systems different names in model_a and model_b.",
            )
        named.append(ratings.with_columns(rater=pl.col("judged_by").fill_null(file)))
    ratings = with_keys(pl.concat(named))
    raters = ratings["rater"].unique(maintain_order=True).to_list()
    strengths: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    for rater in [None, *raters] if len(raters) > 1 else raters:
        own = ratings if rater is None else ratings.filter(rater=rater)
        fits, rows = [], list[dict[str, Any]]()
        for part in own.partition_by("dimension", maintain_order=True):
            place = {"dimension": part["dimension"][0], "rater": rater}
            systems, fit = _fit_ratings(part)
            fits.append((place, part, systems, fit))
            rows += (place | row for row in _differences(systems, fit))
        for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
            row["p_holm"] = p
        differences += rows
        for place, part, systems, fit in fits:
            own_rows = [row for row in rows if row["dimension"] == place["dimension"]]
            strengths += (place | row for row in _ranked(part, systems, fit, own_rows))
    return PairRanking(
        pl.DataFrame(strengths, STRENGTHS_SCHEMA),
        pl.DataFrame(differences, PAIR_DIFFERENCES_SCHEMA),
        tuple(notes),
    )


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

    def contrast(self, weights: npt.ArrayLike) -> tuple[float | None, ...] | None:
        """Return a weighted sum of strengths with its 95 % interval, and p of a sum of 0.

        Interval and p are None where the sum does not vary.
        """
        if self.strengths is None or self.covariance is None:
            return None
        w = np.asarray(weights, np.float64)
        value, variance = float(w @ self.strengths), float(w @ self.covariance @ w)
        if variance < _CLOSE:  # such as of two that always tie
            return value, None, None, None
        error = math.sqrt(variance)
        half = t_quantile(self.n_clusters - 1) * error
        p = 2 * t_below(self.n_clusters - 1, -abs(value) / error)
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


def _fit_ratings(ratings: pl.DataFrame) -> tuple[list[str], BradleyTerry]:
    """Return the systems in the order of the alphabet, and their strengths."""
    systems = pl.concat([ratings["system_a"], ratings["system_b"]]).unique().sort().to_list()
    first, second = (
        ratings[name].cast(pl.Enum(systems)).to_physical().to_numpy()
        for name in ("system_a", "system_b")
    )
    clusters = ratings["dialogue"].rank("dense").to_numpy()
    outcomes = ratings["score"].to_numpy()
    return systems, bradley_terry(first, second, outcomes, clusters, len(systems))


def _differences(systems: Sequence[str], fit: BradleyTerry) -> Iterator[dict[str, Any]]:
    unit = np.eye(len(systems))
    for i, j in combinations(range(len(systems)), 2):
        found = fit.contrast(unit[j] - unit[i])
        if found is not None:
            row = dict(zip(("difference", "low", "high", "p"), found, strict=True))
            yield {"a": systems[i], "b": systems[j], **row}


def _ranked(
    ratings: pl.DataFrame,
    systems: Sequence[str],
    fit: BradleyTerry,
    differences: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return the systems' rows, the strongest first, or by shares of wins without strengths."""
    rows: list[dict[str, Any]] = []
    for number, system in enumerate(systems):
        scores = pl.concat(
            [ratings.filter(system_a=system)["score"], 1 - ratings.filter(system_b=system)["score"]]
        )
        found = fit.contrast(np.eye(len(systems))[number] - 1 / len(systems))
        _, low, high, _ = found or (None, None, None, None)
        rows.append(
            {
                "system": system,
                "n": scores.len(),
                **{name: (scores == worth).sum() for name, worth in _OUTCOMES.items()},
                "share": float(scores.mean()),  # type: ignore[arg-type]
                "strength": None if fit.strengths is None else float(fit.strengths[number]),
                "low": low,
                "high": high,
                "reason": fit.reason or ("zero_variance" if low is None else None),
            }
        )
    key = "share" if fit.strengths is None else "strength"
    rows.sort(key=lambda row: (-row[key], row["system"]))
    if fit.strengths is not None:
        p_values = {frozenset((row["a"], row["b"])): row["p_holm"] for row in differences}
        for row in rows:
            row["place"] = 1 + sum(other["strength"] > row["strength"] for other in rows)
        for row, following in pairwise(rows):
            p = p_values.get(frozenset((row["system"], following["system"])))
            row["apart_from_next"] = None if p is None else p < ALPHA
    return rows


_OUTCOMES = {"wins": 1.0, "ties": 0.5, "losses": 0.0}


def show_pair_ranking(found: PairRanking, *, format: Format = "table") -> None:
    """Print the ranking; ``csv`` and ``json`` contain every value at full precision."""
    names = ("strengths", "differences", "notes")
    show_found({name: getattr(found, name) for name in names}, _grids(found), format)


def _grids(found: PairRanking) -> list[Grid]:
    grids = []
    for rows in found.strengths.partition_by("rater", maintain_order=True):
        records = rows.with_columns(is_first=pl.col("dimension").is_first_distinct()).to_dicts()
        column = partial(column_of, records)
        columns = (
            column("dimension", lambda row: row["dimension"] * row["is_first"], right=False),
            column("place", lambda row: NONE if row["place"] is None else str(row["place"])),
            column("system", lambda row: row["system"], right=False, wraps=True),
            column("strength [95 % CI]", _strength),
            column("apart from next", apart_text, right=False),
            column("wins, ties, losses", "{wins}, {ties}, {losses}".format_map),
        )
        by = rows["rater"][0] or "all raters"
        grids.append(Grid(f"strengths by {by}", columns))
    return grids


def _strength(row: Mapping[str, Any]) -> str:
    shown = interval_text(row["strength"], row["low"], row["high"], 3)
    reason = "" if row["reason"] is None else f" ({REASONS[row['reason']]})"
    return shown + reason
