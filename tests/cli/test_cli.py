"""The command line as a user meets it: words, exit codes, streams."""

import json
import re
import shutil
import subprocess
import sys

import pytest
from click.testing import CliRunner

import fastscore
from fastscore.api.examples import write_example
from fastscore.cli import _run, cli
from fastscore.errors import EXIT_INCOMPLETE
from tests.conftest import fastscore_command, fastscore_process, python_process, without_reader
from tests.documented import commands_by_words
from tests.run.logs import write_logs

LEXICAL = ("--lex-weight", "1")


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "logs"
    write_logs(folder)
    return folder


@pytest.fixture(scope="module")
def run(logs):
    path = logs.parent / "run"
    done = fastscore_command(["score", "score_dialogue", logs, "-o", path, *LEXICAL])
    assert done.returncode == 0, done.stderr
    return path


def test_an_interrupt_within_an_eval_ends_with_the_documented_code(tmp_path):
    # modules that are loading evaluate texts: those of their named tuples and data classes
    (tmp_path / "interrupted.py").write_text(
        "import signal\n"
        "from fastscore import cli\n"
        "cli.cli.main = lambda **_: eval('signal.raise_signal(signal.SIGINT)')\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (
        130,
        "Interrupted; the same command finishes the work.\n",
    )


def test_memory_that_is_not_to_be_had_is_no_traceback(monkeypatch, capsys):
    def take(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(cli, "main", take)
    assert _run() == EXIT_INCOMPLETE
    assert "gives no more memory" in capsys.readouterr().err


def test_help_imports_no_engine():
    code = (
        "import sys\n"
        "from fastscore.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'polars', 'numba', 'numpy', 'onnxruntime', 'faiss', 'pyarrow', 'rich'}\n"
        "heavy |= {'secrets'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = python_process(code)
    assert done.returncode == 0, done.stderr


SAID = {
    "fastscore": "lex_weight is --lex-weight, and --lex_weight is taken, too.",
    "fastscore analyse": "a run of preference_shift",
}
"""What the help of a command must say."""


@pytest.mark.parametrize("words", commands_by_words())
def test_every_command_has_help(words):
    asked = [*words.split()[1:], "--help"]
    done = CliRunner().invoke(cli, asked, prog_name="fastscore", terminal_width=80)
    assert done.exit_code == 0
    assert max(map(len, done.output.splitlines())) <= 80
    assert not re.search(r"[^ ]-\n| -\S+ \\\n +[^ -]", done.output)  # a flag, or it and its value
    assert done.output.startswith(f"Usage: {words} ")
    assert SAID.get(words, "") in " ".join(done.output.split())
    assert "...\n" not in done.output.partition("\nCommands:")[2]  # no sentence is cut
    shown = done.output.replace(" \\\n", " ")  # as a shell joins lines
    lines = {" ".join(line.split()) for line in shown.splitlines()}
    examples = (commands_by_words()[words].epilog or "").partition("Example")[2]
    for example in examples.partition(": ")[2].split("; "):
        assert " ".join(example.split()) in lines


def test_results_go_to_stdout_and_progress_to_stderr(run, logs):
    again = fastscore_command(["score", "score_dialogue", logs, "-o", run, *LEXICAL])
    assert "Dialogue average U" in again.stdout
    assert "12 dialogues" in again.stdout
    assert "1 of 1 shards are scored already" in again.stderr
    assert "average U" not in again.stderr


def test_logs_in_the_place_of_the_suite_are_seen(logs):
    done = fastscore_command(["score", logs, "-o", "run"])
    assert done.returncode == 2
    assert f"No suite is named before '{logs}'. `fastscore inspect {logs}`" in done.stderr
    done = fastscore_command(["score", "missing.jsonl", "-o", "run"])
    assert "No suite is named before 'missing.jsonl'. `fastscore inspect" in done.stderr


def test_the_outcome_shows_the_first_reject(tmp_path):
    log, *_ = write_logs(tmp_path / "logs")
    bad = tmp_path / "bad.jsonl"
    bad.write_text(f"not json\n{log.read_text()}")
    words = ["score", "score_dialogue", bad, "-o", tmp_path / "run", *LEXICAL]
    done = fastscore_command([*words, "--max-rejects", "1"])
    assert f"The first: {bad}:1: not_json (found 'n' at byte 1 of the line" in done.stdout
    assert f'fastscore.open_run("{tmp_path / "run"}").rejects)' in done.stdout


def test_quiet_is_silent_and_json_is_json(run, logs):
    words = ["score", "score_dialogue", logs, "-o", run, *LEXICAL, "-q"]
    quiet = fastscore_process(words)
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    summary = json.loads(fastscore_command([*words, "--json"]).stdout)
    assert summary["signature"].startswith("fastscore=")
    shown = json.loads(fastscore_command(["summary", run, "--json"]).stdout)
    assert shown == summary


def test_options_come_from_flag_environment_file_and_default_in_this_order(logs, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text(
        "workers = 1\n[score_dialogue]\nlex_weight = 0.25\nsemantic = 'jaccard'\n"
        "[check]\nmax_rejects = 0\n"
    )
    words = ["score", "score_dialogue", logs, "--dry-run", "--json", "--config", config]

    def weight(*more, **environment):
        done = fastscore_command([*words, *more], **environment)
        assert done.returncode == 0, done.stderr
        parts = dict(part.split("=", 1) for part in json.loads(done.stdout)["signature"].split("|"))
        assert parts["semantic"] == "jaccard"
        return parts["lex_weight"]

    assert weight() == "0.25"
    assert weight(FASTSCORE_LEX_WEIGHT="0.75") == "0.75"
    assert weight("--lex-weight", "1", FASTSCORE_LEX_WEIGHT="0.75") == "1.0"


USAGE_ERRORS = [
    (["score", "score_dialogue", "-o", "run"], "No INPUT"),
    (["score", "score_dialogue", "{logs}"], "No run directory"),
    (["score", "score_dialogue", "{logs}", "-o", "{tmp}/r", "--lex-weight", "nan"], "from 0 to 1"),
    (
        ["score", "score_dialogue", "{logs}", "-o", "{tmp}/r", "--embedder", "minilm-l6"],
        "Did you mean 'minilm-l6-v2'?",
    ),
    (["metrics", "nope"], "a metric. `fastscore metrics` lists all of installed suites"),
    (["metrics", "U_bst"], "'U_bst' is not a suite or a metric. Did you mean 'U_best'?\n"),
    (["metrics", "group_travel", "U_best"], "'U_best' is not a suite or a metric of group_travel."),
    (["score", __file__, "{logs}"], "A suite of your own is scored in Python"),
    (["summary", "{tmp}"], "no run there"),
    (["check", "{tmp}"], "Name limits: --min METRIC=0.8, or --against"),
]


@pytest.mark.parametrize(("words", "message"), USAGE_ERRORS)
def test_usage_errors_say_what_to_do(logs, tmp_path, words, message):
    done = fastscore_command([word.format(logs=logs, tmp=tmp_path) for word in words])
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


REFUSED_INPUTS = {
    "a missing file": ("{tmp}/gone.jsonl", "No such file"),
    "an empty file": ("{tmp}/empty.jsonl", "Nothing was scored: {tmp}/empty.jsonl has no rows."),
    "only bad lines": ("{tmp}/bad.jsonl", "{tmp}/bad.jsonl: no line is a JSON object"),
    "damaged Parquet": ("{tmp}/bad.parquet", "bad.parquet"),
}


@pytest.mark.parametrize("case", REFUSED_INPUTS)
def test_input_that_cannot_be_scored_is_refused(tmp_path, case):
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "bad.jsonl").write_text("{\n[1]\n")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not at all")
    pattern, message = REFUSED_INPUTS[case]
    words = ["score", "score_dialogue", pattern.format(tmp=tmp_path), "-o", tmp_path / "run"]
    done = fastscore_command([*words, *LEXICAL])
    assert done.returncode == 3, done.stderr
    assert message.format(tmp=tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


def test_damage_is_found_by_verify(run, tmp_path):
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    assert fastscore_command(["summary", copy, "--verify"]).returncode == 0
    path = copy / "steps" / "part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    done = fastscore_command(["summary", copy, "--verify"])
    assert done.returncode == 1
    assert "steps/part-00000.parquet: not what was committed" in done.stderr


def test_labels_are_shown_as_they_are(logs, tmp_path):
    lines = [
        line.replace("{", '{"miner_uid": "' + name + '", ', 1)
        for name, path in (("[/red]", "log-00"), ("[bold]m[/bold]", "log-01"))
        for line in (logs / f"{path}.jsonl").read_text().splitlines()
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(lines) + "\n")
    done = fastscore_command(["score", "score_dialogue", path, "-o", tmp_path / "run", *LEXICAL])
    assert done.returncode == 0, done.stderr
    assert "[/red]" in done.stdout
    assert "[bold]m[/bold]" in done.stdout


def test_a_closed_pipe_is_no_failure(run):
    command = f"{sys.executable} -m fastscore summary {run} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("format", "least", "code"), [("table", "0", 0), ("github", "1", 1), ("json", "1", 1)]
)
def test_a_closed_pipe_keeps_the_verdict(run, format, least, code):
    limits = ("--min", f"U_best={least}", "--min", f"average_U_best_early={least}")
    assert without_reader(["check", run, *limits, "--format", format]) == (code, b"")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("workers = 1.5", "workers is 1.5, expected int"),
        ("lex_weight = true", "lex_weight is True, expected int or float"),
        ("json = 'yes'", "json is 'yes', expected bool"),
        ("store = 3", "store is 3, expected str"),
        ("inputs = 'logs'", "inputs is 'logs', expected list"),
        ("config = 'x'", "unknown key 'config'"),
        ("lex_wait = 1.0", "unknown key 'lex_wait'. Did you mean 'lex_weight'?"),
        ("[nothing]\nx = 1", "unknown table [nothing]"),
        ("x = [", "not TOML"),
    ],
)
def test_values_of_a_config_file_are_checked(tmp_path, content, message):
    config = tmp_path / "run.toml"
    config.write_text(content)
    done = fastscore_command(["score", "score_dialogue", "x", "--config", config])
    assert done.returncode == 2
    assert message in done.stderr
    assert str(config) in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell):
    done = fastscore_command(["completion", shell])
    assert done.returncode == 0
    assert "_FASTSCORE_COMPLETE" in done.stdout


