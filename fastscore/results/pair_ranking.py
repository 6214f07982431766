"""Systems ranked by verdicts on pairs: strengths of Bradley and Terry by dimension and rater."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from os import PathLike, fspath
from typing import Any

import numpy as np
import polars as pl

from fastscore.errors import UsageError
from fastscore.results.agreement import read_ratings, with_keys
from fastscore.results.differences import letter_groups
from fastscore.results.metric_text import NONE, interval_text, write_data
from fastscore.statistics import ALPHA
from fastscore.statistics.bradley_terry import BradleyTerry, bradley_terry
from fastscore.statistics.significance import holm
from fastscore.terminal import result_console
from fastscore.terminal.grids import Format, Grid, column_of, print_notes, show_grids

STRENGTHS_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("dimension", "rater"), pl.String()),
    "place": pl.Int64(),
    "system": pl.String(),
    **dict.fromkeys(("n", "wins", "ties", "losses"), pl.Int64()),
    **dict.fromkeys(("strength", "low", "high"), pl.Float64()),
    **dict.fromkeys(("letters", "reason"), pl.String()),
}
"""One row a dimension, rater (null: all of several) and system, the strongest first: verdicts on
it, its strength with a 95 % confidence interval over dialogues, and why one is missing. Strengths
are natural logarithms of odds and sum to 0. Systems with a common letter cannot be told apart."""

PAIR_DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys(("dimension", "rater", "a", "b"), pl.String()),
    **dict.fromkeys(("difference", "low", "high", "p", "p_holm"), pl.Float64()),
}
"""One row a dimension, rater and two systems: strength of b - strength of a with its interval and
p, corrected over all pairs and dimensions of the rater."""


@dataclass(frozen=True, slots=True)
class PairRanking:
    """What `rank` returns.

    Parameters
    ----------
    strengths, differences
        In `STRENGTHS_SCHEMA` and `PAIR_DIFFERENCES_SCHEMA`.
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


def rank(*files: str | PathLike[str], columns: Sequence[str] = ()) -> PairRanking:
    """Rank systems by verdicts on pairs of their dialogues, with the model of Bradley and Terry.

    Parameters
    ----------
    *files
        ``pairs.jsonl`` of `fastscore judge --against`, or people's files: JSON, JSON Lines, CSV or
        Parquet, a row a pair and rater. A row has ``dialogue``, ``model_a``, ``model_b``, and the
        verdicts ``A``, ``B`` or ``tie`` in an object ``verdict`` or in columns.
    columns
        Names of columns with verdicts, beside the bundled rubric's and ``overall``.

    Raises
    ------
    InputError
        A file cannot be read, or a rater judged a pair twice.
    UsageError
        A file has scores, not verdicts, or does not name the models.

    Examples
    --------
    >>> rows = [("u1", "x", "y", "A"), ("u1", "y", "z", "A"), ("u2", "x", "z", "B")]
    >>> names = ["dialogue", "model_a", "model_b", "overall"]
    >>> pl.DataFrame(rows, names, orient="row").write_csv("verdicts.csv")
    >>> fastscore.rank("verdicts.csv").strengths.select("system", "wins", "strength")
    """
    names = [fspath(file) for file in files]
    rated, notes = read_ratings(files, columns, (-math.inf, math.inf))
    for ratings, file in zip(rated, names, strict=True):
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
    named = [
        ratings.with_columns(rater=pl.col("judged_by").fill_null(file))
        for ratings, file in zip(rated, names, strict=True)
    ]
    ratings = with_keys(pl.concat(named))
    raters = ratings["rater"].unique(maintain_order=True).to_list()
    strengths: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    for rater in [None, *raters] if len(raters) > 1 else raters:
        own = ratings if rater is None else ratings.filter(rater=rater)
        parts = own.partition_by("dimension", maintain_order=True)
        found = [(part, *_fitted(part)) for part in parts]
        rows = [
            {"dimension": part["dimension"][0], "rater": rater, **row}
            for part, systems, fit in found
            for row in _differences(systems, fit)
        ]
        for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
            differences.append({**row, "p_holm": p})
        for part, systems, fit in found:
            place = {"dimension": part["dimension"][0], "rater": rater}
            differ = {
                (row["a"], row["b"]): row["p_holm"] < ALPHA
                for row in differences[len(differences) - len(rows) :]
                if row["dimension"] == place["dimension"]
            }
            strengths += ({**place, **row} for row in _ranked(part, systems, fit, differ))
    return PairRanking(
        pl.DataFrame(strengths, STRENGTHS_SCHEMA),
        pl.DataFrame(differences, PAIR_DIFFERENCES_SCHEMA),
        tuple(notes),
    )


