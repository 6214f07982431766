"""Immutable segments of a vector store: a FAISS flat index and its sorted text ids.

A segment ``name`` is two files. ``name.faiss`` holds the vectors in the order of their ids, as
FAISS writes a flat index. ``name.ids`` holds a header line and the ids, with a checksum of every
vector; its arrival by rename commits the segment, and an index without it is garbage. Every
vector read is compared with its checksum, so damage never reaches a score.
"""

import contextlib
import importlib
import json
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from fastscore_kernels import text_hash128

from fastscore.processors import available_processors
from fastscore.vectors.text_ids import SortedIds

SEGMENT_FORMAT = 2
INDEX_SUFFIX = ".faiss"
IDS_SUFFIX = ".ids"
TEMPORARY_SUFFIX = ".tmp"
DAMAGED_SUFFIX = ".damaged"

_HEADER_BYTES = 512
_WORD = np.dtype("<u8")
_CODE_BYTES = {"fp32": 4, "fp16": 2}
_ROWS_PER_CHUNK = 1024
_CHUNKS_PER_THREAD = 4


class DamagedSegmentError(Exception):
    """A segment whose files are not what was written."""


class VanishedSegmentError(Exception):
    """A segment that was listed and is gone: compacted by another process."""


@lru_cache(maxsize=8)
def _weights(words: int) -> npt.NDArray[np.uint64]:
    """Odd pseudo-random factors, uint64 (2, words): the same on every platform."""
    drawn = text_hash128([str(word) for word in range(words)])
    return np.ascontiguousarray(drawn.T) | np.uint64(1)


