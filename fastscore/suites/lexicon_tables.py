"""Lexicons as files: TOML tables of words, every value of which is checked as it is read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import polars as pl

from fastscore.errors import UsageError, did_you_mean
from fastscore.options import TEXT_BYTES, parse_toml, read_option_file
from fastscore.wording import parameter

_FILE = "lexicon.toml"


@dataclass(frozen=True, slots=True)
class LexiconTable:
    """A table of a lexicon. What is read from it is checked: messages name the file and the key.

    Parameters
    ----------
    source
        What messages call the file.
    key
        The table's own key with dots; empty for the whole file.
    values
        What the table holds, by name.
    """

    source: str
    key: str
    values: Mapping[str, Any]

    def fault(self, name: str, found: object, expected: str) -> UsageError:
        """Return the error that names a value and what is expected."""
        return UsageError(
            f"{self.source}: {self._full(name)} is {found!r:.80}, expected {expected}.",
            f"The built-in {_FILE} shows the layout.",
        )

    def table(
        self, name: str, required: Collection[str], optional: Collection[str] = ()
    ) -> "LexiconTable":
        """Return a table that has all required names, and no others but the optional ones."""
        table = LexiconTable(self.source, self._full(name), self._mapping(name, "a table"))
        table.check_names(required, optional)
        return table

    def tables(
        self, name: str, required: Collection[str], optional: Collection[str] = ()
    ) -> "tuple[LexiconTable, ...]":
        """Return a list of tables, each as by `table`."""
        found = self.values[name]
        if not isinstance(found, list):
            raise self.fault(name, found, "a list of tables")
        numbered = {f"{name}[{position}]": entry for position, entry in enumerate(found)}
        entries = LexiconTable(self.source, self.key, numbered)
        return tuple(entries.table(entry, required, optional) for entry in numbered)

    def flag(self, name: str) -> bool:
        """Return true or false; false where the name is not there."""
        found = self.values.get(name, False)
        if not isinstance(found, bool):
            raise self.fault(name, found, "true or false")
        return found

    def word(self, name: str) -> str:
        """Return a word: text on one line that is not blank."""
        return self._word(name, self.values[name])

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list of words, which may be empty."""
        return self._words(name, self.values[name])

    def patterns(self, name: str) -> tuple[str, ...]:
        """Return a list of one regular expression or more, in the syntax of polars."""
        found = self.values[name]
        if not isinstance(found, list) or not found:
            raise self.fault(name, found, "a list of at least one pattern")
        for pattern in found:
            if not isinstance(pattern, str) or not pattern.strip():
                raise self.fault(name, pattern, "a pattern that is not blank")
            try:
                pl.select(pl.lit("").str.contains(pattern))
            except pl.exceptions.ComputeError as error:
                raise self.fault(name, pattern, "a regular expression") from error
        return tuple(found)

    def word_by_name(self, name: str) -> dict[str, str]:
        """Return a table of words under any names."""
        found = self._mapping(name, "a table of words")
        return {inner: self._word(f"{name}.{inner}", word) for inner, word in found.items()}

    def words_by_name(
        self, name: str, known: Collection[str] | None = None
    ) -> dict[str, tuple[str, ...]]:
        """Return a table of lists of words under any names, or some of the known ones."""
        found = self._mapping(name, "a table of lists of words")
        if known is not None:
            LexiconTable(self.source, self._full(name), found).check_names((), known)
        return {inner: self._words(f"{name}.{inner}", words) for inner, words in found.items()}

    def check_names(self, required: Collection[str], optional: Collection[str] = ()) -> None:
        """Refuse a table with another name than these, or without a required one."""
        known = (*required, *optional)
        for name in self.values:
            if name not in known:
                raise UsageError(
                    f"{self.source}: unknown key {self._full(name)}.", did_you_mean(name, known)
                )
        for name in required:
            if name not in self.values:
                raise UsageError(f"{self.source}: {self._full(name)} is missing.")

    def _full(self, name: str) -> str:
        return f"{self.key}.{name}" if self.key else name

    def _mapping(self, name: str, expected: str) -> dict[str, Any]:
        found = self.values[name]
        if not isinstance(found, dict):
            raise self.fault(name, found, expected)
        return found

    def _word(self, name: str, found: object) -> str:
        # texts that are searched as one are joined by line ends, which no word may bridge
        if not isinstance(found, str) or not found.strip() or "\n" in found:
            raise self.fault(name, found, "a word that is not blank, on one line")
        return found

    def _words(self, name: str, found: object) -> tuple[str, ...]:
        if not isinstance(found, list):
            raise self.fault(name, found, "a list of words")
        return tuple(self._word(name, word) for word in found)


def lexicon_content(path: str, package: str) -> bytes:
    """Return the bytes of a lexicon.

    Parameters
    ----------
    path
        A file; empty for the built-in one.
    package
        The suite's package, which holds the built-in file.

    Raises
    ------
    UsageError
        The file cannot be read.
    """
    if not path:
        return _built_in(package)
    try:
        return read_option_file(path, TEXT_BYTES)
    except OSError as error:
        raise UsageError(
            f"{parameter('lexicon')} {path}: cannot be read: {error.strerror}."
        ) from error


@cache
def _built_in(package: str) -> bytes:
    return files(package).joinpath(_FILE).read_bytes()


def parse_lexicon(path: str, content: bytes, required: Collection[str]) -> LexiconTable:
    """Parse what `lexicon_content` returned for a path.

    Parameters
    ----------
    path, content
        The file and its bytes.
    required
        The names at its top level: all of them, and no others.

    Raises
    ------
    UsageError
        The file is not TOML, lacks a name or has an unknown one.
    """
    source = path or "the built-in lexicon"
    table = LexiconTable(source, "", parse_toml(content, source))
    table.check_names(required)
    return table
