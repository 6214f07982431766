"""What `fastscore.Scorer` costs: a call beyond its rows, a row of a large batch, a row of a stream.

Processor time of whole calls, lexically, beside `fastscore.score` of the same frame. A call of one
dialogue and one of all give the cost of a row and what is left without rows.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import polars as pl

import fastscore
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.miner_logs import generate

MOST_MS_A_CALL = 10.0
MOST_US_A_ROW = 0.8
STREAMED_ROWS = 10_000
"""What Spark hands on at once."""


def _measured(call: Callable[[], Any], repetitions: int) -> list[float]:
    """Return the processor seconds of calls, after one that warms up."""
    call()
    spent = []
    for _ in range(repetitions):
        started = time.process_time()
        call()
        spent.append(time.process_time() - started)
    return spent


def _limited(what: str, rows: int, unit: str, ours: float, most: float) -> Figure:
    return Figure(
        what=what,
        rows=rows,
        unit=unit,
        ours=ours,
        peer="the most that it may",
        theirs=most,
        ratio=most / ours,
        aim=1.0,
    )


@click.command()
@click.option("--quick", is_flag=True, help="A tenth of the repetitions.")
@click.option("--dialogues", type=click.IntRange(min=2), default=1_000, show_default=True)
@click.option("--repetitions", type=click.IntRange(min=10), default=100, show_default=True)
def main(quick: bool, dialogues: int, repetitions: int) -> None:
    """Measure calls of one dialogue and of many, a stream of batches, and `fastscore.score`."""
    repetitions = 10 if quick else repetitions
    click.echo(describe_host())
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder) / "logs", dialogues=dialogues, layout="shards")
        rows = fastscore.scan(f"{folder}/logs", "score_dialogue").collect()
    scorer = fastscore.Scorer("score_dialogue", "steps", lex_weight=1.0)
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    one = table[: rows["dialogue_uid"].rle_id().eq(0).sum()]
    batches = table.combine_chunks().to_batches(max_chunksize=STREAMED_ROWS)
    options = fastscore.ScoreDialogue(lex_weight=1.0)
    calls: dict[str, Callable[[], Any]] = {
        "one dialogue": lambda: scorer(one),
        "all dialogues": lambda: scorer(table),
        "a stream": lambda: list(scorer.map_batches(batches)),
        "fastscore.score": lambda: fastscore.score(rows, options),
    }
    spent = {what: _measured(call, repetitions) for what, call in calls.items()}
    for what, seconds in spent.items():
        click.echo(
            f"{what}: {statistics.median(seconds) * 1e3:.1f} CPU ms "
            f"({min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f})"
        )
    least, most, streamed, whole = (statistics.median(seconds) for seconds in spent.values())
    a_row = (most - least) / (table.num_rows - one.num_rows)
    fixed = (least - a_row * one.num_rows) * 1e3
    of_all = f"{dialogues:,} dialogues"
    n_rows = table.num_rows
    publish(
        [
            _limited("a call beyond its rows", 1, "CPU ms", fixed, MOST_MS_A_CALL),
            _limited(f"a row of {of_all}", n_rows, "CPU us", most / n_rows * 1e6, MOST_US_A_ROW),
            Figure(
                what=f"{of_all} in batches of {STREAMED_ROWS:,} rows",
                rows=n_rows,
                unit="CPU us/row",
                ours=streamed / n_rows * 1e6,
                peer="fastscore.score of one frame",
                theirs=whole / n_rows * 1e6,
                ratio=whole / streamed,
            ),
        ]
    )


if __name__ == "__main__":
    main()
