"""The vector store: each distinct text's vector once, shared by suites, runs and processes.

A store is a folder of immutable segments for one model fingerprint. Readers take no lock and
writers never touch another's file, so any number of processes share a store; threads may share
a `VectorStore`. Two that embed the
same text at once both succeed: the first segment by name answers, `compact` drops the other.
"""

import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from fastscore.errors import StoreError, UsageError
from fastscore.paths import cache_root
from fastscore.processors import available_processors
from fastscore.vectors.compaction import (
    first_occurrences,
    merge_groups,
    remove_garbage,
)
from fastscore.vectors.description import StoreCheck, StoreStats, claim, describe
from fastscore.vectors.embedder import Vectors, check_dim, truncate
from fastscore.vectors.segments import (
    DAMAGED_SUFFIX,
    IDS_SUFFIX,
    INDEX_SUFFIX,
    DamagedSegmentError,
    Segment,
    VanishedSegmentError,
    list_segments,
    open_segment,
    remove_segment,
    set_aside,
    write_segment,
)
from fastscore.vectors.text_ids import (
    SortedIds,
    TextIds,
    as_series,
    distinct_ids,
    matches,
    text_ids,
)
from fastscore.vectors.view import VectorView

if TYPE_CHECKING:
    from fastscore.vectors.text_ids import Texts

VECTOR_DTYPES = ("fp32", "fp16")

# Bounds the memory of a write; a larger append becomes several segments.
_SEGMENT_BYTES = 128 * 2**20
_ATTEMPTS = 8
_IDS_PER_THREAD = 1 << 16

Result = TypeVar("Result")

_logger = logging.getLogger("fastscore.vectors")


