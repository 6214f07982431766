"""Timing of benchmarks: interleaved runs, CPU and wall time, medians and spread.

Each repetition runs every contender once, in a shuffled order, so that a slow minute of the machine
affects all equally. Ratios are of process CPU time. A benchmark is a module with ``cases(scale)``,
from which `command` makes its command.
"""

import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import Figure, publish

SEED = 20_260_101


@dataclass(frozen=True)
class Case:
    """A comparison: ours first among the contenders, each a function without arguments.

    Its size is `rows`, in `unit`. It runs `times` as often as requested, if the difference is
    smaller than the machine's noise.
    """

    name: str
    rows: int
    contenders: dict[str, Callable[[], Any]]
    target: tuple[str, float] | None = None
    check: Callable[[dict[str, Any]], None] | None = None
    unit: str = "row"
    times: int = 1


@dataclass(frozen=True)
class Timing:
    """One contender's times per row, or per other unit, in nanoseconds."""

    contender: str
    cpu: float
    cpu_spread: float
    wall: float
    ratio: float


@dataclass(frozen=True)
class Result:
    """A case's timings, and whether the target was reached."""

    name: str
    rows: int
    timings: list[Timing]
    target: tuple[str, float] | None
    reached: bool | None
    unit: str = "row"


@dataclass
class Report:
    """All results of a run with the description of the host."""

    command: str
    host: dict[str, Any]
    repetitions: int
    results: list[Result] = field(default_factory=list)


def host() -> dict[str, Any]:
    """Describe the machine, its load and the versions of the compared packages."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if "model name" in line), model)
    versions = {}
    for package in (
        "numba",
        "llvmlite",
        "numpy",
        "polars",
        "pyarrow",
        "rapidfuzz",
        "polars-ds",
        "scipy",
        "scikit-learn",
    ):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "absent"
    return {
        "processor": model,
        "processors": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "seed": SEED,
        "versions": versions,
    }


def measure(case: Case, repetitions: int) -> Result:
    """Run all contenders of a case in turn, several times, after one run that does not count."""
    outputs = {name: run() for name, run in case.contenders.items()}
    if case.check is not None:
        case.check(outputs)
    outputs.clear()
    cpu: dict[str, list[float]] = {name: [] for name in case.contenders}
    wall: dict[str, list[float]] = {name: [] for name in case.contenders}
    order = list(case.contenders)
    shuffle = random.Random(SEED).shuffle
    for _ in range(repetitions * case.times):
        shuffle(order)
        for name in order:
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            case.contenders[name]()
            cpu[name].append(time.process_time() - cpu_start)
            wall[name].append(time.perf_counter() - wall_start)
    ours = statistics.median(cpu[next(iter(case.contenders))])
    timings = [
        Timing(
            name,
            statistics.median(cpu[name]) / case.rows * 1e9,
            (max(cpu[name]) - min(cpu[name])) / case.rows * 1e9,
            statistics.median(wall[name]) / case.rows * 1e9,
            statistics.median(cpu[name]) / ours,
        )
        for name in case.contenders
    ]
    reached = None
    if case.target is not None:
        peer, least = case.target
        peers = [timing.ratio for timing in timings[1:] if peer in ("best", timing.contender)]
        reached = min(peers) >= least
    return Result(case.name, case.rows, timings, case.target, reached, case.unit)


def table(results: Sequence[Result]) -> Iterator[str]:
    """Return results in one unit as a Markdown table."""
    (unit,) = {result.unit for result in results}
    size = "rows" if unit == "row" else unit
    times = f"CPU ns/{unit} | spread | wall ns/{unit}"
    yield f"| case | {size} | contender | {times} | ours is | target |"
    yield "|---|---|---|---|---|---|---|---|"
    for result in results:
        for number, timing in enumerate(result.timings):
            goal = ""
            if result.target and (
                timing.contender == result.target[0] or (result.target[0] == "best" and not number)
            ):
                peer, least = result.target
                goal = f"{least:g}x of {peer}: {'reached' if result.reached else 'SHORT'}"
            ratio = f"{timing.ratio:.2f}x" if number else ""
            yield (
                f"| {result.name} | {result.rows} | {timing.contender} | {timing.cpu:.0f} "
                f"| {timing.cpu_spread:.0f} | {timing.wall:.0f} | {ratio} | {goal} |"
            )


def figures(result: Result) -> Iterator[Figure]:
    """Yield ours beside each contender's time. The aim is for the contender it names, or all."""
    ours, *others = result.timings
    for timing in others:
        named = result.target is not None and result.target[0] in ("best", timing.contender)
        yield Figure(
            what=result.name,
            rows=result.rows,
            unit=f"CPU ns/{result.unit}",
            ours=ours.cpu,
            peer=timing.contender,
            theirs=timing.cpu,
            ratio=timing.ratio,
            aim=result.target[1] if result.target is not None and named else None,
        )


def command(cases: Callable[[float], Iterable[Case]], name: str | None = None) -> click.Command:
    """Return a command that measures the cases, prints the table, and optionally writes JSON."""

    @click.command(name, help=cases.__doc__)
    @click.option("--scale", default=1.0, show_default=True, help="Factor of all row counts.")
    @click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
    @click.option("--only", default="", help="Part of the names of the cases to run.")
    @click.option("--json", "output", type=click.Path(path_type=Path), help="File for the results.")
    def measured(scale: float, repetitions: int, only: str, output: Path | None) -> None:
        report = Report(" ".join(sys.argv), host(), repetitions)
        click.echo(json.dumps(report.host))
        for case in cases(scale):
            if only in case.name:
                report.results.append(measure(case, repetitions))
                lines = list(table(report.results[-1:]))
                click.echo("\n".join(lines if len(report.results) == 1 else lines[2:]))
        publish(figure for result in report.results for figure in figures(result))
        if output is not None:
            output.write_text(json.dumps(asdict(report), indent=1))

    return measured
