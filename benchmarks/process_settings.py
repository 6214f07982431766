"""What the command line sets for its process, against the same run without: processor seconds.

A setting stays as long as it saves a twentieth of typical whole runs, start-up included, and then
as an option of the command line; the library sets none in a process that imports it. One is left:
that Python does not search for garbage as the process ends (``--collect-at-exit`` has it do so).
Runs take turns, the best of each counts.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from benchmarks import group_travel_logs, guest_simulation_logs, memory_finance, miner_logs
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.memory_finance_traces import read_dialogues, write_traces
from benchmarks.processes import measure

LEAST_SAVED = 1.05
WITHOUT = ("--collect-at-exit",)


def _miners(folder: Path, dialogues: int) -> list[str]:
    miner_logs.generate(folder, dialogues=dialogues)
    return ["score_dialogue", str(folder), "--lex-weight", "1"]


def _travellers(folder: Path, dialogues: int) -> list[str]:
    group_travel_logs.write_logs(folder, dialogues=dialogues)
    return ["group_travel", str(folder / "logs"), "--embedder", "none"]


def _traces(folder: Path, turns: int) -> list[str]:
    folder.mkdir()
    traces = folder / "traces.jsonl"
    write_traces(traces, read_dialogues(memory_finance.SAMPLE), turns)
    return ["memory_finance", str(traces), "--embedder", "none"]


def _guests(folder: Path, conversations: int) -> list[str]:
    orders = guest_simulation_logs.read_orders()
    guest_simulation_logs.write_shards(folder, orders, conversations)
    personas = guest_simulation_logs.personas_of(folder)
    return ["guest_simulation", str(folder), "--personas", str(personas), "--embedder", "none"]


RUNS: dict[str, tuple[Callable[[Path, int], list[str]], int]] = {
    "lexical": (_miners, 1_200),
    "group_travel": (_travellers, 1_800),
    "memory_finance": (_traces, 30_000),
    "guest_simulation": (_guests, 6_000),
}
"""What writes logs of so many dialogues (of memory_finance: turns), and says how to score them."""


def _figure(name: str, rows: int, repetitions: int, folder: Path) -> Figure:
    """Measure a run with and without the setting, by turns."""
    words = RUNS[name][0](folder / "logs", rows)
    score = ["score", *words, "-q", "-o", str(folder / "run"), "--overwrite"]
    seconds: dict[tuple[str, ...], list[float]] = {(): [], WITHOUT: []}
    for _ in range(repetitions):
        for option, measured in seconds.items():
            command = [sys.executable, "-m", "fastscore", *option, *score]
            measured.append(measure(command, cwd=folder).cpu)
    ours, theirs = min(seconds[()]), min(seconds[WITHOUT])
    return Figure(
        what=f"{name}: no search for garbage at exit",
        rows=rows,
        unit="processor s",
        ours=ours,
        peer="with it",
        theirs=theirs,
        ratio=theirs / ours,
        aim=LEAST_SAVED,
    )


@click.command()
@click.option("--quick", is_flag=True, help="A fifth of the rows, and three runs.")
@click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
@click.option("--run", "runs", type=click.Choice(tuple(RUNS)), multiple=True, help="Only these.")
def main(quick: bool, repetitions: int, runs: tuple[str, ...]) -> None:
    """Measure runs with the setting, and without it."""
    click.echo(describe_host())
    figures = []
    for name in runs or RUNS:
        rows = RUNS[name][1] // (5 if quick else 1)
        with tempfile.TemporaryDirectory() as folder:
            figures.append(_figure(name, rows, 3 if quick else repetitions, Path(folder)))
        made = figures[-1]
        click.echo(f"{made.what}: {made.ours:.2f} s, with it {made.theirs:.2f} s: {made.ratio:.2f}")
    publish(figures)


if __name__ == "__main__":
    main()
