"""Many that fill one store at once: segments never clash, and hardly a text is embedded twice."""

import subprocess
import sys
import threading
import time

import pytest

from fastscore.vectors.view import claimed
from tests.conftest import often
from tests.engines.runs import SEMANTIC, finish, start_run
from tests.engines.stored import count_vectors
from tests.run.running import contents

WRITERS = often(2, 4)
HIGHEST = 2**64 - 1


def test_runs_fill_one_store_and_embed_every_text_once(place, semantic, cache, tmp_path):
    store = tmp_path / "store"
    words = (*SEMANTIC, "--store", str(store))
    runs = [tmp_path / f"run{number}" for number in range(WRITERS)]
    started = [start_run(place, run, *words, FASTSCORE_CACHE=str(cache)) for run in runs]
    for process in started:
        finish(process)
    for run in runs:
        assert contents(run) == semantic
    stored = count_vectors(cache, store)
    assert stored.vectors == count_vectors(cache, cache / "vectors").vectors
    assert stored.damaged == 0


def test_a_range_waits_for_who_has_claimed_some_of_it(tmp_path):
    done = []

    def second():
        with claimed(tmp_path, 2**63, HIGHEST):
            done.append("second")

    with claimed(tmp_path, 0, HIGHEST):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        done.append("first")
    thread.join()
    assert done == ["first", "second"]


def test_neighbouring_ranges_do_not_wait(tmp_path):
    edges = [(index << 64) // 7 for index in range(8)]
    began = time.monotonic()
    with claimed(tmp_path, edges[0], edges[1] - 1), claimed(tmp_path, edges[1], edges[2] - 1):
        assert time.monotonic() - began < 60


HOLDER = """
import sys, time
from pathlib import Path
from fastscore.vectors.view import claimed
with claimed(Path(sys.argv[1]), 0, 2**64 - 1):
    print("held", flush=True)
    time.sleep(600)
"""


def test_nobody_waits_for_ever_for_a_process_that_was_stopped_nor_for_one_that_died(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    waited = []
    with claimed(tmp_path, 0, 5000, patience=0.3, check_cancelled=lambda: waited.append(1)):
        assert waited
    holder.kill()
    holder.communicate()
    waited.clear()
    with claimed(tmp_path, 0, HIGHEST, check_cancelled=lambda: waited.append(1)):
        assert not waited


def test_who_waits_for_more_than_a_second_says_so_once(tmp_path, caplog):
    with claimed(tmp_path, 0, HIGHEST):
        for patience in (0.5, 1.3, 1.3):
            with claimed(tmp_path, 0, 5000, patience=patience):
                pass
    assert caplog.messages == [
        f"Waiting for another process, which embeds the same texts into {tmp_path}; each time for "
        "1 s at most."
    ]


def test_whoever_is_told_to_stop_waits_no_more(tmp_path):
    def stop():
        raise KeyboardInterrupt

    with (
        claimed(tmp_path, 0, HIGHEST),
        pytest.raises(KeyboardInterrupt),
        claimed(tmp_path, 0, HIGHEST, check_cancelled=stop),
    ):
        pass


def test_where_no_lock_is_to_be_had_nobody_waits(tmp_path):
    with claimed(tmp_path / "absent", 0, HIGHEST), claimed(tmp_path / "absent", 0, HIGHEST):
        assert not (tmp_path / "absent").exists()
