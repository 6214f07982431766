"""What all tests share: a cache of their own, and the model where it can be had."""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from fastscore import cli
from fastscore.files import cache_root

NIGHTLY = bool(os.environ.get("FASTSCORE_NIGHTLY"))
"""Whether tests that try something many times do so as often as `make test-nightly` asks."""


def often(by_day: int, by_night: int) -> int:
    """Return how often a test tries something."""
    return by_night if NIGHTLY else by_day


EXAMPLES = {
    "suites": often(25, 1_000),
    "kernels": int(os.environ.get("FASTSCORE_EXAMPLES", often(60, 4_000))),
}
"""How many examples a property has by profile; ``FASTSCORE_EXAMPLES`` says it for kernels."""

for _name, _examples in EXAMPLES.items():
    settings.register_profile(
        _name,
        settings.get_profile(settings.get_current_profile_name()),
        max_examples=_examples,
        deadline=None,  # kernels are compiled when they are first called
        suppress_health_check=[HealthCheck.too_slow],  # a loaded machine is
    )


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Load the profile of a module's properties: they take it when the module is imported."""
    asked = collector.config.getoption("hypothesis_profile", None)
    if isinstance(collector, pytest.Module) and asked is None:
        folders = collector.path.relative_to(Path(__file__).parent).parts
        settings.load_profile("kernels" if {"kernels", "readers"} & {*folders} else "suites")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin the hour of the soak before all else: who shares tests out knows nothing of hours."""
    items.sort(key=lambda item: "soak" not in item.name)


def pytest_collection_finish(session: pytest.Session) -> None:
    """In CI, have properties draw constants of the modules that are loaded before any test runs.

    Hypothesis draws from those that are loaded at the moment: from others wherever tests that load
    more ran before, which depends on how workers share them.
    """
    if os.environ.get("CI") and hasattr(providers, "_get_local_constants"):
        constants = providers._get_local_constants()
        providers._get_local_constants = lambda: constants


def write_lines(path: Path, rows: Iterable[object]) -> Path:
    """Write rows as JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def fastscore_command(
    arguments: Sequence[object], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process, which has imported most of it: a second less.

    What is tried of the process itself, its start, signals or limits, takes `fastscore_process`.
    """
    words = ["fastscore", *map(str, arguments)]
    out, error = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "argv", words),
        mock.patch("click.core._detect_program_name", return_value="fastscore"),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        code = cli._run()
    written = (stream.buffer.getvalue().decode() for stream in (out, error))
    return subprocess.CompletedProcess(words, code, *written)


def fastscore_process(
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


def python_process(
    code: str, *arguments: object, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with options of `subprocess.run`."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    usual = {"capture_output": True, "text": True, "timeout": 300, "check": False}
    return subprocess.run(command, **usual | options)


def without_reader(arguments: Sequence[object]) -> tuple[int, bytes]:
    """Run the command line with a pipe that nobody reads; return the exit code and stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "fastscore", *map(str, arguments)]
    try:
        done = subprocess.run(
            command, stdout=writing, stderr=subprocess.PIPE, timeout=300, check=False
        )
    finally:
        os.close(writing)
    return done.returncode, done.stderr


@pytest.fixture(scope="session")
def default_model() -> str:
    """Return the default model's name where it is exported, as `make test` sees to."""
    name = "minilm-l6-v2"
    if not (cache_root() / "models" / name / "manifest.json").exists():
        pytest.skip(f"{name} is not exported: run `fastscore models export {name}`")
    return name


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of vectors in which all tests of a session, in any process, embed once."""
    folder = tmp_path_factory.getbasetemp()
    return (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "store"


@contextlib.contextmanager
def alone(place: Path) -> Iterator[bool]:
    """Let one process at a time make what stands at a place; yield whether one has made it."""
    lock, made = (place.with_name(f"{place.name}.{kind}") for kind in ("lock", "made"))
    place.parent.mkdir(exist_ok=True)
    until = time.monotonic() + 600
    while True:
        try:
            lock.mkdir()
            break
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    try:
        yield made.exists()
        made.touch()
    finally:
        lock.rmdir()


@pytest.fixture
def golden() -> Path:
    """Return the folder of hand-made logs with the published scorer's output."""
    return Path(__file__).parent / "suites" / "score_dialogue" / "golden"


@contextlib.contextmanager
def blank_figures() -> Iterator[None]:
    """Leave figures out where they are not the subject: they take most of a page's time."""
    with (
        mock.patch("fastscore.results.report.metrics.svg_of", return_value="<svg></svg>"),
        mock.patch("fastscore.suites.preference_shift.analysis.draw_figures", return_value=[]),
    ):
        yield


@pytest.fixture
def undrawn() -> Iterator[None]:
    with blank_figures():
        yield
