"""Claims: which range of text ids somebody embeds now, so that others wait instead of doing it too.

A claim is a lock on some bytes of a file beside the segments: it goes with the process that holds
it. It spares work and guards nothing: where locks are not to be had, or are held by a process that
was stopped, whoever waits embeds what is missing, and the store holds some vectors twice.
"""

import fcntl
import logging
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

CLAIMS_NAME = ".claims"
PATIENCE_SECONDS = 120.0
_NOTICE_SECONDS = 1.0
_POLL_SECONDS = 0.05
_LOCK = "hhqqi"  # struct flock of Linux: type, from where, start, length, process
_SET_LOCK = getattr(fcntl, "F_OFD_SETLK", None)
_logger = logging.getLogger("fastscore.vectors")


@contextmanager
def claimed(
    folder: Path,
    low: int,
    high: int,
    *,
    patience: float = PATIENCE_SECONDS,
    watch: Callable[[], object] = lambda: None,
) -> Iterator[None]:
    """Claim the ids whose high word lies in ``[low, high]`` while the block lasts.

    Parameters
    ----------
    folder
        Of the store.
    low, high
        The range.
    patience
        How many seconds to wait at most for whoever has claimed some of them already.
    watch
        Called again and again while that lasts; may raise.
    """
    if _SET_LOCK is None:
        yield
        return
    try:
        descriptor = os.open(folder / CLAIMS_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except OSError:
        yield  # what is embedded will say why the folder cannot be written
        return
    try:
        started = time.monotonic()
        while not _locked(descriptor, low, high):
            waited = time.monotonic() - started
            if waited >= patience:
                break
            if waited > _NOTICE_SECONDS:
                _say_that_we_wait(folder, patience)
            watch()
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


@cache  # once, not for each of many ranges
def _say_that_we_wait(folder: Path, patience: float) -> None:
    _logger.warning(
        "Waiting for another process, which embeds the same texts into %s; each time for %.0f s "
        "at most.",
        folder,
        patience,
    )


def _locked(descriptor: int, low: int, high: int) -> bool:
    """Lock a range, or find that this file system has no locks; False where another holds it."""
    # offsets have 63 bits, and neighbouring ranges must not share a byte
    start, stop = low // 4, (high + 1) // 4
    lock = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, start, max(1, stop - start), 0)
    try:
        fcntl.fcntl(descriptor, _SET_LOCK or 0, lock)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
