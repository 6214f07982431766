"""The real text that group_travel logs are made of: plans, catalogues, preferences, events.

Plans and catalogues are those of `data/travelplanner_train45.jsonl.gz`. Preferences are utterances
of users of the Schema-Guided Dialogue dataset: those with which a cuisine, a kind of event or of
attraction enters the dialogue state, and what users say about hotels; sentences about rooms come
from the plans' requests. A sample is bundled; ``--data`` names a folder with the full files.

Usage, to write the sample anew: python -m benchmarks.group_travel_sources --data FOLDER
"""

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    """What somebody said about a slot, and the value that it names."""

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
    """All that logs are made of.

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
        The folder holds no such file.
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
    """Take so many of some items, evenly over all of them."""
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


if __name__ == "__main__":
    main()
