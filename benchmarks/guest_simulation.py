"""Measure the suite guest_simulation against a plain scorer, on the same logs.

Both sides read JSON Lines from disk and write results. They run in this process, and as whole
processes with start-up. The plain scorer, which takes minutes, runs once. Every metric of every
conversation is compared before any output.

Usage: python -m benchmarks.guest_simulation [--conversations 100000] [--repeats 3] [--quick]
"""

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import polars as pl

import fastscore
from benchmarks.figures import Figure, publish
from benchmarks.guest_simulation_logs import SAMPLE, SEED, personas_of, read_orders, write_shards
from benchmarks.processes import Cost, measure
from fastscore.settings.options import available_processors
from tests.oracles import guest_simulation as plain

ROOT = Path(__file__).parents[1]
TARGET = 50
TOLERANCE = 1e-9
QUICK_CONVERSATIONS = 2_000


def ours_inside(logs: Path, output: Path) -> None:
    """Score logs with the suite, in this process."""
    fastscore.score(
        logs,
        fastscore.GuestSimulation(personas=str(personas_of(logs))),
        output=output,
        embedder=None,
    )


def plain_inside(logs: Path, output: Path) -> None:
    """Score logs with the plain scorer, in this process."""
    plain.evaluate(logs, personas_of(logs), output)


def ours_as_process(logs: Path, output: Path) -> Cost:
    """Score logs with the command line."""
    words = ["score", "guest_simulation", str(logs), "-o", str(output), "-q"]
    command = [sys.executable, "-m", "fastscore", *words, "--personas", str(personas_of(logs))]
    return measure(command, cwd=ROOT)


def plain_as_process(logs: Path, output: Path) -> Cost:
    """Score logs with the plain scorer, in a separate process."""
    words = [str(logs), str(personas_of(logs)), str(output)]
    return measure([sys.executable, "-m", "tests.oracles.guest_simulation", *words], cwd=ROOT)


def timed(work: Callable[[Path, Path], None]) -> Callable[[Path, Path], Cost]:
    """Return the cost of work in this process."""

    def run(logs: Path, output: Path) -> Cost:
        os.sync()
        processor, wall = time.process_time(), time.perf_counter()
        work(logs, output)
        return Cost(time.perf_counter() - wall, time.process_time() - processor, 0.0)

    return run


def check_equal(ours: Path, plainly: Path) -> None:
    """Compare every metric of every conversation."""
    found = fastscore.open_run(ours).scan("dialogues").collect()
    expected = pl.read_ndjson(plainly / "dialogues.jsonl", infer_schema_length=None)
    both = found.join(expected, on="dialogue", suffix="_plain", how="full")
    if both.height != expected.height or found.height != expected.height:
        raise click.ClickException("the two scorers found different conversations")
    for metric in plain.METRICS:
        here, there = pl.col(metric), pl.col(f"{metric}_plain").cast(pl.Float64)
        differs = here.is_null() != there.is_null()
        differs |= ((here - there).abs() > TOLERANCE).fill_null(False)
        wrong = both.filter(differs)
        if wrong.height:
            raise click.ClickException(
                f"{metric} differs in {wrong.height} conversations, first {wrong[0, 'dialogue']}"
            )


def show(title: str, rows: int, ours: list[Cost], peer: list[Cost]) -> None:
    """Print medians and ratios of a pair, and the range of our wall seconds."""
    fast, slow = (
        [statistics.median(getattr(cost, part) for cost in costs) for part in ("cpu", "wall")]
        for costs in (ours, peer)
    )
    publish(
        Figure(
            what=f"{title}, {clock}",
            rows=rows,
            unit="s",
            ours=mine,
            peer="plain scorer",
            theirs=theirs,
            ratio=theirs / mine,
            aim=TARGET if clock == "wall" else None,
        )
        for clock, mine, theirs in zip(("CPU", "wall"), fast, slow, strict=True)
    )
    walls = [cost.wall for cost in ours]
    click.echo(
        f"{title:<14} ours {fast[0]:7.2f} s CPU {fast[1]:7.2f} s wall "
        f"({min(walls):.2f}-{max(walls):.2f})   "
        f"plain {slow[0]:7.2f} s CPU {slow[1]:7.2f} s wall   "
        f"{slow[0] / fast[0]:5.1f}x CPU {slow[1] / fast[1]:5.1f}x wall (target {TARGET}x)"
    )


def write_logs(folder: Path, data: Path, conversations: int) -> tuple[Path, int]:
    """Write the logs; return their folder and size."""
    logs = folder / "logs"
    return logs, write_shards(logs, read_orders(data), conversations, SEED)


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=SAMPLE)
@click.option("--conversations", type=click.IntRange(min=1), default=100_000, show_default=True)
@click.option(
    "--repeats", type=click.IntRange(min=1), default=3, show_default=True, help="Of ours."
)
@click.option("--quick", is_flag=True, help=f"{QUICK_CONVERSATIONS:,} conversations.")
def main(data: Path, conversations: int, repeats: int, quick: bool) -> None:
    """Compare the suite with a plain scorer."""
    conversations = QUICK_CONVERSATIONS if quick else conversations
    pairs = {
        "in one process": (timed(ours_inside), timed(plain_inside)),
        "as processes": (ours_as_process, plain_as_process),
    }
    costs: dict[str, tuple[list[Cost], list[Cost]]] = {title: ([], []) for title in pairs}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs, n_bytes = write_logs(folder, data, conversations)
        warm, _ = write_logs(folder / "warm", data, 100)
        ours_inside(warm, folder / "warm" / "run")  # compile kernels
        for title, contenders in pairs.items():
            for contender, measured, output, times in zip(
                contenders,
                costs[title],
                (folder / "run", folder / "plain"),
                (repeats, 1),
                strict=True,
            ):
                for _ in range(times):
                    shutil.rmtree(output, ignore_errors=True)
                    measured.append(contender(logs, output))
            check_equal(folder / "run", folder / "plain")
        means = json.loads((folder / "plain" / "summary.json").read_text())
    click.echo(
        f"fastscore {fastscore.__version__}, Python {platform.python_version()}, polars "
        f"{pl.__version__}, {platform.machine()}, {available_processors()} processors, load "
        f"{os.getloadavg()[0]:.1f}; {conversations:,} conversations (synthetic traces around real "
        f"orders), {n_bytes / 1e6:.0f} MB, seed {SEED}, medians of {repeats}, plain once; every "
        f"metric equal within {TOLERANCE:g}; mean CRRS {means['all']['CRRS']:.4f}"
    )
    for title, (ours, peer) in costs.items():
        show(title, conversations, ours, peer)


if __name__ == "__main__":
    main()
