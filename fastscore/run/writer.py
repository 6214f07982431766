"""What a run's writer does to make its work count, in a folder or in an object store.

The files of a run that is being written are in a folder in either case: the run directory, or a
copy of what the store has.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fastscore.run.commit import Receipt, receipts_folder, save_receipt
from fastscore.run.lock import check_writer, run_lock
from fastscore.run.manifest import Manifest
from fastscore.run.places import place_of


class Writer(Protocol):
    """The one process that may write a run now; workers receive it with their tasks."""

    @property
    def name(self) -> str:
        """The run as messages name it."""

    @property
    def token(self) -> str:
        """A text that no other writer has."""

    def check(self, run: Path) -> None:
        """Raise `RunConflictError` if another writer has begun.

        ``run`` is the folder of the run's files, here as in the other methods.
        """

    def restore(
        self, run: Path, fingerprints: Mapping[int, str], contents: Mapping[int, str]
    ) -> frozenset[str]:
        """Put the committed files of planned shards into the folder."""

    def reopen(self, fingerprints: Iterable[str]) -> "Writer":
        """Make receipts of these void; return the writer that commits new ones."""

    def commit_receipt(self, run: Path, receipt: Receipt) -> None:
        """Commit a shard's receipt; the files that it names are in the folder."""

    def commit_manifest(self, run: Path, manifest: Manifest) -> None:
        """Commit the manifest; a complete one with all that it and the receipts name."""


@dataclass(frozen=True, slots=True)
class FolderWriter:
    """The writer of a run directory: renames commit, and a lock tells who writes."""

    name: str
    token: str

    def check(self, run: Path) -> None:
        """Raise `RunConflictError` unless the lock is held with this writer's token."""
        check_writer(run, self.token)

    def restore(
        self, run: Path, fingerprints: Mapping[int, str], contents: Mapping[int, str]
    ) -> frozenset[str]:
        """Do nothing: the files are there."""
        return frozenset()

    def reopen(self, fingerprints: Iterable[str]) -> "FolderWriter":
        """Return this writer: a new receipt replaces an earlier one."""
        return self

    def commit_receipt(self, run: Path, receipt: Receipt) -> None:
        """Commit a shard's receipt."""
        save_receipt(receipts_folder(run, "score"), receipt)

    def commit_manifest(self, run: Path, manifest: Manifest) -> None:
        """Commit the manifest."""
        manifest.save(run)


@contextmanager
def writing(
    output: Path, *, replaces: bool = False, note: Callable[[str], object] = lambda text: None
) -> Iterator[tuple[Path, Writer]]:
    """Take up a run for writing; yields the folder of its files, and its writer."""
    place = place_of(output)
    if isinstance(place, Path):
        with run_lock(place) as token:
            yield place, FolderWriter(str(place), token)
        return
    from fastscore.run.remote.writer import writing_store  # late: few runs are in a store

    with writing_store(place.url, replaces=replaces, note=note) as begun:
        yield begun
