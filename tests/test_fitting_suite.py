"""Logs of one suite scored by another: the error names the fitting suite and the command."""

import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import fastscore
from tests.conftest import fastscore_command


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return fastscore.example("group_travel", tmp_path / "example").folder / "logs"


def test_the_command_line_names_the_suite_and_the_command(logs: Path, tmp_path: Path) -> None:
    for more in ([], ["--dry-run"]):
        options = ["-o", tmp_path / "run", "--lex-weight", "1", *more]
        done = fastscore_command(["score", "score_dialogue", logs, *options])
        assert done.returncode == 3
        named = f"These logs fit group_travel. Type: `fastscore score group_travel {logs} -o run`"
        assert named in done.stderr


def test_python_names_the_command(logs: Path) -> None:
    with pytest.raises(fastscore.FastscoreError) as caught:
        fastscore.score(logs, fastscore.ScoreDialogue(lex_weight=1.0))
    assert str(caught.value).endswith(
        f"These logs fit group_travel. Type: `fastscore score group_travel {logs} -o run`"
    )


def test_logs_that_fit_no_suite_keep_the_advice(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text(json.dumps({"speed": 3, "colour": "red"}) + "\n")
    with pytest.raises(fastscore.FastscoreError) as caught:
        fastscore.score(tmp_path / "other.jsonl", fastscore.ScoreDialogue(lex_weight=1.0))
    assert "These logs fit" not in str(caught.value)


@pytest.mark.parametrize("name", ["guess", "qqq"])
def test_an_error_about_one_renamed_column_calls_few_functions(name: str, tmp_path: Path) -> None:
    (log, *_) = fastscore.example("score_dialogue", tmp_path / "example").logs.iterdir()
    rows = log.read_text().splitlines()[:5]
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text("\n".join(rows).replace('"prediction":', f'"{name}":'))
    options = fastscore.ScoreDialogue(lex_weight=1.0)

    def refused() -> str:
        with pytest.raises(fastscore.FastscoreError) as caught:
            fastscore.score(renamed, options)
        return str(caught.value)

    assert "prediction: absent or null in" in refused()  # layouts and suites are read once
    calls = 0

    def count(frame: FrameType, event: str, of: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        refused()
    finally:
        sys.setprofile(before)
    assert calls < 60_000
