"""Write logs of simulated guests who order coffee, with planted defects.

Real parts are the texts of guest and restaurant, and the orders: Taskmaster-4 (CC BY 4.0).
Synthetic parts are the personas, the behavioural labels, the tool traces (orders wrapped as in the
public logs), and the defects: items or modifiers that the final order lacks or replaces.

Usage: python -m benchmarks.guest_simulation_logs -o FOLDER [--data FILE] [--conversations 1000]
"""

import csv
import gzip
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import orjson

SAMPLE = Path(__file__).parent / "data" / "tm4_sample.jsonl.gz"
SEED = 0
MOST_DIALOGUES = 4
LEVELS = (1, 2, 3, 4, 5)
CONVERSATIONS_PER_SHARD = 5_000
DEFECT_RATE = 0.3
MISMATCH_RATE = 0.2
LOST_BACKSLASHES = 0.3

KEYS = (
    "is_ordering_complete",
    "next_message_menu_exploration_style",
    "next_message_mood_tone",
    "next_message_ordering_style",
)
CLASSES = ("IsOrderingComplete", "MenuExplorationStyle", "MessageMoodTone", "OrderingStyle")
VALUES = (
    ("no", "yes"),
    ("explores_menu", "does_not_explore_menu"),
    ("casual", "frustrated", "confused", "enthusiastic"),
    ("one_by_one", "all_at_once"),
)
SUBSTITUTES = ("Roaster's Choice", "Steamed Milk (kids')", "Sparkling Water", "Yerba Mate")
FIRST_NAMES = ("Ada", "Ben", "Cleo", "Dev", "Ema", "Finn", "Gus", "Hana", "Ines", "Jun")
LAST_NAMES = ("Okoro", "Lindqvist")


@dataclass(frozen=True, slots=True)
class Item:
    """An ordered item with its modifiers, each a kind and an option."""

    name: str
    modifiers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a source dialogue: its speaker, its text, and the items that it added."""

    speaker: str
    text: str
    added: tuple[Item, ...] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation's rows, and what names it."""

    id: str
    level: int
    rows: list[dict[str, Any]] = field(repr=False)


def read_orders(path: Path = SAMPLE) -> list[list[Turn]]:
    """Read the source dialogues whose calls add exactly the items of their final order."""
    found = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            dialogue = json.loads(line)
            turns = _read_turns(dialogue["turns"])
            names = {item.name.lower() for turn in turns for item in turn.added}
            if names and names == {name.lower() for name in dialogue["final_order"] or ()}:
                found.append(turns)
    return found


def _read_turns(turns: Sequence[Any]) -> list[Turn]:
    names: dict[str, str] = {}
    read = []
    for speaker, text, *calls in turns:
        added: list[Item] = []
        call = ""
        for kind, value in calls[0] if calls else ():
            if kind in ("api_call", "api_response"):
                call = value
                continue
            try:
                data = json.loads(value)
            except ValueError:
                continue
            if kind == "response" and call == "get_menu_items":
                menu = data.get("menu_items", [])
                names |= {each["menu_item_id"]: each["name"] for each in menu}
            if kind == "request" and call == "add_order_item" and data["menu_item_id"] in names:
                added.append(Item(names[data["menu_item_id"]], _modifiers(data)))
        read.append(Turn(speaker, text, tuple(added)))
    return read


