"""Score conversations of simulated guests in plain Python: one message, one cell at a time.

Written from the definitions in docs/suites/guest_simulation.md, with the standard library alone:
the peer that `benchmarks.guest_simulation` measures against, and the oracle of the suite's tests.
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

Row = Mapping[str, Any]
Behaviour = tuple[str, str, str, str]

LEXICON = Path(__file__).parents[1] / "fastscore" / "suites" / "guest_simulation" / "lexicon.toml"
METRICS = ("PAS", "BVS", "ORA", "DEI", "CRRS")
GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")
DEFAULT_STATE: Behaviour = ("no", "does_not_explore_menu", "casual", "all_at_once")
STATE_COLUMNS = (
    ("is_ordering_complete",),
    ("next_message_menu_exploration_style", "menu_exploration_style"),
    ("next_message_mood_tone", "mood_tone"),
    ("next_message_ordering_style", "ordering_style"),
)
STATE_KEYS = tuple(names[0] for names in STATE_COLUMNS)
ATTRIBUTES_TOOL = "get_message_generation_attributes_for_next_message"
MARKER = "Latest Order tracking"
FILLERS = {"the", "a", "an", "with", "and", "or", "of", "in", "on", "at"}
FOODS = ("chicken", "sandwich", "fries", "burger", "pizza", "salad")
ORDER_TOOLS = ("order_tracking",)
BEHAVIOUR_TOOLS = ("message_generation", "message_attributes")
BASIC_TOOLS = ("get_name", "get_persona", "get_target", "get_past_messages")
MEMBER = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*)[\\'\"]*\s*[=:]\s*", re.ASCII)
SCALAR = re.compile(
    r"\\*['\"](?P<text>[^'\"\\]*)|<[A-Za-z_0-9]+\.(?P<member>[A-Za-z_0-9]+)|(?P<word>[\w.+-]+)",
    re.ASCII,
)
CLOSING = re.compile(
    r"\s*(?:\Z|[)\]}:]|,[\s\\]*(?:['\"\[\](){}]|[A-Za-z0-9_.]+\s*[=(,)\]}]))", re.ASCII
)
COLON, ASSIGNMENT, WORD = (re.compile(each, re.ASCII) for each in (r"\s*:", r"\s*=", r"\w+"))


class MalformedError(ValueError):
    """A cell that breaks off."""


@cache
def read_words(path: Path = LEXICON) -> dict[str, Any]:
    """Read the lexicon of the heuristic."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def normalise(name: str) -> str:
    """Lower-case, drop special characters, drop filler words."""
    words = re.sub(r"[^a-z0-9\s]", " ", name.lower()).split()
    return " ".join(word for word in words if word not in FILLERS)


# --- tool cells -----------------------------------------------------------------------------------


def members(cell: str) -> list[tuple[str, int, int]]:
    """List all keys of a cell with the positions where they and their values begin."""
    return [(match[1], match.start(1), match.end()) for match in MEMBER.finditer(cell)]


def scalar(cell: str, at: int) -> str:
    """Read a quoted text, the member of an enumeration, or a bare word."""
    match = SCALAR.match(cell, at)
    return (match["text"] or match["member"] or match["word"] or "") if match else ""


def tool_names(cell: str) -> list[str]:
    """List the names of the tools that were called."""
    return [scalar(cell, value) for key, _, value in members(cell) if key == "tool_name"]


def behaviour_of_cell(cell: str) -> Behaviour | None:
    """Read the attributes that a tool gave for the next message."""
    keys = members(cell)
    calls = [
        at
        for key, at, value in keys
        if key == "tool_name" and scalar(cell, value) == ATTRIBUTES_TOOL
    ]
    start = calls[0] if calls else 0
    found: dict[str, str] = {}
    for key, at, value in keys:
        if key in STATE_KEYS and at >= start and key not in found:
            found[key] = scalar(cell, value).lower()
    return filled([found.get(key, "") for key in STATE_KEYS])


def filled(values: Sequence[str]) -> Behaviour | None:
    """Give a state that has some value the default for the others."""
    if not any(values):
        return None
    complete, exploration, mood, ordering = (
        value or default for value, default in zip(values, DEFAULT_STATE, strict=True)
    )
    return complete, exploration, mood, ordering


def order_of_cell(cell: str) -> list[Any] | None:
    """Read the latest tracked order of a cell, None where it tracks none."""
    found = [
        (key, at, value)
        for key, at, value in members(cell)
        if key in ("tool_name", "target_items_to_order")
        or (key == "current_items_in_order" and cell[value : value + 1] == "[")
    ]
    lists = [entry for entry in found if entry[0] != "tool_name"]
    marked: list[tuple[int, bool]] = []
    for number, (key, at, value) in enumerate(lists):
        if key == "current_items_in_order" and MARKER in cell[max(0, at - 40) : at]:
            after = lists[number + 1][0] if number + 1 < len(lists) else ""
            marked.append((value, after == "target_items_to_order"))
    if marked:
        value, whole = marked[-1]
        if not whole:
            raise MalformedError("no target_items_to_order follows")
        return parse_items(cell, value)
    is_tracking = False
    for key, _, value in found:
        if key == "tool_name":
            is_tracking |= "order_tracking" in scalar(cell, value)
        elif is_tracking and key == "current_items_in_order":
            return parse_items(cell, value)
    return None


