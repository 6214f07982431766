"""Plans: the places that they name, and the checks that their days pass."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices

from fastscore.suites.group_travel.metrics.plan import check_days
from fastscore.suites.group_travel.normalise import normalise
from fastscore.suites.group_travel.plan_days import read_days
from fastscore.suites.group_travel.stops import read_stops
from fastscore.suites.group_travel.terms import PLAN_KINDS, SLOT_OF_KIND, STOP, UNFILLED
from fastscore.suites.grouping import (
    factorize,
    group_rows,
    offsets_of,
    take,
)

_OF_NAME = ("plan", "day", "kind", "name")
_TEXTS = pl.List(pl.String)
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


def read_plans(cells: pl.Series, *, strict_overnight: bool) -> Plans:
    """Read plan cells, a plan each."""
    plans, values = read_days(cells)
    is_stop = values["kind"] == STOP
    first_day = offsets_of(plans["n_days"].to_numpy())
    of_slots = values.filter(~is_stop).select("plan", "day", "kind", "text")
    of_slots = _by_day(of_slots, first_day, of_slots["kind"].to_physical().to_numpy())
    stops = read_stops(values.filter(is_stop))
    text, texts = factorize(of_slots["text"])
    named = [
        _named(of_slots, text, texts.str.split(";")),
        _named(stops, *_as_lists(*factorize(stops["name"]))),
    ]
    names = _by_day(pl.concat(named, rechunk=True), first_day)
    return Plans(
        plans,
        names.select(*_OF_NAME),
        of_slots.filter(is_filled(texts).gather(text)).select(
            "plan", pl.col("kind").cast(pl.String).replace(SLOT_OF_KIND).alias("slot"), "text"
        ),
        check_days(plans["n_days"].to_numpy(), names, stops, strict_overnight),
    )


def _by_day(rows: pl.DataFrame, first_day: Indices, kind: npt.ArrayLike = 0) -> pl.DataFrame:
    """Sort rows by ``plan`` and ``day``, and within a day by kind; equal ones stay in order."""
    day = first_day[rows["plan"].to_numpy()] + rows["day"].to_numpy()
    # rows are nearly in order, which this sort makes use of
    return rows[np.argsort(day * len(PLAN_KINDS) + np.asarray(kind), kind="stable")]


def is_filled(texts: pl.Series) -> pl.Series:
    """Tell which texts are more than a stand-in for nothing."""
    return ~normalise(texts).is_in(UNFILLED)


def _as_lists(codes: Indices, texts: pl.Series) -> tuple[Indices, pl.Series]:
    return codes, texts.reshape((-1, 1)).arr.to_list() if len(texts) else texts.cast(_TEXTS)


def _named(values: pl.DataFrame, codes: Indices, names: pl.Series) -> pl.DataFrame:
    """Return the names in values: what is neither a cost nor empty, stripped, and ``normal``.

    Parameters
    ----------
    values
        ``plan``, ``day`` and ``kind``.
    codes
        The row of each one's names.
    names
        Lists.
    """
    lists = names.to_frame("name").with_row_index("text").explode("name", empty_as_null=False)
    stripped = lists.with_columns(
        pl.col("name").str.strip_chars().str.strip_chars_end(".,").str.strip_chars_end()
    ).filter(~pl.col("name").str.contains(_COST))
    found = stripped.with_columns(normalise(stripped["name"]).alias("normal"))
    found = found.filter(~pl.col("normal").is_in(UNFILLED))
    rows, offsets = take(group_rows(found["text"].to_numpy(), len(names)), codes)
    owner = np.repeat(np.arange(values.height), np.diff(offsets))
    of_values = values.select("plan", "day", "kind")[owner]
    return pl.concat([of_values, found.select("name", "normal")[rows]], how="horizontal")
