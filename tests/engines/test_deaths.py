"""Workers, drivers and schedulers that die or are taken for dead: the bytes are the same."""

import contextlib
import importlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from fastscore.errors import EXIT_INCOMPLETE, RunError
from fastscore.logs.integrity.limits import DEFAULT_LIMITS
from tests.conftest import fastscore_command, often
from tests.engines.clusters import dask_cluster, ray_cluster
from tests.engines.runs import (
    LEXICAL,
    RAY_BY_NIGHT,
    SEMANTIC,
    finish,
    let_go,
    receipts,
    run_here,
    start_run,
    wait_for_shards,
    workers_of,
)
from tests.models.tiny_bert import link_kernels
from tests.run.running import contents

distributed = pytest.importorskip("distributed")


@RAY_BY_NIGHT
@pytest.mark.parametrize("seed", range(often(1, 20)))
def test_a_worker_killed_at_any_moment_is_done_without(
    engine, place, semantic, cache, tmp_path, seed
):
    rng = random.Random(seed)
    run, moment = tmp_path / "run", rng.randrange(1, 12)
    words = (*SEMANTIC, "--engine", engine, "--store", str(tmp_path / "store"))
    process = start_run(place, run, *words, held_at=moment, FASTSCORE_CACHE=str(cache))
    wait_for_shards(process, run, moment)
    workers = workers_of(process)
    assert workers
    if seed % 2:  # while the run goes on; the others are killed before they save a receipt
        let_go(run)
        time.sleep(rng.uniform(0, 0.3))
    with contextlib.suppress(psutil.NoSuchProcess):
        rng.choice(workers).kill()
    if not seed % 2:
        let_go(run)
    stderr = finish(process)
    assert contents(run) == semantic
    if not seed % 2 and moment < 10 and engine == "dask":  # Ray has processes that wait, too
        assert "workers died" in stderr