def closes(cell: str, at: int) -> bool:
    """Tell whether what follows a quote shows that it ends its text."""
    return CLOSING.match(cell, at + 1) is not None


def text_end(cell: str, at: int, *, assigned: bool) -> int:
    """Find the quote that ends the text whose opening quote stands at ``at``."""
    quote = cell[at]
    opened = at - len(cell[:at].rstrip("\\"))
    position = at + 1
    while True:
        position = cell.find(quote, position)
        if position < 0:
            raise MalformedError("a text does not end")
        escapes = position - len(cell[:position].rstrip("\\"))
        escapes = min(escapes, position - at - 1)
        if (assigned or escapes <= opened) and closes(cell, position):
            return position
        position += 1


def unescape(text: str) -> str:
    """Undo escapes, however often they were escaped themselves."""

    def undo(match: re.Match[str]) -> str:
        escape = match[1]
        if escape[0] in "ux" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        return {"n": "\n", "t": "\t", "r": "\r"}.get(escape, escape)

    return re.sub(r"\\+(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.|$)", undo, text, flags=re.DOTALL)


def parse_items(cell: str, at: int) -> list[Any]:
    """Read a list of items in Python's or JSON's writing, or in that of ``OrderItem(...)``.

    Items and modifiers are dictionaries of their texts, or bare texts.
    """
    items: list[Any] = []
    stack: list[Any] = []
    key: str | None = None
    assigned = False
    while at < len(cell):
        char = cell[at]
        if char in "[{(":
            inner: Any = [] if len(stack) in (0, 2) else {}
            if len(stack) == 0:
                inner = items
            elif len(stack) == 1:
                items.append(inner)
            elif len(stack) == 2 and key == "modifiers" and isinstance(stack[1], dict):
                stack[1].setdefault("modifiers", inner)
            elif len(stack) == 3:
                stack[2].append(inner)
            stack.append(inner)
            key, assigned = None, False
        elif char in "]})":
            stack.pop()
            key = None
            if not stack:
                return items
        elif char in "'\"":
            end = text_end(cell, at, assigned=assigned)
            raw = cell[at + 1 : end].rstrip("\\")
            text, at, assigned = unescape(raw), end, False
            if COLON.match(cell, at + 1):
                key = raw
            else:
                if len(stack) == 1:
                    items.append(text)
                elif len(stack) == 3:
                    stack[2].append(text)
                elif key not in (None, "modifiers") and raw and len(stack) in (2, 4):
                    stack[-1].setdefault(key, text)
                key = None
        elif char == ",":
            key, assigned = None, False
        elif char == "_" or (char.isascii() and char.isalpha()):
            word = WORD.match(cell, at)
            assert word is not None
            at = word.end() - 1
            following = ASSIGNMENT.match(cell, at + 1)
            if following:
                key, assigned = word[0], True
                at = following.end() - 1
        at += 1
    raise MalformedError("a list does not end")


# --- orders ---------------------------------------------------------------------------------------


def first_text(mapping: Mapping[str, Any], keys: Iterable[str]) -> str:
    """Return the first text among some keys that is not empty."""
    return next(
        (mapping[key] for key in keys if isinstance(mapping.get(key), str) and mapping[key]), ""
    )


def modifier_names(item: Mapping[str, Any], keys: Sequence[str]) -> list[str]:
    """List the modifiers of an item."""
    found = item.get("modifiers")
    if not isinstance(found, list):
        return []
    return [
        modifier if isinstance(modifier, str) else first_text(modifier, keys)
        for modifier in found
        if isinstance(modifier, str | dict)
    ]


def current_names(items: Sequence[Any]) -> set[str]:
    """Make the set C of a final order."""
    names: list[str] = []
    for item in items:
        if isinstance(item, str):
            names.append(item)
            continue
        names.append(first_text(item, ("name", "item_name", "item")))
        names += modifier_names(item, ("name", "modifier_option_name", "modifier"))
        names.append(first_text(item, ("modifier",)))
    return {normalise(name) for name in names} - {""}


def target_names(items: Sequence[Any]) -> set[str]:
    """Make the set T of a target order."""
    names: list[str] = []
    for item in items:
        if isinstance(item, dict):
            names.append(first_text(item, ("name", "item_name", "item")))
            names += modifier_names(item, ("modifier_option_name", "name", "modifier"))
    return {normalise(name) for name in names} - {""}


def target_items(target: Mapping[str, Any], *keys: str) -> list[Any] | None:
    """Return the list under the first key that is present."""
    for key in keys:
        if target.get(key) is not None:
            return list(target[key])
    return None


# --- states ---------------------------------------------------------------------------------------


