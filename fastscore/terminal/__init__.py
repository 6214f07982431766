"""The one place where text leaves for people and pipes: results on stdout, all else on stderr."""

import sys
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console


def write(text: str) -> None:
    """Write a result to stdout, character by character as it is."""
    click.echo(text, nl=False, color=True)


def write_line(text: object = "") -> None:
    """Write a line of results to stdout; into a pipe without colours."""
    click.echo(text)


def write_note(text: object, stream: TextIO | None = None) -> None:
    """Write a line that is no result: to stderr, unless a stream is named."""
    click.echo(text, file=stream, err=True)


def result_console() -> "Console":
    """Return a console on stdout, as wide as the terminal or COLUMNS says, without markup."""
    from rich.console import Console

    class ResultConsole(Console):
        def on_broken_pipe(self) -> NoReturn:
            """Leave a closed pipe to the command line: it is no failed check."""
            raise BrokenPipeError

    return ResultConsole(highlight=False, markup=False, emoji=False)


def stderr_is_terminal() -> bool:
    """Tell whether somebody may watch what stderr shows."""
    return sys.stderr.isatty()


def note_console() -> "Console":
    """Return a console on stderr, for what is shown while work goes on."""
    from rich.console import Console

    return Console(file=sys.stderr)


def plain(text: str) -> str:
    """Return a text without what a terminal would obey: control characters by their escapes."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
