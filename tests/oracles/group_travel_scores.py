"""Results of the plain group_travel scorer: options, scores, pairs and places."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.oracles.group_travel_logs import ABSENT
from tests.oracles.group_travel_plans import Row, record_name
from tests.oracles.group_travel_words import Informative

KINDS = {
    "lodging": "accommodations",
    "cuisine": "restaurants",
    "event": "events",
    "attraction": "attractions",
}
CATEGORY_KEYS = {
    "accommodations": (),
    "restaurants": ("cuisines", "cuisine"),
    "attractions": ("subcategories", "subcategory", "categories", "category", "type"),
    "events": ("segmentname", "segment", "genre", "category", "classification"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Thresholds and the definitions' own variants."""

    address_sim: float = 0.45
    satisfy_sim: float = 0.42
    serendipity_threshold: float = 0.30
    m12_target: str = "default"
    m12_long: str = "cut"
    negation: str = "rooms"
    strict_overnight: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """A metric's value with its numerator and denominator, where it has them."""

    value: float | None
    num: float | None = None
    den: float | None = None


NOTHING = Score(None)


def ratio(num: float, den: float) -> Score:
    """Return a ratio; no value of nothing."""
    return Score(num / den if den else None, num, den)


def mean(values: Sequence[float]) -> Score:
    """Return a mean; no value of nothing."""
    return ratio(math.fsum(values), len(values))


def categories(record: Row, kind: str) -> list[str]:
    """Return a record's categories."""
    value = next((record[key] for key in CATEGORY_KEYS[kind] if record.get(key)), "")
    items = value if isinstance(value, list) else _cut(str(value))
    return [text for item in items if (text := str(item).strip())]


def _cut(text: str) -> list[str]:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    for mark in ";|":
        text = text.replace(mark, ",")
    return [part.strip().strip("'\"") for part in text.split(",")]


def record_text(record: Row, kind: str) -> str:
    """Return a record's text about its place, without numbers and addresses."""
    about = [str(record.get(key) or "") for key in ("roomtype", "houserules", "description")]
    # what says nothing in a cell says nothing in a record
    *rooms, description = [None if text.strip().casefold() in ABSENT else text for text in about]
    stay = [room for room in rooms if room is not None]
    text = f"{record_name(record)}. {', '.join(categories(record, kind) or stay)}"
    return text if description is None else f"{text}. {description}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the plan: its name there, its key, and its records in the catalogue."""

    name: str
    key: str
    records: tuple[tuple[str, Row], ...]

    @property
    def texts(self) -> list[str]:
        """What its records say; its name where it has none."""
        return [record_text(record, kind) for kind, record in self.records] or [self.name]


@dataclass(slots=True)
class Pair:
    """A member's wish about a slot, and the result of each method."""

    member: str
    slot: str
    text: str
    words: Informative
    in_synthesis: bool | None = None
    in_plan: bool | None = None
    addressed: bool | None = None
    rooms: bool | None = None
    category: bool | None = None
    lexical: bool | None = None
    semantic: bool | None = None
    similarity: float | None = None

    @property
    def satisfied(self) -> bool:
        """Whether any channel finds the preference met."""
        return any((self.rooms, self.category, self.lexical, self.semantic))


@dataclass(slots=True)
class PlaceScore:
    """A place of the plan as M9 and M15 see it."""

    key: str
    grounded: bool
    explicit: bool | None = None
    similarity: float | None = None
    serendipitous: bool | None = None


@dataclass
class Scores:
    """Everything that is found in a dialogue."""

    dialogue: str
    path: str
    condition: str
    group_type: str | None
    metrics: dict[str, Score]
    members: dict[str, float] = field(default_factory=dict)
    pairs: list[Pair] = field(default_factory=list)
    places: list[PlaceScore] = field(default_factory=list)
