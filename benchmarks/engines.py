"""Overhead of engines: the same work by threads of one process, by Dask and by Ray.

- ``tasks``: empty tasks, mapped by a running engine: milliseconds per task, and the processor time
  of this process, in which Dask's scheduler runs, too.
- ``plan``: short dialogues planned by the tasks of two processes: memory of this process, seconds.
- ``real``: a thousand shards of 64 kB scored, lexically: the cost of a small real task.
- ``lexical``: rows scored by whole processes. The start-up of each engine, measured on a tiny log,
  is subtracted. Processor seconds are those of all its processes. For Ray they are those of the
  command only, as its workers are not its children.
- ``embed``: texts embedded by whole processes into empty stores, start-up subtracted.

Processes are interleaved. Ratios are of wall time to the local engine's with as many threads. The
outputs of the engines are compared, byte for byte, before any time is reported. Progress goes to
stderr. Logs are written first (a million rows take half a minute), or reused with ``--logs``.

Usage: python -m benchmarks.engines [--quick] [--engine dask]... [--workers 2] [--logs FOLDER]
"""

import json
import pickle
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import click
from fastscore_jit.system import peak_memory

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.miner_logs import generate
from benchmarks.processes import measure
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.run.commit import Receipt
from fastscore.run.drive import execute
from fastscore.run.engines.engine import ENGINES, open_engine
from fastscore.run.progress import SilentReporter
from fastscore.run.request import Request
from fastscore.suites.registry import load_suite

LEXICAL = ("--lex-weight", "1")
SEMANTIC = ("--lex-weight", "0.5", "--baseline-pairs", "200")
DIALOGUES_A_FILE = 100_000
PLANNED = (50_000, 200_000, 800_000)
PLANNED_SHARD_BYTES = 4 << 20
REAL_SHARD_BYTES = 64_000
REAL_DIALOGUES = 2_200
MOST_TIMES_LOCAL = 1.1


def nothing(number: int) -> Receipt:
    return Receipt(stage="nothing", index=number, fingerprint="")


def seconds_a_task(engine: str, workers: int, tasks: int) -> dict[str, float]:
    """Map empty tasks. The first tasks, which load modules, do not count."""
    started = time.perf_counter()
    with open_engine(engine, None, workers) as opened:
        start = time.perf_counter() - started
        for _ in opened.map(nothing, range(4 * workers)):
            pass
        began, used = time.perf_counter(), time.process_time()
        done = sum(1 for _ in opened.map(nothing, range(tasks)))
        seconds = time.perf_counter() - began
        cpu = time.process_time() - used
    if done != tasks:
        raise RuntimeError(f"{engine}: {done} of {tasks} tasks were done")
    return {
        "start s": start,
        "ms a task": seconds / tasks * 1000,
        "processor ms a task here": cpu / tasks * 1000,
    }


def tables(run: Path) -> dict[str, bytes]:
    found = {path.relative_to(run): path.read_bytes() for path in run.rglob("*.parquet")}
    return {str(name): data for name, data in found.items()}


def write_short_dialogues(folder: Path, dialogues: int) -> None:
    """Write dialogues of two lines, a hundred thousand per file."""
    folder.mkdir(parents=True)
    for first in range(0, dialogues, DIALOGUES_A_FILE):
        with (folder / f"{first:09d}.jsonl").open("w") as file:
            for number in range(first, min(first + DIALOGUES_A_FILE, dialogues)):
                for step in range(2):
                    row = {"event": "predicted", "dialogue_uid": f"dialogue-{number}"}
                    row |= {"utterance_index": 0, "step": step, "prediction": "a few words"}
                    file.write(json.dumps(row) + "\n")


