"""A run from end to end: output, skipped input, refusals."""

import dataclasses
import io
import json
import os
from contextlib import redirect_stderr

import polars as pl
import pytest

import fastscore
from fastscore import open_run
from fastscore.errors import RunConflictError, RunError, UsageError
from fastscore.run.context import RunContext
from fastscore.run.drive import execute, preview
from fastscore.run.manifest import read_manifest
from fastscore.run.progress import LineReporter
from fastscore.suites.registry import load_suite
from tests.conftest import python_process
from tests.run.logs import dialogue_lines, write_logs
from tests.run.running import contents, lexical_request, run_lexical, table_bytes


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs")


def receipt_times(run):
    return {path.name: path.stat().st_mtime_ns for path in (run / "receipts").iterdir()}


def test_a_run_leaves_exactly_these_files(logs, tmp_path):
    run_lexical(logs, tmp_path / "run")
    tables = ("steps", "utterances", "dialogues", "rejects")
    assert set(contents(tmp_path / "run")) == {
        "manifest.json",
        "summary.json",
        "summary.parquet",
        "receipts/score-00000.json",
        *(f"{table}/part-00000.parquet" for table in tables),
    }


OF_FAILURES = {
    "fastscore.api.reading",
    "fastscore.logs.samples.chat_rules",
    "fastscore.logs.samples.dialogue_rules",
    "fastscore.logs.samples.inspection",
    "fastscore.logs.samples.refusals",
    "fastscore.logs.samples.rewrites",
}
OF_OTHER_RUNS = {
    "fastscore.results.findings",
    "fastscore.run.remote.runs",
    "fastscore.vectors.store",
    "rich",
}


def test_a_run_imports_no_module_that_speaks_of_failures(logs, tmp_path):
    code = (
        "import sys, fastscore\n"
        "options = fastscore.ScoreDialogue(lex_weight=1.0)\n"
        "fastscore.score(sys.argv[1], options, output=sys.argv[2], embedder=None)\n"
        "print(*sys.modules)\n"
    )
    done = python_process(code, logs[0].parent, tmp_path / "run", check=True)
    assert (OF_FAILURES | OF_OTHER_RUNS).isdisjoint(done.stdout.split())


def test_a_suite_and_its_options_are_loaded_once_a_shard(logs, tmp_path, monkeypatch):
    load, loaded = RunContext.load, []
    monkeypatch.setattr(RunContext, "load", lambda self: loaded.append(self) or load(self))
    manifest = run_lexical(logs, tmp_path / "run", shard_bytes=1).manifest
    assert len(loaded) == manifest.shards > 1


def test_parquet_carries_signature_and_column_meanings(logs, tmp_path):
    outcome = run_lexical(logs, tmp_path / "run")
    path = tmp_path / "run" / "dialogues" / "part-00000.parquet"
    metadata = pl.read_parquet_metadata(path)
    assert metadata["fastscore.signature"] == outcome.manifest.signature
    columns = json.loads(metadata["fastscore.columns"])
    assert columns["average_U_best_early"]["range"] == [0.0, 1.0]
    assert columns["average_U_best_early"]["null_rule"]


def test_a_complete_run_is_not_scored_again(logs, tmp_path):
    run = tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    before, times = contents(run), receipt_times(run)
    for path in logs:
        os.utime(path)
    run_lexical(logs, run, shard_bytes=1)
    assert contents(run) == before
    assert receipt_times(run) == times


def test_deleted_outputs_and_only_those_are_made_again(logs, tmp_path):
    run = tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    before, times = contents(run), receipt_times(run)
    (run / "steps" / "part-00003.parquet").unlink()
    (run / "dialogues" / "part-00007.parquet").write_bytes(b"")
    run_lexical(logs, run, shard_bytes=1)
    assert contents(run) == before
    changed = {name for name, time in receipt_times(run).items() if time != times[name]}
    assert changed == {"score-00003.json", "score-00007.json"}


def test_an_added_file_and_a_changed_file_are_the_only_ones_scored(logs, tmp_path):
    run = tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    times = receipt_times(run)
    added = tmp_path / "logs" / "log-99.jsonl"
    added.write_text("\n".join(dialogue_lines("added")) + "\n")
    run_lexical([*logs, added], run, shard_bytes=1)
    assert {name for name in receipt_times(run) if name not in times} == {"score-00012.json"}
    times = receipt_times(run)
    text = logs[-1].read_text()
    logs[-1].write_text(text.replace("thank", "thanx", 1))
    run_lexical([*logs, added], run, shard_bytes=1)
    changed = {name for name, time in receipt_times(run).items() if time != times[name]}
    assert len(changed) == 1
    run_lexical([*logs, added], tmp_path / "fresh", shard_bytes=1)
    assert table_bytes(run) == table_bytes(tmp_path / "fresh")


