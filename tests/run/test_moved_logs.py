"""A run whose logs were moved keeps its scores, and names the logs where they are."""

import shutil

import polars as pl
import pytest

from fastscore.api.examples import example_names, example_options, write_example
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.run import tasks
from fastscore.suites.declarations import Column, Source
from fastscore.suites.registry import load_suite
from tests.conftest import fastscore_command, often
from tests.run.logs import write_logs
from tests.run.running import forbid_scoring, run_lexical, table_bytes


def summary_bytes(run):
    return (run / "summary.parquet").read_bytes()


@pytest.mark.parametrize("suite", example_names()[-often(2, 9) :])
def test_logs_in_another_folder_are_not_scored_again(tmp_path, monkeypatch, suite):
    write_example(suite, tmp_path)
    options = example_options(suite, tmp_path)
    run, fresh, moved = tmp_path / "run", tmp_path / "fresh", tmp_path / "elsewhere" / "moved"

    def score(logs, output):
        done = fastscore_command(["score", suite, logs, "-o", output, *options])
        assert done.returncode == 0, done.stderr
        return done.stderr

    score(tmp_path / "logs", run)
    moved.parent.mkdir()
    shutil.move(tmp_path / "logs", moved)
    score(moved, fresh)
    forbid_scoring(monkeypatch)
    assert "shards are scored already" in score(moved, run)
    assert table_bytes(run) == table_bytes(fresh)
    assert summary_bytes(run) == summary_bytes(fresh)
    again = score(moved, run)
    assert "rename" not in again


def logs_with_a_reject(folder):
    logs = write_logs(folder, files=3)
    logs[0].write_text(f"{logs[0].read_text()}no row\n")
    return logs


def files_of_rejects(run):
    return pl.read_parquet(run / "rejects" / "*.parquet")["file"].to_list()


def test_rejects_of_moved_files_name_them_where_they_are(tmp_path, monkeypatch):
    logs_with_a_reject(tmp_path / "logs")
    run_lexical([tmp_path / "logs"], tmp_path / "run", shard_bytes=1)
    moved = (tmp_path / "logs").rename(tmp_path / "moved")
    run_lexical([moved], tmp_path / "fresh", shard_bytes=1)
    forbid_scoring(monkeypatch)
    run_lexical([moved], tmp_path / "run", shard_bytes=1)
    assert table_bytes(tmp_path / "run") == table_bytes(tmp_path / "fresh")
    assert files_of_rejects(tmp_path / "run") == [str(moved / "log-00.jsonl")]


def test_a_renaming_that_was_cut_short_is_done_again(tmp_path, monkeypatch):
    (log,) = write_logs(tmp_path / "logs", files=1)
    run_lexical([log], tmp_path / "run")
    (tmp_path / "moved").mkdir()
    log = log.rename(tmp_path / "moved" / log.name)
    run_lexical([log], tmp_path / "fresh")

    def stop(*_, **_named):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "_receipt", stop)
        with pytest.raises(KeyboardInterrupt):
            run_lexical([log], tmp_path / "run")
    run_lexical([log], tmp_path / "run")
    assert table_bytes(tmp_path / "run") == table_bytes(tmp_path / "fresh")


@pytest.mark.parametrize(
    ("suite", "before", "after", "is_same"),
    [
        ("score_dialogue", "a/x.jsonl", "b/x.jsonl", True),
        ("score_dialogue", "a/x.jsonl", "a/y.jsonl", False),
        ("memory_finance", "a/x.jsonl", "a/y.jsonl", False),
        ("preference_shift", "a/x.jsonl", "b/x.jsonl", True),
        ("group_travel", "a/x.jsonl", "a/y.jsonl", False),
        ("guest_simulation", "a/exp1/x.jsonl", "b/c/exp1/x.jsonl", True),
        ("guest_simulation", "a/exp1/x.jsonl", "a/exp2/x.jsonl", False),
        ("guest_simulation", "a/exp1/x.jsonl", "a/exp1/y.jsonl", False),
        ("score_dialogue", "day=1/x.jsonl", "day=2/x.jsonl", False),
        ("score_dialogue", "a/day=1/x.jsonl", "b/day=1/x.jsonl", True),
        ("", "a/x.jsonl", "b/x.jsonl", False),
    ],
)
def test_names_count_where_values_depend_on_them(tmp_path, suite, before, after, is_same):
    own = Source(columns=(Column(name="text", kind="text"),), formats=("jsonl",))
    source = load_suite(suite).source if suite else own
    found = []
    for name in (before, after):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"text": "a"}\n')
        files = resolve_inputs([str(path)], source.formats)
        (shard,) = plan_shards(files, source, scratch=tmp_path / "scratch").shards
        found.append(shard)
    first, second = found
    assert first.fingerprint != second.fingerprint
    assert (first.content_fingerprint == second.content_fingerprint) == is_same