def test_metrics_as_text_and_json():
    names = fastscore_command(["metrics"]).stdout
    assert "\n  average_U_best_early             Dialogue average U (best-early)\n" in names
    assert "formula " not in names.rpartition("\n\n")[0]
    text = fastscore_command(["metrics", "score_dialogue"]).stdout
    assert "average_U_best_early" in text
    cards = json.loads(fastscore_command(["metrics", "score_dialogue", "--json"]).stdout)
    ids = [card["id"] for card in cards["score_dialogue"]["metrics"]]
    assert "U_step" in ids


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["M9"], {"group_travel": ["M9"]}),
        (["group_travel", "M5"], {"group_travel": ["M5"]}),
        (  # the source document of memory_finance calls a family of metrics M5
            ["M5"],
            {
                "group_travel": ["M5"],
                "memory_finance": ["rubric_hit_rate", "judge_score_mean", "judge_score_1_5"],
            },
        ),
        (
            ["M7", "group_travel"],
            {"group_travel": ["M7_total_turns", "M7_turns_per_slot", "M7_feedback_turn_overhead"]},
        ),
        (["CRRS", "cas"], {"guest_simulation": ["CRRS"], "preference_shift": ["cas"]}),
    ],
)
def test_metrics_are_found_in_every_suite_that_has_them(names, found):
    cards = json.loads(fastscore_command(["metrics", *names, "--json"]).stdout)
    got = {suite: [card["id"] for card in of["metrics"]] for suite, of in cards.items()}
    assert got == found
    frame = fastscore.metrics(*names)
    assert frame["metric"].to_list() == [metric for ids in found.values() for metric in ids]


