"""TOML that users write: configuration, layouts, lexicons, policies."""

import tomllib
from typing import Any

from fastscore.errors import UsageError


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
