"""Measure the suite preference_shift against a plain scorer, on ReDial repeated with variations.

Ours is a whole process each time, from the log on disk to the committed run: start-up, reading,
extraction, scoring, summary. The plain scorer reads and scores the first turns of the same log in
this process, imports not counted, by turns with ours; both are given as turns a second, and the
ratio is of those. On these first turns both are compared in full before anything is printed.
Extraction is measured alone too: distinct utterances of the log to sets of concepts, by seconds of
processor time, so that threads do not help.

Usage: python -m benchmarks.preference_shift [--quick] [--data FOLDER] [--turns 1000000]
"""

import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import polars as pl

import fastscore
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.preference_shift_logs import DATA, read_source, repeat_logs, write_jsonl
from benchmarks.processes import Cost, measure
from fastscore.suites.preference_shift import PreferenceShift
from fastscore.suites.preference_shift.extraction import prepared_matcher
from tests.oracles import preference_shift as plain
from tests.oracles import preference_shift_concepts as plain_concepts

EXTRACTED = 200_000
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one profile cost: medians with the extremes."""

    profile: str
    ours: list[Cost]
    plain_wall: list[float]
    plain_cpu: list[float]
    turns: int
    plain_turns: int
    utterances: int
    extraction: list[float]

    @property
    def sides(self) -> dict[str, tuple[list[float], list[float]]]:
        """Our seconds and the plain scorer's, by clock."""
        wall, cpu = ([getattr(cost, part) for cost in self.ours] for part in ("wall", "cpu"))
        return {"wall": (wall, self.plain_wall), "CPU": (cpu, self.plain_cpu)}

    def published(self) -> Iterator[Figure]:
        """Yield turns a second by clock, ours beside the plain scorer's."""
        for clock, (ours, theirs) in self.sides.items():
            fast = self.turns / statistics.median(ours)
            slow = self.plain_turns / statistics.median(theirs)
            yield Figure(
                what=f"{self.profile}, {clock}",
                rows=self.turns,
                unit="turns/s",
                ours=fast,
                peer="plain scorer",
                theirs=slow,
                ratio=fast / slow,
            )

    def lines(self) -> list[str]:
        """Describe the figures."""
        (wall, _), (cpu, _) = self.sides.values()
        peak = max(cost.peak_mb for cost in self.ours)
        ratios = [figure.ratio or 0.0 for figure in self.published()]
        rate = self.utterances / statistics.median(self.extraction)
        return [
            f"{self.profile}",
            f"  ours    {_spread(wall)} s wall, {_spread(cpu)} s CPU, peak {peak:,.0f} MB: "
            f"{self.turns / statistics.median(wall):,.0f} turns/s",
            f"  plain   {_spread(self.plain_wall)} s wall for {self.plain_turns:,} turns: "
            f"{self.plain_turns / statistics.median(self.plain_wall):,.0f} turns/s",
            f"  ratio   {ratios[0]:.0f}x wall, {ratios[1]:.0f}x CPU",
            f"  extract {self.utterances:,} distinct utterances in {_spread(self.extraction)} s "
            f"CPU: {rate:,.0f} a second and core",
        ]


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def first_logs(path: Path, n_turns: int) -> list[str]:
    """Return the first lines of a log that hold so many turns."""
    lines = []
    with path.open(encoding="utf-8") as file:
        for line in file:
            lines.append(line)
            n_turns -= len(json.loads(line)["conversation"]) // 2
            if n_turns <= 0:
                break
    return lines


def distinct_utterances(path: Path) -> pl.Series:
    """Return the first distinct utterances of a log."""
    seen: dict[str, None] = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            seen.update(dict.fromkeys(turn["text"] for turn in json.loads(line)["conversation"]))
            if len(seen) >= EXTRACTED:
                break
    return pl.Series(list(seen)[:EXTRACTED])


def check_agreement(folder: Path, lines: list[str], profile: str) -> None:
    """Compare every turn of both scorers.

    Raises
    ------
    click.ClickException
        They differ.
    """
    path, catalogue = folder / "first.jsonl", folder / "catalogue.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    scores = fastscore.score(
        path,
        fastscore.PreferenceShift(catalogue=str(catalogue), profile=profile, segments="metadata"),
        embedder=None,
    )
    ours = scores.tables["turns"]
    logs = [json.loads(line) for line in lines]
    scored = plain.score_logs(
        logs,
        plain_concepts.make_catalogue(plain.read_lines(catalogue)),
        plain_concepts.PROFILES[profile],
    )
    theirs = [turn for row in scored for turn in row["turns"]]
    same = ours.height == len(theirs) and all(
        math.isclose(a[name], b[name], rel_tol=0, abs_tol=1e-12)
        for a, b in zip(ours.select("cc", "cr", "i", "tas").to_dicts(), theirs, strict=True)
        for name in a
    )
    if not same:
        raise click.ClickException(f"the two scorers disagree on {profile}")


