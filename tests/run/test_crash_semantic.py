"""Semantic runs that are killed in any stage: the next one finishes them, byte for byte."""

import os
import random
import shutil
import subprocess
import sys
import time
from unittest import mock

import pytest

from fastscore.run.manifest import read_manifest
from tests.conftest import often
from tests.models.tiny_bert import tiny_cache
from tests.run.logs import WORDS, write_varied_logs
from tests.run.mounts import make_read_only, small_disk
from tests.run.running import contents, run_semantic

TEXTS_COLLECTED = ".work/texts/part-*.parquet"


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return write_varied_logs(tmp_path_factory.mktemp("logs"), files=6, dialogues=20)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that holds a tiny model, which knows the logs' words, and the compiled kernels."""
    return tiny_cache(tmp_path_factory.mktemp("cache"), WORDS, max_tokens=16)


RUN = """
import sys
from pathlib import Path
from tests.run.running import run_semantic
run, *logs = map(Path, sys.argv[1:])
run_semantic(logs, run)
"""


def start(logs, run, cache):
    """Start a run of many small shards that embeds into a store of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(run), *map(str, logs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FASTSCORE_CACHE": str(cache)},
    )


def finished(logs, run, cache):
    """Run to the end in this process, which has imported what it takes."""
    with mock.patch.dict(os.environ, FASTSCORE_CACHE=str(cache)):
        run_semantic(logs, run)
    return contents(run)


@pytest.fixture(scope="module")
def undisturbed(logs, cache, tmp_path_factory):
    """What a run leaves that nobody kills, and how long a process takes once kernels are there."""
    found = finished(logs, tmp_path_factory.mktemp("undisturbed") / "run", cache)
    assert sum(name.startswith("steps/") for name in found) > 5
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    started = time.monotonic()
    process = start(logs, run, cache)
    assert process.wait(timeout=300) == 0, process.communicate()[1]
    seconds = time.monotonic() - started
    assert contents(run) == found
    return found, seconds


def kill(process):
    process.kill()
    process.communicate()


KILLS = often(1, 30)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_run_killed_at_any_moment_is_finished_by_the_next(
    logs, cache, undisturbed, tmp_path, seed
):
    expected, seconds = undisturbed
    moment = (seed + random.Random(seed).random()) / KILLS  # spread evenly over the run
    moment = (0.3 + 0.7 * moment) * seconds
    process = start(logs, tmp_path / "run", cache)
    time.sleep(moment)
    kill(process)
    assert finished(logs, tmp_path / "run", cache) == expected


@pytest.mark.parametrize(
    "sign",
    [
        pytest.param(f"run/{TEXTS_COLLECTED}", marks=pytest.mark.slow),
        "store/*/*.tmp",
        pytest.param("store/*/*.ids", marks=pytest.mark.slow),
        "run/receipts/score-*.json",
    ],
)
def test_a_run_killed_in_a_certain_stage_is_finished_by_the_next(
    logs, cache, undisturbed, tmp_path, sign
):
    process = start(logs, tmp_path / "run", cache)
    while process.poll() is None and not any(tmp_path.glob(sign)):
        time.sleep(0.001)
    kill(process)
    assert finished(logs, tmp_path / "run", cache) == undisturbed[0]


@pytest.mark.slow
def test_a_run_killed_again_and_again_is_finished(logs, cache, undisturbed, tmp_path):
    expected, seconds = undisturbed
    rng = random.Random(0)
    for _ in range(3):
        process = start(logs, tmp_path / "run", cache)
        time.sleep(rng.uniform(0.4, 0.8) * seconds)
        kill(process)
    assert finished(logs, tmp_path / "run", cache) == expected
    assert not os.path.lexists(tmp_path / "run" / ".work")


def test_a_run_whose_texts_are_all_stored_reads_its_logs_once(logs, cache, undisturbed, tmp_path):
    stages = []
    for name in ("cold", "warm"):
        assert finished(logs, tmp_path / name, cache) == undisturbed[0]
        stages.append(read_manifest(tmp_path / name).stages)
    assert list(stages[0]) == ["plan", "texts", "embed", "score", "summary"]
    assert list(stages[1]) == ["plan", "texts", "summary"]


def test_a_store_that_is_cold_warm_or_deleted_meanwhile_changes_no_number(
    logs, cache, tmp_path, undisturbed
):
    expected, _ = undisturbed
    assert finished(logs, tmp_path / "cold", cache) == expected
    assert finished(logs, tmp_path / "warm", cache) == expected
    for turn in range(often(1, 12)):
        shutil.rmtree(tmp_path / "store")
        run = tmp_path / f"run-{turn}"
        process = start(logs, run, cache)
        wanted = 1 + random.Random(turn).randrange(6)
        while process.poll() is None and len(list(tmp_path.glob("store/*/*.faiss"))) < wanted:
            time.sleep(0.005)
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        _, stderr = process.communicate(timeout=300)
        assert process.returncode == 0 or "StoreError" in stderr.splitlines()[-1], stderr
        assert finished(logs, run, cache) == expected


def test_a_read_only_store_serves_what_it_holds_and_what_it_lacks_is_named(
    logs, cache, tmp_path, undisturbed
):
    expected, _ = undisturbed
    with small_disk(tmp_path / "store", "64m") as store:
        assert finished(logs, tmp_path / "cold", cache) == expected
        make_read_only(store)
        assert finished(logs, tmp_path / "warm", cache) == expected
    with small_disk(tmp_path / "other" / "store", "4m") as store:
        make_read_only(store)
        process = start(logs, tmp_path / "other" / "run", cache)
        _, stderr = process.communicate(timeout=300)
        assert process.returncode != 0
        assert "Read-only file system" in stderr
        assert str(store) in stderr
