"""Agreement of raters: judges with each other and with people.

Every file of ratings is alike, whoever wrote it: a row a dialogue and rater, with scores by
dimension. Dialogues that several raters scored are compared, each pair of raters by Cohen's kappa
with quadratic weights, all raters by Krippendorff's alpha.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fastscore.errors import InputError, UsageError, counted
from fastscore.results.judged_runs import read_judgements
from fastscore.results.number_text import write_csv
from fastscore.statistics.agreement import Level, krippendorff_alpha, weighted_kappa
from fastscore.suites.judged import judge_source, list_ratings
from fastscore.terminal import result_console, write
from fastscore.terminal.grids import (
    Column,
    Format,
    Grid,
    latex,
    markdown,
    print_grid,
    print_notes,
)

PAIRS_SCHEMA: dict[str, pl.DataType] = {
    "dimension": pl.String(),
    "first": pl.String(),
    "second": pl.String(),
    "n": pl.Int64(),
    "kappa": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "difference": pl.Float64(),
    "reason": pl.String(),
}
"""Two raters: of how many dialogues both scored the dimension, their weighted kappa with its 95 %
confidence interval, the mean of the second's score minus the first's, and why a value is null."""

ALPHAS_SCHEMA: dict[str, pl.DataType] = {
    "dimension": pl.String(),
    "distance": pl.String(),
    "raters": pl.Int64(),
    "n": pl.Int64(),
    "alpha": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "reason": pl.String(),
}
"""All raters: by how many the dimension is scored, in how many dialogues by two or more, alpha with
its 95 % confidence interval, and why a value is null."""

_KEYS = (("dialogue",), ("dialogue", "model"), ("dialogue", "model", "judged_file", "judged_line"))
"""The columns that name a dialogue: the first of these with no row of a rater twice."""

_DISTANCES: tuple[Level, ...] = ("ordinal", "interval")


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of raters.

    Parameters
    ----------
    raters
        Their names: who judged, as the files say, else the file.
    pairs, alphas
        In `PAIRS_SCHEMA` and `ALPHAS_SCHEMA`.
    notes
        What was left out.

    Examples
    --------
    >>> found = fastscore.agreement("judge.csv", "people.csv")
    >>> found.raters
    ('judge.csv', 'people.csv')
    """

    raters: tuple[str, ...]
    pairs: pl.DataFrame
    alphas: pl.DataFrame
    notes: tuple[str, ...]


def agreement(
    *files: str | PathLike[str],
    columns: Sequence[str] = (),
    scale: tuple[float, float] = (1.0, 5.0),
) -> Agreement:
    """Compare the scores that several raters gave to the same dialogues.

    Parameters
    ----------
    *files
        Files of judges or people: JSON, JSON Lines, CSV or Parquet, a row a dialogue and rater.
        A row has ``dialogue``, the scores in an object ``judge`` or in columns, and the rater under
        ``judged_by``, ``rater`` or ``annotator``. Without that the file is the rater.
    columns
        Names of columns with scores, beside the bundled rubric's and ``overall``.
    scale
        The smallest and largest score. Others are left out and counted in a note.

    Raises
    ------
    InputError
        A file cannot be read, or a rater scored a dialogue twice.
    UsageError
        There are fewer than two raters, or they share no dialogue and dimension.

    Examples
    --------
    >>> judge = pl.DataFrame({"dialogue": ["a", "b", "c"], "overall": [4, 2, 5]})
    >>> people = judge.with_columns(overall=pl.Series([5, 2, 5]))
    >>> judge.write_csv("judge.csv")
    >>> people.write_csv("people.csv")
    >>> fastscore.agreement("judge.csv", "people.csv").pairs.select("dimension", "kappa")
    """
    if not files:
        raise UsageError(
            "No file is named.", "Name two files or more with the scores of judges or people."
        )
    if not scale[0] < scale[1]:
        raise UsageError(f"--judge-range is {scale}, expected a smaller and a larger number.")
    rated = [_ratings(fspath(file), columns, scale) for file in files]
    ratings = _with_raters([frame for frame, _ in rated], [fspath(file) for file in files])
    notes = [note for _, found in rated for note in found]
    raters = ratings["rater"].unique(maintain_order=True).to_list()
    if len(raters) < 2:
        raise UsageError(
            f"Only one rater: {', '.join(raters) or 'none'}.",
            "Name two files or more, or one that names several raters under 'judged_by'.",
        )
    key = _key(ratings)
    pairs: list[tuple[Any, ...]] = []
    alphas: list[tuple[Any, ...]] = []
    for name in ratings["dimension"].unique(maintain_order=True):
        wide = _wide(ratings.filter(pl.col("dimension") == name), key)
        if wide.width - 1 < 2:
            notes.append(f"{name}: only {wide.columns[1]} scored it; it is not compared.")
            continue
        pairs += _pairs(name, wide)
        alphas += _alphas(name, wide)
    if not pairs or not any(n for _, _, _, n, *_ in pairs):
        first = {rater: ratings.filter(rater=rater)["dialogue"][0] for rater in raters}
        shown = ", ".join(f"{dialogue!r} by {rater}" for rater, dialogue in first.items())
        raise UsageError(
            f"No two raters scored the same dimension of the same dialogue (the first: {shown}).",
            "Dialogues need equal ids in all files. --judge-column names columns with scores.",
        )
    return Agreement(
        tuple(raters),
        pl.DataFrame(pairs, schema=PAIRS_SCHEMA, orient="row"),
        pl.DataFrame(alphas, schema=ALPHAS_SCHEMA, orient="row"),
        tuple(notes),
    )