def planner_memory(sizes: tuple[int, ...], workers: int) -> Iterator[dict[str, Any]]:
    """Plan ever more dialogues by an engine's tasks; return this process's peak memory."""
    suite = load_suite("score_dialogue")
    with tempfile.TemporaryDirectory() as temporary, open_engine("dask", None, workers) as engine:
        folder = Path(temporary)
        for dialogues in (1000, *sizes):
            write_short_dialogues(folder / str(dialogues), dialogues)
            files = resolve_inputs([folder / str(dialogues)])
            began = time.perf_counter()
            plan = plan_shards(
                files,
                suite.source,
                shard_bytes=PLANNED_SHARD_BYTES,
                scratch=folder / "scratch",
                threads=workers,
                map_tasks=engine.map,
            )
            yield {
                "dialogues": dialogues,
                "bytes": sum(file.size for file in files),
                "shards": len(plan.shards),
                "s": round(time.perf_counter() - began, 2),
                "bytes of the plan": len(pickle.dumps(plan)),
                "peak MB here": round(peak_memory() / 1e6, 1),
            }


def stage_seconds(run: Path) -> dict[str, float]:
    """Return the time of each stage, from the run's manifest."""
    stages = json.loads((run / "manifest.json").read_text())["stages"]
    return {name: stage["seconds"] for name, stage in stages.items()}


