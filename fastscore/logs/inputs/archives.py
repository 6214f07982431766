"""Members of zip archives, each an input of its own.

A member's path is that of the archive and its name in it: ``logs.zip/day1.jsonl``.
"""

import errno
import lzma
import os
import re
import shlex
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from fastscore.errors import InputError
from fastscore.files import (
    SUFFIXES,
    Compression,
    Damage,
    DamageError,
    Read,
    stays_below,
)
from fastscore.logs.objects import open_file, size_of

ARCHIVE_SUFFIX = ".zip"
"""Suffix of archives in folders; a named file is an archive if its first bytes say so."""

_COMMAND = re.compile(r"(?<=Type )(?=(jq|sed|tail|tr|python) )|(?<=Type `)(?=python )")
"""The place before a command that reads FILE."""
_OPEN_ARCHIVES = 8
_NESTED = (*SUFFIXES, ".zip", ".tar", ".tgz", ".7z", ".rar", ".xz", ".bz2")
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_DAMAGE = (
    KeyError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
)


def split_member(path: str) -> tuple[str, str] | None:
    """Part a member's path into its archive's path and its name; None if there is none."""
    archive, name = path, ""
    while archive and not os.path.exists(archive):
        archive, _, last = archive.rpartition(os.sep)
        name = f"{last}/{name}" if name else last
    return (archive, name) if name and os.path.isfile(archive) else None


_TABLE = (
    'import csv, json, sys; f = open(sys.argv[1], newline="", encoding="utf-8-sig"); '
    'd = csv.Sniffer().sniff(f.readline(), ",;\\t|"); f.seek(0); '
    'r = csv.reader(f, d); h = next(row for row in r if row and row[0][:4] != "sep="); '
    "h = [name.strip().lower() for name in h]; "
    '[print(json.dumps(dict(zip(h, row))) if any(row) else "") for row in r]'
)
_FOR_JQ: dict[str, tuple[str, ...]] = {
    "gz": ("gzip", "-dc"),
    "zst": ("zstd", "-dc"),
    **dict.fromkeys(("csv", "tsv"), ("python", "-c", _TABLE)),
}
"""What writes JSON of files that jq does not read, by their suffix."""


def name_file(advice: str, path: str) -> str:
    """Put the name of a file in place of FILE in advice.

    A member is unpacked for its command, and jq gets what is packed or a table as JSON.
    """
    member = split_member(path) if "FILE" in advice else None
    reader = _FOR_JQ.get(path.lower().rpartition(".")[2], ()) if "jq -c" in advice else ()
    if member is None and not reader:
        return advice.replace("FILE", shlex.quote(path))
    begin = shlex.join(["unzip", "-p", *member] if member else [*reader, path])
    return _COMMAND.sub(lambda _: f"{begin} | ", advice, count=1).replace("FILE", "/dev/stdin")


def list_members(path: str) -> dict[str, int]:
    """List the files of an archive by name, with their bytes in it; hidden ones are skipped."""
    try:
        infos = [info for info in _zip(path).infolist() if not info.is_dir()]
    except (OSError, *_DAMAGE) as error:
        raise InputError(f"The archive {path!r} cannot be read: {error}.") from error
    found: dict[str, int] = {}
    for info in infos:
        name = info.filename
        is_hidden = any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
        if info.flag_bits & 1:
            raise InputError(
                f"The archive {path!r} is encrypted ({name!r}).",
                "Unpack it with its password and name the folder.",
            )
        if info.compress_type not in _ZIP_METHODS:
            raise InputError(
                f"The archive {path!r} holds {name!r}, compressed by a method that is not "
                f"read (number {info.compress_type}).",
                "Unpack it and name its folder.",
            )
        fault = ""
        if not stays_below(name):
            fault = "a name that leaves the archive"
        elif name in found:
            fault = "twice"
        elif os.path.splitext(name.lower())[1] in _NESTED and not is_hidden:
            fault = "which is packed once more"
        if fault:
            raise InputError(
                f"The archive {path!r} holds {name!r}, {fault}.",
                "Unpack the archive and name its folder.",
            )
        if not is_hidden:
            found[name] = info.compress_size
    return dict(sorted(found.items()))


@contextmanager
def open_packed(path: str, compression: Compression) -> Iterator[tuple[Read, int]]:
    """Open a file, or a member of an archive: how it is read, and its bytes on disk."""
    parts = split_member(path) if compression == "zip" else None
    if parts is None:
        with open_file(path) as file:
            yield file.read, size_of(path)
        return
    try:
        archive = _zip(parts[0])
        member = archive.open(parts[1])
    except _DAMAGE as error:
        raise OSError(errno.EIO, _damaged(error)) from error

    def read(size: int) -> bytes:
        try:
            return member.read(size)
        except _DAMAGE as error:
            raise DamageError(Damage("damaged_compression", _damaged(error))) from error

    with member:
        yield read, archive.getinfo(parts[1]).compress_size


def _damaged(error: Exception) -> str:
    return f"the archive is damaged ({error})"


def _zip(path: str) -> zipfile.ZipFile:
    status = os.stat(path)
    return _opened(path, (status.st_ino, status.st_size, status.st_mtime_ns), os.getpid())


@lru_cache(_OPEN_ARCHIVES)
def _opened(path: str, stamp: tuple[int, int, int], process: int) -> zipfile.ZipFile:
    """Open a zip once for all its members; processes do not share a place in a file."""
    return zipfile.ZipFile(path)