def _ratings(
    file: str, columns: Sequence[str], scale: tuple[float, float]
) -> tuple[pl.DataFrame, list[str]]:
    """Read a file's ratings, a row a score, and describe what was refused."""
    rows, rejects = read_judgements(Path(file), judge_source(columns))
    ratings, refused = list_ratings(rows, scale, columns)
    notes = []
    if refused.height or rejects.height:
        first = (rejects if refused.is_empty() else refused).row(0, named=True)
        notes.append(
            f"{file}: {counted(rejects.height, 'rows')} and {counted(refused.height, 'scores')} "
            f"were refused, the first at line {first['line']}: {first['field']}: {first['reason']} "
            f"({first['found']})."
        )
    if ratings.is_empty():
        raise InputError(
            f"{file}: no score was found.",
            "Scores are in an object 'judge', or in columns that --judge-column names.",
        )
    return ratings, notes


def _with_raters(frames: Sequence[pl.DataFrame], files: Sequence[str]) -> pl.DataFrame:
    """Join the ratings of files under their raters' names; a name of two files gets its file."""
    named = [
        frame.with_columns(
            pl.col("judged_by").fill_null(file).alias("rater"), source=pl.lit(number)
        )
        for number, (frame, file) in enumerate(zip(frames, files, strict=True))
    ]
    ratings = pl.concat(named)
    is_shared = pl.col("source").n_unique().over("rater") > 1
    of_file = pl.col("source").replace_strict(dict(enumerate(files)), return_dtype=pl.String)
    return ratings.with_columns(
        pl.when(is_shared)
        .then(pl.format("{} ({})", "rater", of_file))
        .otherwise("rater")
        .alias("rater")
    )


def _key(ratings: pl.DataFrame) -> tuple[str, ...]:
    """Return the fewest columns by which no rater scored a dimension of a dialogue twice."""
    known = [key for key in _KEYS if not any(ratings[name].has_nulls() for name in key)]
    for key in known:
        if not ratings.select("rater", "dimension", *key).is_duplicated().any():
            return key
    twice = ratings.filter(ratings.select("rater", "dimension", *known[-1]).is_duplicated())
    row = twice.row(0, named=True)
    raise InputError(
        f"{row['file']}:{row['line']}: {row['rater']} scored {row['dimension']} of dialogue "
        f"{row['dialogue']!r} more than once.",
        "Give one score a dialogue and rater, and the column 'model' if models share ids.",
    )


