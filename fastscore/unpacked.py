"""Compressed and re-encoded files, unpacked in bounded steps.

Logs are streamed (`unpacked`). Options and published scores are read whole (`unpack`). Damage ends
a stream early and is raised after the last good bytes.
"""

import codecs
import io
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from fastscore_jit.threads import raise_if_stopped

Compression = Literal["none", "gz", "zst", "zip", "utf-16", "utf-32"]
"""Encodings of text on disk. Only ``none`` can be read from any offset. ``zip`` is a member of an
archive. UTF-16 and UTF-32 are detected inside the others, too."""

SUFFIXES: dict[str, Compression] = {".gz": "gz", ".zst": "zst"}
"""The compressions of single files."""

USUAL_RATIO = 250.0
"""Maximum ratio of unpacked to packed size of an ordinary file."""

SMALL_BYTES = 64 << 20
"""Smaller files are not checked for their ratio."""

HEAD_BYTES = 64
"""Number of bytes needed to detect UTF-16 and UTF-32."""

_STEP = 1 << 16
# small enough that the densest zstd input unpacks to some 64 MB a step
_ZST_STEP = 2 << 10
_ZST_WINDOW = 1 << 27
_NOT_UTF8 = b"\xff"
_NAMES = {"gz": "gzip", "zst": "zstd"}

Read = Callable[[int], bytes]
"""Returns at most the given number of further bytes of a file, none at its end."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Why unpacking a file ended early."""

    # the reject reason of the missing data
    reason: Literal["truncated_compression", "damaged_compression"]
    found: str  # description of the damage


class DamageError(Exception):
    """A stream that ends early or cannot be unpacked further."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(damage.found)
        self.damage = damage


class UnpackingError(ValueError):
    """A compressed file that is damaged, ends early, or becomes too large."""


def unpack(content: bytes, suffix: str) -> bytes:
    """Return the unpacked content of a compressed file."""
    parts, size = [], 0
    try:
        for part in unpacked(io.BytesIO(content).read, SUFFIXES[suffix]):
            raise_if_stopped()
            size += len(part)
            if size > SMALL_BYTES and size > USUAL_RATIO * len(content):
                raise UnpackingError(
                    f"{len(content):,} bytes unpack to {size:,} and more, expected at most "
                    f"{USUAL_RATIO:g} times as much; unpack it before, if it is what it should be"
                )
            parts.append(part)
    except DamageError as error:
        raise UnpackingError(str(error)) from error
    return b"".join(parts)


def unpacked(read: Read, compression: Compression, size: int = 1 << 20) -> Iterator[bytes]:
    """Yield the unpacked content of a file."""
    if compression == "gz":
        return _gunzip(read, size)
    if compression == "zst":
        return _unzstd(read)
    return iter(lambda: read(size), b"")


def unicode_encoding(head: bytes) -> str | None:
    """Detect UTF-16 or UTF-32 by a file's first bytes: by the mark, or by NULs between ASCII."""
    if head[:4] == codecs.BOM_UTF32_LE:
        return "utf-32-le"
    if head[:4] == codecs.BOM_UTF32_BE:
        return "utf-32-be"
    if head[:2] == codecs.BOM_UTF16_LE:
        return "utf-16-le"
    if head[:2] == codecs.BOM_UTF16_BE:
        return "utf-16-be"
    is_null = [byte == 0 for byte in head[:8]]
    even, odd = head[:HEAD_BYTES:2], head[1:HEAD_BYTES:2]
    if is_null == [False, True, True, True] * 2:
        return "utf-32-le"
    if is_null == [True, True, True, False] * 2:
        return "utf-32-be"
    if is_null[:4] == [False, True] * 2 and 0 not in even:
        return "utf-16-le"
    if is_null[:4] == [True, False] * 2 and 0 not in odd:
        return "utf-16-be"
    return None


def as_utf8(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield text as UTF-8, including a byte order mark. Other bytes are yielded unchanged.

    A lone surrogate, or half of a character at the end, becomes invalid UTF-8, so its line is a
    reject.
    """
    rest = iter(parts)
    head = b""
    damage: DamageError | None = None
    while len(head) < HEAD_BYTES:
        try:
            part = next(rest, None)
        except DamageError as error:
            part, damage = None, error
        if part is None:
            break
        head += part
    encoding = unicode_encoding(head)
    if head:
        whole = rest if encoding is None else _decoded(itertools.chain([head], rest), encoding)
        if encoding is None:
            yield head
        yield from whole
    if damage is not None:
        raise damage


def _decoded(parts: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    try:
        for part in parts:
            if text := decoder.decode(part):
                yield text.encode("utf-8", "surrogatepass")
        try:
            decoder.decode(b"", True)
        except UnicodeDecodeError:
            yield _NOT_UTF8
    except UnicodeDecodeError as error:
        damage = Damage("damaged_compression", f"the text is not {encoding.upper()} ({error})")
        raise DamageError(damage) from error


def _gunzip(read: Read, size: int) -> Iterator[bytes]:
    """Unpack the members of a gzip file; zeros after the last are padding."""
    packed = read(_STEP)
    while packed:
        member = zlib.decompressobj(wbits=31)
        try:
            while not member.eof:
                if part := member.decompress(packed, size):
                    yield part
                packed = member.unconsumed_tail or (b"" if member.eof else read(_STEP))
                if not packed and not member.eof:
                    # an empty input flushes the last block
                    if part := member.decompress(b"", size):
                        yield part
                        continue
                    raise DamageError(_truncated("gz"))
        except zlib.error as error:
            raise DamageError(_damaged("gz", error)) from error
        packed = member.unused_data.lstrip(b"\0")
        while not packed and (more := read(_STEP)):
            packed = more.lstrip(b"\0")


def _unzstd(read: Read) -> Iterator[bytes]:
    """Unpack the frames of a zstd file."""
    import zstandard

    packed = read(_STEP)
    while packed:
        frame = zstandard.ZstdDecompressor(max_window_size=_ZST_WINDOW).decompressobj()
        try:
            while not frame.eof:
                for begin in range(0, len(packed), _ZST_STEP):
                    if part := frame.decompress(packed[begin : begin + _ZST_STEP]):
                        yield part
                    if frame.eof:
                        packed = frame.unused_data + packed[begin + _ZST_STEP :]
                        break
                else:
                    packed = read(_STEP)
                    if not packed:
                        raise DamageError(_truncated("zst"))
        except zstandard.ZstdError as error:
            raise DamageError(_damaged("zst", error)) from error
        packed = packed or read(_STEP)


def _truncated(compression: Compression) -> Damage:
    return Damage("truncated_compression", f"the {_NAMES[compression]} stream ends early")


def _damaged(compression: Compression, error: Exception) -> Damage:
    name = _NAMES[compression]
    return Damage("damaged_compression", f"the {name} stream is damaged ({error})")
