"""Plans: the places that they name, and the checks that their days pass."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from fastscore.suites.distinct import distinct
from fastscore.suites.group_travel.cell_trees import read_trees
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.plan_days import MEALS, STOP, read_days
from fastscore.suites.group_travel.schema import UNFILLED
from fastscore.suites.group_travel.stops import read_stops, timely_days
from fastscore.suites.ragged import Indices, offsets_of

SLOT_OF_KIND = {
    "breakfast": "cuisine",
    "lunch": "cuisine",
    "dinner": "cuisine",
    "accommodation": "lodging",
    "attraction": "attraction",
    "event": "event",
}
_OF_NAME = ("plan", "day", "kind", "name")
_COST = r"(?i)^(?:cost|price|rating|total)\s*:"


@dataclass(frozen=True, slots=True)
class Plans:
    """Distinct plans.

    Attributes
    ----------
    plans
        A row a plan: ``raw_output``, ``n_days``, ``fault``.
    names
        A row a place that is named, by plan: ``plan``, ``day``, ``kind`` (a meal, accommodation,
        attraction, event or stop), ``name``.
    entries
        A row a filled value that is no stop, as it stands: ``plan``, ``slot``, ``text``; by day,
        and in it by kind.
    checks
        A row a plan that has days: ``plan``, ``passed``, ``checks``.
    """

    plans: pl.DataFrame
    names: pl.DataFrame
    entries: pl.DataFrame
    checks: pl.DataFrame


def read_plans(cells: pl.Series, *, strict_overnight: bool) -> tuple[Indices, Plans]:
    """Read plan cells.

    Returns
    -------
    tuple
        The row of each cell's plan, and the distinct plans.
    """
    codes, trees = read_trees(cells)
    plans, values = read_days(trees)
    is_stop = values["kind"] == STOP
    of_slots = values.filter(~is_stop).select("plan", "day", "kind", "text")
    of_slots = of_slots.sort("plan", "day", "kind", maintain_order=True)
    stops = read_stops(values.filter(is_stop))
    names = pl.concat([_split_names(of_slots), _filled_names(stops.select(*_OF_NAME))])
    names = names.sort("plan", "day", maintain_order=True)
    return codes, Plans(
        plans,
        names.select(*_OF_NAME),
        of_slots.filter(is_filled(of_slots["text"])).select(
            "plan", pl.col("kind").cast(pl.String).replace(SLOT_OF_KIND).alias("slot"), "text"
        ),
        _check_days(plans["n_days"].to_numpy(), names, stops, strict_overnight),
    )


def is_filled(texts: pl.Series) -> pl.Series:
    """Tell which texts are more than a stand-in for nothing."""
    return ~normalise(texts).is_in(UNFILLED)


def _split_names(values: pl.DataFrame) -> pl.DataFrame:
    """Split values at semicolons into names; leave out costs and what is not filled."""
    split = values.select("plan", "day", "kind", pl.col("text").str.split(";").alias("name"))
    return _filled_names(split.explode("name", empty_as_null=False))


def _filled_names(names: pl.DataFrame) -> pl.DataFrame:
    """Strip names, and add ``normal``."""
    stripped = names.with_columns(
        pl.col("name").str.strip_chars().str.strip_chars_end(".,").str.strip_chars_end()
    ).filter(~pl.col("name").str.contains(_COST))
    normal = normalise(stripped["name"]).alias("normal")
    return stripped.with_columns(normal).filter(~pl.col("normal").is_in(UNFILLED))


def _check_days(
    n_days: Indices, names: pl.DataFrame, stops: pl.DataFrame, strict_overnight: bool
) -> pl.DataFrame:
    """Count the checks of each plan and those that it passes."""
    first_day = offsets_of(n_days)
    n_all = int(first_day[-1])
    served = names.filter(pl.col("kind").cast(pl.String).is_in(MEALS)).select(
        (pl.lit(first_day).gather("plan") + pl.col("day")).alias("day_row"),
        pl.col("kind").to_physical().alias("meal"),
        "normal",
    )
    courses = served.group_by("day_row", "meal").agg(pl.col("normal").str.join(" "))
    dishes, _ = distinct(courses["normal"])
    menu = np.full((n_all, len(MEALS)), -1)
    menu[courses["day_row"].to_numpy(), courses["meal"].to_numpy()] = dishes
    timely = timely_days(stops, first_day, strict_overnight)
    lunch, dinner = (menu[:, MEALS.index(meal)] for meal in ("lunch", "dinner"))
    passed = (menu >= 0).sum(axis=1) + (lunch != dinner) + (timely == 1)
    plan = np.repeat(np.arange(len(n_days)), n_days)
    has_days = np.flatnonzero(n_days)
    return pl.DataFrame(
        {
            "plan": has_days,
            "passed": np.bincount(plan, passed, len(n_days)).astype(np.int64)[has_days],
            "checks": np.bincount(plan, 4 + (timely >= 0), len(n_days)).astype(np.int64)[has_days],
        }
    )
