"""What it costs to look whether logs hold what a suite needs: a share of whole lexical runs.

Files are screened before anything is planned, nulls and unknown words are counted while rows are
scored. Both are timed inside runs, by the processor time of the process (one worker, so that
nothing else adds to it), and runs with and without them take turns. Two shapes: few large files,
and a file a dialogue.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
import polars as pl

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.miner_logs import Layout, generate
from fastscore.logs.inputs.screening import Screened
from fastscore.run.config import RunConfig
from fastscore.run.drive import execute
from fastscore.run.missing import UNKNOWN_SCHEMA, RowCounts
from fastscore.run.progress import SilentReporter

MOST_SHARE = 0.01
CHECKS = ("fastscore.run.drive.screened_inputs", "fastscore.run.scoring.count_missing")
LAYOUTS: tuple[tuple[str, Layout, int], ...] = (
    ("few large files", "shards", 4_000),
    ("a file a dialogue", "dialogue", 2_000),
)


@contextmanager
def _timed(spent: list[float]) -> Iterator[None]:
    """Add up what the checks take."""

    def timed(check: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            started = time.process_time()
            try:
                return check(*arguments)
            finally:
                spent.append(time.process_time() - started)

        return run

    with ExitStack() as stack:
        for name in CHECKS:
            module, _, function = name.rpartition(".")
            check = getattr(__import__(module, fromlist=[function]), function)
            stack.enter_context(mock.patch(name, timed(check)))
        yield


@contextmanager
def _left_out() -> Iterator[None]:
    """Score what is named as it is, and count nothing."""
    with (
        mock.patch(CHECKS[0], lambda config, source, files, note: Screened(tuple(files), (), ())),
        mock.patch(CHECKS[1], return_value=RowCounts({}, pl.DataFrame(schema=UNKNOWN_SCHEMA))),
    ):
        yield


def _run(logs: Path, folder: Path) -> float:
    """Return the processor seconds of a lexical run."""
    config = RunConfig(
        suite="score_dialogue",
        inputs=(str(logs),),
        output=folder / "run",
        options={"lex_weight": 1.0},
        embedder=None,
    )
    started = time.process_time()
    execute(config, SilentReporter())
    spent = time.process_time() - started
    shutil.rmtree(config.output)  # the next one begins anew
    return spent


@click.command()
@click.option("--quick", is_flag=True, help="A tenth of the dialogues, and three runs.")
@click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
def main(quick: bool, repetitions: int) -> None:
    """Measure runs with the checks and without."""
    repetitions = 3 if quick else repetitions
    click.echo(describe_host())
    for what, layout, dialogues in LAYOUTS:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            dialogues = dialogues // 10 if quick else dialogues
            counts = generate(folder / "logs", dialogues=dialogues, layout=layout)
            rows = counts.predictions + counts.utterances
            _run(folder / "logs", folder)  # compiles, and fills caches of the disk
            checks, checked, unchecked = [], [], []
            for _ in range(repetitions):
                spent: list[float] = []
                with _timed(spent):
                    checked.append(_run(folder / "logs", folder))
                checks.append(sum(spent))
                with _left_out():
                    unchecked.append(_run(folder / "logs", folder))
        ours, run, without = map(statistics.median, (checks, checked, unchecked))
        click.echo(
            f"{what} ({counts.files:,} files, {rows:,} rows): checks {ours * 1e3:.2f} ms "
            f"({min(checks) * 1e3:.2f} to {max(checks) * 1e3:.2f}) of {run * 1e3:.0f} ms, "
            f"{ours / run:.2%}; whole runs without them {without * 1e3:.0f} ms "
            f"({min(unchecked) * 1e3:.0f} to {max(unchecked) * 1e3:.0f})"
        )
        publish(
            [
                Figure(
                    what=f"checks of columns, {what}",
                    rows=rows,
                    unit="CPU ms",
                    ours=ours * 1e3,
                    peer="the run that they are part of",
                    theirs=run * 1e3,
                    ratio=run / ours,
                    aim=1 / MOST_SHARE,
                )
            ]
        )


if __name__ == "__main__":
    main()
