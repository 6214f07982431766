"""The one writer of a run, in a folder or in an object store, and how its work is made to count.

The kernel's advisory lock on ``RUN/.lock`` goes when its process goes, however that ended. So the
lock of a killed run is taken over. The file names its holder and contains a token that only the
writer has. Before each commit the writer looks for its token: one whose lock file was removed
commits nothing into the run that another has begun. A lock held from another host is honoured if
the network file system supports ``flock``.
"""

import errno
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fastscore_jit.system import lock_file, open_descriptor, read_at, remove_locked

from fastscore.errors import RunConflictError
from fastscore.files import explain
from fastscore.run.commit import Receipt, place_of, receipts_folder, save_receipt
from fastscore.run.manifest import Manifest

LOCK_NAME = ".lock"
_HOLDER_BYTES = 400


@contextmanager
def run_lock(folder: Path) -> Iterator[str]:
    """Hold a run directory for writing; yields the writer's token."""
    path = folder / LOCK_NAME
    if folder.exists() and not folder.is_dir():
        raise RunConflictError(
            f"{folder} is a file; a run is a folder.",
            "Choose another name as output.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise RunConflictError(
                f"{path} is a link, expected a file of the run's own.", "Remove it."
            ) from error
        raise explain(folder, error) from error
    token = secrets.token_hex(8)
    try:
        _sign(descriptor, path, token)
        yield token
    except RunConflictError:
        raise
    except Exception as error:
        if not _is_held(descriptor, path):
            raise _lost(folder, _holder(path)) from error
        raise
    finally:
        if _is_held(descriptor, path):
            remove_locked(descriptor, path)
        else:
            os.close(descriptor)


def check_writer(folder: Path, token: str) -> None:
    """Make sure that a run directory is still held by the writer of this token."""
    holder = _holder(folder / LOCK_NAME)
    if not holder.endswith(f"writer {token}"):
        raise _lost(folder, holder)


def _holder(path: Path) -> str:
    """Return the holder that the lock names."""
    try:
        descriptor = open_descriptor(path, follow=False)
    except OSError:
        return "its lock file was removed"
    try:
        signed = read_at(descriptor, _HOLDER_BYTES, 0).decode(errors="replace")
    finally:
        os.close(descriptor)
    return signed.strip() or "holder unknown"


def _lost(folder: Path, holder: str) -> RunConflictError:
    return RunConflictError(
        f"{folder}: this process no longer holds the run ({holder}); it commits nothing more.",
        "Run the same command again when no other writes there.",
    )


def _sign(descriptor: int, path: Path, token: str) -> None:
    """Write the holder into the lock file."""
    holder = f"host {socket.gethostname()}, process {os.getpid()}, writer {token}\n"
    try:
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, holder.encode())
    except OSError as error:
        raise explain(path, error) from error


def _lock(path: Path) -> int:
    """Lock the file that is at `path` now; an earlier holder may have just unlinked it."""
    while True:
        descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT, follow=False)
        if not lock_file(descriptor):
            holder = read_at(descriptor, _HOLDER_BYTES, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise RunConflictError(
                f"{path.parent}: another fastscore writes there ({holder or 'holder unknown'}).",
                "Wait for it to end, or choose another folder as output.",
            )
        if _is_held(descriptor, path):
            return descriptor
        os.close(descriptor)


def _is_held(descriptor: int, path: Path) -> bool:
    """Tell whether the locked file is the one at `path`."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


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
    from fastscore.run.remote.runs import writing_store  # late: few runs are in a store

    with writing_store(place.url, replaces=replaces, note=note) as begun:
        yield begun
