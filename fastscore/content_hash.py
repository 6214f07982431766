"""Content hash of files: XXH3, 128 bits, as ``xxhsum -H2`` prints it.

It detects changed and damaged content at the speed of memory. It is not cryptographic.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import xxhash

HASH_BLOCK_BYTES = 1 << 20
"""Larger blocks are newly allocated each time, which is twice as slow."""

ContentHash = xxhash.xxh3_128


class BlockHash:
    """The hash of a part of a file, computed from the hashes of its blocks of `HASH_BLOCK_BYTES`.

    It can be computed from the hashes of the file's whole blocks and the part's two ends.

    Parameters
    ----------
    start
        The byte of the file at which the part starts.
    """

    def __init__(self, start: int = 0) -> None:
        self._at = self._opened = start
        self._open = ContentHash()
        self.blocks: list[bytes] = []

    def update(self, data: bytes | memoryview) -> None:
        """Add the bytes that follow."""
        left = memoryview(data)
        while left:
            part = left[: HASH_BLOCK_BYTES - self._at % HASH_BLOCK_BYTES]
            left = left[len(part) :]
            self._open.update(part)
            self._at += len(part)
            if self._at % HASH_BLOCK_BYTES == 0:
                self.blocks.append(self._open.digest())
                self._open, self._opened = ContentHash(), self._at

    def add_blocks(self, blocks: Sequence[bytes]) -> None:
        """Add whole blocks by their hashes, at the end of a block."""
        self.blocks.extend(blocks)
        self._at = self._opened = self._at + HASH_BLOCK_BYTES * len(blocks)

    def digest(self) -> bytes:
        """Return the hash."""
        rest = [self._open.digest()] if self._at > self._opened else []
        return ContentHash(b"".join((*self.blocks, *rest))).digest()


def hash_bytes(data: bytes | memoryview) -> str:
    """Return the hash of bytes, hexadecimal."""
    return ContentHash(data).hexdigest()


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, hexadecimal."""
    # one small buffer that stays in the cache: separate blocks take twice the processor time
    with path.open("rb", buffering=0) as stream:
        return hashlib.file_digest(stream, ContentHash).hexdigest()


def whole_blocks(start: int, stop: int) -> slice:
    """Return the whole blocks of a file between two of its bytes."""
    first = -(-start // HASH_BLOCK_BYTES)
    return slice(first, max(first, stop // HASH_BLOCK_BYTES))


OpenFile = Callable[[str, int], io.FileIO]
"""Opens a file, of which nothing after a given byte is read."""


def _plain(path: str, stop: int) -> io.FileIO:
    return open(path, "rb", buffering=0)


def hash_part(
    path: str, start: int, stop: int, blocks: Sequence[bytes] = (), open_file: OpenFile = _plain
) -> bytes:
    """Return the hash (`BlockHash`) of a file's bytes from ``start`` to ``stop``."""
    digest = BlockHash(start)
    if blocks:
        first = whole_blocks(start, stop).start
        for block in _blocks(path, start, first * HASH_BLOCK_BYTES, open_file):
            digest.update(block)
        digest.add_blocks(blocks)
        start = (first + len(blocks)) * HASH_BLOCK_BYTES
    for block in _blocks(path, start, stop, open_file):
        digest.update(block)
    return digest.digest()


def _blocks(path: str, start: int, stop: int, open_file: OpenFile) -> Iterator[bytes]:
    if start == stop:
        return
    with open_file(path, stop) as stream:
        stream.seek(start)
        while block := stream.read(min(stop - start, HASH_BLOCK_BYTES)):
            yield block
            start += len(block)
