"""Conversations for tests: made in a few words, read and scored as a run does."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fastscore.suites.base import Events
from fastscore.suites.guest_simulation import SUITE, GuestSimulation
from fastscore.vectors.view import VectorView
from tests.suites.reading import read_lines

ATTRIBUTES = "get_message_generation_attributes_for_next_message"
Row = dict[str, Any]

ADA = {
    "full_name": "Ada",
    "message_generation_attributes": {
        "is_ordering_complete": "no",
        "next_message_menu_exploration_style": "explores_menu",
        "next_message_mood_tones": ["casual", "confused"],
        "next_message_ordering_style": "one_by_one",
    },
}
COMPLETE, EXPLORATION, MOOD, ORDERING = (
    "is_ordering_complete",
    "menu_exploration_style",
    "mood_tone",
    "ordering_style",
)


def guest(content: str = "hello", **more: Any) -> Row:
    return {"role": "agent", "name": "guest_simulation_agent", "content": content, **more}


def state(
    complete: str | None = "no",
    explores: str | None = "explores_menu",
    mood: str | None = "casual",
    ordering: str | None = "one_by_one",
    content: str = "hello",
    **more: Any,
) -> Row:
    """Make a guest message with a state in its columns; by default as Ada's attributes say."""
    values = zip((COMPLETE, EXPLORATION, MOOD, ORDERING), (complete, explores, mood, ordering),
                 strict=True)  # fmt: skip
    return guest(content, **dict(values), **more)


def restaurant(content: str = "What can I get you?") -> Row:
    return {"role": "assistant", "name": "order_taking_llm", "content": content}


def case(persona: Any = ADA, *names: str, order: Any = None) -> Row:
    """Make the row of a test case; the target order by the names of its items."""
    target = {"order_items": [{"name": name} for name in names]} if order is None else order
    content = json.dumps({"guest_persona": persona, "target_order": target})
    return {"role": "system", "name": "test_case_info", "content": content}


def items(*names: str | Row) -> list[Row]:
    return [{"name": name} if isinstance(name, str) else name for name in names]


def call(tool: str, result: str = "done") -> str:
    return repr({"guest_agent": {"tool_calls": {"c1": {"tool_name": tool, "result": result}}}})


def tracking(*names: str, target: Sequence[str] = ()) -> str:
    def written(each: Sequence[str]) -> str:
        made = (f"OrderItem(name={name!r}, quantity=1, base_price=1.0, modifiers=[], "
                "item_total_price=1.0)" for name in each)  # fmt: skip
        return f"[{', '.join(made)}]"

    return (
        f"Latest Order tracking : current_items_in_order={written(names)} "
        f"target_items_to_order={written(target)}"
    )


def order_cell(*names: str) -> str:
    """Make a cell whose tool tracked an order."""
    return call("update_order_tracking", tracking(*names))


def read(
    *rows: Row, options: Mapping[str, Any] | None = None, level: Any = 5
) -> tuple[Events, GuestSimulation, pl.DataFrame]:
    """Read rows as a run does; rows without a conversation are of one, at one level."""
    labels = {"conversation_id": "c"} | ({} if level is None else {"experiment_level": level})
    found = GuestSimulation(**(options or {}))
    lines = [json.dumps(labels | row, ensure_ascii=False) for row in rows]
    raw = read_lines(SUITE.source, lines, "messages.jsonl")
    return SUITE.read(raw.frame, found), found, raw.rejects


def score(*rows: Row, level: Any = 5, **options: Any) -> dict[str, pl.DataFrame]:
    events, found, rejects = read(*rows, options=options, level=level)
    assert rejects.is_empty()
    assert events.rejects.is_empty(), events.rejects.to_dicts()
    return SUITE.score(events, VectorView.empty(), found)


def dialogue(*rows: Row, level: Any = 5, **options: Any) -> Row:
    """Return the only row of ``dialogues``, its reasons as a dictionary."""
    return only(score(*rows, level=level, **options)["dialogues"])


def only(dialogues: pl.DataFrame) -> Row:
    """Return the only row of a frame, its reasons as a dictionary."""
    row = dialogues.row(0, named=True)
    assert dialogues.height == 1
    row["null_reasons"] = {each["metric"]: each["reason"] for each in row["null_reasons"]}
    return row


def calls(*cells: str | None) -> list[Row]:
    """Return messages of a guest with these cells of tool calls."""
    return [guest("hi", tool_calls=cell) for cell in cells]


ORDER, BEHAVIOUR, BASIC = call("update_order_tracking"), call(ATTRIBUTES), call("get_name_of_self")
