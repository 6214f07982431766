"""Small logs, their plans, and the rows read by a plan."""

import json
import random
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import Plan, plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Column, Source

SOURCE = Source(
    columns=(
        Column(name="index", kind="integer"),
        Column(name="text", kind="text"),
        Column(name="uid", kind="text", accepts=("integer",)),
        Column(name="miner", kind="text", accepts=("integer",)),
    ),
    dialogue_key=("uid", "miner"),
)


def dialogue(uid: Any, rows: int, miner: Any = 1) -> list[str]:
    lines = []
    for index in range(rows):
        row = {"index": index, "text": f"text {index} of {uid}", "uid": uid, "miner": miner}
        lines.append(json.dumps({name: value for name, value in row.items() if value is not None}))
    return lines


def log(n_dialogues: int, seed: int = 0) -> bytes:
    """Dialogues of 1 to 30 rows, some pairs interleaved, with faulty and blank lines between."""
    rng = random.Random(seed)
    lines: list[str] = []
    for number in range(n_dialogues):
        rows = dialogue(f"s{seed}-{number}", rng.randint(1, 30), miner=number % 3)
        if number % 5 == 4:
            other = dialogue(f"s{seed}-{number}b", len(rows))
            rows = [line for pair in zip(rows, other, strict=True) for line in pair]
        lines += rows
        lines += ["", "{broken"][: rng.randint(0, 2)]
    return "\n".join(lines).encode() + b"\n"


def plan(
    folder: Path,
    *paths: str | Path,
    source: Source = SOURCE,
    shard_bytes: int = 32 << 20,
    threads: int = 1,
) -> Plan:
    files = resolve_inputs(paths, source.formats)
    scratch = folder / "scratch"
    return plan_shards(files, source, shard_bytes=shard_bytes, scratch=scratch, threads=threads)


def read(
    planned: Plan, source: Source = SOURCE, threads: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, int]]:
    """Return the rows, rejects and counts of all shards together."""
    parts = [read_shard(shard, source, threads=threads) for shard in planned.shards]
    counts = {name: sum(part.counts[name] for part in parts) for name in parts[0].counts}
    frames, rejects = [part.frame for part in parts], [part.rejects for part in parts]
    return pl.concat(frames), pl.concat(rejects), counts
