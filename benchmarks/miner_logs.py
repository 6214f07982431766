"""Turn real dialogues into sharded miner logs with constructed predictions.

The dialogues (the bundled sample by default) are real; the predictions are synthetic, by the recipe
in `benchmarks.predictions`. Every utterance becomes one ``utterance_index``.

Usage: python -m benchmarks.miner_logs --output logs [--data FILE_OR_FOLDER ...] [--miners 8]
"""

import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Literal, cast

import click
import orjson
import zstandard

from benchmarks.predictions import (
    N_STEPS,
    Miner,
    Neighbours,
    counterparts,
    perturb,
    predict,
    simulate_miners,
)
from benchmarks.source_dialogues import SAMPLE, Dialogue, read_dialogues

DIALOGUES_PER_CHALLENGE = 20
MEGABYTE = 1_000_000

Layout = Literal["shards", "dialogue"]
Compression = Literal["none", "gz", "zst"]
SUFFIXES: dict[str, str] = {"none": "", "gz": ".gz", "zst": ".zst"}


@dataclass(frozen=True, slots=True)
class Counts:
    """What was written: dialogues are counted once for every miner; bytes before compression."""

    files: int = 0
    dialogues: int = 0
    utterances: int = 0
    predictions: int = 0
    bytes: int = 0


def log_rows(
    dialogue: Dialogue, predictions: list[list[str]], labels: dict[str, str]
) -> Iterator[dict[str, Any]]:
    """Yield a dialogue's log rows: each utterance's steps, then its completion."""
    for number, (turn, steps) in enumerate(zip(dialogue.turns, predictions, strict=True)):
        for step, text in enumerate(steps):
            yield {
                "event": "predicted",
                "utterance_index": number,
                "step": step,
                "prediction": text,
                **labels,
            }
        yield {
            "event": "utterance_complete",
            "utterance_index": number,
            "ground_truth": turn.text,
            **labels,
        }


@dataclass(frozen=True, slots=True)
class Log:
    """One miner's log of one dialogue, ready to write."""

    labels: dict[str, str]
    utterances: int
    lines: bytes


def miner_logs(
    dialogues: Sequence[Dialogue], *, total: int, miners: Sequence[Miner], seed: int
) -> Iterator[Log]:
    """Yield one log a dialogue and miner, dialogue by dialogue.

    Parameters
    ----------
    dialogues
        The source dialogues, at least one.
    total
        How many dialogues to make of them: the first ``total``, or all of them again and again,
        the n-th time with ``-rN`` after the id and borrowing from n - 1 dialogues further on.
    miners
        Who predicts; see `simulate_miners`.
    seed
        Decides every random choice; a log depends on it, the miner and the dialogue alone.
    """
    neighbours = Neighbours(dialogues)
    for number in range(total):
        repetition, index = divmod(number, len(dialogues))
        dialogue = dialogues[index]
        uid = f"{dialogue.uid}-r{repetition + 1}" if repetition else dialogue.uid
        truths = [turn.text for turn in dialogue.turns]
        recipes: dict[int, list[list[str]]] = {}
        for miner in miners:
            distance = miner.borrows_from + repetition
            if distance not in recipes:
                borrowed = counterparts(dialogue, dialogues[neighbours.following(index, distance)])
                recipes[distance] = [
                    predict(truth, text) for truth, text in zip(truths, borrowed, strict=True)
                ]
            draw = random.Random(f"{seed}/{miner.uid}/{uid}")
            labels = {
                "dialogue_uid": uid,
                "challenge_uid": f"challenge-{number // DIALOGUES_PER_CHALLENGE:05d}",
                "miner_uid": miner.uid,
                "miner_hotkey": miner.hotkey,
            }
            rows = log_rows(dialogue, perturb(recipes[distance], miner, draw), labels)
            lines = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
            yield Log(labels, len(dialogue.turns), lines)


def assign_files(
    logs: Iterable[Log], *, layout: Layout, total: int, shards: int | None, shard_bytes: int
) -> Iterator[tuple[str, Log]]:
    """Name each log's file: one of its own, one of ``shards``, or the next of ``shard_bytes``."""
    shard, filled = 0, 0
    for number, log in enumerate(logs):
        if layout == "dialogue":
            name = "dialogue_run_{challenge_uid}_miner_{miner_uid}__hk_{miner_hotkey}"
            yield (name + "__dlg_{dialogue_uid}").format(**log.labels), log
            continue
        if shards is not None:
            shard = number * shards // total
        elif filled and filled + len(log.lines) > shard_bytes:
            shard, filled = shard + 1, 0
        filled += len(log.lines)
        yield f"part-{shard:05d}", log


