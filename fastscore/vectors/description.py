"""The description of a vector store: file, counts, results of a check, and whether to trust it."""

import os
from dataclasses import dataclass
from pathlib import Path

from fastscore_jit.system import open_descriptor, open_private

from fastscore.errors import StoreError

TRUST_VARIABLE = "FASTSCORE_TRUST_STORE"


def open_trusted(path: Path) -> int:
    """Open a file or folder of a store and return its descriptor."""
    if os.environ.get(TRUST_VARIABLE, "0") not in ("", "0"):
        return open_descriptor(path)
    try:
        return open_private(path)
    except PermissionError as error:
        raise StoreError(
            f"The vector store {path} is not used: {error.filename}: {error.strerror}.",
            "Set another folder with store, or trust this one with trust_store.",
        ) from error


STORE_FORMAT = 2
STORE_FILE = "store.json"


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds."""

    folder: Path  # where it lies
    segments: int  # number of segments
    # vectors in them; texts embedded by two processes at once count twice until compacted
    vectors: int
    bytes: int  # size of the segments' files
    damaged: int  # segments set aside as damaged


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What `VectorStore.verify` found."""

    # how many were read and are intact
    segments: int
    vectors: int
    # what was wrong with each segment that was set aside, by segment name
    damaged: tuple[tuple[str, str], ...]
