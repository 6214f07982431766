"""The vector store: each distinct text's vector once, shared by suites, runs and processes.

A store is a folder of immutable segments for one model fingerprint. Readers take no lock and
writers never touch another's file, so any number of processes share a store; threads may share
a `VectorStore`. Two that embed the same text at once both succeed: the first segment by name
answers, `compact` drops the other.
"""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Vectors
from fastscore_jit.system import make_private_folder

from fastscore.errors import StoreError, UsageError
from fastscore.files import cache_root, committed, is_temporary
from fastscore.vectors.segments import (
    DAMAGED_SUFFIX,
    IDS_SUFFIX,
    INDEX_SUFFIX,
    DamagedSegmentError,
    OpenSegments,
    Segment,
    StoreStats,
    VanishedSegmentError,
    open_trusted,
    remove_segment,
    write_segment,
)
from fastscore.vectors.view import (
    Progress,
    SortedIds,
    TextIds,
    VectorView,
    as_series,
    as_texts,
    check_dim,
    distinct_ids,
    text_ids,
)

if TYPE_CHECKING:
    import polars as pl

    from fastscore.vectors.embedder import Embedder
    from fastscore.vectors.view import Texts

Keep = npt.NDArray[np.bool_]


def merge_groups(
    segments: Sequence[Segment], keep: Sequence[Keep], rows: int
) -> list[list[tuple[Segment, Keep]]]:
    """Group the segments worth rewriting: smaller than half of `rows`, or with repeats."""
    groups: list[list[tuple[Segment, Keep]]] = []
    total = 0
    for segment, mask in zip(segments, keep, strict=True):
        kept = int(mask.sum())
        if kept == len(segment) and 2 * kept >= rows:
            continue
        if not groups or total + kept > rows:
            groups.append([])
            total = 0
        groups[-1].append((segment, mask))
        total += kept
    return [group for group in groups if len(group) > 1 or not group[0][1].all()]


def remove_garbage(folder: Path, age: float) -> None:
    """Remove old unfinished files, indexes without ids, and segments set aside as damaged."""
    names = set(os.listdir(folder))
    oldest = time.time() - age
    for name in names:
        orphan = name.startswith("seg-") and name.endswith(INDEX_SUFFIX)
        if orphan and name.removesuffix(INDEX_SUFFIX) + IDS_SUFFIX in names:
            continue
        if not orphan and not is_temporary(name) and not name.endswith(DAMAGED_SUFFIX):
            continue
        # Another process may be cleaning as well.
        with contextlib.suppress(FileNotFoundError):
            if (folder / name).stat().st_mtime < oldest:
                (folder / name).unlink()


@dataclass(frozen=True, slots=True)
class StoreCheck:
    """What `VectorStore.verify` found."""

    # how many were read and are intact
    segments: int
    vectors: int
    # what was wrong with each segment that was set aside, by segment name
    damaged: tuple[tuple[str, str], ...]


STORE_FORMAT = 2
STORE_FILE = "store.json"

# Bounds the memory of a write; a larger append becomes several segments.
_SEGMENT_BYTES = 128 * 2**20


