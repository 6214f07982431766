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
import polars as pl

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.processes import Cost, ProcessFailedError

SEMANTIC_TOLERANCE = 1e-4
ROUNDING_SLACK = 1e-9
KEYS = ["log", "utterance_index", "step"]
LEXICAL = ["lexical_similarity", "earliness"]
SEMANTIC = ["semantic_cosine_raw", "semantic_similarity"]
SCORES = [*LEXICAL, *SEMANTIC, "U_step"]


class DisagreementError(Exception):
    """The two sides' numbers differ by more than the tolerance, or have different rows."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of two sides: compared rows, and the largest difference by column."""

    rows: int
    largest: dict[str, float]


def published_steps(scores: Path) -> pl.DataFrame:
    """Read every step of a folder of ``STEM-score.json`` documents; ``log`` is the stem."""
    rows = []
    for path in sorted(scores.glob("*-score.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        stem = path.name.removesuffix("-score.json")
        rows += [
            {"log": stem, "utterance_index": utterance["utterance_number"], **step}
            for utterance in document["utterances"]
            for step in utterance["steps"]
        ]
    return pl.DataFrame(rows).select(*KEYS, *SCORES)


def run_steps(run: Path) -> pl.DataFrame:
    """Read every step of a run, rounded as in the script; ``log`` is the file's stem."""
    dialogues = pl.scan_parquet(run / "dialogues" / "*.parquet").select(
        "dialogue", log=pl.col("file").str.split("/").list.last().str.strip_suffix(".jsonl")
    )
    steps = pl.scan_parquet(run / "steps" / "*.parquet").join(dialogues, on="dialogue")
    frame = steps.select(*KEYS, *(pl.col(name).fill_null(0.0) for name in SCORES)).collect()
    digits = {name: 6 if name == "semantic_cosine_raw" else 4 for name in SCORES}
    # Python's round, as in the script: polars breaks ties differently
    return frame.with_columns(
        pl.Series(name, [round(value, digits[name]) for value in frame[name]], dtype=pl.Float64)
        for name in SCORES
    )


def check_agreement(scores: Path, run: Path, *, lexical_only: bool) -> Agreement:
    """Compare a folder of the script's documents with a run over the same logs.

    The lexical part must be equal as printed (4 decimals), and so must U without a semantic part.
    The semantic part, and U with it, must be within `SEMANTIC_TOLERANCE`.

    Raises
    ------
    DisagreementError
        They do not agree; the message names the worst row.
    """
    theirs, ours = published_steps(scores), run_steps(run)
    both = theirs.join(ours, on=KEYS, how="inner", suffix="_ours")
    if not len(both) == len(theirs) == len(ours):
        raise DisagreementError(
            f"{scores} has {len(theirs)} steps and {run} {len(ours)}, of which {len(both)} are the "
            "same; both must score the same logs."
        )
    exact = {*LEXICAL, *(["U_step"] if lexical_only else [])}
    largest = {}
    for name in SCORES:
        differences = (both[name] - both[f"{name}_ours"]).abs()
        largest[name] = float(differences.max() or 0.0)  # type: ignore[arg-type]
        allowed = 0.0 if name in exact else SEMANTIC_TOLERANCE + ROUNDING_SLACK
        if not largest[name] <= allowed:
            worst = both.row(differences.arg_max() or 0, named=True)
            raise DisagreementError(
                f"{name} differs by {largest[name]:.2e} (at most {allowed:.0e}) at "
                f"{[worst[key] for key in KEYS]}: {worst[name]} and {worst[f'{name}_ours']}."
            )
    return Agreement(len(both), largest)


Command = Callable[..., Any]


def whole_process_options(quick: Mapping[str, int]) -> Callable[[Command], Command]:
    """Add ``--workers``, ``--weights``, ``--scratch``, ``--output`` and ``--quick`` to a command.

    Parameters
    ----------
    quick
        The sizes that ``--quick`` defaults to, by parameter.
    """

    def default_to_quick(ctx: click.Context, parameter: click.Parameter, is_quick: bool) -> None:
        if is_quick:
            ctx.default_map = dict(quick)

    sizes = ", ".join(f"{name} {size:,}" for name, size in quick.items())
    options = (
        click.option("--workers", type=int, show_default="all cores", help="fastscore's."),
        click.option(
            "--weights",
            type=click.Path(path_type=Path, exists=True),
            show_default="downloaded",
            help="The default model's sentence-transformers folder.",
        ),
        click.option(
            "--scratch",
            type=click.Path(path_type=Path),
            show_default="the system's",
            help="Where to keep logs and runs while measuring.",
        ),
        click.option(
            "--output", type=click.Path(path_type=Path), help="A JSON file for every figure."
        ),
        click.option(
            "--quick",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=default_to_quick,
            help=f"Default to small sizes: {sizes}.",
        ),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


@dataclass(slots=True)
class Side:
    """One side of a scenario: its rows, and the cost of each run."""

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
    """A scenario's sides, their ratios, and the agreement of their numbers."""

    scenario: str
    sides: dict[str, Side]
    ratios: dict[str, float]
    notes: dict[str, Any]


def alternate(actions: Sequence[Callable[[], None]], repeats: int) -> None:
    """Run the actions in turn, in reverse order every second time."""
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
    """Return a scenario as a Markdown table, followed by its ratios and notes."""
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
    """Format a clock's median and extremes."""
    values = side.values(clock)
    return f"{side.median(clock):,.2f} ({min(values):,.2f}-{max(values):,.2f})"


@contextmanager
def working_folder(scratch: Path | None, prefix: str) -> Iterator[Path]:
    """Create a temporary folder for logs and runs, below ``scratch`` or the system's."""
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
    """Run the scenarios, print each when it ends, and write the JSON file.

    Parameters
    ----------
    runners
        Each scenario's measurement, by name.
    settings, sizes
        The settings, which are all written, and the names of those that are printed.
    aims
        The minimum ratios aimed at, by name.
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
