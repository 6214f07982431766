"""Runs by the command line with an engine, as a user starts them."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import psutil
import pytest

from fastscore.cli import score
from fastscore.run import tasks
from tests.conftest import fastscore_command

SHARDS = ("--shard-size", "15", "--workers", "2")
LEXICAL = ("--lex-weight", "1", *SHARDS)
SEMANTIC = ("--lex-weight", "0.5", "--baseline-pairs", "200", "--embedder", "tiny", *SHARDS)

COMMAND_LINE = """
import sys
from fastscore.cli import main, score
from fastscore.run import tasks
score.MIB = 1000  # many small shards
tasks.LEAST_TEXTS_PER_BUCKET = 4  # as many buckets as there would be of many texts
main()
"""


_MODULES = [str(Path(__file__).parent / "held"), os.environ.get("PYTHONPATH", "")]
HOOKS = os.pathsep.join(filter(None, _MODULES))
"""Where workers look for modules: first for those that let runs be held."""


def start_run(
    place: Path, run: Path | str, *words: str, held_at: int | None = None, **environment: str
) -> subprocess.Popen[str]:
    """Start a run of `score_dialogue` on the logs of a place, which is its working directory.

    Where `held_at` is given, workers go no further than that many scored shards, and some that they
    are amid, until `let_go`.
    """
    if held_at is not None:
        hold_of(Path(run)).write_text(str(held_at))
    command = ["-c", COMMAND_LINE, "score", "score_dialogue", "logs", "-o", str(run)]
    return subprocess.Popen(
        [sys.executable, *command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**os.environ, "PYTHONPATH": HOOKS, **environment},
    )


def run_here(place: Path, run: Path, *words: str, **environment: str) -> str:
    """Run as `start_run` does in this process, whose threads are the workers; returns stdout."""
    command = ["score", "score_dialogue", "logs", "-o", run, *words]
    with (
        contextlib.chdir(place),
        mock.patch.object(score, "MIB", 1000),
        mock.patch.object(tasks, "LEAST_TEXTS_PER_BUCKET", 4),
    ):
        done = fastscore_command(command, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def hold_of(run: Path) -> Path:
    return run.with_suffix(".hold")


def let_go(run: Path) -> None:
    hold_of(run).unlink()


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for a run's end and return its stderr."""
    try:
        _, stderr = process.communicate(timeout=400)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr, stderr
    return stderr


def receipts(run: Path) -> int:
    return len(list(run.glob("receipts/score-*.json")))


def wait_for_shards(process: subprocess.Popen[str], run: Path, scored: int) -> None:
    """Wait until a run has scored a number of shards, after which it must pause."""
    deadline = time.monotonic() + 200
    while receipts(run) < scored:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


def workers_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Find the worker processes of a run with an engine of its own."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = " ".join(child.cmdline())
            is_ray = words.startswith("ray::") and "Agent" not in words
            if "spawn_main" in words or is_ray:
                found.append(child)
    return found


RAY_BY_NIGHT = pytest.mark.parametrize(
    "engine", ["dask", pytest.param("ray", marks=pytest.mark.slow)], indirect=True
)
"""For tests that take Ray a quarter of a minute or more."""
