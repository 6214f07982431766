"""Words that the command line and Python spell differently: both, until a message is shown.

A message names an option by `parameter` and a command by `command_text`. Each puts both spellings
into the text, between code points that no text contains. `worded` keeps the reader's spelling.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

IN_PYTHON = frozenset(
    [
        "agreement",
        "analyse",
        "check",
        "compare",
        "example",
        "explain",
        "inspect",
        "layouts",
        "metrics",
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
