"""Measure the suite group_travel against the plain scorer, as whole processes, interleaved.

Two scenarios, on generated dialogues (`benchmarks.group_travel_logs`):

- ``words``: without an embedder. fastscore scores all dialogues, the plain scorer the first few.
- ``vectors``: with the default model. fastscore scores all dialogues with an empty store (cold) and
  again with the store that this left (warm). The first dialogues are scored cold by both sides, and
  by the plain scorer once more with the vectors that it kept (warm).

Both sides embed every text once with the same weights in fp32: fastscore into its store, the plain
scorer dialogue by dialogue with sentence-transformers into a dictionary. The plain scorer's time a
dialogue is that of the first dialogues, its start-up (measured on one dialogue) taken off;
fastscore's start-up stays in. All metrics of those dialogues are compared before any time is shown.

Usage: python -m benchmarks.group_travel [--quick] [--data FOLDER] [--output result.json]
"""

import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
import polars as pl

from benchmarks.end_to_end import download_weights
from benchmarks.group_travel_logs import write_logs
from benchmarks.processes import measure
from benchmarks.scenarios import (
    DisagreementError,
    Result,
    Side,
    alternate,
    report,
    whole_process_options,
    working_folder,
)
from fastscore.vectors.models import open_store
from tests.oracles.group_travel_vectors import read_vectors

ROOT = Path(__file__).parents[1]
MODEL = "minilm-l6-v2"
SCENARIOS = ("words", "vectors")
AIMS = {
    "fastscore: times the plain scorer's dialogues/s (wall)": 30.0,
    "fastscore warm: times the plain scorer's dialogues/s (wall)": 30.0,
}
QUICK = {"dialogues": 300, "first": 20, "repeats": 1, "variants": 2}
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is measured, and where."""

    data: Path | None
    dialogues: int
    first: int
    variants: int
    repeats: int
    seed: int
    layout: Any
    workers: int | None
    scratch: Path
    weights: Path | None


class Bench:
    """The logs of a run of the benchmark, and its commands, every output fresh."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._outputs = 0
        self.bytes = self._write("all", settings.dialogues)
        self._write("first", settings.first)  # the same dialogues: each depends on its number
        self._write("one", 1)

    def _write(self, name: str, dialogues: int) -> int:
        chosen = self.settings
        return write_logs(
            chosen.scratch / name,
            dialogues=dialogues,
            layout=chosen.layout,
            data=chosen.data,
            seed=chosen.seed,
            variants=chosen.variants,
        )

    def logs(self, name: str) -> Path:
        """Return the folder of ``all``, the ``first`` or ``one`` of the dialogues."""
        return self.settings.scratch / name / "logs"

    def fresh(self, name: str) -> Path:
        """Name an output that does not exist yet."""
        self._outputs += 1
        return self.settings.scratch / f"{name}-{self._outputs}"

    def fastscore(self, side: Side, logs: str, *, run: Path, store: Path | None) -> None:
        """Score with fastscore; without a store, without an embedder."""
        command = [sys.executable, "-m", "fastscore", "score", "group_travel", str(self.logs(logs))]
        command += ["--output", str(run), "-q"]
        # as published, and as the plain scorer does it
        command += ["--m12-long", "cut"]
        command += ["--store", str(store)] if store else ["--embedder", "none"]
        if self.settings.workers:
            command += ["--workers", str(self.settings.workers)]
        side.costs.append(measure(command, cwd=ROOT))

    def plain(
        self, side: Side, logs: str, *, scores: Path, vectors: Path | None, embeds: bool = False
    ) -> None:
        """Score with the plain scorer; without vectors, without an embedder."""
        command = [sys.executable, "-m", "tests.oracles.group_travel", str(self.logs(logs))]
        command += ["--output", str(scores)]
        command += ["--vectors", str(vectors)] if vectors else []
        command += ["--weights", str(self.settings.weights)] if embeds else []
        side.costs.append(measure(command, cwd=ROOT))


def run_words(bench: Bench) -> Result:
    """All dialogues against the first of them, without an embedder."""
    settings = bench.settings
    names = ("plain", "plain start-up", "fastscore")
    counts = (settings.first, 1, settings.dialogues)
    sides = {name: Side(count) for name, count in zip(names, counts, strict=True)}
    warm_up, scores = bench.fresh("run"), bench.fresh("scores")
    bench.fastscore(Side(settings.first), "first", run=warm_up, store=None)

    def plain() -> None:
        bench.plain(sides["plain start-up"], "one", scores=bench.fresh("scores"), vectors=None)
        bench.plain(sides["plain"], "first", scores=scores, vectors=None)

    def fastscore() -> None:
        run = bench.fresh("run")
        bench.fastscore(sides["fastscore"], "all", run=run, store=None)
        shutil.rmtree(run)

    alternate([plain, fastscore], settings.repeats)
    compared = check_same(scores, warm_up)
    notes = {"compared dialogues": compared, "bytes of all logs": bench.bytes}
    return Result("words", sides, ratios(sides, ["fastscore"]), notes)


