"""Each rule of the protocol of runs in stores, on a store in memory and on one with faults."""

from dataclasses import replace
from unittest import mock

import orjson
import pytest

from fastscore.errors import RunConflictError, RunError
from fastscore.files import hash_bytes
from fastscore.logs import objects
from fastscore.run.commit import Receipt, commit_bytes, load_receipt, receipt_path
from fastscore.run.manifest import Manifest
from fastscore.run.remote import log, runs
from fastscore.run.remote.log import Prefix
from fastscore.run.remote.runs import StoreWriter, writing_store

URL = "s3://bucket/run"
PREFIX = Prefix(URL)


def quietly(text):
    """Take a note."""


@pytest.fixture
def memory(monkeypatch, tmp_path):
    """A store in memory."""
    from obstore.store import MemoryStore

    store = MemoryStore()
    monkeypatch.setattr(objects, "open_bucket", lambda root: store)
    monkeypatch.setattr("fastscore.run.remote.runs.cache_root", lambda: tmp_path / "cache")
    monkeypatch.setattr(log, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(log, "STILL_SECONDS", 0.2)
    return store


def shard(folder, index, text, attempt):
    """Write a shard's part into a folder, and return its receipt."""
    path = f"steps/part-{index:05d}.parquet"
    output = replace(commit_bytes(folder / path, text.encode()), path=path)
    return Receipt(
        stage="score",
        index=index,
        fingerprint=hash_bytes(f"shard {index}".encode()),
        outputs=(output,),
        attempt=attempt,
    )


def parts():
    return sorted(PREFIX.listed("steps"))


def begun(epoch, voids=None):
    """Return a writer that begins after those before."""
    entry = {"kind": "begin", "epoch": epoch, "replaces": False, "host": "here", "process": epoch}
    position = len(log.read_log(PREFIX))
    assert log.append(PREFIX, position, entry)
    return StoreWriter(PREFIX, log.Epoch(epoch, position, 0), voids or {})


def manifest_of(shards, status="running"):
    return Manifest(
        signature="s",
        suite="none",
        suite_version=1,
        options={},
        column_map={},
        shards=shards,
        status=status,
    )


@pytest.mark.parametrize("fault", ["lost", "503", "409"])
def test_an_unclear_answer_is_settled_by_reading_back(store, fault):
    store.faults = {fault: 1.0}
    original, left = store.fails, [2]

    def fails(asked):
        if asked == fault and left[0]:
            left[0] -= 1
            return original(asked)
        return False

    store.fails = fails
    assert PREFIX.put_if_absent("log/0", b"mine")
    assert left == [0]
    assert store.objects["bucket/run/log/0"] == b"mine"
    left[0] = 1
    assert not PREFIX.put_if_absent("log/0", b"theirs")
    left[0] = 1
    tag = PREFIX.add("steps/part", b"content")
    assert PREFIX.listed("steps")["steps/part"].tag == tag


def test_a_store_that_never_answers_is_named(store):
    store.faults = {"503": 1.0}
    with pytest.raises(RunError, match="'s3://bucket/run/log/0' cannot be written: the store give"):
        PREFIX.put_if_absent("log/0", b"mine")


def test_a_new_writer_fences_the_older_one(memory, tmp_path):
    first = begun(1)
    log.append_as(PREFIX, first.epoch, {"kind": "void", "shards": []})
    second = begun(2)
    with pytest.raises(RunConflictError, match=r"no longer holds the run \(host here, process 2\)"):
        log.append_as(PREFIX, first.epoch, {"kind": "complete"})
    with pytest.raises(RunConflictError):
        first.check(tmp_path)
    with pytest.raises(RunConflictError):
        first.commit_manifest(tmp_path, manifest_of(0))
    second.check(tmp_path)
    assert [entry["epoch"] for entry in log.read_log(PREFIX)] == [1, 1, 2]


def test_an_entry_that_comes_between_check_and_append_fences(memory, monkeypatch):
    first = begun(1)
    append = log.append

    def slow(*given):
        monkeypatch.setattr(log, "append", append)
        begun(2)
        return append(*given)

    monkeypatch.setattr(log, "append", slow)
    with pytest.raises(RunConflictError):
        log.append_as(PREFIX, first.epoch, {"kind": "complete"})
    assert [entry["kind"] for entry in log.read_log(PREFIX)] == ["begin", "begin"]


def test_a_counter_that_rises_keeps_others_out_and_one_that_stands_lets_them_in(memory):
    notes = []
    with (
        mock.patch.object(log, "STILL_SECONDS", 1e9),
        log.written(PREFIX, replaces=False, note=quietly),
        pytest.raises(RunConflictError, match="another fastscore writes there"),
        log.written(PREFIX, replaces=False, note=notes.append),
    ):
        pass
    assert "waiting up to" in notes[0]
    begun(2)  # never gives a sign of life
    with log.written(PREFIX, replaces=False, note=quietly) as (epoch, entries):
        assert epoch.number == 3
        assert [entry["kind"] for entry in entries] == ["begin", "end", "begin"]


@pytest.mark.parametrize("kind", ["end", "complete"])
def test_a_writer_that_ended_is_followed_at_once(memory, kind, monkeypatch):
    log.append_as(PREFIX, begun(1).epoch, {"kind": kind})
    monkeypatch.setattr(log, "STILL_SECONDS", 1e9)
    with log.written(PREFIX, replaces=False, note=quietly) as (epoch, _):
        assert epoch.number == 2


def test_the_first_receipt_wins_and_later_attempts_adopt_it(memory, tmp_path):
    run = tmp_path / "first"
    begun(1).commit_receipt(run, shard(run, 0, "first", "a"))
    late = tmp_path / "second"
    begun(2).commit_receipt(late, shard(late, 0, "second", "b"))
    adopted = load_receipt(receipt_path(late / "receipts", "score", 0))
    assert adopted.attempt == "a"
    assert (late / "steps/part-00000.parquet").read_bytes() == b"first"
    assert len(parts()) == 2
    assert len(PREFIX.listed("receipts")) == 1


def test_parts_are_put_before_their_receipt(memory, tmp_path):
    seen = []
    put_receipt = runs.put_receipt

    def look(*given):
        seen.append(len(parts()))
        return put_receipt(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "put_receipt", look)
        begun(1).commit_receipt(tmp_path, shard(tmp_path, 0, "text", "a"))
    assert seen == [1]


def test_receipts_are_listed_before_parts(memory, tmp_path):
    """A shard that is committed between two listings is not taken for damaged."""
    first = begun(1)
    first.commit_receipt(tmp_path, shard(tmp_path, 0, "text", "a"))
    other = tmp_path / "other"
    listed = Prefix.listed

    def commit_after(prefix, below):
        found = listed(prefix, below)
        if len(listed(PREFIX, "receipts")) == 1:
            first.commit_receipt(other, shard(other, 1, "more", "a"))
        return found

    fingerprints = {index: hash_bytes(f"shard {index}".encode()) for index in range(2)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Prefix, "listed", commit_after)
        stated = first.restore(tmp_path / "new", fingerprints, fingerprints)
    restored = {path.name for path in (tmp_path / "new" / "receipts").iterdir()}
    assert len(stated) == len(restored)


def test_garbage_is_collected_for_shards_with_a_receipt_alone(memory, tmp_path):
    first = begun(1)
    first.commit_receipt(tmp_path, shard(tmp_path, 0, "text", "a"))
    (kept,) = parts()
    other = tmp_path / "other"
    late = shard(other, 0, "other bytes", "b")
    runs.put_outputs(PREFIX, other, first.shard(late.fingerprint), late.outputs)
    open_shard = shard(other, 1, "on its way", "b")
    runs.put_outputs(PREFIX, other, first.shard(open_shard.fingerprint), open_shard.outputs)
    assert len(parts()) == 3
    first.commit_manifest(tmp_path, manifest_of(1, "complete"))
    left = parts()
    assert len(left) == 2
    assert kept in left
    assert any(open_shard.fingerprint in name for name in left)


def test_a_void_receipt_is_followed_by_one_of_another_name(memory, tmp_path):
    first = begun(1)
    receipt = shard(tmp_path, 0, "text", "a")
    first.commit_receipt(tmp_path, receipt)
    (damaged,) = parts()
    PREFIX.delete(damaged)
    fingerprints = {0: receipt.fingerprint}
    run = tmp_path / "next"
    second = begun(2)
    assert second.restore(run, fingerprints, fingerprints) == {receipt.fingerprint}
    assert not (run / "receipts").exists()
    second = second.reopen([receipt.fingerprint])
    assert log.voids(log.read_log(PREFIX)) == {receipt.fingerprint: 1}
    second.commit_receipt(run, shard(run, 0, "text", "b"))
    assert len(PREFIX.listed("receipts")) == 2
    assert parts() != [damaged]
    assert second.receipts() == {receipt.fingerprint: f"receipts/{receipt.fingerprint}-1.json"}


def test_a_part_that_is_there_is_not_written_again(store):
    tag = PREFIX.add("steps/part", b"content")
    store.asked.clear()
    assert PREFIX.add("steps/part", b"content") == tag
    assert [(method, once) for method, _, once in store.asked] == [("PUT", "once"), ("HEAD", "")]


def test_a_run_is_begun_anew_by_a_begin_that_replaces(memory, tmp_path):
    for replaces in (False, True):
        with writing_store(URL, replaces=replaces, note=quietly) as (folder, begin):
            begin.commit_receipt(folder, shard(folder, 0, "text", "a"))
            begin.commit_manifest(folder, manifest_of(1, "complete"))
    entries = log.read_log(PREFIX)
    assert log.rounds(entries) == 1
    assert [entry["kind"] for entry in entries] == ["begin", "complete"] * 2
    assert len(PREFIX.listed("receipts")) == 2
    assert len(parts()) == 1
    stated = orjson.loads(PREFIX.get(log.latest(entries, "complete")["name"]) or b"")
    assert stated["receipts"][0][0].endswith("-1.json")