def _modifiers(request: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    given = request.get("attributes") or ()
    return tuple(
        (str(each.get("attribute_id", "")), str(each["option"]))
        for each in given
        if isinstance(each, dict) and each.get("option")
    )


def make_personas() -> list[dict[str, Any]]:
    """Make twenty personas with their attributes."""
    random_ = random.Random(SEED)
    personas = []
    for last in LAST_NAMES:
        for first in FIRST_NAMES:
            moods = random_.choices(VALUES[2], k=2)
            personas.append(
                {
                    "full_name": f"{first} {last}",
                    "message_generation_attributes": {
                        "is_ordering_complete": "no",
                        "next_message_menu_exploration_style": random_.choice(VALUES[1]),
                        "next_message_mood_tones": moods,
                        "next_message_ordering_style": random_.choice(VALUES[3]),
                        "guest_personality_description": f"{first} likes it {moods[0]}.",
                    },
                }
            )
    return personas


def make_conversations(
    orders: Sequence[Sequence[Turn]], count: int, seed: int = SEED
) -> Iterator[Conversation]:
    """Make conversations of one to four source dialogues, each test case at all five levels."""
    random_ = random.Random(seed)
    personas = make_personas()
    for index in range(count):
        if index % len(LEVELS) == 0:
            persona = personas[random_.randrange(len(personas))]
            parts = random_.choices(orders, k=random_.randint(1, MOST_DIALOGUES))
            turns = [turn for part in parts for turn in part]
        yield _make(random_, index, LEVELS[index % len(LEVELS)], persona, turns)


def _make(
    random_: random.Random, index: int, level: int, persona: dict[str, Any], turns: Sequence[Turn]
) -> Conversation:
    items = [item for turn in turns for item in turn.added]
    target, replaced = _plant_defects(random_, items)
    name = persona["full_name"].replace(" ", "-")
    id = f"chat_with_guest_simulation_agent_messages_log_{name}_test_case_number_{index // 5 + 1}"
    attributes = persona["message_generation_attributes"]
    rows = [_row(0, "assistant", "order_taking_llm", "Welcome! What can I get you?")]
    state: tuple[str, ...] = ()
    ordered: list[Item] = []
    number = 0
    for turn in [*turns, Turn("U", "exit")]:
        if turn.speaker != "U":
            rows.append(_row(len(rows), "assistant", "order_taking_llm", turn.text))
            continue
        for _ in turn.added:
            kept = replaced[number]
            number += 1
            if kept is not None:
                ordered.append(kept)
        guest = "guest_simulation_llm" if level == 1 else "guest_simulation_agent"
        row = _row(len(rows), "agent", guest, turn.text)
        is_exit = turn.text == "exit"
        if not is_exit:
            state = _state(random_, attributes)
            if level in (2, 3):
                row |= dict(zip(KEYS, state, strict=True))
        if level in (1, 2, 4) and not is_exit:
            row["current_items_in_order"] = repr([_as_dict(item) for item in ordered])
        row["tool_calls"] = _tool_cell(random_, level, None if is_exit else state, ordered, target)
        rows.append(row)
    case = {
        "guest_persona": {"full_name": persona["full_name"], "order_size": len(items)},
        "target_order": {"order_items": [_as_dict(item) for item in target]},
    }
    rows.append(_row(len(rows), "system", "test_case_info", json.dumps(case)))
    for row in rows:
        row["conversation_id"], row["experiment_level"] = id, level
    return Conversation(id, level, rows)


def _plant_defects(
    random_: random.Random, items: Sequence[Item]
) -> tuple[list[Item], list[Item | None]]:
    """Return the target, and the guest's replacement of each item: None for nothing."""
    replaced: list[Item | None] = list(items)
    for place, item in enumerate(items):
        if random_.random() >= DEFECT_RATE:
            continue
        kind = random_.choice(("dropped", "swapped", "modifiers"))
        if kind == "dropped":
            replaced[place] = None
        elif kind == "swapped":
            replaced[place] = Item(random_.choice(SUBSTITUTES), item.modifiers)
        else:
            replaced[place] = Item(item.name)
    return list(items), replaced


def _state(random_: random.Random, attributes: dict[str, Any]) -> tuple[str, ...]:
    """Draw a state, whose components may differ from the attributes."""
    state = []
    for place, values in enumerate(VALUES):
        key = KEYS[place] + ("s" if place == 2 else "")
        wanted = attributes[key] if place == 2 else [attributes[key]]
        others = [value for value in values if value not in wanted]
        mismatch = random_.random() < MISMATCH_RATE
        state.append(random_.choice(others if mismatch else wanted))
    return tuple(state)


def _row(number: int, role: str, name: str, content: str) -> dict[str, Any]:
    return {
        "message_id": f"m{number}",
        "role": role,
        "content": content,
        "name": name,
        "timestamp": f"2025-11-05T19:{number // 60 % 60:02d}:{number % 60:02d}.000123",
    }


def _as_dict(item: Item) -> dict[str, Any]:
    return {
        "name": item.name,
        "quantity": 1,
        "base_price": 4.5,
        "modifiers": [
            {
                "modifier_type_name": kind,
                "modifier_option_name": option,
                "is_required": False,
                "price": 0.0,
            }
            for kind, option in item.modifiers
        ],
        "item_total_price": 4.5,
    }


def _order_repr(items: Sequence[Item]) -> str:
    written = []
    for item in items:
        modifiers = ", ".join(
            f"Modifier(modifier_type_name={kind!r}, modifier_option_name={option!r}, "
            "is_required=False, price=0.0)"
            for kind, option in item.modifiers
        )
        written.append(
            f"OrderItem(name={item.name!r}, quantity=1, base_price=4.5, modifiers=[{modifiers}], "
            "item_total_price=4.5)"
        )
    return f"[{', '.join(written)}]"


def _tool_cell(
    random_: random.Random,
    level: int,
    state: tuple[str, ...] | None,
    ordered: Sequence[Item],
    target: Sequence[Item],
) -> str:
    """Return a cell of tool calls in Python syntax, sometimes without a required backslash."""
    calls: list[tuple[str, str]] = []
    if level in (2, 4):
        calls.append(("get_past_messages_history", "assistant: Welcome! What can I get you?"))
    if level in (3, 5):
        current, wanted = _order_repr(ordered), _order_repr(target)
        result = (
            f"Latest Order tracking : current_items_in_order={current} "
            f"target_items_to_order={wanted}"
        )
        calls.append(("update_order_tracking", result))
    if level in (4, 5) and state is not None:
        attributes = " ".join(
            f"{key}=<{name}.{value.upper()}: {value!r}>"
            for key, name, value in zip(KEYS, CLASSES, state, strict=True)
        )
        calls.append(
            (
                "get_message_generation_attributes_for_next_message",
                f"Message generation attributes for your next message: {attributes} "
                "guest_personality_description='Friendly and easy to talk to.'",
            )
        )
    if not calls:
        return ""
    written = ", ".join(
        f"'call_{random_.getrandbits(64):016x}': {{'tool_name': {tool!r}, 'call_time': "
        f"datetime.datetime(2025, 11, 5, 19, 0, {random_.randrange(60)}), 'args': {{}}, 'result': "
        f"{result!r}, 'decision_latency_sec': {random_.random():.4f}, "
        f"'execution_latency_sec': {random_.random():.4f}}}"
        for tool, result in calls
    )
    cell = (
        f"{{'guest_agent': {{'tool_calls': {{{written}}}, 'total_latency_sec': "
        f"{random_.random():.4f}}}, 'sub_agents': []}}"
    )
    if random_.random() < LOST_BACKSLASHES:
        cell = cell.replace("\\'", "'").replace('\\"', '"')
    return cell


COLUMNS = (
    "message_id", "role", "content", "name", "timestamp", "tool_calls", *KEYS,
    "current_items_in_order",
)  # fmt: skip


def write_shards(
    folder: Path, orders: Sequence[Sequence[Turn]], count: int, seed: int = SEED
) -> int:
    """Write JSON Lines, one message per row, and the personas; return the bytes of the rows."""
    _write_personas(folder)
    n_bytes = 0
    lines: list[bytes] = []
    for index, conversation in enumerate(make_conversations(orders, count, seed), start=1):
        lines += [orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in conversation.rows]
        if index % CONVERSATIONS_PER_SHARD == 0 or index == count:
            data = b"".join(lines)
            (folder / f"messages-{index:08d}.jsonl").write_bytes(data)
            n_bytes += len(data)
            lines.clear()
    return n_bytes


def write_csv(folder: Path, orders: Sequence[Sequence[Turn]], count: int, seed: int = SEED) -> int:
    """Write one CSV file per conversation, in one folder per level, as the public logs are."""
    _write_personas(folder)
    n_bytes = 0
    for conversation in make_conversations(orders, count, seed):
        path = folder / f"exp{conversation.level}" / f"{conversation.id}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as output:
            writer = csv.DictWriter(output, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(conversation.rows)
        n_bytes += path.stat().st_size
    return n_bytes


def _write_personas(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    table = {"persona_attributes": make_personas()}
    personas_of(folder).write_text(json.dumps(table, indent=1))


def personas_of(folder: Path) -> Path:
    """Return the path of the personas of a folder of logs, which is beside it."""
    return folder.parent / f"{folder.name}-personas.json"


@click.command()
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True)
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    default=SAMPLE,
    help="Taskmaster-4 dialogues in the shape of data/tm4_sample.jsonl.gz.",
)
@click.option("--conversations", type=click.IntRange(min=1), default=1_000, show_default=True)
@click.option("--layout", type=click.Choice(["shards", "csv"]), default="shards")
@click.option("--seed", default=SEED, show_default=True)
def main(output: Path, data: Path, conversations: int, layout: str, seed: int) -> None:
    """Write logs of simulated guests, and their personas beside the folder."""
    write = write_csv if layout == "csv" else write_shards
    n_bytes = write(output, read_orders(data), conversations, seed)
    click.echo(f"{output}: {conversations} conversations, {n_bytes / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
