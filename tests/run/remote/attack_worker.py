"""A writer of a small run that an attack kills, stops and doubles.

It commits by the functions of real runs. Before some commits it pauses for longer than a lease,
and gives no sign of life meanwhile. It knows the faults that an attack must find (`MUTANTS`).
"""

import hashlib
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
    checked_bytes,
    commit_bytes,
    load_receipt,
    receipt_path,
)
from fastscore.run.manifest import Manifest
from fastscore.run.remote import log, prefix, writer
from fastscore.run.remote.copy import StoredReceipt, object_name, receipt_name
from fastscore.run.remote.prefix import Prefix
from fastscore.run.remote.writer import StoreWriter, writing_store

SHARDS = 8
TABLES = ("steps", "dialogues")
CONFLICT = 7
"""The exit code of a writer that another one followed or kept out."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a writer is told: the run, a seed, how often it pauses, and its fault if it has one."""

    url: str
    cache: str
    environment: dict[str, str]
    seed: int
    pauses: float = 0.25
    mutant: str = ""


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
    if order.mutant:
        MUTANTS[order.mutant]()
    try:
        with writing_store(order.url, replaces=False, note=lambda text: None) as (folder, begun):
            write(folder, begun)
    except RunConflictError:
        sys.exit(CONFLICT)


def set_clocks() -> None:
    """Make everything quick: leases, pauses and the library's own tries."""
    log.BEAT_SECONDS, log.STILL_SECONDS = 0.1, 0.4
    prefix.PAUSE_SECONDS = 0.002
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
    writer.put_receipt = pausing(writer.put_receipt, share / 3)
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


def _list_parts_first() -> None:
    """List parts before receipts."""
    original = StoreWriter.restore

    def restore(self: StoreWriter, *given: Any) -> Any:
        early = {table: self.prefix.listed(table) for table in TABLES}
        time.sleep(0.02)
        listed = Prefix.listed

        def listed_early(prefix: Prefix, below: str) -> Any:
            return early.get(below) if below in early else listed(prefix, below)

        Prefix.listed = listed_early  # type: ignore[method-assign]
        try:
            return original(self, *given)
        finally:
            Prefix.listed = listed  # type: ignore[method-assign]

    StoreWriter.restore = restore  # type: ignore[method-assign]


def _overwrite_receipts() -> None:
    """Put receipts whether there is one or not."""

    def put(at: Prefix, shard: str, receipt: Receipt, named: Any) -> StoredReceipt:
        name = receipt_name(shard)
        content = checked_bytes({**asdict(receipt), "objects": named})
        bucket, key = at._place(name)
        objects.obstore().put(bucket, key, content, use_multipart=False)
        return StoredReceipt(name, content, receipt, named)

    writer.put_receipt = put


def _no_fence() -> None:
    """Append after whatever there is, also after another writer's begin."""

    def append_as(at: Prefix, epoch: log.Epoch, entry: log.Entry) -> None:
        while True:
            position = len(log.read_log(at))
            if log.append(at, position, {**entry, "epoch": epoch.number}):
                return

    log.append_as = append_as
    StoreWriter.check = lambda self, run: None  # type: ignore[method-assign]


def _collect_everything() -> None:
    """Delete all parts that no receipt names, before the run is complete too."""
    original = StoreWriter.commit_receipt

    def commit_receipt(self: StoreWriter, run: Path, receipt: Receipt) -> None:
        original(self, run, receipt)
        named = set()
        for name in self.receipts().values():
            stored = orjson.loads(self.prefix.get(name) or b'{"objects": []}')
            named |= {name for name, _ in stored["objects"]}
        for table in TABLES:
            for name in self.prefix.listed(table):
                if name not in named:
                    self.prefix.delete(name)

    StoreWriter.commit_receipt = commit_receipt  # type: ignore[method-assign]


def _receipt_first() -> None:
    """Put the receipt before the parts."""
    put_outputs = writer.put_outputs

    def names_only(at: Prefix, folder: Path, shard: str, outputs: Any) -> Any:
        outputs = list(outputs)
        if not shard:
            return put_outputs(at, folder, shard, outputs)
        named = []
        for output in outputs:
            content = (folder / output.path).read_bytes()
            tag = f'"{hashlib.md5(content).hexdigest()}"'
            named.append((object_name(output, shard), tag))
        later.append((at, folder, shard, outputs))
        return tuple(named)

    later: list[Any] = []
    put_receipt = writer.put_receipt

    def put(*given: Any) -> Any:
        stored = put_receipt(*given)
        time.sleep(0.05)
        while later:
            put_outputs(*later.pop())
        return stored

    writer.put_outputs, writer.put_receipt = names_only, put


MUTANTS: dict[str, Callable[[], None]] = {
    "parts listed before receipts": _list_parts_first,
    "receipts overwritten": _overwrite_receipts,
    "no fence": _no_fence,
    "parts without a receipt deleted": _collect_everything,
    "receipts before parts": _receipt_first,
}
