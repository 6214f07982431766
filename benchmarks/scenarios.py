"""Scenarios of whole processes: their sides, the table of each, and the report of all."""

import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click

from benchmarks.agreement import DisagreementError
from benchmarks.figures import Figure, publish
from benchmarks.host import describe_host
from benchmarks.processes import Cost, ProcessFailedError


@dataclass(slots=True)
class Side:
    """One side of a scenario: what it scored and what each run cost."""

    rows: int
    costs: list[Cost] = field(default_factory=list)

    def values(self, quantity: str) -> list[float]:
        """Return ``wall``, ``cpu`` or ``peak_mb`` of every run."""
        return [getattr(cost, quantity) for cost in self.costs]

    def median(self, quantity: str) -> float:
        """Return the median of ``wall``, ``cpu`` or ``peak_mb``."""
        return statistics.median(self.values(quantity))


@dataclass(frozen=True, slots=True)
class Result:
    """A scenario's sides, the ratios between them, and how their numbers agree."""

    scenario: str
    sides: dict[str, Side]
    ratios: dict[str, float]
    notes: dict[str, Any]


def alternate(actions: Sequence[Callable[[], None]], repeats: int) -> None:
    """Run the actions in turn, in reverse every second time."""
    for number in range(repeats):
        for action in actions if number % 2 == 0 else reversed(actions):
            action()


def figures(result: Result, aims: Mapping[str, float]) -> Iterator[Figure]:
    """Yield a scenario's ratios; the first side is the peer."""
    peer, rows = next(iter(result.sides)), max(side.rows for side in result.sides.values())
    for name, ratio in result.ratios.items():
        yield Figure(
            what=f"{result.scenario}: {name}",
            rows=rows,
            unit="times",
            ours=ratio,
            peer=peer,
            theirs=1.0,
            ratio=ratio,
            aim=aims.get(name),
        )


def table(result: Result) -> str:
    """Lay out a scenario as a Markdown table, then its ratios and notes."""
    lines = [
        f"## {result.scenario}",
        "",
        "| | rows | wall s (min-max) | CPU s (min-max) | peak MB | rows/s |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, side in result.sides.items():
        wall, cpu = spread(side, "wall"), spread(side, "cpu")
        lines.append(
            f"| {name} | {side.rows:,} | {wall} | {cpu} "
            f"| {side.median('peak_mb'):,.0f} | {side.rows / side.median('wall'):,.0f} |"
        )
    lines += ["", *(f"- {name}: **{ratio:,.2f}**" for name, ratio in result.ratios.items())]
    lines += [f"- {name}: {json.dumps(value)}" for name, value in result.notes.items()]
    return "\n".join([*lines, ""])


def spread(side: Side, clock: str) -> str:
    """Lay out a clock's median and extremes."""
    values = side.values(clock)
    return f"{side.median(clock):,.2f} ({min(values):,.2f}-{max(values):,.2f})"


@contextmanager
def working_folder(scratch: Path | None, prefix: str) -> Iterator[Path]:
    """Make a folder for logs and runs, below ``scratch`` or the system's, that goes at the end."""
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix=prefix) as folder:
        yield Path(folder)


def report(
    runners: Mapping[str, Callable[[], Result]],
    settings: Mapping[str, Any],
    sizes: Sequence[str],
    *,
    aims: Mapping[str, float],
    output: Path | None,
) -> None:
    """Run the scenarios, print each as it ends, and write the JSON file.

    Parameters
    ----------
    runners
        Each scenario's measurement, by name.
    settings, sizes
        What is measured, all of which is written, and the names of those that are printed.
    aims
        The least ratios that are aimed at, by name.
    output
        The JSON file, if any.
    """
    host = describe_host()
    shown = host | {name: settings[name] for name in sizes}
    click.echo("".join(f"{name}: {value}\n" for name, value in shown.items()))
    results = []
    for name, run in runners.items():
        try:
            result = run()
        except (DisagreementError, ProcessFailedError) as error:
            raise click.ClickException(f"{name}: {error}") from None
        click.echo(table(result))
        results.append(asdict(result))
        publish(figures(result, aims))
    if output is not None:
        content = {"host": host, "settings": settings, "results": results}
        output.write_text(json.dumps(content, indent=2, default=str) + "\n")
