"""Runs in an object store: the same bytes as in a folder, resumed, read, and refused in words."""

import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from unittest import mock

import pytest

import fastscore
from fastscore.errors import FastscoreError, RunConflictError, RunError, UsageError
from fastscore.results.report.write import date_of
from fastscore.run import drive
from fastscore.run.remote import log
from fastscore.run.remote.log import Prefix
from tests.conftest import fastscore_command, python_process
from tests.logs.stores import SECRET
from tests.run.running import contents, run_lexical

URL = "s3://bucket/runs/today"
TRACES = Path(__file__).parents[2] / "suites" / "memory_finance" / "published"
OF_THE_STORE = {"complete.json"}
OPTIONS = fastscore.ScoreDialogue(lex_weight=1.0)


def write(logs, **settings):
    run_lexical(list(logs), Path(URL), shard_bytes=1, **settings)


def files_of(folder):
    """Return the files of a run directory, without those that copies of stores have beside."""
    found = contents(folder)
    return {
        name: data
        for name, data in found.items()
        if name not in OF_THE_STORE and not name.startswith("received/")
    }


def all_files(run):
    assert run.damaged() == []
    for table in run.tables:
        run.scan(table)
    assert run.rejects.height >= 0
    assert run.summary_json
    assert run.summary.height
    return files_of(run.folder)


def fresh(tmp_path):
    """Open the run without what the writer left in the cache."""
    with mock.patch("fastscore.run.remote.runs.cache_root", return_value=tmp_path / "other-cache"):
        return fastscore.open_run(URL)


def names(store, below=""):
    start = f"bucket/runs/today/{below}"
    with store.lock:
        return sorted(name[len(start) :] for name in store.objects if name.startswith(start))


@pytest.mark.parametrize(
    ("suite", "inputs"),
    [(OPTIONS, None), ("memory_finance", [str(TRACES)])],
    ids=["score_dialogue", "memory_finance"],
)
def test_a_run_in_a_store_has_the_bytes_of_one_in_a_folder(store, logs, tmp_path, suite, inputs):
    given = inputs or [str(each) for each in logs]
    fastscore.score(given, suite, output=tmp_path / "run", embedder=None)
    written = fastscore.score(given, suite, output=URL, embedder=None)
    assert str(written.path) == URL
    assert all_files(written) == files_of(tmp_path / "run")
    assert all_files(fresh(tmp_path)) == files_of(tmp_path / "run")


def test_a_finished_run_is_resumed_without_work_and_extended(store, logs, tmp_path):
    write(logs[:3])
    before = names(store)
    write(logs[:3])
    new = set(names(store)) - set(before)
    assert {name.partition("/")[0].partition("-")[0] for name in new} == {
        "complete",
        "lease",
        "log",
        "manifest",
    }
    write(logs)
    assert len(names(store, "receipts/")) == 12
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert all_files(fresh(tmp_path)) == files_of(tmp_path / "run")


def test_a_copy_keeps_the_day_on_which_the_run_was_complete(store, logs, tmp_path):
    with mock.patch("fastscore.run.remote.log.time.time", return_value=1_700_000_000.0):
        write(logs)
    assert date_of(fresh(tmp_path)) == date.fromtimestamp(1_700_000_000).isoformat()


def test_secrets_are_in_no_object(store, logs, tmp_path):
    write(logs)
    assert not any(SECRET.encode() in content for content in store.objects.values())
    cached = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in path.read_bytes() for path in cached)


