"""Which files an input names: files, folders and globs, in a stable order."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from fastscore.errors import InputError, UsageError, nearest

Format = Literal["csv", "json", "jsonl", "parquet"]
Compression = Literal["none", "gz", "zst"]

FORMATS: dict[str, tuple[Format, ...]] = {
    ".csv": ("csv",),
    ".jsonl": ("jsonl",),
    ".ndjson": ("jsonl",),
    ".json": ("json", "jsonl"),
    ".parquet": ("parquet",),
}
"""What a suffix can stand for, best first."""
FORMAT_NAMES: dict[str, str] = {
    "csv": "CSV",
    "json": "JSON",
    "jsonl": "JSON Lines",
    "parquet": "Parquet",
}
COMPRESSIONS: dict[str, Compression] = {".gz": "gz", ".zst": "zst"}
STDIN = "-"
"""The input that is standard input, and what rows and rejects call it."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is read.

    Parameters
    ----------
    path
        The path as it was given, or below the folder as it was given.
    format
        The format that its suffix names.
    compression
        The compression that its last suffix names, ``none`` without one.
    size
        Its bytes on disk.
    pattern
        The folder or glob that it was found by; empty where it was named itself.
    stored
        Where its bytes lie, when that is not at its path: of standard input, a frame, or the
        beginning of a file.
    """

    path: str
    format: Format
    compression: Compression
    size: int
    pattern: str = ""
    stored: str = ""

    @property
    def location(self) -> str:
        """The path at which its bytes are read."""
        return self.stored or self.path


def resolve_inputs(
    patterns: Sequence[str | os.PathLike[str]],
    formats: tuple[str, ...] = ("jsonl", "parquet"),
    named_format: Format | None = None,
) -> tuple[InputFile, ...]:
    """Find the files that paths, folders and globs name.

    Folders are searched through, links followed; hidden files and files with other suffixes in
    them are left aside. The order is that of ``patterns``, by name inside a folder or glob; a file
    that is named twice counts once. None is opened: who looks into one says that it cannot be read.

    Parameters
    ----------
    patterns
        Paths, folders and globs; `STDIN` is standard input.
    formats
        The formats that are read.
    named_format
        The format of standard input, and of named files whose suffix names none; None for JSON
        Lines, and for none.

    Raises
    ------
    UsageError
        The named format is not read, or standard input has none.
    InputError
        When a pattern matches nothing, a folder holds no file to read or leads back into itself,
        or a file is missing or has a suffix that is not known.
    """
    if not patterns:
        raise InputError("No input was given.", "Name a file, a folder or a glob.")
    if named_format is not None and named_format not in formats:
        raise UsageError(f"--format is {named_format!r}.", nearest(named_format, formats))
    found: dict[str, InputFile] = {}
    folders: dict[str, str] = {}
    for pattern in patterns:
        if pattern == STDIN:
            found.setdefault(STDIN, _standard_input(formats, named_format))
            continue
        for path in _expand(os.fspath(pattern), formats):
            key = _real_path(path, folders)
            file = found.get(key)
            if file is None:
                found[key] = _input_file(path, formats, os.fspath(pattern), named_format)
            elif path == os.fspath(pattern):
                # it was found in a folder before, and is named itself
                found[key] = replace(file, pattern="")
    return tuple(found.values())


def _real_path(path: str, folders: dict[str, str]) -> str:
    """Return a path without links; ``folders`` keeps those of folders, as many files share one."""
    if os.path.islink(path):
        return os.path.realpath(path)
    folder, name = os.path.split(path)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    return os.path.join(folders[folder], name)


def _standard_input(formats: tuple[str, ...], named_format: Format | None) -> InputFile:
    if named_format is None and "jsonl" not in formats:
        raise UsageError("The format of standard input is not known.", "Name it with --format.")
    return InputFile(STDIN, named_format or "jsonl", "none", 0)


def list_left_aside(
    patterns: Sequence[str | os.PathLike[str]], formats: tuple[str, ...]
) -> tuple[str, ...]:
    """Find the logs of other formats in the folders and globs of which `resolve_inputs` reads some.

    Files whose suffix names no format at all are not among them.
    """
    named = (os.fspath(each) for each in patterns if each != STDIN)
    found = (path for each in named for path in _expand(each, tuple(FORMAT_NAMES)))
    others = tuple(name for name in FORMAT_NAMES if name not in formats)
    return tuple(
        dict.fromkeys(
            path for path in found if _kind(path, formats) is None and _kind(path, others)
        )
    )


def list_unknown_suffixes(
    patterns: Sequence[str | os.PathLike[str]], formats: tuple[str, ...]
) -> tuple[str, ...]:
    """Find the files in folders whose suffix names no format; hidden ones are not among them."""
    found = []
    for folder in (os.fspath(pattern) for pattern in patterns):
        for place, folders, names in os.walk(folder) if os.path.isdir(folder) else ():
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            paths = (os.path.join(place, name) for name in sorted(names) if name[:1] != ".")
            found += [path for path in paths if _kind(path, formats) is None]
    return tuple(found)


def _suffixes(formats: tuple[str, ...]) -> tuple[str, ...]:
    """All suffixes that are read, compressed ones included."""
    plain = [suffix for suffix, kinds in FORMATS.items() if set(kinds) & set(formats)]
    return tuple(suffix + packed for suffix in plain for packed in ("", *COMPRESSIONS))


def _kind(path: str, formats: tuple[str, ...]) -> tuple[Format, Compression] | None:
    """Format and compression that a path's suffixes name, None when they name none."""
    stem, suffix = os.path.splitext(path.lower())
    compression = COMPRESSIONS.get(suffix, "none")
    if compression != "none":
        suffix = os.path.splitext(stem)[1]
    kind = next((kind for kind in FORMATS.get(suffix, ()) if kind in formats), None)
    return None if kind is None else (kind, compression)


