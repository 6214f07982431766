"""Files: their names, writing them atomically, their content hash, and unpacking them.

Scope: file systems on which ``rename`` within a folder is atomic. A file is written under a
temporary name beside its final one, flushed to the disk and renamed. After a crash there is the old
file or the new one, and perhaps a temporary file, whose name is never reused.

The content hash is XXH3, 128 bits, as ``xxhsum -H2`` prints it. It detects changed and damaged
content at the speed of memory. It is not cryptographic.

Logs are unpacked as a stream in bounded steps (`unpacked`), options and published scores whole
(`unpack`). Damage ends a stream early and is raised after the last good bytes.
"""

import codecs
import contextlib
import errno
import hashlib
import io
import itertools
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO, Literal

import xxhash
from fastscore_jit.system import replace_file, sync_file

from fastscore.errors import RunConflictError, RunError, UsageError


def cache_root() -> Path:
    """Return the cache folder: ``$FASTSCORE_CACHE``, else the platform's cache folder.

    The folder is not created here.
    """
    named = os.environ.get("FASTSCORE_CACHE")
    if named:
        check_path(named)
        return Path(named).expanduser()
    from fastscore_jit.objects import user_cache_folder

    try:
        return user_cache_folder()
    except RuntimeError as error:
        raise UsageError(
            "The home folder cannot be determined.", "Set FASTSCORE_CACHE to a folder."
        ) from error


def stays_below(path: str) -> bool:
    """Return whether a relative path stays below its folder, on every system."""
    parts = path.replace("\\", "/").split("/")
    return bool(parts[0]) and ":" not in parts[0] and ".." not in parts


def is_utf8(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is UTF-8, as required in tables, manifests and messages."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def shown_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path for messages, with bytes that are not UTF-8 as ``\xe9``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def check_path(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is not UTF-8."""
    if not is_utf8(path):
        raise UsageError(
            f"The name '{shown_path(path)}' is not UTF-8: no table or message can hold it.",
            "Rename the file or folder, or name a link to it.",
        )
    if "\0" in os.fspath(path):
        raise UsageError(f"The name {os.fspath(path)!r} has a NUL, which no file's name has.")


def free_names(name: str) -> Iterator[str]:
    """Return names of outputs to propose, NAME, NAME2 and so on, at which nothing is yet."""
    names = (f"{name}{number if number > 1 else ''}" for number in itertools.count(1))
    return (each for each in names if not os.path.exists(each))


PAGE_MARK = '<meta name="generator" content="fastscore">'
"""In the head of every page that is written: another page is not overwritten."""

RUN, JUDGEMENTS, ANNOTATIONS = "a run", "judgements", "annotations"
SIMULATION, EXPERIMENT, ANALYSIS = "a simulation", "an experiment", "an analysis"
_MARKS = (
    (EXPERIMENT, "experiment.json", b'"agents"'),
    (SIMULATION, ".simulation/simulation.json", b'"agent"'),
    (RUN, "manifest.json", b'"signature"'),
    (JUDGEMENTS, "manifest.json", b'"rubric"'),
    (ANNOTATIONS, "manifest.json", b'"annotations"'),
    (ANALYSIS, "analysis.html", PAGE_MARK.encode()),
)
"""What a folder holds, by a file in it and what is in the beginning of that."""
_HEAD_BYTES = 1 << 16


_ADDRESS = re.compile(r"(s3|gs|az|https?|hf):/")
_PLACE = "Name a local path. Only the runs of `score` can be in an object store."


def check_is_local(path: str | os.PathLike[str], kind: str) -> None:
    """Refuse an address where a file or folder of this computer is written."""
    if _ADDRESS.match(os.fspath(path)):
        raise UsageError(f"{path} is an address, and {kind} is written to this computer.", _PLACE)


def check_output(
    path: Path, kind: str, own: Collection[str] = (), *, begins: str = "", alone: bool = False
) -> None:
    """Refuse to write where anything else is than what the same command writes."""
    check_is_local(path, kind)
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() == bool(begins):
        what = "folder" if begins else "file"
        raise _refused(f"{path} is a {what}, expected a {'file' if begins else 'folder'}.")
    if begins:
        head = _head(path)
        if head and begins.encode() not in head:
            raise _refused(f"{path} exists and is not {kind}, so it is not overwritten.")
        return
    held = kind_of(path)
    if held is not None and held != kind:
        raise _refused(f"{path} holds {held}, and {kind} would overwrite it.")
    if held is None or alone:
        names = sorted(one.name for one in path.iterdir())
        strange = [name for name in names if not any(_is_own(name, each) for each in own)]
        if strange:
            raise _refused(f"{path} cannot take {kind}: it holds {strange[0]}.")


def kind_of(folder: Path) -> str | None:
    """Return what a folder that fastscore wrote holds, None if it is another folder."""
    return next((kind for kind, name, mark in _MARKS if mark in _head(folder / name)), None)


def _is_own(name: str, own: str) -> bool:
    return fnmatchcase(name, own) or (is_temporary(name) and fnmatchcase(name, f"{own}.*"))


def _refused(found: str) -> RunConflictError:
    return RunConflictError(found, "Choose an empty or new place as output.")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_BYTES)
    except OSError:
        return b""


