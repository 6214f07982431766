"""Measure the suite memory_finance against a plain scorer, on the same synthetic traces.

Both go from the same file on disk to written results: ours to a run directory (Parquet tables and
summary), the plain one to the public evaluation's files (turn rows as JSON Lines, summary). They
run by turns, once inside this process and once as processes of their own, start-up included. The
two results are compared in full before anything is printed.

Usage: python -m benchmarks.memory_finance [--data FILE] [--turns 100000] [--repeats 3]
"""

import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import polars as pl

import fastscore
from benchmarks.figures import Figure, publish
from benchmarks.memory_finance_traces import read_dialogues, write_traces
from fastscore.processors import available_processors
from fastscore.suites.memory_finance.legacy import legacy_summary
from tests.oracles import memory_finance as plain

SAMPLE = Path(__file__).parent / "data" / "kdconv_sample.jsonl.gz"
QUICK_TURNS = 5_000
AIMS = {("in one process", "wall"): 20.0}


@dataclass(frozen=True, slots=True)
class Contender:
    """How one side scores a trace into a folder, and its processor and wall seconds."""

    score: Callable[[Path, Path], Any]
    in_process: bool
    times: list[tuple[float, float]] = field(default_factory=list)

    def run(self, traces: Path, output: Path) -> None:
        """Score into an empty folder, nothing left to write to the disk, and note the time."""
        shutil.rmtree(output, ignore_errors=True)
        os.sync()
        processor, wall = self._processor_seconds(), time.perf_counter()
        self.score(traces, output)
        self.times.append((self._processor_seconds() - processor, time.perf_counter() - wall))

    def medians(self) -> tuple[float, float]:
        """Return the medians of processor and wall seconds."""
        processor, wall = zip(*self.times, strict=True)
        return statistics.median(processor), statistics.median(wall)

    def _processor_seconds(self) -> float:
        if self.in_process:
            return time.process_time()
        times = os.times()
        return times.children_user + times.children_system


def ours_inside(traces: Path, output: Path) -> fastscore.Run:
    """Score a trace with the suite, in this process."""
    return fastscore.score(traces, "memory_finance", output=output, embedder=None)


def ours_alone(traces: Path, output: Path) -> None:
    """Score a trace with the command line."""
    command = ["fastscore", "score", "memory_finance", str(traces), "-o", str(output), "-q"]
    subprocess.run([sys.executable, "-m", *command], check=True)


def plain_alone(traces: Path, output: Path) -> None:
    """Score a trace with the plain scorer, in a process of its own."""
    command = ["tests.oracles.memory_finance", str(traces), str(output)]
    subprocess.run([sys.executable, "-m", *command], check=True)


def check_equal(run: fastscore.Run, summary: Any) -> None:
    """Compare the public evaluation's summary, as both sides make it."""
    turns, dialogues = (run.scan(name).collect() for name in ("turns", "dialogues"))
    ours = legacy_summary(turns, dialogues, summary["dataset_path"])
    if json.dumps(ours) != json.dumps(summary):
        raise click.ClickException("the two scorers disagree")


def show(title: str, rows: int, ours: Contender, peer: Contender) -> None:
    """Print medians and ratios of a pair."""
    fast, slow = ours.medians(), peer.medians()
    publish(
        Figure(
            what=f"{title}, {clock}",
            rows=rows,
            unit="s",
            ours=mine,
            peer="plain scorer",
            theirs=theirs,
            ratio=theirs / mine,
            aim=AIMS.get((title, clock)),
        )
        for clock, mine, theirs in zip(("CPU", "wall"), fast, slow, strict=True)
    )
    click.echo(
        f"{title:<14} ours {fast[0]:6.2f} s CPU {fast[1]:6.2f} s wall   "
        f"plain {slow[0]:6.2f} s CPU {slow[1]:6.2f} s wall   "
        f"{slow[0] / fast[0]:5.1f}x CPU {slow[1] / fast[1]:5.1f}x wall"
    )


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=SAMPLE)
@click.option("--turns", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help=f"{QUICK_TURNS:,} turns, once.")
def main(data: Path, turns: int, repeats: int, seed: int, quick: bool) -> None:
    """Compare the suite with a plain scorer."""
    if quick:
        turns, repeats = QUICK_TURNS, 1
    inside = Contender(ours_inside, True), Contender(plain.evaluate, True)
    alone = Contender(ours_alone, False), Contender(plain_alone, False)
    with tempfile.TemporaryDirectory() as folder:
        traces, output = Path(folder) / "dialog_trace.jsonl", Path(folder) / "output"
        n_bytes = write_traces(traces, read_dialogues(data), turns, seed)
        # compiles
        check_equal(ours_inside(traces, output), plain.evaluate(traces, Path(folder) / "plain"))
        for _ in range(repeats):
            for contender in (*inside, *alone):
                contender.run(traces, output)
    click.echo(
        f"fastscore {fastscore.__version__}, Python {platform.python_version()}, polars "
        f"{pl.__version__}, {platform.machine()}, {available_processors()} processors, load "
        f"{os.getloadavg()[0]:.1f}; {turns} synthetic turns, {n_bytes / 1e6:.0f} MB, seed {seed}, "
        f"medians of {repeats}; results equal"
    )
    show("in one process", turns, *inside)
    show("as processes", turns, *alone)


if __name__ == "__main__":
    main()
