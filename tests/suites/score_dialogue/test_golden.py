"""The published scorer's own output, reproduced."""

import json
import re
from pathlib import Path

import pytest

from fastscore.compat.score_dialogue import main, score_jsonl
from fastscore.errors import ModelError
from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.score_dialogue import SUITE, ScoreDialogue
from fastscore.vectors.embedder import Embedder
from tests.suites.score_dialogue.comparing import score_frame

GOLDEN = Path(__file__).parent / "golden"
SEMANTIC = {"semantic_cosine_raw", "semantic_similarity", "U_step", "U_best"}
SUMMARY = {"average_U_best_early", "semantic_baseline_b"}
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \| ([A-Z]+) \| (.*)")


def expected_text(name):
    return (GOLDEN / f"{name}.expected.json").read_text(encoding="utf-8")


@pytest.fixture
def in_golden_folder(monkeypatch, tmp_path):
    for log in GOLDEN.glob("*.jsonl"):
        (tmp_path / log.name).write_bytes(log.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMBEDDER_NAME", "minilm-l6-v2")
    for variable in ("EMBED_DIM", "BASELINE_PAIRS", "BASELINE_SEED"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


@pytest.fixture
def model():
    try:
        Embedder("minilm-l6-v2")
    except ModelError as error:
        pytest.skip(f"needs the exported model: {error}")


@pytest.mark.parametrize("log", ["a", "b", "empty_steps"])
def test_lexical_json_is_equal_byte_by_byte(in_golden_folder, log):
    assert main(["--jsonl", f"{log}.jsonl", "--lex-weight", "1.0"]) == 0
    (written,) = in_golden_folder.glob("scores/*-score.json")
    assert written.read_text(encoding="utf-8") == expected_text(f"{log}.lex1.0")


def test_text_log_holds_the_published_lines_in_order(in_golden_folder, capsys):
    assert main(["--jsonl", "a.jsonl", "--lex-weight", "1.0"]) == 0
    (written,) = in_golden_folder.glob("scores/a_run_*-score.txt")
    text = written.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found)
    lines = iter([match.groups() for match in found if match])
    published = (GOLDEN / "a.lex1.0.expected.txt").read_text(encoding="utf-8").splitlines()
    for line in published:
        match = LINE.fullmatch(line)
        assert match
        wanted = re.sub(r"\d{8}_\d{6}", "TIME", match[2])
        assert any(
            (level, re.sub(r"\d{8}_\d{6}", "TIME", message)) == (match[1], wanted)
            for level, message in lines
        ), f"{line!r} is missing, or out of order"


def assert_layout_equal_and_numbers_near(found, expected, key=""):
    assert type(found) is type(expected), key
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, value in expected.items():
            assert_layout_equal_and_numbers_near(found[name], value, name)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            assert_layout_equal_and_numbers_near(left, right, key)
    elif key in SEMANTIC | SUMMARY:
        assert found == pytest.approx(expected, abs=1.01e-4), key
    else:
        assert found == expected, key


@pytest.mark.usefixtures("in_golden_folder", "model")
@pytest.mark.parametrize("name", ["a.lex0.0", "a.lex0.5", "b.lex0.0", "b.lex0.5"])
def test_semantic_scores_are_within_a_ten_thousandth(name):
    log, weight = name.split(".lex")
    found = score_jsonl(f"{log}.jsonl", lex_weight=float(weight))
    assert_layout_equal_and_numbers_near(found, json.loads(expected_text(name)))


def test_jaccard_mode_is_the_second_version():
    expected = json.loads(expected_text("b.jaccard.lex0.5"))
    options = ScoreDialogue(lex_weight=0.5, semantic="jaccard")
    raw = read_shard(whole_file(str(GOLDEN / "b.jsonl")), SUITE.source).frame
    _, tables = score_frame(raw, options)
    (utterance,) = expected["utterances"]
    for found, step in zip(tables["steps"].rows(named=True), utterance["steps"], strict=True):
        for field, value in step.items():
            rounded = round(found[field], 4) if isinstance(value, float) else found[field]
            assert rounded == value, field
    found = tables["utterances"].row(0, named=True)
    assert (found["best_step"], round(found["U_best"], 4)) == (
        utterance["best_step"],
        utterance["U_best"],
    )
