"""Files in folders, globs and archives, in a stable order, and the columns that Hive folders name.

A member of a zip archive is an input of its own. Its path is that of the archive and its name in
it: ``logs.zip/day1.jsonl``.
"""

import errno
import glob
import json
import os
import re
import shlex
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from urllib.parse import unquote

import polars as pl

from fastscore.errors import InputError
from fastscore.files import SUFFIXES, Compression, Damage, DamageError, Read, stays_below
from fastscore.logs.objects import matches, open_file, size_of
from fastscore.suites.declarations import Column, Source

ARCHIVE_SUFFIX = ".zip"
"""Suffix of archives in folders; a named file is an archive if its first bytes say so."""

_COMMAND = re.compile(r"(?<=Type )(?=(jq|sed|tail|tr|python) )|(?<=Type `)(?=python )")
"""The place before a command that reads FILE."""
_WRITTEN = re.compile(r"(?:> |to_json\(')(\w+\.\w+)")
"""The file that a command writes."""
_OPEN_ARCHIVES = 8
_NESTED = (*SUFFIXES, ".zip", ".tar", ".tgz", ".7z", ".rar", ".xz", ".bz2")
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (KeyError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)


def split_member(path: str) -> tuple[str, str] | None:
    """Part a member's path into its archive's path and its name; None if there is none."""
    archive, name = path, ""
    while archive and not os.path.exists(archive):
        archive, _, last = archive.rpartition(os.sep)
        name = f"{last}/{name}" if name else last
    return (archive, name) if name and os.path.isfile(archive) else None


_TABLE = (
    'import csv, json, sys; f = open(sys.argv[1], newline="", encoding="utf-8-sig"); '
    'd = csv.Sniffer().sniff(f.readline(), ",;\\t|").delimiter; f.seek(0); '
    'r = csv.reader(f, delimiter=d); h = next(row for row in r if row and row[0][:4] != "sep="); '
    "h = [name.strip().lower() for name in h]; "
    '[print(json.dumps(dict(zip(h, row))) if any(row) else "") for row in r]'
)
_FRAME = 'import polars, sys; print(polars.read_{}(sys.argv[1]).write_ndjson(), end="")'
_FOR_JQ: dict[str, tuple[str, ...]] = {
    "gz": ("gzip", "-dc"),
    "zst": ("zstd", "-dc"),
    **dict.fromkeys(("csv", "tsv"), ("python", "-c", _TABLE)),
    "parquet": ("python", "-c", _FRAME.format("parquet")),
    **dict.fromkeys(("arrow", "feather"), ("python", "-c", _FRAME.format("ipc"))),
}
"""What writes JSON of files that jq does not read, by their suffix."""


def name_file(advice: str, path: str) -> str:
    """Put the name of a file in place of FILE in advice.

    A member is unpacked for its command, and jq gets what is packed or a table as JSON. No command
    replaces a file.
    """
    if written := _WRITTEN.search(advice):
        name = written[1]
        while name == os.path.basename(path) or os.path.exists(name):
            name = f"new_{name}"
        advice = advice.replace(written[1], name)
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


_MANIFEST, _ANALYSIS = "manifest.json", "analysis.html"
_JUDGEMENTS = {"judgements.jsonl", "repeats.parquet"}
_SAVED = {"state.json", "dataset_info.json"}
_MOST_DESCRIBED = 1 << 20

Entry = tuple[str, bool]
"""A path, and whether it is a folder."""


def walk(folder: str, aside: dict[str, str] | None = None) -> Iterator[str]:
    """Yield the files below a folder, by name; links are followed, hidden names passed over.

    Outputs of fastscore in it are not read as logs. Of a data set that the Hugging Face library
    saved, only the files with its rows are yielded.
    """
    seen: set[tuple[int, int]] = set()
    waiting: list[Entry] = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            yield path
            continue
        status, entries = _list(path)
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            continue
        seen.add(identity)
        own = _own_output(path, {os.path.basename(each) for each, _ in entries})
        if own and path == folder:
            raise InputError(f"{path!r} is {own}, no log.", "Name the logs that it was made from.")
        if own:
            if aside is not None:
                aside[path] = own
            continue
        waiting += reversed(_rows_of_saved(path, entries))


def expand_glob(pattern: str) -> list[str]:
    """Return what a glob matches, by name: files, and folders unless it has a ``**``."""
    if "**" not in pattern.split(os.sep):
        return sorted(glob.glob(pattern))
    # the folder that is walked, and the parts that are matched below it
    parts = pattern.split(os.sep)
    first = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    root = os.sep.join(parts[:first]) or (os.sep if pattern.startswith(os.sep) else "")
    found = walk(root or os.curdir)
    begin = len(os.path.join(root or os.curdir, ""))
    below = (path[begin:] for path in found)
    return [
        os.path.join(root, path) for path in below if matches(path.split(os.sep), parts[first:])
    ]


