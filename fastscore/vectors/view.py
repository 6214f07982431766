"""Ids of texts, and the vectors of a column's texts.

Ids travel as uint64 (n, 2). "Sorted" means by first word, then by second.
"""

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fastscore_kernels
import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import UInt64Array, Vectors
from fastscore_jit.system import has_range_locks, lock_range, open_descriptor
from fastscore_kernels import index_ids, text_hash128

from fastscore.errors import StoreError, UsageError
from fastscore.settings.extras import load

if TYPE_CHECKING:
    import polars as pl

    Texts = Sequence[str] | pl.Series | Any


TextIds = npt.NDArray[np.uint64]
Progress = Callable[[int, int], None]
"""What is told how many texts are done, and how many there are."""


def check_dim(dim: int | None, full: int) -> int:
    """Return the width asked for, `full` for None."""
    if dim is None:
        return full
    if not 1 <= dim <= full:
        raise UsageError(f"The dimension asked for is {dim}: expected 1 to {full}.")
    return dim


def truncate(vectors: Vectors, dim: int) -> Vectors:
    """Keep leading components and scale rows to length 1 again; a zero row stays zero."""
    return vectors if dim == vectors.shape[1] else scaled(vectors[:, :dim])


def scaled(vectors: Vectors) -> Vectors:
    """Return a copy with rows of length 1; a zero row stays zero."""
    cut = np.array(vectors, np.float32, order="C")
    lengths = np.sqrt(np.einsum("ij,ij->i", cut, cut, dtype=np.float64))
    lengths[lengths == 0] = 1
    cut /= lengths[:, None].astype(np.float32)
    return cut


def as_series(texts: "Texts") -> "pl.Series":
    """Take texts as a polars string column."""
    import polars as pl

    if isinstance(texts, str):
        raise TypeError("One text is given: expected a column of them.")
    if isinstance(texts, pl.Series):
        series = texts
    elif isinstance(texts, Sequence):
        series = pl.Series(texts, dtype=pl.String, strict=True)
    else:
        series = pl.Series(texts)
    if not isinstance(series.dtype, pl.String | pl.Categorical | pl.Enum | pl.Null):
        raise TypeError(f"Texts have dtype {series.dtype}: expected strings.")
    return series.cast(pl.String)


def as_texts(texts: object) -> "pl.Series":
    """Take texts of a user as `as_series` does."""
    try:
        return as_series(texts)
    except TypeError as error:
        dtype = getattr(texts, "dtype", None)
        found = f"type {type(texts).__name__}" if dtype is None else f"dtype {dtype}"
        raise UsageError(f"`texts` is of {found}; expected a Series or list of strings.") from error


def without_nulls(texts: "Texts") -> "pl.Series":
    """Take texts as `as_series` does."""
    if isinstance(texts, str):
        raise UsageError(f"The texts are one text ({texts!r:.80}): expected a list of texts.")
    series = as_series(texts)
    if series.null_count():
        raise UsageError(f"{series.null_count()} of the texts are null: expected strings.")
    return series


def text_ids(texts: "Texts") -> TextIds:
    """Hash texts, in their order."""
    ids: TextIds = text_hash128(texts)
    return ids


class SortedIds(NamedTuple):
    """Sorted, distinct text ids, word by word: uint64 (n,) each, C-contiguous."""

    first: UInt64Array
    second: UInt64Array

    def rows(self) -> TextIds:
        """Return the ids as uint64 (n, 2)."""
        return np.column_stack((self.first, self.second))


def distinct_ids(ids: TextIds) -> tuple[SortedIds, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Sort ids and drop repeats."""
    first, second, positions, inverse = fastscore_kernels.distinct_ids(ids)
    return SortedIds(first, second), positions, inverse


@dataclass(frozen=True, slots=True, eq=False)
class VectorView:
    """Vectors of a set of distinct texts."""

    # float32 (n, dim), C-contiguous: rows of length 1, in the order of `ids`
    matrix: npt.NDArray[np.float32]
    ids: TextIds  # uint64 (n, 2), sorted and distinct
    # of width 1: the natural logarithms of texts' pseudo-perplexities, where they were asked for
    log_perplexities: "VectorView | None" = None
    # of long texts, where they were asked for: the sums of their windows' vectors, each times its
    # tokens, so not of length 1
    windowed: "VectorView | None" = None

    @property
    def dim(self) -> int:
        """Width of the vectors; 0 without any."""
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_texts(cls, texts: "Texts", matrix: npt.ArrayLike) -> "VectorView":
        """Make a view of given vectors."""
        rows = np.asarray(matrix, np.float32)
        series = as_series(texts)
        if rows.ndim != 2 or len(rows) != len(series):
            raise ValueError(f"The matrix has shape {rows.shape}: expected ({len(series)}, dim).")
        distinct, positions, _ = distinct_ids(text_ids(series))
        return cls(matrix=np.ascontiguousarray(rows[positions]), ids=distinct.rows())

    @classmethod
    def empty(cls) -> "VectorView":
        """Make the view of no texts, for a run without an embedder."""
        return cls(matrix=np.empty((0, 0), np.float32), ids=np.empty((0, 2), np.uint64))

    def nearest(
        self, rows: npt.NDArray[np.int32], among: npt.NDArray[np.int32], k: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Find for each of some texts those of others whose vectors are nearest, by FAISS."""
        faiss: Any = load("faiss", "A search for near vectors")
        index = faiss.IndexFlatIP(self.dim)
        index.add(self.matrix[among])
        cosines, found = index.search(self.matrix[rows], k)
        return found, cosines

    def codes(self, texts: "Texts") -> npt.NDArray[np.int32]:
        """Return each text's row in `matrix`."""
        series = as_series(texts)
        present = series.is_not_null().to_numpy()
        known = series.drop_nulls()
        found = index_ids([SortedIds(*np.ascontiguousarray(self.ids.T))]).find(text_ids(known))
        absent = found < 0
        if absent.any():
            first = known[int(absent.argmax())]
            raise StoreError(
                f"{known.filter(absent).n_unique()} distinct texts have no vector, "
                f"the first is {first[:80]!r}.",
                "Embed them first: `VectorStore.get_or_embed` does.",
            )
        codes = np.full(len(series), -1, np.int32)
        codes[present] = found
        return codes

    def series(self, texts: "Texts") -> "pl.Series":
        """Return the vector of each text."""
        import polars as pl

        column = as_series(texts)
        rows = pl.Series(self.codes(column))
        vectors = pl.Series(column.name, self.matrix, pl.Array(pl.Float32, self.dim))
        return vectors.gather(rows.set(rows < 0, None))


CLAIMS_NAME = ".claims"
PATIENCE_SECONDS = 120.0
_NOTICE_SECONDS = 1.0
_POLL_SECONDS = 0.05
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
    """Claim the ids whose high word lies in ``[low, high]`` while the block lasts."""
    if not has_range_locks():
        yield
        return
    try:
        descriptor = open_descriptor(folder / CLAIMS_NAME, os.O_RDWR | os.O_CREAT, follow=False)
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
                _notify_waiting(folder, patience)
            check_cancelled()
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(descriptor)


@cache  # once, not for each of many ranges
def _notify_waiting(folder: Path, patience: float) -> None:
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
    try:
        return lock_range(descriptor, start, max(1, stop - start))
    except OSError:
        return True
