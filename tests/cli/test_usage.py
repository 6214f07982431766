"""What was typed and cannot be used is refused in one sentence: found, expected, an example."""

import dataclasses

import click
import pytest
from click.testing import CliRunner

from fastscore.cli.parameters import click_message, options_by_heading
from fastscore.settings.options import CHANGES_SCORE, flag_name
from fastscore.suites.registry import load_suite, suite_names
from tests.conftest import fastscore_command
from tests.documented import commands_by_words

SUITES = (
    "'group_travel', 'guest_simulation', 'memory_finance', 'preference_shift', 'score_dialogue'"
)
MEMORY = "expected an integer from 256 to 8,796,093,022,207 (MiB), such as 4096."
JUDGE = "judge chats.jsonl --model llama3 --base-url http://127.0.0.1:11434/v1 -o judgements"
SCORE = "score score_dialogue . -o run"
REFUSED = {
    f"{SCORE} --max-memory 4GB": f"max_memory is '4GB', {MEMORY}",
    f"{SCORE} --max-memory 100": f"max_memory is 100, {MEMORY}",
    f"{SCORE} --max-rejects 5%": "max_rejects is '5%', expected a number from 0 to 1, "
    "such as 0.001.",
    f"{SCORE} --max-rejects nan": "max_rejects is nan, expected a number from 0 to 1.",
    f"{SCORE} --lex-weight abc": "lex_weight is 'abc', expected a number from 0 to 1, such as 0.5.",
    f"{SCORE} --limit ten": "limit is 'ten', expected an integer of at least 1.",
    f"{SCORE} --semantic x": "semantic is 'x'. Known: 'calibrated', 'cosine', 'jaccard'.",
    f"{SCORE} --lexweight 1": "`fastscore score score_dialogue` has no option '--lexweight'. "
    "Did you mean '--lex-weight'?",
    f"{SCORE} --model x": "`fastscore score score_dialogue` has no option '--model'. "
    "Did you mean '--embedder'?",
    f"{SCORE} --zzz": "`fastscore score score_dialogue` has no option '--zzz'. "
    "`fastscore score score_dialogue --help` lists what it takes.",
    f"{SCORE} --config no.toml": "config: File 'no.toml' does not exist. "
    "`fastscore score score_dialogue --help` lists what it takes.",
    "compare run --alpha 5": "alpha is 5.0, expected a number above 0 and below 1, such as 0.05.",
    "compare run --judge-range 1 x": "judge_range is 'x', expected 2 numbers.",
    "summary": "No RUN is named. For example: `fastscore summary run`.",
    "summary run more": "Got unexpected extra argument (more). "
    "`fastscore summary --help` lists what it takes.",
    "inspect": "No LOGS are named. For example: `fastscore inspect logs`.",
    "judge logs": f"No model is named. For example: `fastscore {JUDGE}`.",
    "models export": "No NAME is named. Known: 'minilm-l6-v2', 'mxbai-embed-large-v1', "
    "'paraphrase-multilingual-minilm-l12-v2'. For example: `fastscore models export minilm-l6-v2`.",
    "example": f"No SUITE is named. Known: {SUITES}. "
    "For example: `fastscore example score_dialogue -o example`.",
    "example score-dialogue": "suite is 'score-dialogue'. Did you mean 'score_dialogue'? "
    f"Known: {SUITES}.",
    "score score-dialogue .": f"Unknown suite 'score-dialogue'. Did you mean 'score_dialogue'? "
    f"Known: {SUITES}. For a suite of your own, import its file first, or install it with an "
    "entry point. In a shell, for mine.py: python -c 'import mine; from fastscore.cli import main; "
    "main()' COMMAND.",
    "score preference_shift . -o run": "No catalogue is named: concepts are values of its items. "
    'Set catalogue to a file with a line for each item, such as {"name": "Heat", '
    '"genre": ["crime"], "actor": ["Al Pacino"]}.',
    "version": "No such command 'version' of `fastscore`. Type `fastscore --version`.",
    "plot run": "No such command 'plot' of `fastscore`. Type `fastscore report RUN`.",
    "score_dialogue logs": "No such command 'score_dialogue' of `fastscore`. Type `fastscore score "
    "score_dialogue LOGS -o RUN`.",
    "score-dialogue a": "No such command 'score-dialogue' of `fastscore`. Type `fastscore score "
    "score_dialogue LOGS -o RUN`.",
    "leaderboard run": "No such command 'leaderboard' of `fastscore`. Type `fastscore compare RUN "
    "--by COLUMN`.",
    "summary run --csv": "`fastscore summary` has no option '--csv'. Did you mean '--format csv'?",
    "annotate .": "No such command '.' of `fastscore annotate`. A command comes before a path. "
    "Known: 'concepts', 'states'.",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_a_refusal_is_one_sentence_with_what_to_type(typed):
    done = fastscore_command(typed.split())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {REFUSED[typed]}\n"


def test_a_command_of_another_package_needs_no_example():
    command = click.Command("weigh", params=[click.Argument(["logs"])], callback=lambda logs: None)
    with pytest.raises(click.MissingParameter) as raised:
        command.main([], prog_name="weigh", standalone_mode=False)
    told = "No LOGS is named. `weigh --help` lists what it takes."
    assert click_message(raised.value) == f"Error: {told}"


def test_a_refused_environment_variable_is_named():
    done = fastscore_command(SCORE.split(), FASTSCORE_MAX_MEMORY="8G")
    assert done.stderr == f"Error: FASTSCORE_MAX_MEMORY is '8G', {MEMORY}\n"


def test_the_help_names_the_suite_of_a_verb():
    shown = " ".join(fastscore_command(["--help"]).stdout.split())
    assert "catalogue For preference_shift: see `fastscore catalogue --help`." in shown


@pytest.mark.parametrize("words", commands_by_words())
def test_every_option_stands_under_one_heading_of_at_most_fifteen(words):
    command = commands_by_words()[words]
    context = click.Context(command, help_option_names=["-h", "--help"])
    headed = options_by_heading(command, context)
    assert all(len(options) <= 15 for options in headed.values())
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
