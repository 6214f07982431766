"""Lexicons as files: TOML tables of words."""

from collections.abc import Collection
from functools import cache
from importlib.resources import files

from fastscore.errors import UsageError
from fastscore.options import TEXT_BYTES, TomlTable, parse_toml, read_option_file

_FILE = "lexicon.toml"


def lexicon_content(path: str, package: str) -> bytes:
    """Return the bytes of a lexicon."""
    if not path:
        return _built_in(package)
    try:
        return read_option_file(path, TEXT_BYTES)
    except OSError as error:
        raise UsageError(f"lexicon {path}: cannot be read: {error.strerror}.") from error


@cache
def _built_in(package: str) -> bytes:
    return files(package).joinpath(_FILE).read_bytes()


def parse_lexicon(path: str, content: bytes, required: Collection[str]) -> TomlTable:
    """Parse what `lexicon_content` returned for a path."""
    source = path or "the built-in lexicon"
    hint = f"The built-in {_FILE} shows the layout."
    table = TomlTable(source, "", parse_toml(content, source), hint)
    table.check_names(required)
    return table
