"""Itineraries for group_travel logs: real plans with planted defects, and their expected numbers.

Places and records are real, except three parts that no source has and that are synthetic: the
categories of attractions, the records of events and the lists of points of interest. Expected
numbers are counted while defects are planted, never by scoring.

Plans and catalogues are those of `data/travelplanner_train45.jsonl.gz`. Preferences are utterances
of users of the Schema-Guided Dialogue dataset. They are utterances that bring a cuisine, a kind of
event or a kind of attraction into the dialogue state, and utterances about hotels. Sentences about
rooms come from the plans' requests. A sample is bundled. ``--data`` names a folder with the full
files.

Usage, to rewrite the sample: python -m benchmarks.group_travel_itineraries --data FOLDER
"""

import gzip
import json
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent / "data"
PLANS = "travelplanner_train45.jsonl.gz"
SAMPLE = "travel_preferences.jsonl.gz"
PER_SLOT = 400
LONGEST = 160

STATES = {
    "cuisine": re.compile(r"Restaurants_\d+\.cuisine"),
    "event": re.compile(r"Events_\d+\.(?:category|event_type|subcategory)"),
    "attraction": re.compile(r"Travel_1\.category"),
    "lodging": re.compile(
        r"Hotels_\d+\.(?:star_rating|has_wifi|has_laundry_service|pets_welcome|smoking_allowed)"
    ),
}
EVENT_NAME = re.compile(r"Events_\d+\.event_name")
LODGING_WORDS = re.compile(
    r"\b(?:hotel|house|place|room|stay|smok|pet|wifi|laundry|star)", re.IGNORECASE
)
ABOUT_ROOMS = re.compile(r"\b(?:rooms?|accommodations?|lodgings?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Preference:
    """An utterance about a slot, and the value that it names."""

    slot: str
    text: str
    value: str


@dataclass(frozen=True, slots=True)
class Trip:
    """A request with its plan and the records it was made from."""

    query: str
    plan: list[dict[str, Any]]
    records: dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Sources:
    """The real parts of all logs.

    Parameters
    ----------
    trips
        Requests with plans and records.
    preferences
        By slot, in source order, without repeats.
    events
        Names of events, each with its kind.
    """

    trips: list[Trip]
    preferences: dict[str, list[Preference]]
    events: list[tuple[str, str]]


def read_sources(data: Path | None = None) -> Sources:
    """Read the bundled sample, or the full files of a folder."""
    folder = data or HERE
    trips = [Trip(row["query"], row["plan"], row["ref_info"]) for row in _rows(folder / PLANS)]
    if data is None:
        rows = list(_rows(HERE / SAMPLE))
        found = [Preference(**row) for row in rows if row["slot"] != "event_name"]
        events = [(row["text"], row["value"]) for row in rows if row["slot"] == "event_name"]
    else:
        found, events = collect(data)
    found += [
        Preference("lodging", sentence, "room")
        for trip in trips
        for sentence in re.split(r"(?<=[.?!])\s+", trip.query)
        if ABOUT_ROOMS.search(sentence)
    ]
    preferences: dict[str, list[Preference]] = {slot: [] for slot in STATES}
    for preference in dict.fromkeys(found):
        preferences[preference.slot].append(preference)
    return Sources(trips, preferences, events)


def collect(data: Path) -> tuple[list[Preference], list[tuple[str, str]]]:
    """Collect preferences and events from a folder of SGD-shaped dialogues with states.

    Raises
    ------
    click.ClickException
        The folder contains no such file.
    """
    files = sorted(data.glob("sgd_*.jsonl.gz"))
    if not files:
        raise click.ClickException(f"{data} holds no file sgd_*.jsonl.gz of dialogues.")
    preferences: dict[tuple[str, str], Preference] = {}
    events: dict[str, str] = {}
    for dialogue in (row for file in files for row in _rows(file)):
        before: dict[str, list[str]] = {}
        for text, state in _user_turns(dialogue):
            for key, values in state.items():
                if EVENT_NAME.fullmatch(key):
                    service = key.split(".")[0]
                    kinds = (state.get(f"{service}.{name}") for name in ("category", "event_type"))
                    events.setdefault(values[0], next((kind[0] for kind in kinds if kind), ""))
                elif key not in before:
                    for slot in _slots_of(key, values[0], text):
                        preferences.setdefault((slot, text), Preference(slot, text, values[0]))
            before = state
    return list(preferences.values()), [(name, kind) for name, kind in events.items() if kind]


def _user_turns(dialogue: dict[str, Any]) -> Iterator[tuple[str, dict[str, list[str]]]]:
    for turn in dialogue["turns"]:
        if turn[0] == "U" and len(turn) > 3:
            yield " ".join(turn[1].split()), turn[3]


def _slots_of(key: str, value: str, text: str) -> Iterator[str]:
    """Yield the slot for which an utterance states a preference, if it does."""
    for slot, state in STATES.items():
        names_it = (
            LODGING_WORDS.search(text) if slot == "lodging" else value.lower() in text.lower()
        )
        if state.fullmatch(key) and value != "dontcare" and names_it and len(text) <= LONGEST:
            yield slot


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    if not path.exists():
        raise click.ClickException(f"{path} does not exist; see benchmarks/data for its shape.")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def spread(items: Sequence[Any], count: int) -> list[Any]:
    """Select a number of items, evenly over all of them."""
    step = max(1, len(items) / count)
    return [items[int(number * step)] for number in range(min(count, len(items)))]


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--output", type=click.Path(path_type=Path), default=HERE / SAMPLE)
def main(data: Path, output: Path) -> None:
    """Write the bundled sample of preferences and events."""
    preferences, events = collect(data)
    rows = [
        {"slot": item.slot, "text": item.text, "value": item.value}
        for slot in STATES
        for item in spread([p for p in preferences if p.slot == slot], PER_SLOT)
    ]
    rows += [
        {"slot": "event_name", "text": name, "value": kind}
        for name, kind in spread(events, PER_SLOT)
    ]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    output.write_bytes(gzip.compress(lines.encode(), compresslevel=9, mtime=0))
    click.echo(f"{output}: {len(rows)} rows")


MEALS = ("breakfast", "lunch", "dinner")
EMPTY = ("-", "", "None", "n/a")
INVENTED = ("Velvet Lantern", "Copper Heron", "Quiet Comet", "Paper Harbour", "Ninth Orchard")
INVENTED_KINDS = ("Kitchen", "Gallery", "Terrace", "Rooms", "Garden")
STOPS = ("Main St", "Central Station", "5th Ave", "River Rd", "Old Mill")

ATTRACTION_CATEGORIES = {
    "Boat Tours & Water Sports": ("boat", "water", "sport"),
    "Casinos & Gambling": ("casino", "gambling"),
    "Concerts & Shows": ("concert", "show"),
    "Fun & Games": ("fun", "game"),
    "Museums": ("museum",),
    "Nature & Parks": ("nature", "park"),
    "Nightlife": ("nightlife",),
    "Shopping": ("shopping",),
    "Sights & Landmarks": ("sight", "landmark"),
    "Water & Amusement Parks": ("water", "amusement", "park"),
    "Zoos & Aquariums": ("zoo", "aquarium"),
}
ATTRACTION_HINTS = (
    ("museum", "Museums"),
    ("park", "Nature & Parks"),
    ("garden", "Nature & Parks"),
    ("zoo", "Zoos & Aquariums"),
    ("aquarium", "Zoos & Aquariums"),
    ("theat", "Concerts & Shows"),
    ("market", "Shopping"),
    ("monument", "Sights & Landmarks"),
    ("historic", "Sights & Landmarks"),
)
EVENT_SEGMENTS = {
    "Music": ("music",),
    "Sports": ("sport",),
    "Arts & Theatre": ("art", "theatre"),
    "Film": ("film",),
}
CUISINES = {"Fast Food": ("fast",), "Desserts": ("dessert",)}
OTHER_WORDS = {
    "cuisine": ("brew", "pub", "japanese", "thai", "vegetarian", "diner", "barbecue"),
    "event": ("movie", "theater"),
    "attraction": ("outdoor", "spa", "wellness", "workshop", "drink"),
}
SAME_WORDS = {"barbecue": "bbq", "movie": "film", "theater": "theatre"}


def key_of(name: str) -> str:
    """Return a name's letters and digits."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", " ", plain.lower().replace("'", "")).strip()


def cuisine_words(cuisine: str) -> tuple[str, ...]:
    """Return the words of a restaurant's cuisine."""
    return CUISINES.get(cuisine, (cuisine.lower(),))


@dataclass(frozen=True, slots=True)
class Stop:
    """A place as written in the plan, and its bare name."""

    written: str
    name: str


@dataclass
class Catalogue:
    """A trip's records, with the kind, name and category words of each name."""

    records: dict[str, list[dict[str, Any]]]
    words: dict[str, dict[str, set[str]]]

    @cached_property
    def names(self) -> set[str]:
        """The keys of all names."""
        return set().union(*self.words.values())

    @cached_property
    def vocabulary(self) -> dict[str, set[str]]:
        """All category words by slot: the records' words and those always known."""
        tables = {"attraction": ATTRACTION_CATEGORIES, "event": EVENT_SEGMENTS}
        known: dict[str, set[str]] = {slot: set(words) for slot, words in OTHER_WORDS.items()}
        for slot, table in tables.items():
            known[slot].update(word for words in table.values() for word in words)
        for words in self.words["restaurants"].values():
            known["cuisine"] |= words
        known["cuisine"] |= {"chinese", "american", "italian", "mexican", "indian", "french"}
        known["cuisine"] |= {"mediterranean", "bbq", "seafood", "cafe", "bakery", "pizza", "tea"}
        known["cuisine"] |= {"fast", "dessert"}
        return known


def catalogue_of(trip: Trip, events: Sequence[tuple[str, str]], draw: random.Random) -> Catalogue:
    """Return a trip's records, with categories of attractions and events added."""
    city = trip.records["restaurants"][0]["City"]
    attractions = []
    words: dict[str, dict[str, set[str]]] = {kind: {} for kind in (*trip.records, "events")}
    for record in trip.records["attractions"]:
        category = _attraction_category(record["Name"], draw)
        shapes: tuple[Any, ...] = ([category], category, str([category]))
        attractions.append({**record, "subcategories": draw.choice(shapes)})
        words["attractions"].setdefault(key_of(record["Name"]), set()).update(
            ATTRACTION_CATEGORIES[category]
        )
    for record in trip.records["restaurants"]:
        cuisines = {w for c in record["Cuisines"].split(",") for w in cuisine_words(c.strip())}
        words["restaurants"].setdefault(key_of(record["Name"]), set()).update(cuisines)
    for record in trip.records["accommodations"]:
        words["accommodations"].setdefault(key_of(record["NAME"]), set())
    shows = []
    for name, kind in draw.sample(list(events), 8):
        segment = _segment(kind)
        if "," in name or ";" in name or key_of(name) in words["events"]:
            continue
        shows.append({"name": name, "url": "", "segmentName": segment, "city": city})
        words["events"][key_of(name)] = set(EVENT_SEGMENTS[segment])
    records = {**trip.records, "attractions": attractions, "events": shows}
    return Catalogue(records, words)


def _attraction_category(name: str, draw: random.Random) -> str:
    hinted = [category for hint, category in ATTRACTION_HINTS if hint in name.lower()]
    return hinted[0] if hinted else draw.choice(list(ATTRACTION_CATEGORIES))


def _segment(kind: str) -> str:
    if kind.lower().startswith("theat"):
        return "Arts & Theatre"
    sports = ("sports", "baseball", "basketball", "football", "soccer", "american football")
    return "Sports" if kind.lower() in sports else "Music"


@dataclass
class Day:
    """A day's places by the plan's keys, and the fields that are copied unchanged."""

    fixed: dict[str, Any]
    stops: dict[str, list[Stop]]

    def meal_checks(self) -> int:
        """Count the structural checks that the day passes, of four."""
        lunch, dinner = (
            [stop.written for stop in self.stops[meal]] for meal in ("lunch", "dinner")
        )
        return sum(bool(self.stops[meal]) for meal in MEALS) + (lunch != dinner)


@dataclass
class Itinerary:
    """A plan with its defects, before the times of a dialogue's own visits are added."""

    trip: int
    days: list[Day]
    raw_output: str
    catalogue: Catalogue
    shape: str

    @cached_property
    def places(self) -> dict[str, bool]:
        """The distinct places by key, and whether the catalogue knows them."""
        stops = (stop for day in self.days for found in day.stops.values() for stop in found)
        return {(key := key_of(stop.name)): key in self.catalogue.names for stop in stops}

    @cached_property
    def category_words(self) -> dict[str, set[str]]:
        """The category words of the chosen places, by slot."""
        return {
            "cuisine": self._words("restaurants", MEALS),
            "event": self._words("events", ("event",)),
            "attraction": self._words("attractions", ("attraction",)),
        }

    def _words(self, kind: str, fields: Sequence[str]) -> set[str]:
        known = self.catalogue.words[kind]
        stops = (stop for day in self.days for name in fields for stop in day.stops[name])
        return set().union(*(known.get(key_of(stop.name), set()) for stop in stops))


def make_itinerary(
    sources: Sources, trip: int, catalogue: Catalogue, draw: random.Random, defects: float
) -> Itinerary:
    """Copy a real plan and plant defects at a rate.

    Parameters
    ----------
    sources, trip, catalogue
        The sources, the trip to copy, and its records.
    draw
        Random numbers for the defects.
    defects
        The probability of each kind of defect.
    """
    days = [_read_day(day, catalogue, draw) for day in sources.trips[trip].plan]
    for plant in (_invent_dinner, _invent_attraction, _drop_meal, _repeat_lunch):
        if draw.random() < defects:
            plant(draw.choice(days), draw)
    shape = draw.choice(("object", "object", "object", "list", "nested", "padded"))
    silent = shape == "list" or draw.random() < 0.1
    raw_output = "" if silent else "\n".join(_describe(day) for day in days)
    return Itinerary(trip, days, raw_output, catalogue, shape)


def _read_day(day: dict[str, Any], catalogue: Catalogue, draw: random.Random) -> Day:
    fields = (*MEALS, "attraction", "accommodation")
    stops = {name: [_stop(part) for part in _parts(day[name])] for name in fields}
    stops["event"] = []
    shows = catalogue.records["events"]
    if stops["attraction"] and shows and draw.random() < 0.5:
        name = draw.choice(shows)["name"]
        stops["event"] = [Stop(f"{name}, {day['current_city']}", name)]
    return Day({name: day[name] for name in ("days", "current_city", "transportation")}, stops)


def _parts(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip() not in ("", "-")]


def _stop(written: str) -> Stop:
    return Stop(written, written.rpartition(",")[0].strip() or written)


def _invented(day: Day, draw: random.Random) -> Stop:
    name = f"{draw.choice(INVENTED)} {draw.choice(INVENTED_KINDS)} {draw.randrange(100)}"
    city = str(day.fixed["current_city"]).rpartition(" to ")[2]
    return Stop(f"{name}, {city}", name)


def _invent_dinner(day: Day, draw: random.Random) -> None:
    day.stops["dinner"] = [_invented(day, draw)]


def _invent_attraction(day: Day, draw: random.Random) -> None:
    day.stops["attraction"] = [*day.stops["attraction"], _invented(day, draw)]


def _drop_meal(day: Day, draw: random.Random) -> None:
    day.stops[draw.choice(MEALS)] = []


def _repeat_lunch(day: Day, draw: random.Random) -> None:
    day.stops["dinner"] = list(day.stops["lunch"])


def _describe(day: Day) -> str:
    lines = [f"Day {day.fixed['days']}:", f"Current City: {day.fixed['current_city']}"]
    for name, stops in day.stops.items():
        lines.append(f"{name.capitalize()}: {'; '.join(stop.written for stop in stops) or '-'}")
    return "\n".join(lines)


# --- a dialogue's own copy, with times


@dataclass(frozen=True, slots=True)
class PlanCell:
    """A logged plan, and its expected numbers.

    Parameters
    ----------
    cell
        The cell's value.
    coherence, grounding
        Numerator and denominator of M16 and of M9.
    """

    cell: Any
    coherence: tuple[int, int]
    grounding: tuple[int, int]


def time_itinerary(itinerary: Itinerary, draw: random.Random, defects: float) -> PlanCell:
    """Add a list of points of interest with times to some days, some of them impossible."""
    cells, places = [], dict(itinerary.places)
    passed, total = 0, 0
    for day in itinerary.days:
        cell = _day_cell(day, itinerary.shape, draw)
        passed, total = passed + day.meal_checks(), total + 4
        if draw.random() < 0.6 and (visits := _visits(day)):
            holds = True
            if draw.random() < defects:
                holds = _plant_impossible(visits, draw)
            if draw.random() < defects / 2:
                stranger = _invented(day, draw)
                visits.insert(0, [stranger.name, 420, 450])
                places[key_of(stranger.name)] = False
            cell["point_of_interest_list"] = _write_visits(visits, draw)
            passed, total = passed + holds, total + 1
        cells.append(cell)
    if itinerary.shape == "padded":
        cells += [{}] * (7 - len(cells))
    value: Any = {"days": cells, "raw_output": itinerary.raw_output}
    if itinerary.shape == "list":
        value = cells
    return PlanCell(value, (passed, total), (sum(places.values()), len(places)))


def _day_cell(day: Day, shape: str, draw: random.Random) -> dict[str, Any]:
    cell: dict[str, Any] = dict(day.fixed)
    for name, stops in day.stops.items():
        written = [stop.written for stop in stops]
        value: Any = "; ".join(written) if written else draw.choice(EMPTY)
        if written and name in MEALS and draw.random() < 0.05:
            value += f"; Cost: {draw.randrange(5, 60)}"
        if len(written) > 1 and draw.random() < 0.2:
            value = written
        cell[name] = value
    if shape == "nested":
        cell["meals"] = {meal.capitalize(): cell.pop(meal) for meal in MEALS}
        cell["Accommodations"] = cell.pop("accommodation")
    return cell


def _visits(day: Day) -> list[list[Any]]:
    """Return names with possible times in minutes; a night's stay ends on the next morning."""
    fields = ("breakfast", "attraction", "lunch", "event", "dinner")
    names = [stop.name for field in fields for stop in day.stops[field]]
    visits: list[list[Any]] = []
    for number, name in enumerate(names):
        start = 480 + number * 75
        visits.append([name, start, start + 45])
    visits += [[stop.name, 1350, 510] for stop in day.stops["accommodation"][:1]]
    return visits if len(names) <= 11 else []


def _plant_impossible(visits: list[list[Any]], draw: random.Random) -> bool:
    """Make a list of visits impossible; return whether its times are still valid."""
    kind = draw.choice(("swapped", "backwards", "still", "unreadable"))
    if len(visits) < 2 or kind == "still":
        visits[-1][2] = visits[-1][1]
        return False
    if kind == "swapped":
        visits[0], visits[1] = visits[1], visits[0]
        return False
    if kind == "backwards":
        visits[0][1:] = [visits[0][2], visits[0][1]]
        return False
    visits[0][1:] = [25 * 60 + 70, 26 * 60]
    return True


def _clock(minute: int, halves: bool) -> str:
    hour = minute // 60
    if minute >= 24 * 60:
        return f"{hour}:{minute % 60 + 60}"
    if halves:
        return f"{hour % 12 or 12}:{minute % 60:02d} {'PM' if hour >= 12 else 'AM'}"
    return f"{hour:02d}:{minute % 60:02d}"


def _write_visits(visits: list[list[Any]], draw: random.Random) -> Any:
    form = draw.choice(("verb", "verb", "verb", "time first", "objects", "list"))
    halves = draw.random() < 0.3
    spans = [(name, _clock(start, halves), _clock(end, halves)) for name, start, end in visits]
    if form == "objects":
        return [{"name": name, "start_time": start, "end": end} for name, start, end in spans]
    if form == "time first":
        return "; ".join(f"{start} - {end}: {name}" for name, start, end in spans)
    entries = [
        f"{name}, {'stay' if start > end else 'visit'} from {start} to {end}, "
        f"nearest transit: {draw.choice(STOPS)}, {draw.randrange(900)}m away"
        for name, start, end in spans
    ]
    return entries if form == "list" else ";".join(entries)


if __name__ == "__main__":
    main()
