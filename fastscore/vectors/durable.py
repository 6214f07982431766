"""Files that appear whole, and on disk, or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

TEMPORARY_SUFFIX = ".tmp"


def open_new(path: Path) -> BinaryIO:
    """Open a file that must not exist yet."""
    return path.open("xb")


@contextlib.contextmanager
def committed(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that becomes `path`, synced, when the block ends without error."""
    unique = f".{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    temporary = path.with_name(path.name + unique)
    try:
        with open_new(temporary) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
