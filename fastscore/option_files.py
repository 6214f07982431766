"""Files that options name, read whole up to a bound, and TOML that users write."""

import errno
import os
import select
import stat
import tomllib
from pathlib import Path
from typing import Any

from fastscore_jit.stopping import POLL_SECONDS, raise_if_stopped

from fastscore.errors import UsageError

TEXT_BYTES = 16 << 20
"""Maximum size of configurations, layouts, lexicons and other TOML files."""
TABLE_BYTES = 1 << 30
"""Maximum size of catalogues, personas, annotations and aliases."""

_STEP = 1 << 20


def read_option_file(
    path: str | os.PathLike[str], most: int = TABLE_BYTES, *, takes_pipe: bool = False
) -> bytes:
    """Return a file's content; waiting for a pipe can be interrupted.

    Parameters
    ----------
    path
        The file.
    most
        The most bytes that it may have.
    takes_pipe
        Whether it may be a pipe: it is read only once.

    Raises
    ------
    OSError
        It cannot be read, is larger, or is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        is_pipe = takes_pipe and stat.S_ISFIFO(status.st_mode)
        if not (is_pipe or stat.S_ISREG(status.st_mode)):
            raise OSError(errno.EINVAL, "it is no regular file: write its content to one")
        if status.st_size > most:
            raise _too_large(most)
        parts, size = [], 0
        while part := _read(descriptor, is_pipe=is_pipe):
            size += len(part)
            if size > most:
                raise _too_large(most)
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _read(descriptor: int, *, is_pipe: bool) -> bytes:
    """Read some bytes, none at the end; of a pipe once there are some."""
    raise_if_stopped()
    if is_pipe:
        waiting = select.poll()
        waiting.register(descriptor, select.POLLIN)
        while not waiting.poll(1000 * POLL_SECONDS):
            raise_if_stopped()
    try:
        return os.read(descriptor, _STEP)
    except BlockingIOError:
        raise OSError(errno.EINVAL, "it is no file on disk and holds nothing now") from None


def _too_large(most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is larger than {most >> 20:,} MiB")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or a pipe.

    Raises
    ------
    UsageError
        It cannot be read, is larger than `TEXT_BYTES`, or is not TOML.
    """
    try:
        content = read_option_file(path, TEXT_BYTES, takes_pipe=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from error
    return parse_toml(content, str(path))


def parse_toml(content: bytes, name: str) -> dict[str, Any]:
    """Parse a TOML file's content.

    Parameters
    ----------
    content
        The file's bytes.
    name
        What the file is called, for messages.

    Raises
    ------
    UsageError
        It is not TOML, not UTF-8, or nested too deeply.
    """
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{name}: not TOML: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply, expected tables of plain values.") from error
