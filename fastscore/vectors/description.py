"""The description of a vector store: file, counts, results of a check, and whether to trust it."""

import os
from dataclasses import dataclass
from pathlib import Path

from fastscore_jit.objects import is_kept_from_others

from fastscore.errors import StoreError
from fastscore.wording import parameter

TRUST_VARIABLE = "FASTSCORE_TRUST_STORE"


def check_trusted(folder: Path) -> None:
    """Refuse a store that is another user's or that others can write to.

    Raises
    ------
    StoreError
        It is, and ``$FASTSCORE_TRUST_STORE`` is not set.
    """
    if os.environ.get(TRUST_VARIABLE, "0") not in ("", "0") or not hasattr(os, "getuid"):
        return
    if folder.exists() and not is_kept_from_others(folder):
        raise StoreError(
            f"{folder}: this vector store, or a folder above it, is another user's or writable "
            "for all: its vectors may not be what the model made.",
            f"Mend its owner or permissions, name another with {parameter('store')}, or trust "
            f"it with {parameter('trust_store')}.",
        )


STORE_FORMAT = 2
STORE_FILE = "store.json"


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds.

    Attributes
    ----------
    folder
        Where it lies.
    segments
        Number of segments.
    vectors
        Vectors in them; texts embedded by two processes at once count twice until compacted.
    bytes
        Size of the segments' files.
    damaged
        Segments set aside as damaged.
    """

    folder: Path
    segments: int
    vectors: int
    bytes: int
    damaged: int


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What `VectorStore.verify` found.

    Attributes
    ----------
    segments, vectors
        How many were read and are intact.
    damaged
        What was wrong with each segment that was set aside, by segment name.
    """

    segments: int
    vectors: int
    damaged: tuple[tuple[str, str], ...]
