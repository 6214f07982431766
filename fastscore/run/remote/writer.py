"""Writing a run into an object store, from a folder in the cache that has its files meanwhile."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path

import orjson

from fastscore.errors import RunConflictError, RunError
from fastscore.files import hash_bytes
from fastscore.logs.objects import request_pool
from fastscore.run.commit import (
    RECEIPTS,
    WORK,
    Committed,
    Receipt,
    commit_bytes,
    save_receipt,
)
from fastscore.run.manifest import MANIFEST_NAME, Manifest, read_manifest
from fastscore.run.remote import log
from fastscore.run.remote.copy import (
    COMPLETE,
    StoredReceipt,
    copies_of,
    copy_folder,
    fetch_outputs,
    fetched,
    fingerprint_of,
    object_name,
    parse_receipt,
    put_outputs,
    put_receipt,
    receipt_name,
    received_path,
    shard_name,
    shard_of,
)
from fastscore.run.remote.prefix import Listed, Prefix
from fastscore.run.writer import run_lock

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
        """Return the name of a shard in its round."""
        return shard_name(fingerprint, self._round(fingerprint))

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
