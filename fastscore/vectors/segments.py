"""Immutable segments of a vector store: a FAISS flat index and its sorted text ids.

A segment ``name`` is two files. ``name.faiss`` holds the vectors in the order of their ids, as
FAISS writes a flat index: at the file's end. ``name.ids`` holds a header line and the ids, with a
checksum of every vector; its arrival by rename commits the segment, and an index without it is
garbage. Every vector read is compared with its checksum, so damage never reaches a score.
"""

import contextlib
import json
import logging
import os
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from fastscore_jit.system import open_descriptor, open_private, sync_folder
from fastscore_kernels import checksum_rows, index_ids, read_rows
from fastscore_kernels.ids import IdIndex

from fastscore.errors import StoreError
from fastscore.files import committed
from fastscore.settings.extras import load
from fastscore.settings.options import TRUST_VARIABLE, available_processors
from fastscore.vectors.view import SortedIds, truncate

SEGMENT_FORMAT = 2
INDEX_SUFFIX = ".faiss"
IDS_SUFFIX = ".ids"
DAMAGED_SUFFIX = ".damaged"

_HEADER_BYTES = 512
_WORD = np.dtype("<u8")
_DTYPE = "fp32"
_ITEM_BYTES = 4
_ROWS_PER_CHUNK = 1024
_CHUNKS_PER_THREAD = 4

Result = TypeVar("Result")


class DamagedSegmentError(Exception):
    """A segment whose files are not what was written."""


class VanishedSegmentError(Exception):
    """A segment that was listed and is gone: compacted by another process."""


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


def list_segments(folder: Path) -> list[str]:
    """Return the names of committed segments, sorted."""
    return sorted(
        entry.removesuffix(IDS_SUFFIX)
        for entry in os.listdir(folder)
        if entry.startswith("seg-") and entry.endswith(IDS_SUFFIX)
    )


def write_segment(
    folder: Path, ids: SortedIds, vectors: npt.NDArray[np.float32], positions: npt.NDArray[np.intp]
) -> str:
    """Write and commit a segment."""
    faiss: Any = load("faiss", "A store of vectors")
    # unique over processes; names sort by age
    name = f"seg-{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(4)}"
    index, checksums = _filled_index(vectors, positions)
    index_path = folder / (name + INDEX_SUFFIX)
    try:
        with committed(index_path, private=True) as file:
            writer = faiss.PyCallbackIOWriter(file.write)
            faiss.write_index(index, writer)
            del writer  # hands over what it still buffers
            index_bytes = file.tell()
        payload = np.concatenate((ids.first, ids.second, checksums)).astype(_WORD, copy=False)
        header = {
            "format": SEGMENT_FORMAT,
            "vectors": len(positions),
            "dim": vectors.shape[1],
            "dtype": _DTYPE,
            "index_bytes": index_bytes,
            "ids_crc32": zlib.crc32(payload.data),
        }
        with committed(folder / (name + IDS_SUFFIX), private=True) as file:
            file.write(json.dumps(header).encode().ljust(_HEADER_BYTES - 1) + b"\n")
            file.write(payload.data)
    except BaseException:
        with contextlib.suppress(OSError):
            index_path.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return name