def test_files_of_another_format_are_left_aside_aloud(logs, tmp_path):
    folder = logs[0].parent
    for name in ("y.csv", "z.csv.gz"):
        (folder / name).write_text("event\n")
    stream = io.StringIO()
    request = lexical_request([folder], tmp_path / "run", embedder=None)
    reason = "a CSV file, which this suite does not read"
    note = f"left aside: {folder / 'y.csv'} ({reason}) and 1 more\n"
    with redirect_stderr(stream):
        execute(request, LineReporter())
    assert note in stream.getvalue()
    manifest = read_manifest(tmp_path / "run")
    assert manifest.left_aside == [str(folder / "y.csv"), str(folder / "z.csv.gz")]
    stream.seek(0)
    stream.truncate()
    with redirect_stderr(stream):
        preview(request, LineReporter())
    assert note in stream.getvalue()


def test_other_inputs_are_refused(logs, tmp_path):
    run_lexical(logs, tmp_path / "run")
    with pytest.raises(RunConflictError, match=r"log-00\.jsonl, which is not among the inputs"):
        run_lexical(logs[1:], tmp_path / "run")


def test_another_signature_is_refused_and_overwrite_starts_anew(logs, tmp_path):
    run = tmp_path / "run"
    jaccard = {"lex_weight": 0.5, "semantic": "jaccard"}
    run_lexical(logs, run, shard_bytes=1)
    with pytest.raises(RunConflictError, match="another signature"):
        run_lexical(logs, run, options=jaccard)
    run_lexical(logs, run, options=jaccard, overwrite=True)
    run_lexical(logs, tmp_path / "fresh", options=jaccard)
    assert contents(run) == contents(tmp_path / "fresh")


def test_a_raised_version_is_another_signature(logs, tmp_path, monkeypatch):
    run = tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    before = contents(run)
    suite = load_suite("score_dialogue")
    raised = dataclasses.replace(suite, version=suite.version + 1)
    for module in ("request", "context"):
        monkeypatch.setattr(f"fastscore.run.{module}.load_suite", lambda name, own=(): raised)
    with pytest.raises(RunConflictError, match="another signature"):
        run_lexical(logs, run, shard_bytes=1)
    assert contents(run) == before
    run_lexical(logs, run, shard_bytes=1, overwrite=True)
    assert f"score_dialogue.{raised.version}" in open_run(run).signature


def test_a_folder_of_something_else_is_never_touched(logs, tmp_path):
    theirs = tmp_path / "thesis"
    theirs.mkdir()
    (theirs / "chapter.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(RunConflictError, match=r"it holds chapter\.txt"):
            run_lexical(logs, theirs, overwrite=overwrite)
    assert [path.name for path in theirs.iterdir()] == ["chapter.txt"]


def test_reading_an_incomplete_or_missing_run_is_refused(logs, tmp_path):
    with pytest.raises(UsageError, match="no run there"):
        open_run(tmp_path / "nothing")
    run_lexical(logs, tmp_path / "run")
    manifest = read_manifest(tmp_path / "run")
    manifest.status = "running"
    manifest.save(tmp_path / "run")
    with pytest.raises(RunError, match="not complete"):
        open_run(tmp_path / "run")
    for text in ('{"format": 2', '{"format": 2}', "[]"):
        (tmp_path / "run" / "manifest.json").write_text(text)
        with pytest.raises(RunError, match="not the manifest that was committed"):
            open_run(tmp_path / "run")
    run_lexical(logs, tmp_path / "run", overwrite=True)
    (tmp_path / "run" / "summary.parquet").unlink()
    with pytest.raises(RunError, match=r"summary\.parquet: missing, or not what was"):
        _ = open_run(tmp_path / "run").summary


def test_a_run_directory_may_have_any_name(logs, tmp_path):
    run = tmp_path / "r[1]*?"
    run_lexical(logs, run, shard_bytes=1)
    assert open_run(run).scan("dialogues").collect().height == 12


def test_dialogues_without_ground_truth_are_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(dialogue_lines("d")[0] + "\n")
    outcome = run_lexical([path], tmp_path / "run")
    assert "Nothing was scored: there is no row for steps in 1 line of" in str(outcome.refusal)


def test_a_log_that_was_moved_is_the_same_log(logs, tmp_path):
    run = tmp_path / "run"
    run_lexical(logs, run)
    moved = tmp_path / "moved.jsonl"
    logs[0].rename(moved)
    run_lexical([moved, *logs[1:]], run)
    manifest = read_manifest(run)
    assert manifest.inputs[0]["name"] == str(moved)
    assert manifest.status == "complete"
    files = fastscore.open_run(run).scan("dialogues").select("file").collect()["file"]
    assert str(moved) in set(files)
    with pytest.raises(RunConflictError, match=r"moved\.jsonl, which is not among"):
        run_lexical(logs[1:], run)