class VectorStore:
    """Vectors of one model by text id. Make one with `VectorStore.open`.

    Attributes
    ----------
    folder
        Where the segments lie.
    dim
        Full width of the vectors.
    vector_dtype
        ``"fp32"`` or ``"fp16"``, as stored; vectors are returned as float32.
    """

    def __init__(self, folder: Path, dim: int, vector_dtype: str) -> None:
        self.folder = folder
        self.dim = dim
        self.vector_dtype = vector_dtype
        self._segments: dict[str, Segment] = {}
        self._damaged: dict[str, str] = {}
        # Held while `_segments` is replaced; the mapping itself is never changed in place.
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        fingerprint: str,
        dim: int,
        *,
        root: Path | None = None,
        vector_dtype: str = "fp32",
    ) -> "VectorStore":
        """Open a store, making it if there is none.

        Parameters
        ----------
        fingerprint
            `Embedder.fingerprint`.
        dim
            `Embedder.dim`.
        root
            Folder of all stores; None for ``vectors`` below `fastscore.paths.cache_root`.
        vector_dtype
            ``"fp32"``, or ``"fp16"``: half the size, components rounded to 11 bits.

        Raises
        ------
        StoreError
            If the folder cannot be made or read, or holds another kind of store.
        UsageError
            If `vector_dtype` is unknown.
        """
        if vector_dtype not in VECTOR_DTYPES:
            raise UsageError(
                f"Unknown vector dtype {vector_dtype!r}: expected one of "
                f"{', '.join(VECTOR_DTYPES)}."
            )
        suffix = "" if vector_dtype == "fp32" else f"-{vector_dtype}"
        folder = (root or cache_root() / "vectors") / (fingerprint + suffix)
        store = cls(folder, dim, vector_dtype)
        store._claim(fingerprint)
        store._refresh()
        return store

    def append(self, ids: TextIds, vectors: Vectors) -> None:
        """Add vectors; on return they are on disk.

        Parameters
        ----------
        ids : uint64 (n, 2)
            Text ids in any order; of repeats, the first counts.
        vectors : float32 (n, dim)
            Full width, in the order of `ids`.

        Raises
        ------
        StoreError
            If they could not be written; no vector of an unfinished segment is visible then.
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
            try:
                write_segment(self.folder, some, vectors, positions[part], self.vector_dtype)
            except OSError as error:
                raise self._failure("written", error) from error
        self._refresh()

    def missing(self, ids: TextIds) -> npt.NDArray[np.bool_]:
        """Say which ids have no vector yet, counting what other processes have added.

        Parameters
        ----------
        ids : uint64 (n, 2)
            In any order.

        Returns
        -------
        bool (n,)
        """
        self._refresh()
        segments = list(self._segments.values())

        def look_up(some: TextIds) -> npt.NDArray[np.bool_]:
            wanted, _, inverse = distinct_ids(some)
            absent = np.ones(len(wanted.first), bool)
            for segment in segments:
                absent[matches(wanted, segment.ids)[0]] = False
            found: npt.NDArray[np.bool_] = absent[inverse]
            return found

        threads = min(available_processors(), len(ids) // _IDS_PER_THREAD)
        if threads <= 1:
            return look_up(ids)
        with ThreadPoolExecutor(threads) as pool:
            return np.concatenate(list(pool.map(look_up, np.array_split(ids, threads))))

    def gather(self, ids: TextIds, dim: int | None = None) -> Vectors:
        """Read vectors; every one is compared with its checksum.

        Parameters
        ----------
        ids : uint64 (n, 2)
            In any order; repeats are allowed.
        dim
            Keep the leading `dim` components and normalise anew; None for all.

        Returns
        -------
        float32 (n, dim)
            C-contiguous, in the order of `ids`. A zero vector stays zero.

        Raises
        ------
        StoreError
            If some ids have no vector. A segment that proves damaged is set aside with a warning,
            and its texts are missing until embedded again, unless another segment has them.
        """
        width = check_dim(dim, self.dim)
        self._refresh()
        wanted, positions, inverse = distinct_ids(ids)
        if len(positions) == len(ids):
            return self._retrying(lambda: self._gather(wanted, positions, width))
        rows = np.arange(len(positions))
        return self._retrying(lambda: self._gather(wanted, rows, width))[inverse]

    def view(self, texts: "Texts", dim: int | None = None) -> VectorView:
        """Gather the vectors of texts, each distinct text once.

        Parameters
        ----------
        texts
            Strings in any order, with repeats; nulls are ignored.
        dim
            As for `gather`.

        Raises
        ------
        StoreError
            As for `gather`.
        """
        distinct = as_series(texts).drop_nulls().unique()
        ids = distinct_ids(text_ids(distinct))[0].rows()
        return VectorView(matrix=self.gather(ids, dim), ids=ids)

    def stats(self) -> StoreStats:
        """Count segments, vectors and bytes."""
        self._refresh()
        return self._retrying(self._stats)

    def verify(self) -> StoreCheck:
        """Read every id and vector; set damaged segments aside.

        Texts of a segment set aside count as missing, and are embedded again. Damage that this
        store has met before, as when it was opened, is reported too.

        Raises
        ------
        StoreError
            If a damaged segment cannot be renamed.
        """
        self._refresh(afresh=True)
        segments = vectors = 0
        for segment in list(self._segments.values()):
            try:
                segment.read(np.arange(len(segment)), lambda part, chunk: None)
            except VanishedSegmentError:
                continue
            except DamagedSegmentError as error:
                self._set_aside(segment.name, str(error))
            else:
                segments += 1
                vectors += len(segment)
        with self._lock:
            damaged = tuple(sorted(self._damaged.items()))
        return StoreCheck(segments, vectors, damaged)

    def compact(self, *, garbage_age: float = 3600.0) -> StoreStats:
        """Merge small segments, drop vectors held twice, and remove what nobody reads.

        Safe beside readers and writers: a segment is removed once its vectors are committed
        elsewhere.

        Parameters
        ----------
        garbage_age
            In seconds: what killed writers left is removed when it was written longer ago, and a
            damaged segment when it was set aside longer ago.

        Returns
        -------
        StoreStats
            Of the store as it is then.

        Raises
        ------
        StoreError
            If segments cannot be read or written.
        """
        self._refresh()
        rows = max(1, _SEGMENT_BYTES // (4 * self.dim))
        try:
            self._retrying(lambda: self._merge(rows))
            remove_garbage(self.folder, garbage_age)
        except OSError as error:
            raise self._failure("compacted", error) from error
        return self.stats()

    def _claim(self, fingerprint: str) -> None:
        """Make the folder and its description, or compare with the one there."""
        wanted = describe(fingerprint, self.dim, self.vector_dtype)
        try:
            found = claim(self.folder, wanted)
        except OSError as error:
            raise self._failure("opened", error) from error
        if found != wanted:
            raise StoreError(
                f"The store {self.folder} holds {found}: expected {wanted}.",
                "Name another folder for the store, or remove this one.",
            )

    def _refresh(self, *, afresh: bool = False) -> None:
        """Open segments that have appeared, forget those that are gone; all anew if `afresh`."""
        with self._lock:
            segments = {} if afresh else self._segments
            for _ in range(_ATTEMPTS):
                segments, vanished = self._open_listed(segments)
                if not vanished:
                    break
            self._segments = segments

    def _open_listed(self, known: dict[str, Segment]) -> tuple[dict[str, Segment], bool]:
        """Open the listed segments that are not known; say whether one vanished meanwhile.

        A vanished segment was compacted: its vectors are in one listed next time.
        """
        segments: dict[str, Segment] = {}
        vanished = False
        try:
            for name in list_segments(self.folder):
                try:
                    segments[name] = known[name] if name in known else self._open_segment(name)
                except VanishedSegmentError:
                    vanished = True
                except DamagedSegmentError as error:
                    self._set_aside(name, str(error))
        except OSError as error:
            raise self._failure("read", error) from error
        return segments, vanished

    def _open_segment(self, name: str) -> Segment:
        segment = open_segment(self.folder, name)
        if (segment.dim, segment.dtype) != (self.dim, self.vector_dtype):
            raise DamagedSegmentError(f"{name} holds other vectors than its store")
        return segment

    def _set_aside(self, name: str, reason: str) -> None:
        with self._lock:
            self._segments = {
                other: segment for other, segment in self._segments.items() if other != name
            }
            self._damaged[name] = reason
            try:
                set_aside(self.folder, name)
            except OSError as error:
                raise StoreError(
                    f"The segment {name} of {self.folder} is damaged ({reason}) and cannot be set "
                    f"aside: {error.strerror}."
                ) from error
        _logger.warning("The segment %s is damaged and was set aside: %s.", name, reason)

    def _retrying(self, action: Callable[[], Result]) -> Result:
        """Run `action` again when a segment was compacted away under it, or set aside."""
        vanished = 0
        while vanished < _ATTEMPTS:
            try:
                return action()
            except DamagedSegmentError:
                continue  # it was set aside, so the next attempt has one less
            except VanishedSegmentError:
                vanished += 1
                self._refresh(afresh=True)
        raise StoreError(
            f"Segments of {self.folder} vanish while they are read.",
            "Is something else than fastscore removing files there?",
        )

    def _stats(self) -> StoreStats:
        """Count what is open now; a segment that is gone counts as vanished."""
        segments = list(self._segments.values())
        try:
            files = os.listdir(self.folder)
        except OSError as error:
            raise self._failure("read", error) from error
        try:
            sizes = [
                (self.folder / (segment.name + suffix)).stat().st_size
                for segment in segments
                for suffix in (IDS_SUFFIX, INDEX_SUFFIX)
            ]
        except FileNotFoundError as error:
            raise VanishedSegmentError(str(error.filename)) from error
        except OSError as error:
            raise self._failure("read", error) from error
        damaged = {name.split(".")[0] for name in files if name.endswith(DAMAGED_SUFFIX)}
        return StoreStats(
            self.folder, len(segments), sum(map(len, segments)), sum(sizes), len(damaged)
        )

    def _gather(self, wanted: SortedIds, rows: npt.NDArray[np.intp], width: int) -> Vectors:
        """Gather distinct ids, each into its row."""
        vectors = np.empty((len(rows), width), np.float32)
        absent = np.ones(len(rows), bool)
        segments = list(self._segments.values())
        looked_up = len(wanted.first) * len(segments)
        with ThreadPoolExecutor(max(1, min(available_processors(), len(segments)))) as pool:
            apply = pool.map if looked_up > _IDS_PER_THREAD else map
            found = list(apply(lambda segment: matches(wanted, segment.ids), segments))
        for segment, (in_wanted, in_segment) in zip(segments, found, strict=True):
            first = absent[in_wanted]
            in_wanted, in_segment = in_wanted[first], in_segment[first]
            absent[in_wanted] = False
            self._read(segment, in_segment, vectors, rows[in_wanted])
        if absent.any():
            raise StoreError(
                f"{absent.sum()} of {len(rows)} texts have no vector in {self.folder}.",
                "Embed them first."
                if not self._damaged
                else "Embed them again: damaged segments were set aside.",
            )
        return vectors

    def _merge(self, rows: int) -> None:
        """Rewrite small segments and those with repeats as fewer, then remove them."""
        segments = list(self._segments.values())
        for group in merge_groups(segments, first_occurrences(segments), rows):
            ids = np.concatenate([segment.ids.rows()[keep] for segment, keep in group])
            vectors = np.empty((len(ids), self.dim), np.float32)
            at = 0
            for segment, keep in group:
                positions = np.flatnonzero(keep)
                self._read(segment, positions, vectors, at + np.arange(len(positions)))
                at += len(positions)
            if len(ids):
                merged, order, _ = distinct_ids(ids)
                write_segment(self.folder, merged, vectors, order, self.vector_dtype)
            for segment, _ in group:
                remove_segment(self.folder, segment.name)

    def _read(
        self,
        segment: Segment,
        positions: npt.NDArray[np.intp],
        vectors: Vectors,
        rows: npt.NDArray[np.intp],
    ) -> None:
        """Read checked vectors, cut to width, into rows; a damaged segment is set aside."""

        def put(part: slice, chunk: Vectors) -> None:
            vectors[rows[part]] = truncate(chunk, vectors.shape[1])

        try:
            segment.read(positions, put)
        except DamagedSegmentError as error:
            self._set_aside(segment.name, str(error))
            raise

    def _failure(self, verb: str, error: OSError) -> StoreError:
        reason = error.strerror or str(error)
        return StoreError(
            f"The vector store {self.folder} cannot be {verb}: {reason}.",
            "Free space there, mend its permissions, or name another folder for it.",
        )
