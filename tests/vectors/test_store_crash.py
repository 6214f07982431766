"""Killed writers, failing disks and processes that write at once."""

import itertools
import os
import signal
import time

import numpy as np
import pytest

from fastscore import files
from fastscore.errors import StoreError
from tests.conftest import often
from tests.vectors.stores import (
    append_texts,
    files_of,
    open_store,
    start_writer,
    vectors_of,
    window_ids,
)


def intact_windows(root, windows):
    """Windows whose vectors are all there, each vector compared; no window may be there in part."""
    store = open_store(root)
    whole = set()
    for window in range(windows):
        ids = window_ids(window)
        absent = store.missing(ids)
        assert absent.all() or not absent.any()
        if not absent.any():
            np.testing.assert_array_equal(store.gather(ids), vectors_of(ids))
            whole.add(window)
    assert store.stats().damaged == 0
    return whole


@pytest.mark.parametrize("kills", [often(6, 100)])
def test_a_killed_writer_loses_one_window_at_most(tmp_path, kills):
    rng = np.random.default_rng(kills)
    for kill in range(kills):
        root = tmp_path / str(kill)
        writer = start_writer(root, 0, 10_000)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(float(rng.uniform(0, 0.1)))
        writer.send_signal(signal.SIGKILL)
        reported = [int(line) for line in writer.stdout]
        writer.wait()
        writer.stdout.close()
        whole = intact_windows(root, len(reported) + 2)
        assert set(reported) <= whole
        assert len(whole) <= len(reported) + 1
        store = open_store(root)
        append_texts(store, len(reported) + 5)
        store.compact(garbage_age=-1)
        leftover = [name for name in files_of(store) if name.endswith(".tmp")]
        assert leftover == []
        assert store.verify().vectors == 50 * (len(whole) + 1)


def test_processes_that_write_the_same_texts_at_once(tmp_path):
    writers = [start_writer(tmp_path, 0, 15) for _ in range(2)]
    for writer in writers:
        assert writer.stdout.read().split() == ["ready", *map(str, range(15))]
        assert writer.wait() == 0
        writer.stdout.close()
    assert intact_windows(tmp_path, 15) == set(range(15))
    store = open_store(tmp_path)
    assert store.stats().vectors == 2 * 15 * 50
    assert store.compact().vectors == 15 * 50
    assert intact_windows(tmp_path, 15) == set(range(15))


def test_reading_and_compacting_beside_a_writer(tmp_path):
    writer = start_writer(tmp_path, 0, 40)
    reader, compactor = open_store(tmp_path), open_store(tmp_path)
    for line in writer.stdout:
        if line == "ready\n":
            continue
        ids = window_ids(int(line))
        np.testing.assert_array_equal(reader.gather(ids), vectors_of(ids))
        if int(line) % 5 == 4:
            compactor.compact()
    assert writer.wait() == 0
    writer.stdout.close()
    assert intact_windows(tmp_path, 40) == set(range(40))
    assert compactor.compact().vectors == 40 * 50


class Failing:
    """Raises at the n-th call of the functions it wraps, counted together."""

    def __init__(self, at, error):
        self.at, self.error, self.calls = at, error, 0

    def wrap(self, function):
        def call(*arguments, **options):
            self.calls += 1
            if self.calls == self.at:
                raise OSError(self.error, os.strerror(self.error))
            return function(*arguments, **options)

        return call

    def open_new(self, path):
        return FailingFile(path.open("xb"), self)


class FailingFile:
    def __init__(self, file, failing):
        self.file, self.write = file, failing.wrap(file.write)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)


def message_of(action):
    """Inference an action; return the message of the StoreError it raised, None if it did not."""
    try:
        action()
    except StoreError as error:
        return str(error)
    return None


@pytest.mark.parametrize("error", [28, 5, 4, 13])
def test_an_error_at_any_operation_leaves_nothing_half_written(tmp_path, monkeypatch, error):
    """ENOSPC, EIO, EINTR or EACCES at the n-th of all writes, syncs and renames, for every n."""
    for at in itertools.count(1):
        root = tmp_path / str(at)
        store = open_store(root)
        append_texts(store, 0)
        failing = Failing(at, error)
        with monkeypatch.context() as patch:
            patch.setattr(files, "open_new", failing.open_new)
            patch.setattr(os, "fsync", failing.wrap(os.fsync))
            patch.setattr(os, "replace", failing.wrap(os.replace))
            message = message_of(lambda: append_texts(store, 1))  # noqa: B023
        whole = intact_windows(root, 2)
        if message is None:
            assert whole == {0, 1}
            break
        assert os.strerror(error) in message
        assert 0 in whole
        assert not any(name.endswith(".tmp") for name in files_of(store))
        append_texts(store, 1)
        assert intact_windows(root, 2) == {0, 1}
    assert at > 7  # two files of at least two writes, two syncs, two renames, the folder's sync


def test_an_error_while_compacting_loses_nothing(tmp_path, monkeypatch):
    for at in range(1, 8):
        root = tmp_path / str(at)
        store = open_store(root)
        for window in range(3):
            append_texts(store, window)
        failing = Failing(at, 28)
        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, failing.wrap(getattr(os, name)))
            message = message_of(store.compact)
        assert message is None or "No space left" in message
        assert intact_windows(root, 3) == {0, 1, 2}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to read-only folders")
def test_a_read_only_store_can_be_read(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    store.folder.chmod(0o500)
    try:
        reader = open_store(tmp_path)
        np.testing.assert_array_equal(reader.gather(window_ids(0)), vectors_of(window_ids(0)))
        with pytest.raises(StoreError, match="Permission denied"):
            append_texts(reader, 1)
    finally:
        store.folder.chmod(0o700)
