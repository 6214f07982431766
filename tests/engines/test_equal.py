"""Every engine writes equal bytes; a cluster of others keeps nothing of an interrupted run."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fastscore.api.examples import example_names, example_options, write_example
from tests.engines.runs import (
    LEXICAL,
    SEMANTIC,
    finish,
    let_go,
    receipts,
    run_here,
    start_run,
    wait_for_shards,
)
from tests.engines.stored import count_vectors
from tests.run.running import contents


@pytest.mark.parametrize("workers", [1, 4])
def test_threads_leave_the_same_bytes(place, semantic, cache, tmp_path, workers):
    words = (*SEMANTIC, "--workers", str(workers), "--store", str(tmp_path / "store"))
    run_here(place, tmp_path / "run", *words, FASTSCORE_CACHE=str(cache))
    assert contents(tmp_path / "run") == semantic
    assert sum(name.startswith("steps/") for name in semantic) > 8


def test_workers_elsewhere_leave_the_same_bytes_and_embed_every_text_once(
    started, place, semantic, cache, tmp_path
):
    run, store = (os.path.relpath(tmp_path / name, place) for name in ("run", "store"))
    words = (*SEMANTIC, "--engine", "dask", "--address", started.address, "--store", store)
    stderr = finish(start_run(place, run, *words, FASTSCORE_CACHE=str(cache)))
    assert "embed: " in stderr
    assert contents(tmp_path / "run") == semantic
    stored = count_vectors(cache, tmp_path / "store")
    assert stored.vectors == count_vectors(cache, cache / "vectors").vectors
    words = (*SEMANTIC, "--store", store)
    run_here(place, tmp_path / "again", *words, FASTSCORE_CACHE=str(cache))
    assert contents(tmp_path / "again") == semantic
    assert count_vectors(cache, tmp_path / "store") == stored


def test_a_dry_run_counts_the_same_and_leaves_nothing(started, place, cache, tmp_path):
    words = (*SEMANTIC, "--store", str(tmp_path / "store"), "--dry-run", "--json")
    run = tmp_path / "runs" / "run"
    run.parent.mkdir()
    here = json.loads(run_here(place, run, *words, FASTSCORE_CACHE=str(cache)))
    assert not list(run.parent.iterdir())
    words = (*words, "--engine", "dask", "--address", started.address)
    process = start_run(place, run, *words, FASTSCORE_CACHE=str(cache))
    stdout, stderr = process.communicate(timeout=400)
    assert process.returncode == 0, stderr
    assert "texts: " in stderr
    assert not list(run.parent.iterdir())
    assert json.loads(stdout) == here
    assert here["missing_texts"] == here["texts"] > 0


def tasks_of_scheduler(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_an_interrupt_cancels_what_has_not_begun_elsewhere(started, place, tmp_path):
    run = tmp_path / "run"
    words = (*LEXICAL, "--engine", "dask", "--address", started.address)
    process = start_run(place, run, *words, held_at=1)
    wait_for_shards(process, run, 1)
    process.send_signal(signal.SIGINT)
    finish(process, 130)
    let_go(run)
    import distributed  # which may be absent

    with distributed.Client(started.address, set_as_default=False) as client:
        deadline = time.monotonic() + 60
        while client.run_on_scheduler(tasks_of_scheduler):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        workers = list(client.nthreads())
        assert len(workers) == 2
        for worker in workers:  # has one thread: it is free when this is done
            client.submit(abs, -1, workers=[worker], pure=False).result(timeout=60)
    assert receipts(run) < 12
    assert not (run / "summary.json").exists()


def test_a_call_interrupted_before_it_begins_says_nothing(started, caplog):
    from fastscore.run.engines.dask import open_engine

    loop = logging.getLogger("tornado.application")
    with open_engine(started.address, 1) as engine:
        engine._client.loop.add_callback(lambda: 1 / 0)  # as the package's own does
        engine.processes()
        engine._client.sync(asyncio.sleep, 0.05)
        assert "Exception in callback" not in caplog.text
    assert loop.isEnabledFor(logging.CRITICAL)


@pytest.mark.slow
@pytest.mark.parametrize("suite", example_names())
def test_every_suite_leaves_the_same_bytes(started, default_model, tmp_path, suite):
    write_example(suite, tmp_path / "example")
    options = example_options(suite, Path("example"))
    for run, more in (("here", ()), ("there", ("--engine", "dask", "--address", started.address))):
        words = ["score", suite, "example/logs", "-o", run, *options, *more]
        words += ["--store", f"store-{run}"]
        subprocess.run([sys.executable, "-m", "fastscore", *words], cwd=tmp_path, check=True)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
