"""Which files an input names, in a stable order, and what each is by its first bytes.

An input is a file, a member of an archive, a folder or a glob.
"""

import codecs
import difflib
import glob
import json
import os
import re
import shlex
import stat
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from fastscore_jit.system import open_descriptor

from fastscore.errors import InputError, UsageError, counted, did_you_mean, listed
from fastscore.files import (
    SUFFIXES,
    Compression,
    DamageError,
    as_utf8,
    check_path,
    unicode_encoding,
    unpacked,
)
from fastscore.logs.inputs.folders import (
    ARCHIVE_SUFFIX,
    expand_glob,
    list_members,
    name_file,
    open_packed,
    split_member,
    walk,
)
from fastscore.logs.inputs.near_names import roles_of_two
from fastscore.logs.objects import (
    Object,
    ask_for_beginnings,
    fetch,
    is_remote,
    list_objects,
    look_up,
    open_file,
)
from fastscore.suites.chats import ASSISTANT_ROLE, USER_ROLE

Format = Literal["csv", "json", "jsonl", "parquet"]
"""``parquet`` stands for stored columns: Parquet, and Arrow files and streams."""

HEAD_BYTES = 1 << 10

_COMPRESSIONS: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
)
ARROW_FILE, ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
_STORED = ((b"PAR1", "Parquet"), (ARROW_FILE, "Arrow IPC"), (ARROW_STREAM, "Arrow IPC stream"))

