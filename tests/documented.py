"""The commands that documentation and help show, as they stand there."""

import functools
import re
from collections.abc import Iterator
from pathlib import Path

import click

from fastscore.cli import cli

ROOT = Path(__file__).parent.parent
PROGRAMS = ("fastscore ", "score-dialogue ", "python -m benchmarks.")


def pages() -> list[str]:
    """Return the pages that show commands."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in found]
    return [name for name in names if commands_of_page(name)]


def commands_of_page(page: str) -> list[str]:
    """Return the commands of a page's blocks, in order."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [_command(line) for block in blocks for line in block.splitlines() if _is_one(line)]


def commands_of_help() -> dict[str, list[str]]:
    """Return the commands that the help of each command shows, by the words that call it."""
    return {words: found for words, command in _commands() if (found := _shown(command))}


@functools.cache
def commands_by_words() -> dict[str, click.Command]:
    """Return every command by the words that call it."""
    return dict(_commands())


def _commands(
    command: click.Command = cli, words: str = "fastscore"
) -> Iterator[tuple[str, click.Command]]:
    yield words, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{words} {name}")


def _shown(command: click.Command) -> list[str]:
    lines = (command.help or "").splitlines()
    epilog = " ".join((command.epilog or "").split())
    for marker in ("Examples: ", "Example: "):
        if marker in epilog:
            lines += epilog.partition(marker)[2].split("; ")
    return [_command(line) for line in lines if _is_one(line)]


def _is_one(line: str) -> bool:
    return line.strip().startswith(PROGRAMS)


def _command(line: str) -> str:
    """Return a line without what is said of it."""
    return re.split(r"\s{2,}(?=[^-\s])|\s+#", line.strip(), maxsplit=1)[0].strip()
