"""Tables of TOML files whose values are checked as they are read: lexicons, rubrics, policies."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastscore.errors import UsageError, did_you_mean

_PATTERNS_CHARACTERS = 20_000


def _is_expression(pattern: str) -> bool:
    import polars as pl

    try:
        pl.select(pl.lit("").str.contains(pattern))
    except pl.exceptions.ComputeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class TomlTable:
    """A table of a TOML file. Values are checked as they are read: messages name file and key."""

    source: str  # what messages call the file
    key: str  # the table's own key with dots; empty for the whole file
    values: Mapping[str, Any]  # the table's values by name
    hint: str | None = None  # what an error about a value advises

    def fault(self, name: str, found: object, expected: str) -> UsageError:
        """Return the error that names a value and what is expected."""
        return UsageError(
            f"{self.source}: {self._full(name)} is {found!r:.80}, expected {expected}.",
            self.hint,
        )

    def table(
        self, name: str, required: Collection[str], optional: Collection[str] = ()
    ) -> "TomlTable":
        """Return a table that has all required names, and no others but the optional ones."""
        values = self._mapping(name, "a table")
        table = replace(self, key=self._full(name), values=values)
        table.check_names(required, optional)
        return table

    def tables(
        self, name: str, required: Collection[str], optional: Collection[str] = ()
    ) -> "tuple[TomlTable, ...]":
        """Return a list of tables, each as by `table`."""
        found = self.values[name]
        if not isinstance(found, list):
            raise self.fault(name, found, "a list of tables")
        numbered = {f"{name}[{position}]": entry for position, entry in enumerate(found)}
        entries = replace(self, values=numbered)
        return tuple(entries.table(entry, required, optional) for entry in numbered)

    def flag(self, name: str) -> bool:
        """Return true or false; false where the name is not there."""
        found = self.values.get(name, False)
        if not isinstance(found, bool):
            raise self.fault(name, found, "true or false")
        return found

    def whole(self, name: str, least: int | None = None) -> int:
        """Return a whole number, of at least `least` if that is given."""
        found = self.values[name]
        if type(found) is not int or (least is not None and found < least):
            raise self.fault(name, found, "a whole number" + (f" from {least}" if least else ""))
        return found

    def rate(self, name: str) -> float:
        """Return a number from 0 to 1."""
        found = self.values[name]
        if type(found) not in (int, float) or not 0 <= found <= 1:
            raise self.fault(name, found, "a probability from 0 to 1")
        return float(found)

    def text(self, name: str) -> str:
        """Return a text that is not blank."""
        return self._text(name, self.values[name])

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of one text or more."""
        found = self.values[name]
        if not isinstance(found, list) or not found:
            raise self.fault(name, found, "a list of at least one text")
        return tuple(self._text(name, text) for text in found)

    def texts_by_name(self, name: str) -> dict[str, tuple[str, ...]]:
        """Return a table of lists of one text or more under any names, at least one."""
        found = self._mapping(name, "a table of lists of texts")
        if not found:
            raise self.fault(name, found, "a table of at least one list of texts")
        inner = replace(self, key=self._full(name), values=found)
        return {each: inner.texts(each) for each in found}

    def choices(self, name: str, known: Collection[str]) -> tuple[str, ...]:
        """Return a list of some of the known words."""
        found = self.values[name]
        if not isinstance(found, list) or not found or not set(map(str, found)) <= set(known):
            raise self.fault(name, found, f"a list of some of {', '.join(known)}")
        return tuple(found)

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
        # what is longer takes minutes to compile, or more memory than the expression may have
        if (length := sum(map(len, found))) > _PATTERNS_CHARACTERS:
            raise UsageError(
                f"{self.source}: {self._full(name)} holds {length:,} characters, expected patterns "
                f"of at most {_PATTERNS_CHARACTERS:,} together.",
                self.hint,
            )
        for pattern in found:
            if not _is_expression(pattern):
                raise self.fault(name, pattern, "a regular expression")
        if not _is_expression("(?i)" + "|".join(found)):
            raise self.fault(name, found, "patterns that are one regular expression together")
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
            replace(self, key=self._full(name), values=found).check_names((), known)
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

    def _text(self, name: str, found: object) -> str:
        if not isinstance(found, str) or not found.strip():
            raise self.fault(name, found, "a text that is not blank")
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
