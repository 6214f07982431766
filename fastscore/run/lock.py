"""One writer a run directory.

The kernel's advisory lock on ``RUN/.lock`` says whether a writer lives; it goes when its process
goes, however that ended, so a lock left by a killed run is taken over. The file's text says who
holds it, and a token that only the writer has: before it commits, a writer looks whether the
token is still there, so that one whose lock file was removed commits nothing into the run that
another has begun. A lock held from another host over a network file system is honoured where that
file system supports ``flock``.
"""

import errno
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastscore_jit.system import lock_file, open_descriptor, read_at, remove_locked

from fastscore.errors import RunConflictError
from fastscore.files import explain

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
    """Return what the lock says of its holder."""
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
