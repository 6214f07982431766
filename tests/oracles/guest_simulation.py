"""Score conversations of simulated guests in plain Python: one message, one cell at a time.

Written from the definitions in docs/suites/guest_simulation.md, with the standard library alone:
the peer that `benchmarks.guest_simulation` measures against, and the oracle of the suite's tests.
`guest_cells` reads the cells, `guest_states` what they say of states and orders.
"""

import json
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.oracles.guest_cells import (
    DEFAULT_STATE,
    Behaviour,
    MalformedError,
    current_names,
    first_text,
    target_items,
    target_names,
    tool_names,
)
from tests.oracles.guest_states import (
    GUEST_ROLES,
    Row,
    cell_of,
    guest_orders,
    guest_states,
    has_order_cell,
    is_exit,
    is_guest,
)

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
    """Compute the F1 of two sets, None where both are empty."""
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
    """Read the attributes of personas by name."""
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