@dataclass(slots=True)
class Segment:
    """An open segment; its ids are mapped, its vectors are on disk."""

    name: str
    dim: int
    ids: SortedIds  # n ids; vector i is the i-th's
    checksums: npt.NDArray[np.uint64]  # of each vector's bytes, uint64 (n,)
    _index_path: Path
    _index_bytes: int

    def __len__(self) -> int:
        return len(self.checksums)

    def read(
        self,
        positions: npt.NDArray[np.intp],
        out: npt.NDArray[np.float32],
        rows: npt.NDArray[np.intp],
    ) -> None:
        """Read vectors, each one checked."""
        as_stored = out.shape[1] == self.dim and out.flags.c_contiguous

        def copy(descriptor: int, part: slice) -> None:
            if as_stored:
                self._fetch(descriptor, positions[part], out.view(np.uint8), rows[part])
            else:
                raw = self._fetch_in_order(descriptor, positions[part])
                out[rows[part]] = truncate(raw.view(np.float32), out.shape[1])

        self._each_chunk(len(positions), copy)

    def check(self) -> None:
        """Compare every vector with its checksum, and have FAISS open the index."""
        every = np.arange(len(self))
        self._each_chunk(len(self), lambda file, part: self._fetch_in_order(file, every[part]))
        _check_index(self._index_path, len(self), self.dim)

    def _each_chunk(self, rows: int, work: Callable[[int, slice], object]) -> None:
        """Call `work` with the open index and each chunk of so many rows, on several threads."""
        try:
            descriptor = open_trusted(self._index_path)
        except FileNotFoundError as error:
            raise VanishedSegmentError(self.name) from error
        starts = range(0, rows, _ROWS_PER_CHUNK)
        chunks = [slice(start, min(start + _ROWS_PER_CHUNK, rows)) for start in starts]
        try:
            threads = min(available_processors(), len(chunks) // _CHUNKS_PER_THREAD)
            if threads <= 1:  # a pool costs more than it saves
                for chunk in chunks:
                    work(descriptor, chunk)
            else:
                with ThreadPoolExecutor(threads) as pool:
                    list(pool.map(partial(work, descriptor), chunks))
        finally:
            os.close(descriptor)

    def _fetch_in_order(
        self, descriptor: int, positions: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.uint8]:
        out = np.empty((len(positions), self.dim * _ITEM_BYTES), np.uint8)
        self._fetch(descriptor, positions, out, np.arange(len(positions)))
        return out

    def _fetch(
        self,
        descriptor: int,
        positions: npt.NDArray[np.intp],
        out: npt.NDArray[np.uint8],
        rows: npt.NDArray[np.intp],
    ) -> None:
        """Read vectors as they are stored into rows of `out`, each one checked."""
        offset = self._index_bytes - len(self) * out.shape[1]
        if read_rows(descriptor, offset, positions, self.checksums, out, rows) < len(positions):
            raise DamagedSegmentError(f"{self._index_path}: a vector is not what was written")


def open_segment(folder: Path, name: str) -> Segment:
    """Open a segment: sizes, header and ids are checked, vectors when they are read."""
    path = folder / (name + IDS_SUFFIX)
    try:
        with os.fdopen(open_trusted(path), "rb") as file:
            header = _read_header(file.read(_HEADER_BYTES), path)
            payload: Any = _EMPTY
            if header[0]:
                payload = np.memmap(file, _WORD, mode="r", offset=_HEADER_BYTES)
    except FileNotFoundError as error:
        raise VanishedSegmentError(name) from error
    except ValueError as error:
        raise DamagedSegmentError(f"{path}: {error}") from error
    count, dim, index_bytes, crc32 = header
    if len(payload) != 3 * count:
        raise DamagedSegmentError(f"{path}: {len(payload)} words of ids, expected {3 * count}")
    words = np.asarray(payload)
    if zlib.crc32(words.data) != crc32:
        raise DamagedSegmentError(f"{path}: the ids differ from their checksum")
    index_path = folder / (name + INDEX_SUFFIX)
    try:
        size = index_path.stat().st_size
    except FileNotFoundError:
        if not path.exists():
            raise VanishedSegmentError(name) from None
        raise DamagedSegmentError(f"{index_path} is missing") from None
    if size != index_bytes:
        raise DamagedSegmentError(f"{index_path}: {size} bytes, expected {index_bytes}")
    ids = SortedIds(words[:count], words[count : 2 * count])
    return Segment(name, dim, ids, words[2 * count :], index_path, index_bytes)


def remove_segment(folder: Path, name: str) -> None:
    """Remove a segment's files, the ids first, so that no reader sees half of it."""
    for suffix in (IDS_SUFFIX, INDEX_SUFFIX):
        (folder / (name + suffix)).unlink(missing_ok=True)


def set_aside(folder: Path, name: str) -> None:
    """Rename a damaged segment's files, so that no reader lists it, until they are garbage."""
    for suffix in (IDS_SUFFIX, INDEX_SUFFIX):
        path = folder / (name + suffix)
        aside = path.with_name(path.name + DAMAGED_SUFFIX)
        with contextlib.suppress(FileNotFoundError):
            path.rename(aside)
            os.utime(aside)  # its age counts from here


_EMPTY = np.empty(0, _WORD)


def _read_header(raw: bytes, path: Path) -> tuple[int, int, int, int]:
    """Return vectors, dim, index bytes and CRC-32 of the ids."""
    try:
        header = json.loads(raw)
        kind = len(raw), header["format"], header["dtype"]
        if kind != (_HEADER_BYTES, SEGMENT_FORMAT, _DTYPE):
            raise ValueError
        count, dim = int(header["vectors"]), int(header["dim"])
        return count, dim, int(header["index_bytes"]), int(header["ids_crc32"])
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedSegmentError(f"{path}: the header cannot be read") from error


def _filled_index(
    vectors: npt.NDArray[np.float32], positions: npt.NDArray[np.intp]
) -> tuple[Any, npt.NDArray[np.uint64]]:
    """Make an index of some rows of the vectors; return it and each row's checksum."""
    faiss: Any = load("faiss", "A store of vectors")
    count, dim = len(positions), vectors.shape[1]
    index = faiss.IndexFlatIP(dim)
    index.codes.resize(count * dim * _ITEM_BYTES)
    index.ntotal = count  # filled in place below, which saves a copy
    codes = np.empty((0, dim * _ITEM_BYTES), np.uint8)
    if count:
        flat: npt.NDArray[np.uint8] = faiss.rev_swig_ptr(index.codes.data(), index.codes.size())
        codes = flat.reshape(count, dim * _ITEM_BYTES)
    checksums = np.empty(count, np.uint64)
    # Chunks stay in the core's cache from the gather to the checksum.
    for start in range(0, count, _ROWS_PER_CHUNK):
        chunk = slice(start, min(start + _ROWS_PER_CHUNK, count))
        rows = codes[chunk].view(np.float32)
        np.take(vectors, positions[chunk], axis=0, out=rows, mode="clip")
        checksums[chunk] = checksum_rows(codes[chunk])
    return index, checksums


def _check_index(path: Path, count: int, dim: int) -> None:
    """Have FAISS open an index, its vectors only mapped, and compare it with what its ids say."""
    faiss: Any = load("faiss", "A store of vectors")

    try:
        # The plain IO_FLAG_MMAP would read the whole file.
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        if not path.exists():
            raise VanishedSegmentError(path.stem) from error
        raise DamagedSegmentError(f"{path}: FAISS cannot read it") from error
    found = isinstance(index, faiss.IndexFlat) and (index.ntotal, index.d, index.codes.size())
    if found != (count, dim, count * dim * _ITEM_BYTES):
        raise DamagedSegmentError(f"{path}: not the index that its ids describe")


_ATTEMPTS = 8

_logger = logging.getLogger("fastscore.vectors")


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a store holds."""

    folder: Path  # where it lies
    segments: int  # number of segments
    # vectors in them; texts embedded by two processes at once count twice until compacted
    vectors: int
    bytes: int  # size of the segments' files
    damaged: int  # segments set aside as damaged


class OpenSegments:
    """The segments of one folder; one with vectors of another ``dim`` counts as damaged."""

    def __init__(self, folder: Path, dim: int) -> None:
        self.folder = folder
        self._dim = dim
        self._segments: dict[str, Segment] = {}
        self._damaged: dict[str, str] = {}
        self._index = index_ids([])
        # Held while `_segments` is replaced; the mapping itself is never changed in place.
        self._lock = threading.RLock()

    def now(self) -> list[Segment]:
        """Return the open segments, by name."""
        return list(self._segments.values())

    def indexed(self) -> tuple[list[Segment], IdIndex]:
        """Return the open segments, and an index of their ids in this order."""
        with self._lock:
            segments = self.now()
            self._index = index_ids([segment.ids for segment in segments], self._index)
            return segments, self._index

    def damaged(self) -> tuple[tuple[str, str], ...]:
        """Return the segments that were set aside here, by name, and what was wrong with each."""
        with self._lock:
            return tuple(sorted(self._damaged.items()))

    def refresh(self, *, afresh: bool = False) -> None:
        """Open segments that have appeared, forget those that are gone; all anew if `afresh`."""
        with self._lock:
            segments = {} if afresh else self._segments
            for _ in range(_ATTEMPTS):
                segments, vanished = self._open_listed(segments)
                if not vanished:
                    break
            self._segments = segments

    @contextlib.contextmanager
    def using(self, segment: Segment) -> Iterator[None]:
        """Set a segment aside if the block finds it damaged; the error goes on."""
        try:
            yield
        except DamagedSegmentError as error:
            self._set_aside(segment.name, str(error))
            raise

    def retrying(self, action: Callable[[], Result]) -> Result:
        """Run `action` again when a segment was compacted away under it, or set aside."""
        vanished = 0
        while vanished < _ATTEMPTS:
            try:
                return action()
            except DamagedSegmentError:
                continue  # it was set aside, so the next attempt has one less
            except VanishedSegmentError:
                vanished += 1
                self.refresh(afresh=True)
        raise StoreError(
            f"Segments of {self.folder} vanish while they are read.",
            "Is something else than fastscore removing files there?",
        )

    def count(self) -> StoreStats:
        """Count segments, vectors, bytes, and segments set aside, by other processes too."""
        segments = self.now()
        files = os.listdir(self.folder)
        try:
            sizes = [
                (self.folder / (segment.name + suffix)).stat().st_size
                for segment in segments
                for suffix in (IDS_SUFFIX, INDEX_SUFFIX)
            ]
        except FileNotFoundError as error:
            raise VanishedSegmentError(str(error.filename)) from error
        damaged = {name.split(".")[0] for name in files if name.endswith(DAMAGED_SUFFIX)}
        return StoreStats(
            self.folder, len(segments), sum(map(len, segments)), sum(sizes), len(damaged)
        )

    def _open_listed(self, known: dict[str, Segment]) -> tuple[dict[str, Segment], bool]:
        """Open the listed segments that are not known; say whether one was compacted meanwhile."""
        segments: dict[str, Segment] = {}
        vanished = False
        for name in list_segments(self.folder):
            try:
                segments[name] = known[name] if name in known else self._open(name)
            except VanishedSegmentError:
                vanished = True
            except DamagedSegmentError as error:
                self._set_aside(name, str(error))
        return segments, vanished

    def _open(self, name: str) -> Segment:
        segment = open_segment(self.folder, name)
        if segment.dim != self._dim:
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
