"""The days of plans, and the values in them, by the keys that plans use."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, Mask
from fastscore_readers.json.tokens import ARRAY, NULL, OBJECT

from fastscore.suites.group_travel.catalogue import NAME_KEYS, canonical_key, cell_values, shortfall
from fastscore.suites.group_travel.json_members import (
    KeyedMembers,
    all_members,
    either,
    joined,
    texts_or_replaced,
)
from fastscore.suites.group_travel.terms import MEALS, PLAN_KINDS, STOP
from fastscore.suites.grouping import first_of_each, place_in_group
from fastscore.suites.json_values import JsonValues, Problems, elements, members

_MEALS = "meals"
_KIND_OF_KEY = {
    **{meal: meal for meal in (*MEALS, _MEALS)},
    **dict.fromkeys(("accommodation", "accommodations", "lodging", "hotel"), "accommodation"),
    **dict.fromkeys(("attraction", "attractions"), "attraction"),
    **dict.fromkeys(("event", "events"), "event"),
    **dict.fromkeys(
        ("poilist", "pointofinterestlist", "pointsofinterest", "pointofinterest", "pois"), STOP
    ),
}
_DAY_KEYS = ("days", "plan", "itinerary")
_STOP_NAME_KEYS = ("place", "poi")
_TIME_KEYS = {"start": ("start", "starttime"), "end": ("end", "endtime"), "interval": ("time",)}
_FIELD_KEYS = (*NAME_KEYS, *_STOP_NAME_KEYS, *chain.from_iterable(_TIME_KEYS.values()))


class _Items(NamedTuple):
    """Values of days in the order of their text: the row of each one's day, and its kind."""

    values: JsonValues
    day: Indices
    kind: Indices


