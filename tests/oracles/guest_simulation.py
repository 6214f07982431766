"""Score conversations of simulated guests in plain Python: one message, one cell at a time.

Written from the definitions in docs/suites/guest_simulation.md, with the standard library alone:
the peer that `benchmarks.guest_simulation` measures against, and the oracle of the suite's tests.
`guest_cells` reads the cells.
"""

import json
import re
import statistics
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.oracles.guest_cells import (
    DEFAULT_STATE,
    STATE_COLUMNS,
    Behaviour,
    MalformedError,
    behaviour_of_cell,
    current_names,
    filled,
    first_text,
    normalise,
    order_of_cell,
    parse_items,
    target_items,
    target_names,
    tool_names,
)

Row = Mapping[str, Any]

LEXICON = Path(__file__).parents[2] / "fastscore" / "suites" / "guest_simulation" / "lexicon.toml"

GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")


@cache
def read_words(path: Path = LEXICON) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def is_guest(row: Row) -> bool:
    return row.get("role") in GUEST_ROLES or (row.get("name") or "").startswith("guest")


def is_exit(row: Row) -> bool:
    return (row.get("content") or "").lower() == "exit"


def cell_of(row: Row, column: str) -> str:
    """Return a cell as text: a string itself, anything else as JSON."""
    value = row.get(column)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def behaviour_of_columns(row: Row, profile: str) -> Behaviour | None:
    """Read a state from the columns of the log."""
    values = []
    for names in STATE_COLUMNS:
        value = next((row[name] for name in names if row.get(name) is not None), "")
        if not value.strip():
            value = ""
        values.append(value if profile == "published" else value.strip().lower())
    return filled(values)


def order_of_columns(row: Row, profile: str) -> list[Any] | None:
    """Read an order from the columns of the log."""
    text = cell_of(row, "current_items_in_order")
    if not text.strip():
        return None
    if profile == "published":
        try:
            loaded = json.loads(text.replace("'", '"'))
        except ValueError:
            return []
        return loaded if isinstance(loaded, list) else []
    if not text.lstrip().startswith("["):
        raise MalformedError("no list")
    return parse_items(text, len(text) - len(text.lstrip()))


def has_order_cell(row: Row) -> bool:
    return bool(cell_of(row, "current_items_in_order").strip())


def plain_words(text: str) -> str:
    """Reduce a text to its words, between single spaces."""
    return " " + re.sub(r"[^a-z0-9]+", " ", text.lower()).strip() + " "


def has_phrase(text: str, phrases: Iterable[str]) -> bool:
    """Return whether a text has a phrase as whole words."""
    words = plain_words(text)
    return any(plain_words(phrase) in words for phrase in phrases)


def behaviours_by_words(rows: Sequence[Row], targets: Sequence[Any]) -> list[Behaviour | None]:
    """Read the guest's states from the texts."""
    words = read_words()
    wanted = {
        normalise(first_text(item, ("name", "item_name", "item")))
        for item in targets
        if isinstance(item, dict)
    } - {""}
    named_before: set[str] = set()
    ordering, restaurant = DEFAULT_STATE[3], ""
    states: list[Behaviour | None] = []
    for row in rows:
        text = row.get("content") or ""
        if not is_guest(row):
            if row.get("role") != "system":
                restaurant = text
            continue
        if is_exit(row):
            states.append(None)
            continue
        explores = has_phrase(text, words["exploration"]["asks"]) or (
            "?" in text and has_phrase(text, words["exploration"]["menu_words"])
        )
        mood = next(
            (mood["name"] for mood in words["moods"] if has_phrase(text, mood["phrases"])), "casual"
        )
        padded = f" {normalise(text)} "
        named = {name for name in wanted if f" {name} " in padded}
        left = wanted - named_before
        if named:
            many = len(named) >= words["ordering"]["items_at_once"]
            at_once = many or (bool(left) and left <= named)
            ordering = "all_at_once" if at_once else "one_by_one"
        named_before |= named
        complete = has_phrase(restaurant, words["completion"]["confirmations"])
        states.append(
            (
                "yes" if complete else "no",
                "explores_menu" if explores else "does_not_explore_menu",
                mood,
                ordering,
            )
        )
    return states


