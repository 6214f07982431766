"""Members of archives: zip and tar, each an input of its own.

A member's path is that of the archive and its name in it: ``logs.zip/day1.jsonl``.
"""

import errno
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from fastscore.errors import InputError
from fastscore.logs.objects import open_file, size_of
from fastscore.unpacked import (
    SUFFIXES,
    Compression,
    Damage,
    DamageError,
    Read,
)

ARCHIVE_SUFFIXES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")
"""Suffixes of archives in folders; a named file is an archive if its first bytes say so."""

_MOST_PACKED_MEMBERS = 200
"""A compressed tar is read from its beginning for each member."""
_OPEN_ARCHIVES = 8
_NESTED = (*SUFFIXES, ".zip", ".tar", ".tgz", ".7z", ".rar")
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_DAMAGE = (
    KeyError,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zlib.error,
    tarfile.TarError,
    EOFError,
    NotImplementedError,
)


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive: its name, its bytes in the archive, and where these begin in a tar."""

    name: str
    size: int
    begin: int | None = None


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


def list_members(path: str, compression: Compression) -> tuple[Member, ...]:
    """List the files of an archive, by name; hidden ones are passed over.

    Raises
    ------
    InputError
        The archive is damaged, encrypted, or holds another one.
    """
    try:
        members = list(_zip_members(path) if compression == "zip" else _tar_members(path))
    except (OSError, *_DAMAGE) as error:
        raise InputError(f"The archive {path!r} cannot be read: {error}.") from error
    found = [member for member in members if not _is_hidden(member.name)]
    for member in found:
        if os.path.splitext(member.name.lower())[1] in _NESTED:
            raise InputError(
                f"The archive {path!r} holds {member.name!r}, which is packed once more.",
                "Unpack the archive and name its folder.",
            )
    return tuple(sorted({member.name: member for member in found}.values(), key=_name))


@contextmanager
def open_packed(path: str, compression: Compression) -> Iterator[Packed]:
    """Open a file, or a member of an archive.

    Raises
    ------
    OSError
        It cannot be opened.
    """
    parts = split_member(path) if compression in ("zip", "tar") else None
    if parts is None:
        with open_file(path) as file:
            yield Packed(file.read, size_of(path))
    else:
        with (
            _open_zip_member(*parts) if compression == "zip" else _open_tar_member(*parts) as packed
        ):
            yield packed


@contextmanager
def _open_zip_member(path: str, name: str) -> Iterator[Packed]:
    try:
        archive = _zip(path, _stamp(path), os.getpid())
        file = archive.open(name)
    except _DAMAGE as error:
        raise _damaged(error) from error
    with file:
        yield Packed(_named_damage(file.read), archive.getinfo(name).compress_size)


def _damaged(error: Exception) -> OSError:
    return OSError(errno.EIO, f"the archive is damaged ({error})")


def _name(member: Member) -> str:
    return member.name


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


@lru_cache(_OPEN_ARCHIVES)
def _tar(path: str, stamp: tuple[int, int, int]) -> dict[str, Member]:
    with open(path, "rb") as file:
        is_plain = file.read(262)[257:] == b"ustar"
    members: dict[str, Member] = {}
    with tarfile.open(path) as archive:
        for info in archive:
            if not info.isreg() or info.issparse():
                continue
            members[info.name] = Member(
                info.name, info.size, info.offset_data if is_plain else None
            )
            if not is_plain and len(members) > _MOST_PACKED_MEMBERS:
                raise InputError(
                    f"The packed archive {path!r} holds more than {_MOST_PACKED_MEMBERS} files.",
                    "It is read from its beginning for each of them: unpack it, name its folder.",
                )
    return members


def _tar_members(path: str) -> Iterator[Member]:
    yield from _tar(path, _stamp(path)).values()


@contextmanager
def _open_tar_member(path: str, name: str) -> Iterator[Packed]:
    try:
        member = _tar(path, _stamp(path))[name]
        archive = tarfile.open(path) if member.begin is None else None  # noqa: SIM115
        file = archive.extractfile(name) if archive else None
    except _DAMAGE as error:
        raise _damaged(error) from error
    if archive is not None and file is not None:
        with archive:
            yield Packed(_named_damage(file.read), os.stat(path).st_size)
        return
    assert member.begin is not None
    with open(path, "rb", buffering=0) as raw:
        raw.seek(member.begin)
        left = member.size

        def read(size: int) -> bytes:
            nonlocal left
            block = raw.read(min(size, left))
            left -= len(block)
            return block

        yield Packed(read, member.size)


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in name.split("/"))
