"""The suite group_travel: dialogues of any size, and the comparison with the plain scorer.

``logs``: plans, catalogues and preferences are real, the rest is synthetic: see
`group_travel_itineraries` and `group_travel_dialogues`. ``OUTPUT/logs`` holds the logs: one CSV a
dialogue, or JSON Lines or Parquet files of many. ``OUTPUT/expected.jsonl`` holds for each dialogue
``[numerator, denominator]`` of M1 to M5, M4b, M9, M10b and M16. It is null if there is no
value, and 0.0 if the definition says so. The same arguments give the same dialogues.

``compare``: whole processes, interleaved, in two scenarios on such dialogues:

- ``words``: without an embedder. fastscore scores all dialogues, the plain scorer the first few.
- ``vectors``: with the default model. fastscore scores all dialogues with an empty store (cold) and
  again with the store that this left (warm). The first dialogues are scored cold by both sides, and
  by the plain scorer once more with the vectors that it kept (warm).

Both sides embed every text once with the same weights in fp32: fastscore into its store, the plain
scorer dialogue by dialogue with sentence-transformers into a dictionary. The plain scorer's time
per dialogue is measured on the first dialogues, without its start-up (measured on one dialogue).
fastscore's start-up is included. All metrics of those dialogues are compared before any time is
shown.

Usage: python -m benchmarks.group_travel compare [--quick] [--data FOLDER] [--output result.json]
       python -m benchmarks.group_travel logs --output FOLDER [--dialogues 2000] [--layout csv]
"""

import csv
import io
import json
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import click
import polars as pl

from benchmarks.end_to_end import download_weights
from benchmarks.group_travel_dialogues import Made, make_dialogues
from benchmarks.group_travel_itineraries import read_sources
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

Layout = Literal["csv", "jsonl", "parquet"]
COLUMNS = (
    *("turn_id", "speaker", "intent", "utterance", "metadata", "constraint_state", "plan"),
    *("ref_info_accommodations", "ref_info_restaurants", "ref_info_attractions", "ref_info_events"),
)
PER_FILE = 500


def text_rows(made: Made) -> list[dict[str, str]]:
    """Return a dialogue's rows as text, with one cell in ten as a Python literal."""
    draw = random.Random(f"{made.id}/cells")
    rows: list[dict[str, Any]] = [dict(row) for row in made.rows]
    rows[0]["metadata"] = made.metadata
    return [
        {
            name: _cell(row.get(name, number if name == "turn_id" else None), draw)
            for name in COLUMNS
        }
        for number, row in enumerate(rows)
    ]


def _cell(value: Any, draw: random.Random) -> str:
    if value is None:
        return draw.choice(("", "", "", "nan", "{}"))
    if isinstance(value, str | int):
        return str(value)
    return str(value) if draw.random() < 0.1 else json.dumps(value, ensure_ascii=False)


def csv_file(made: Made) -> bytes:
    """Return a dialogue as CSV: sometimes with a byte order mark, or with a header in capitals."""
    draw = random.Random(f"{made.id}/file")
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, COLUMNS)
    header = (name.title() if draw.random() < 0.1 else name for name in COLUMNS)
    writer.writerow(dict(zip(COLUMNS, header, strict=True)))
    writer.writerows(text_rows(made))
    return stream.getvalue().encode("utf-8-sig" if draw.random() < 0.1 else "utf-8")


