"""Receipts and copies of runs in object stores: which objects contain which files.

``receipts/FINGERPRINT-ROUND.json`` is put if absent: the first attempt at a shard wins, and others
adopt it. Objects are named by what they hold: ``TABLE/part-00000-FINGERPRINT-ROUND-HASH.parquet``.
A round is over when its receipt was made void. Names of a round that is over are never used again.

Readers copy the files that they need to a folder of the cache. The names of objects are taken from
the last ``complete`` entry of the log and from the receipts that it names. Every object is compared
with its hash before it is used.

A run is written from a folder in the cache that has its files meanwhile.
"""

import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from os.path import splitext
from pathlib import Path

import orjson

from fastscore.errors import RunConflictError, RunError, UsageError
from fastscore.files import cache_root, hash_bytes
from fastscore.logs.objects import request_pool
from fastscore.run.commit import (
    RECEIPTS,
    WORK,
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
from fastscore.run.manifest import MANIFEST_NAME, Manifest, read_manifest
from fastscore.run.remote import log
from fastscore.run.remote.log import Listed, Prefix
from fastscore.run.writer import run_lock

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
            listed.get(name) == Listed(output.n_bytes, tag)
            for (name, tag), output in zip(self.objects, self.receipt.outputs, strict=True)
        )


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
    entries = log.read_log(prefix)
    if not entries:
        raise UsageError(
            f"{url}: no run there (no log).",
            "Make one with `fastscore score SUITE INPUT... -o RUN`.",
        )
    ending = log.latest(entries, "complete")
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


_checked: dict[str, float] = {}
"""When this process last made sure that no other writer has begun, by the writer's token."""


