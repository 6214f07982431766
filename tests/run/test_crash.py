"""Runs that are killed, interrupted, or meet a failing disk, and their resumption."""

import contextlib
import errno
import io
import itertools
import os
import random
import re
import signal
import time

import pytest

from fastscore import files, open_run
from fastscore.errors import RunError
from tests.conftest import NIGHTLY, fastscore_command, often, python_process
from tests.run.logs import write_logs
from tests.run.running import contents, run_lexical, start_lexical


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    return write_logs(folder, files=12, dialogues=40)


@pytest.fixture(scope="module")
def undisturbed(logs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    finish_lexical(logs, folder / "here", "--workers", "2")  # kernels are compiled from now on
    started = time.monotonic()
    process = start_lexical(logs, folder / "there", "--workers", "2")
    assert process.wait(timeout=300) == 0, process.communicate()[1]
    seconds = time.monotonic() - started
    found = contents(folder / "there")
    assert contents(folder / "here") == found
    return found, seconds


def finish_lexical(logs, run, *more):
    """Give the same command again, in this process, which has imported what it takes."""
    words = ["score", "score_dialogue", *logs, "-o", run, "--lex-weight", "1", *more]
    done = fastscore_command(words)
    assert done.returncode == 0, done.stderr


KILLS = often(3, 200)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_run_killed_at_any_moment_is_finished_by_the_next(logs, undisturbed, tmp_path, seed):
    expected, seconds = undisturbed
    run = tmp_path / "run"
    process = start_lexical(logs, run, "--workers", "2")
    moment = (seed + random.Random(seed).random()) / KILLS  # spread evenly over the run
    time.sleep((0.3 + 0.7 * moment) * seconds)
    process.kill()
    process.wait()
    finish_lexical(logs, run, "--workers", "2")
    assert contents(run) == expected


@pytest.mark.parametrize("seed", range(often(1, 20)))
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_soon_and_is_finished_by_the_next(
    logs, undisturbed, tmp_path, number, code, seed
):
    expected, seconds = undisturbed
    run = tmp_path / "run"
    process = start_lexical(logs, run, "--workers", "2")
    while not (run / "manifest.json").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(random.Random(seed).uniform(0.0, 0.5) * seconds if seed else 0.0)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)  # no process that it started outlives it
    if process.returncode != 0:  # it may have been done already
        assert process.returncode == code, stderr
        # of a run that was done when the signal came nothing is left to finish
        assert "the same command finishes the work" in stderr or contents(run) == expected
        assert "Traceback" not in stderr
    assert not list(run.rglob("*.tmp"))
    finish_lexical(logs, run, "--workers", "2")
    assert contents(run) == expected


FAILURES = (errno.EIO, errno.ENOSPC, errno.EINTR)


class FailingCall:
    """Calls through, but fails the call of a given number."""

    def __init__(self, original, number, code):
        self.original, self.left, self.code = original, number, code

    def __call__(self, *arguments, **named):
        self.left -= 1
        if self.left == 0:
            raise OSError(self.code, os.strerror(self.code))
        return self.original(*arguments, **named)


def failing_writes(failing):
    """Open files of which the write of a given number fails, over all files."""

    class Failing(io.BufferedRandom):
        def write(self, data):
            failing.left -= 1
            if failing.left == 0:
                raise OSError(failing.code, os.strerror(failing.code))
            return super().write(data)

    return lambda path: Failing(io.FileIO(path, "xb+"))


def failure_of_a_run(logs, run):
    try:
        run_lexical(logs, run, shard_bytes=1)
    except RunError as error:
        return str(error)
    return None


@pytest.mark.parametrize("code", FAILURES)
@pytest.mark.parametrize("name", ["open_new", "replace", "fsync"])
def test_a_failing_disk_loses_nothing_that_was_committed(tmp_path, monkeypatch, name, code):
    """Every call fails: by day by one of the codes in turn, by night by each."""
    logs = write_logs(tmp_path / "logs", files=2, dialogues=often(1, 2))
    run_lexical(logs, tmp_path / "expected", shard_bytes=1)
    expected = contents(tmp_path / "expected")
    place = files if name == "open_new" else os
    original = getattr(place, name)
    for number in itertools.count(often(FAILURES.index(code), 0) + 1, often(len(FAILURES), 1)):
        failing = FailingCall(original, number, code)
        monkeypatch.setattr(place, name, failing_writes(failing) if place is files else failing)
        failure = failure_of_a_run(logs, tmp_path / f"run-{number}")
        monkeypatch.setattr(place, name, original)
        if failing.left > 0:
            assert failure is None
            break
        assert failure is not None
        assert ("disk is full" in failure) == (code == errno.ENOSPC)
        run_lexical(logs, tmp_path / f"run-{number}", shard_bytes=1)
        assert contents(tmp_path / f"run-{number}") == expected
    assert number > 10


def test_a_full_disk_is_named(tmp_path):
    logs = write_logs(tmp_path / "logs", files=1, dialogues=3)
    script = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from fastscore.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        f"sys.argv = ['fastscore', 'score', 'score_dialogue', {str(logs[0])!r}, '-o', "
        f"{str(tmp_path / 'run')!r}, '--lex-weight', '1']\n"
        "main()\n"
    )
    done = python_process(script)
    assert done.returncode == 4, done.stderr
    assert "run the same command again" in done.stderr.lower()
    assert "Traceback" not in done.stderr
    outcome = run_lexical(logs, tmp_path / "run")
    assert outcome.manifest.status == "complete"


