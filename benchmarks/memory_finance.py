"""Measure the suite memory_finance against a plain scorer, on the same synthetic traces.

Both read the same file and score every turn, by turns in one process; medians of processor and
wall time are printed for reading (JSON to values or columns) and scoring (to rows and summary), and
the two results are compared in full before anything is printed.

Usage: python -m benchmarks.memory_finance --data FILE [--turns 100000] [--repeats 3]
"""

import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import polars as pl

from benchmarks import plain_memory_finance as plain
from benchmarks.memory_finance_traces import read_dialogues, write_traces
from fastscore.logs.pieces import whole_file
from fastscore.logs.scan import read_shard
from fastscore.suites.memory_finance import SUITE, MemoryFinanceOptions
from fastscore.suites.memory_finance.legacy import legacy_summary
from fastscore.vectors.view import VectorView
from fastscore.version import __version__

Stages = dict[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Timed:
    """Processor and wall seconds of a scorer's stages, and its summary."""

    stages: Stages
    summary: Any


def _time(stages: Stages, stage: str, work: Callable[[], Any]) -> Any:
    processor, wall = time.process_time(), time.perf_counter()
    result = work()
    stages[stage] = (time.process_time() - processor, time.perf_counter() - wall)
    return result


def run_ours(path: Path) -> Timed:
    """Score a trace with the suite."""
    stages: Stages = {}
    options = MemoryFinanceOptions()

    def read() -> Any:
        return SUITE.events(read_shard(whole_file(str(path)), SUITE.source).frame, options)

    def score(events: Any) -> dict[str, pl.DataFrame]:
        tables = SUITE.score(events, VectorView.empty(), options)
        SUITE.summarise({name: table.lazy() for name, table in tables.items()}, options)
        return tables

    events = _time(stages, "read", read)
    tables = _time(stages, "score", lambda: score(events))
    return Timed(stages, legacy_summary(tables["turns"], tables["dialogues"], "set"))


def run_plain(path: Path) -> Timed:
    """Score a trace in plain Python."""
    stages: Stages = {}
    words = plain.read_words()

    def read() -> Any:
        with path.open(encoding="utf-8") as lines:
            return plain.read_traces(lines)

    def score(dialogs: Any) -> Any:
        rows = plain.score_turns(dialogs, words)
        return plain.summarise(dialogs, rows, words, "set")

    dialogs = _time(stages, "read", read)
    return Timed(stages, _time(stages, "score", lambda: score(dialogs)))


def median_times(runs: list[Timed], stages: tuple[str, ...]) -> tuple[float, float]:
    """Return the medians of processor and wall seconds of some stages together."""
    processor = [sum(run.stages[stage][0] for stage in stages) for run in runs]
    wall = [sum(run.stages[stage][1] for stage in stages) for run in runs]
    return statistics.median(processor), statistics.median(wall)


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--turns", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--seed", default=0, show_default=True)
def main(data: Path, turns: int, repeats: int, seed: int) -> None:
    """Compare the suite with a plain scorer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dialog_trace.jsonl"
        n_bytes = write_traces(path, read_dialogues(data), turns, seed)
        run_ours(path)  # compiles
        ours: list[Timed] = []
        theirs: list[Timed] = []
        for _ in range(repeats):
            ours.append(run_ours(path))
            theirs.append(run_plain(path))
    if json.dumps(ours[0].summary) != json.dumps(theirs[0].summary):
        raise click.ClickException("the two scorers disagree")
    click.echo(
        f"fastscore {__version__}, Python {platform.python_version()}, polars {pl.__version__}, "
        f"{platform.machine()}; {turns} synthetic turns, {n_bytes / 1e6:.0f} MB, seed {seed}, "
        f"medians of {repeats}; results equal"
    )
    for stages in (("read",), ("score",), ("read", "score")):
        fast, slow = median_times(ours, stages), median_times(theirs, stages)
        click.echo(
            f"{' + '.join(stages):<13} ours {fast[0]:7.2f} s CPU {fast[1]:7.2f} s wall   "
            f"plain {slow[0]:7.2f} s CPU {slow[1]:7.2f} s wall   "
            f"{slow[0] / fast[0]:5.1f}x CPU {slow[1] / fast[1]:5.1f}x wall"
        )


if __name__ == "__main__":
    main()
