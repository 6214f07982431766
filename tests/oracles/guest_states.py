"""Read the states and orders of simulated guests in plain Python, from columns, tools or words.

Written from the definitions in docs/suites/guest_simulation.md, with the standard library alone:
`tests.oracles.guest_simulation` scores what is read here, `guest_cells` reads the cells.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.oracles.guest_cells import (
    DEFAULT_STATE,
    STATE_COLUMNS,
    Behaviour,
    MalformedError,
    behaviour_of_cell,
    filled,
    first_text,
    normalise,
    order_of_cell,
    parse_items,
)

Row = Mapping[str, Any]


LEXICON = Path(__file__).parents[2] / "fastscore" / "suites" / "guest_simulation" / "lexicon.toml"


GUEST_ROLES = ("agent", "guest", "guest_simulation_agent", "guest_simulation_llm")


@cache
def read_words(path: Path = LEXICON) -> dict[str, Any]:
    """Read the lexicon of the heuristic."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


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
    """Tell whether the column of the order has anything in it."""
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
