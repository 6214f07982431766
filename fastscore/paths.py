"""Paths: the cache folder, invalid names, and files that are written atomically.

Scope: file systems on which ``rename`` within a folder is atomic. A file is written under a
temporary name beside its final one, flushed to the disk and renamed. After a crash there is the old
file or the new one, and perhaps a temporary file, whose name is never reused.
"""

import contextlib
import errno
import os
import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import BinaryIO

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


def check_output(
    path: Path, kind: str, own: Collection[str] = (), *, begins: str = "", alone: bool = False
) -> None:
    """Refuse to write where anything else is than what the same command writes."""
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
    held = next((one for one, name, mark in _MARKS if mark in _head(path / name)), None)
    if held is not None and held != kind:
        raise _refused(f"{path} holds {held}, and {kind} would overwrite it.")
    if held is None or alone:
        names = sorted(one.name for one in path.iterdir())
        strange = [name for name in names if not any(_is_own(name, each) for each in own)]
        if strange:
            raise _refused(f"{path} cannot take {kind}: it holds {strange[0]}.")


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