def _fitted(ratings: pl.DataFrame) -> tuple[list[str], BradleyTerry]:
    """Return the systems in the order of the alphabet, and their strengths."""
    systems = pl.concat([ratings["system_a"], ratings["system_b"]]).unique().sort().to_list()
    first, second = (
        ratings[name].cast(pl.Enum(systems)).to_physical().to_numpy()
        for name in ("system_a", "system_b")
    )
    clusters = ratings["dialogue"].rank("dense").to_numpy()
    outcomes = ratings["score"].to_numpy()
    return systems, bradley_terry(first, second, outcomes, clusters, len(systems))


def _differences(systems: Sequence[str], fit: BradleyTerry) -> list[dict[str, Any]]:
    rows = []
    unit = np.eye(len(systems))
    for i, j in combinations(range(len(systems)), 2):
        found = fit.contrast(unit[j] - unit[i])
        if found is not None:
            row = dict(zip(("difference", "low", "high", "p"), found, strict=True))
            rows.append({"a": systems[i], "b": systems[j], **row})
    return rows


def _ranked(
    ratings: pl.DataFrame,
    systems: Sequence[str],
    fit: BradleyTerry,
    differ: dict[tuple[str, str], bool],
) -> list[dict[str, Any]]:
    """Return the systems' rows, the strongest first, or by shares of wins without strengths."""
    rows: list[dict[str, Any]] = []
    for number, system in enumerate(systems):
        scores = pl.concat(
            [ratings.filter(system_a=system)["score"], 1 - ratings.filter(system_b=system)["score"]]
        )
        found = fit.contrast(np.eye(len(systems))[number] - 1 / len(systems))
        strength = None if fit.strengths is None else float(fit.strengths[number])
        rows.append(
            {
                "system": system,
                "n": scores.len(),
                **{name: (scores == worth).sum() for name, worth in _OUTCOMES.items()},
                "share": float(scores.mean()),  # type: ignore[arg-type]
                "strength": strength,
                "low": None if found is None else found[1],
                "high": None if found is None else found[2],
                "reason": fit.reason,
            }
        )
    key = "share" if fit.strengths is None else "strength"
    rows.sort(key=lambda row: (-row[key], row["system"]))
    if fit.strengths is not None:
        both = {**differ, **{(b, a): found for (a, b), found in differ.items()}}
        letters = letter_groups([row["system"] for row in rows], both)
        for row, letter in zip(rows, letters, strict=True):
            row["place"] = 1 + sum(other["strength"] > row["strength"] for other in rows)
            row["letters"] = letter if differ else None
    return [{name: row.get(name) for name in _OF_SYSTEM} for row in rows]


_OUTCOMES = {"wins": 1.0, "ties": 0.5, "losses": 0.0}
_OF_SYSTEM = [name for name in STRENGTHS_SCHEMA if name not in ("dimension", "rater")]
_REASONS = {
    "separated": "no finite strengths",
    "too_few_units": "too few dialogues",
    "zero_variance": "nothing varies",
}


def show_pair_ranking(found: PairRanking, *, format: Format = "table") -> None:
    """Print the ranking; ``csv`` and ``json`` contain every value at full precision."""
    tables = {"strengths": found.strengths, "differences": found.differences}
    if write_data({**tables, "notes": found.notes}, format):
        return
    show_grids(map(_grid, found.strengths.partition_by("rater", maintain_order=True)), format)
    if format == "table":
        print_notes(result_console(), found.notes)


def _grid(rows: pl.DataFrame) -> Grid:
    records = rows.with_columns(is_first=pl.col("dimension").is_first_distinct()).to_dicts()
    column = partial(column_of, records)
    return Grid(
        f"strengths by {rows['rater'][0] or 'all raters'}: systems that share a letter cannot be "
        "told apart",
        (
            column("dimension", lambda row: row["dimension"] * row["is_first"], right=False),
            column("place", lambda row: NONE if row["place"] is None else str(row["place"])),
            column("system", lambda row: row["system"], right=False, wraps=True),
            column("strength [95 % CI]", _strength),
            column("letters", lambda row: row["letters"] or NONE, right=False),
            column("wins, ties, losses", "{wins}, {ties}, {losses}".format_map),
        ),
    )


def _strength(row: Mapping[str, Any]) -> str:
    shown = interval_text(row["strength"], row["low"], row["high"], 3)
    reason = "" if row["reason"] is None else f" ({_REASONS[row['reason']]})"
    return shown + reason
