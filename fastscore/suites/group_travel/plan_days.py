"""The days of plans, and the values in them: what stands where, by the keys that plans use."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastscore.suites.group_travel.cells import (
    as_object,
    by_canonical_key,
    canonical_key,
    frame_of,
    parse_cell,
    shortfall,
)
from fastscore.suites.group_travel.terms import MEALS, PLAN_KINDS, STOP

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
NAME_KEYS = ("name", "title", "eventname", "restaurantname", "attractionname", "hotelname")
_STOP_NAME_KEYS = ("place", "poi")
_TIME_KEYS = {"start": ("start", "starttime"), "end": ("end", "endtime"), "interval": ("time",)}

_OF_PLANS = pl.Schema(
    {"raw_output": pl.String, "n_days": pl.Int64, "fault": pl.String, "n_named": pl.Int64}
)
_TIMES = pl.Schema({"row": pl.UInt32, **dict.fromkeys(_TIME_KEYS, pl.String)})


class _Values(NamedTuple):
    """Named values of days: the day in its plan, the kind and the text; and times by row."""

    day: list[int]
    kind: list[str]
    text: list[str]
    times: list[tuple[int | str | None, ...]]


def read_days(cells: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read plan cells.

    Returns
    -------
    tuple
        A row a plan: ``raw_output``, ``n_days``, ``fault``. And the values in the plans' days, in
        order: ``plan``, ``day``, ``kind``, ``text`` and ``start``, ``end`` and ``interval``, which
        only stops that are objects have.
    """
    values = _Values([], [], [], [])
    plans = frame_of([_read_plan(parse_cell(cell), values) for cell in cells], _OF_PLANS)
    named = {
        "plan": np.repeat(np.arange(plans.height), plans["n_named"]),
        "day": pl.Series(values.day, dtype=pl.Int64),
        "kind": pl.Series(values.kind, dtype=pl.Enum(PLAN_KINDS)),
        "text": pl.Series(values.text, dtype=pl.String),
    }
    times = frame_of(values.times, _TIMES)
    none = pl.Series([None], dtype=pl.String)
    columns = {
        name: none.new_from_index(0, len(values.text)).scatter(times["row"], times[name])
        for name in _TIME_KEYS
    }
    return plans.drop("n_named"), pl.DataFrame(named | columns)


def _read_plan(value: Any, values: _Values) -> tuple[str, int, str | None, int]:
    """Append the named values of a plan; return its row of `_OF_PLANS`."""
    listed = _day_list(value)
    objects = [day for day in listed or () if isinstance(day, dict)]
    days = [day for day in objects if day]
    n_items, n_before = 0, len(values.text)
    for number, day in enumerate(days):
        for kind, item in _items(day):
            n_items += 1
            name = item
            if not isinstance(item, str):
                name, *times = _read_object(as_object(item), kind)
                if name is None:
                    continue
                values.times.append((len(values.text), *times))
            values.day.append(number)
            values.kind.append(kind)
            values.text.append(name)
    n_listed, n_named = len(listed or ()), len(values.text) - n_before
    raw_output = _text(value.get("raw_output") if isinstance(value, dict) else value)
    fault = (
        _unread(value, is_lacking=listed is None and raw_output is None)
        or shortfall(n_listed - len(objects), n_listed, "days are no objects")
        or shortfall(n_items - n_named, n_items, "values of days name no place")
    )
    return raw_output or "", len(days), fault, n_named


def _unread(value: Any, *, is_lacking: bool) -> str | None:
    if isinstance(value, str):
        return "neither JSON nor a literal; read as raw output"
    return "no list of days; ignored" if is_lacking and value is not None else None


def _day_list(value: Any) -> list[Any] | None:
    """Return the list of days of a plan: itself, or that under the first of the keys."""
    if isinstance(value, list):
        return value
    in_plan = as_object(value)
    return next((in_plan[key] for key in _DAY_KEYS if isinstance(in_plan.get(key), list)), None)


def _items(day: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the kinds and values of a day, lists item by item; nulls are no values.

    ``meals`` that are no object are a value without a kind.
    """
    for key, value in day.items():
        kind = _KIND_OF_KEY.get(canonical_key(key))
        if kind is None or value is None:
            continue
        if kind == _MEALS:
            served = as_object(value).items()
            yield from _items({key: meal for key, meal in served if canonical_key(key) in MEALS})
            if not isinstance(value, dict):
                yield "", None
        elif isinstance(value, list):
            yield from ((kind, item) for item in value if item is not None)
        else:
            yield kind, value


def _read_object(item: dict[str, Any], kind: str) -> list[str | None]:
    """Return the name of an item and the times of a stop."""
    found = by_canonical_key(item)
    if kind != STOP:
        return [_first_text(found, NAME_KEYS), None, None, None]
    name = _first_text(found, (*NAME_KEYS, *_STOP_NAME_KEYS))
    given = (
        next((found[key] for key in keys if found.get(key) is not None), None)
        for keys in _TIME_KEYS.values()
    )
    return [name, *map(_text, given)]


def _first_text(found: dict[str, Any], keys: Sequence[str]) -> str | None:
    return next((found[key] for key in keys if isinstance(found.get(key), str)), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