def seconds_a_real_task(
    log: Path, engines: list[str], workers: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Score small shards with each engine, alternating, in one process; only that stage counts."""
    taken: dict[str, list[float]] = {engine: [] for engine in engines}
    shards = 0
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(repeats):
            for engine in engines:
                request = Request(
                    suite="score_dialogue",
                    inputs=(str(log),),
                    output=Path(folder) / f"{engine}-{repeat}",
                    options={"lex_weight": 1.0},
                    workers=workers,
                    shard_bytes=REAL_SHARD_BYTES,
                    engine=engine,
                )
                shards = execute(request, SilentReporter()).manifest.shards
                taken[engine].append(stage_seconds(request.folder)["score"])
    for engine in engines:
        ms = statistics.median(taken[engine]) * 1000 / shards
        yield {"engine": engine, "tasks": shards, "ms a task": round(ms, 2)}


def log_progress(what: str) -> None:
    """Print progress to stderr, as stdout is for figures."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def whole_runs(
    logs: dict[str, Path], options: tuple[str, ...], engines: list[str], workers: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Score a log and a tiny one with each engine, alternating; yield each engine's cost."""
    walls: dict[tuple[str, str], list[float]] = {}
    processor: dict[tuple[str, str], list[float]] = {}
    stages: dict[str, dict[str, list[float]]] = {engine: {} for engine in engines}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        # the first round fills caches and does not count; the tiny log does that, too
        for repeat, size in ((0, "tiny"), *product(range(1, repeats + 1), logs)):
            left: dict[str, dict[str, bytes]] = {}
            for engine in engines:
                run = scratch / f"{engine}-{size}-{repeat}"
                store = scratch / f"store-{engine}-{size}-{repeat}"
                command = [sys.executable, "-m", "fastscore", "score", "score_dialogue"]
                command += [str(logs[size]), "-o", str(run), "--store", str(store), "-q", *options]
                command += ["--engine", engine, "--workers", str(workers)]
                cost = measure(command, cwd=scratch)
                log_progress(
                    f"round {repeat} of {repeats}: {engine}, {size} log: {cost.wall:.2f} s"
                )
                if repeat:
                    walls.setdefault((engine, size), []).append(cost.wall)
                    processor.setdefault((engine, size), []).append(cost.cpu)
                if repeat and size == "whole":
                    for name, taken in stage_seconds(run).items():
                        stages[engine].setdefault(name, []).append(taken)
                left[engine] = tables(run)
                shutil.rmtree(run)
                shutil.rmtree(store, ignore_errors=True)
            if any(found != left[engines[0]] for found in left.values()):
                raise RuntimeError(f"the engines' tables of {logs[size]} differ")
    seconds = {key: statistics.median(found) for key, found in walls.items()}
    used = {key: statistics.median(found) for key, found in processor.items()}
    base = seconds[engines[0], "whole"] - seconds[engines[0], "tiny"]
    for engine in engines:
        work = seconds[engine, "whole"] - seconds[engine, "tiny"]
        yield {
            "engine": engine,
            "start-up s": round(seconds[engine, "tiny"], 2),
            "work s": round(work, 2),
            f"times {engines[0]}": round(work / base, 3),
            "processor s": round(used[engine, "whole"] - used[engine, "tiny"], 2),
            "stages s": {
                name: round(statistics.median(taken), 2) for name, taken in stages[engine].items()
            },
        }


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Small sizes.")
@click.option("--engine", "wanted", multiple=True, type=click.Choice(tuple(ENGINES)[1:]))
@click.option("--workers", default=2, show_default=True)
@click.option("--dialogues", default=16_500, show_default=True, help="Of about 91 rows, to score.")
@click.option("--embedded", default=310, show_default=True, help="Dialogues of about 65 texts.")
@click.option("--tasks", default=10_000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--only", type=click.Choice(["tasks", "plan", "real", "lexical", "embed"]))
@click.option("--logs", type=click.Path(path_type=Path), help="Keep the logs there for next time.")
def main(
    quick: bool,
    wanted: tuple[str, ...],
    workers: int,
    dialogues: int,
    embedded: int,
    tasks: int,
    repeats: int,
    only: str | None,
    logs: Path | None,
) -> None:
    real = REAL_DIALOGUES
    if quick:
        dialogues, embedded, tasks, repeats, real = 300, 5, 1000, 1, 50
    counts = {"tasks": tasks, "real": real, "lexical": dialogues, "embed": embedded}
    engines = ["local", *(wanted or tuple(ENGINES)[1:])]
    print(json.dumps(describe_host()), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = logs or Path(temporary)
        parts: dict[str, Callable[[], Any]] = {
            "tasks": lambda: {each: seconds_a_task(each, workers, tasks) for each in engines},
            "plan": lambda: list(planner_memory(PLANNED[:1] if quick else PLANNED, workers)),
            "real": lambda: list(
                seconds_a_real_task(_log(folder, "real", real), engines, workers, repeats)
            ),
        }
        for name, count, options in (
            ("lexical", dialogues, LEXICAL),
            ("embed", embedded, SEMANTIC),
        ):
            parts[name] = partial(_runs, folder, name, count, options, engines, workers, repeats)
        for name, part in parts.items():
            if only in (None, name):
                log_progress(name)
                found = part()
                print(json.dumps({name: found}, indent=1), flush=True)
                publish(figures(name, found, counts.get(name, 0)))


def figures(name: str, found: Any, dialogues: int) -> Iterator[Figure]:
    """Yield each engine beside the local one; for planning, the driver's memory."""
    if name == "plan":
        for row in found:
            yield Figure(
                what=f"driver's peak memory after planning {row['shards']} shards",
                rows=row["dialogues"],
                unit="MB",
                ours=row["peak MB here"],
            )
        return
    if name == "tasks":
        what, unit, key = "a task that does nothing", "ms", "ms a task"
        found = [{"engine": engine, **row} for engine, row in found.items()]
    elif name == "real":
        what, unit, key = "a shard of 64 kB scored", "ms", "ms a task"
    else:
        what, unit, key = f"a whole run ({name}), start-up apart", "s", "work s"
    local, *others = found
    for row in others:
        yield Figure(
            what=f"{what}, {row['engine']}",
            rows=dialogues,
            unit=unit,
            ours=row[key],
            peer="threads of one process",
            theirs=local[key],
            ratio=local[key] / row[key],
            aim=1 / MOST_TIMES_LOCAL if unit == "s" else None,
        )


def _log(folder: Path, name: str, dialogues: int) -> Path:
    """Write a log unless it is there."""
    log = folder / f"{name}-{dialogues}"
    if not log.exists():
        log_progress(f"writing {log}: {dialogues:,} dialogues")
        part = log.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        generate(part, dialogues=dialogues, shard_megabytes=16)
        part.rename(log)
    return log


def _runs(
    folder: Path,
    name: str,
    dialogues: int,
    options: tuple[str, ...],
    engines: list[str],
    workers: int,
    repeats: int,
) -> list[dict[str, Any]]:
    """Write the logs, then run."""
    logs = {"tiny": _log(folder, name, 1), "whole": _log(folder, name, dialogues)}
    return list(whole_runs(logs, options, engines, workers, repeats))


if __name__ == "__main__":
    main()
