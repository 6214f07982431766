"""Receipts and copies of runs in object stores: which objects contain which files.

``receipts/FINGERPRINT-ROUND.json`` is put if absent: the first attempt at a shard wins, and others
adopt it. Objects are named by what they hold: ``TABLE/part-00000-FINGERPRINT-ROUND-HASH.parquet``.
A round is over when its receipt was made void. Names of a round that is over are never used again.

Readers copy the files that they need to a folder of the cache. The names of objects are taken from
the last ``complete`` entry of the log and from the receipts that it names. Every object is compared
with its hash before it is used.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from os.path import splitext
from pathlib import Path

import orjson

from fastscore.errors import RunError, UsageError
from fastscore.files import cache_root, hash_bytes
from fastscore.logs.objects import request_pool
from fastscore.run.commit import (
    RECEIPTS,
    AlteredFileError,
    Committed,
    Receipt,
    checked_bytes,
    commit_bytes,
    is_intact,
    parse_checked,
    part_name,
    save_receipt,
)
from fastscore.run.manifest import Manifest, read_manifest
from fastscore.run.remote.log import latest, read_log
from fastscore.run.remote.prefix import Listed, Prefix

_PART = re.compile(r"part-\d+-(?P<shard>[0-9a-f]+-\d+)-[0-9a-f]+\.parquet")
_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """A receipt, and for each of its outputs the name and the entity tag of the object.

    ``name`` is the receipt's own, and ``content`` its bytes.
    """

    name: str
    content: bytes
    receipt: Receipt
    objects: tuple[tuple[str, str], ...]

    def at(self, index: int) -> Receipt:
        """Return the receipt as a folder has it whose shard of this number it is."""
        outputs = tuple(
            replace(output, path=f"{output.path.partition('/')[0]}/{part_name(index)}")
            for output in self.receipt.outputs
        )
        return replace(self.receipt, index=index, outputs=outputs)

    def is_complete(self, listed: Mapping[str, Listed]) -> bool:
        """Tell whether all objects are there as they were written."""
        return all(
            _is_same(listed.get(name), output, tag)
            for (name, tag), output in zip(self.objects, self.receipt.outputs, strict=True)
        )


def _is_same(found: Listed | None, output: Committed, tag: str) -> bool:
    return found is not None and found.size == output.n_bytes and found.tag == tag


def shard_name(fingerprint: str, round: int) -> str:
    """Return the name of a shard's round, as names of objects contain it."""
    return f"{fingerprint}-{round}"


def receipt_name(shard: str) -> str:
    """Return the name of a receipt's object."""
    return f"receipts/{shard}.json"


def fingerprint_of(name: str) -> str:
    """Return the fingerprint of the shard whose receipt has this name."""
    return name.removeprefix("receipts/").removesuffix(".json").rpartition("-")[0]


def object_name(output: Committed, shard: str = "") -> str:
    """Return the name of an output's object; without a shard, of a file beside the parts."""
    root, suffix = splitext(output.path)
    between = f"-{shard}" if shard else ""
    return f"{root}{between}-{output.content_hash[:_HASH_DIGITS]}{suffix}"


def shard_of(name: str) -> str | None:
    """Return the shard and round that a part's object belongs to."""
    found = _PART.fullmatch(name.rpartition("/")[2])
    return None if found is None else found["shard"]


def put_outputs(
    prefix: Prefix, folder: Path, shard: str, outputs: Iterable[Committed]
) -> tuple[tuple[str, str], ...]:
    """Put files of a folder into the store; return name and tag of each object."""

    def put(output: Committed) -> tuple[str, str]:
        name = object_name(output, shard)
        return name, prefix.add(name, (folder / output.path).read_bytes())

    return tuple(request_pool().map(put, outputs))


def put_receipt(
    prefix: Prefix, shard: str, receipt: Receipt, named: tuple[tuple[str, str], ...]
) -> StoredReceipt:
    """Put a receipt unless the shard has one; return the one that the shard has then."""
    name = receipt_name(shard)
    content = checked_bytes({**asdict(receipt), "objects": named})
    if prefix.put_if_absent(name, content):
        return StoredReceipt(name, content, receipt, named)
    return read_receipt(prefix, name)


def read_receipt(prefix: Prefix, name: str) -> StoredReceipt:
    """Read a receipt."""
    content = prefix.get(name)
    if content is None:
        raise damaged(prefix, name)
    return parse_receipt(prefix, name, content)


def parse_receipt(prefix: Prefix, name: str, content: bytes) -> StoredReceipt:
    """Take a receipt from its bytes."""
    try:
        fields = parse_checked(content)
        named = tuple((name, tag) for name, tag in fields.pop("objects"))
        outputs = tuple(Committed(**output) for output in fields.pop("outputs"))
        receipt = Receipt(**fields | {"names": tuple(fields["names"])}, outputs=outputs)
        return StoredReceipt(name, content, receipt, named)
    except (AlteredFileError, KeyError, TypeError, ValueError) as error:
        raise damaged(prefix, name) from error


def fetch_output(prefix: Prefix, folder: Path, output: Committed, name: str) -> None:
    """Bring an object into a folder as the file of an output, unless it is there."""
    if is_intact(folder, output):
        return
    content = prefix.get(name)
    if content is None or hash_bytes(content) != output.content_hash:
        raise damaged(prefix, name)
    commit_bytes(folder / output.path, content)


def fetch_outputs(prefix: Prefix, folder: Path, stored: StoredReceipt, index: int) -> Receipt:
    """Bring all objects of a receipt into a folder; return the receipt as the folder has it."""
    receipt = stored.at(index)
    for (name, _), output in zip(stored.objects, receipt.outputs, strict=True):
        fetch_output(prefix, folder, output, name)
    return receipt


def damaged(prefix: Prefix, name: str) -> RunError:
    """Return the error for an object that is missing or changed."""
    return RunError(
        f"{prefix.url}/{name}: missing, or not what was committed.",
        "Score it again with the same options: what is damaged is scored again.",
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