def _expand(pattern: str, formats: tuple[str, ...]) -> Iterator[str]:
    """Yield the files of one pattern."""
    if os.path.isdir(pattern):
        yield from _folder(pattern, formats)
    elif os.path.lexists(pattern):
        yield pattern
    elif glob.has_magic(pattern):
        yield from _glob(pattern, formats)
    else:
        raise InputError(f"No such file or folder: {pattern!r}.", _suggestion(pattern))


def _glob(pattern: str, formats: tuple[str, ...]) -> Iterator[str]:
    """Yield the files that a glob matches, and those in the folders that it matches."""
    matches = sorted(glob.glob(pattern, recursive=True))
    folders = [match for match in matches if os.path.isdir(match)]
    files = [match for match in matches if match not in set(folders) and _kind(match, formats)]
    if "**" not in pattern:
        files = sorted([*files, *(path for folder in folders for path in _walk(folder, formats))])
    if not files:
        what = f"matched {len(matches)} names but no file" if matches else "matched nothing"
        raise InputError(
            f"The glob {pattern!r} {what} with a suffix that is read.",
            "Suffixes that are read: " + ", ".join(_suffixes(formats)) + ".",
        )
    yield from files


def _folder(folder: str, formats: tuple[str, ...]) -> list[str]:
    """List the files of a folder, which must hold one at least."""
    files = list(_walk(folder, formats))
    if not files:
        raise InputError(
            f"The folder {folder!r} holds no file with a suffix that is read.",
            "Suffixes that are read: " + ", ".join(_suffixes(formats)) + ".",
        )
    return files


def _walk(
    folder: str, formats: tuple[str, ...], above: tuple[tuple[int, int], ...] = ()
) -> Iterator[str]:
    """Yield the files below a folder, by name; ``above`` identifies the folders around it."""
    try:
        status = os.stat(folder)
        with os.scandir(folder) as listed:
            entries = sorted(listed, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"The folder {folder!r} cannot be read: {error.strerror}.") from error
    identity = (status.st_dev, status.st_ino)
    if identity in above:
        raise InputError(
            f"The folder {folder!r} is a link to a folder that it lies in.",
            "Remove the link or name the files by a glob.",
        )
    for entry in entries:
        if entry.name.startswith("."):
            continue
        # of links that lead nowhere entries raise
        if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():
            yield from _walk(entry.path, formats, (*above, identity))
        elif _kind(entry.name, formats):
            yield entry.path


def _input_file(
    path: str, formats: tuple[str, ...], pattern: str, named_format: Format | None
) -> InputFile:
    """Check a file and describe it."""
    kind = _kind(path, formats)
    if kind is None and named_format is not None and _kind(path, tuple(FORMAT_NAMES)) is None:
        kind = named_format, COMPRESSIONS.get(os.path.splitext(path.lower())[1], "none")
    if kind is None:
        other = _kind(path, tuple(FORMAT_NAMES))
        what = (
            f"The suffix of {path!r} names no format that is read."
            if other is None
            else f"{path!r} is a {FORMAT_NAMES[other[0]]} file, which this suite does not read."
        )
        raise InputError(what, "Suffixes that are read: " + ", ".join(_suffixes(formats)) + ".")
    try:
        status = os.stat(path)
    except OSError as error:
        raise InputError(f"The file {path!r} cannot be read: {error.strerror}.") from error
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path!r} is neither a file nor a folder; only those are read.")
    return InputFile(path, *kind, status.st_size, "" if pattern == path else pattern)


def _suggestion(path: str) -> str | None:
    """Say which neighbour of a missing path was probably meant."""
    folder = Path(path).parent
    try:
        names = [entry.name for entry in folder.iterdir()]
    except OSError:
        return f"The folder {str(folder)!r} does not exist either."
    hint = nearest(Path(path).name, names)
    return hint.split(" Known:")[0] if hint.startswith("Did you mean") else None
