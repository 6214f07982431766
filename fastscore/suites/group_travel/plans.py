"""Plans: their days, the places and stops that they name, and the checks that they pass."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.suites.group_travel.catalogue import (
    NAME_KEYS,
    canonical_key,
    frame_of,
    parse_cells,
    shortfall,
)
from fastscore.suites.group_travel.lexicon import (
    MEALS,
    PLAN_KINDS,
    SLOT_OF_KIND,
    STOP,
    UNFILLED,
    normalise,
)
from fastscore.suites.group_travel.metrics.conversation import check_days
from fastscore.suites.grouping import factorize

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
_NO_TIMES = (None,) * len(_TIME_KEYS)


_OF_PLANS = pl.Schema({"raw_output": pl.String(), "n_days": pl.Int64(), "fault": pl.String()})
_OF_VALUES = pl.Schema(
    {
        **dict.fromkeys(("plan", "day"), pl.Int64()),
        "kind": pl.Enum(PLAN_KINDS),
        **dict.fromkeys(("text", *_TIME_KEYS), pl.String()),
    }
)


def read_days(cells: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read plan cells: a row each, and a row for each value of a day that names something."""
    plans, values = [], []
    for plan, value in enumerate(parse_cells(cells)):
        listed = _day_list(value)
        days = [day for day in listed or () if isinstance(day, dict)]
        filled = [list(_values_of(day)) for day in days if day]
        read = [[(kind, _named_text(kind, item)) for kind, item in day] for day in filled]
        values += [
            (plan, day, kind, *texts)
            for day, of_day in enumerate(read)
            for kind, texts in of_day
            if texts is not None
        ]
        named = [texts is not None for of_day in read for _, texts in of_day]
        raw = value.get("raw_output") if isinstance(value, dict) else value
        raw = raw if isinstance(raw, str) else None
        if isinstance(value, str):
            fault: str | None = "neither JSON nor a literal; read as raw output"
        elif listed is None and raw is None and value is not None:
            fault = "no list of days; ignored"
        else:
            n_days, n_values = len(listed or ()), len(named)
            fault = shortfall(n_days - len(days), n_days, "days are no objects")
            fault = fault or shortfall(
                n_values - sum(named), n_values, "values of days name no place"
            )
        plans.append((raw or "", len(filled), fault))
    return frame_of(plans, _OF_PLANS), frame_of(values, _OF_VALUES)


def _day_list(plan: Any) -> list[Any] | None:
    """Return the list of days of a plan: itself, or that under the first of the keys."""
    if isinstance(plan, dict):
        return next((plan[key] for key in _DAY_KEYS if isinstance(plan.get(key), list)), None)
    return plan if isinstance(plan, list) else None