def guest_states(
    rows: Sequence[Row], guests: Sequence[Row], targets: Sequence[Any], profile: str, states: str
) -> tuple[str, list[Behaviour | None]]:
    """Read the behaviour of every guest message, and name where it came from."""
    by_columns = [behaviour_of_columns(row, profile) for row in guests]
    tells = any(by_columns)
    if profile == "published":
        # any of the five columns makes a state row, the order as well
        tells = tells or any(has_order_cell(row) for row in guests)
    if states == "columns" or (states == "auto" and tells):
        return "columns", by_columns
    by_tools = [behaviour_of_cell(cell_of(row, "tool_calls")) for row in guests]
    if states == "tools" or (states == "auto" and any(by_tools)):
        return "tools", by_tools
    return "heuristic", behaviours_by_words(rows, targets)


def guest_orders(guests: Sequence[Row], profile: str, states: str) -> list[Any]:
    """Read the order of every guest message: a list, None, or the fault of a malformed cell."""

    def attempt(row: Row, source: str) -> Any:
        try:
            if source == "columns":
                return order_of_columns(row, profile)
            return order_of_cell(cell_of(row, "tool_calls"))
        except MalformedError as error:
            return error

    for source in ("columns", "tools"):
        if states not in ("auto", source):
            continue
        orders = [attempt(row, source) for row in guests]
        if states == source or any(order is not None for order in orders):
            return orders
    return [None] * len(guests)


METRICS = ("PAS", "BVS", "ORA", "DEI", "CRRS")
FOODS = ("chicken", "sandwich", "fries", "burger", "pizza", "salad")
ORDER_TOOLS = ("order_tracking",)
BEHAVIOUR_TOOLS = ("message_generation", "message_attributes")
BASIC_TOOLS = ("get_name", "get_persona", "get_target", "get_past_messages")


# --- metrics --------------------------------------------------------------------------------------


def message_score(state: Behaviour, expected: Mapping[str, Any]) -> tuple[float, list[bool | None]]:
    """Compare a state with the persona's expected state: the share of matching components."""
    complete, exploration, mood, ordering = state
    wanted = expected.get("next_message_menu_exploration_style")
    order = expected.get("next_message_ordering_style")
    moods = expected.get("next_message_mood_tones")
    parts = [
        None if not wanted else exploration == wanted,
        None if not moods else mood in moods,
        None if not order else ordering == order,
        complete == (expected.get("is_ordering_complete") or "no"),
    ]
    total = matched = 0.0
    for part in parts:
        if part is not None:
            total += 0.25
            matched += 0.25 * part
    return matched / total, parts


def fallback_score(state: Behaviour, persona: str) -> float:
    """Score a state by the expectations from the persona's words."""
    _, exploration, mood, ordering = state
    explores = exploration == "explores_menu"
    text = persona.lower()
    if "busy professional" in text or "efficient" in text:
        score = 0.33 * (ordering == "all_at_once")
        score += 0.33 * (exploration == "does_not_explore_menu")
        return score + 0.34 * (mood in ("casual", "frustrated"))
    if "curious" in text or "explorer" in text or "adventurous" in text:
        return 0.5 * explores + 0.5 * (mood in ("enthusiastic", "casual"))
    if "indecisive" in text or "uncertain" in text:
        return 0.5 * (ordering == "one_by_one") + 0.5 * (mood in ("confused", "casual"))
    if "family" in text or "group" in text:
        return 0.5 * (ordering == "one_by_one") + 0.5 * explores
    return 0.5


def behavioural_variance(states: Sequence[Behaviour]) -> float:
    """Compute BVS of at least two states."""
    steps = len(states) - 1
    changes = sum(
        before[part] != after[part] for before, after in pairwise(states) for part in (1, 2, 3)
    )
    rate = changes / (3 * steps)
    # 0.2 is met in whole numbers: a sum of three rates may miss it by a rounding
    return rate / 0.2 if 5 * changes <= 3 * steps else 1 - (rate - 0.2) / 0.8


