"""The days of plans, and the values in them: what stands where, by the keys that plans use."""

from collections.abc import Mapping

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_readers.json.tokens import ARRAY, NULL, OBJECT

from fastscore.suites.group_travel.cell_trees import NO_NODE, CellTrees
from fastscore.suites.group_travel.cells import canonical_key
from fastscore.suites.group_travel.faults import faults, shortfalls
from fastscore.suites.group_travel.terms import MEALS, PLAN_KINDS, STOP
from fastscore.suites.grouping import place_in_group

_KIND_OF_KEY = {
    **{meal: meal for meal in MEALS},
    **dict.fromkeys(("accommodation", "accommodations", "lodging", "hotel"), "accommodation"),
    **dict.fromkeys(("attraction", "attractions"), "attraction"),
    **dict.fromkeys(("event", "events"), "event"),
    **dict.fromkeys(
        ("poilist", "pointofinterestlist", "pointsofinterest", "pointofinterest", "pois"), STOP
    ),
}
_DAY_KEYS = ("days", "plan", "itinerary")
NAME_KEYS = ("name", "title", "eventname", "restaurantname", "attractionname", "hotelname")
_STOP_NAME_KEYS = ("place", "poi")
_TIME_KEYS = {"start": ("start", "starttime"), "end": ("end", "endtime"), "interval": ("time",)}


def read_days(trees: CellTrees) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read plan cells.

    Returns
    -------
    tuple
        A row a plan: ``raw_output``, ``n_days``, ``fault``. And what the plans' days hold,
        in order: ``plan``, ``day``, ``kind``, ``text`` and ``start``, ``end`` and ``interval``,
        which are null but where a stop that is an object has them.
    """
    roots, tags = trees.roots, trees.tags
    in_plan = trees.members(roots, (*_DAY_KEYS, "raw_output"))
    lists = _day_lists(trees, in_plan)
    days, plan = trees.below(lists)
    is_object = tags[days] == OBJECT
    is_day = is_object & (trees.sizes(days) > 0)
    n_listed, n_objects = (np.bincount(of, minlength=len(roots)) for of in (plan, plan[is_object]))
    days, plan = days[is_day], plan[is_day]
    items, day, kind, strays = _items(trees, days)
    named, texts = _named_items(trees, items, kind)
    n_items, n_named = (
        np.bincount(plan[of], minlength=len(roots))
        for of in (np.concatenate([day, strays]), day[named])
    )
    raw_output = np.where(tags[roots] == OBJECT, in_plan["raw_output"], roots)
    is_lacking = (lists == NO_NODE) & ~trees.is_text(raw_output) & (tags[roots] != NULL)
    plans = pl.DataFrame(
        {
            "raw_output": trees.texts(raw_output).fill_null(""),
            "n_days": np.bincount(plan, minlength=len(roots)).astype(np.int64),
            "fault": pl.select(
                pl.coalesce(
                    faults(
                        len(roots),
                        (trees.is_text(roots), "neither JSON nor a literal; read as raw output"),
                        (is_lacking, "no list of days; ignored"),
                    ),
                    shortfalls(n_listed - n_objects, n_listed, "days are no objects"),
                    shortfalls(n_items - n_named, n_items, "values of days name no place"),
                )
            ).to_series(),
        }
    )
    values = pl.DataFrame(
        {
            "plan": plan[day[named]],
            "day": place_in_group(plan)[day[named]],
            "kind": pl.Series(PLAN_KINDS, dtype=pl.Enum(PLAN_KINDS)).gather(kind[named]),
            **texts,
        }
    )
    return plans, values


def _day_lists(trees: CellTrees, in_plan: Mapping[str, Indices]) -> Indices:
    """Return the list of days of each plan: itself, or that under the first of the keys."""
    lists = np.where(trees.tags[trees.roots] == ARRAY, trees.roots, NO_NODE)
    for key in reversed(_DAY_KEYS):
        lists = np.where(trees.tags[in_plan[key]] == ARRAY, in_plan[key], lists)
    return lists


def _items(trees: CellTrees, days: Indices) -> tuple[Indices, Indices, Indices, Indices]:
    """Return the values of days, lists item by item, in order; the day and the kind of each.

    Nulls are no values, nor are empty lists. Last come the days whose ``meals`` are no object.
    """
    kind_of_key = trees.key_codes(PLAN_KINDS, lambda key: _KIND_OF_KEY.get(canonical_key(key), ""))
    values, day = trees.below(days)
    kind = kind_of_key[trees.key[values]]
    is_meals = trees.key_codes(("meals",), canonical_key)[trees.key[values]] == 0
    is_object = trees.tags[values] == OBJECT
    meals = np.flatnonzero(is_meals & is_object)
    strays = day[is_meals & ~is_object & (trees.tags[values] > NULL)]
    served, of_meals = trees.below(values[meals])
    meal = trees.key_codes(MEALS, canonical_key)[trees.key[served]]
    values, day, kind = (
        np.concatenate(parts)
        for parts in ((values, served), (day, day[meals[of_meals]]), (kind, meal))
    )
    known = kind >= 0
    values, day, kind = values[known], day[known], kind[known]
    elements, owner = trees.below(np.where(trees.tags[values] == ARRAY, values, NO_NODE))
    items = np.concatenate([values, elements])
    counts = trees.tags[items] > NULL
    counts[: len(values)] &= trees.tags[values] != ARRAY
    order = np.flatnonzero(counts)[np.argsort(items[counts], kind="stable")]
    return (
        items[order],
        np.concatenate([day, day[owner]])[order],
        np.concatenate([kind, kind[owner]])[order],
        strays,
    )


def _named_items(
    trees: CellTrees, items: Indices, kind: Indices
) -> tuple[Indices, dict[str, pl.Series]]:
    """Return which items have a name, and their texts: ``text``, and the times of stops."""
    is_object = trees.tags[items] == OBJECT
    objects = items[is_object]
    names = (*NAME_KEYS, *_STOP_NAME_KEYS)
    wanted = (*names, *(key for keys in _TIME_KEYS.values() for key in keys))
    found = trees.members(objects, wanted, canonical_key)
    is_stop = kind[is_object] == PLAN_KINDS.index(STOP)
    name = np.full(len(objects), NO_NODE)
    for key in reversed(names):
        applies = trees.is_text(found[key])
        name = np.where(applies & is_stop if key in _STOP_NAME_KEYS else applies, found[key], name)
    node = np.where(trees.is_text(items), items, NO_NODE)
    node[is_object] = name
    named = np.flatnonzero(node != NO_NODE)
    times = {}
    for column, keys in _TIME_KEYS.items():
        first, last = found[keys[0]], found[keys[-1]]
        of_items = np.full(len(items), NO_NODE)
        of_items[is_object] = np.where(trees.tags[first] > NULL, first, last)
        times[column] = trees.texts(of_items[named])
    return named, {"text": trees.texts(node[named]), **times}
