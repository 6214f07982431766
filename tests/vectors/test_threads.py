"""One store and one embedder shared by threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np
import pytest
from fastscore_jit.threads import StoppedError, own_stop_flag, request_stop

from fastscore.vectors import embedder, precisions
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.precisions import Calls
from tests.vectors.stores import append_texts, open_store, vectors_of, window_ids

THREADS = 6
SECONDS = 60
"""After which a test that waits has failed."""


def test_threads_share_a_store(tmp_path):
    """Each thread appends, and reads its own windows, while one compacts and one verifies."""
    store = open_store(tmp_path)
    done = threading.Event()

    def write(thread):
        for window in range(thread, 8 * THREADS, THREADS):
            append_texts(store, window)
            ids = np.concatenate([window_ids(own) for own in range(thread, window + 1, THREADS)])
            assert not store.missing(ids).any()
            np.testing.assert_array_equal(store.gather(ids), vectors_of(ids))

    def repeat(action):
        while not done.is_set():
            action()

    with ThreadPoolExecutor(THREADS + 2) as pool:
        others = [pool.submit(repeat, action) for action in (store.compact, store.verify)]
        writers = [pool.submit(write, thread) for thread in range(THREADS)]
        try:
            for writer in writers:
                writer.result()
        finally:
            done.set()
        for other in others:
            other.result()
    assert store.stats().damaged == 0
    assert store.compact().vectors == 8 * THREADS * 50


def test_threads_load_one_session(tiny_cache, monkeypatch):
    shared = Embedder("tiny", threads=1, cache_dir=tiny_cache)
    expected = shared.encode(["w1 w2"])
    loads = []
    plain = embedder.load_inference

    def load_inference(exported, *others):
        loads.append(exported)
        return plain(exported, *others)

    monkeypatch.setattr(embedder, "load_inference", load_inference)
    shared = Embedder("tiny", threads=1, cache_dir=tiny_cache)
    together = threading.Barrier(THREADS)

    def encode(_):
        together.wait()
        return shared.encode(["w1 w2"])

    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(encode, range(THREADS)):
            np.testing.assert_array_equal(found, expected)
    assert len(loads) == 1


def test_what_waits_for_a_model_is_given_up_when_nobody_wants_more(monkeypatch):
    begun, handed_over = [], []
    is_second, given_up = threading.Event(), threading.Event()

    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments):
            handed_over.append(super().submit(*arguments))
            return handed_over[-1]

    def run(inputs):
        begun.append(inputs["number"].item())
        if len(begun) == 2:
            is_second.set()
            given_up.wait(SECONDS)
        return inputs["number"]

    monkeypatch.setattr(precisions, "ThreadPoolExecutor", Pool)
    numbered = (({"number": np.array([number])}, number) for number in range(20))
    outputs = precisions.run_batches(run, numbered, 1)
    assert next(outputs)[1] == 0
    # the second is in the model until the last one is given up
    handed_over[-1].add_done_callback(lambda _: given_up.set())
    assert is_second.wait(SECONDS)
    outputs.close()
    assert begun == [0, 1]
    assert [future.cancelled() for future in handed_over] == [False] * 2 + [True] * 3


def test_a_call_ends_when_what_it_is_for_is_stopped(monkeypatch):
    """The thread that waits for its output looks, and ends it."""
    ended = threading.Event()

    class Ending(Calls):
        def end(self):
            ended.set()

    def run(inputs):
        of_run.run(request_stop)
        if not ended.wait(SECONDS):
            raise AssertionError("not ended")
        raise RuntimeError("ended, which nobody hears of")

    monkeypatch.setattr(precisions, "Calls", Ending)
    with own_stop_flag():
        of_run = copy_context()
        outputs = precisions.run_batches(run, [({"number": np.zeros(1, np.int64)}, 0)], 1)
        with pytest.raises(StoppedError):
            next(outputs)
    assert ended.is_set()


def test_calls_that_were_ended_end_no_others(tiny):
    run = tiny.open_model()
    inputs = {"input_ids": np.array([[1, 2, 3]] * 2)}
    expected = run(inputs)
    ended, others = Calls(), Calls()
    with (
        ThreadPoolExecutor(1, initializer=ended.join) as first,
        ThreadPoolExecutor(1, initializer=others.join) as second,
    ):
        np.testing.assert_array_equal(first.submit(run, inputs).result(), expected)
        ended.end()
        with pytest.raises(Exception, match="terminate flag"):
            first.submit(run, inputs).result()
        np.testing.assert_array_equal(second.submit(run, inputs).result(), expected)
    np.testing.assert_array_equal(run(inputs), expected)
    np.testing.assert_array_equal(tiny.encode(["w1 w2"]), tiny.encode(["w1 w2"]))
