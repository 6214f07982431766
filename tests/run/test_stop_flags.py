"""Runs of one process, in several threads: each is stopped by itself, all by a signal."""

import threading
import time

import pytest
from fastscore_jit import threads
from fastscore_jit.threads import (
    StoppablePool,
    StoppedError,
    clear_stop,
    own_stop_flag,
    raise_if_stopped,
    request_stop,
)
from fastscore_kernels import levenshtein
from fastscore_kernels.levenshtein import levenshtein_pairs

from fastscore.errors import InputError
from fastscore.run import tasks
from tests.run.logs import write_logs
from tests.run.running import contents, run_lexical

SECONDS = 120


@pytest.fixture
def unsignalled():
    """Forget a signal, which a process remembers until its end."""
    yield
    threads._PROCESS_FLAG[0] = 0


def is_stopped():
    try:
        raise_if_stopped()
    except StoppedError:
        return True
    return False


def test_a_flag_is_shared_by_the_threads_of_its_work_alone():
    with own_stop_flag(), StoppablePool(2) as own, StoppablePool(1) as others:
        with own_stop_flag():
            assert not own.submit(is_stopped).result()
            request_stop()
            assert is_stopped()
            assert own.submit(is_stopped).result()
            assert list(own.map(lambda _: is_stopped(), range(3))) == [True] * 3
            within = own.submit(lambda: others.submit(is_stopped).result())
            assert within.result()
        assert not is_stopped()
        assert not others.submit(is_stopped).result()
    assert not is_stopped()


def test_a_run_that_begins_or_ends_takes_no_wish_back():
    with own_stop_flag():
        request_stop()
        other = threading.Thread(target=own_stop_flag()(clear_stop))
        other.start()
        other.join()
        with own_stop_flag():
            clear_stop()
        assert is_stopped()
        clear_stop()
        assert not is_stopped()


@pytest.mark.usefixtures("unsignalled")
def test_a_signal_stops_all_that_runs_and_all_that_begins():
    begun, signalled = threading.Event(), threading.Event()
    found = []

    @own_stop_flag()
    def work():
        found.append(is_stopped())
        begun.set()
        signalled.wait(SECONDS)
        clear_stop()  # as a pool does when its tasks have ended
        found.append(is_stopped())

    other = threading.Thread(target=work)
    other.start()
    begun.wait(SECONDS)
    request_stop(signalled=True)
    signalled.set()
    other.join()
    assert found == [False, True]
    assert is_stopped()
    with own_stop_flag():
        assert is_stopped()


@pytest.mark.parametrize("symbols", [300, 40_000])
def test_distances_that_are_stopped_are_no_numbers(monkeypatch, symbols):
    """Whoever asked may have taken it back before anybody looks."""

    def taken_back(work):
        request_stop()
        work()
        clear_stop()

    texts = ["ab" * symbols, "ba" * symbols]
    with own_stop_flag():
        assert levenshtein_pairs(texts, texts[::-1], threads=1).tolist() == [2, 2]
        monkeypatch.setattr(levenshtein, "interruptible", taken_back)
        with pytest.raises(StoppedError):
            levenshtein_pairs(texts, texts[::-1], threads=1)


def test_a_run_that_fails_leaves_another_of_the_process_alone(tmp_path, monkeypatch):
    logs = write_logs(tmp_path / "logs")
    run_lexical(logs, tmp_path / "whole", shard_bytes=1)
    begun, ended = threading.Event(), threading.Event()
    score = tasks.score_shard

    def scored(context, shard):
        if context.run.name == "fails":
            begun.wait(SECONDS)
            raise InputError("the file is gone", "Bring it back.")
        begun.set()
        while not ended.is_set():
            raise_if_stopped()
            time.sleep(0.001)
        return score(context, shard)

    monkeypatch.setattr(tasks, "score_shard", scored)
    failures = []

    def fail():
        try:
            run_lexical(logs, tmp_path / "fails", shard_bytes=1)
        except InputError as error:
            failures.append(error)
        finally:
            ended.set()

    other = threading.Thread(target=fail)
    other.start()
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    other.join()
    assert len(failures) == 1
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
