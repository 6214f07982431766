"""One writer a run directory.

The kernel's advisory lock on ``RUN/.lock`` says whether a writer lives; it goes when its process
goes, however that ended, so a lock left by a killed run is taken over. The file's text says who
holds it. A lock held from another host over a network file system is honoured where that file
system supports ``flock``.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastscore.errors import RunConflictError
from fastscore.run.commit import explain

LOCK_NAME = ".lock"


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold a run directory for writing.

    Raises
    ------
    RunConflictError
        Another live process holds it.
    RunError
        The directory cannot be made or written.
    """
    path = folder / LOCK_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(path)
    except OSError as error:
        raise explain(folder, error) from error
    try:
        _sign(descriptor, path)
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(descriptor)


def _sign(descriptor: int, path: Path) -> None:
    """Write into the lock who holds it."""
    holder = f"host {socket.gethostname()}, process {os.getpid()}\n"
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, holder.encode(), 0)
    except OSError as error:
        raise explain(path, error) from error


def _lock(path: Path) -> int:
    """Lock the file that stands at `path` now; an earlier holder may have just unlinked it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise RunConflictError(
                f"{path.parent}: another fastscore writes there ({holder or 'holder unknown'}).",
                "Wait for it to end, or choose another folder with -o.",
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)