def test_doctor_says_what_is_missing(tmp_path):
    done = fastscore_command(["doctor"], FASTSCORE_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "ok  fastscore" in done.stdout
    assert "!!  model" in done.stdout
    assert "fastscore models export minilm-l6-v2" in done.stdout


@pytest.mark.usefixtures("default_model")
def test_doctor_is_content_where_everything_is_in_place():
    done = fastscore_command(["doctor"])
    assert done.returncode == 0, done.stdout
    assert "!!" not in done.stdout


def test_a_missing_model_is_refused_before_anything_is_compiled(tmp_path):
    write_example("score_dialogue", tmp_path)
    words = ["score", "score_dialogue", tmp_path / "logs", "-o", tmp_path / "run"]
    done = fastscore_process(words, FASTSCORE_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 2
    assert done.stderr.startswith("Error: The model 'minilm-l6-v2' has not been exported")
    assert "Run `fastscore models export minilm-l6-v2`." in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("suite", ["memory_finance", "guest_simulation"])
def test_suites_without_vectors_list_no_options_of_them(suite):
    listed = fastscore_command(["score", suite, "--help"]).stdout
    assert not re.search("--(embedder|precision|dim|store) ", listed)
    assert "--embedder " in fastscore_command(["score", "group_travel", "--help"]).stdout


def test_commands_are_imported_without_a_search_for_garbage():
    program = (
        "import gc, click\n"
        "from fastscore.cli import cli\n"
        "searches = []\n"
        "gc.callbacks.append(lambda phase, info: searches.append(phase))\n"
        "with click.Context(cli, obj=True) as context:\n"
        "    gc.collect()\n"
        "    searches.clear()\n"
        "    cli.get_command(context, 'score')\n"
        "print(searches, gc.isenabled(), gc.get_freeze_count() > 10_000)"
    )
    run = python_process(program, check=True)
    assert run.stdout == "[] True True\n"


def test_an_option_is_taken_as_messages_name_it(tmp_path):
    """A message names `lex_weight`: who types it so at a shell is understood."""
    (log,) = write_logs(tmp_path / "logs", files=1, dialogues=1)
    score = ["score", "score_dialogue", str(log), "-o", str(tmp_path / "run")]
    assert CliRunner().invoke(cli, [*score, "--lex_weight", "1", "--max_text", "99"]).exit_code == 0
    refused = CliRunner().invoke(cli, [*score, "--lex-weight", "1"])
    assert "set overwrite to replace it" in str(refused.exception)
    again = CliRunner().invoke(cli, [*score, "--lex-weight", "1", "--overwrite"])
    assert again.exit_code == 0
    unknown = CliRunner().invoke(cli, ["example", "tau"])
    assert "'group_travel'" in unknown.output  # names that are no options are left as they are
