"""The drop-in: the command as a process, its files and exit codes, and the functions."""

import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fastscore.compat import score_dialogue
from fastscore.compat.environment import read_environment
from fastscore.compat.score_dialogue import (
    main,
    prime_score_jsonl_events,
    score_jsonl,
    write_document,
)
from fastscore.errors import InputError, ModelError, UsageError
from tests.conftest import python_process, write_lines

VARIABLES = (
    "EMBEDDER_NAME",
    "EMBED_DIM",
    "BASELINE_PAIRS",
    "BASELINE_SEED",
    "GT_EMBED_CACHE_MAX",
    "PRELOADED_EVENTS_CACHE_MAX",
)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


def write_log(name, *rows):
    return write_lines(Path(name), rows)


def predicted(step, prediction, utterance=0):
    row = {"utterance_index": utterance, "step": step, "prediction": prediction}
    return {"event": "predicted", **row}


def complete(ground_truth, utterance=0):
    row = {"utterance_index": utterance, "ground_truth": ground_truth}
    return {"event": "utterance_complete", **row}


def run(*arguments):
    command = [sys.executable, "-m", "fastscore.compat.score_dialogue", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_the_command_leaves_two_files_and_the_average_line():
    write_log("run 1.jsonl", predicted(0, "abcd"), complete("abcx EOF"))
    done = run("--jsonl", "run 1.jsonl", "--lex-weight", "1")
    assert (done.returncode, done.stderr) == (0, "")
    written = sorted(path.name for path in Path("scores").iterdir())
    assert [name[:10] + name[-10:] for name in written] == [
        "run 1_run_score.json",
        "run 1_run_-score.txt",
    ]
    assert all(name.startswith("run 1_run_") for name in written)
    assert sorted(os.listdir()) == ["run 1.jsonl", "scores"]
    (average,) = [line for line in done.stdout.splitlines() if "Dialogue average U" in line]
    assert average.rsplit("|", 1)[1] == " Dialogue average U (best-early): 0.7500"
    assert float(average.rsplit(":", 1)[1]) == 0.75
    assert "| INFO | 0\t0.7500\t0.0000\t0.0000\t1.0000\t0.7500\tabcd" in done.stdout


def test_a_missing_file_exits_with_1_and_leaves_nothing():
    done = run("--jsonl", "no.jsonl")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "score-dialogue: there is no file no.jsonl.\n"
    assert os.listdir() == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--jsonl"],
        ["x.jsonl"],
        ["--jsonl", "x", "--lex-weight", "1.5"],
        ["--jsonl", "x", "--lex-weight", "nan"],
        ["--jsonl", "x", "--lex-weight", "much"],
    ],
)
def test_wrong_usage_exits_with_2(arguments):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2


def test_an_empty_file_scores_zero():
    Path("empty.jsonl").touch()
    assert score_jsonl("empty.jsonl", lex_weight=1.0) == {
        "log_file": "empty.jsonl",
        "dialogue_uid": None,
        "utterances": [],
        "dialogue_summary": {"average_U_best_early": 0.0, "semantic_baseline_b": 0.0},
    }


def test_lines_that_cannot_be_read_are_named_and_the_rest_is_scored(
    capsys,
):
    good = [json.dumps(row).encode() for row in (predicted(0, "ab"), complete("ab"))]
    bad = [b"[1]", b"\xff{}", b'{"utterance_index": "x"}', json.dumps(predicted(0, 5)).encode()]
    Path("x.jsonl").write_bytes(b"\xef\xbb\xbf" + b"\n".join([good[0], *bad, b"", good[1]]))
    assert main(["--jsonl", "x.jsonl", "--lex-weight", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == (
        "score-dialogue: x.jsonl: lines 2, 3, 4, 5 cannot be read; the rest is scored.\n"
    )
    warnings = [line.split(" | ")[2] for line in out.splitlines() if "| WARNING |" in line]
    assert [line.split(": ")[:2] for line in warnings] == [
        ["x.jsonl:2", "not_an_object"],
        ["x.jsonl:3", "not_utf8"],
        ["x.jsonl:4, field utterance_index", "wrong_type"],
        ["x.jsonl:5, field prediction", "wrong_type"],
        ["x.jsonl", "lines 2, 3, 4, 5 cannot be read; the rest is scored."],
    ]
    assert "Dialogue average U (best-early): 1.0000" in out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (b"a,b\n1,2\n", "lines 1, 2 cannot be read as JSON"),
        (b"no\n" * 1500, "lines 1, 2, 3, 4, 5 and 1,495 more cannot be read as JSON"),
        (b'{"messages": []}\n', "no line has the event 'utterance_complete'"),
        (json.dumps(predicted(0, "a")).encode(), "no line has the event 'utterance_complete'"),
    ],
)
def test_a_zero_of_nothing_is_explained_on_stderr(content, why, capsys, caplog):
    """The script gives 0 for such files, and exits with 0."""
    Path("x.jsonl").write_bytes(content)
    assert main(["--jsonl", "x.jsonl", "--lex-weight", "1"]) == 0
    out, err = capsys.readouterr()
    assert "Dialogue average U (best-early): 0.0000" in out
    listed = out.count(": not_json: found 'n'")
    assert listed == min(content.count(b"no\n"), score_dialogue.LISTED_REJECTS)
    assert err.startswith("score-dialogue: x.jsonl: no utterance is scored, so the average is 0")
    assert why in err
    assert "`fastscore inspect x.jsonl`" in err
    assert score_jsonl("x.jsonl", 1.0)["dialogue_summary"]["average_U_best_early"] == 0.0
    assert why in caplog.text


