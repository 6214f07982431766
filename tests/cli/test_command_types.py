"""``--help`` puts options under headings, at most fifteen under one."""

import dataclasses

import click
import pytest
from click.testing import CliRunner

from fastscore.cli.parameters import options_by_heading
from fastscore.settings.options import CHANGES_SCORE, flag_name
from fastscore.suites.registry import load_suite, suite_names
from tests.documented import commands_by_words

MOST = 15


@pytest.mark.parametrize("words", commands_by_words())
def test_every_option_stands_under_one_heading_of_at_most_fifteen(words):
    command = commands_by_words()[words]
    context = click.Context(command, help_option_names=["-h", "--help"])
    headed = options_by_heading(command, context)
    assert all(len(options) <= MOST for options in headed.values())
    listed = [option for options in headed.values() for option in options]
    declared = [
        each
        for each in command.get_params(context)
        if isinstance(each, click.Option) and not each.hidden
    ]
    assert sorted(map(id, listed)) == sorted(map(id, declared))


@pytest.mark.parametrize("suite", suite_names())
def test_the_help_of_a_suite_names_what_changes_the_score(suite):
    shown = CliRunner().invoke(commands_by_words()[f"fastscore score {suite}"], ["--help"]).output
    sections = dict(part.split(":\n", 1) for part in shown.split("\n\n") if ":\n  -" in part)
    headings = list(sections)
    assert headings[0] == CHANGES_SCORE
    assert headings[-1] == "How it runs"
    assert "Where things are" in headings
    for field in dataclasses.fields(load_suite(suite).options):
        heading = field.metadata["heading"]
        assert f"  {flag_name(field.name)} " in sections[heading]
        assert ("change" in heading) == field.metadata["signed"]
