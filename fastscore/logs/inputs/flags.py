"""Options that map a log: what errors propose, and what is typed."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from fastscore.errors import InputError
from fastscore.wording import TYPE, as_dict, both


class Flag(NamedTuple):
    """An option that maps something.

    Parameters
    ----------
    option
        ``layout``, ``column`` or ``value``.
    words
        The layout; the column and its path; the column, a word of it and what that means.
    """

    option: Literal["layout", "column", "value"]
    words: tuple[str, ...]

    @property
    def typed(self) -> tuple[str, str]:
        """The option of the command line and its value."""
        *columns, last = self.words
        value = "=".join((":".join(columns), last)) if columns else last
        return f"--{self.option}", value


def layout_flag(name: str) -> Flag:
    """Return the option that names a layout."""
    return Flag("layout", (name,))


def column_flag(name: str, path: str) -> Flag:
    """Return the option that maps a column to a path."""
    return Flag("column", (name, path))


def value_flag(name: str, found: str, meant: str) -> Flag:
    """Return the option that maps a value of a column."""
    return Flag("value", (name, found, meant))


def typed(flags: Iterable[Flag]) -> str:
    """Write options as they are typed in a shell, and as arguments of Python."""
    flags = tuple(flags)
    arguments = [f'layout="{flag.words[0]}"' for flag in flags if flag.option == "layout"]
    columns = {flag.words[0]: flag.words[1] for flag in flags if flag.option == "column"}
    values: dict[str, dict[str, str]] = {}
    for name, found, meant in (flag.words for flag in flags if flag.option == "value"):
        values.setdefault(name, {})[found] = meant
    given: dict[str, Mapping[str, object]] = {"columns": columns, "values": values}
    arguments += [f"{name}={as_dict(mapped)}" for name, mapped in given.items() if mapped]
    return both(" ".join(shlex.join(flag.typed) for flag in flags), ", ".join(arguments))


class UnmappedLogError(InputError):
    """A log that a suite may read if its columns or values are mapped.

    Parameters
    ----------
    message
        As of any error.
    flags
        Options that probably map the log, in part or in full; the hint says to type them.
    unless
        The hint if there are no such options.
    more
        What else there is to say after them.
    """

    def __init__(
        self, message: str, flags: Sequence[Flag], *, unless: str = "", more: str = ""
    ) -> None:
        super().__init__(message, f"{TYPE} {typed(flags)}.{more}" if flags else unless)
        self.flags = tuple(flags)