@pytest.mark.slow
def test_a_worker_killed_while_it_adds_up_is_done_without(engine, place, lexical, tmp_path):
    run = tmp_path / "run"
    process = start_run(place, run, *LEXICAL, "--engine", engine)
    sums = run / ".work" / "summary"
    while process.poll() is None and not sums.exists():
        time.sleep(0.002)
    for worker in workers_of(process)[:1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()
    finish(process)
    assert contents(run) == lexical


@RAY_BY_NIGHT
@pytest.mark.parametrize("seed", range(often(1, 5)))
def test_a_driver_killed_at_any_moment_is_finished_by_the_same_command(
    engine, place, lexical, tmp_path, seed
):
    rng = random.Random(seed)
    run, moment = tmp_path / "run", rng.randrange(1, 12)
    process = start_run(place, run, *LEXICAL, "--engine", engine, held_at=moment)
    wait_for_shards(process, run, moment)
    workers = workers_of(process)
    assert workers
    if seed % 2:  # while the run goes on
        let_go(run)
        time.sleep(rng.uniform(0, 0.3))
    process.kill()
    process.communicate()
    if not seed % 2:
        let_go(run)
    finish(start_run(place, run, *LEXICAL, "--engine", engine))
    assert contents(run) == lexical
    _, left = psutil.wait_procs(workers, timeout=60)
    assert not left


@RAY_BY_NIGHT
def test_an_interrupted_run_ends_soon_and_leaves_no_process(engine, place, lexical, tmp_path):
    run = tmp_path / "run"
    process = start_run(place, run, *LEXICAL, "--engine", engine, held_at=2)
    wait_for_shards(process, run, 2)
    workers = workers_of(process)
    assert workers
    process.send_signal(signal.SIGINT)
    let_go(run)
    assert "the same command finishes the work" in finish(process, 130)
    _, left = psutil.wait_procs(workers, timeout=60)
    assert not left
    run_here(place, run, *LEXICAL)
    assert contents(run) == lexical


@pytest.mark.slow
def test_a_worker_beyond_its_memory_ends_the_run_and_more_goes_on(engine, place, lexical, tmp_path):
    """What was read is small: it is scoring that takes too much, in the workers alone."""
    run, more = tmp_path / "run", tmp_path / "run.memory"
    words = (*LEXICAL, "--engine", engine, "--max-memory", "500")
    more.write_text("600")
    process = start_run(place, run, *words)
    said = r"A worker \(host .+, process \d+\) takes [\d,]+ MiB .*max_memory allows"
    assert re.search(said, finish(process, EXIT_INCOMPLETE))
    more.unlink()
    finish(start_run(place, run, *words))
    assert contents(run) == lexical


DYING = """
import os, signal
from fastscore_jit import system
class System:
    def __getattr__(self, name):
        return getattr(os, name)
    def replace(self, source, target, *given, **named):
        if "rejects" in str(target):  # tables have their names, this has not
            os.kill(os.getpid(), signal.SIGKILL)
        os.replace(source, target, *given, **named)
system.os = System()
"""


@pytest.mark.slow
def test_a_worker_that_dies_amid_a_file_leaves_nothing_of_it(place, lexical, tmp_path):
    run, preload = tmp_path / "run", tmp_path / "dying.py"
    preload.write_text(DYING)
    link_kernels(tmp_path / "cluster" / "cache-of-workers")
    with dask_cluster(tmp_path / "cluster", preload=preload) as cluster:
        process = start_run(place, run, *LEXICAL, "--engine", "dask", "--address", cluster.address)
        stderr = finish(process)
        assert cluster.workers[0].wait(timeout=60) == -signal.SIGKILL
    assert "workers died" in stderr
    assert contents(run) == lexical


STOPPING = """
import os, signal, time
from fastscore.run import tasks
commit = tasks.published = getattr(tasks, "published", tasks.commit_table)  # loaded twice
done = []
def stopping(*given):
    committed = commit(*given)
    done.append(given)
    if len(done) == 2:  # amid a shard
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(0.5)
    return committed
tasks.commit_table = stopping
"""


@pytest.mark.slow
def test_a_worker_that_was_taken_for_dead_and_comes_back_harms_nothing(place, lexical, tmp_path):
    run, preload = tmp_path / "run", tmp_path / "stopping.py"
    preload.write_text(STOPPING)
    link_kernels(tmp_path / "cluster" / "cache-of-workers")
    with dask_cluster(tmp_path / "cluster", worker_ttl="10s", preload=preload) as cluster:
        process = start_run(place, run, *LEXICAL, "--engine", "dask", "--address", cluster.address)
        stderr = finish(process)
        zombie = psutil.Process(cluster.workers[0].pid)
        assert zombie.status() == psutil.STATUS_STOPPED
        assert "workers died" in stderr
        before = contents(run)
        assert before == lexical
        zombie.resume()
        time.sleep(3)
        assert contents(run) == before
        assert not list(run.rglob("*.tmp"))


def test_a_scheduler_that_goes_away_ends_the_run_with_its_address(place, lexical, tmp_path):
    run = tmp_path / "run"
    link_kernels(tmp_path / "cluster" / "cache-of-workers")
    with dask_cluster(tmp_path / "cluster") as cluster:
        words = (*LEXICAL, "--engine", "dask", "--address", cluster.address)
        process = start_run(place, run, *words, held_at=2)
        wait_for_shards(process, run, 2)
        cluster.scheduler.kill()
        stderr = finish(process, 4)
    let_go(run)
    assert f"The Dask scheduler at {cluster.address} went away." in stderr
    assert "run the same command again" in stderr
    run_here(place, run, *LEXICAL)
    assert contents(run) == lexical


@pytest.mark.slow
def test_a_ray_cluster_elsewhere_keeps_nothing_of_an_interrupted_run_and_is_named_when_it_goes(
    place, lexical, tmp_path, monkeypatch
):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    link_kernels(tmp_path / "cluster" / "cache-of-workers")
    with ray_cluster(tmp_path / "cluster") as cluster:
        words = (*LEXICAL, "--engine", "ray", "--address", cluster.address)
        run = tmp_path / "interrupted"
        process = start_run(place, run, *words, held_at=2)
        wait_for_shards(process, run, 2)
        process.send_signal(signal.SIGINT)
        finish(process, 130)
        ray.init(cluster.address, log_to_driver=False, logging_level="CRITICAL")
        try:
            deadline = time.monotonic() + 60
            while ray.available_resources().get("CPU") != 2:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        finally:
            ray.shutdown()
        left = receipts(run)
        assert left < 12
        let_go(run)

        finish(start_run(place, tmp_path / "whole", *words))
        assert contents(tmp_path / "whole") == lexical
        assert receipts(run) == left
        assert not (run / "summary.json").exists()

        run = tmp_path / "run"
        process = start_run(place, run, *words, held_at=2)
        wait_for_shards(process, run, 2)
        for child in psutil.Process(cluster.scheduler.pid).children(recursive=True):
            if child.name() == "gcs_server":
                child.kill()
        stderr = finish(process, 4)
    let_go(run)
    assert f"The Ray cluster at {cluster.address} went away." in stderr
    run_here(place, run, *LEXICAL)
    assert contents(run) == lexical


def test_workers_of_our_own_that_all_end_are_not_waited_for(monkeypatch):
    engines = importlib.import_module("fastscore.run.engines.dask")
    monkeypatch.setattr(engines, "WORKERLESS_SECONDS", 0.1)
    monkeypatch.setattr(engines, "COUNT_SECONDS", 0.1)
    with engines.open_engine(None, 1) as engine:
        assert list(engine.map(abs, [-1])) == [1]
        cluster = engine._client.cluster
        threading.Timer(1, lambda: [end_nanny(each) for each in cluster.workers.values()]).start()
        with pytest.raises(RunError, match="All worker processes ended"):
            list(engine.map(time.sleep, [100]))


def end_nanny(nanny):
    nanny.loop.add_callback(nanny.close)


def test_a_ray_that_does_not_start_is_named(monkeypatch):
    """On a machine with much to do its node is not there in time, of which Ray has no type."""
    ray = pytest.importorskip("ray")
    from fastscore.run.engines.ray import open_engine

    def late(**options):
        raise Exception("The current node timed out during startup.")

    monkeypatch.setattr(ray, "init", late)
    with (
        pytest.raises(RunError, match=r"Ray does not start on this machine: .+ timed out"),
        open_engine(None, 1, DEFAULT_LIMITS),
    ):
        pass


def test_a_script_whose_workers_would_run_it_is_told_how_to_call(place, tmp_path):
    script = tmp_path / "script.py"
    options = f"fastscore.ScoreDialogue(lex_weight=1.0), output={str(tmp_path / 'run')!r}"
    script.write_text(f"import fastscore\nfastscore.score('logs', {options}, engine='dask')\n")
    done = subprocess.run(
        [sys.executable, script], cwd=place, capture_output=True, text=True, check=False
    )
    assert 'In a script call it below `if __name__ == "__main__":`' in done.stderr


def test_an_address_where_nobody_answers_is_named(place, tmp_path, monkeypatch):
    engines = importlib.import_module("fastscore.run.engines.dask")
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 0.5)
    monkeypatch.chdir(place)
    words = ("--engine", "dask", "--address", "tcp://127.0.0.1:9", "-o", tmp_path / "run")
    done = fastscore_command(["score", "score_dialogue", "logs", *LEXICAL, *words])
    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
