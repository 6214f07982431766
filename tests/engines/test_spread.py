"""Distribution of texts over processes, and the data between them and the driver."""

import os
import pickle
import signal
import time
import weakref
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from fastscore_jit.threads import raise_if_stopped, thread_count

import fastscore
from fastscore.errors import InputError, MemoryLimitError, UsageError
from fastscore.logs.integrity.limits import Limits
from fastscore.run import tasks
from fastscore.run.commit import load_receipt
from fastscore.run.engines.engine import (
    Failure,
    TaskError,
    attempt,
    done_or_raise,
    open_engine,
    set_threads,
)
from fastscore.run.tasks import text_buckets
from fastscore.settings.options import THREADS_VARIABLE, available_processors
from fastscore.vectors.view import text_ids
from tests.engines.runs import RAY_BY_NIGHT
from tests.run.logs import write_logs
from tests.run.running import run_lexical

RECEIPT_BYTES = 1024


def test_buckets_hold_every_id_once_and_are_even():
    buckets = text_buckets(20_000, 3)
    assert [bucket.index for bucket in buckets] == list(range(12))
    assert (buckets[0].low, buckets[-1].high) == (0, 2**64 - 1)
    assert all(after.low == before.high + 1 for before, after in pairwise(buckets))
    ids = text_ids(pl.Series([f"text {number}" for number in range(20_000)]))[:, 0]
    held = [np.count_nonzero((ids >= each.low) & (ids <= each.high)) for each in buckets]
    assert sum(held) == 20_000
    assert max(held) < 1.15 * min(held)
    # few texts are not scattered
    few = [len(text_buckets(*each)) for each in ((900, 64), (5000, 64), (16_384 * 5, 1))]
    assert few == [1, 4, 5]


def test_receipts_that_cross_the_wire_are_small(tmp_path, monkeypatch):
    sent = []
    score = tasks.score_shard
    monkeypatch.setattr(tasks, "score_shard", lambda *given: sent.append(score(*given)) or sent[-1])
    run_lexical(write_logs(tmp_path / "logs"), tmp_path / "run", shard_bytes=1500)
    assert sent
    for receipt in sent:
        assert len(pickle.dumps(receipt)) < RECEIPT_BYTES
        kept = load_receipt(tmp_path / f"run/receipts/score-{receipt.index:05d}.json")
        assert len(kept.names) == 1
        assert replace(kept, names=()) == receipt


def fail(key):
    if key:
        raise InputError("the file is gone", "Bring it back.")
    raise ZeroDivisionError("a fault of ours")


def test_errors_come_home_as_they_are():
    outcome = pickle.loads(pickle.dumps(attempt(Limits(), print, fail, 1)))
    assert isinstance(outcome, Failure)
    with pytest.raises(InputError, match=r"the file is gone Bring it back\."):
        done_or_raise(outcome)
    with pytest.raises(TaskError, match=r"in process \d+:\n(.|\n)*a fault of ours"):
        done_or_raise(pickle.loads(pickle.dumps(attempt(Limits(), print, fail, 0))))


def test_a_failure_that_waits_to_be_fetched_holds_nothing_of_its_task():
    held = []

    def fail_holding(key):
        array = np.ones(key, np.uint8)
        held.append(weakref.ref(array))
        try:
            raise ValueError(len(array))
        except ValueError as error:
            raise InputError("the file is gone", "Bring it back.") from error

    outcome = attempt(Limits(), print, fail_holding, 1)
    assert isinstance(outcome, Failure)
    assert [reference() for reference in held] == [None]


def test_threads_of_a_process_are_set(monkeypatch):
    monkeypatch.setenv("POLARS_MAX_THREADS", "7")  # polars is loaded: it stays as it was
    monkeypatch.setenv(THREADS_VARIABLE, "7")
    set_threads(3)
    assert available_processors() == 3
    assert os.environ["POLARS_MAX_THREADS"] == "7"
    monkeypatch.setenv(THREADS_VARIABLE, "none")
    with pytest.raises(UsageError, match="FASTSCORE_THREADS is 'none'"):
        available_processors()


def test_what_cannot_be_opened_is_explained():
    with pytest.raises(UsageError, match=r"engine is 'dusk'\. Did you mean 'dask'"):
        fastscore.score("logs", "score_dialogue", engine="dusk")
    with pytest.raises(UsageError, match="address is here, and engine is local"):
        open_engine("local", "here", 1)


def threads_here(number):
    return available_processors(), pl.thread_pool_size(), thread_count(None)


def die_once(mark):
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return os.getpid()


@RAY_BY_NIGHT
def test_processes_share_the_processors_and_one_that_dies_is_counted(engine, tmp_path):
    each = max(1, available_processors() // 2)
    lost = []
    with open_engine(engine, None, 2) as opened:
        assert set(opened.map(threads_here, range(4))) == {(each, each, each)}
        keys = [tmp_path / "mark"]
        found = list(opened.map(die_once, keys, lost=lambda worker, tasks: lost.append(tasks)))
    assert len(found) == 1
    assert lost == [1]


def take(mebibytes):
    """Hold so much, of what was read or of anything else, until asked to end."""
    held = np.ones(mebibytes << 20, np.uint8)
    while mebibytes > 100:
        raise_if_stopped()
        time.sleep(0.01)
    return held.size


@RAY_BY_NIGHT
def test_a_worker_keeps_within_its_memory_in_any_task(engine):
    with open_engine(engine, None, 1, Limits(memory=600)) as opened:
        assert list(opened.map(take, [1])) == [1 << 20]
        said = r"A worker \(host .+, process \d+\) takes [\d,]+ MiB .* allows \(600 MiB\)"
        with pytest.raises(MemoryLimitError, match=said):
            list(opened.map(take, [700]))
        assert list(opened.map(take, [2])) == [2 << 20]  # and works on
