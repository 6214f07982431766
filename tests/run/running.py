"""Runs in this process or another, and comparison of their files."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import pytest

from fastscore.run import tasks
from fastscore.run.drive import Outcome, execute
from fastscore.run.progress import SilentReporter
from fastscore.run.request import Request
from fastscore.vectors.store import embed_missing

VOLATILE = {"stages", "peak_memory_bytes", "environment", "settings", "checksum", "attempt"}


def lexical_request(inputs: Sequence[str | Path], output: Path, **settings: Any) -> Request:
    """Return a request to score logs in this thread, lexically unless another suite is named."""
    usual = {"suite": "score_dialogue", "options": {"lex_weight": 1.0}, "workers": 1}
    return Request(inputs=tuple(map(str, inputs)), output=output, **{**usual, **settings})


def run_lexical(
    inputs: Sequence[str | Path], output: Path, reporter: Any = None, **settings: Any
) -> Outcome:
    return execute(lexical_request(inputs, output, **settings), reporter or SilentReporter())


def run_semantic(inputs: Sequence[Path], output: Path) -> Outcome:
    """Score logs by the tiny model of this cache into a store of many segments beside the run."""
    request = Request(
        suite="score_dialogue",
        inputs=tuple(map(str, inputs)),
        output=output,
        options={"lex_weight": 0.5, "baseline_pairs": 200},
        embedder="tiny",
        store=output.parent / "store",
        workers=2,
        shard_bytes=20_000,
    )
    with mock.patch.dict(embed_missing.__kwdefaults__, texts_per_append=300):
        return execute(request, SilentReporter())


def forbid_scoring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test fail if a shard is scored from here on."""

    def refuse(*_: object) -> None:
        raise AssertionError("a shard is scored")

    monkeypatch.setattr(tasks, "compute_tables", refuse)
    monkeypatch.setattr(tasks, "score_events", refuse)


def start_lexical(inputs: Sequence[Path], output: Path, *more: str) -> subprocess.Popen[str]:
    """Start the command line on logs, lexically, a shard a file, in a process group of its own."""
    words = ["score", "score_dialogue", *map(str, inputs), "-o", str(output), "--lex-weight", "1"]
    return subprocess.Popen(
        [sys.executable, "-m", "fastscore", *words, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def contents(run: Path) -> dict[str, bytes]:
    """Return every file of a run by name; of manifest and receipts, the constant part."""
    files = {
        str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()
    }
    for name in files:
        if name == "manifest.json" or name.startswith("receipts/"):
            content = orjson.loads(files[name]).items()
            kept = {key: value for key, value in content if key not in VOLATILE}
            files[name] = orjson.dumps(kept)
    return files


def table_bytes(run: Path) -> dict[str, bytes]:
    """Return every Parquet file of a run by name."""
    return {name: data for name, data in contents(run).items() if name.endswith(".parquet")}
