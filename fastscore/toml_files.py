"""TOML that users write: configuration, layouts, lexicons, policies."""

import tomllib
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError
from fastscore.option_files import TEXT_BYTES, read_option_file


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