def _wide(ratings: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Return a row a dialogue: its id, and a column of scores a rater."""
    return ratings.pivot("rater", index=list(key), values="score").drop(*key[1:])


def _scores(wide: pl.DataFrame, raters: Sequence[str]) -> Any:
    return wide.select(pl.col(raters).fill_null(np.nan)).to_numpy()


def _pairs(dimension: str, wide: pl.DataFrame) -> list[tuple[Any, ...]]:
    found = []
    clusters = wide["dialogue"].rank("dense").to_numpy()
    for first, second in combinations(wide.columns[1:], 2):
        a, b = _scores(wide, [first, second]).T
        kappa = weighted_kappa(a, b, clusters)
        difference = (b - a)[np.isfinite(b - a)]
        mean = float(difference.mean()) if difference.size else None
        row = (kappa.n, kappa.value, kappa.low, kappa.high, mean, kappa.reason)
        found.append((dimension, first, second, *row))
    return found


def _alphas(dimension: str, wide: pl.DataFrame) -> list[tuple[Any, ...]]:
    found = []
    raters = wide.columns[1:]
    clusters = wide["dialogue"].rank("dense").to_numpy()
    for distance in _DISTANCES:
        alpha = krippendorff_alpha(_scores(wide, raters), distance, clusters)
        row = (alpha.n, alpha.value, alpha.low, alpha.high, alpha.reason)
        found.append((dimension, distance, len(raters), *row))
    return found


_REASONS = {
    "too_few_values": "too few dialogues",
    "zero_variance": "all scores are equal",
    "no_disagreement": "no disagreement",
}


def show_agreement(found: Agreement, *, format: Format = "table") -> None:
    """Print the agreement of raters.

    Parameters
    ----------
    found
        Their agreement.
    format
        ``csv`` and ``json`` hold every value at full precision.
    """
    if format == "json":
        content = {
            "raters": list(found.raters),
            "pairs": found.pairs.to_dicts(),
            "alphas": found.alphas.to_dicts(),
            "notes": list(found.notes),
        }
        write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return
    if format == "csv":
        write(write_csv(pl.concat([found.pairs, found.alphas], how="diagonal")))
        return
    grids = [_pairs_grid(found.pairs), _alphas_grid(found.alphas)]
    if format == "table":
        console = result_console()
        for grid in grids:
            print_grid(console, grid)
            console.print()
        print_notes(console, found.notes)
    else:
        write("\n".join(map(markdown if format == "markdown" else latex, grids)))


def _pairs_grid(pairs: pl.DataFrame) -> Grid:
    columns = (
        _texts("dimension", pairs["dimension"]),
        _texts("first", pairs["first"]),
        _texts("second", pairs["second"]),
        _numbers("n", pairs["n"], "{:,}"),
        _numbers("kappa", pairs["kappa"], "{:.3f}"),
        _intervals(pairs),
        _numbers("difference", pairs["difference"], "{:+.3f}"),
    )
    return Grid("Each pair of raters: Cohen's kappa with quadratic weights", columns)


def _alphas_grid(alphas: pl.DataFrame) -> Grid:
    columns = (
        _texts("dimension", alphas["dimension"]),
        _texts("distance", alphas["distance"]),
        _numbers("raters", alphas["raters"], "{:,}"),
        _numbers("n", alphas["n"], "{:,}"),
        _numbers("alpha", alphas["alpha"], "{:.3f}"),
        _intervals(alphas),
    )
    return Grid("All raters: Krippendorff's alpha", columns)


def _texts(header: str, values: pl.Series) -> Column:
    return Column(header, tuple(values), right=False, wraps=True)


def _numbers(header: str, values: pl.Series, form: str) -> Column:
    return Column(header, tuple("-" if one is None else form.format(one) for one in values))


def _intervals(rows: pl.DataFrame) -> Column:
    """Write both ends, or the reason why there are none."""
    cells = tuple(
        f"{low:.3f} to {high:.3f}" if low is not None else _REASONS[reason]
        for low, high, reason in rows.select("low", "high", "reason").iter_rows()
    )
    return Column("95 % interval", cells)
