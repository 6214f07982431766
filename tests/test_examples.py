"""The examples in the package: small, licensed, the same as their recipe writes them."""

import ast
import contextlib
import csv
import gzip
import json
import re
import shlex
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest

import fastscore
from benchmarks.example_logs import write_examples
from fastscore.api.examples import example_names, example_options, write_example
from fastscore.errors import UsageError
from fastscore.suites.registry import suite_names
from tests.conftest import fastscore_command, fastscore_process

PACKAGED = Path(fastscore.__file__).parent / "example_logs"


def test_they_are_what_the_recipe_writes(tmp_path):
    write_examples(tmp_path)
    written = {path.relative_to(tmp_path): path for path in tmp_path.rglob("*") if path.is_file()}
    packaged = {
        path.relative_to(PACKAGED)
        for path in PACKAGED.rglob("*")
        if path.is_file() and path.suffix != ".toml"
    }
    assert set(written) == packaged
    for name, path in written.items():
        assert unpacked(path) == unpacked(PACKAGED / name), name


def unpacked(path):
    """Return what a file holds: Pythons write other headers around it, libraries other bytes."""
    content = path.read_bytes()
    return gzip.decompress(content) if path.suffix == ".gz" else content


def test_every_suite_has_one_and_together_they_are_small():
    assert set(example_names()) == set(suite_names())
    assert sum(path.stat().st_size for path in PACKAGED.rglob("*") if path.is_file()) < 1_000_000


@pytest.mark.parametrize("suite", example_names())
def test_an_example_has_its_licence_and_can_be_written_again(tmp_path, suite):
    example = write_example(suite, tmp_path / "example")
    assert example == write_example(suite, tmp_path / "example")
    text = (tmp_path / "example" / "LICENSE.md").read_text("utf-8")
    assert "Licence: **" in text
    written = {path for path in (tmp_path / "example").rglob("*") if path.is_file()}
    assert written == {tmp_path / "example" / name for name, _ in example.files}
    assert all(size > 0 for _, size in example.files)


def test_files_of_others_are_kept(tmp_path):
    (tmp_path / "LICENSE.md").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        write_example("score_dialogue", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["LICENSE.md"]
    with pytest.raises(UsageError, match="Did you mean 'score_dialogue'"):
        write_example("score_dialog", tmp_path)


@pytest.mark.parametrize("suite", ["guest_simulation", "preference_shift"])
def test_scoring_imports_no_pandas_where_that_is_installed(tmp_path, suite):
    """It takes a second, and pyarrow does so as it makes some arrays."""
    (tmp_path / "pandas.py").write_text("raise SystemExit('pandas is imported')")
    write_example(suite, tmp_path / "example")
    asked = ["score", suite, tmp_path / "example" / "logs", "-o", tmp_path / "run", "-q"]
    options = example_options(suite, tmp_path / "example")
    done = fastscore_process([*asked, *options], PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def more_turns_of_a_group(folder, shown):
    """Turns are counted in the log: a group of a scenario against its spokesperson."""
    turns = defaultdict(dict)
    for row in read_lines(folder / "logs" / "dialogues.jsonl"):
        scenario, condition = re.findall(r"(s\d{5})-(c\d)", json.dumps(row))[0]
        turns[scenario][condition] = len(row["turns"])
    more = [each["c2"] - each["c1"] for each in turns.values()]
    assert min(more) > 0
    assert f"higher in 1 metric: M7_total_turns +{sum(more) / len(more):.2f}" in shown


def a_wrong_order(folder, shown):
    place = re.findall(r"logs/(exp\d/\S+\.csv)", shown)[0]
    path = folder / "logs" / place
    rows = list(csv.DictReader(path.open(encoding="utf-8", newline="")))
    case = next(json.loads(row["content"]) for row in rows if row["name"] == "test_case_info")
    target = {item["name"] for item in case["target_order"]["order_items"]}
    last = [row["current_items_in_order"] for row in rows if row["current_items_in_order"]][-1]
    ordered = {item["name"] for item in ast.literal_eval(last)}
    assert (len(target), len(ordered), len(target & ordered)) == (2, 2, 1)
    assert "Order restriction adherence (ORA): 0.5000" in shown


def all_published_scores(folder, shown):
    published = json.loads((folder / "published" / "metrics_summary.json").read_text("utf-8"))
    coverage = published["metrics"]["m1_context_continuity"]["micro"]["key_coverage"]
    assert round(coverage, 3) == 0.333
    assert "352 old numbers: 352 equal, 0 differ" in shown


def echoes_copy_most(folder, shown):
    """Words that the next answer shares with the user's text, by recommender, counted plainly."""
    shares = defaultdict(list)
    for row in read_lines(folder / "logs" / "conversations.jsonl"):
        texts = [set(turn["text"].lower().split()) for turn in row["conversation"]]
        for said, answer in pairwise(texts):
            shares[row["model_name"]].append(len(said & answer) / max(1, len(answer)))
    means = {model: sum(each) / len(each) for model, each in shares.items()}
    by_share = sorted(means, key=lambda model: means[model])
    assert (by_share[0], by_share[-1]) == ("recorded", "echoing")
    ranked = shown[shown.index("ranking") :].splitlines()
    places = [line.split()[0] for line in ranked if line.split()[:1] and line.split()[0] in means]
    assert (places[0], places[3]) == ("recorded", "echoing")
    assert "recorded against echoing" in shown.split("ranking")[0]


def the_worse_miner(folder, shown):
    assert "1 against 0: worse in 1 metric: average_U_best_early -" in shown


FINDINGS = {
    "group_travel": more_turns_of_a_group,
    "guest_simulation": a_wrong_order,
    "memory_finance": all_published_scores,
    "preference_shift": echoes_copy_most,
    "score_dialogue": the_worse_miner,
}


@pytest.mark.parametrize("suite", example_names())
def test_the_commands_that_are_printed_show_the_finding(suite, tmp_path):
    def shell(command):
        with contextlib.chdir(tmp_path):
            done = fastscore_command(shlex.split(command)[1:], COLUMNS="100")
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "run").mkdir()  # of another suite: the commands name another run
    (tmp_path / "run" / "mine").touch()
    printed = shell(f"fastscore example {suite} -o example").splitlines()
    commands = [line.strip() for line in printed if line.startswith("  fastscore ")]
    assert len(commands) == 2
    outputs = [shell(command) for command in commands]
    FINDINGS[suite](tmp_path / "example", outputs[-1])
