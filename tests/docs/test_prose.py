"""User pages and `--help` keep to the limits of plain prose."""

import functools
import inspect
import re
from itertools import chain

import click
import pytest

from fastscore.cli.parameters import options_by_heading
from fastscore.suites.registry import load_suite, suite_names
from tests.docs import prose
from tests.documented import ROOT, commands_by_words

PROJECT = ("design", "decisions", "benchmarks", "dependencies", "reliability")
"""Pages of docs/ for the people who develop fastscore."""

HELP = "help"


def user_pages():
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    names = [path.relative_to(ROOT).as_posix() for path in found]
    return [name for name in names if not name.removeprefix("docs/").startswith(PROJECT)]


@functools.cache
def texts_of(name):
    """Return the texts of a page, or of all `--help`, and the number of code blocks."""
    if name == HELP:
        return tuple(texts_of_help()), 0
    page = (ROOT / name).read_text(encoding="utf-8")
    return tuple(prose.texts_of_page(page)), prose.measure_page(page).blocks


def texts_of_help():
    """Yield the paragraphs, options and epilogs of all commands; the line is the command's."""
    for number, (words, command) in enumerate(commands_by_words().items()):
        context = click.Context(command, info_name=words)
        texts = [command.help or "", (command.epilog or "").partition("Example")[0]]
        paragraphs = [inspect.cleandoc(text.replace("\f", "")).split("\n\n") for text in texts]
        for text in chain.from_iterable(paragraphs):
            if text and not text.startswith("\b"):
                yield prose.Text(number, " ".join(text.split()))
        for options in options_by_heading(command, context).values():
            for option in options:
                if option.help:
                    yield prose.Text(number, " ".join(option.help.split()))


def figures_of(name):
    """Return the figures of a page, or of all `--help`."""
    texts, blocks = texts_of(name)
    found = prose.measure([each.text for each in texts], blocks)
    return {
        "mean": round(found.mean, 1),
        "long": round(100 * found.long_share, 1),
        "semicolons": round(100 * found.semicolon_share, 1),
        "banned": len(prose.banned_in(list(texts))),
    }


LIMITS = {
    "mean": prose.MEAN_WORDS,
    "long": 100 * prose.LONG_SHARE,
    "semicolons": 100 * prose.SEMICOLONS,
    "banned": 0,
}


def message(name):
    """Name each banned construction and each long sentence with its line."""
    places = list(commands_by_words())
    texts, _ = texts_of(name)

    def place(line):
        return places[line] + " --help" if name == HELP else f"{name}:{line}"

    lines = [
        f"{place(line)}: {found!r}: {instead}"
        for line, found, instead in prose.banned_in(list(texts))
    ]
    for each in texts:
        for sentence in prose.sentences(prose.plain(each.text)):
            if prose.measure([sentence]).long:
                lines.append(f"{place(each.line)}: more than 30 words: {sentence[:60]} ...")
            if ";" in sentence:
                lines.append(f"{place(each.line)}: semicolon: {sentence[:60]} ...")
    return "\n".join(["", *lines])


@pytest.mark.parametrize("name", [*user_pages(), HELP])
def test_a_text_keeps_to_the_limits(name):
    found = figures_of(name)
    above = {key: value for key, value in found.items() if value > LIMITS[key]}
    assert not above, f"{name} has {found}, allowed {LIMITS}{message(name)}"


def test_user_pages_show_code():
    total = sum(
        (prose.measure_page((ROOT / name).read_text("utf-8")) for name in user_pages()),
        prose.Figures(0, 0, 0, 0, 0),
    )
    assert total.blocks_per_thousand_words >= prose.CODE_BLOCKS


@pytest.mark.parametrize("name", suite_names())
def test_descriptions_of_output_columns_are_plain(name):
    for table in load_suite(name).tables:
        for column in table.columns:
            text = prose.Text(1, column.description)
            assert not prose.banned_in([text]), f"{table.name}.{column.name}"
            assert not re.search(r";|^What ", column.description), f"{table.name}.{column.name}"
