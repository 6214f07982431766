"""Tables damaged, edited or replaced after the commit are never shown, and are made again."""

import io
import os
import pkgutil
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr
from unittest import mock

import orjson
import polars as pl
import pytest

from fastscore import files, open_run
from fastscore.errors import RunConflictError, RunError
from fastscore.run.commit import commit_checked, commit_table, load_receipt, read_checked
from fastscore.run.progress import LineReporter
from fastscore.run.writer import check_writer, run_lock
from tests.conftest import NIGHTLY, often
from tests.run.logs import write_logs
from tests.run.running import contents, run_lexical

FLIPS = often(300, 15_000)
SHARD_BYTES = 8_000
"""Three shards: more would be verified with every flip."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return write_logs(tmp_path_factory.mktemp("logs"))


@pytest.fixture
def run(logs, tmp_path):
    run_lexical(logs, tmp_path / "run", shard_bytes=SHARD_BYTES)
    return tmp_path / "run"


def shown(run):
    """Return all that a reader is shown of a run, or fail as a reader would."""
    opened = open_run(run)
    frames = {name: table.collect() for name, table in opened.lazy_tables.items()}
    frames |= {"summary": opened.summary, "rejects": opened.rejects}
    about = orjson.dumps([opened.signature, opened.manifest.counts, opened.manifest.inputs])
    return {"manifest": about, "summary.json": opened.summary_json.encode()} | {
        name: frame.write_ipc(None).getvalue() for name, frame in frames.items()
    }


def flip(path, rng):
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def test_what_the_disk_does_not_keep_is_no_table(tmp_path, monkeypatch):
    path, frame = tmp_path / "part.parquet", pl.DataFrame({"value": [1, 2, 3]})
    commit_table(path, frame, {})
    before = path.read_bytes()

    class FlipsABit(io.BufferedRandom):
        def write(self, data):
            flipped = bytearray(data)
            flipped[len(flipped) // 2] ^= 1
            return super().write(flipped)

    monkeypatch.setattr(files, "open_new", lambda path: FlipsABit(io.FileIO(path, "xb+")))
    with pytest.raises(RunError, match="what was read back is not what was written"):
        commit_table(path, frame.reverse(), {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_no_flipped_bit_is_ever_shown(run):
    before, expected = contents(run), shown(run)
    whole = {name: (run / name).read_bytes() for name in before}
    rng = random.Random(0)
    refused = 0
    for _ in range(FLIPS):
        name = rng.choice(sorted(whole))
        flip(run / name, rng)
        try:
            assert shown(run) == expected, name
        except RunError:
            refused += 1
        (run / name).write_bytes(whole[name])
    print(f"{FLIPS:,} flips: {refused:,} refused, 0 shown")
    # a flip may turn white space between a receipt's members into other white space: nothing else
    assert refused > 0.99 * FLIPS


def test_a_damaged_part_is_scored_again_by_name(logs, run):
    before = contents(run)
    rng = random.Random(1)
    for name in sorted(before):
        if "part-" not in name:
            continue
        flip(run / name, rng)
        stream = io.StringIO()
        with redirect_stderr(stream):
            run_lexical(logs, run, LineReporter(), shard_bytes=SHARD_BYTES)
        said = f"{run / name}: not what was committed; its shard is scored again"
        assert said in stream.getvalue()
        assert contents(run) == before, name


@pytest.mark.parametrize("mixed", ["one part", "all parts", "all but parts"])
def test_what_two_runs_of_one_signature_are_mixed_of_is_refused(logs, run, tmp_path, mixed):
    """As a copy of one run over another leaves them where it ends midway."""
    before, other = contents(run), tmp_path / "other"
    alike = [tmp_path / "other_logs" / path.name for path in logs]
    alike[0].parent.mkdir()
    for path, copied in zip(logs, alike, strict=True):
        copied.write_text(path.read_text().replace("station", "airport"))
    run_lexical(alike, other, shard_bytes=SHARD_BYTES)
    for path in other.rglob("*.*"):
        part = "part-" in path.name or "score-" in path.name
        if (part and (mixed == "all parts" or "-00000" in path.name)) != (mixed == "all but parts"):
            shutil.copyfile(path, run / path.relative_to(other))
    opened = open_run(run)
    assert "receipts" in opened.damaged()
    with pytest.raises(RunError, match="receipts: missing, or not what was committed"):
        opened.scan("steps")
    if mixed != "all but parts":
        run_lexical(logs, run, shard_bytes=SHARD_BYTES)
        assert contents(run) == before


def test_a_receipt_in_the_place_of_another_is_found(run):
    receipts = run / "receipts"
    shutil.copyfile(receipts / "score-00000.json", receipts / "score-00001.json")
    assert open_run(run).damaged() == ["receipts"]


def test_an_edited_receipt_is_no_receipt(logs, run):
    before = contents(run)
    path = run / "receipts" / "score-00001.json"
    receipt = orjson.loads(path.read_bytes())
    receipt["counts"]["rows"] += 1
    path.write_bytes(orjson.dumps(receipt))
    with pytest.raises(RunError, match=r"score-00001\.json: missing, or not what was committed"):
        open_run(run).scan("steps")
    run_lexical(logs, run, shard_bytes=SHARD_BYTES)
    assert contents(run) == before


def test_an_edited_or_lost_manifest_is_made_anew_from_receipts(logs, run):
    before = contents(run)
    times = {path: path.stat().st_mtime_ns for path in (run / "receipts").iterdir()}
    manifest = run / "manifest.json"
    manifest.write_bytes(
        manifest.read_bytes().replace(b'"status": "complete"', b'"status": "done"')
    )
    with pytest.raises(RunError, match="its content differs from its checksum"):
        open_run(run)
    run_lexical(logs, run, shard_bytes=SHARD_BYTES)
    assert contents(run) == before
    manifest.unlink()
    with pytest.raises(RunError, match=r"manifest\.json is lost"):
        open_run(run)
    with pytest.raises(RunConflictError, match="another signature"):
        run_lexical(logs, run, options={"lex_weight": 0.5, "semantic": "jaccard"})
    run_lexical(logs, run, shard_bytes=SHARD_BYTES)
    assert contents(run) == before
    assert {path: path.stat().st_mtime_ns for path in (run / "receipts").iterdir()} == times


def test_who_asks_not_to_verify_reads_what_stands_there(run):
    steps = pl.read_parquet(run / "steps" / "part-00000.parquet")
    steps.head(1).write_parquet(run / "steps" / "part-00000.parquet")
    with pytest.raises(RunError, match="not what was committed"):
        open_run(run).scan("steps")
    rest = open_run(run, verify=False).scan("steps").collect().height
    assert rest < open_run(run, verify=False).manifest.tables["steps"]["rows"]


def test_only_temporaries_of_our_own_form_are_removed(logs, run):
    before = contents(run)
    theirs = run / "steps" / "notes.tmp"
    theirs.write_text("mine")
    ours = run / "steps" / "part-00000.parquet.123-0123abcd.tmp"
    ours.write_text("half a part")
    elsewhere = run.parent / "elsewhere"
    elsewhere.mkdir()
    kept = elsewhere / "part-00000.parquet.123-0123abcd.tmp"
    kept.write_text("not this run's")
    (run / "receipts" / "linked").symlink_to(elsewhere)
    run_lexical(logs, run, shard_bytes=SHARD_BYTES)
    assert theirs.read_text() == "mine"
    assert kept.exists()
    assert not ours.exists()
    theirs.unlink()
    (run / "receipts" / "linked").unlink()
    assert contents(run) == before


@pytest.mark.parametrize("name", ["steps", "manifest.json", ".lock"])
def test_links_in_a_run_are_refused(logs, run, name):
    target = run.parent / "target"
    if (run / name).exists():
        (run / name).rename(target)
    else:
        target.write_text("precious")
    (run / name).symlink_to(target)
    before = target.read_bytes() if target.is_file() else sorted(target.iterdir())
    with pytest.raises(RunConflictError, match="is a link"):
        run_lexical(logs, run, shard_bytes=SHARD_BYTES)
    assert (target.read_bytes() if target.is_file() else sorted(target.iterdir())) == before


def test_a_writer_whose_lock_was_removed_commits_nothing(tmp_path):
    with run_lock(tmp_path) as first:
        check_writer(tmp_path, first)
        (tmp_path / ".lock").unlink()
        with pytest.raises(RunConflictError, match="lock file was removed"):
            check_writer(tmp_path, first)
        with run_lock(tmp_path) as second:
            with pytest.raises(RunConflictError, match=rf"writer {second}"):
                check_writer(tmp_path, first)
            check_writer(tmp_path, second)
    assert not (tmp_path / ".lock").exists()


def test_the_end_of_a_writer_that_was_replaced_leaves_the_others_lock(tmp_path):
    first = run_lock(tmp_path)
    first.__enter__()
    (tmp_path / ".lock").unlink()
    with run_lock(tmp_path) as second:
        first.__exit__(None, None, None)
        check_writer(tmp_path, second)


POINTS = {
    "no manifest yet": "drive.open_manifest",
    "nothing removed yet": "folder._earlier_manifest",
    "plan": "inputs.plan_shards",
    "shards compared": "drive._open_shards",
    "score": "tasks.compute_tables",
    "receipt": "tasks._receipt",
    "summary": "drive._summarise",
    "end": "drive._describe",
}
"""Functions before each of which a run is replaced by another writer."""


@pytest.mark.parametrize(
    ("place", "removed"),
    [
        pytest.param(place, removed, id=f"{name}-{'removed' if removed else 'finished'}")
        for turn, (name, place) in enumerate(POINTS.items())
        for removed in ((False, True) if NIGHTLY else (turn % 2 == 1,))
    ],
)
def test_a_run_that_another_replaces_ends_with_one_sentence(logs, tmp_path, place, removed):
    run = tmp_path / "run"
    name = f"fastscore.run.{place}"
    original = pkgutil.resolve_name(name)
    replaced = []

    def replacing(*given, **more):
        if not replaced:
            replaced.append({})
            (run / ".lock").unlink()
            # whatever the first one relies on may be gone
            run_lexical(logs, run, shard_bytes=SHARD_BYTES, overwrite=removed)
            replaced[0] = contents(run)
        return original(*given, **more)

    with (
        mock.patch(name, replacing),
        pytest.raises(RunConflictError, match="lock file was removed"),
    ):
        run_lexical(logs, run, shard_bytes=SHARD_BYTES)
    assert contents(run) == replaced[0]
    run_lexical(logs, tmp_path / "alone", shard_bytes=SHARD_BYTES)
    assert replaced[0] == contents(tmp_path / "alone")


def test_what_fails_without_the_lock_is_a_conflict(tmp_path):
    with pytest.raises(RunConflictError, match="no longer holds"), run_lock(tmp_path):
        (tmp_path / ".lock").rename(tmp_path / "moved").with_name("gone").read_bytes()
    with pytest.raises(FileNotFoundError), run_lock(tmp_path):
        (tmp_path / "gone").read_bytes()


def test_a_stopped_writer_that_comes_back_is_refused(logs, tmp_path):
    run = tmp_path / "run"
    code = (
        "import os, signal, sys, time\n"
        "from pathlib import Path\n"
        "from fastscore.errors import RunConflictError\n"
        "from fastscore.run import tasks\n"
        "from tests.run.running import run_lexical\n"
        "commit, done = tasks.commit_table, []\n"
        "def stopping(*given):\n"
        "    committed = commit(*given)\n"
        "    done.append(given)\n"
        "    if len(done) == 3:\n"
        "        os.kill(os.getpid(), signal.SIGSTOP)\n"
        "        time.sleep(0.5)  # this thread may run on a little\n"
        "    return committed\n"
        "tasks.commit_table = stopping\n"
        "try:\n"
        "    run, *logs = map(Path, sys.argv[1:])\n"
        f"    run_lexical(logs, run, shard_bytes={SHARD_BYTES})\n"
        "except RunConflictError as error:\n"
        "    sys.exit(f'{len(done)} {error}')\n"
    )
    words = [sys.executable, "-c", code, str(run), *map(str, logs)]
    stopped = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        while os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is None:
            assert stopped.poll() is None
            time.sleep(0.01)
        (run / ".lock").unlink()
        run_lexical(logs, run, shard_bytes=SHARD_BYTES)
        before = contents(run)
        stopped.send_signal(signal.SIGCONT)
        _, message = stopped.communicate(timeout=60)
    finally:
        stopped.kill()
    assert message.startswith("3 ")
    assert "commits nothing more" in message
    assert contents(run) == before


@pytest.mark.parametrize("path", ["steps/../../other.parquet", "/etc/passwd", "..\\other.parquet"])
def test_a_receipt_whose_paths_leave_the_run_is_none(run, path):
    """Whoever edits a receipt makes its checksum anew."""
    receipt = min((run / "receipts").glob("score-*.json"))
    content = read_checked(receipt)
    content["outputs"][0]["path"] = path
    commit_checked(receipt, content)
    assert load_receipt(receipt) is None
    with pytest.raises(RunError):
        open_run(run).tables["steps"]


def test_a_manifest_whose_tables_leave_the_run_is_refused(logs, run, tmp_path):
    """Parts of shards that are no longer planned are removed, below the tables of the manifest."""
    others = tmp_path / "others"
    others.mkdir()
    (others / "part-00099.parquet").write_bytes(b"mine")
    content = read_checked(run / "manifest.json")
    content["tables"][str(others)] = {}
    content["status"] = "incomplete"
    commit_checked(run / "manifest.json", content)
    for action in (lambda: open_run(run), lambda: run_lexical(logs[:1], run)):
        with pytest.raises(RunError, match="a table is not below the run"):
            action()
    assert (others / "part-00099.parquet").read_bytes() == b"mine"
