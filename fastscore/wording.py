"""Words that the command line and Python spell differently: both, until a message is shown.

A message names an option by `parameter` and a command by `command_text`. Each puts both spellings
into the text, between code points that no text contains. `worded` keeps the reader's spelling.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal, NamedTuple

IN_PYTHON = frozenset(
    [
        "agreement",
        "analyse",
        "annotate",
        "check",
        "compare",
        "example",
        "explain",
        "inspect",
        "judge",
        "layouts",
        "metrics",
        "rank",
        "report",
        "runs",
        "score",
        "summary",
    ]
)
"""Verbs of the command line that are functions of the package with the same name."""

_BEGIN, _BETWEEN, _END = "\ufdd0", "\ufdd1", "\ufdd2"
_FLAGS = {
    "columns": "--column",
    "judge_columns": "--judge-column",
    "judge_scale": "--judge-range",
    "levels": "--level",
    "maximum": "--max",
    "minimum": "--min",
    "output": "-o",
    "tables": "--table",
    "values": "--value",
}
"""The flags of parameters that are not called as these."""

_speaks_command_line = False


@contextmanager
def command_line_words() -> Iterator[None]:
    """Have messages speak command line: what a user of the command line reads."""
    global _speaks_command_line
    before, _speaks_command_line = _speaks_command_line, True
    try:
        yield
    finally:
        _speaks_command_line = before


def both(typed: str, called: str) -> str:
    """Return a passage of a message with what is typed and what Python calls it."""
    return f"{_BEGIN}{typed}{_BETWEEN}{called}{_END}"


def worded(text: str) -> str:
    """Return a message in the words of whoever reads it."""
    return spellings(text)[0 if _speaks_command_line else 1]


def spellings(text: str) -> tuple[str, str]:
    """Return a message in the words of the command line, and in Python's."""
    plain, *passages = text.split(_BEGIN)
    typed = called = plain
    for passage in passages:
        pair, _, after = passage.partition(_END)
        one, _, other = pair.partition(_BETWEEN)
        typed, called = typed + one + after, called + other + after
    return typed, called


def parameter(name: str, value: object = None) -> str:
    """Name an option by its name in Python, with the value that it is given, if any.

    A value in capitals, such as ``FILE``, is a placeholder.
    """
    flag = _FLAGS.get(name, "--" + name.replace("_", "-"))
    if value is None:
        return both(flag, f"{name}=" if name == "output" else name)
    if value is True:
        return both(flag, f"{name}=True")
    is_bare = not isinstance(value, str) or value.isupper()
    return both(f"{flag} {value}", f"{name}={value}" if is_bare else f'{name}="{value}"')


def command_text(verb: str, *words: str) -> str:
    """Name a command, as a call if Python has one; a word in capitals is a placeholder."""
    typed = f"`{' '.join(('fastscore', verb, *words))}`"
    if verb not in IN_PYTHON:
        return typed
    arguments = (word.lower() if word.isupper() else f'"{word}"' for word in words)
    return both(
        typed, f"`fastscore.{verb}({', '.join(arguments)})`" if words else f"`fastscore.{verb}`"
    )


def as_dict(values: Mapping[str, object]) -> str:
    """Write a dict of texts, or of dicts of them, as it is typed in Python."""
    items = (
        f'"{name}": {as_dict(value) if isinstance(value, Mapping) else _quoted(value)}'
        for name, value in values.items()
    )
    return f"{{{', '.join(items)}}}"


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


RUN_AGAIN = both("Run the same command again", "Score with the same arguments again")
SCORE_AGAIN = both("Run its `fastscore score` command again", "Score with its arguments again")
SCORE_SAME_AGAIN = both(
    "Run the same `fastscore score` command again", "Score with the same arguments again"
)
SCORE_A_RUN = both(
    "`fastscore score SUITE INPUT... -o RUN`", "`fastscore.score(logs, suite, output=run)`"
)
TYPE = both("Type", "Give")
"""Before options."""


class Flag(NamedTuple):
    """An option that maps something.

    Parameters
    ----------
    option
        ``layout``, ``column``, ``value``, or an option of chats.
    words
        The layout; the column and its path; the column, a word of it and what that means; the value
        of an option.
    """

    option: Literal["layout", "column", "value", "alternate", "sort_by", "dialogue", "without"]
    words: tuple[str, ...]

    @property
    def typed(self) -> tuple[str, str]:
        """The option of the command line and its value."""
        *columns, last = self.words
        value = "=".join((":".join(columns), last)) if columns else last
        return f"--{self.option.replace('_', '-')}", value


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
    single = [flag for flag in flags if flag.option not in ("column", "value")]
    arguments = [f'{flag.option}="{flag.words[0]}"' for flag in single]
    columns = {flag.words[0]: flag.words[1] for flag in flags if flag.option == "column"}
    values: dict[str, dict[str, str]] = {}
    for name, found, meant in (flag.words for flag in flags if flag.option == "value"):
        values.setdefault(name, {})[found] = meant
    given: dict[str, Mapping[str, object]] = {"columns": columns, "values": values}
    arguments += [f"{name}={as_dict(mapped)}" for name, mapped in given.items() if mapped]
    return both(" ".join(shlex.join(flag.typed) for flag in flags), ", ".join(arguments))