_SAVE_AS_CSV = "Save it as CSV."
_EVENTS = "Type sed -n 's/^data: *{/{/p' FILE > rows.jsonl."
_OTHERS: tuple[tuple[int, bytes, str, str], ...] = (
    (0, b"%PDF-", "a PDF", "Export its data as CSV or JSON."),
    (0, b"SQLite format 3\x00", "a SQLite database", "Export the table as CSV or JSON Lines."),
    (8, b"DUCK", "a DuckDB database", "Export the table: COPY t TO 'log.parquet'."),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (.xls, .doc)", _SAVE_AS_CSV),
    (0, b"PARE", "an encrypted Parquet file", "Write it without encryption."),
    (0, b"FEA1", "a Feather file of version 1", "Write it again as Feather 2 or Parquet."),
    (0, b"ORC", "an ORC file", "Write it as Parquet."),
    (0, b"Obj\x01", "an Avro file", "Write it as Parquet or JSON Lines."),
    (0, b"\x89HDF\r\n", "an HDF5 file", "Write its table as Parquet."),
    (0, b"\x93NUMPY", "a NumPy array", "Write it as Parquet or JSON Lines."),
    (0, b"RDX3", "an R data file", "Write it as CSV."),
    (0, b"\x89PNG", "an image", ""),
    (0, b"\xff\xd8\xff", "an image", ""),
    (0, b"GIF8", "an image", ""),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it and name its folder."),
    (0, b"Rar!", "a RAR archive", "Unpack it and name its folder."),
    (0, b"\x04\x22\x4d\x18", "an LZ4 file", "Unpack it: lz4 -d FILE."),
    (0, b"\xfd7zXZ\x00", "an xz file", "Unpack it: xz -dk FILE."),
    (4, b"1AY&SY", "a bzip2 file", "Unpack it: bzip2 -dk FILE."),
    (257, b"ustar", "a tar archive", "Unpack it and name its folder: tar -xf FILE."),
    (0, b"\x1f\x9d", "a file of compress", "Unpack it: uncompress FILE."),
    (0, b"data: {", "a stream of server-sent events", _EVENTS),
    (0, b"event: ", "a stream of server-sent events", _EVENTS),
    (0, b"version https://git-lfs", "a pointer of Git LFS, not the file", "Type: git lfs pull."),
    (0, b"\xff\xfe\x00\x00", "text in UTF-32", "Write it as UTF-8: iconv -f UTF-32 -t UTF-8 FILE."),
    (0, b"\x00\x00\xfe\xff", "text in UTF-32", "Write it as UTF-8: iconv -f UTF-32 -t UTF-8 FILE."),
    (0, b"Salted__", "an encrypted file", "Decrypt it first."),
    (0, b"-----BEGIN PGP MESSAGE", "an encrypted file", "Decrypt it first."),
)
_OF_CUES = (
    "Type tr -d '\\r' < FILE | awk -v RS= '/-->/ {sub(/^.*-->[^\\n]*\\n/, \"\"); "
    'if (sub(/<v[^ >]* +/, "")) sub(/>/, ": "); gsub(/<[^>]*>/, ""); print}\' > chat.txt, and '
    "do what `fastscore inspect chat.txt` says."
)
_MARKUP = (
    (rb"<!doctype html|<html", "an HTML page", "Export its data as CSV or JSON."),
    (rb"<\?xml", "XML", "Export its data as CSV or JSON."),
    (rb"webvtt|\d+\r?\n\d+:\d\d:\d\d[,.]\d+ +-->", "subtitles", _OF_CUES),
)
"""What text in other formats begins with, as regular expressions without case."""
_ZIPPED = (
    ("xl/workbook", "an Excel workbook", _SAVE_AS_CSV),
    ("word/document", "a Word document", "Save its data as CSV or JSON."),
    ("META-INF/manifest.xml", "an OpenDocument file", _SAVE_AS_CSV),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\x0b\x0c\r\x1b"))
_BINARY_SHARE, _FEW_CONTROLS = 0.1, 3


@dataclass(frozen=True, slots=True)
class Content:
    """What the first bytes of a file tell: how it is packed, and what it is if no text.

    ``stored`` is ``Parquet`` or the kind of Arrow, of stored columns. ``other`` is what a file that
    is not read is, ``a PDF``, and ``advice`` what to do with it.
    """

    compression: Compression = "none"
    stored: str = ""
    other: str = ""
    advice: str = ""

    @property
    def is_text(self) -> bool:
        """Whether it is nothing else: plain text, or empty."""
        return self == _TEXT


_TEXT = Content()
_BINARY = Content(other="binary data", advice="Write it as JSON Lines, CSV or Parquet.")


def is_text(head: bytes) -> bool:
    """Tell whether bytes are UTF-8; the last character may be cut off."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


_WHATSAPP = re.compile(
    rb"(\xef\xbb\xbf|\xe2\x80\x8e)?"
    rb"(\[\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?( \S{1,3})? \d{1,2}[:.]\d{2}[^\]\n]*\]|"
    rb"\d{1,4}[./-]\d{1,2}[./-]\d{2,4},?( \S{1,3})? \d{1,2}[:.]\d{2}[^\n]{0,12} -) [^\n]*"
)


SAID = (
    r"^(?:\[[^\]]*\] *|[0-9](?:[-0-9:.,/ ]|T(?=[0-9])|(?:à|às|um) (?=[0-9]))*"
    r"(?:[AaPp]\.? ?[Mm]\.?(?=[- ])[- ]*)?)?"
    r"<?(?<speaker>[A-Za-z\x{80}-\x{10FFFF}][^:<>\[\]{}\",]{0,30})(?::|>) +(?<text>.*)$"
)
"""A line of a transcript, as jq spells it: perhaps a time, who speaks, a colon, what is said."""
SAID_HERE = re.compile(SAID.replace("(?<", "(?P<").replace(r"\x{80}-\x{10FFFF}", "\x80-\U0010ffff"))
_TIME = r"^\[?[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{2,4},?( (à|às|um))? [0-9]{1,2}[:.][0-9]{2}"
_AT_A_TIME = re.compile(_TIME)
_FEWEST_TURNS = 3


def _transcript(head: bytes, *, is_of_whatsapp: bool) -> str:
    """Return what makes rows of a chat that is plain text; nothing of any other text.

    WhatsApp has notices without a speaker, and marks of direction and width in its times.
    """
    text = head.decode("utf-8-sig", errors="replace")
    lines = text.replace("\u200e", "").replace("\u202f", " ").splitlines()
    if is_of_whatsapp:
        lines = [line for line in lines if SAID_HERE.match(line) or not _AT_A_TIME.match(line)]
    if not lines or not SAID_HERE.match(lines[0]):
        return ""
    said = [SAID_HERE.match(line) for line in lines]
    speakers = [each["speaker"] for each in said if each is not None]
    n_lines = sum(bool(line.strip()) for line in lines)
    # times tell a chat of two messages from two lines of any text
    are_few = is_of_whatsapp or len({*speakers}) < len(speakers) >= _FEWEST_TURNS
    are_few &= len({*speakers}) > 1
    if not are_few or 2 * len(speakers) < n_lines:
        return ""
    after = [each and each["speaker"] for line, each in zip(lines, said[1:], strict=False)
             if not line.strip()]  # fmt: skip
    splits = ".n += 1" if {*after} == {speakers[0]} else "."
    cleaned = ' | gsub("\\u200e"; "") | gsub("\\u202f"; " ")' if is_of_whatsapp else ""
    # each file is a chat of its own, whose name no other export has
    id = '(input_filename // "1" | split("/") | last)' if is_of_whatsapp else ".n"
    notices = f"elif ($line | test({json.dumps(_TIME)})) then . " if is_of_whatsapp else ""
    program = (
        f'reduce (inputs | rtrimstr("\\r") | ltrimstr("\\ufeff"){cleaned}) as $line '
        "({n: 1, turns: []}; "
        f"($line | capture({json.dumps(SAID)}) // null) as $turn "
        f"| if $turn then .turns += [{{conversation_id: {id}}} + $turn] "
        f'{notices}elif $line == "" then {splits} elif .turns == [] then . '
        'else .turns[-1].text += "\\n" + $line end) | .turns[]'
    )
    roles = roles_of_two({*speakers})
    command = f"{shlex.join(['jq', '-Rnc', program])} FILE > turns.jsonl"
    left = " Notices without a speaker are left out." if is_of_whatsapp else ""
    if not {USER_ROLE, ASSISTANT_ROLE} <= {*roles.values()}:
        return f"Type {command}, and read it as `fastscore inspect turns.jsonl` says.{left}"
    values = (f"--value {shlex.quote(f'speaker:{word}={role}')}" for word, role in roles.items())
    return (
        f"Type {command}, and read it with {' '.join(('--layout turns', *sorted(values)))}.{left}"
    )


def content_of(head: bytes) -> Content:
    """Tell what a file is by its first `HEAD_BYTES`."""
    is_of_whatsapp = _WHATSAPP.match(head) is not None
    transcript = "" if head[:1] == b"{" else _transcript(head, is_of_whatsapp=is_of_whatsapp)
    if is_of_whatsapp or transcript:
        return Content(
            other="a chat as WhatsApp exports it" if is_of_whatsapp else "a chat as plain text",
            advice=transcript
            or "Write its messages as CSV with the columns conversation_id, created_at, "
            "speaker and text.",
        )
    if head[:1] in (b"{", b"[") and b"\x00" not in head:
        return _TEXT
    for magic, compression in _COMPRESSIONS:
        if head.startswith(magic):
            return Content(compression)
    for magic, name in _STORED:
        if head.startswith(magic):
            return Content(stored=name)
    for place, magic, other, advice in _OTHERS:
        if head[place : place + len(magic)] == magic:
            return Content(other=other, advice=advice)
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return Content(other="a pickle", advice="Write its data as JSON Lines or Parquet.")
    start = head[:64].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    for pattern, other, advice in _MARKUP:
        if re.match(pattern, start):
            return Content(other=other, advice=advice)
    if unicode_encoding(head) is not None:
        return Content("utf-16")
    if head and not head.strip(b"\x00"):
        return Content(other="a file of NUL bytes", advice="It was not written to its end.")
    controls = len(head) - len(head.translate(None, _CONTROLS))
    is_odd = controls > max(_BINARY_SHARE * len(head), _FEW_CONTROLS)
    return _BINARY if is_odd or (b"\x00" in head and not is_text(head)) else _TEXT


def zipped_document(names: list[str]) -> Content | None:
    """Tell by the names of its members what a zip is that is no archive of logs."""
    for begin, other, advice in _ZIPPED:
        if any(name.startswith(begin) for name in names):
            return Content(other=other, advice=advice)
    if names and all(name.endswith(".npy") for name in names):
        return Content(other="NumPy arrays", advice="Write them as Parquet or JSON Lines.")
    if any(name.endswith("/data.pkl") for name in names):
        return Content(other="model weights (PyTorch)")
    return None


def text_format(head: bytes, formats: tuple[str, ...]) -> Format | None:
    """Tell the format of text, unpacked, by its first bytes; None where none of ``formats`` is."""
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if content_of(head).stored:
        found: tuple[Format, ...] = ("parquet",)
    elif text[:1] == b"[":
        found = ("json", "jsonl")
    elif text[:1] == b"{":
        line, end, _ = text.partition(b"\n")
        is_whole = not end or line.rstrip().endswith(b"}")
        found = ("jsonl", "json") if is_whole else ("json", "jsonl")
    else:
        found = ("csv",)
    return next((format for format in found if format in formats), None)


def read_head(path: str, size: int | None = None) -> bytes:
    """Return a file's first bytes; none of what cannot be read, which its reader says."""
    if is_remote(path):
        with open_file(path, stop=HEAD_BYTES) as file:
            return file.read(HEAD_BYTES)
    try:
        descriptor = open_descriptor(path, wait=False)
    except OSError:
        return b""
    try:
        head = os.read(descriptor, HEAD_BYTES)
        is_made = bool(head) and not (os.fstat(descriptor).st_size if size is None else size)
    except BlockingIOError:
        is_made = True
    except OSError:
        return b""
    finally:
        os.close(descriptor)
    if is_made:
        raise InputError(
            f"{path!r} is no file on disk: its content is made as it is read.",
            "Copy it to a file, or pipe it into the input -.",
        )
    return head


SEPARATOR_NAMES = {b",": "commas", b";": "semicolons", b"\t": "tabs"}
_MOST_HEADER = 1 << 16
_SEPARATOR_LINE = re.compile(rb'"?sep=([!-~\t])"?[,;\t]*(?:\r\n|\r|\n|$)', re.IGNORECASE)
_QUOTED = re.compile(rb'"[^"]*(?:"|$)')
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Separator:
    """The ASCII character between cells, and the bytes of a line ``sep=`` before the header."""

    character: bytes = b","
    skipped: int = 0

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return SEPARATOR_NAMES.get(self.character, repr(self.character.decode()))


def find_separator(text: bytes) -> Separator:
    """Find the separator of a file that begins with some text, its header at least.

    It is the one that a line ``sep=`` names, else the one of commas, semicolons and tabs that
    stands most often in the header, outside of quotes; of equals the comma.
    """
    begin = len(codecs.BOM_UTF8) if text.startswith(codecs.BOM_UTF8) else 0
    named = _SEPARATOR_LINE.match(text, begin)
    if named is not None and named[1] != b'"':
        return Separator(named[1], named.end() - begin)
    text = text[begin : begin + _MOST_HEADER].lstrip(b"\r\n")
    line = _LINE_END.split(_QUOTED.sub(b"", text), maxsplit=1)[0]
    return Separator(max(SEPARATOR_NAMES, key=line.count))


FORMATS: dict[str, tuple[Format, ...]] = {
    ".csv": ("csv",),
    ".tsv": ("csv",),
    ".jsonl": ("jsonl",),
    ".ndjson": ("jsonl",),
    ".json": ("json", "jsonl"),
    ".parquet": ("parquet",),
    ".arrow": ("parquet",),
    ".feather": ("parquet",),
    ".ipc": ("parquet",),
}
"""What a suffix can stand for, best first."""
FORMAT_NAMES: dict[str, str] = {
    "csv": "CSV",
    "json": "JSON",
    "jsonl": "JSON Lines",
    "parquet": "Parquet",
}
STDIN = "-"
"""The input that is standard input, and what rows and rejects call it."""
_PACKED_UNREAD = (".xz", ".bz2", ".tar", ".tar.gz", ".tgz")
UNKNOWN_SUFFIX = "its suffix names no format that is read"
_TEXT_SUFFIX = ".txt"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is read: its path as it was given, or below what was given.

    Of a member of an archive that is the archive's path and the member's name. ``compression`` is
    how it is packed or encoded, by its first bytes, and ``size`` its bytes on disk. ``pattern`` is
    the folder, glob or archive that it was found by; empty if it was named itself. ``stored`` is
    the path of its bytes if that is another one: of standard input, a frame, or the beginning of a
    file. ``kind`` says in words what it is, if the format alone does not. ``first_line`` is the one
    of plain JSON Lines, if it is short and not too many are kept.
    """

    path: str
    format: Format
    compression: Compression
    size: int
    pattern: str = ""
    stored: str = ""
    kind: str = field(default="", compare=False)
    first_line: bytes = field(default=b"", compare=False, repr=False)

    @property
    def location(self) -> str:
        """The path at which its bytes are read."""
        return self.stored or self.path


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found at a path: files that are read, or why there are none."""

    files: tuple[InputFile, ...] = ()
    reason: str = ""
    advice: str = ""


_FIRST_LINES_BYTES = 16 << 20
"""So much of first lines is kept: screening then opens these files no more."""


def resolve_inputs(
    patterns: Sequence[str | os.PathLike[str]],
    formats: tuple[str, ...] = ("jsonl", "parquet"),
    named_format: Format | None = None,
) -> tuple[InputFile, ...]:
    """Find the files that paths, folders and globs name."""
    if not patterns:
        raise InputError("No input was given.", "Name a file, a folder or a glob.")
    if named_format is not None and named_format not in formats:
        raise UsageError(f"format is {named_format!r}.", did_you_mean(named_format, formats))
    found: dict[Hashable, InputFile] = {}
    n_kept = 0
    for pattern in [os.fspath(each) for each in patterns]:
        if pattern == STDIN:
            if named_format is None and "jsonl" not in formats:
                raise UsageError(
                    "The format of standard input is not known.",
                    "Set format, for example to jsonl.",
                )
            found.setdefault(STDIN, InputFile(STDIN, named_format or "jsonl", "none", 0))
            continue
        for file in _files_of(pattern, formats, named_format):
            key = _identity(file.path)
            n_kept += len(file.first_line)
            if n_kept > _FIRST_LINES_BYTES and file.first_line:
                file = replace(file, first_line=b"")
            before = found.get(key)
            if before is None:
                found[key] = file
            elif file.path == pattern:
                # it was found in a folder before, and is named itself
                found[key] = replace(before, pattern="")
    return tuple(found.values())


def list_left_aside(
    patterns: Sequence[str | os.PathLike[str]],
    formats: tuple[str, ...],
    read: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """Find what is not read in the folders and globs of which `resolve_inputs` reads some."""
    aside: dict[str, str] = {}
    for pattern in [os.fspath(each) for each in patterns]:
        if pattern == STDIN or is_remote(pattern):
            continue
        if os.path.isfile(pattern) or split_member(pattern):
            continue
        for path in _expand(pattern, aside):
            if path in read:
                continue
            seen = _look(path, formats, is_named=False)
            if not seen.files:
                aside[path] = _reason(path, seen)
    return aside


def _reason(path: str, seen: _Seen) -> str:
    """Say why a file in a folder is not read; the first bytes of any suffix may tell."""
    if seen.reason != UNKNOWN_SUFFIX:
        return seen.reason
    with suppress(InputError):
        other = content_of(read_head(path)).other
        return f"{other}, which is not read" if other else UNKNOWN_SUFFIX
    return UNKNOWN_SUFFIX


def _identity(path: str) -> Hashable:
    """Return what all names of one file share: links, other case, other Unicode forms.

    Hard links are files of their own. A member of an archive is one by its name.
    """
    if is_remote(path):
        return path
    try:
        status = os.stat(path)
    except OSError:
        above, name = os.path.split(path)
        return (_identity(above), name) if name else path
    if status.st_nlink > 1 or not status.st_ino:
        return os.path.realpath(path)
    return status.st_dev, status.st_ino


def _files_of(
    pattern: str, formats: tuple[str, ...], named_format: Format | None
) -> Iterator[InputFile]:
    """Yield the files of one pattern, of which there must be one at least."""
    check_path(pattern)
    if is_remote(pattern):
        yield from _objects_of(pattern, formats, named_format)
        return
    exists = os.path.lexists(pattern)
    member = None if exists else split_member(pattern)
    if member is not None:
        files = _look(member[0], formats).files
        yield replace(_member_of(pattern, files), pattern="")
        return
    if exists and not os.path.isdir(pattern):
        yield from _named_files(pattern, _look(pattern, formats, named_format), formats)
        return
    others: dict[str, str] = {}
    looked = ((path, _look(path, formats, is_named=False)) for path in _expand(pattern, others))
    yield from _found_below(pattern, looked, others, formats)


def _found_below(
    pattern: str,
    looked: Iterable[tuple[str, _Seen]],
    others: dict[str, str],
    formats: tuple[str, ...],
    n_names: int = 0,
) -> Iterator[InputFile]:
    """Yield the files of a folder or glob, of which there must be one at least."""
    found = 0
    for path, seen in looked:
        n_names += 1
        if not seen.files and not found:
            others[path] = seen.reason
        for file in seen.files:
            check_path(file.path)
            yield replace(file, pattern=pattern)
            found += 1
    if not found:
        raise _nothing_read(pattern, n_names, others, formats)


def frame_call(path: str, suite: str, given: str = "") -> str:
    """Write the call by which Python scores a CSV file as a frame."""
    separator = r", separator='\t'" if ".tsv" in path.lower() else ""
    return f"fastscore.score(polars.read_csv({path!r}{separator}), {suite}{given})"


def _named_files(path: str, seen: _Seen, formats: tuple[str, ...]) -> tuple[InputFile, ...]:
    """Return the files of a path that is named itself, of which there must be one."""
    if not seen.files:
        is_unknown = seen.reason == UNKNOWN_SUFFIX
        suffix = f"The suffix of {path!r} names no format that is read."
        is_csv = seen.reason.startswith("a CSV file, which")
        more = f" Python scores it as a frame: {frame_call(path, 'SUITE')}." if is_csv else ""
        what = suffix if is_unknown else f"{path!r} is {seen.reason}.{more}"
        advice = f"`fastscore inspect {shlex.quote(path)}` says what reads it."
        if is_unknown:
            advice = (
                f"{_advice(formats)} If it is JSON Lines, set format to jsonl. "
                f"`fastscore inspect - < {shlex.quote(path)}` shows what it contains."
            )
        raise InputError(what, name_file(seen.advice, path) or advice)
    return seen.files


def _objects_of(
    pattern: str, formats: tuple[str, ...], named_format: Format | None
) -> Iterator[InputFile]:
    """Yield the objects of an address, of what is below it or of a glob."""
    named = None if glob.has_magic(pattern) else look_up(pattern, again=True)
    if named is not None:
        seen = _look_at_object(named, formats, named_format, is_named=True)
        yield from _named_files(pattern, seen, formats)
        return
    above = None if glob.has_magic(pattern) else _archive_above(pattern)
    if above is not None:
        archive, member = above
        files = _look_at_object(archive, formats, None, is_named=True).files
        yield replace(_member_of(f"{archive.url}/{member}", files), pattern="")
        return
    listed = list_objects(pattern)
    wanted = [each for each in listed if any(_kind(each.url)) or _is_archive(each.url)]
    fetch(each for each in wanted if each.is_fetched)
    ask_for_beginnings(each for each in wanted if not each.is_fetched)
    looked = ((each.url, _look_at_object(each, formats, None, is_named=False)) for each in wanted)
    yield from _found_below(pattern, looked, {}, formats, len(listed) - len(wanted))


def _archive_above(url: str) -> tuple[Object, str] | None:
    """Part a member's address into its archive and its name; None if there is none."""
    for at in (at for at, character in enumerate(url) if character == "/"):
        found = look_up(url[:at]) if _is_archive(url[:at]) else None
        if found is not None:
            return found, url[at + 1 :]
    return None


def _look_at_object(
    found: Object, formats: tuple[str, ...], named_format: Format | None, *, is_named: bool
) -> _Seen:
    """Tell what an object is; small ones, tables and archives are fetched to the cache."""
    seen = None
    if not (found.is_fetched or _is_archive(found.url)):
        seen = _look_at(found.url, found.size, formats, named_format, is_named=is_named)
        if [(each.path, each.format == "parquet") for each in seen.files] == [(found.url, False)]:
            return seen
    (path,) = fetch([found])
    seen = _look_at(path, found.size, formats, named_format, is_named=is_named)
    files = (
        replace(each, path=found.url + each.path[len(path) :], stored=each.path)
        for each in seen.files
    )
    return replace(seen, files=tuple(files))


def _is_archive(path: str) -> bool:
    # logs of inspect_ai are archives of samples
    return path.lower().endswith((ARCHIVE_SUFFIX, ".eval"))


def _member_of(path: str, files: Sequence[InputFile]) -> InputFile:
    for file in files:
        if file.path == path:
            return file
    names = [file.path for file in files]
    raise InputError(f"No file {path!r} is read in that archive.", did_you_mean(path, names))


def _nothing_read(
    pattern: str, n_names: int, others: dict[str, str], formats: tuple[str, ...]
) -> InputError:
    if is_remote(pattern) and not (n_names or glob.has_magic(pattern)):
        return InputError(
            f"There is no object {pattern!r}, and none below it.", "Check the bucket and the name."
        )
    if os.path.isdir(pattern) or (is_remote(pattern) and not glob.has_magic(pattern)):
        what = f"The folder {pattern!r} holds no file with a suffix that is read"
    else:
        matched = (
            f"matched {counted(n_names, 'names')} but no file" if n_names else "matched nothing"
        )
        what = f"The glob {pattern!r} {matched} with a suffix that is read"
    of_unknown = [path for path, reason in others.items() if reason == UNKNOWN_SUFFIX]
    named = [f"{path!r} ({reason})" for path, reason in others.items() if path not in of_unknown]
    holds = f"; found {listed(named, _SHOWN)}" if named else ""
    advice = _advice(formats)
    if of_unknown:
        advice += f" To read {of_unknown[0]!r}, name the file itself and set format to jsonl."
    return InputError(f"{what}{holds}.", advice)


def _advice(formats: tuple[str, ...]) -> str:
    plain = [suffix for suffix, kinds in FORMATS.items() if set(kinds) & set(formats)]
    packed = ", ".join(SUFFIXES)
    return f"Suffixes that are read: {', '.join(plain)}, each also with {packed}; {ARCHIVE_SUFFIX}."


def _kind(path: str) -> tuple[tuple[Format, ...], Compression]:
    stem, suffix = os.path.splitext(path.lower())
    compression = SUFFIXES.get(suffix, "none")
    if compression != "none":
        suffix = os.path.splitext(stem)[1]
    return FORMATS.get(suffix, ()), compression


def _expand(pattern: str, aside: dict[str, str]) -> Iterator[str]:
    """Yield the files of a folder or glob; ``aside`` takes what is passed over."""
    if os.path.isdir(pattern):
        yield from walk(pattern, aside)
    elif "://" in pattern and not os.path.exists(pattern):
        raise InputError(
            f"{pattern!r} is an address of a kind that is not read. Expected s3://, gs://, az://, "
            "https:// or hf://.",
            "Download the files first, or pipe one file into standard input (the input -).",
        )
    elif glob.has_magic(pattern):
        matches = expand_glob(pattern)
        folders = [match for match in matches if os.path.isdir(match)]
        files = [match for match in matches if match not in set(folders)]
        if "**" not in pattern:
            files += [path for folder in folders for path in walk(folder, aside)]
        yield from sorted(files)
    else:
        raise InputError(f"No such file or folder: {pattern!r}.", _suggestion(pattern))


def _look(
    path: str,
    formats: tuple[str, ...],
    named_format: Format | None = None,
    *,
    is_named: bool = True,
) -> _Seen:
    """Tell what a file is; of one in a folder that has no known suffix nothing is read."""
    named, compression = _kind(path)
    is_archive = _is_archive(path)
    has_no_suffix = compression != "none" and not os.path.splitext(os.path.splitext(path)[0])[1]
    is_packed = path.lower().endswith(_PACKED_UNREAD)
    if not (is_named or named or is_archive or has_no_suffix or is_packed):
        return _Seen(reason=UNKNOWN_SUFFIX)
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"The file {path!r} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path!r} is neither a file nor a folder; only those are read.",
            "Pipe it into the input -." if stat.S_ISFIFO(status.st_mode) else None,
        )
    return _look_at(path, status.st_size, formats, named_format, is_named=is_named)


def _look_at(
    path: str, size: int, formats: tuple[str, ...], named_format: Format | None, *, is_named: bool
) -> _Seen:
    """Tell what a file or an object of some size is by its name and its first bytes."""
    named, compression = _kind(path)
    is_archive = _is_archive(path)
    head = read_head(path, size)
    content = content_of(head)
    is_binary = content.other == "binary data"
    if is_binary and (compression != "none" or "parquet" in named):
        content = Content(compression)  # damaged: its reader says where
    if content.other:
        return _unread(content)
    if head and not (content.is_text and compression != "none" and not is_text(head)):
        compression = content.compression
    if compression in SUFFIXES.values() and (is_archive or not named):
        head = _unpacked_head(path, compression)
        content = content_of(head)
        if content.other:
            return _unread(content)
    if compression == "zip":
        return _members(path, formats)
    if is_archive and content.is_text:
        return _Seen(reason="a damaged archive, or none")
    is_packed = compression != "none"
    text = _unpacked_head(path, compression) if is_packed and "json" in named else head
    format = named_format
    if content.stored or named:
        known: tuple[Format, ...] = ("parquet",) if content.stored else named
        found = [each for each in known if each in formats]
        format = found[0] if found else None
        # of two formats of a suffix a suite's first counts, or the one of the content
        if len(found) > 1 and formats.index("jsonl") < formats.index("json"):
            format = text_format(text, ("json", "jsonl")) or "jsonl"
    elif format is None and is_packed and text:
        format = text_format(text, formats)
    if format is None:
        what = content.stored or (FORMAT_NAMES[named[0]] if named else "")
        article = "an" if what.startswith("A") else "a"
        unread = f"{article} {what} file, which this suite does not read"
        return _Seen(reason=unread if what else UNKNOWN_SUFFIX)
    kind = "" if content.stored == "Parquet" else content.stored
    if format == "csv" and content.is_text:
        separator = find_separator(head)
        kind = "" if separator.character == b"," else f"CSV, separated by {separator.name}"
    end = head.find(b"\n") if format == "jsonl" and not is_packed else -1
    first_line = head[:end] if end >= 0 else b""
    return _Seen((InputFile(path, format, compression, size, kind=kind, first_line=first_line),))


def _unread(content: Content) -> _Seen:
    return _Seen(reason=f"{content.other}, which is not read", advice=content.advice)


def _unpacked_head(path: str, compression: Compression) -> bytes:
    """Return the first bytes of a packed file, unpacked; none of what is damaged."""
    with suppress(OSError, DamageError), open_packed(path, compression) as (read, _):
        return next(as_utf8(unpacked(read, compression)), b"")
    return b""


def _members(path: str, formats: tuple[str, ...]) -> _Seen:
    members = list_members(path)
    document = zipped_document([*members])
    if document is not None:
        return _unread(document)
    files = []
    for name, size in members.items():
        inner, (named, _) = os.path.join(path, name), _kind(name)
        format = next((each for each in named if each in formats), None)
        if not named and not os.path.splitext(name)[1]:
            format = text_format(_unpacked_head(inner, "zip"), formats)
        if format is not None:
            files.append(InputFile(inner, format, "zip", size, path))
    if files:
        return _Seen(tuple(files))
    for name in members:
        if name.lower().endswith(_TEXT_SUFFIX):
            inner = os.path.join(path, name)
            content = content_of(_unpacked_head(inner, "zip"))
            if content.other:
                reason = f"an archive with {content.other}, which is not read"
                return _Seen(reason=reason, advice=name_file(content.advice, inner))
    suffixes = listed(sorted({os.path.splitext(name)[1] or name for name in members}), _SHOWN)
    return _Seen(
        reason=f"an archive without a file that is read; it has {suffixes or 'no file'}",
        advice="Unpack it, and write its logs as JSON Lines, CSV or Parquet.",
    )


def _suggestion(path: str) -> str | None:
    """Say which neighbour of a missing path was probably meant."""
    folder = Path(path).parent
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return f"The folder {str(folder)!r} does not exist either."
    stems = {name.partition(".")[0]: name for name in sorted(names)}
    close = difflib.get_close_matches(Path(path).name.partition(".")[0], stems, n=1, cutoff=0.6)
    return f"Did you mean {stems[close[0]]!r}?" if close else None
