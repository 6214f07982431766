"""Files that appear whole, and on disk, or not at all.

Scope: file systems where ``rename`` within a folder is atomic. A file is written under a
temporary name beside its final one, flushed to the disk and renamed. A crash leaves the old file
or the new one, and perhaps a temporary file, whose name nobody else uses.
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

from fastscore.errors import RunError

TEMPORARY_SUFFIX = ".tmp"

_TEMPORARY_NAME = re.compile(r".+\.\d+-[0-9a-f]{8}\.tmp")


def open_new(path: Path) -> BinaryIO:
    """Open a file that must not exist yet, to be written and read back."""
    return path.open("xb+")


@contextlib.contextmanager
def committed(path: Path, *, synced: bool = True) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path` when the block ends without error.

    It is on disk then, unless that is not asked for. The folder is not synced: `sync_folder` does
    that for several files at once.
    """
    unique = f".{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    temporary = path.with_name(path.name + unique)
    try:
        with open_new(temporary) as file:
            yield file
            file.flush()
            if synced:
                sync_file(file.fileno())
        replace_file(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def is_temporary(name: str) -> bool:
    """Tell whether a file's name is one that `committed` gives."""
    return _TEMPORARY_NAME.fullmatch(name) is not None


def explain(path: Path, error: OSError) -> RunError:
    """Say what kept a file from being written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(
            f"{path}: the disk is full.",
            "Free some space and run the same command again; what is committed is kept.",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return RunError(f"{path}: no permission to write there.", "Choose another folder with -o.")
    return RunError(
        f"{path}: cannot write there ({error.strerror or error}).",
        "Run the same command again or choose another folder with -o; what is committed is kept.",
    )
