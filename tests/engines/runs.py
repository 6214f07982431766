"""Runs by the command line with an engine, as a user starts them."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

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


def start_run(
    place: Path, run: Path | str, *words: str, **environment: str
) -> subprocess.Popen[str]:
    """Start a run of `score_dialogue` on the logs of a place, which is its working directory."""
    command = ["-c", COMMAND_LINE, "score", "score_dialogue", "logs", "-o", str(run)]
    return subprocess.Popen(
        [sys.executable, *command, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place,
        env={**os.environ, **environment},
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for a run's end; returns what it said on stderr."""
    try:
        _, stderr = process.communicate(timeout=400)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr, stderr
    return stderr


def receipts(run: Path) -> int:
    """Count the shards that a run has scored."""
    return len(list(run.glob("receipts/score-*.json")))


def wait_until(process: subprocess.Popen[str], seen: Callable[[], bool]) -> None:
    """Wait until something is seen, or the process has ended, or it takes too long."""
    deadline = time.monotonic() + 200
    while process.poll() is None and not seen():
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
