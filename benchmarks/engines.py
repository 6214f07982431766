"""What an engine adds: the same work by threads of one process, by Dask and by Ray.

- ``tasks``: tasks that do nothing, mapped by an engine that stands already: milliseconds a task,
  and the processor time of this process, in which Dask's scheduler runs too.
- ``lexical``: rows scored by whole processes, start-up of each engine measured and taken off.
- ``embed``: texts embedded by whole processes into empty stores, start-up taken off.

Processes are interleaved; ratios are of wall time to the local engine's with as many threads. What
the engines leave is compared, byte for byte, before any time is reported.

Usage: python -m benchmarks.engines [--quick] [--engine dask]... [--workers 2]
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from benchmarks.host import describe_host
from benchmarks.miner_logs import generate
from benchmarks.processes import measure
from fastscore.run.engines.engine import ENGINES, open_engine
from fastscore.run.receipts import Receipt

LEXICAL = ("--lex-weight", "1")
SEMANTIC = ("--lex-weight", "0.5", "--baseline-pairs", "200")


def nothing(number: int) -> Receipt:
    return Receipt(stage="nothing", index=number, fingerprint="")


def seconds_a_task(engine: str, workers: int, tasks: int) -> dict[str, float]:
    """Map tasks that do nothing; the first ones, which load what tasks need, do not count."""
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


def whole_runs(
    logs: dict[str, Path], options: tuple[str, ...], engines: list[str], workers: int, repeats: int
) -> Iterator[dict[str, Any]]:
    """Score a log and a tiny one with each engine, by turns; yield what each engine costs."""
    walls: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for repeat in range(repeats + 1):  # the first fills caches and does not count
            left: dict[str, dict[str, bytes]] = {}
            for size, log in logs.items():
                for engine in engines:
                    run = scratch / f"{engine}-{size}-{repeat}"
                    store = scratch / f"store-{engine}-{size}-{repeat}"
                    command = [sys.executable, "-m", "fastscore", "score", "score_dialogue"]
                    command += [str(log), "-o", str(run), "--store", str(store), "-q", *options]
                    command += ["--engine", engine, "--workers", str(workers)]
                    cost = measure(command, cwd=scratch)
                    if repeat:
                        walls.setdefault((engine, size), []).append(cost.wall)
                    left[engine] = tables(run)
                if any(found != left[engines[0]] for found in left.values()):
                    raise RuntimeError(f"the engines' tables of {log} differ")
    seconds = {key: statistics.median(found) for key, found in walls.items()}
    base = seconds[engines[0], "whole"] - seconds[engines[0], "tiny"]
    for engine in engines:
        work = seconds[engine, "whole"] - seconds[engine, "tiny"]
        yield {
            "engine": engine,
            "start-up s": round(seconds[engine, "tiny"], 2),
            "work s": round(work, 2),
            f"times {engines[0]}": round(work / base, 3),
        }


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Small sizes.")
@click.option("--engine", "wanted", multiple=True, type=click.Choice(tuple(ENGINES)[1:]))
@click.option("--workers", default=2, show_default=True)
@click.option("--dialogues", default=16_500, show_default=True, help="Of about 91 rows.")
@click.option("--embedded", default=310, show_default=True, help="Dialogues of about 65 texts.")
@click.option("--tasks", default=10_000, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--only", type=click.Choice(["tasks", "lexical", "embed"]))
def main(
    quick: bool,
    wanted: tuple[str, ...],
    workers: int,
    dialogues: int,
    embedded: int,
    tasks: int,
    repeats: int,
    only: str | None,
) -> None:
    if quick:
        dialogues, embedded, tasks, repeats = 300, 5, 1000, 1
    engines = ["local", *(wanted or tuple(ENGINES)[1:])]
    print(json.dumps(describe_host()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        parts: dict[str, Callable[[], Any]] = {
            "tasks": lambda: {each: seconds_a_task(each, workers, tasks) for each in engines}
        }
        for name, count, options in (
            ("lexical", dialogues, LEXICAL),
            ("embed", embedded, SEMANTIC),
        ):
            logs = {"tiny": Path(folder) / f"{name}-tiny", "whole": Path(folder) / f"{name}-whole"}
            parts[name] = partial(_runs, logs, count, options, engines, workers, repeats)
        for name, part in parts.items():
            if only in (None, name):
                print(json.dumps({name: part()}, indent=1), flush=True)


def _runs(
    logs: dict[str, Path],
    dialogues: int,
    options: tuple[str, ...],
    engines: list[str],
    workers: int,
    repeats: int,
) -> list[dict[str, Any]]:
    """Write the logs, then run."""
    generate(logs["tiny"], dialogues=1)
    generate(logs["whole"], dialogues=dialogues, shard_megabytes=16)
    return list(whole_runs(logs, options, engines, workers, repeats))


if __name__ == "__main__":
    main()