def run_vectors(bench: Bench) -> Result:
    """Cold and warm, all dialogues against the first of them."""
    settings = bench.settings
    sides = {
        name: Side(count)
        for name, count in {
            "plain cold, first": settings.first,
            "fastscore cold, first": settings.first,
            "plain": settings.first,
            "plain start-up": 1,
            "fastscore cold": settings.dialogues,
            "fastscore warm": settings.dialogues,
        }.items()
    }
    scores, first_run, first_store = (bench.fresh(n) for n in ("scores", "run", "store"))
    vectors = bench.fresh("vectors").with_suffix(".npz")
    bench.fastscore(Side(1), "one", run=bench.fresh("run"), store=bench.fresh("store"))
    bench.plain(sides["plain cold, first"], "first", scores=scores, vectors=vectors, embeds=True)
    bench.fastscore(sides["fastscore cold, first"], "first", run=first_run, store=first_store)

    def plain() -> None:
        bench.plain(sides["plain start-up"], "one", scores=bench.fresh("scores"), vectors=vectors)
        bench.plain(sides["plain"], "first", scores=bench.fresh("scores"), vectors=vectors)

    def fastscore() -> None:
        store = bench.fresh("store")
        for name in ("fastscore cold", "fastscore warm"):
            run = bench.fresh("run")
            bench.fastscore(sides[name], "all", run=run, store=store)
            shutil.rmtree(run)
        notes["texts embedded, all"] = open_store(MODEL, store).stats().vectors
        shutil.rmtree(store)

    notes: dict[str, Any] = {
        "compared dialogues": check_same(scores, first_run),
        "bytes of all logs": bench.bytes,
        "texts embedded, first": open_store(MODEL, first_store).stats().vectors,
        "texts that the plain scorer embeds, first": len(read_vectors(vectors)),
    }
    alternate([plain, fastscore], settings.repeats)
    found = ratios(sides, ["fastscore warm", "fastscore cold"])
    for clock in ("wall", "cpu"):
        cold = [sides[f"{who} cold, first"].median(clock) for who in ("plain", "fastscore")]
        found[f"fastscore cold on the first: times faster ({clock})"] = cold[0] / cold[1]
    return Result("vectors", sides, found, notes)


def ratios(sides: dict[str, Side], names: Sequence[str]) -> dict[str, float]:
    """Return how many times the dialogues a second of the warm plain scorer each side scores."""
    found = {}
    for clock in ("wall", "cpu"):
        seconds = sides["plain"].median(clock) - sides["plain start-up"].median(clock)
        each = seconds / (sides["plain"].rows - 1)
        if each <= 0:
            raise click.ClickException("The first dialogues take no time; ask for more of them.")
        for name in names:
            ours = sides[name].median(clock) / sides[name].rows
            found[f"{name}: times the plain scorer's dialogues/s ({clock})"] = each / ours
    return found


def check_same(scores: Path, run: Path) -> int:
    """Compare all metrics of the dialogues that the plain scorer scored; returns how many.

    Raises
    ------
    DisagreementError
        A metric is null on one side only, or differs by more than `TOLERANCE`.
    """
    rows = pl.read_parquet(run / "dialogues" / "*.parquet").to_dicts()
    ours = {row["dialogue"]: row for row in rows}
    with scores.open(encoding="utf-8") as lines:
        theirs = [json.loads(line) for line in lines]
    if len(ours) != len(theirs):
        raise DisagreementError(f"{run} has {len(ours)} dialogues, {scores} {len(theirs)}.")
    for row in theirs:
        for metric, score in row["metrics"].items():
            mine, other = ours[row["dialogue"]][metric], score["value"]
            both = mine is not None and other is not None
            if (mine is None) != (other is None) or (both and abs(mine - other) > TOLERANCE):
                raise DisagreementError(
                    f"{row['dialogue']}: {metric} is {mine} in {run} and {other} in {scores}."
                )
    return len(theirs)


@click.command(context_settings={"show_default": True})
@click.option("--scenario", type=click.Choice([*SCENARIOS, "all"]), default="all")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    show_default="the bundled sample",
    help="A folder with travelplanner_train45.jsonl.gz and sgd_*.jsonl.gz.",
)
@click.option("--dialogues", type=click.IntRange(min=2), default=20_000, help="fastscore's.")
@click.option("--first", type=click.IntRange(min=2), default=500, help="The plain scorer's.")
@click.option("--variants", type=click.IntRange(min=1), default=20, help="Itineraries a plan.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, help="Runs of every command.")
@click.option("--seed", default=0, help="Of the dialogues.")
@click.option("--layout", type=click.Choice(["csv", "jsonl"]), default="jsonl")
@whole_process_options(QUICK)
def main(
    scenario: str,
    scratch: Path | None,
    weights: Path | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Measure the suite group_travel against a plain scorer, as whole processes, interleaved."""
    chosen = SCENARIOS if scenario == "all" else (scenario,)
    with working_folder(scratch, "group-travel-") as work:
        if weights is None and "vectors" in chosen:
            weights = download_weights(work / "weights")
        resolved = weights.resolve() if weights else None
        settings = Settings(**options, scratch=work, weights=resolved)
        bench, runners = Bench(settings), {"words": run_words, "vectors": run_vectors}
        click.echo("A row is a dialogue.\n")
        report(
            {name: partial(runners[name], bench) for name in chosen},
            asdict(settings),
            ("dialogues", "first", "variants", "repeats", "seed", "layout"),
            aims=AIMS,
            output=output,
        )


if __name__ == "__main__":
    main()
