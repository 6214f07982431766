"""Read cells of simulated guests in plain Python, one at a time: members, states, lists of items.

Written from the definitions in docs/suites/guest_simulation.md, with the standard library alone:
`tests.oracles.guest_simulation` scores what is read here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Behaviour = tuple[str, str, str, str]

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


def normalise(name: str) -> str:
    """Lower-case, drop special characters, drop filler words."""
    words = re.sub(r"[^a-z0-9\s]", " ", name.lower()).split()
    return " ".join(word for word in words if word not in FILLERS)


def members(cell: str) -> list[tuple[str, int, int]]:
    """List all keys of a cell with the positions where they and their values begin."""
    return [(match[1], match.start(1), match.end()) for match in MEMBER.finditer(cell)]


def scalar(cell: str, at: int) -> str:
    """Read a quoted text, the member of an enumeration, or a bare word."""
    match = SCALAR.match(cell, at)
    return (match["text"] or match["member"] or match["word"] or "") if match else ""


def tool_names(cell: str) -> list[str]:
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
    """Return whether the text after a quote shows that the quote ends its text."""
    return CLOSING.match(cell, at + 1) is not None


def text_end(cell: str, at: int, *, assigned: bool) -> int:
    """Return the quote that ends the text whose opening quote is at ``at``."""
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
    for key in keys:
        if target.get(key) is not None:
            return list(target[key])
    return None