def run_plain(lines: list[str], catalogue: Path, profile: str) -> tuple[float, float]:
    """Read and score some logs plainly; return seconds of wall and processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    items = plain_concepts.make_catalogue(plain.read_lines(catalogue))
    plain.score_logs((json.loads(line) for line in lines), items, plain_concepts.PROFILES[profile])
    return time.perf_counter() - wall, time.process_time() - cpu


def run_extraction(texts: pl.Series, catalogue: Path, profile: str) -> float:
    """Extract the concepts of texts; return seconds of processor time."""
    options = PreferenceShift(catalogue=str(catalogue), profile=profile)
    _, matcher = prepared_matcher(options)
    cpu = time.process_time()
    matcher.extract(texts)
    return time.process_time() - cpu


def measure_profile(
    folder: Path, profile: str, turns: int, plain_turns: int, repeats: int
) -> Measured:
    """Run both sides by turns, so many times, after one run that does not count."""
    logs, catalogue = folder / "logs.jsonl", folder / "catalogue.jsonl"
    lines = first_logs(logs, plain_turns)
    counted = sum(len(json.loads(line)["conversation"]) // 2 for line in lines)
    check_agreement(folder, lines, profile)
    texts = distinct_utterances(logs)
    run_extraction(texts.head(1_000), catalogue, profile)
    command = [
        *(sys.executable, "-m", "fastscore", "score", "preference_shift", str(logs)),
        *("-o", str(folder / "run"), "--overwrite", "-q", "--embedder", "none"),
        *("--catalogue", str(catalogue), "--profile", profile, "--segments", "metadata"),
    ]
    ours: list[Cost] = []
    theirs: list[tuple[float, float]] = []
    extraction: list[float] = []
    for _ in range(repeats):
        ours.append(measure(command, cwd=Path.cwd()))
        theirs.append(run_plain(lines, catalogue, profile))
        extraction.append(run_extraction(texts, catalogue, profile))
    scored = fastscore.open_run(folder / "run").scan("turns").select(pl.len()).collect().item()
    return Measured(
        profile,
        ours,
        [wall for wall, _ in theirs],
        [cpu for _, cpu in theirs],
        scored,
        counted,
        texts.len(),
        extraction,
    )


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=DATA)
@click.option("--turns", type=click.IntRange(min=1), default=1_000_000, show_default=True)
@click.option("--plain-turns", type=click.IntRange(min=1), default=2_000, show_default=True)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--profile", "profiles", type=click.Choice(list(plain_concepts.PROFILES)), multiple=True
)
@click.option("--seed", default=0, show_default=True)
@click.option("--quick", is_flag=True, help="50,000 turns, once, the default profile.")
@click.option("--output", type=click.Path(path_type=Path), help="A JSON file for the figures.")
def main(
    data: Path,
    turns: int,
    plain_turns: int,
    repeats: int,
    profiles: tuple[str, ...],
    seed: int,
    quick: bool,
    output: Path | None,
) -> None:
    """Compare the suite with a plain scorer."""
    if quick:
        turns, plain_turns, repeats, profiles = 50_000, 500, 1, ("default",)
    host = describe_host()
    click.echo(json.dumps(host))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dialogues, movies = read_source(data)
        write_jsonl(folder / "catalogue.jsonl", movies)
        n_bytes = write_jsonl(
            folder / "logs.jsonl", repeat_logs("plain", dialogues, movies, turns, seed)
        )
        click.echo(
            f"{turns:,} turns from {len(dialogues):,} dialogues, {n_bytes / 1e6:,.0f} MB, "
            f"{len(movies):,} movies, seed {seed}; medians of {repeats} (extremes)"
        )
        figures = []
        for profile in profiles or tuple(plain_concepts.PROFILES):
            figures.append(measure_profile(folder, profile, turns, plain_turns, repeats))
            click.echo("\n".join(figures[-1].lines()))
            publish(figures[-1].published())
    if output is not None:
        found = {"host": host, "seed": seed, "figures": [asdict(each) for each in figures]}
        output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