@pytest.mark.usefixtures("default_model")
def test_an_interrupted_embedding_ends_soon_and_goes_on_later(tmp_path):
    logs = write_logs(tmp_path / "logs", files=4, dialogues=60)
    words = ["--lex-weight", "0", "--store", str(tmp_path / "store"), "--baseline-pairs", "10"]
    process = start_lexical(logs, tmp_path / "run", *words)
    while not list((tmp_path / "run").rglob("texts-*.json")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode in (0, 130), stderr
    assert not list((tmp_path / "run").rglob(".lock"))
    finish_lexical(logs, tmp_path / "run", *words)


def test_torn_manifests_and_receipts_are_made_again(tmp_path):
    logs = write_logs(tmp_path / "logs", files=1, dialogues=3)
    run = tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    expected = contents(run)
    receipt = run / "receipts" / "score-00001.json"
    manifest = run / "manifest.json"
    for path in (receipt, manifest):
        whole = path.read_bytes()
        times = {each: each.stat().st_mtime_ns for each in (run / "receipts").iterdir()}
        # without the last line end nothing is lost
        for length in range(0, len(whole) - 1, often(197, 1)):
            path.write_bytes(whole[:length])
            with pytest.raises(RunError, match=re.escape(str(path))):
                open_run(run).scan("steps")
            run_lexical(logs, run, shard_bytes=1)
            assert contents(run) == expected
        now = {each: each.stat().st_mtime_ns for each in (run / "receipts").iterdir()}
        # no more than one shard is scored again
        assert {each for each in now if now[each] != times[each]} <= {receipt}


KILLING = """
import os, signal, sys
from pathlib import Path
import fastscore.run.drive, fastscore.run.tasks, fastscore.run.writer
from fastscore.run import manifest
from tests.run.running import run_lexical

name, when, number, output, *logs = sys.argv[1:]
left = int(number)

def killing(original):
    def call(*given, **named):
        global left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = original(*given, **named)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    return call

places = {
    "part": (fastscore.run.tasks, "commit_table"),
    "receipt": (fastscore.run.writer, "save_receipt"),
    "summary": (fastscore.run.drive, "commit_table"),
    "manifest": (manifest.Manifest, "save"),
}
place, attribute = places[name]
setattr(place, attribute, killing(getattr(place, attribute)))
run_lexical(list(map(Path, logs)), Path(output), shard_bytes=1)
"""


def run_until_killed(logs, run, point, number, *, when="before"):
    """Score until the call of a number at a point of a commit, and be killed there."""
    done = python_process(KILLING, point, when, number, run, *logs)
    assert done.returncode == -signal.SIGKILL, done.stderr


COMMITS = [
    (point, number, when)
    for turn, (point, number) in enumerate(
        [("part", 2), ("part", 4), ("receipt", 1), ("receipt", 2), ("summary", 1), ("manifest", 2)]
    )
    for when in (("before", "after") if NIGHTLY else ("before", "after")[turn % 2 :][:1])
]
"""Calls of a commit, and whether the run is killed before or after them; by day by turns."""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return logs of six shards, and what a run of them leaves."""
    folder = tmp_path_factory.mktemp("small")
    logs = write_logs(folder / "logs", files=3, dialogues=2)
    run_lexical(logs, folder / "run", shard_bytes=1)
    return logs, contents(folder / "run")


@pytest.mark.parametrize(("point", "number", "when"), COMMITS)
def test_a_run_killed_at_any_point_of_a_commit_is_finished_by_the_next(
    small, tmp_path, point, number, when
):
    logs, expected = small
    run_until_killed(logs, tmp_path / "run", point, number, when=when)
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert contents(tmp_path / "run") == expected


@pytest.mark.parametrize("done", range(0, 6, often(4, 1)))
def test_a_run_killed_after_some_shards_does_the_others_alone(small, tmp_path, done):
    logs, expected = small
    run_until_killed(logs, tmp_path / "run", "receipt", done + 1)
    receipts = tmp_path / "run" / "receipts"
    before = {path: path.stat().st_mtime_ns for path in receipts.glob("*.json")}
    assert len(before) == done
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert contents(tmp_path / "run") == expected


def test_a_second_writer_is_refused_and_a_dead_ones_lock_is_taken_over(tmp_path):
    logs = write_logs(tmp_path / "logs", files=4, dialogues=40)
    run = tmp_path / "run"
    first = start_lexical(logs, run)
    while first.poll() is None:  # the lock is taken first, then signed
        with contextlib.suppress(FileNotFoundError):
            if (run / ".lock").read_bytes():
                break
        time.sleep(0.005)
    first.send_signal(signal.SIGSTOP)
    second = start_lexical(logs, run)
    _, stderr = second.communicate(timeout=120)
    if (run / ".lock").exists():
        assert second.returncode == 2
        assert f"process {first.pid}" in stderr
    first.kill()
    first.wait()
    finish_lexical(logs, run)
    assert not (run / ".lock").exists()