def read_days(cells: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read plan cells."""
    plans = cell_values(cells)
    n_plans = len(plans)
    in_plan = members(plans, (*_DAY_KEYS, "raw_output"), Problems())
    lists = _day_lists(plans, in_plan)
    listed, plan = elements(lists)
    of_days = all_members(listed)
    is_day = np.bincount(of_days.owner, minlength=len(plan)) > 0
    items, n_strays = _items(of_days, len(plan))
    texts, named = _texts_of(items)
    raw_output = texts_or_replaced(either(plans, in_plan["raw_output"], plans.is_text))
    n_listed, n_objects, n_days, n_unnamed, n_items = (
        np.bincount(of, weights, minlength=n_plans).astype(np.int64)
        for of, weights in (
            (plan, None),
            (plan, listed.tags == OBJECT),
            (plan, is_day),
            (plan, n_strays + np.bincount(items.day, ~named, minlength=len(plan))),
            (plan, n_strays + np.bincount(items.day, minlength=len(plan))),
        )
    )
    is_lacking = (lists.tags != ARRAY) & raw_output.is_null().to_numpy() & (plans.tags != NULL)
    of_plans = pl.DataFrame(
        {
            "raw_output": raw_output.fill_null(""),
            "n_days": n_days,
            "fault": pl.select(
                pl.when(pl.Series(plans.is_text))
                .then(pl.lit("neither JSON nor a literal; read as raw output"))
                .when(pl.Series(is_lacking))
                .then(pl.lit("no list of days; ignored"))
                .otherwise(
                    pl.coalesce(
                        _shortfall(n_listed - n_objects, n_listed, "days are no objects"),
                        _shortfall(n_unnamed, n_items, "values of days name no place"),
                    )
                )
            ).to_series(),
        }
    )
    number = np.zeros(len(plan), np.int64)
    number[is_day] = place_in_group(plan[is_day])
    day = items.day[named]
    columns = {
        "plan": plan[day],
        "day": number[day],
        "kind": pl.Series(PLAN_KINDS, dtype=pl.Enum(PLAN_KINDS)).gather(items.kind[named]),
    }
    return of_plans, pl.DataFrame(columns | texts)


def _shortfall(missed: Indices, of: Indices, words: str) -> pl.Expr:
    """Return faults as `shortfall` does of one, null where nothing is missed."""
    rows = np.flatnonzero(missed)
    found = [shortfall(int(missed[row]), int(of[row]), words) for row in rows]
    none = pl.Series([None], dtype=pl.String).new_from_index(0, len(missed))
    return pl.lit(none.scatter(rows, found))


def _day_lists(plans: JsonValues, in_plan: Mapping[str, JsonValues]) -> JsonValues:
    """Return the list of days of each plan: itself, or that under the first of the keys."""
    lists = plans
    for key in reversed(_DAY_KEYS):
        lists = either(in_plan[key], lists, in_plan[key].tags == ARRAY)
    return lists


def _items(of_days: KeyedMembers, n_days: int) -> tuple[_Items, Indices]:
    """Return the values of days, lists item by item; and how many ``meals`` are no object.

    Nulls are no values.
    """
    meals, rows = _of_kind(of_days, [_MEALS]), _of_kind(of_days, PLAN_KINDS)
    served = all_members(meals.values)
    strays = meals.owner[~np.isin(meals.values.tags, (OBJECT, NULL))]
    inner = _of_kind(served, MEALS)
    values = joined(rows.values, inner.values)
    day = np.concatenate([rows.owner, meals.owner[inner.owner]])
    kind = np.concatenate([rows.key, inner.key])
    found, owner = elements(values)
    whole = np.flatnonzero(values.tags != ARRAY)
    values = joined(values.take(whole), found)
    day, kind = (np.concatenate([of[whole], of[owner]]) for of in (day, kind))
    order = np.flatnonzero(values.tags > NULL)
    order = order[np.argsort(values.start[order], kind="stable")]
    n_strays = np.bincount(strays, minlength=n_days)
    return _Items(values.take(order), day[order], kind[order]), n_strays


def _of_kind(found: KeyedMembers, kinds: Sequence[str]) -> KeyedMembers:
    """Return members whose keys name some kinds, each with the kind's number for its key."""
    number = {kind: place for place, kind in enumerate(kinds)}
    meant = [number.get(_KIND_OF_KEY.get(canonical_key(key), ""), -1) for key in found.keys]
    kind = np.array(meant, np.int64)[found.key]
    rows = np.flatnonzero(kind >= 0)
    return replace(found.take(rows), key=kind[rows])


def _texts_of(items: _Items) -> tuple[dict[str, pl.Series], Mask]:
    """Return the texts of items, or their names and the times of stops; and which have a name."""
    objects = np.flatnonzero(items.values.tags == OBJECT)
    found = _first_of_canonical(all_members(items.values.take(objects)))
    is_stop = (items.kind[objects] == PLAN_KINDS.index(STOP))[found.owner]
    of_stops = found.take(np.flatnonzero(is_stop & (found.values.tags > NULL)))
    is_text = found.values.is_text
    is_name = is_text & (is_stop | ~np.isin(found.key, _numbers(_STOP_NAME_KEYS)))
    names = _best(found.take(np.flatnonzero(is_name)), (*NAME_KEYS, *_STOP_NAME_KEYS))
    n_items = len(items.values)
    name = _scattered(objects[names.owner], names.values, n_items)
    texts = either(items.values, name, items.values.is_text)
    named = np.flatnonzero(texts.is_text)
    columns = {"text": texts_or_replaced(texts.take(named))}
    for column, keys in _TIME_KEYS.items():
        times = _best(of_stops, keys)
        of_items = _scattered(objects[times.owner], times.values, n_items)
        columns[column] = texts_or_replaced(of_items.take(named))
    return columns, texts.is_text


def _numbers(keys: Sequence[str]) -> list[int]:
    return [_FIELD_KEYS.index(key) for key in keys]


def _first_of_canonical(found: KeyedMembers) -> KeyedMembers:
    """Return members under `_FIELD_KEYS`, numbered so; of equal canonical keys the first counts."""
    number = {key: place for place, key in enumerate(_FIELD_KEYS)}
    meant = np.array([number.get(canonical_key(key), -1) for key in found.keys], np.int64)
    key = meant[found.key]
    rows = np.flatnonzero(key >= 0)
    rows = rows[first_of_each(found.owner[rows] * len(_FIELD_KEYS) + key[rows])]
    return replace(found.take(rows), key=key[rows])


def _best(found: KeyedMembers, keys: Sequence[str]) -> KeyedMembers:
    """Return of each object the member under the first of some keys."""
    rows = np.flatnonzero(np.isin(found.key, _numbers(keys)))
    rows = rows[np.lexsort((found.key[rows], found.owner[rows]))]
    return found.take(rows[first_of_each(found.owner[rows])])


def _scattered(rows: Indices, values: JsonValues, n_rows: int) -> JsonValues:
    """Put values into some of many rows; there are none in the others."""
    tags = np.zeros(n_rows, np.uint8)
    start, end = np.zeros((2, n_rows), np.int64)
    tags[rows], start[rows], end[rows] = values.tags, values.start, values.end
    return replace(values, tags=tags, start=start, end=end, dialogue=np.arange(n_rows))
