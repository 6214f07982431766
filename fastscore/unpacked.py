"""Compressed files that are read whole, as options and published scores are: none is a bomb."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator

from fastscore_machine.stopping import raise_if_stopped

USUAL_RATIO = 250.0
"""A file that becomes more than so many times as large is hardly what it should be."""

SMALL_BYTES = 64 << 20
"""Below that, a ratio says little."""

_STEP = 1 << 20
# small enough that the densest zstd input unpacks to some 64 MB a step
_ZSTD_STEP = 2 << 10
_ZSTD_WINDOW = 1 << 27


class UnpackingError(ValueError):
    """A compressed file that is damaged, ends early, or becomes too large."""


def unpack(content: bytes, suffix: str) -> bytes:
    """Return what a compressed file holds.

    Parameters
    ----------
    content
        The file's bytes.
    suffix
        How it is compressed: one of `SUFFIXES`.

    Raises
    ------
    UnpackingError
        It is damaged, ends early, or becomes more than `USUAL_RATIO` times as large.
    """
    parts, size = [], 0
    try:
        for part in _UNPACKED[suffix](content):
            raise_if_stopped()
            size += len(part)
            if size > SMALL_BYTES and size > USUAL_RATIO * len(content):
                raise UnpackingError(
                    f"{len(content):,} bytes unpack to {size:,} and more, expected at most "
                    f"{USUAL_RATIO:g} times as much; unpack it before, if it is what it should be"
                )
            parts.append(part)
    except (OSError, EOFError, zlib.error) as error:
        raise UnpackingError(str(error)) from error
    return b"".join(parts)


def _gunzipped(content: bytes) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        while part := file.read(_STEP):
            yield part


def _unzstd(content: bytes) -> Iterator[bytes]:
    """Unpack every frame: programs that use several cores write several."""
    import zstandard

    at = 0
    while at < len(content):
        frame = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj()
        while not frame.eof:
            packed = content[at : at + _ZSTD_STEP]
            if not packed:
                raise EOFError("the zstd stream ends early")
            try:
                yield frame.decompress(packed)
            except zstandard.ZstdError as error:
                raise UnpackingError(str(error)) from error
            at += len(packed) - len(frame.unused_data)


_UNPACKED: dict[str, Callable[[bytes], Iterator[bytes]]] = {".gz": _gunzipped, ".zst": _unzstd}
SUFFIXES = frozenset(_UNPACKED)
