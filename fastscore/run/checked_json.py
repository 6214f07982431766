"""JSON files that carry a checksum of their own content: an edited one is not taken for true."""

from pathlib import Path
from typing import Any

import orjson

from fastscore.content_hash import hash_bytes
from fastscore.run.commit import Committed, commit_json

CHECKSUM = "checksum"


class AlteredFileError(Exception):
    """A file that is no JSON object, or whose content is not what its checksum was made of."""


def commit_checked(path: Path, content: dict[str, Any]) -> Committed:
    """Commit an object and the checksum of its members."""
    return commit_json(path, {**content, CHECKSUM: _checksum(content)})


def read_checked(path: Path) -> dict[str, Any]:
    """Read an object that `commit_checked` wrote, without its checksum.

    Raises
    ------
    AlteredFileError
        The file is no JSON object, has no checksum or another one.
    OSError
        The file cannot be read.
    """
    try:
        content = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise AlteredFileError(str(error)) from error
    if not isinstance(content, dict):
        raise AlteredFileError(f"a JSON {type(content).__name__}, expected an object")
    stated = content.pop(CHECKSUM, None)
    if stated != _checksum(content):
        raise AlteredFileError("its content differs from its checksum")
    return content


def _checksum(content: dict[str, Any]) -> str:
    # what is read back gives the same bytes: orjson prints the shortest form of a float
    return hash_bytes(orjson.dumps(content, option=orjson.OPT_SORT_KEYS))