@pytest.mark.parametrize("line", [b"[{}]", b"\xff\xfa\x00", b'{"utterance_index": "x"}'])
def test_a_log_of_which_the_script_reads_nothing_fails_as_there(line, capsys):
    Path("x.jsonl").write_bytes(line + b"\n")
    assert main(["--jsonl", "x.jsonl", "--lex-weight", "1"]) == 1
    assert "No utterance of x.jsonl can be scored: line 1 cannot be read" in capsys.readouterr().err
    assert not list(Path("scores").iterdir())
    with pytest.raises(InputError, match=r"No utterance of x\.jsonl"):
        score_jsonl("x.jsonl", 1.0)


def test_labels_do_not_split_a_file():
    first, second = complete("a", 0), complete("b", 1)
    rows = [{**first, "dialogue_uid": "x"}, {**second, "dialogue_uid": ["y"]}]
    document = score_jsonl(
        write_log("x.jsonl", *rows, predicted(0, "a"), predicted(0, "b", 1)), 1.0
    )
    assert [u["U_best"] for u in document["utterances"]] == [1.0, 1.0]


def test_an_utterance_without_steps_is_minus_one_at_weight_1_and_else_an_error(
    monkeypatch, default_model
):
    monkeypatch.setenv("EMBEDDER_NAME", default_model)
    write_log("x.jsonl", complete("a", 3), predicted(0, "b"), complete("b"))
    document = score_jsonl("x.jsonl", lex_weight=1.0)
    assert document["utterances"][1] == {
        "utterance_number": 3,
        "ground_truth": "a",
        "steps": [],
        "best_step": 0,
        "U_best": -1.0,
        "total_steps": 0,
    }
    assert document["dialogue_summary"]["average_U_best_early"] == 0.0
    with pytest.raises(InputError, match=r"Utterance 3 of x\.jsonl \(line 1\)"):
        score_jsonl("x.jsonl", lex_weight=0.5)


@pytest.mark.parametrize("name", ["", "mixedbread-ai/mxbai-embed-large-v1"])
def test_missing_weights_are_one_error_before_anything_is_compiled(name, monkeypatch, tmp_path):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("EMBEDDER_NAME", name)
    write_log("x.jsonl", predicted(0, "b"), complete("b"))
    done = run("--jsonl", "x.jsonl")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "fastscore models export mxbai-embed-large-v1" in line
    assert "EMBEDDER_NAME=minilm-l6-v2" in line
    assert not list(tmp_path.rglob("cache/**/*.so"))
    assert not list(tmp_path.rglob("*.txt"))  # nothing was logged
    with pytest.raises(ModelError, match="EMBEDDER_NAME=minilm-l6-v2"):
        score_jsonl("x.jsonl")
    with pytest.raises(ModelError, match="EMBEDDER_NAME=minilm-l6-v2"):
        score_dialogue.prewarm_score_dialogue_embedder()


@pytest.mark.parametrize(
    ("step", "is_a_step"),
    [("0", True), ("-0", True), ("false", True), ("0.0", False), ("0e0", False), ('"0"', False)],
)
def test_a_step_is_an_integer_as_it_is_spelt(step, is_a_step):
    line = '{"event": "predicted", "utterance_index": 0, "step": %s, "prediction": "tea"}\n'
    end = json.dumps(complete("tea")) + "\n"
    Path("x.jsonl").write_text(line % step + end)
    (utterance,) = score_jsonl("x.jsonl", 1.0)["utterances"]
    # without a step the row still counts as one: its text is empty
    assert (utterance["total_steps"], utterance["U_best"]) == (1, 1.0 if is_a_step else 0.0)
    row = json.dumps(predicted(0, "tea")) + "\n"
    revealed = '{"event": "revealed", "utterance_index": 0, "step": 4.0}\n'
    Path("x.jsonl").write_text(row + revealed + end)
    assert score_jsonl("x.jsonl", 1.0)["utterances"][0]["total_steps"] == 1
    Path("x.jsonl").write_text(row + revealed.replace("4.0", "4") + end)
    assert score_jsonl("x.jsonl", 1.0)["utterances"][0]["total_steps"] == 5