def explainability(level: int, cells: Sequence[str], profile: str) -> float:
    """Compute DEI of at least one guest message."""

    def uses(cell: str, tools: Sequence[str]) -> bool:
        names = [cell] if profile == "published" else tool_names(cell)
        return any(tool in name for name in names for tool in tools)

    n = len(cells)
    order = sum(uses(cell, ORDER_TOOLS) for cell in cells)
    behaviour = sum(uses(cell, BEHAVIOUR_TOOLS) for cell in cells)
    basic = sum(uses(cell, BASIC_TOOLS) for cell in cells)
    if level == 5:
        return min(1.0, (order + behaviour) / (2 * n))
    if level in (3, 4):
        return min(0.5, (order if level == 3 else behaviour) / n * 0.5)
    return min(0.2, basic / n * 0.2) if level == 2 else 0.0


def f1(current: set[str], target: set[str]) -> float | None:
    if not current and not target:
        return None
    return 2 * len(current & target) / (len(current) + len(target))


def text_overlap(text: str, items: Sequence[Any]) -> float | None:
    """Compute the Jaccard index of food words said and words of the target, None of nothing."""
    mentioned = {food for food in FOODS if food in text.lower()}
    wanted = {
        word
        for item in items
        if isinstance(item, dict)
        for word in first_text(item, ("name", "item_name", "item")).lower().split()
    }
    both = mentioned | wanted
    return len(mentioned & wanted) / len(both) if both else None


def adherence(
    persona: Mapping[str, Any] | None,
    personas: Mapping[str, Mapping[str, Any]],
    guests: Sequence[Row],
    behaviours: Sequence[Behaviour | None],
    nothing: float | None,
) -> float | None:
    """Compute PAS: the mean over the guest messages that have a state."""
    if persona is None:
        return None
    name = persona.get("full_name") or (persona.get("guest_persona") or {}).get("full_name")
    expected = personas.get(name or "", persona.get("message_generation_attributes"))
    parts = [
        message_score(state, expected)[0]
        if expected is not None
        else fallback_score(state, json.dumps(persona, ensure_ascii=False))
        for row, state in zip(guests, behaviours, strict=True)
        if state is not None and not is_exit(row)
    ]
    return sum(parts) / len(parts) if parts else nothing


def order_accuracy(
    final: Any, target: Any, wanted: Sequence[Any], of_guest_role: Sequence[Row], published: bool
) -> float | None:
    """Compute ORA: of the last order that was given, else of what was said."""
    if final is not None:
        return f1(current_names(final), target_names(wanted))
    if not published and all(row.get("content") is None for row in of_guest_role):
        return None  # nobody spoke, or what was said is not given
    keys = ("items", "target_order") if published else ("items", "target_order", "order_items")
    text = " ".join(row.get("content") or "" for row in of_guest_role)
    return text_overlap(text, target_items(target or {}, *keys) or [])


# --- conversations --------------------------------------------------------------------------------


def read_personas(path: Path) -> dict[str, dict[str, Any]]:
    entries = json.loads(path.read_text(encoding="utf-8"))["persona_attributes"]
    return {entry["full_name"]: entry["message_generation_attributes"] for entry in entries}


def case_of(rows: Sequence[Row]) -> tuple[Any, Any, list[Row], bool]:
    """Return persona, target, the messages, and whether what states the first two is no object."""
    persona, target, bad_case = None, None, False
    messages = []
    for row in rows:
        if row.get("role") == "system" and row.get("name") == "test_case_info":
            try:
                case = json.loads(row.get("content") or "")
                persona, target = case.get("guest_persona"), case.get("target_order")
            except (ValueError, AttributeError):
                bad_case = True
        else:
            messages.append(row)
    return persona, target, messages, bad_case


