"""Paths: the cache folder, invalid names, and files that are written atomically.

Scope: file systems on which ``rename`` within a folder is atomic. A file is written under a
temporary name beside its final one, flushed to the disk and renamed. After a crash there is the old
file or the new one, and perhaps a temporary file, whose name is never reused.
"""

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fastscore_jit.system import replace_file, sync_file

from fastscore.errors import RunError, UsageError
from fastscore.wording import RUN_AGAIN, parameter


def cache_root() -> Path:
    """Return the cache folder: ``$FASTSCORE_CACHE``, else the platform's cache folder.

    The folder is not created here.

    Raises
    ------
    UsageError
        The variable is not a valid folder name, or there is no home folder.
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
    """Refuse a path that is not UTF-8.

    Raises
    ------
    UsageError
        It is not.
    """
    if not is_utf8(path):
        raise UsageError(
            f"The name '{shown_path(path)}' is not UTF-8: no table or message can hold it.",
            "Rename the file or folder, or name a link to it.",
        )


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
    unique = f".{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
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
            f"Choose another folder with {parameter('output')}.",
        )
    return RunError(
        f"{path}: cannot write there ({error.strerror or error}).",
        f"{RUN_AGAIN} or choose another folder with {parameter('output')}; what is committed "
        "is kept.",
    )
