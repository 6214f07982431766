"""What a file is by its first bytes, whatever its name, and what separates the cells of CSV."""

import codecs
import json
import os
import re
import shlex
from dataclasses import dataclass
from typing import Literal

from fastscore_jit.system import open_descriptor

from fastscore.errors import InputError
from fastscore.files import Compression, unicode_encoding
from fastscore.logs.inputs.near_names import role_meanings
from fastscore.logs.objects import is_remote, open_file

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
    (8, b"WEBP", "an image", ""),
    (0, b"II*\x00", "an image", ""),
    (0, b"MM\x00*", "an image", ""),
    (8, b"WAVE", "a sound file", ""),
    (0, b"ID3", "a sound file", ""),
    (0, b"OggS", "a sound file", ""),
    (0, b"fLaC", "a sound file", ""),
    (4, b"ftyp", "a video", ""),
    (0, b"\x1a\x45\xdf\xa3", "a video", ""),
    (0, b"GGUF", "model weights (GGUF)", ""),
    (0, b"\x7fELF", "a program", ""),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it and name its folder."),
    (0, b"Rar!", "a RAR archive", "Unpack it and name its folder."),
    (0, b"\x04\x22\x4d\x18", "an LZ4 file", "Unpack it: lz4 -d FILE."),
    (0, b"\xfd7zXZ\x00", "an xz file", "Unpack it: xz -dk FILE."),
    (4, b"1AY&SY", "a bzip2 file", "Unpack it: bzip2 -dk FILE."),
    (257, b"ustar", "a tar archive", "Unpack it and name its folder: tar -xf FILE."),
    (0, b"\x1f\x9d", "a file of compress", "Unpack it: uncompress FILE."),
    (0, b"version https://git-lfs", "a pointer of Git LFS, not the file", "Type: git lfs pull."),
    (0, b"!<arch>", "an archive of objects", ""),
    (0, b"Salted__", "an encrypted file", "Decrypt it first."),
    (0, b"-----BEGIN PGP MESSAGE", "an encrypted file", "Decrypt it first."),
)
_MARKUP = ((b"<!doctype html", "an HTML page"), (b"<html", "an HTML page"), (b"<?xml", "XML"))
_ZIPPED = (
    ("xl/workbook", "an Excel workbook", _SAVE_AS_CSV),
    ("word/document", "a Word document", "Save its data as CSV or JSON."),
    ("ppt/presentation", "a PowerPoint file", ""),
    ("META-INF/manifest.xml", "an OpenDocument file", _SAVE_AS_CSV),
    ("META-INF/container.xml", "an EPUB book", ""),
    ("META-INF/MANIFEST.MF", "a Java archive", ""),
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
    rb"(\[\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}[^\]\n]*\]|"
    rb"\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}[:.]\d{2}[^\n]{0,12} -) [^\n]*"
)


_SAID = (
    r"^(?:\[[^\]]*\] *|[0-9](?:[-0-9:.,/ ]|T(?=[0-9]))*(?:[AP]M[- ]*)?)?"
    r"(?<speaker>[A-Za-z\x{80}-\x{10FFFF}][^:\[\]{}\",]{0,30}): +(?<text>.*)$"
)
"""A line of a transcript, as jq spells it: perhaps a time, who speaks, a colon, what is said."""
_SAID_HERE = re.compile(
    _SAID.replace("(?<", "(?P<").replace(r"\x{80}-\x{10FFFF}", "\x80-\U0010ffff")
)
_FEWEST_TURNS = 3


def _transcript(head: bytes) -> str:
    """Return what makes rows of a chat that is plain text; nothing of any other text."""
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    if not lines or not _SAID_HERE.match(lines[0]):
        return ""
    said = [_SAID_HERE.match(line) for line in lines]
    speakers = [each["speaker"] for each in said if each is not None]
    n_lines = sum(bool(line.strip()) for line in lines)
    are_few = 1 < len({*speakers}) < len(speakers) >= _FEWEST_TURNS
    if not are_few or 2 * len(speakers) < n_lines:
        return ""
    after = [each and each["speaker"] for line, each in zip(lines, said[1:], strict=False)
             if not line.strip()]  # fmt: skip
    splits = ".n += 1" if {*after} == {speakers[0]} else "."
    program = (
        'reduce (inputs | rtrimstr("\\r") | ltrimstr("\\ufeff")) as $line ({n: 1, turns: []}; '
        f"($line | capture({json.dumps(_SAID)}) // null) as $turn "
        "| if $turn then .turns += [{conversation_id: .n} + $turn] "
        f'elif $line == "" then {splits} elif .turns == [] then . '
        'else .turns[-1].text += "\\n" + $line end) | .turns[]'
    )
    values = (f"--value {shlex.quote(f'speaker:{word}={role}')}" for word, role in
              role_meanings({*speakers}).items())  # fmt: skip
    read = " ".join(("--layout turns", *sorted(values)))
    command = f"{shlex.join(['jq', '-Rnc', program])} FILE > turns.jsonl"
    return f"Type {command}, and read it with {read}."


def content_of(head: bytes) -> Content:
    """Tell what a file is by its first `HEAD_BYTES`."""
    is_of_whatsapp = _WHATSAPP.match(head) is not None
    transcript = "" if head[:1] == b"{" else _transcript(head)
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
    for magic, other in _MARKUP:
        if start.startswith(magic):
            return Content(other=other, advice="Export its data as CSV or JSON.")
    encoding = unicode_encoding(head)
    if encoding is not None:
        return Content("utf-32" if "32" in encoding else "utf-16")
    return _binary(head)


def _binary(head: bytes) -> Content:
    """Tell bytes that are no text by their control characters."""
    if head and not head.strip(b"\x00"):
        return Content(other="a file of NUL bytes", advice="It was not written to its end.")
    if b"\x00" in head and not is_text(head):
        return _BINARY
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > max(_BINARY_SHARE * len(head), _FEW_CONTROLS):
        return _BINARY
    return _TEXT


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
