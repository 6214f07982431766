"""The commands and Python blocks that documentation and help show."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from fastscore.cli import cli

ROOT = Path(__file__).parent.parent
PROGRAMS = ("fastscore ", "score-dialogue ", "python -m benchmarks.", "jq ", "mkdir ")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Step:
    """A command or a Python block of a page.

    Its output is the `text` block that follows, or the lines below a command of a `console` block.
    """

    is_python: bool
    code: str
    output: str = ""


def pages() -> list[str]:
    """Return the pages that show commands or Python."""
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in found]
    return [name for name in names if steps_of_page(name)]


def steps_of_page(page: str) -> list[Step]:
    """Return the commands and the Python blocks of a page, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    steps = list[Step]()
    end = 0
    for block in _BLOCK.finditer(text):
        language, code = block[1], block[2]
        is_next = not text[end : block.start()].strip()
        end = block.end()
        if language == "text" and is_next and steps:
            steps[-1] = replace(steps[-1], output=code)
        elif language == "python":
            steps.append(Step(is_python=True, code=code))
        elif language in ("sh", ""):
            lines = code.replace("\\\n", " ").splitlines()
            steps += [Step(is_python=False, code=_command(line)) for line in lines if _is_one(line)]
        elif language == "console":
            for command in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
                line, _, output = command.partition("\n")
                steps.append(Step(is_python=False, code=_command(line), output=output))
    return steps


def commands_of_page(page: str) -> list[str]:
    """Return the commands of a page's blocks, in order."""
    return [step.code for step in steps_of_page(page) if not step.is_python]


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
    """Return a line without its comment."""
    return re.split(r"\s{2,}(?=[^-\s])|\s+#", line.strip(), maxsplit=1)[0].strip()
