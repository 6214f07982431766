"""What all tests share: a cache of their own, and the model where it can be had."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def fastscore_command(
    arguments: Sequence[object], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "fastscore", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture
def golden() -> Path:
    """Return the folder of hand-made logs with the published scorer's output."""
    return Path(__file__).parent / "suites" / "score_dialogue" / "golden"
