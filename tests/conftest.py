"""What all tests share: a cache of their own, and the model where it can be had."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from fastscore.paths import cache_root

# kernels are compiled when they are first called
settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")


NIGHTLY = bool(os.environ.get("FASTSCORE_NIGHTLY"))
"""Whether tests that try something many times do so as often as `make test-nightly` asks."""


def often(by_day: int, by_night: int) -> int:
    """Return how often a test tries something."""
    return by_night if NIGHTLY else by_day


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


@pytest.fixture(scope="session")
def default_model() -> str:
    """Return the default model's name where it is exported, as `make test` sees to."""
    name = "minilm-l6-v2"
    if not (cache_root() / "models" / name / "manifest.json").exists():
        pytest.skip(f"{name} is not exported: run `fastscore models export {name}`")
    return name


@pytest.fixture
def golden() -> Path:
    """Return the folder of hand-made logs with the published scorer's output."""
    return Path(__file__).parent / "suites" / "score_dialogue" / "golden"
