"""Shared by the store tests: ids, vectors derived from them, and a writer process."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from fastscore.vectors.store import VectorStore
from fastscore.vectors.view import text_ids

DIM = 8

WRITER = """
import sys
from pathlib import Path
from tests.vectors.stores import append_texts, open_store
store = open_store(Path(sys.argv[1]))
print("ready", flush=True)
for window in range(int(sys.argv[2]), int(sys.argv[3])):
    append_texts(store, window)
    print(window, flush=True)
"""


def open_store(root: Path) -> VectorStore:
    return VectorStore.open("f00d", DIM, root=root)


def vectors_of(ids: np.ndarray) -> np.ndarray:
    """Return vectors derived from the ids, so that a wrong one is detected by its id."""
    seeds = ids[:, :1] % np.uint64(1009) + np.arange(1, DIM + 1, dtype=np.uint64)
    vectors = (seeds % np.uint64(97)).astype(np.float32) + 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def window_ids(window: int, size: int = 50) -> np.ndarray:
    return text_ids([f"text {window} {number}" for number in range(size)])


def append_texts(store: VectorStore, window: int) -> None:
    ids = window_ids(window)
    store.append(ids, vectors_of(ids))


def files_of(store: VectorStore) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


def start_writer(root: Path, first: int, stop: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(first), str(stop)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
