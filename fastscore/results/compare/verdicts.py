"""Verdicts: corrected p-values over families of distinct tests, and what they allow to conclude."""

from collections.abc import Sequence
from math import comb

import polars as pl

from fastscore.errors import counted
from fastscore.results.compare.tables import DIFFERENCES_SCHEMA
from fastscore.statistics.significance import holm
from fastscore.suites.declarations import Metric
from fastscore.suites.families import families

_SAME = 1e-12


def decide(
    rows: pl.DataFrame, metrics: Sequence[Metric], alpha: float
) -> tuple[pl.DataFrame, list[str]]:
    """Correct p-values and conclude which differences are significant.

    Parameters
    ----------
    rows
        Differences with ``p``, ``low`` and ``high``.
    metrics
        The metrics that were compared.
    alpha
        The level of significance.

    Returns
    -------
    tuple
        The rows with ``family``, ``family_size``, ``p_holm``, ``significant`` and ``verdict``, and
        notes. A family's tests are those of its distinct metrics in all groups and pairs of
        sides. A copy of another metric is no test of the family: if its own p differs, it is
        multiplied by the family's size (Bonferroni).
    """
    rows = _correct(rows, metrics)
    direction = pl.when(pl.col("difference") > 0).then(pl.lit("higher")).otherwise(pl.lit("lower"))
    good = pl.col("metric").replace_strict({metric.id: metric.better for metric in metrics})
    excludes = (pl.col("low") > 0) | (pl.col("high") < 0)
    rows = rows.with_columns(significant=pl.col("p_holm") < alpha).with_columns(
        verdict=pl.when((pl.col("p_holm") < alpha).and_(excludes).fill_null(False).not_())
        .then(pl.lit(""))
        .when(good == "neither")
        .then(direction)
        .when(good == direction)
        .then(pl.lit("better"))
        .otherwise(pl.lit("worse"))
    )
    return rows.select(*DIFFERENCES_SCHEMA), _too_small(rows, alpha)


def _correct(rows: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """Add each row's family, the family's size and the corrected p."""
    tested: dict[str, tuple[str, str]] = {}
    for family in families(metrics):
        for test in family.tests:
            tested |= dict.fromkeys(test, (family.name, test[0]))
    rows = rows.drop("family", "family_size", "p_holm", "significant", "verdict").with_columns(
        family=pl.col("metric").replace_strict({id: name for id, (name, _) in tested.items()}),
        _test=pl.col("metric").replace_strict({id: test for id, (_, test) in tested.items()}),
    )
    place = ["group", "a", "b", "_test"]
    originals = rows.filter(pl.col("metric") == pl.col("_test")).select(*place, "family", _p="p")
    corrected = [
        part.with_columns(
            pl.Series("p_holm", holm(part["_p"].to_list()), pl.Float64),
            family_size=pl.lit(part["_p"].count(), pl.Int64),
        ).drop("family")
        for part in originals.partition_by("family", maintain_order=True)
    ]
    empty = originals.clear().select(*place, "_p", p_holm="_p", family_size=pl.lit(0, pl.Int64))
    rows = rows.join(
        pl.concat([empty, *corrected]),
        on=place,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    is_copy = (pl.col("p") - pl.col("_p")).abs() > _SAME
    own = pl.col("p") * pl.max_horizontal("family_size", 1)
    return rows.with_columns(
        p_holm=pl.when(pl.col("p").is_null())
        .then(None)
        .when(is_copy.fill_null(True))
        .then(pl.min_horizontal(own, 1.0))
        .otherwise("p_holm")
    )


def _too_small(rows: pl.DataFrame, alpha: float) -> list[str]:
    """Note families in which no p could have been small enough, by the number of units."""
    notes = []
    for family in rows.partition_by("family", maintain_order=True):
        exact = family.filter(pl.col("test") == "exact permutation").drop_nulls("p")
        if exact.is_empty() or exact.height < family["p"].count():
            continue
        size = int(family["family_size"].max() or 1)  # type: ignore[arg-type]
        least = min(map(_least_p, exact.iter_rows(named=True)))
        if least * size >= alpha:
            notes.append(
                f"{family['family'][0]} metrics: {counted(int(exact['n_units'].max()), 'units')} "  # type: ignore[arg-type]
                f"cannot give a corrected p below {alpha:g}: the smallest p is {least:.2g}, times "
                f"{counted(size, 'tests')}. Column detectable has the smallest difference that "
                "would have been seen"
            )
    return notes


def _least_p(row: dict[str, object]) -> float:
    """Return the smallest p that an exact test of so many units can have."""
    n_units, n_a, n_b = int(row["n_units"]), int(row["n_a"]), int(row["n_b"])  # type: ignore[call-overload]
    if row["design"] == "paired":
        return float(2.0 ** (1 - n_units))
    return (2 if n_a == n_b else 1) / comb(n_a + n_b, n_a)