@contextmanager
def open_output(path: Path, compression: Compression) -> Iterator[IO[bytes]]:
    """Open a file to write, compressed such that the same lines give the same bytes."""
    with path.open("wb") as file:
        if compression == "gz":
            with gzip.GzipFile(
                filename="", fileobj=file, mode="wb", compresslevel=6, mtime=0
            ) as gz:
                yield cast(IO[bytes], gz)
        elif compression == "zst":
            with zstandard.ZstdCompressor(level=3).stream_writer(file) as zst:
                yield cast(IO[bytes], zst)
        else:
            yield file


def write_logs(
    named_logs: Iterable[tuple[str, Log]], output: Path, compression: Compression = "none"
) -> Counts:
    """Write named logs to ``output``; the logs of one file must follow each other.

    Raises
    ------
    click.ClickException
        The folder holds files already.
    """
    output.mkdir(parents=True, exist_ok=True)
    if any(output.iterdir()):
        raise click.ClickException(f"{output} is not empty; name a new folder or empty it first.")
    files = dialogues = utterances = size = 0
    for name, logs in groupby(named_logs, key=itemgetter(0)):
        files += 1
        with open_output(output / f"{name}.jsonl{SUFFIXES[compression]}", compression) as stream:
            for _, log in logs:
                stream.write(log.lines)
                dialogues += 1
                utterances += log.utterances
                size += len(log.lines)
    return Counts(files, dialogues, utterances, utterances * N_STEPS, size)


def generate(
    output: Path,
    *,
    data: Sequence[Path] = (SAMPLE,),
    dialogues: int | None = None,
    miners: int = 1,
    seed: int = 0,
    layout: Layout = "shards",
    shards: int | None = None,
    shard_megabytes: float = 64,
    compression: Compression = "none",
) -> Counts:
    """Write miner logs of the dialogues in ``data``; the command line's options, as a function.

    The bytes written depend on the arguments alone.
    """
    source = read_dialogues(data)
    if not source:
        named = ", ".join(map(str, data))
        raise click.ClickException(
            f"{named} holds no dialogue; one JSON object a line is expected."
        )
    total = len(source) if dialogues is None else dialogues
    logs = miner_logs(source, total=total, miners=simulate_miners(miners, seed), seed=seed)
    named_logs = assign_files(
        logs,
        layout=layout,
        total=total * miners,
        shards=shards,
        shard_bytes=round(shard_megabytes * MEGABYTE),
    )
    return write_logs(named_logs, output, compression)


@click.command(context_settings={"show_default": True})
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="New folder.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    multiple=True,
    default=[SAMPLE],
    show_default="the bundled sample",
    help="SGD-shaped dialogues: a .jsonl or .jsonl.gz file or a folder of them; repeatable.",
)
@click.option(
    "--dialogues",
    type=click.IntRange(min=1),
    show_default="all, once",
    help="How many dialogues; the list is repeated under new ids when it is shorter.",
)
@click.option("--miners", type=click.IntRange(min=1), default=1, help="Simulated miners.")
@click.option("--seed", type=int, default=0, help="Seed of the miners' mistakes.")
@click.option(
    "--layout",
    type=click.Choice(["shards", "dialogue"]),
    default="shards",
    help="Large files, or one for each dialogue and miner.",
)
@click.option(
    "--shards", type=click.IntRange(min=1), show_default="by size", help="Number of files."
)
@click.option(
    "--shard-megabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=64,
    help="Size of a file before compression, in 10^6 bytes, unless --shards is given.",
)
@click.option(
    "--compression", type=click.Choice(["none", "gz", "zst"]), default="none", help="Of each file."
)
def main(output: Path, **options: Any) -> None:
    """Write sharded miner logs with constructed predictions for real dialogues."""
    counts = generate(output, **options)
    click.echo(
        f"{output}: {counts.files:,} files, {counts.dialogues:,} dialogue logs, "
        f"{counts.utterances:,} utterances, {counts.predictions:,} predictions, "
        f"{counts.bytes / MEGABYTE:,.1f} MB before compression"
    )


if __name__ == "__main__":
    main()
