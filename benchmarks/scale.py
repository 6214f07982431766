"""Costs of 10^7, 10^9 and 10^11 turns: a model of measured rates, and a simulated scheduler.

The rates were measured by whole runs and by `benchmarks.engines`. Nothing is measured here. The
simulation assigns shards to workers as the engines do, a few in advance for each worker. The
scheduler assigns a limited number of tasks per second, and workers die. The result is the number of
cores from which the scheduler, not the work, is the limit.

Usage: python -m benchmarks.scale
"""

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass

TURNS = (10**7, 10**9, 10**11)
BYTES_A_TURN = 327
"""Measured on a log of the Schema-Guided Dialogue corpus: 511 MB for 1,561,250 steps."""
PARQUET_BYTES_A_TURN = 23
"""Measured on lexical tables of the bundled sample; slightly more with vectors."""
TEXTS_A_TURN = 0.72
"""Distinct texts, measured on the same log; repetitive chat has fewer."""
STORED_BYTES_A_TEXT = 4 * 384 + 24
SHARD_BYTES = 64 * 2**20
TURNS_A_CORE = {"plan": 920_000, "texts": 279_000, "score": 82_500, "warm": 221_000}
"""Turns per second and core in each stage: half of the rate of two cores. `warm` is `texts` with
all texts in the store: shards are scored while they are read."""
TEXTS_A_CORE = {"fp32": 416, "bf16": 847}
"""Texts embedded per second and core, in runs of a million (fp32) or 1,500 (bf16)."""
MS_A_TASK = {"local": 0.03, "dask": 3.1, "ray": 1.0}
"""The scheduler's time per task: processor time with Dask, wall time with Ray."""
CORES = 512
PRICE_A_CORE_HOUR = 0.04
"""Price of a general on-demand machine in dollars: set your own."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """Result of the scheduler's simulation."""

    seconds: float
    busy: float
    again: int


def work_hours(turns: float, precision: str | None) -> float:
    """Return the core hours with an empty store in a precision, or with a full one."""
    if precision is None:
        return sum(turns / TURNS_A_CORE[stage] for stage in ("plan", "warm")) / 3600
    stages = sum(turns / TURNS_A_CORE[stage] for stage in ("plan", "texts", "score"))
    return (stages + turns * TEXTS_A_TURN / TEXTS_A_CORE[precision]) / 3600


def simulate(
    shards: int, workers: int, seconds: float, ms_a_task: float, deaths: float, seed: int = 0
) -> Simulated:
    """Assign shards to workers until all are done.

    Parameters
    ----------
    shards, workers
        Their numbers.
    seconds
        The time per shard, which varies by a third.
    ms_a_task
        The scheduler's time per task, one after another.
    deaths
        The share of attempts whose worker dies, half way through.
    """
    rng = random.Random(seed)
    left, again, scheduler, busy, last = shards, 0, 0.0, 0.0, 0.0
    free = [0.0] * workers
    heapq.heapify(free)
    while left:
        at = heapq.heappop(free)
        scheduler = max(scheduler, at - 2 * seconds) + ms_a_task / 1000  # assigned in advance
        begin = max(at, scheduler)
        work = seconds * rng.uniform(2 / 3, 4 / 3)
        if rng.random() < deaths:
            work /= 2
            again += 1
        else:
            left -= 1
        heapq.heappush(free, begin + work)
        busy += work
        last = max(last, begin + work)
    return Simulated(last, busy / (last * workers), again)


def rates() -> Iterator[str]:
    """Return the model's rates as a Markdown table."""
    names = {
        "plan": "plan",
        "texts": "texts, into a cold store",
        "score": "score",
        "warm": "texts, from a warm store: shards are scored as they are read",
    }
    yield "| stage | a second and core |"
    yield "|---|--:|"
    for stage, rate in TURNS_A_CORE.items():
        yield f"| {names[stage]} | {rate:,} turns |"
    for precision, rate in TEXTS_A_CORE.items():
        yield f"| embed, {precision} | {rate:,} texts |"
    for engine, milliseconds in MS_A_TASK.items():
        yield f"| tasks handed out, {engine} | {1000 / milliseconds:,.0f} |"


def model() -> Iterator[str]:
    """Return the model as a Markdown table."""
    yield (
        "| turns | store | core hours | hours on 512 cores | cost $ | logs GB | results GB "
        "| store GB |"
    )
    yield "|--:|---|--:|--:|--:|--:|--:|--:|"
    for turns in TURNS:
        for name, precision in (
            *((f"cold, {each}", each) for each in TEXTS_A_CORE),
            ("warm", None),
        ):
            hours = work_hours(turns, precision)
            sizes = (
                turns * BYTES_A_TURN,
                turns * PARQUET_BYTES_A_TURN,
                turns * TEXTS_A_TURN * STORED_BYTES_A_TEXT,
            )
            yield (
                f"| 10^{len(str(turns)) - 1} | {name} | {hours:,.2f} | {hours / CORES:,.2f} "
                f"| {hours * PRICE_A_CORE_HOUR:,.2f} | "
                + " | ".join(f"{size / 1e9:,.1f}" for size in sizes)
                + " |"
            )


def scheduled(shards: int = 100_000) -> Iterator[str]:
    """Return the simulation as a Markdown table."""
    turns = SHARD_BYTES / BYTES_A_TURN
    seconds = turns / TURNS_A_CORE["warm"]
    yield "| engine | workers | deaths | seconds | workers busy | done again |"
    yield "|---|--:|--:|--:|--:|--:|"
    for engine in ("dask", "ray"):
        for workers in (64, 256, 1024):
            for deaths in (0.0, 0.01):
                found = simulate(shards, workers, seconds, MS_A_TASK[engine], deaths)
                yield (
                    f"| {engine} | {workers:,} | {deaths:.0%} | {found.seconds:,.0f} "
                    f"| {found.busy:.1%} | {found.again:,} |"
                )


def main() -> None:
    print("\n".join(rates()), end="\n\n")
    print("\n".join(model()), end="\n\n")
    print("\n".join(scheduled()))


if __name__ == "__main__":
    main()
