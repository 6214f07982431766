"""Copies of runs in object stores: files that readers need, in a folder of the cache.

The names of objects are taken from the last ``complete`` entry of the log and from the receipts
that it names. Every object is compared with its hash before it is used.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson

from fastscore.errors import RunError, UsageError
from fastscore.files import cache_root, hash_bytes
from fastscore.logs.objects import request_pool
from fastscore.run.commit import RECEIPTS, Committed, commit_bytes, save_receipt
from fastscore.run.manifest import Manifest, read_manifest
from fastscore.run.remote.log import latest, read_log
from fastscore.run.remote.prefix import Prefix
from fastscore.run.remote.receipts import (
    StoredReceipt,
    damaged,
    fetch_output,
    object_name,
    parse_receipt,
)

COMPLETE = "complete.json"
"""The manifest of a complete run, and the names and hashes of its receipts."""


def copies_of(url: str) -> Path:
    """Return the folder of the cache for copies of a run."""
    identity = hashlib.blake2b(url.encode(), digest_size=16).hexdigest()
    return cache_root() / "runs" / identity


def copy_folder(url: str, content_hash: str) -> Path:
    """Return the folder for a copy of a run that was completed with this `COMPLETE`."""
    return copies_of(url) / content_hash


def received_path(run: Path, index: int) -> Path:
    """Return where a folder keeps a shard's receipt as the store has it."""
    return run / "received" / f"{index}.json"


@dataclass(frozen=True, slots=True)
class RunCopy:
    """A copy of a complete run."""

    prefix: Prefix  # the objects of the run
    folder: Path  # where files of the run are once they are fetched, named as in a run directory
    manifest: Manifest  # the run's manifest
    names: Mapping[str, str]  # the name of each file's object

    def fetch(self, output: Committed) -> None:
        """Bring a file into the folder, unless it is there as committed."""
        fetch_output(self.prefix, self.folder, output, self.names[output.path])

    def is_intact(self, output: Committed) -> bool:
        """Read a file's object, and compare it with what was committed."""
        content = self.prefix.get(self.names[output.path])
        return content is not None and hash_bytes(content) == output.content_hash


def open_copy(url: str) -> RunCopy:
    """Open the complete run at an address; its tables are not fetched yet."""
    prefix = Prefix(url)
    entries = read_log(prefix)
    if not entries:
        raise UsageError(
            f"{url}: no run there (no log).",
            "Make one with `fastscore score SUITE INPUT... -o RUN`.",
        )
    ending = latest(entries, "complete")
    if ending is None:
        raise RunError(f"{url}: the run is not complete.", "Score it again with its options.")
    folder = copy_folder(url, str(ending["content_hash"]))
    complete = orjson.loads(
        fetched(prefix, folder, COMPLETE, ending["name"], ending["content_hash"])
    )
    stated = complete["manifest"]
    fetched(prefix, folder, stated["path"], stated["name"], stated["content_hash"])
    # the file tells when the run was complete, not when it was fetched
    os.utime(folder / stated["path"], (ending["time"], ending["time"]))
    manifest = read_manifest(folder)
    if manifest is None:
        raise damaged(prefix, stated["name"])

    def receive(index: int) -> StoredReceipt:
        name, content_hash = complete["receipts"][index]
        path = received_path(folder, index).relative_to(folder).as_posix()
        content = fetched(prefix, folder, path, name, content_hash)
        stored = parse_receipt(prefix, name, content)
        save_receipt(folder / RECEIPTS, stored.at(index))
        return stored

    received = request_pool().map(receive, range(manifest.shards))
    return RunCopy(prefix, folder, manifest, _names(manifest, received))


def find_runs(url: str) -> Iterator[tuple[str, float]]:
    """Yield address and time in seconds of each run at an address or below it."""
    prefix = Prefix(url)
    names = prefix.first_level()
    if "log/" in names and "lease/" in names:
        yield url, read_log(prefix)[-1]["time"]
        return
    for name in sorted(names):
        if name.endswith("/"):
            yield from find_runs(f"{url}/{name.rstrip('/')}")


def _names(manifest: Manifest, received: Iterable[StoredReceipt]) -> dict[str, str]:
    outputs = [Committed(**output) for output in manifest.outputs]
    names = {output.path: object_name(output) for output in outputs}
    for index, stored in enumerate(received):
        for output, (name, _) in zip(stored.at(index).outputs, stored.objects, strict=True):
            names[output.path] = name
    return names


def fetched(prefix: Prefix, folder: Path, path: str, name: str, content_hash: str) -> bytes:
    """Return the content of a file of a copy, from the store unless the folder has it."""
    try:
        content = (folder / path).read_bytes()
        if hash_bytes(content) == content_hash:
            return content
    except OSError:
        pass
    found = prefix.get(name)
    if found is None or hash_bytes(found) != content_hash:
        raise damaged(prefix, name)
    commit_bytes(folder / path, found)
    return found
