"""Output for people and pipes: results on stdout, everything else on stderr."""

import sys
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from fastscore.wording import worded

if TYPE_CHECKING:
    from rich.console import Console


def write(text: str) -> None:
    """Write a result to stdout, unchanged."""
    click.echo(text, nl=False, color=True)


def write_line(text: object = "") -> None:
    """Write a line of results to stdout, without colours in a pipe."""
    click.echo(text)


def write_note(text: object, stream: TextIO | None = None) -> None:
    """Write a line that is not a result, to stderr unless a stream is given."""
    click.echo(worded(str(text)), file=stream, err=True)


def result_console() -> "Console":
    """Return a console on stdout, as wide as the terminal or COLUMNS, without markup."""
    from rich.console import Console

    class ResultConsole(Console):
        def on_broken_pipe(self) -> NoReturn:
            """Leave a closed pipe to the command line: it is not an error."""
            raise BrokenPipeError

    return ResultConsole(highlight=False, markup=False, emoji=False)


def stderr_is_terminal() -> bool:
    """Return whether stderr is a terminal."""
    return sys.stderr.isatty()


def note_console() -> "Console":
    """Return a console on stderr, for progress."""
    from rich.console import Console

    return Console(file=sys.stderr)


def plain(text: str) -> str:
    """Return a text with control characters escaped, so that it cannot control the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