def row_checksums(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
    """Checksum each row of bytes.

    The sum over a row's 64-bit words, each times an odd factor of its place, and of their upper
    halves times another, modulo 2^64: any change within one word shows, others but for a chance
    of about 2^-64.

    Parameters
    ----------
    codes : uint8 (n, bytes)

    Returns
    -------
    uint64 (n,)
    """
    if codes.shape[1] % _WORD.itemsize or not codes.flags.c_contiguous:
        padding = -codes.shape[1] % _WORD.itemsize
        codes = np.pad(codes, ((0, 0), (0, padding)))
    words = codes.view(_WORD)
    whole, upper = _weights(words.shape[1])
    sums: npt.NDArray[np.uint64] = np.einsum("ij,j->i", words, whole)
    sums += np.einsum("ij,j->i", words >> np.uint64(32), upper)
    return sums


def segment_name() -> str:
    """Return a new name, unique over processes; names sort by age."""
    return f"seg-{time.time_ns():020d}-{os.getpid()}-{secrets.token_hex(4)}"


def list_segments(folder: Path) -> list[str]:
    """Return the names of committed segments, sorted."""
    return sorted(
        entry.removesuffix(IDS_SUFFIX)
        for entry in os.listdir(folder)
        if entry.startswith("seg-") and entry.endswith(IDS_SUFFIX)
    )


def write_segment(
    folder: Path,
    ids: SortedIds,
    vectors: npt.NDArray[np.float32],
    positions: npt.NDArray[np.intp],
    dtype: str,
) -> str:
    """Write and commit a segment.

    Parameters
    ----------
    folder
        The store's folder.
    ids
        n ids.
    vectors : float32 (m, dim)
        Vectors in any order.
    positions : intp (n,)
        The row of `vectors` that each id takes.
    dtype
        ``"fp32"`` or ``"fp16"``.

    Returns
    -------
    str
        The segment's name.

    Raises
    ------
    OSError
        If a file could not be written; no part of the segment is visible then.
    """
    faiss: Any = importlib.import_module("faiss")
    name = segment_name()
    count, dim = len(positions), vectors.shape[1]
    index = _new_index(dim, dtype)
    index.codes.resize(count * dim * _CODE_BYTES[dtype])
    if dtype == "fp32":
        index.ntotal = count  # filled in place below, which saves a copy
    else:
        index.codes.resize(0)  # keeps the memory: FAISS has no reserve
    checksums = np.empty(count, np.uint64)
    # Chunks stay in the core's cache from the gather to the checksum.
    for start in range(0, count, _ROWS_PER_CHUNK):
        chunk = slice(start, min(start + _ROWS_PER_CHUNK, count))
        if dtype == "fp32":
            rows = _codes(index, dtype)[chunk].view(np.float32)
            np.take(vectors, positions[chunk], axis=0, out=rows, mode="clip")
        else:
            index.add(vectors[positions[chunk]])
        checksums[chunk] = row_checksums(_codes(index, dtype)[chunk])
    index_path = folder / (name + INDEX_SUFFIX)
    try:
        with committed(index_path) as file:
            writer = faiss.PyCallbackIOWriter(file.write)
            faiss.write_index(index, writer)
            del writer  # hands over what it still buffers
            index_bytes = file.tell()
        payload = np.concatenate((ids.first, ids.second, checksums)).astype(_WORD, copy=False)
        header = {
            "format": SEGMENT_FORMAT,
            "vectors": count,
            "dim": dim,
            "dtype": dtype,
            "index_bytes": index_bytes,
            "ids_crc32": zlib.crc32(payload.data),
        }
        with committed(folder / (name + IDS_SUFFIX)) as file:
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
    """An open segment; files are mapped, not read.

    Attributes
    ----------
    name
        Its name.
    dim, dtype
        Width of the vectors, and ``"fp32"`` or ``"fp16"``.
    ids
        n ids; vector i is the i-th's.
    checksums : uint64 (n,)
        Of each vector's bytes.
    """

    name: str
    dim: int
    dtype: str
    ids: SortedIds
    checksums: npt.NDArray[np.uint64]
    _index_path: Path

    def __len__(self) -> int:
        return len(self.checksums)

    def read(
        self,
        positions: npt.NDArray[np.intp],
        put: Callable[[slice, npt.NDArray[np.float32]], object],
    ) -> None:
        """Read vectors in chunks, each vector checked.

        Parameters
        ----------
        positions : intp (m,)
            Rows of the segment.
        put
            Called with each part of `positions` and its vectors, float32 (rows, dim), which the
            next chunk overwrites; from several threads at once, in any order.

        Raises
        ------
        DamagedSegmentError
            If a vector is not what was written.
        VanishedSegmentError
            If the segment was removed before it was read.
        """
        # mapped for this reading only: what stays mapped would count as resident memory
        _alive, codes = _map_index(self._index_path, len(self), self.dim, self.dtype)
        starts = range(0, len(positions), _ROWS_PER_CHUNK)

        def copy(some_starts: range) -> None:
            buffer = np.empty((min(len(positions), _ROWS_PER_CHUNK), codes.shape[1]), np.uint8)
            for start in some_starts:
                part = slice(start, start + _ROWS_PER_CHUNK)
                some = positions[part]
                raw = np.take(codes, some, axis=0, out=buffer[: len(some)], mode="clip")
                if not np.array_equal(row_checksums(raw), self.checksums[some]):
                    raise DamagedSegmentError(
                        f"{self._index_path}: a vector is not what was written"
                    )
                if self.dtype == "fp16":
                    put(part, raw.view("<f2").astype(np.float32))
                else:
                    put(part, raw.view("<f4"))

        threads = min(available_processors(), len(starts) // _CHUNKS_PER_THREAD)
        if threads <= 1:
            copy(starts)
            return
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(copy, (starts[first::threads] for first in range(threads))):
                pass


def open_segment(folder: Path, name: str) -> Segment:
    """Open a segment: sizes, header and ids are checked, vectors when they are read.

    Raises
    ------
    DamagedSegmentError
        If a file is missing, cut, or differs from its checksum.
    VanishedSegmentError
        If the segment is gone.
    """
    path = folder / (name + IDS_SUFFIX)
    try:
        with path.open("rb") as file:
            header = _read_header(file.read(_HEADER_BYTES), path)
        payload = np.memmap(path, _WORD, mode="r", offset=_HEADER_BYTES) if header[0] else _EMPTY
    except FileNotFoundError as error:
        raise VanishedSegmentError(name) from error
    except ValueError as error:
        raise DamagedSegmentError(f"{path}: {error}") from error
    count, dim, dtype, index_bytes, crc32 = header
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
    return Segment(name, dim, dtype, ids, words[2 * count :], index_path)


def remove_segment(folder: Path, name: str) -> None:
    """Remove a segment's files, the ids first, so that no reader sees half of it."""
    for suffix in (IDS_SUFFIX, INDEX_SUFFIX):
        (folder / (name + suffix)).unlink(missing_ok=True)


def set_aside(folder: Path, name: str) -> None:
    """Rename a damaged segment's files so that no reader lists it.

    Its files are kept until `compaction.remove_garbage` finds them old.
    """
    for suffix in (IDS_SUFFIX, INDEX_SUFFIX):
        path = folder / (name + suffix)
        aside = path.with_name(path.name + DAMAGED_SUFFIX)
        with contextlib.suppress(FileNotFoundError):
            path.rename(aside)
            os.utime(aside)  # its age counts from here


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_EMPTY = np.empty(0, _WORD)


def _read_header(raw: bytes, path: Path) -> tuple[int, int, str, int, int]:
    """Return vectors, dim, dtype, index bytes and CRC-32 of the ids."""
    try:
        header = json.loads(raw)
        if len(raw) != _HEADER_BYTES or header["format"] != SEGMENT_FORMAT:
            raise ValueError
        if header["dtype"] not in _CODE_BYTES:
            raise ValueError
        return (
            int(header["vectors"]),
            int(header["dim"]),
            str(header["dtype"]),
            int(header["index_bytes"]),
            int(header["ids_crc32"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedSegmentError(f"{path}: the header cannot be read") from error


def _new_index(dim: int, dtype: str) -> Any:
    faiss: Any = importlib.import_module("faiss")

    if dtype == "fp16":
        return faiss.IndexScalarQuantizer(
            dim, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
    return faiss.IndexFlatIP(dim)


def _codes(index: Any, dtype: str) -> npt.NDArray[np.uint8]:
    """View an index's vectors as bytes (n, bytes each), without a copy; keep the index alive."""
    faiss: Any = importlib.import_module("faiss")

    width = index.d * _CODE_BYTES[dtype]
    if not index.ntotal:
        return np.empty((0, width), np.uint8)
    flat: npt.NDArray[np.uint8] = faiss.rev_swig_ptr(index.codes.data(), index.codes.size())
    return flat.reshape(index.ntotal, width)


def _map_index(path: Path, count: int, dim: int, dtype: str) -> tuple[Any, npt.NDArray[np.uint8]]:
    faiss: Any = importlib.import_module("faiss")

    if not path.exists():
        raise VanishedSegmentError(path.stem)
    try:
        # The plain IO_FLAG_MMAP would read the whole file.
        index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
    except RuntimeError as error:
        if not path.exists():
            raise VanishedSegmentError(path.stem) from error
        raise DamagedSegmentError(f"{path}: FAISS cannot read it") from error
    expected = {"fp32": faiss.IndexFlat, "fp16": faiss.IndexScalarQuantizer}[dtype]
    if not isinstance(index, expected) or (index.ntotal, index.d) != (count, dim):
        raise DamagedSegmentError(f"{path}: not the index that its ids describe")
    if index.codes.size() != count * dim * _CODE_BYTES[dtype]:
        raise DamagedSegmentError(f"{path}: not the index that its ids describe")
    return index, _codes(index, dtype)


def open_new(path: Path) -> BinaryIO:
    """Open a file that must not exist yet."""
    return path.open("xb")


@contextlib.contextmanager
def committed(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path`, synced, when the block ends without error."""
    unique = f".{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    temporary = path.with_name(path.name + unique)
    try:
        with open_new(temporary) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
