"""Write logs of simulated guests who order coffee, with planted defects.

Real are the guest's and the restaurant's words and the orders: Taskmaster-4 (CC BY 4.0). Synthetic
are the personas, the behavioural labels, the tool traces, which wrap the orders in the way of the
public logs, and the defects: items or modifiers of the target that the final order lacks or has
another in place of. What a defect does to the numbers is known and returned.

Usage: python -m benchmarks.guest_simulation_logs -o FOLDER [--data FILE] [--conversations 1000]
"""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import click
import orjson

from benchmarks.guest_simulation_conversations import (
    CONVERSATIONS_PER_SHARD,
    KEYS,
    SAMPLE,
    SEED,
    Turn,
    make_conversations,
    make_personas,
    read_orders,
)

COLUMNS = (
    "message_id", "role", "content", "name", "timestamp", "tool_calls", *KEYS,
    "current_items_in_order",
)  # fmt: skip


def write_shards(
    folder: Path, orders: Sequence[Sequence[Turn]], count: int, seed: int = SEED
) -> int:
    """Write JSON Lines, a message a row, and the personas; return the bytes of the former."""
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
    """Write a CSV file a conversation, in a folder a level, as the public logs are."""
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
    """Return where the personas of the logs in a folder stand: beside it."""
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