def _values_of(day: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a day with their kinds, lists item by item, nulls left out."""
    for key, value in day.items():
        kind = _kind_of(key)
        if kind == _MEALS and isinstance(value, dict):
            meals = {name: of for name, of in value.items() if _kind_of(name) in MEALS}
            yield from _values_of(meals)
        elif kind is not None:
            items = value if isinstance(value, list) and kind != _MEALS else [value]
            yield from ((kind, item) for item in items if item is not None)


def _kind_of(key: str) -> str | None:
    return _KIND_OF_KEY.get(canonical_key(key))


def _named_text(kind: str, item: Any) -> tuple[str | None, ...] | None:
    """Return an item's text or name, and the times of a stop; None if it names nothing."""
    if isinstance(item, str) and kind != _MEALS:
        return (item, *_NO_TIMES)
    if not isinstance(item, dict):
        return None
    found: dict[str, Any] = {}
    for key, value in item.items():
        found.setdefault(canonical_key(key), value)
    names = (*NAME_KEYS, *_STOP_NAME_KEYS) if kind == STOP else NAME_KEYS
    name = next((found[key] for key in names if isinstance(found.get(key), str)), None)
    if name is None:
        return None
    if kind != STOP:
        return (name, *_NO_TIMES)
    times = (
        next((found[key] for key in keys if found.get(key) is not None), None)
        for keys in _TIME_KEYS.values()
    )
    return (name, *(time if isinstance(time, str) else None for time in times))


_OF_NAME = ("plan", "day", "kind", "name")
_COST = r"(?i)^(?:cost|price|rating|total)\s*:"
_TIME = r"\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?"
_TO = r"\s*(?:to|until|till|-|–|—)\s*"
_VERBS = (
    *("visit", "stay", "check-in", "check-out", "attend", "explore", "dine", "eat", "arrive"),
    "depart",
)
_VERB = rf"(?:{'|'.join(_VERBS)})"
_TIME_FIRST = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*[:,;–—-]?\s*(.+)$"
_TIME_LAST = (
    rf"(?is)^\s*(.+?)(?:\s*,\s*|\s+)(?:{_VERB}(?:\s*,\s*|\s+))?"
    rf"(?:from\s+)?\(?({_TIME}){_TO}({_TIME})"
)
_INTERVAL = rf"(?i)^\s*({_TIME}){_TO}({_TIME})\s*$"
_CLOCK = r"(?i)^\s*(\d{1,2}):(\d{2})\s*(?:([ap])\.?m\.?)?\s*$"
_TRANSIT = r"(?i),\s*nearest transit\s*:.*$"
_OF_STOP = ("place", "plan", "day", "kind")


@dataclass(frozen=True, slots=True)
class Plans:
    """Distinct plans."""

    plans: pl.DataFrame  # a row a plan: `raw_output`, `n_days`, `fault`
    # a row a place that is named, by plan: `plan`, `day`, `kind` (a meal, accommodation,
    # attraction, event or stop), `name`
    names: pl.DataFrame
    # a row for each filled value that is not a stop, unchanged: `plan`, `slot`, `text`. They are in
    # the order of days, then of kinds.
    entries: pl.DataFrame
    checks: pl.DataFrame  # a row a plan that has days: `plan`, `passed`, `checks`


def read_plans(cells: pl.Series, *, strict_overnight: bool) -> Plans:
    """Read plan cells, a plan each."""
    plans, values = read_days(cells)
    is_stop = pl.col("kind") == STOP
    entries = values.filter(~is_stop).sort("plan", "day", "kind", maintain_order=True)
    stops = read_stops(values.filter(is_stop))
    parts = entries.select("plan", "day", "kind", name=pl.col("text").str.split(";"))
    named = [parts.explode("name", empty_as_null=False), stops.select(_OF_NAME)]
    names = _clean_names(pl.concat(named, rechunk=True).sort("plan", "day", maintain_order=True))
    return Plans(
        plans,
        names.select(_OF_NAME),
        entries.filter(is_filled(entries["text"])).select(
            "plan", "text", slot=pl.col("kind").cast(pl.String).replace(SLOT_OF_KIND)
        ),
        check_days(plans, names, stops, strict_overnight),
    )


def is_filled(texts: pl.Series) -> pl.Series:
    """Tell which texts are more than a placeholder."""
    return ~normalise(texts).is_in(UNFILLED)


def _clean_names(names: pl.DataFrame) -> pl.DataFrame:
    """Strip names and leave out costs and placeholders; add ``normal``."""
    stripped = names.with_columns(
        pl.col("name").str.strip_chars().str.strip_chars_end(".,").str.strip_chars_end()
    ).filter(~pl.col("name").str.contains(_COST))
    normal = stripped.with_columns(normal=normalise(stripped["name"]))
    return normal.filter(~pl.col("normal").is_in(UNFILLED))


def read_stops(values: pl.DataFrame) -> pl.DataFrame:
    """Read the stops of a day: name, and start and end in minutes (null where unparsed)."""
    is_object = pl.any_horizontal(pl.col("start", "end", "interval").is_not_null())
    placed = values.with_row_index("place")
    entries = (
        placed.filter(~is_object)
        .select(*_OF_STOP, pl.col("text").str.split(";"))
        .explode("text", empty_as_null=False)
        .with_columns(pl.col("text").str.strip_chars())
    )
    codes, texts = factorize(entries["text"])
    objects = placed.filter(is_object)
    within = pl.col("interval").str.extract_groups(_INTERVAL)
    of_objects = objects.select(
        pl.col("text").alias("name"),
        pl.coalesce("start", within.struct[0]).alias("start"),
        pl.coalesce("end", within.struct[1]).alias("end"),
    )
    return pl.concat(
        [
            entries.select(_OF_STOP).hstack(_read_entries(texts)[codes]),
            objects.select(_OF_STOP).hstack(_in_minutes(of_objects)),
        ]
    ).sort("place", maintain_order=True)


def _read_entries(texts: pl.Series) -> pl.DataFrame:
    """Read stops that are texts: a name with an interval before or after it."""
    # most entries begin with a name: they cannot begin with a time
    leading = pl.when(pl.col("text").str.contains(r"^\d")).then("text")
    first = leading.str.extract_groups(_TIME_FIRST)
    last = pl.col("text").str.extract_groups(_TIME_LAST)
    leads = first.struct[0].is_not_null()
    matched = texts.to_frame("text").select(
        pl.coalesce(first.struct[2], last.struct[0], "text")
        .str.replace(_TRANSIT, "")
        .alias("name"),
        pl.when(leads).then(first.struct[0]).otherwise(last.struct[1]).alias("start"),
        pl.when(leads).then(first.struct[1]).otherwise(last.struct[2]).alias("end"),
    )
    return _in_minutes(matched)


def _in_minutes(stops: pl.DataFrame) -> pl.DataFrame:
    """Read the clock times ``start`` and ``end`` of stops."""
    codes, clocks = factorize(pl.concat([stops["start"], stops["end"].rename("start")]))
    minutes = clocks.to_frame("clock").select(_minutes()).to_series()[codes]
    return stops.with_columns(
        minutes.head(stops.height).alias("start"), minutes.tail(stops.height).alias("end")
    )


def _minutes() -> pl.Expr:
    """Read a clock time; null for an impossible one: 10:75, 25:00, 0:30 am, 13:00 pm.

    Digits of other scripts make none either.
    """
    parts = pl.col("clock").str.extract_groups(_CLOCK)
    hour, minute = (parts.struct[place].cast(pl.Int64, strict=False) for place in (0, 1))
    half_of_day = parts.struct[2].str.to_lowercase()
    twelve = hour.is_between(1, 12)
    of_day = (
        pl.when(half_of_day.is_null() & (hour <= 24))
        .then(hour)
        .when((half_of_day == "a") & twelve)
        .then(hour % 12)
        .when((half_of_day == "p") & twelve)
        .then(hour % 12 + 12)
    )
    return pl.when(minute <= 59).then(of_day * 60 + minute)
