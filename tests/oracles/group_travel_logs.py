"""Reading of the plain group_travel scorer: CSV or JSON to one `Dialogue` after another.

Cell by cell with the standard library, straight from the definitions; see
`tests.oracles.group_travel`.
"""

import ast
import csv
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.oracles.group_travel_plans import Plan, Row, plain_key, read_plan, record_name
from tests.oracles.group_travel_words import norm

ABSENT = frozenset(("", "nan", "none", "null", "{}", "[]", "-"))
LITERAL_BYTES = 8 << 20
NULLS = frozenset(
    [
        *("", "-", "n/a", "na", "none", "null", "nil", "nan", "unknown", "not applicable"),
        *("no strategy", "no conflict", "tbd"),
    ]
)
SYSTEMS = frozenset(("system", "sys", "assistant", "agent", "planner", "mediator"))
EVERYONE = frozenset(("all", "everyone", "group"))
ACTIONABLE = ("lodging", "cuisine", "event", "attraction")
SLOT_ALIASES = {
    "room_type": "lodging",
    "accommodation": "lodging",
    "hotel": "lodging",
    "spending": "spending_preference",
    "restaurant": "cuisine",
    "food": "cuisine",
    "events": "event",
    "attractions": "attraction",
}
INTENTS = (
    *("user_provide_", "sys_synthesize_", "user_respond_", "sys_request_vote_", "user_vote_"),
    *("user_feedback_", "sys_feedback_"),
)
SYNTHESIS_FIELDS = frozenset(
    [
        *("has_conflict", "conflict_description", "resolution_strategy"),
        *("resolution_explanation", "strategy_id", "operator", "updated_resolution_explanation"),
        *("final_revised_decision",),
    ]
)
STATE_KEYS = ("slot_decision_state", "synthesis", "slot_decisions")
FLAGS = ("multi_user", "enable_synthesis", "use_social_theory", "enable_feedback")
CONDITIONS = {
    "C1": (False, False, False, False),
    "C2": (True, False, False, False),
    "C3": (True, True, False, False),
    "C4": (True, True, True, False),
    "C5": (True, True, True, True),
}
CONDITION_IN_NAME = re.compile(
    r"(?:^|[^a-z0-9])(?:c|cond(?:ition)?[_-]?)([1-5])(?![0-9a-z])", re.IGNORECASE
)


def is_null(value: Any) -> bool:
    """Whether a field says nothing."""
    return value is None or str(value).strip().casefold() in NULLS


def truth(value: Any) -> bool | None:
    """Return a field's truth; None where it is absent."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return str(value).strip().casefold() in ("true", "yes", "1", "1.0")


def parse_cell(cell: Any) -> Any:
    """Return a cell's value: JSON, else a Python literal, else its text; None where absent."""
    if not isinstance(cell, str):
        return cell if cell not in (None, {}, []) else None
    text = cell.strip()
    if text.casefold() in ABSENT:
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    if len(text) > LITERAL_BYTES:
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def person(name: Any) -> str:
    """Return the key under which a speaker is known."""
    return " ".join(str(name or "").casefold().split())


def canonical_slot(name: str) -> str:
    """Return a slot's own name."""
    slot = name.strip().casefold()
    return SLOT_ALIASES.get(slot, slot)


@dataclass(frozen=True, slots=True)
class Turn:
    """One row of a dialogue: who, to what end (prefix and slot), what, and the other cells."""

    speaker: str
    intent: str
    slot: str
    utterance: str
    cells: Mapping[str, Any]

    @property
    def is_system(self) -> bool:
        return self.speaker in SYSTEMS


