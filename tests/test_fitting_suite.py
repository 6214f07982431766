"""Logs of one suite scored by another: the error names the fitting suite and the command."""

import json

import pytest

import fastscore
from tests.conftest import fastscore_command


@pytest.fixture
def logs(tmp_path):
    return fastscore.example("group_travel", tmp_path / "example").folder / "logs"


def test_the_command_line_names_the_suite_and_the_command(logs, tmp_path):
    for more in ([], ["--dry-run"]):
        options = ["-o", tmp_path / "run", "--lex-weight", "1", *more]
        done = fastscore_command(["score", "score_dialogue", logs, *options])
        assert done.returncode == 3
        named = f"These logs fit group_travel. Type: `fastscore score group_travel {logs} -o run`"
        assert named in done.stderr


def test_logs_that_fit_no_suite_keep_the_advice(tmp_path):
    (tmp_path / "other.jsonl").write_text(json.dumps({"speed": 3, "colour": "red"}) + "\n")
    with pytest.raises(fastscore.FastscoreError) as caught:
        fastscore.score(tmp_path / "other.jsonl", fastscore.ScoreDialogue(lex_weight=1.0))
    assert "These logs fit" not in str(caught.value)