KILLED = """
import os, signal, sys
from pathlib import Path
from fastscore.run.remote import log, runs
from tests.run.running import run_lexical
name, number, url, *logs = sys.argv[1:]
left = int(number)
original = getattr(runs, name)
def kill(*given, **named):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(*given, **named)
setattr(runs, name, kill)
log.BEAT_SECONDS = 0.1
run_lexical([Path(each) for each in logs], Path(url), shard_bytes=1)
"""


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("put_outputs", 3),
        pytest.param("put_receipt", 3, marks=pytest.mark.slow),
        pytest.param("copy_folder", 1, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_in_a_commit_is_finished_by_the_next(store, logs, tmp_path, place, number):
    done = python_process(KILLED, place, number, URL, *logs)
    assert done.returncode == -signal.SIGKILL, done.stderr
    done_before = names(store, "receipts/")
    with mock.patch.object(log, "STILL_SECONDS", 1.0):
        write(logs)
    assert set(done_before) <= set(names(store, "receipts/"))
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert all_files(fresh(tmp_path)) == files_of(tmp_path / "run")
    left = {name for name in names(store) if "/part-" in name}
    assert len(left) == 4 * 12  # three tables and rejects of twelve dialogues


def test_an_interrupted_run_is_followed_at_once(store, logs, tmp_path):
    words = ["score", "score_dialogue", *map(str, logs), "-o", URL, "--lex-weight", "1"]
    store.delay = 0.3
    process = subprocess.Popen(
        [sys.executable, "-m", "fastscore", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not names(store, "log/00000001") and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    store.delay = 0.0
    with mock.patch.object(log, "STILL_SECONDS", 1e9):
        write(logs)
    assert fresh(tmp_path).tables["dialogues"].height == 12


def test_a_writer_that_another_follows_commits_nothing_more(store, logs, tmp_path):
    describe = drive._describe

    def follow(*given):
        entries = log.read_log(Prefix(URL))
        begin = {"kind": "begin", "epoch": 2, "replaces": False, "host": "other", "process": 7}
        assert log.append(Prefix(URL), len(entries), begin)
        describe(*given)

    with (
        mock.patch.object(drive, "_describe", follow),
        pytest.raises(RunConflictError, match=r"no longer holds the run \(host other, process 7\)"),
    ):
        write(logs)
    assert log.latest(log.read_log(Prefix(URL)), "complete") is None
    with pytest.raises(RunError, match="the run is not complete"):
        fastscore.open_run(URL)
    write(logs)
    assert fresh(tmp_path).tables["dialogues"].height == 12


def test_readers_see_the_last_complete_run_while_another_is_written(store, logs, tmp_path):
    seen = []
    describe = drive._describe

    def look(*given):
        try:
            seen.append(fresh(tmp_path).tables["dialogues"].height)
        except RunError as error:
            seen.append(error.message)
        describe(*given)

    with mock.patch.object(drive, "_describe", look):
        write(logs[:2])
        write(logs)
    assert seen == [f"{URL}: the run is not complete.", 6]
    assert fresh(tmp_path).tables["dialogues"].height == 12


@pytest.mark.parametrize("change", ["deleted", pytest.param("changed", marks=pytest.mark.slow)])
def test_a_damaged_part_is_refused_and_scored_again(store, logs, tmp_path, change):
    write(logs)
    part = next(name for name in sorted(store.objects) if "/steps/part-00002-" in name)
    content = store.objects.pop(part)
    if change == "changed":
        store.objects[part] = content[:-1] + b"x"
    url = f"s3://{part}"
    opened = fresh(tmp_path)
    with pytest.raises(RunError, match="missing, or not what was committed") as raised:
        opened.scan("steps")
    assert url in str(raised.value)
    assert fastscore.open_run(URL).damaged() == ["steps/part-00002.parquet"]
    done = fastscore_command(["summary", URL, "--verify"])
    assert done.returncode == 1
    assert f"{URL}/steps/part-00002.parquet: not what was committed." in done.stderr
    write(logs)
    assert len(names(store, "receipts/")) == 13  # the void one is kept
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert all_files(fresh(tmp_path)) == files_of(tmp_path / "run")


def test_other_damaged_objects_are_refused(store, logs, tmp_path):
    write(logs)
    whole, told = dict(store.objects), r"missing, or not what was committed|is damaged"
    for kind in ("receipts", "complete", "manifest", "log"):
        store.objects = dict(whole)
        for name in names(store):
            if name.startswith(kind):
                store.objects[f"bucket/runs/today/{name}"] = b"[" * 10
        with pytest.raises(RunError, match=told) as raised:
            fresh(tmp_path / kind)
        assert URL in str(raised.value)


def test_another_signature_is_refused_and_replaced_when_asked(store, logs, tmp_path):
    write(logs)
    other = {"lex_weight": 1.0, "baseline_pairs": 10}
    with pytest.raises(RunConflictError, match=f"{URL} holds a run with another signature"):
        write(logs, options=other)
    assert fresh(tmp_path).tables["dialogues"].height == 12
    write(logs[:2], options=other, overwrite=True)
    assert "baseline_pairs=10" in fresh(tmp_path).signature
    assert fresh(tmp_path).tables["dialogues"].height == 6


def test_an_address_with_other_objects_is_refused(store, logs):
    store.objects["bucket/runs/today/notes.txt"] = b"mine"
    with pytest.raises(RunConflictError, match=f"{URL} is no run: it holds notes.txt"):
        write(logs)
    assert names(store) == ["notes.txt"]


def test_inputs_that_are_missing_later_are_refused(store, logs):
    write(logs)
    with pytest.raises(RunConflictError, match=f"{URL} was begun with .*log-0"):
        write(logs[1:])


def test_a_run_by_faulty_answers_is_the_same(store, logs, tmp_path):
    store.faults = {"lost": 0.03, "503": 0.03, "409": 0.06}  # five in a row are given up
    write(logs)
    store.faults = {}
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert all_files(fresh(tmp_path)) == files_of(tmp_path / "run")


@pytest.mark.parametrize(
    ("verb", "refused", "message"),
    [
        ("score", (403, "AccessDenied"), "access is denied; .* is needed: s3:ListBucket"),
        ("open", (403, "AccessDenied"), "access is denied; .* is needed: s3:ListBucket"),
        ("score", (400, "ExpiredToken"), "the credentials have expired"),
        ("open", (403, "InvalidAccessKeyId"), "the credentials are not valid"),
        ("score", (404, "NoSuchBucket"), "there is no such bucket"),
    ],
)
def test_refusals_are_one_sentence_without_secrets(store, logs, refused, message, verb):
    store.refused = refused
    with pytest.raises(RunError, match=message) as raised:
        write(logs) if verb == "score" else fastscore.open_run(URL)
    assert URL in str(raised.value)
    assert SECRET not in str(raised.value)
    assert "secret-token" not in str(raised.value)


def test_a_store_that_may_only_be_read_names_the_permission(store, logs):
    store.read_only = True
    with pytest.raises(RunError, match=r"cannot be written: access is denied; .* s3:PutObject"):
        write(logs)
    assert names(store) == []


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("https://host/run", "A run cannot be at https://host/run"),
        ("hf://datasets/owner/name", "A run cannot be at hf://datasets/owner/name"),
        ("s3://key:word@bucket/run", "cannot be used: it contains credentials"),
        ("s3:///run", "cannot be used: it names no store"),
    ],
)
def test_addresses_that_cannot_hold_a_run_are_refused(logs, place, message):
    acts = [lambda: fastscore.open_run(place), lambda: run_lexical(logs, Path(place))]
    for act in acts[: 1 if ":///" in place else 2]:  # a path has one slash in any case
        with pytest.raises(UsageError, match=message) as raised:
            act()
        assert "word" not in str(raised.value)


def test_an_address_without_a_run_is_refused(store):
    with pytest.raises(UsageError, match=f"{URL}: no run there"):
        fastscore.open_run(URL)


def test_without_the_extra_the_command_that_installs_it_is_named(logs, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    for act in (lambda: write(logs), lambda: fastscore.open_run(URL)):
        with pytest.raises(FastscoreError, match=r"fastscore-dialogue\[cloud\]"):
            act()


def test_the_verbs_take_addresses(store, logs, tmp_path):
    def say(*words):
        done = fastscore_command(words)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    lexical = ["--lex-weight", 1]
    score = ["score", "score_dialogue", *logs, *lexical, "-o"]
    planned = say(*score, URL, "--dry-run")
    said = say(*score, URL)
    assert f"fastscore report {URL} -o report.html" in said
    say(*score, "s3://bucket/runs/other")
    local = tmp_path / "run"
    say(*score, local)
    for words in (["summary"], ["summary", "--verify"], ["explain", "--worst", "U_best"]):
        assert say(*words, URL) == say(*words, local)
    assert say("compare", URL, "s3://bucket/runs/other")
    against = ["--against", "s3://bucket/runs/other", "--max-drop", "U_best=0.01"]
    assert say("check", URL, *against)
    say("report", URL, "-o", tmp_path / "report.html")
    assert URL in (tmp_path / "report.html").read_text()
    with pytest.raises(UsageError, match="runs are listed in folders"):
        fastscore.runs("s3://bucket/runs")
    assert "0" in planned
    again = fastscore_command([*score, URL, "--dry-run", "--json"])
    assert '"scored_shards": 1' in again.stdout


def test_logs_that_were_moved_are_not_scored_again(store, logs, tmp_path):
    write(logs)
    (tmp_path / "moved").mkdir()
    moved = [log.rename(tmp_path / "moved" / log.name) for log in logs]
    with mock.patch("fastscore.run.tasks.compute_tables", side_effect=AssertionError):
        write(moved)
    found = fresh(tmp_path).tables["dialogues"]["file"].unique(maintain_order=True)
    assert found.to_list() == [str(log) for log in moved]
