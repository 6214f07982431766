"""A writer of a small run that an attack kills, stops and doubles.

It commits by the functions of real runs. Before some commits it pauses for longer than a lease,
and gives no sign of life meanwhile.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from fastscore.errors import RunConflictError
from fastscore.files import hash_bytes
from fastscore.logs import objects
from fastscore.run.commit import (
    Receipt,
    attempt_name,
    commit_bytes,
    load_receipt,
    receipt_path,
)
from fastscore.run.manifest import Manifest
from fastscore.run.remote import log, runs
from fastscore.run.remote.log import Prefix
from fastscore.run.remote.runs import StoreWriter, writing_store

SHARDS = 8
TABLES = ("steps", "dialogues")
CONFLICT = 7
"""The exit code of a writer that another one followed or kept out."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a writer is told: the run, a seed and how often it pauses."""

    url: str
    cache: str
    environment: dict[str, str]
    seed: int
    pauses: float = 0.25


def fingerprint_of(index: int) -> str:
    return hash_bytes(f"shard {index}".encode())


def total() -> int:
    return sum(index * index + 1 for index in range(SHARDS)) * len(TABLES)


def work(order: Order) -> None:
    """Write the run, or as much as an attack lets it."""
    os.environ |= {**order.environment, "FASTSCORE_CACHE": order.cache}
    random.seed(order.seed)
    set_clocks()
    standing = pause_sometimes(order.pauses)
    _beat_unless(standing)
    try:
        with writing_store(order.url, replaces=False, note=lambda text: None) as (folder, begun):
            write(folder, begun)
    except RunConflictError:
        sys.exit(CONFLICT)


def set_clocks() -> None:
    """Make everything quick: leases, pauses and the library's own tries."""
    log.BEAT_SECONDS, log.STILL_SECONDS = 0.1, 0.4
    log.PAUSE_SECONDS = 0.002
    backoff = {
        "init_backoff": timedelta(milliseconds=2),
        "max_backoff": timedelta(milliseconds=20),
        "base": 2,
    }
    objects._RETRY = {"max_retries": 3, "retry_timeout": timedelta(seconds=5), "backoff": backoff}


def pause_sometimes(share: float) -> list[int]:
    """Pause before some entries and receipts; return how many pauses there are now."""
    standing = [0]

    def pausing(original: Callable[..., Any], share: float) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if random.random() < share:
                standing[0] += 1
                time.sleep(random.uniform(0.5, 1.4))
                standing[0] -= 1
            return original(*given, **named)

        return call

    log.append = pausing(log.append, share)
    runs.put_receipt = pausing(runs.put_receipt, share / 3)
    return standing


def _beat_unless(standing: list[int]) -> None:
    put = Prefix.put

    def put_unless(self: Prefix, name: str, data: bytes) -> None:
        if not standing[0]:
            put(self, name, data)

    Prefix.put = put_unless  # type: ignore[method-assign]


def write(folder: Path, begun: StoreWriter) -> None:
    """Score what is open, some of it twice, and complete the run."""
    manifest = Manifest(
        signature="an attack",
        suite="none",
        suite_version=1,
        options={},
        column_map={},
        shards=SHARDS,
    )
    begun.commit_manifest(folder, manifest)
    fingerprints = {index: fingerprint_of(index) for index in range(SHARDS)}
    found = begun.restore(folder, fingerprints, fingerprints)
    receipts = folder / "receipts"
    done = {index for index in fingerprints if load_receipt(receipt_path(receipts, "score", index))}
    open_shards = [index for index in fingerprints if index not in done]
    begun = begun.reopen(sorted(found.intersection(fingerprints[index] for index in open_shards)))
    random.shuffle(open_shards)
    late = random.sample(range(SHARDS), 2)

    def score(index: int) -> None:
        if random.random() < 0.3:
            begun.check(folder)
        commit(folder, begun, index)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(score, open_shards))
        before = [receipt_path(receipts, "score", index).read_bytes() for index in late]
        list(pool.map(score, late))  # attempts that come too late
    after = [receipt_path(receipts, "score", index).read_bytes() for index in late]
    assert before == after, "receipt changed"
    summary = orjson.dumps({"total": _sum(folder), "receipts": SHARDS})
    committed = commit_bytes(folder / "summary.json", summary)
    finished = replace(manifest, status="complete", outputs=[asdict(committed)])
    begun.commit_manifest(folder, finished)


def commit(folder: Path, begun: StoreWriter, index: int) -> None:
    """Commit a shard; other attempts at it have other bytes."""
    time.sleep(random.random() * 0.004)
    outputs = []
    for table in TABLES:
        path = f"{table}/part-{index:05d}.parquet"
        content = {"value": index * index + 1, "attempt": os.urandom(4).hex(), "pad": "x" * 200}
        outputs.append(replace(commit_bytes(folder / path, orjson.dumps(content)), path=path))
    receipt = Receipt(
        stage="score",
        index=index,
        fingerprint=fingerprint_of(index),
        outputs=tuple(outputs),
        attempt=attempt_name(),
    )
    begun.commit_receipt(folder, receipt)


def _sum(folder: Path) -> int:
    paths = [
        folder / table / f"part-{index:05d}.parquet" for table in TABLES for index in range(SHARDS)
    ]
    return sum(orjson.loads(path.read_bytes())["value"] for path in paths)
