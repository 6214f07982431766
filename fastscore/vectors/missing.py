"""Embedding the texts that a store lacks, each by one process: claims tell the others to wait."""

import fcntl
import logging
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fastscore.vectors.text_ids import as_series, distinct_ids, text_ids

if TYPE_CHECKING:
    from fastscore_jit.arrays import Vectors

    from fastscore.vectors.embedder import Progress
    from fastscore.vectors.store import VectorStore
    from fastscore.vectors.text_ids import Texts

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
    check_cancelled: Callable[[], object] = lambda: None,
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
    check_cancelled
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
            check_cancelled()
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


_TEXTS_PER_APPEND = 8192


class Encoder(Protocol):
    """What makes a vector of a text: an `Embedder`, or a `PerplexityModel`."""

    def encode(self, texts: "Texts", *, progress: "Progress | None" = None) -> "Vectors":
        """Return a row for each text."""


def embed_missing(
    texts: "Texts",
    embedder: Encoder,
    store: "VectorStore",
    *,
    progress: "Progress | None" = None,
    texts_per_append: int = _TEXTS_PER_APPEND,
) -> int:
    """Embed the texts that a store lacks, each distinct one once.

    Texts go in windows, shortest first; a window is on disk before the next begins, so a killed
    run loses one at most.

    Parameters
    ----------
    texts
        Strings in any order, with repeats; nulls are ignored.
    embedder, store
        Of one fingerprint.
    progress
        Called with (texts embedded, texts to embed).
    texts_per_append
        The size of a window.

    Returns
    -------
    int
        How many texts were embedded.

    Raises
    ------
    StoreError
        If vectors could not be written.
    ModelError
        If the model's files are damaged.
    """
    distinct = as_series(texts).drop_nulls().unique()
    ids = text_ids(distinct)
    absent = store.missing(ids)
    distinct, ids = distinct.filter(absent), ids[absent]
    # The order among texts of one length is by id, so that it does not depend on the input's.
    by_id = distinct_ids(ids)[1]
    distinct, ids = distinct.gather(by_id), ids[by_id]
    lengths = distinct.str.len_bytes().to_numpy()
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), texts_per_append):
        window = order[start : start + texts_per_append]

        def advance(done: int, _: int, start: int = start) -> None:
            if progress is not None:
                progress(start + done, len(order))

        vectors = embedder.encode(distinct.gather(window), progress=advance)
        store.append(ids[window], vectors)
    return len(order)
