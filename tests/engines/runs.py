"""Runs by the command line with an engine, as a user starts them."""

import os
import subprocess
import sys
from pathlib import Path

SHARDS = ("--shard-size", "15", "--workers", "2")
LEXICAL = ("--lex-weight", "1", *SHARDS)
SEMANTIC = ("--lex-weight", "0.5", "--baseline-pairs", "200", "--embedder", "tiny", *SHARDS)

COMMAND_LINE = """
import sys
from fastscore.cli import main, score
score.MIB = 1000  # many small shards
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
    assert "Traceback" not in stderr
    return stderr
