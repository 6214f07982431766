"""The hash by which files are known again: XXH3, 128 bits, as ``xxhsum -H2`` prints it.

It tells changed and damaged content, at the speed of memory; it is no defence against forgery.
"""

import sys
from pathlib import Path

import xxhash

# larger blocks are fresh memory each time: twice as slow
_BLOCK_BYTES = 1 << 20

ContentHash = xxhash.xxh3_128


def hash_bytes(data: bytes) -> str:
    """Return the hash of bytes, hexadecimal."""
    return ContentHash(data).hexdigest()


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, hexadecimal.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    return hash_part(path, 0, None).hex()


def hash_part(path: Path, start: int, stop: int | None) -> bytes:
    """Return the hash of a file's bytes from ``start`` to ``stop``, None for its end.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    digest = ContentHash()
    left = sys.maxsize if stop is None else stop - start
    with path.open("rb", buffering=0) as stream:
        stream.seek(start)
        while block := stream.read(min(left, _BLOCK_BYTES)):
            digest.update(block)
            left -= len(block)
    return digest.digest()
