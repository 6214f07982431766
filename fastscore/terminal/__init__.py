"""Output for people and pipes: results on stdout, everything else on stderr."""

import contextlib
import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from rich.console import Console


# Of control characters only line ends and tabs reach a terminal, and no mark of direction does.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n)"
)


def escaped(text: str) -> str:
    """Return a text whose characters can neither control a terminal nor turn what it shows."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _echo(text: str, stream: TextIO | None, *, end: str = "", colour: bool | None = None) -> None:
    """Write to a stream: the only way out for text that rich does not lay out."""
    if stream is None:  # Python without a console
        return
    text = escaped(text) if stream.isatty() else text
    try:
        click.echo(text + end, file=stream, nl=False, color=colour)
    except BrokenPipeError:
        drop(stream)  # a reader that has seen enough changes neither the work nor its exit code


def write(text: str) -> None:
    """Write a result to stdout, unchanged unless that is a terminal."""
    _echo(text, sys.stdout, colour=True)


def write_line(text: object = "") -> None:
    """Write a line of results to stdout, without colours in a pipe."""
    _echo(str(text), sys.stdout, end="\n")


def write_wrapped(text: str, indent: int) -> None:
    """Write lines to stdout; on a narrower terminal each continues below, indented."""
    if sys.stdout is not None and sys.stdout.isatty():
        width = shutil.get_terminal_size().columns
        cut = textwrap.TextWrapper(width, subsequent_indent=" " * min(indent, width // 2))
        cut.break_long_words = cut.break_on_hyphens = False
        text = "\n".join(cut.fill(line) if len(line) > width else line for line in text.split("\n"))
    write_line(text)


def write_note(text: object) -> None:
    """Write a line that is not a result, to stderr."""
    try:
        _echo(str(text), sys.stderr, end="\n")
    except OSError:
        drop(sys.stderr)  # a full disk, or a reader that has gone, ends no work


def drop(stream: IO[str]) -> None:
    """Have a stream that cannot be written to end nowhere, at exit as well."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def prepare_streams() -> None:
    """Let no stream fail for what it lacks: a letter of its encoding, or a descriptor."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # stdout must fail; files opened later must not get its number
            is_read = number < 2
            descriptor = os.open(os.devnull, os.O_RDONLY if is_read else os.O_WRONLY)
            if descriptor != number:
                os.dup2(descriptor, number)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _console_type() -> "type[Console]":
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        """A console whose texts are escaped on a terminal; its own controls are not."""

        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            if self.file.isatty():
                buffer = [
                    each if each.control else Segment(escaped(each.text), each.style)
                    for each in buffer
                ]
            return super()._render_buffer(buffer)

        def _write_buffer(self) -> None:
            try:
                super()._write_buffer()
            except OSError as error:
                if self.file is not sys.stderr and not isinstance(error, BrokenPipeError):
                    raise
                del self._buffer[:]
                drop(self.file)

    return SafeConsole


def result_console() -> "Console":
    """Return a console on stdout, as wide as the terminal or COLUMNS, without markup."""
    return _console_type()(highlight=False, markup=False, emoji=False)


def stderr_is_terminal() -> bool:
    """Return whether stderr is a terminal."""
    return bool(sys.stderr) and sys.stderr.isatty()


def note_console() -> "Console":
    """Return a console on stderr, for progress."""
    return _console_type()(file=sys.stderr)


def wrapped(name: str, width: int) -> str:
    """Break a name into lines, after a space, -, _, / or : if a line has one, else anywhere."""
    lines = [""]
    for part in re.findall(r"[^-_/: ]*[-_/: ]?", name):
        for start in range(0, len(part), width):
            piece = part[start : start + width]
            if len(lines[-1]) + len(piece) > width:
                lines.append("")
            lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def plain(text: str) -> str:
    """Return a text with control characters escaped, so that it cannot control the terminal."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )
