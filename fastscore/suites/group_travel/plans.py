"""Plans: their days, the places and stops that they name, and the checks that they pass.

Days are read by the keys that plans use. Names with an interval of the day are read by a kernel if
both are written in the plainest ways. It spells comparisons out, because `in` over a tuple compiles
to slower code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices, Int64Array, Mask
from fastscore_jit.arrow import string_column, text_rows
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import always_inlined
from fastscore_jit.memory import View, Views, load_byte
from fastscore_readers.json.tokens import ARRAY, NULL, OBJECT

from fastscore.suites.columns import put_at
from fastscore.suites.group_travel.catalogue import NAME_KEYS, canonical_key, cell_values, shortfall
from fastscore.suites.group_travel.json_members import KeyedMembers, all_members, texts_or_replaced
from fastscore.suites.group_travel.lexicon import (
    MEALS,
    PLAN_KINDS,
    SLOT_OF_KIND,
    STOP,
    UNFILLED,
    normalise,
)
from fastscore.suites.group_travel.metrics.conversation import check_days
from fastscore.suites.grouping import (
    factorize,
    first_of_each,
    group_rows,
    offsets_of,
    place_in_group,
    take,
)
from fastscore.suites.json_values import JsonValues, Problems, either, elements, joined, members

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
        "kind": pl.Series(PLAN_KINDS, dtype=pl.Enum(PLAN_KINDS))[items.kind[named]],
    }
    return of_plans, pl.DataFrame(columns | texts)


def _shortfall(missed: Indices, of: Indices, words: str) -> pl.Expr:
    """Return faults as `shortfall` does of one, null where nothing is missed."""
    rows = np.flatnonzero(missed)
    found = [shortfall(int(missed[row]), int(of[row]), words) for row in rows]
    return pl.lit(put_at(rows, pl.Series(found, dtype=pl.String), len(missed)))


def _day_lists(plans: JsonValues, in_plan: Mapping[str, JsonValues]) -> JsonValues:
    """Return the list of days of each plan: itself, or that under the first of the keys."""
    lists = plans
    for key in reversed(_DAY_KEYS):
        lists = either(in_plan[key], lists, in_plan[key].tags == ARRAY)
    return lists


def _items(of_days: KeyedMembers, n_days: int) -> tuple[_Items, Indices]:
    """Return the values of days, lists item by item, and how many ``meals`` are not an object.

    Nulls are left out.
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


_OF_NAME = ("plan", "day", "kind", "name")
_TEXTS = pl.List(pl.String)
_COST = r"(?i)^(?:cost|price|rating|total)\s*:"
_TIME = r"\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?"
_TO = r"\s*(?:to|until|till|-|–|—)\s*"
_VERBS = (
    *("visit", "stay", "check-in", "check-out", "attend", "explore", "dine", "eat", "arrive"),
    "depart",
)
_VERB = rf"(?:{'|'.join(_VERBS)})"
_LEADS = [f", {verb} from " for verb in _VERBS]
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
    """Tell which texts are more than a placeholder."""
    return ~normalise(texts).is_in(UNFILLED)


def _as_lists(codes: Indices, texts: pl.Series) -> tuple[Indices, pl.Series]:
    return codes, texts.reshape((-1, 1)).arr.to_list() if len(texts) else texts.cast(_TEXTS)


def _named(values: pl.DataFrame, codes: Indices, names: pl.Series) -> pl.DataFrame:
    """Return the names in values: what is neither a cost nor empty, stripped, and ``normal``."""
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
    objects = placed.filter(is_object)
    within = pl.col("interval").str.extract_groups(_INTERVAL)
    of_objects = objects.select(
        pl.col("text").alias("name"),
        pl.coalesce("start", within.struct[0]).alias("start"),
        pl.coalesce("end", within.struct[1]).alias("end"),
    )
    return pl.concat(
        [
            entries.select(_OF_STOP).hstack(_read_entries(entries["text"])),
            objects.select(_OF_STOP).hstack(_in_minutes(of_objects)),
        ]
    ).sort("place", maintain_order=True)


def _read_entries(texts: pl.Series) -> pl.DataFrame:
    """Read stops that are texts; those that are not in the plain form by patterns."""
    begin, size, *interval = plain_intervals(texts, _LEADS)
    start, end = (pl.Series(minutes).set(pl.Series(minutes < 0), None) for minutes in interval)
    plain = pl.DataFrame({"name": texts, "start": start, "end": end}).with_columns(
        pl.col("name").str.slice(pl.Series(np.maximum(begin, 0)), pl.Series(np.maximum(size, 0)))
    )
    others = np.flatnonzero(size < 0)
    if not len(others):
        return plain
    matched = _match_entries(texts[others])
    return plain.with_columns(plain[name].scatter(others, matched[name]) for name in plain.columns)


def _match_entries(texts: pl.Series) -> pl.DataFrame:
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
    minutes = clocks.to_frame("clock").select(_minutes("clock")).to_series()[codes]
    return stops.with_columns(
        minutes.head(stops.height).alias("start"), minutes.tail(stops.height).alias("end")
    )


def _minutes(column: str) -> pl.Expr:
    """Read a clock time; null for an impossible one: 10:75, 25:00, 0:30 am, 13:00 pm.

    Digits of other scripts make none either.
    """
    parts = pl.col(column).str.extract_groups(_CLOCK)
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
    return pl.when(minute <= 59).then(of_day * 60 + minute).alias(column)


# ruff: noqa: SIM109, SIM110


