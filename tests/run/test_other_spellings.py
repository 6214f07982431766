"""Runs and logs on a disk that ignores case: other spellings name the same files."""

import pytest

import fastscore
from fastscore.errors import RunConflictError
from fastscore.run.writer import run_lock
from tests.run.logs import dialogue_lines
from tests.run.mounts import disk_without_case, same_file
from tests.run.running import forbid_scoring, run_lexical


def write_log(path):
    path.write_text("".join(f"{line}\n" for line in dialogue_lines("d")))


@pytest.fixture
def disk(tmp_path):
    with disk_without_case(tmp_path / "disk") as folder:
        yield folder


def test_logs_under_two_spellings_are_read_once(disk):
    (disk / "logs").mkdir()
    write_log(disk / "logs" / "a.jsonl")
    inputs = "logs/a.jsonl", "LOGS/A.jsonl", "Logs", "logs/*.jsonl"
    run_lexical([disk / each for each in inputs], disk / "run")
    assert fastscore.open_run(disk / "run").tables["dialogues"]["dialogue"].to_list() == ["d"]


def test_a_run_goes_on_under_another_spelling(disk, monkeypatch):
    write_log(disk / "a.jsonl")
    run_lexical([disk / "a.jsonl"], disk / "run")
    forbid_scoring(monkeypatch)
    run_lexical([disk / "A.jsonl"], disk / "RUN")
    assert fastscore.open_run(disk / "Run").tables["dialogues"]["dialogue"].to_list() == ["d"]
    assert [path.name for path in disk.iterdir() if path.is_dir()] == ["run"]


def test_two_spellings_of_a_run_have_one_writer(disk):
    with (
        run_lock(disk / "run"),
        pytest.raises(RunConflictError, match="another fastscore writes there"),
        run_lock(disk / "RUN"),
    ):
        pass


def test_two_unicode_forms_of_a_run_have_one_writer(tmp_path):
    composed, decomposed = tmp_path / "caf\u00e9", tmp_path / "cafe\u0301"
    composed.mkdir()
    with (
        same_file(composed, decomposed),
        run_lock(composed),
        pytest.raises(RunConflictError, match="another fastscore writes there"),
        run_lock(decomposed),
    ):
        pass