@dataclass
class Dialogue:
    """A dialogue with everything that the metrics ask of it."""

    id: str
    path: str
    turns: list[Turn]
    metadata: Mapping[str, Any]
    warnings: list[str] = field(default_factory=list)

    def of(self, *intents: str, slot: str | None = None) -> list[Turn]:
        """Return the turns with some intents, of one slot or of all."""
        return [
            turn
            for turn in self.turns
            if turn.intent in intents and (slot is None or turn.slot == slot)
        ]

    @cached_property
    def preferences(self) -> dict[tuple[str, str], str]:
        """Each member's texts about each slot, by first appearance."""
        texts: dict[tuple[str, str], list[str]] = {}
        for turn in self.of("user_provide_"):
            if turn.utterance and not turn.is_system:
                texts.setdefault((turn.speaker, turn.slot), []).append(turn.utterance)
        return {pair: " ".join(utterances) for pair, utterances in texts.items()}

    @cached_property
    def syntheses(self) -> dict[str, list[Mapping[str, Any]]]:
        """The synthesis objects of each slot that has a synthesis row."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for turn in self.of("sys_synthesize_"):
            objects = found.setdefault(turn.slot, [])
            metadata = parse_cell(turn.cells.get("metadata"))
            nested = metadata.get("synthesis") if isinstance(metadata, dict) else None
            row = _first_known(metadata, nested) or self._state_object(turn, turn.slot)
            if row is not None:
                objects.append(row)
        for slot, objects in found.items():
            if not objects:
                states = [t for t in self.turns if parse_cell(t.cells.get("constraint_state"))]
                last = self._state_object(states[-1], slot) if states else None
                objects += [last] if last else []
        return found

    @staticmethod
    def _state_object(turn: Turn, slot: str) -> Mapping[str, Any] | None:
        state = parse_cell(turn.cells.get("constraint_state"))
        if not isinstance(state, dict):
            return None
        by_slot = [
            {canonical_slot(str(name)): value for name, value in state[key].items()}.get(slot)
            for key in STATE_KEYS
            if isinstance(state.get(key), dict)
        ]
        return _first_known(*by_slot)

    def has_conflict(self, slot: str) -> bool:
        """Whether a synthesis object of the slot says that there is a conflict."""
        return any(truth(found.get("has_conflict")) for found in self.syntheses.get(slot, []))

    def explanations(self, slot: str) -> list[str]:
        """Return the explanations of a slot's synthesis that say something, in order."""
        found = [item.get("resolution_explanation") for item in self.syntheses.get(slot, [])]
        return [str(text) for text in found if not is_null(text)]

    def strategy(self, slot: str) -> str | None:
        """Return the last strategy that a slot's synthesis names."""
        named = [
            next(
                (
                    s
                    for s in map(item.get, ("resolution_strategy", "strategy_id"))
                    if not is_null(s)
                ),
                None,
            )
            for item in self.syntheses.get(slot, [])
        ]
        return next((str(name) for name in reversed(named) if name is not None), None)

    @cached_property
    def flags(self) -> dict[str, bool]:
        """The four condition flags, each from the first place that tells it."""
        nested = [self.metadata.get(key) for key in ("condition_flags", "flags")]
        places = [self.metadata, *(place for place in nested if isinstance(place, dict))]
        label = str(self.metadata.get("condition") or "").strip().upper()
        in_name = CONDITION_IN_NAME.search(Path(self.path).name.split(".")[0])
        row = CONDITIONS.get(label) or (CONDITIONS[f"C{in_name[1]}"] if in_name else None)
        content = (
            lambda: len({t.speaker for t in self.of("user_provide_") if not t.is_system}) >= 2,
            lambda: bool(self.of("sys_synthesize_")),
            lambda: any(self.strategy(slot) for slot in ACTIONABLE),
            lambda: bool(self.of("user_feedback_", "sys_feedback_")),
        )
        flags = {}
        for number, name in enumerate(FLAGS):
            told = [truth(place.get(name)) for place in places]
            stated = next((value for value in told if value is not None), None)
            if stated is None:
                stated = row[number] if row else content[number]()
            flags[name] = stated
        return flags

    @property
    def condition(self) -> str:
        """The condition that has these flags, or ``custom``."""
        flags = tuple(self.flags[name] for name in FLAGS)
        return next((name for name, row in CONDITIONS.items() if row == flags), "custom")

    @cached_property
    def plan(self) -> Plan:
        """The plan in the last cell that holds one."""
        cells = [parse_cell(turn.cells.get("plan")) for turn in self.turns]
        return read_plan(next((cell for cell in reversed(cells) if cell is not None), None))

    @cached_property
    def catalogue(self) -> dict[str, dict[str, list[Row]]]:
        """The records of the reference data: kind, normalised name, records of that name."""
        return {
            kind: _named_records(self._records(f"ref_info_{kind}"))
            for kind in ("accommodations", "restaurants", "attractions", "events")
        }

    def _records(self, column: str) -> Iterator[Any]:
        for turn in self.turns:
            cell = parse_cell(turn.cells.get(column))
            if isinstance(cell, dict):
                for value in cell.values():
                    yield from value if isinstance(value, list) else ()
            elif isinstance(cell, list):
                yield from cell
            elif cell is not None:
                self.warnings.append(f"{column}: no records in {str(cell)[:40]!r}")


def _first_known(*candidates: Any) -> Mapping[str, Any] | None:
    """Return the first that is an object with a field of a synthesis."""
    return next(
        (c for c in candidates if isinstance(c, dict) and SYNTHESIS_FIELDS & c.keys()), None
    )


def _named_records(records: Iterator[Any]) -> dict[str, list[Row]]:
    named: dict[str, list[Row]] = {}
    for record in records:
        if isinstance(record, dict):
            plain = {plain_key(key): value for key, value in record.items()}
            name = norm(record_name(plain))
            if name:
                named.setdefault(name, []).append(plain)
    return named


def read_dialogues(paths: Sequence[Path]) -> Iterator[Dialogue]:
    """Read dialogues: one a CSV or JSON file, one a line of JSON Lines; folders in name order."""
    csv.field_size_limit(sys.maxsize)
    for path in paths:
        if path.is_dir():
            yield from read_dialogues(sorted(path.iterdir()))
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as stream:
                yield dialogue_of(list(csv.DictReader(stream)), {}, path)
        elif path.suffix in (".jsonl", ".json"):
            with path.open(encoding="utf-8-sig") as stream:
                records = [stream.read()] if path.suffix == ".json" else stream
                for record in map(json.loads, records):
                    yield dialogue_of(record["turns"], record.get("metadata") or {}, path)


def dialogue_of(
    rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any], path: Path
) -> Dialogue:
    plain = [{str(key).lower().strip(): value for key, value in row.items()} for row in rows]
    first = parse_cell(plain[0].get("metadata")) if plain else None
    about = {**(first if isinstance(first, dict) else {}), **metadata}
    named = about.get("dialogue_id") or (plain[0].get("dialogue_id") if plain else None)
    return Dialogue(
        str(named or path.name.split(".")[0]), str(path), [_turn(row) for row in plain], about
    )


def _turn(row: Mapping[str, Any]) -> Turn:
    whole = str(row.get("intent") or "").strip().casefold()
    prefix = next((prefix for prefix in INTENTS if whole.startswith(prefix)), "")
    slot = canonical_slot(whole[len(prefix) :]) if prefix else ""
    utterance = str(row.get("utterance") or row.get("text") or "").strip()
    return Turn(person(row.get("speaker")), prefix or whole, slot, utterance, row)
