"""The hash by which files are known again: XXH3, 128 bits, as ``xxhsum -H2`` prints it.

It tells changed and damaged content, at the speed of memory; it is no defence against forgery.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import xxhash

CELL_BYTES = 1 << 20
"""Larger blocks are fresh memory each time: twice as slow."""

ContentHash = xxhash.xxh3_128


class CellHash:
    """The hash of a part of a file, made of those of the cells of `CELL_BYTES` that it lies in.

    A part's hash can be had of the whole file's cells and the part's two ends.

    Parameters
    ----------
    start
        The byte of the file at which the part starts.
    """

    def __init__(self, start: int = 0) -> None:
        self._at = self._opened = start
        self._open = ContentHash()
        self.cells: list[bytes] = []

    def update(self, data: bytes | memoryview) -> None:
        """Add the bytes that follow."""
        left = memoryview(data)
        while left:
            part = left[: CELL_BYTES - self._at % CELL_BYTES]
            left = left[len(part) :]
            self._open.update(part)
            self._at += len(part)
            if self._at % CELL_BYTES == 0:
                self.cells.append(self._open.digest())
                self._open, self._opened = ContentHash(), self._at

    def add_cells(self, cells: Sequence[bytes]) -> None:
        """Add whole cells by their hashes, where the next one starts."""
        self.cells.extend(cells)
        self._at = self._opened = self._at + CELL_BYTES * len(cells)

    def digest(self) -> bytes:
        """Return the hash of what was added."""
        rest = [self._open.digest()] if self._at > self._opened else []
        return ContentHash(b"".join((*self.cells, *rest))).digest()


def hash_bytes(data: bytes | memoryview) -> str:
    """Return the hash of bytes, hexadecimal."""
    return ContentHash(data).hexdigest()


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, hexadecimal.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    digest = ContentHash()
    for block in _blocks(path, 0, sys.maxsize):
        digest.update(block)
    return digest.hexdigest()


def hash_part(path: Path, start: int, stop: int, cells: Sequence[bytes] = ()) -> bytes:
    """Return the hash (`CellHash`) of a file's bytes from ``start`` to ``stop``.

    Parameters
    ----------
    path, start, stop
        The part.
    cells
        The hashes of the file's first whole cells: those are not read.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    digest = CellHash(start)
    first, behind = -(-start // CELL_BYTES), min(stop // CELL_BYTES, len(cells))
    if first < behind:
        for block in _blocks(path, start, first * CELL_BYTES):
            digest.update(block)
        digest.add_cells(cells[first:behind])
        start = behind * CELL_BYTES
    for block in _blocks(path, start, stop):
        digest.update(block)
    return digest.digest()


def _blocks(path: Path, start: int, stop: int) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as stream:
        stream.seek(start)
        while block := stream.read(min(stop - start, CELL_BYTES)):
            yield block
            start += len(block)