def score_conversation(
    rows: Sequence[Row],
    personas: Mapping[str, Mapping[str, Any]],
    *,
    level: int | None = None,
    profile: str = "default",
    states: str = "auto",
) -> dict[str, Any]:
    """Score a conversation; values that cannot be computed are None."""
    published = profile == "published"
    nothing = 0.0 if published else None
    persona, target, messages, bad_case = case_of(rows)
    guests = [row for row in messages if is_guest(row)]
    of_guest_role = [row for row in guests if row.get("role") in GUEST_ROLES]
    wanted = (
        None if target is None else target_items(target, "items", "target_order", "order_items")
    )
    source, found = guest_states(messages, guests, wanted or [], profile, states)
    behaviours = [None if is_exit(row) else state for row, state in zip(guests, found, strict=True)]
    if published:
        # a row that tells of an order alone is passed over
        rows_of_states = source == "columns"
        behaviours = [
            None
            if rows_of_states and state is None and not is_exit(row) and has_order_cell(row)
            else state or DEFAULT_STATE
            for row, state in zip(guests, behaviours, strict=True)
        ]

    present = [state for state in behaviours if state is not None]
    cells = [cell_of(row, "tool_calls") for row in of_guest_role]
    scores: dict[str, Any] = {"state_source": source, "behaviours": behaviours}
    scores["PAS"] = adherence(persona, personas, guests, behaviours, nothing)
    scores["BVS"] = behavioural_variance(present) if len(present) >= 2 else nothing
    scores["ORA"] = None
    orders = guest_orders(guests, profile, states)
    if published:
        orders = [[] if is_exit(row) else order for row, order in zip(guests, orders, strict=True)]
    final = next((order for order in reversed(orders) if order), None)
    if wanted is not None and not isinstance(final, MalformedError) and not bad_case:
        value = order_accuracy(final, target, wanted, of_guest_role, published)
        scores["ORA"] = nothing if value is None else value
    scores["DEI"] = None
    if level is not None and 1 <= level <= 5:
        scores["DEI"] = explainability(level, cells, profile) if cells else nothing
    scores["CRRS"] = None
    if all(scores[metric] is not None for metric in ("PAS", "BVS", "ORA", "DEI")):
        scores["CRRS"] = (
            0.25 * scores["PAS"]
            + 0.20 * scores["BVS"]
            + 0.35 * scores["ORA"]
            + 0.20 * scores["DEI"]
        )
    return scores


def score_lines(
    lines: Iterable[str], personas: Mapping[str, Mapping[str, Any]], **options: Any
) -> dict[tuple[str, int | None], dict[str, Any]]:
    """Score JSON Lines of messages by (conversation_id, experiment_level)."""
    conversations: dict[tuple[str, int | None], list[Row]] = {}
    for line in lines:
        row = json.loads(line)
        key = row["conversation_id"], row.get("experiment_level")
        conversations.setdefault(key, []).append(row)
    return {
        key: score_conversation(rows, personas, level=key[1], **options)
        for key, rows in conversations.items()
    }


def evaluate(logs: Path, personas: Path, output: Path) -> None:
    """Score a folder of JSON Lines file by file; write every conversation's metrics and the means.

    No conversation may stand in two files.
    """
    attributes = read_personas(personas)
    output.mkdir(parents=True, exist_ok=True)
    values: dict[str, dict[str, list[float]]] = {}
    with (output / "dialogues.jsonl").open("w", encoding="utf-8") as written:
        for path in sorted(logs.glob("*.jsonl")):
            with path.open(encoding="utf-8") as lines:
                scores = score_lines(lines, attributes)
            for (name, level), found in scores.items():
                row = {metric: found[metric] for metric in METRICS}
                written.write(json.dumps({"dialogue": f"{name}/level={level}", **row}))
                written.write("\n")
                for group in ("all", str(level)):
                    of_group = values.setdefault(group, {metric: [] for metric in METRICS})
                    for metric, value in row.items():
                        if value is not None:
                            of_group[metric].append(value)
    means = {
        group: {metric: statistics.fmean(each) if each else None for metric, each in found.items()}
        for group, found in values.items()
    }
    (output / "summary.json").write_text(json.dumps(means, indent=1))


if __name__ == "__main__":
    evaluate(*map(Path, sys.argv[1:]))