def test_what_the_suite_reads_otherwise_is_told(caplog):
    write_log("plain.jsonl", predicted(0, "a"), complete("a"))
    score_jsonl("plain.jsonl", lex_weight=1.0)
    assert not caplog.records
    steps = (1.0, "2", 2**64)  # the suite reads the first alone
    spelt = [{**predicted(0, "a"), "step": step} for step in steps]
    write_log("steps.jsonl", *spelt, predicted(0, "a"), complete("a"))
    score_jsonl("steps.jsonl", lex_weight=1.0)
    assert "1 row with a step such as 1.0, which is no step to the script" in caplog.text
    caplog.clear()
    both = [
        {**row, "dialogue_uid": uid} for uid in "xy" for row in (predicted(0, uid), complete("x"))
    ]
    write_log("two.jsonl", *both)
    score_jsonl("two.jsonl", lex_weight=1.0)
    assert "2 rows replaced by a later row" in caplog.text
    done = run("--jsonl", "two.jsonl", "--lex-weight", "1")
    assert done.returncode == 0
    assert done.stderr.startswith("score-dialogue: two.jsonl: 2 rows replaced by a later row")


def test_a_module_in_the_scripts_place_serves_a_process_pool_and_its_tests(tmp_path):
    """A validator starts its pool only if the function says that it is of the validator's."""
    folder = tmp_path / "validator" / "scoring"
    folder.mkdir(parents=True)
    page = Path(__file__).parents[2] / "docs" / "suites" / "score_dialogue.md"
    text = page.read_text(encoding="utf-8")
    start = text.index("from fastscore.compat.score_dialogue import *")
    (folder / "score_dialogue.py").write_text(text[start : text.index("```", start)])
    write_log("x.jsonl", predicted(0, "tea"), complete("tea"))
    program = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from validator.scoring.score_dialogue import _char_similarity, score_jsonl
if __name__ == "__main__":
    print(score_jsonl.__module__, _char_similarity("", ""), _char_similarity("tea", "ten"))
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        document = pool.submit(score_jsonl, "x.jsonl", 1.0).result()
    print(document["dialogue_summary"]["average_U_best_early"])
"""
    Path("run.py").write_text(program)
    done = subprocess.run([sys.executable, "run.py"], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == f"validator.scoring.score_dialogue 0.0 {1 - 1 / 3}"
    assert second == "1.0"


def test_the_json_file_is_written_whole_or_not_at_all(caplog):
    Path("taken.json").mkdir()
    with caplog.at_level(logging.INFO, "score_dialogue"):
        write_document({"a": 1}, "taken.json")
        write_document({"a": "\ud800"}, "surrogate.json")
    assert [record.message[:28] for record in caplog.records] == [
        "Failed to write JSON summary"
    ] * 2
    assert os.listdir() == ["taken.json"]


def test_primed_events_serve_one_call():
    write_log("x.jsonl", predicted(0, "file"), complete("file"))
    prime_score_jsonl_events("x.jsonl", [predicted(0, "primed"), complete("primed")])
    texts = [score_jsonl("x.jsonl", 1.0)["utterances"][0]["ground_truth"] for _ in range(2)]
    assert texts == ["primed", "file"]


def test_primed_files_wait_up_to_a_limit(monkeypatch):
    monkeypatch.setenv("PRELOADED_EVENTS_CACHE_MAX", "1")
    for name in ("one", "two"):
        prime_score_jsonl_events(name, [predicted(0, name), complete(name)])
    assert score_jsonl("two", 1.0)["dialogue_summary"]["average_U_best_early"] == 1.0
    with pytest.raises(FileNotFoundError):
        score_jsonl("one", 1.0)


def test_environment_defaults_and_values(monkeypatch):
    found = read_environment()
    # as the published script has them at commit 5b7869b
    assert (found.embedder, found.dim) == ("mxbai-embed-large-v1", 64)
    assert (found.baseline_pairs, found.baseline_seed) == (100, 0)
    monkeypatch.setenv("EMBED_DIM", "384")
    monkeypatch.setenv("BASELINE_SEED", "-1")
    found = read_environment()
    assert (found.dim, found.baseline_seed) == (384, -1)
    monkeypatch.setenv("BASELINE_PAIRS", "many")
    with pytest.raises(UsageError, match="BASELINE_PAIRS is 'many'"):
        read_environment()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("BASELINE_PAIRS", "20000000", "a number of at most 10,000,000 (pairs)"),
        (
            "BASELINE_SEED",
            "99999999999999999999",
            "a number from -9,223,372,036,854,775,808 to 9,223,372,036,854,775,807",
        ),
    ],
)
def test_numbers_beyond_what_is_taken_are_refused_by_the_variables_name(
    monkeypatch, name, value, expected
):
    monkeypatch.setenv(name, value)
    write_log("x.jsonl", predicted(0, "a"), complete("a"))
    with pytest.raises(UsageError, match=re.escape(f"{name} is {value}, expected {expected}.")):
        score_jsonl("x.jsonl", 1.0)
    # priming reads its own variable alone
    prime_score_jsonl_events("x.jsonl", [predicted(0, "a"), complete("a")])


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, fastscore.compat.score_dialogue;"
        "print(sorted({'polars', 'numba', 'numpy', 'onnxruntime', 'pyarrow'} & set(sys.modules)))"
    )
    done = python_process(code, check=True)
    assert done.stdout == "[]\n"