TEMPORARY_SUFFIX = ".tmp"

_TEMPORARY_NAME = re.compile(r".+\.\d+-[0-9a-f]{8}\.tmp")


def open_new(path: Path) -> BinaryIO:
    """Open a file that must not exist yet, to be written and read back."""
    return path.open("xb+")


@contextlib.contextmanager
def committed(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends without error.

    It is then flushed to the disk. The folder is not synced: `sync_folder` does
    that for several files at once. Only the user can write a private file, whatever the umask.
    """
    unique = f".{os.getpid()}-{os.urandom(4).hex()}{TEMPORARY_SUFFIX}"
    temporary = path.with_name(path.name + unique)
    try:
        with open_new(temporary) as file:
            if private:
                temporary.chmod(temporary.stat().st_mode & ~0o022)
            yield file
            file.flush()
            sync_file(file.fileno())
        replace_file(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def is_temporary(name: str) -> bool:
    """Return whether a file's name is a temporary name of `committed`."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def explain(path: Path, error: OSError) -> RunError:
    """Describe why a file could not be written, and the fix."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(
            f"{path}: the disk is full.",
            "Free some space and run the same command again; what is committed is kept.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return RunError(
            f"{path}: no permission to write there.",
            "Choose another folder as output.",
        )
    return RunError(
        f"{path}: cannot write there ({error.strerror or error}).",
        "Run the same command again or choose another folder as output; what is committed is kept.",
    )


HASH_BLOCK_BYTES = 1 << 20
"""Larger blocks are newly allocated each time, which is twice as slow."""

ContentHash = xxhash.xxh3_128


class BlockHash:
    """The hash of a part of a file, computed from the hashes of its blocks of `HASH_BLOCK_BYTES`.

    It can be computed from the hashes of the file's whole blocks and the part's two ends. The part
    starts at the byte ``start`` of the file.
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


Compression = Literal["none", "gz", "zst", "zip", "utf-16"]
"""Encodings of text on disk. Only ``none`` can be read from any offset. ``zip`` is a member of an
archive. UTF-16 is detected inside the others, too."""

SUFFIXES: dict[str, Compression] = {".gz": "gz", ".zst": "zst"}
"""The compressions of single files."""

USUAL_RATIO = 250.0
"""Maximum ratio of unpacked to packed size of an ordinary file."""

SMALL_BYTES = 64 << 20
"""Smaller files are not checked for their ratio."""

HEAD_BYTES = 64
"""Number of bytes needed to detect UTF-16."""

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
    from fastscore_jit.threads import raise_if_stopped  # late: numpy, which no `--help` waits for

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
    """Detect UTF-16 by a file's first bytes: by the mark, or by NULs between ASCII."""
    if head[:2] == codecs.BOM_UTF16_LE:
        return "utf-16-le"
    if head[:2] == codecs.BOM_UTF16_BE:
        return "utf-16-be"
    is_null = [byte == 0 for byte in head[:4]]
    even, odd = head[:HEAD_BYTES:2], head[1:HEAD_BYTES:2]
    if is_null == [False, True] * 2 and 0 not in even:
        return "utf-16-le"
    if is_null == [True, False] * 2 and 0 not in odd:
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
