"""Members of zip archives, each an input of its own.

A member's path is that of the archive and its name in it: ``logs.zip/day1.jsonl``.
"""

import errno
import lzma
import os
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive: its name, and its bytes in the archive."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Packed:
    """An open file: how it is read, and how many bytes it has on disk."""

    read: Read
    size: int


def split_member(path: str) -> tuple[str, str] | None:
    """Part a member's path into its archive's path and its name; None if there is none."""
    archive, name = path, ""
    while archive and not os.path.exists(archive):
        archive, _, last = archive.rpartition(os.sep)
        name = f"{last}/{name}" if name else last
    return (archive, name) if name and os.path.isfile(archive) else None


def list_members(path: str) -> tuple[Member, ...]:
    """List the files of an archive, by name; hidden ones are passed over."""
    try:
        members = list(_zip_members(path))
    except (OSError, *_DAMAGE) as error:
        raise InputError(f"The archive {path!r} cannot be read: {error}.") from error
    found: dict[str, Member] = {}
    for member in members:
        fault = _fault(member.name, found)
        if fault:
            raise InputError(
                f"The archive {path!r} holds {member.name!r}, {fault}.",
                "Unpack the archive and name its folder.",
            )
        if not _is_hidden(member.name):
            found[member.name] = member
    return tuple(found[name] for name in sorted(found))


def _fault(name: str, before: Collection[str]) -> str:
    """Say why a member is not read, after those before it; empty if it is."""
    if not stays_below(name):
        return "a name that leaves the archive"
    if name in before:
        return "twice"
    is_packed = os.path.splitext(name.lower())[1] in _NESTED and not _is_hidden(name)
    return "which is packed once more" if is_packed else ""


@contextmanager
def open_packed(path: str, compression: Compression) -> Iterator[Packed]:
    """Open a file, or a member of an archive."""
    parts = split_member(path) if compression == "zip" else None
    if parts is None:
        with open_file(path) as file:
            yield Packed(file.read, size_of(path))
    else:
        with _open_member(*parts) as packed:
            yield packed


@contextmanager
def _open_member(path: str, name: str) -> Iterator[Packed]:
    try:
        archive = _zip(path, _stamp(path), os.getpid())
        file = archive.open(name)
    except _DAMAGE as error:
        raise _damaged(error) from error
    with file:
        yield Packed(_named_damage(file.read), archive.getinfo(name).compress_size)


def _damaged(error: Exception) -> OSError:
    return OSError(errno.EIO, f"the archive is damaged ({error})")


def _named_damage(read: Read) -> Read:
    """Read from an archive, so that what is wrong with it ends the stream."""

    def checked(size: int) -> bytes:
        try:
            return read(size)
        except _DAMAGE as error:
            damage = Damage("damaged_compression", f"the archive is damaged ({error})")
            raise DamageError(damage) from error

    return checked


def _stamp(path: str) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(_OPEN_ARCHIVES)
def _zip(path: str, stamp: tuple[int, int, int], process: int) -> zipfile.ZipFile:
    """Open a zip once for all its members; processes do not share a place in a file."""
    return zipfile.ZipFile(path)


def _zip_members(path: str) -> Iterator[Member]:
    for info in _zip(path, _stamp(path), os.getpid()).infolist():
        if info.is_dir():
            continue
        if info.flag_bits & 1:
            raise InputError(
                f"The archive {path!r} is encrypted ({info.filename!r}).",
                "Unpack it with its password and name the folder.",
            )
        if info.compress_type not in _ZIP_METHODS:
            raise InputError(
                f"The archive {path!r} holds {info.filename!r}, compressed by a method that is not "
                f"read (number {info.compress_type}).",
                "Unpack it and name its folder.",
            )
        yield Member(info.filename, info.compress_size)


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