def _list(folder: str) -> tuple[os.stat_result, list[Entry]]:
    """Return a folder's identity and its entries, by name."""
    try:
        status = os.stat(folder)
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
            named = [entry for entry in entries if not entry.name.startswith(".")]
            # of links that lead nowhere entries raise
            return status, [
                (each.path, os.path.isdir(each.path) if each.is_symlink() else each.is_dir())
                for each in named
            ]
    except OSError as error:
        deep = error.errno == errno.ENAMETOOLONG
        raise InputError(
            f"The folder {folder[:200]!r} cannot be read: {error.strerror}.",
            "It is nested too deeply: move the logs further up." if deep else None,
        ) from error


def _own_output(folder: str, names: set[str]) -> str:
    if names >= _JUDGEMENTS:
        return "judgements of fastscore"
    if _ANALYSIS in names and "tables" in names:
        return "an analysis of fastscore"
    if _MANIFEST in names:
        content = _described(folder, _MANIFEST)
        if {"signature", "suite_version", "parts_hash"} <= set(content):
            return "a run of fastscore"
    return ""


def _rows_of_saved(folder: str, entries: list[Entry]) -> list[Entry]:
    """Leave out the descriptions of a data set that was saved to disk, and its caches."""
    names = {os.path.basename(path) for path, _ in entries}
    if "dataset_dict.json" in names and "splits" in _described(folder, "dataset_dict.json"):
        names.discard("dataset_dict.json")
    if names >= _SAVED:
        files = _described(folder, "state.json").get("_data_files")
        listed = (
            {each.get("filename") for each in files if isinstance(each, dict)}
            if isinstance(files, list)
            else set()
        )
        names -= _SAVED
        if listed & names:
            names = {name for name in names if name in listed or not name.endswith(".arrow")}
    return [entry for entry in entries if os.path.basename(entry[0]) in names]


def _described(folder: str, name: str) -> dict[str, object]:
    """Read a small JSON object, empty where there is none."""
    path = os.path.join(folder, name)
    with suppress(OSError, ValueError, RecursionError):
        if os.path.isfile(path) and os.path.getsize(path) <= _MOST_DESCRIBED:
            with open(path, "rb") as file:
                content = json.load(file)
            if isinstance(content, dict):
                return content
    return {}


_FOLDER = re.compile(r"([^=/%]+(?:%[0-9A-Fa-f]{2}[^=/%]*)*)=([^/]*)")
_NULL = "__HIVE_DEFAULT_PARTITION__"
_BOOLEANS = {"true": True, "false": False}

Partition = tuple[tuple[str, str], ...]
"""Names of columns and their values, from the outermost folder to the innermost."""


@lru_cache(1 << 12)
def _of_folder(folder: str) -> Partition:
    found: dict[str, str] = {}
    for part in folder.split("/"):
        named = _FOLDER.fullmatch(part)
        if named is not None and named[2] != _NULL:
            found[unquote(named[1])] = unquote(named[2])
    return tuple(found.items())


def partition_of(path: str) -> Partition:
    """Return what the folders of a path give; nothing for the name that stands for null."""
    folder, separator, _ = path.rpartition("/")
    return _of_folder(folder) if separator and "=" in folder else ()


def with_partition(source: Source, path: str) -> Source:
    """Return a source whose columns have what the folders of a path give, if rows do not."""
    partition = dict(partition_of(path))
    if not partition:
        return source
    columns = tuple(_given(column, partition, path) for column in source.columns)
    chat = source.chat and replace(source.chat, native=with_partition(source.chat.native, path))
    return replace(source, columns=columns, chat=chat)


def _given(column: Column, partition: Mapping[str, str], path: str) -> Column:
    names = (column.name, *column.keys)
    text = next((partition[name] for name in names if name in partition), None)
    if text is None or column.kind == "json" or column.only_where is not None:
        return column
    given = column.remapped(default=text)
    if given.required:
        given = replace(given, otherwise="reject")
    if folder_value(given) is None:
        raise InputError(
            f"{path}: the folders give {column.name} the value {text!r}, expected one of the kind "
            f"{column.kind}.",
            "Rename the folder.",
        )
    return given


def folder_value(column: Column) -> str | int | float | bool | None:
    """Return a column's value from its file's folders, of the column's kind; None without one."""
    text = column.mapped.default
    if text is None:
        return None
    if column.kind == "text":
        return dict(column.mapped.words).get(text, text)
    if column.kind == "boolean":
        return _BOOLEANS.get(text.lower())
    try:
        number = float(text)
        if column.kind == "number":
            return number
        if text.lstrip("+-").isdigit():
            return int(text)
        return int(number) if number.is_integer() else None
    except ValueError:
        return None


def check_partition(rows: pl.DataFrame, source: Source) -> None:
    """Refuse rows that say otherwise than the folders of their file."""
    for column in source.columns:
        value = folder_value(column)
        if value is None or column.name not in rows.columns:
            continue
        other = rows.filter(pl.col(column.name) != value).head(1)
        for row in other.iter_rows(named=True):
            raise InputError(
                f"{row['file']}:{row['line']}: {column.name} is {row[column.name]!r}, but the "
                f"file's folder says {value!r}.",
                "Correct the rows or move the file to another folder.",
            )


def with_folders(row: dict[str, object], partition: Partition) -> dict[str, object]:
    """Return a row with what its file's folders give, if it has no value of its own."""
    more = {name: value for name, value in partition if row.get(name) is None}
    return {**row, **more} if more else row