def json_line(made: Made) -> bytes:
    """Return a dialogue as a line of JSON. In one of five the cells are text, as in CSV."""
    turns: Sequence[Any] = made.rows
    if random.Random(f"{made.id}/line").random() < 0.2:
        turns = text_rows(made)
    record = {"metadata": made.metadata, "turns": turns}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def write_logs(
    output: Path,
    *,
    dialogues: int,
    layout: Layout = "jsonl",
    per_file: int = PER_FILE,
    data: Path | None = None,
    seed: int = 0,
    defects: float = 0.15,
    variants: int = 20,
) -> int:
    """Write logs and expected numbers; return the bytes of the logs.

    Raises
    ------
    click.ClickException
        The folder contains files already.
    """
    logs = output / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    if any(logs.iterdir()):
        raise click.ClickException(f"{logs} is not empty; name a new folder or empty it first.")
    made = make_dialogues(
        read_sources(data), dialogues, seed=seed, defects=defects, variants=variants
    )
    with (output / "expected.jsonl").open("w", encoding="utf-8") as expectations:
        number = 0
        while batch := list(islice(made, per_file)):
            _write_batch(logs, number, batch, layout)
            number += 1
            for one in batch:
                row = {"dialogue": one.id, "condition": one.condition, **one.expected}
                expectations.write(json.dumps(row) + "\n")
    return sum(path.stat().st_size for path in logs.iterdir())


def _write_batch(logs: Path, number: int, batch: Sequence[Made], layout: Layout) -> None:
    if layout == "csv":
        for made in batch:
            (logs / f"{made.id}.csv").write_bytes(csv_file(made))
    elif layout == "jsonl":
        (logs / f"part-{number:05d}.jsonl").write_bytes(b"".join(map(json_line, batch)))
    else:
        rows = list(_parquet_rows(batch))
        pl.DataFrame(rows).write_parquet(logs / f"part-{number:05d}.parquet")


def _parquet_rows(batch: Sequence[Made]) -> Iterator[dict[str, str]]:
    for made in batch:
        for row in text_rows(made):
            yield {"dialogue_id": made.id, **row}


@click.command("logs", context_settings={"show_default": True})
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="New folder.")
@click.option("--dialogues", type=click.IntRange(min=1), default=2000, help="How many.")
@click.option("--layout", type=click.Choice(["csv", "jsonl", "parquet"]), default="jsonl")
@click.option("--per-file", type=click.IntRange(min=1), default=PER_FILE, help="Not of CSV.")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    show_default="the bundled sample",
    help="A folder with travelplanner_train45.jsonl.gz and sgd_*.jsonl.gz.",
)
@click.option("--seed", default=0, help="Decides every choice.")
@click.option(
    "--defects", type=click.FloatRange(0, 1), default=0.15, help="Probability of each defect."
)
@click.option("--variants", type=click.IntRange(min=1), default=20, help="Itineraries a plan.")
def logs(output: Path, dialogues: int, **options: Any) -> None:
    """Write group trip-planning dialogues and their expected numbers."""
    size = write_logs(output, dialogues=dialogues, **options)
    click.echo(f"{output}: {dialogues:,} dialogues, {size / 1e6:,.1f} MB")


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
    """Sizes and folders of the measurement."""

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
    """The logs of a benchmark, and its commands, each with a new output."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._outputs = 0
        self.bytes = self._write("all", settings.dialogues)
        self._write("first", settings.first)  # equal dialogues: each depends on its number
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
        """Return an output path that does not exist yet."""
        self._outputs += 1
        return self.settings.scratch / f"{name}-{self._outputs}"

    def fastscore(self, side: Side, logs: str, *, run: Path, store: Path | None) -> None:
        """Score with fastscore; without a store, also without an embedder."""
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
        """Score with the plain scorer; without vectors, also without an embedder."""
        command = [sys.executable, "-m", "tests.oracles.group_travel", str(self.logs(logs))]
        command += ["--output", str(scores)]
        command += ["--vectors", str(vectors)] if vectors else []
        command += ["--weights", str(self.settings.weights)] if embeds else []
        side.costs.append(measure(command, cwd=ROOT))


def run_words(bench: Bench) -> Result:
    """Measure all dialogues against the first of them, without an embedder."""
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
    """Measure all dialogues, cold and warm, against the first of them."""
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
    """Return each side's dialogues per second / the warm plain scorer's."""
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
    """Compare all metrics of the dialogues that the plain scorer scored; return their number.

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


@click.command("compare", context_settings={"show_default": True})
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
def compare(
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


main = click.Group("group_travel", commands=[logs, compare])


if __name__ == "__main__":
    main()
