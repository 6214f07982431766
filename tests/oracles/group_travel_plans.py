"""Plans of the plain group_travel scorer: days, place names, points of interest and their times.

Straight from the definitions; see `tests.oracles.group_travel`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracles.group_travel_words import norm

Row = dict[str, Any]
Interval = tuple[int, int]

UNFILLED = frozenset(("", "na", "n a", "none", "null", "nan", "nil", "tbd"))
DAY_KEYS = {
    "breakfast": ("breakfast",),
    "lunch": ("lunch",),
    "dinner": ("dinner",),
    "accommodation": ("accommodation", "accommodations", "lodging", "hotel"),
    "attraction": ("attraction", "attractions"),
    "event": ("event", "events"),
    "poi_list": ("poilist", "pointofinterestlist", "pointsofinterest", "pointofinterest", "pois"),
}
SLOT_KEYS = {
    "lodging": ("accommodation",),
    "cuisine": ("breakfast", "lunch", "dinner"),
    "event": ("event",),
    "attraction": ("attraction",),
}
NOT_A_PLACE = re.compile(r"^(?:cost|price|rating|total)\s*:", re.IGNORECASE)
TIME = r"\d{1,2}:\d{2}(?:\s*[ap]\.?m\.?)?"
SPAN = rf"(?P<start>{TIME})\s*(?:to|until|till|-|–|—)\s*(?P<end>{TIME})"
VERB = "visit|stay|check-in|check-out|attend|explore|dine|eat|arrive|depart"
TIME_FIRST = re.compile(rf"^\s*{SPAN}\s*[:,]?\s*(?P<name>.*)$", re.IGNORECASE | re.DOTALL)
NAME_FIRST = re.compile(
    rf"^(?P<name>.+?)(?:\s*,\s*|\s+)(?:(?:{VERB})\s+)?(?:from\s+)?\(?{SPAN}",
    re.IGNORECASE | re.DOTALL,
)
TRANSIT = re.compile(r",?\s*nearest transit:.*$", re.IGNORECASE | re.DOTALL)


def plain_key(key: Any) -> str:
    """Return a record's or a day's key without case, spaces and dashes."""
    return re.sub("[ _-]", "", str(key).lower())


NAME_KEYS = ("name", "title", "eventname", "restaurantname", "attractionname", "hotelname")


def record_name(record: Row) -> str:
    """Return the name in a record whose keys are plain."""
    return next((str(record[key]) for key in NAME_KEYS if record.get(key)), "")


@dataclass(frozen=True, slots=True)
class Plan:
    """An itinerary: its days, each with the values of `DAY_KEYS`, and the planner's own text."""

    days: Sequence[Mapping[str, Any]] = ()
    raw_output: str = ""

    def slot_text(self, slot: str) -> str:
        """Return the filled values of a slot over all days."""
        values = (
            text for day in self.days for key in SLOT_KEYS[slot] for text in texts_of(day.get(key))
        )
        return "; ".join(text.strip() for text in values if is_filled(text))

    def slot_names(self, slot: str) -> list[str]:
        """Return the distinct names of a slot's places, in order."""
        return list(
            dict.fromkeys(
                name
                for day in self.days
                for key in SLOT_KEYS[slot]
                for name in names_of(day.get(key))
            )
        )

    def all_names(self) -> list[str]:
        """Return the distinct names of all places, those of the lists of points included."""
        found: dict[str, None] = {}
        for day in self.days:
            for key in DAY_KEYS:
                if key == "poi_list":
                    found.update(
                        (name, None) for name, _ in visits(day.get(key)) if is_filled(name)
                    )
                else:
                    found.update((name, None) for name in names_of(day.get(key)))
        return list(found)


def read_plan(cell: Any) -> Plan:
    if isinstance(cell, str):
        return Plan(raw_output=cell)
    days, raw_output = cell, ""
    if isinstance(cell, dict):
        lists = (
            cell[key] for key in ("days", "plan", "itinerary") if isinstance(cell.get(key), list)
        )
        days = next(lists, [])
        raw_output = cell["raw_output"] if isinstance(cell.get("raw_output"), str) else ""
    if not isinstance(days, list):
        return Plan()
    return Plan([_read_day(day) for day in days if day and isinstance(day, dict)], raw_output)


def _read_day(day: Row) -> Row:
    plain = {plain_key(key): value for key, value in day.items()}
    meals = plain.get("meals")
    if isinstance(meals, dict):
        plain = {plain_key(key): value for key, value in meals.items()} | plain
    return {
        name: next((plain[key] for key in keys if plain.get(key) is not None), None)
        for name, keys in DAY_KEYS.items()
    }


def is_filled(text: str) -> bool:
    """Whether a value names something."""
    return norm(text) not in UNFILLED


def texts_of(value: Any) -> list[str]:
    """Return the texts of a day's value: a string, an object with a name, or a list of such."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [name] if (name := record_name({plain_key(k): v for k, v in value.items()})) else []
    if isinstance(value, list):
        return [text for item in value for text in texts_of(item)]
    return []


def names_of(value: Any) -> list[str]:
    """Return the place names in a day's value, in order."""
    segments = (s.strip().rstrip(".,").strip() for text in texts_of(value) for s in text.split(";"))
    return [s for s in segments if is_filled(s) and not NOT_A_PLACE.match(s)]


def candidate_keys(name: str) -> list[str]:
    """Return the keys under which a place may be in the catalogue, the likeliest first."""
    keys = [norm(name), norm(re.sub(r"\s*\([^()]*\)\s*$", "", name))]
    if "," in name:
        keys.append(norm(name.rpartition(",")[0]))
    return [key for key in dict.fromkeys(keys) if key]


def minutes(text: Any) -> int | None:
    """Return a time of day in minutes; None if it is invalid."""
    found = re.fullmatch(r"\s*(\d{1,2}):(\d{2})\s*(?:([ap])\.?m\.?)?\s*", str(text), re.IGNORECASE)
    if found is None:
        return None
    hour, minute, half = int(found[1]), int(found[2]), (found[3] or "").lower()
    if minute > 59 or hour > 24 or (half and not 1 <= hour <= 12):
        return None
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 60 + minute


def interval(start: Any, end: Any) -> Interval | None:
    """Return a visit's start and end in minutes; None where either is no time."""
    first, last = minutes(start), minutes(end)
    return None if first is None or last is None else (first, last)


def visits(value: Any) -> list[tuple[str, Interval | None]]:
    """Return names and times of a list of points of interest."""
    if isinstance(value, str):
        return [_visit(entry) for entry in value.split(";") if entry.strip()]
    if isinstance(value, dict):
        return [_visit_of_object({plain_key(key): item for key, item in value.items()})]
    if isinstance(value, list):
        return [visit for item in value for visit in visits(item)]
    return []


def _visit(entry: str) -> tuple[str, Interval | None]:
    entry = entry.strip()
    found = TIME_FIRST.match(entry) or NAME_FIRST.match(entry)
    if found is None:
        return TRANSIT.sub("", entry).strip().rstrip(".,").strip(), None
    name = TRANSIT.sub("", found["name"]).strip().rstrip(".,").strip()
    return name, interval(found["start"], found["end"])


def _visit_of_object(item: Row) -> tuple[str, Interval | None]:
    name = next((str(item[key]) for key in ("name", "place", "poi") if item.get(key)), "")
    start, end = (item.get(key, item.get(f"{key}time")) for key in ("start", "end"))
    if start is None and (span := re.search(SPAN, str(item.get("time", "")), re.IGNORECASE)):
        start, end = span["start"], span["end"]
    return name.strip(), interval(start, end)