class VectorStore:
    """Vectors of one model by text id. Make one with `VectorStore.of` or `VectorStore.open`.

    Attributes
    ----------
    folder
        Where the segments lie.
    dim
        Full width of the vectors.

    Examples
    --------
    >>> store = fastscore.VectorStore.of(fastscore.Embedder(), root="store")
    >>> store.get_or_embed(pl.Series(["a table for two", "tea", None]))
    >>> store.stats().vectors
    """

    def __init__(self, folder: Path, dim: int) -> None:
        self.folder = folder
        self.dim = dim
        self._segments = OpenSegments(folder, dim)
        self._embedder: Embedder | None = None

    @classmethod
    def of(
        cls, embedder: "Embedder", *, root: str | os.PathLike[str] | None = None
    ) -> "VectorStore":
        """Open the store of an embedder, in which `get_or_embed` embeds what is missing.

        Parameters
        ----------
        embedder
            The model.
        root
            As for `open`. Runs use the same store if their ``store`` is the same folder.

        Raises
        ------
        StoreError, UsageError
            As for `open`.
        """
        if not hasattr(embedder, "fingerprint"):
            kind = type(embedder).__name__
            raise UsageError(f"embedder is of type {kind}, expected a fastscore.Embedder.")
        folder = None if root is None else Path(root)
        store = cls.open(embedder.fingerprint, embedder.dim, root=folder)
        store._embedder = embedder
        return store

    @classmethod
    def open(cls, fingerprint: str, dim: int, *, root: Path | None = None) -> "VectorStore":
        """Open the store of a fingerprint below a folder of stores, making it if there is none.

        It is a StoreError if the folder holds another kind of store, or is not to be trusted.
        """
        folder = (root or cache_root() / "vectors") / fingerprint
        found = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        os.close(open_trusted(found))
        store = cls(folder, dim)
        store._claim(fingerprint)
        store._refresh()
        return store

    def append(self, ids: TextIds, vectors: Vectors) -> None:
        """Add vectors of full width; on return they are on disk. Of repeated ids, the first counts.

        No vector of a segment that could not be written is visible.
        """
        if vectors.shape != (len(ids), self.dim):
            raise ValueError(
                f"Vectors have shape {vectors.shape}: expected {(len(ids), self.dim)}."
            )
        distinct, positions, _ = distinct_ids(ids)
        rows = max(1, _SEGMENT_BYTES // (4 * self.dim))
        for start in range(0, len(positions), rows):
            part = slice(start, start + rows)
            some = SortedIds(distinct.first[part], distinct.second[part])
            with self._explained("written"):
                write_segment(self.folder, some, vectors, positions[part])
        self._refresh()

    def missing(self, ids: TextIds) -> npt.NDArray[np.bool_]:
        """Tell which ids have no vector yet, counting what other processes have added."""
        self._refresh()
        absent: npt.NDArray[np.bool_] = self._segments.indexed()[1].find(ids) < 0
        return absent

    def gather(self, ids: TextIds, dim: int | None = None) -> Vectors:
        """Read vectors in the order of ids, cut to a width; each is compared with its checksum.

        It is a StoreError if some ids have no vector. A segment that proves damaged is set aside
        with a warning. Its texts are then missing, unless another segment has them.
        """
        width = check_dim(dim, self.dim)
        self._refresh()
        wanted, positions, inverse = distinct_ids(ids)
        if len(positions) == len(ids):
            return self._gather(wanted, positions, width)
        return self._gather(wanted, np.arange(len(positions)), width)[inverse]

    def get_or_embed(
        self,
        texts: "pl.Series | Sequence[str | None]",
        *,
        dim: int | None = None,
        progress: Progress | None = None,
    ) -> "pl.Series":
        """Read the vectors of a column of texts, and embed those that the store lacks.

        Parameters
        ----------
        texts
            Strings in any order, with repeats and nulls.
        dim
            Keep the leading `dim` components and normalise anew. Default: all.
        progress
            Called with (texts embedded, texts to embed). Texts with a vector do not count.

        Returns
        -------
        pl.Series
            Of dtype ``Array(Float32, dim)``, each vector of length 1. Null if the text is.

        Raises
        ------
        UsageError
            If the store has no embedder, or the texts are not strings.
        ModelError
            If the model's files are damaged.
        StoreError
            If vectors cannot be read or written.
        """
        if self._embedder is None:
            raise UsageError(
                f"The store {self.folder} has no embedder.",
                "Open it by `VectorStore.of(embedder)`.",
            )
        check_dim(dim, self.dim)
        series = as_texts(texts)
        embed_missing(series, self._embedder, self, progress=progress)
        return self.view(series, dim).series(series)

    def view(self, texts: "Texts", dim: int | None = None) -> VectorView:
        """Gather the vectors of texts, each distinct text once; nulls are ignored."""
        distinct = as_series(texts).drop_nulls().unique()
        ids = distinct_ids(text_ids(distinct))[0].rows()
        return VectorView(matrix=self.gather(ids, dim), ids=ids)

    def stats(self) -> StoreStats:
        """Count segments, vectors and bytes."""
        self._refresh()
        with self._explained("read"):
            return self._segments.retrying(self._segments.count)

    def verify(self) -> StoreCheck:
        """Read every id and vector; set damaged segments aside, whose texts count as missing then.

        Damage that this store has met before, as when it was opened, is reported too.
        """
        self._refresh(afresh=True)
        segments = vectors = 0
        for segment in self._segments.now():
            with (
                self._explained("read"),
                contextlib.suppress(VanishedSegmentError, DamagedSegmentError),
                self._segments.using(segment),
            ):
                segment.check()
                segments += 1
                vectors += len(segment)
        return StoreCheck(segments, vectors, self._segments.damaged())

    def compact(self, *, garbage_age: float = 3600.0) -> StoreStats:
        """Merge small segments, drop vectors held twice, and remove what nobody reads.

        Safe beside readers and writers: a segment is removed once its vectors are committed
        elsewhere. What killed writers left, and damaged segments, go after `garbage_age` seconds.
        """
        self._refresh()
        rows = max(1, _SEGMENT_BYTES // (4 * self.dim))
        with self._explained("compacted"):
            self._segments.retrying(lambda: self._merge(rows))
            remove_garbage(self.folder, garbage_age)
        return self.stats()

    def _claim(self, fingerprint: str) -> None:
        """Make the folder and its description, or compare with the one there."""
        wanted = {
            "format": STORE_FORMAT,
            "fingerprint": fingerprint,
            "dim": self.dim,
            "vector_dtype": "fp32",
        }
        path = self.folder / STORE_FILE
        with self._explained("opened"):
            if not path.exists():
                make_private_folder(self.folder)
                with committed(path, private=True) as file:
                    file.write(json.dumps(wanted, indent=2).encode() + b"\n")
            try:
                with os.fdopen(open_trusted(path), "rb") as file:
                    found = json.loads(file.read())
            except (ValueError, RecursionError) as error:
                raise StoreError(
                    f"{path} cannot be read: {error}.",
                    f"Remove the file {path}, not its folder: it is written anew, and the vectors "
                    "stay.",
                ) from error
        if found != wanted:
            raise StoreError(
                f"The store {self.folder} holds {found}: expected {wanted}.",
                "Name another folder for the store, or remove this one.",
            )

    def _refresh(self, *, afresh: bool = False) -> None:
        with self._explained("read"):
            self._segments.refresh(afresh=afresh)

    def _gather(self, wanted: SortedIds, rows: npt.NDArray[np.intp], width: int) -> Vectors:
        """Gather distinct ids, each into its row."""
        ids = wanted.rows()

        def attempt() -> Vectors:
            segments, index = self._segments.indexed()
            places = index.find(ids)
            absent = places < 0
            if absent.any():
                raise StoreError(
                    f"{absent.sum()} of {len(rows)} texts have no vector in {self.folder}.",
                    "Embed them first: `VectorStore.get_or_embed` does."
                    if not self._segments.damaged()
                    else "Embed them again: damaged segments were set aside.",
                )
            vectors = np.empty((len(rows), width), np.float32)
            by_place = np.argsort(places)
            number, place = np.divmod(places[by_place], 2**32)
            bounds = np.searchsorted(number, np.arange(len(segments) + 1))
            for segment, first, after in zip(segments, bounds, bounds[1:], strict=False):
                with self._segments.using(segment):
                    segment.read(place[first:after], vectors, rows[by_place[first:after]])
            return vectors

        with self._explained("read"):
            return self._segments.retrying(attempt)

    def _merge(self, rows: int) -> None:
        """Rewrite small segments and those with repeats as fewer, then remove them."""
        segments, index = self._segments.indexed()
        # the ids that no earlier segment has
        fresh = [
            index.find(segment.ids.rows()) >> 32 == number
            for number, segment in enumerate(segments)
        ]
        for group in merge_groups(segments, fresh, rows):
            ids = np.concatenate([segment.ids.rows()[keep] for segment, keep in group])
            vectors = np.empty((len(ids), self.dim), np.float32)
            at = 0
            for segment, keep in group:
                positions = np.flatnonzero(keep)
                with self._segments.using(segment):
                    segment.read(positions, vectors, at + np.arange(len(positions)))
                at += len(positions)
            if len(ids):
                merged, order, _ = distinct_ids(ids)
                write_segment(self.folder, merged, vectors, order)
            for segment, _ in group:
                remove_segment(self.folder, segment.name)

    @contextlib.contextmanager
    def _explained(self, verb: str) -> Iterator[None]:
        """Raise what the system refuses as a `StoreError`."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"The vector store {self.folder} cannot be {verb}: {error.strerror or error}.",
                "Free space there, mend its permissions, or name another folder for it.",
            ) from error


_TEXTS_PER_APPEND = 8192


class Encoder(Protocol):
    """What makes a vector of a text: an `Embedder`, or a `PerplexityModel`."""

    def encode(self, texts: "Texts", *, progress: Progress | None = None) -> Vectors:
        """Return a row for each text."""


def embed_missing(
    texts: "Texts",
    embedder: Encoder,
    store: VectorStore,
    *,
    progress: Progress | None = None,
    texts_per_append: int = _TEXTS_PER_APPEND,
) -> int:
    """Embed the texts that a store lacks, each distinct one once.

    Texts go in windows, shortest first. A window is on disk before the next begins.
    """
    distinct = as_series(texts).drop_nulls().unique()
    ids = text_ids(distinct)
    absent = store.missing(ids)
    distinct, ids = distinct.filter(absent), ids[absent]
    # The order among texts of one length is by id, so that it does not depend on the input's.
    by_id = distinct_ids(ids)[1]
    distinct, ids = distinct[by_id], ids[by_id]
    lengths = distinct.str.len_bytes().to_numpy()
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), texts_per_append):
        window = order[start : start + texts_per_append]

        def advance(done: int, _: int, start: int = start) -> None:
            if progress is not None:
                progress(start + done, len(order))

        vectors = embedder.encode(distinct[window], progress=advance)
        store.append(ids[window], vectors)
    return len(order)