_ZERO, _COLON, _COMMA, _SPACE, _LOWER_CASE = 0x30, 0x3A, 0x2C, 0x20, 0x20
_HYPHEN, _NEWLINE, _A, _P, _M, _T, _O = 0x2D, 0x0A, 0x61, 0x70, 0x6D, 0x74, 0x6F
_IMPOSSIBLE, _NO_TIME = -1, -2


def plain_intervals(
    strings: Any, leads: Any
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Find texts that are a name with an interval before or after it."""
    rows, known = text_rows("strings", strings), string_column("leads", leads)
    found = _find(rows.views, known.data, known.offsets)
    return found[0], found[1], found[2], found[3]


@always_inlined
def _matches_at(text: View, at: int, data: Any, start: int, stop: int) -> bool:
    """Tell whether ``data[start:stop]`` is at a place of a text."""
    for place in range(start, stop):
        if load_byte(text, at + place - start) != data[place]:
            return False
    return True


@always_inlined
def _digit(text: View, at: int) -> int:
    """Read a digit; -1 where there is none."""
    digit = load_byte(text, at) - _ZERO
    return digit if 0 <= digit <= 9 else -1


@always_inlined
def _read_meridiem(text: View, at: int) -> int:
    """Return the letter of AM or PM in lower case, 0 for neither."""
    if at + 2 > text.length or load_byte(text, at + 1) | _LOWER_CASE != _M:
        return 0
    letter = load_byte(text, at) | _LOWER_CASE
    return letter if letter == _A or letter == _P else 0


@always_inlined
def _clock(text: View, begin: int, colon: int) -> tuple[int, int]:
    """Read a time whose colon is known: its minutes, or why it has none, and its end."""
    if colon - begin < 1 or colon - begin > 2 or colon + 3 > text.length:
        return _NO_TIME, colon
    ones, tens = _digit(text, colon - 1), _digit(text, begin)
    high, low = _digit(text, colon + 1), _digit(text, colon + 2)
    if ones < 0 or tens < 0 or high < 0 or low < 0:
        return _NO_TIME, colon
    hour = ones + 10 * tens if colon - begin == 2 else ones
    minute, end = 10 * high + low, colon + 3
    is_possible = hour <= 24 and minute <= 59
    at = end + 1 if end < text.length and load_byte(text, end) == _SPACE else end
    meridiem = _read_meridiem(text, at)
    if meridiem != 0:
        end = at + 2
        is_possible = 1 <= hour <= 12 and minute <= 59
        hour = hour % 12 + (12 if meridiem == _P else 0)
    return 60 * hour + minute if is_possible else _IMPOSSIBLE, end


@always_inlined
def _next_colon(text: View, at: Any) -> Any:
    while at < text.length and load_byte(text, at) != _COLON:
        at += 1
    return at


@always_inlined
def _after_between(text: View, at: int) -> int:
    """Return where `` to `` or `` - `` ends; -1 if there is neither."""
    if at + 4 > text.length or load_byte(text, at) != _SPACE:
        return -1
    first, second = load_byte(text, at + 1), load_byte(text, at + 2)
    if first == _HYPHEN and second == _SPACE:
        return at + 3
    is_to = first == _T and second == _O and load_byte(text, at + 3) == _SPACE
    return at + 4 if is_to else -1


@always_inlined
def _name_after(text: View, end: int) -> Any:
    """Return where the name after an interval begins; -1 where there is none."""
    begin = end + 2
    if begin >= text.length or load_byte(text, end) != _COLON:
        return -1
    if load_byte(text, end + 1) != _SPACE or not 0x20 < load_byte(text, begin) < 0x7F:
        return -1
    for at in range(begin, text.length):
        if load_byte(text, at) == _COLON or load_byte(text, at) == _NEWLINE:
            return -1
    return begin


@always_inlined
def _name_before(text: View, begin: int, leads: Any, offsets: Any) -> Any:
    """Return where the name before an interval and its lead ends; -1 where there is none."""
    for lead in range(offsets.size - 1):
        end = begin - (offsets[lead + 1] - offsets[lead])
        if end >= 1 and _matches_at(text, end, leads, offsets[lead], offsets[lead + 1]):
            return end if 0x20 < load_byte(text, end - 1) < 0x7F else -1
    return -1


@always_inlined
def _code_points(text: View, begin: Any, end: Any) -> Any:
    count = np.int64(0)
    for at in range(begin, end):
        count += np.int64(load_byte(text, at) & 0xC0 != 0x80)
    return count


@kernel("Views(int64[:], int64[:]), uint8[:], int64[:]", returns="int64[:, :]", fastmath=False)
def _find(rows: Views, leads: Any, offsets: Any) -> Any:
    """Write (4, rows) what `plain_intervals` returns of each text."""
    addresses, lengths = rows
    found = np.full((4, lengths.size), -1)
    for row in range(lengths.size):
        text, length = View(addresses[row], lengths[row]), lengths[row]
        colon = _next_colon(text, np.int64(0))
        if colon < 1:
            continue
        begin = colon - (2 if colon >= 2 and _digit(text, colon - 2) >= 0 else 1)
        starts, at = _clock(text, begin, colon)
        second = _after_between(text, at)
        if starts == _NO_TIME or second < 0:
            continue
        ends, end = _clock(text, second, _next_colon(text, second))
        if ends == _NO_TIME:
            continue
        first, last = np.int64(-1), length
        if begin == 0:
            first = _name_after(text, end)
        elif end == length or load_byte(text, end) == _COMMA:
            last = _name_before(text, begin, leads, offsets)
            first = np.int64(0) if last >= 0 else last
        if first >= 0:
            found[0, row], found[1, row] = first, _code_points(text, first, last)
            found[2, row], found[3, row] = starts, ends
    return found