@dataclass(frozen=True, slots=True)
class StoreWriter:
    """The writer of an epoch of a run in an object store."""

    prefix: Prefix  # the run's objects
    epoch: log.Epoch
    # how often receipts of a shard were made void, by fingerprint
    voids: Mapping[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The run's address."""
        return self.prefix.url

    @property
    def token(self) -> str:
        """A text that no other writer has."""
        return f"{self.prefix.url} {self.epoch.number}"

    def check(self, run: Path) -> None:
        """Raise `RunConflictError` if a later writer has begun.

        This ends a writer early. Nothing that it could still write would count. So an answer is
        good for a while.
        """
        now = time.monotonic()
        if now - _checked.get(self.token, -log.BEAT_SECONDS) >= log.BEAT_SECONDS:
            log.check_epoch(self.prefix, self.epoch)
            _checked[self.token] = now

    def restore(
        self, run: Path, fingerprints: Mapping[int, str], contents: Mapping[int, str]
    ) -> frozenset[str]:
        """Bring the parts of shards that have receipts into the folder."""
        shutil.rmtree(run / RECEIPTS, ignore_errors=True)
        there = self.receipts()
        names = {each: there[each] for each in fingerprints.values() if each in there}
        # logs that were moved have receipts under other names of files
        moved = there if len(names) < len(fingerprints) else names
        found = self._read_receipts(moved)
        by_content = {stored.receipt.content: stored for stored in found.values()}
        # after the receipts: what a receipt names was put before it
        folders = {name.partition("/")[0] for each in found.values() for name, _ in each.objects}
        listed: dict[str, Listed] = {}
        for folder in sorted(folders):
            listed |= self.prefix.listed(folder)

        def bring(index: int) -> None:
            stored = found.get(fingerprints[index]) or by_content.get(contents[index])
            if stored is None or not stored.is_complete(listed):
                return
            try:
                receipt = fetch_outputs(self.prefix, run, stored, index)
            except RunError:  # it is scored again
                return
            self._keep(run, stored, receipt)

        list(request_pool().map(bring, fingerprints))
        return frozenset(names)

    def reopen(self, fingerprints: Iterable[str]) -> "StoreWriter":
        """Make receipts of these void; return the writer that commits new ones."""
        shards = list(fingerprints)
        if not shards:
            return self
        log.append_as(self.prefix, self.epoch, {"kind": "void", "shards": shards})
        return replace(self, voids={**self.voids, **{s: self.voids.get(s, 0) + 1 for s in shards}})

    def commit_receipt(self, run: Path, receipt: Receipt) -> None:
        """Put a shard's parts and then its receipt; adopt those of a quicker attempt."""
        shard = self.shard(receipt.fingerprint)
        named = put_outputs(self.prefix, run, shard, receipt.outputs)
        stored = put_receipt(self.prefix, shard, receipt, named)
        if stored.receipt.attempt != receipt.attempt:
            receipt = fetch_outputs(self.prefix, run, stored, receipt.index)
        self._keep(run, stored, receipt)

    def commit_manifest(self, run: Path, manifest: Manifest) -> None:
        """Commit the manifest; a complete one with its receipts and the files beside the parts."""
        manifest.save(run)
        content = (run / MANIFEST_NAME).read_bytes()
        stated = Committed(MANIFEST_NAME, len(content), hash_bytes(content))
        if manifest.status != "complete":
            put_outputs(self.prefix, run, "", [stated])
            log.append_as(self.prefix, self.epoch, {"kind": "manifest", **_stated(stated)})
            return
        beside = [Committed(**output) for output in manifest.outputs]
        put_outputs(self.prefix, run, "", [stated, *beside])
        kept = [self._kept(run, index) for index in range(manifest.shards)]
        named = [(each.name, hash_bytes(each.content)) for each in kept]
        content = orjson.dumps({"manifest": _stated(stated), "receipts": named})
        ending = commit_bytes(run / COMPLETE, content)
        put_outputs(self.prefix, run, "", [ending])
        log.append_as(self.prefix, self.epoch, {"kind": "complete", **_stated(ending)})
        self._collect(kept)

    def _collect(self, kept: Iterable[StoredReceipt]) -> None:
        """Delete parts that no receipt names or will name.

        Parts of a shard without a receipt stay: their receipt may be on its way.
        """
        named = {name for each in kept for name, _ in each.objects}
        closed = {shard_of(name) for name in named}
        for folder in sorted({name.partition("/")[0] for name in named}):
            for name in self.prefix.listed(folder):
                shard = shard_of(name)
                if shard is None or name in named:
                    continue
                fingerprint, _, round = shard.rpartition("-")
                if shard in closed or int(round) < self._round(fingerprint):
                    self.prefix.delete(name)

    def receipts(self) -> dict[str, str]:
        """Return the names of all receipts that are not void, by fingerprint."""
        listed = self.prefix.listed(RECEIPTS)
        names = {each: receipt_name(self.shard(each)) for each in map(fingerprint_of, listed)}
        return {each: name for each, name in names.items() if name in listed}

    def _read_receipts(self, names: Mapping[str, str]) -> dict[str, StoredReceipt]:
        """Read receipts, without the damaged ones."""
        contents = request_pool().map(self.prefix.get, names.values())
        found = {}
        for (fingerprint, name), content in zip(names.items(), contents, strict=True):
            try:
                found[fingerprint] = parse_receipt(self.prefix, name, content or b"")
            except RunError:  # its shard is scored again
                continue
        return found

    def _keep(self, run: Path, stored: StoredReceipt, receipt: Receipt) -> None:
        """Keep a receipt as the store has it, then as a folder has it."""
        commit_bytes(received_path(run, receipt.index), stored.content)
        save_receipt(run / RECEIPTS, receipt)

    def _kept(self, run: Path, index: int) -> StoredReceipt:
        content = received_path(run, index).read_bytes()
        fingerprint = parse_receipt(self.prefix, "", content).receipt.fingerprint
        return parse_receipt(self.prefix, receipt_name(self.shard(fingerprint)), content)

    def shard(self, fingerprint: str) -> str:
        """Return the name of a shard in its round, as names of objects contain it."""
        return f"{fingerprint}-{self._round(fingerprint)}"

    def _round(self, fingerprint: str) -> int:
        return self.epoch.rounds + self.voids.get(fingerprint, 0)


def _stated(file: Committed) -> dict[str, object]:
    """Say where an object beside the parts is, and what it contains."""
    return {"name": object_name(file), **asdict(file)}


@contextmanager
def writing_store(
    url: str, *, replaces: bool, note: Callable[[str], object]
) -> Iterator[tuple[Path, StoreWriter]]:
    """Take up a run in a store for writing; yields the folder of its files, and its writer."""
    prefix = Prefix(url)
    _refuse_other_objects(prefix)
    with _own_folder(url) as run, log.written(prefix, replaces=replaces, note=note) as begun:
        epoch, entries = begun
        manifest = None if replaces else log.latest(entries, "manifest", "complete")
        _prepare(prefix, run, manifest)
        yield run, StoreWriter(prefix, epoch, log.voids(entries))
        _leave_copy(prefix, epoch, run)


def earlier_run(url: str) -> tuple[Manifest | None, frozenset[str]]:
    """Return the manifest of the run at an address, and the fingerprints of its receipts."""
    prefix = Prefix(url)
    entries = log.read_log(prefix)
    with tempfile.TemporaryDirectory(prefix="fastscore-") as folder:
        _prepare(prefix, Path(folder), log.latest(entries, "manifest", "complete"))
        manifest = read_manifest(Path(folder))
    writer = StoreWriter(prefix, log.Epoch(0, 0, log.rounds(entries)), log.voids(entries))
    return manifest, frozenset(writer.receipts())


def _refuse_other_objects(prefix: Prefix) -> None:
    """Refuse an address below which there are objects and no log."""
    names = prefix.first_level()
    if names and "log/" not in names:
        raise RunConflictError(
            f"{prefix.url} is no run: it holds {sorted(names)[0]}.",
            "Choose an empty or new address as output.",
        )


@contextmanager
def _own_folder(url: str) -> Iterator[Path]:
    """Hold a folder of the cache that no other process of this machine uses."""
    with ExitStack() as held:
        for number in count():
            slot = copies_of(url) / f"writer-{number}"
            with suppress(RunConflictError):
                held.enter_context(run_lock(slot))
                break
        yield slot / "run"


def _prepare(prefix: Prefix, run: Path, manifest: log.Entry | None) -> None:
    """Make the folder that of the run as it is: with its manifest, or empty."""
    shutil.rmtree(run / RECEIPTS, ignore_errors=True)
    if manifest is None:
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        return
    stated = manifest
    if manifest["kind"] == "complete":
        ending = fetched(prefix, run, COMPLETE, manifest["name"], manifest["content_hash"])
        stated = orjson.loads(ending)["manifest"]
    fetched(prefix, run, MANIFEST_NAME, stated["name"], stated["content_hash"])


def _leave_copy(prefix: Prefix, epoch: log.Epoch, run: Path) -> None:
    """Leave the files of a run that was completed where readers look for them."""
    ending = log.latest(log.read_log(prefix, epoch.position), "complete")
    if ending is None or ending["epoch"] != epoch.number:
        return
    copy = copy_folder(prefix.url, str(ending["content_hash"]))
    if not copy.exists():
        shutil.rmtree(run / WORK, ignore_errors=True)
        run.rename(copy)