def is_guest(row: Row) -> bool:
    """Tell whether a message is the guest's."""
    return row.get("role") in GUEST_ROLES or (row.get("name") or "").startswith("guest")


def is_exit(row: Row) -> bool:
    """Tell whether a message ends the conversation."""
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
        values.append(value if profile == "published" else value.strip().lower())
    return filled(values)


def order_of_columns(row: Row, profile: str) -> list[Any] | None:
    """Read an order from the columns of the log."""
    value = row.get("current_items_in_order")
    if value is None or value == "":
        return None
    if profile == "published":
        try:
            loaded = json.loads(cell_of(row, "current_items_in_order").replace("'", '"'))
        except ValueError:
            return []
        return loaded if isinstance(loaded, list) else []
    text = cell_of(row, "current_items_in_order")
    if not text.strip():
        return None
    if not text.lstrip().startswith("["):
        raise MalformedError("no list")
    return parse_items(text, len(text) - len(text.lstrip()))


def plain_words(text: str) -> str:
    """Reduce a text to its words, between single spaces."""
    return " " + re.sub(r"[^a-z0-9]+", " ", text.lower()).strip() + " "


def has_phrase(text: str, phrases: Iterable[str]) -> bool:
    """Tell whether a text has a phrase as whole words."""
    words = plain_words(text)
    return any(plain_words(phrase) in words for phrase in phrases)


def behaviours_by_words(rows: Sequence[Row], targets: Sequence[Any]) -> list[Behaviour | None]:
    """Read the guest's states from what was said."""
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
        said = f" {normalise(text)} "
        named = {name for name in wanted if f" {name} " in said}
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
    if states == "columns" or (states == "auto" and any(by_columns)):
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


# --- metrics --------------------------------------------------------------------------------------


def message_score(state: Behaviour, expected: Mapping[str, Any]) -> tuple[float, list[bool | None]]:
    """Compare a state with what the persona lets expect: the share of its components that match."""
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
    """Score a state by what words of the persona let expect."""
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


# --- conversations --------------------------------------------------------------------------------


def read_personas(path: Path) -> dict[str, dict[str, Any]]:
    """Read the attributes of personas by name."""
    entries = json.loads(path.read_text(encoding="utf-8"))["persona_attributes"]
    return {entry["full_name"]: entry["message_generation_attributes"] for entry in entries}


def score_conversation(
    rows: Sequence[Row],
    personas: Mapping[str, Mapping[str, Any]],
    *,
    level: int | None = None,
    profile: str = "default",
    states: str = "auto",
) -> dict[str, Any]:
    """Score a conversation; what cannot be scored is None."""
    published = profile == "published"
    nothing = 0.0 if published else None
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
    guests = [row for row in messages if is_guest(row)]
    by_role = [row for row in guests if row.get("role") in GUEST_ROLES]
    wanted = (
        None if target is None else target_items(target, "items", "target_order", "order_items")
    )
    source, found = guest_states(messages, guests, wanted or [], profile, states)
    behaviours = [None if is_exit(row) else state for row, state in zip(guests, found, strict=True)]
    if published:
        behaviours = [state or DEFAULT_STATE for state in behaviours]

    scores: dict[str, Any] = {"state_source": source, "behaviours": behaviours}
    # PAS
    scores["PAS"] = None
    if persona is not None:
        name = persona.get("full_name") or (persona.get("guest_persona") or {}).get("full_name")
        expected = personas.get(name or "", persona.get("message_generation_attributes"))
        parts = [
            message_score(state, expected)[0]
            if expected is not None
            else fallback_score(state, json.dumps(persona, ensure_ascii=False))
            for row, state in zip(guests, behaviours, strict=True)
            if state is not None and not is_exit(row)
        ]
        scores["PAS"] = sum(parts) / len(parts) if parts else nothing
    # BVS
    present = [state for state in behaviours if state is not None]
    scores["BVS"] = behavioural_variance(present) if len(present) >= 2 else nothing
    # ORA
    scores["ORA"] = None
    orders = guest_orders(guests, profile, states)
    if published:
        orders = [[] if is_exit(row) else order for row, order in zip(guests, orders, strict=True)]
    final = next((order for order in reversed(orders) if order), None)
    if wanted is not None and not isinstance(final, MalformedError) and not bad_case:
        if final is not None:
            value = f1(current_names(final), target_names(wanted))
        elif not by_role and not published:
            value = None
        else:
            keys = (
                ("items", "target_order") if published else ("items", "target_order", "order_items")
            )
            text = " ".join(row.get("content") or "" for row in by_role)
            value = text_overlap(text, target_items(target or {}, *keys) or [])
        scores["ORA"] = nothing if value is None else value
    # DEI
    scores["DEI"] = None
    if level is not None and 1 <= level <= 5:
        cells = [cell_of(row, "tool_calls") for row in by_role]
        scores["DEI"] = explainability(level, cells, profile) if cells else nothing
    # CRRS
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
                written.write(json.dumps({"dialogue": name, "experiment_level": level, **row}))
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
