"""Embedding from a thousand distinct texts to a million: time and memory, by precision.

Texts are real utterances, then predictions made of them by `benchmarks.miner_logs`. Each point
is measured in a process of its own on all processors; one that would not fit into its precision's
seconds is named, with the time that it would take, and left out.

Usage: python -m benchmarks.embedding_growth --data SGD... [--most 1000000] [--seconds 600]
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from fastscore_models import find_exported

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.growth import memory
from benchmarks.harness import SEED
from benchmarks.miner_logs import (
    SAMPLE,
    Dialogue,
    Neighbours,
    counterparts,
    predict,
    read_dialogues,
)
from fastscore.errors import ModelError
from fastscore.paths import cache_root
from fastscore.vectors import Embedder
from fastscore.vectors.embedder import load_tokenizer
from fastscore.vectors.precisions import PRECISIONS

FEWEST = 1000
TOKENIZED = 2000


@dataclass(frozen=True, slots=True)
class Point:
    """What embedding so many texts took.

    Attributes
    ----------
    seconds
        Wall time, without loading the model.
    tokens_a_text
        Mean over a sample.
    vectors_mb, grown_mb
        Size of the vectors, and how much more memory the process held at most, those included.
    """

    precision: str
    texts: int
    seconds: float
    tokens_a_text: float
    vectors_mb: float
    grown_mb: float

    @property
    def line(self) -> str:
        """The point as a row of a Markdown table."""
        return (
            f"| {self.precision} | {self.texts:,} | {self.seconds:.1f} "
            f"| {self.texts / self.seconds:.0f} "
            f"| {self.texts * self.tokens_a_text / self.seconds:.0f} "
            f"| {self.vectors_mb:.0f} | {self.grown_mb:.0f} |"
        )


HEADER = (
    "| precision | texts | s | texts/s | tokens/s | vectors MB | memory MB |\n"
    "|---|--:|--:|--:|--:|--:|--:|"
)


def distinct_texts(dialogues: Sequence[Dialogue], count: int) -> list[str]:
    """Draw distinct utterances; where they are too few, go on with predictions made of them.

    Raises
    ------
    click.ClickException
        The dialogues do not give so many.
    """
    utterances = sorted({turn.text for dialogue in dialogues for turn in dialogue.turns})
    random.Random(SEED).shuffle(utterances)
    texts = dict.fromkeys(utterances[:count])
    for text in _predictions(dialogues) if len(texts) < count else ():
        texts[text] = None
        if len(texts) == count:
            break
    if len(texts) < count:
        raise click.ClickException(
            f"The dialogues give {len(texts):,} distinct texts: expected {count:,}. Name more "
            "with --data."
        )
    return list(texts)


def _predictions(dialogues: Sequence[Dialogue]) -> Iterator[str]:
    """Yield what miners might have predicted, borrowing from ever more distant dialogues."""
    neighbours = Neighbours(dialogues)
    for distance in range(1, 9):
        for index, dialogue in enumerate(dialogues):
            borrowed = counterparts(dialogue, dialogues[neighbours.following(index, distance)])
            for turn, text in zip(dialogue.turns, borrowed, strict=True):
                yield from predict(turn.text, text)


def measure_growth(model: str, precision: str, count: int, data: Sequence[Path]) -> Point:
    """Embed so many texts in this process."""
    texts = distinct_texts(read_dialogues(data), count)
    exported = find_exported(model, cache_root())
    tokenizer = load_tokenizer(exported.tokenizer_path, exported.recipe.max_tokens)
    sample = tokenizer.encode_batch_fast(texts[:: max(1, count // TOKENIZED)])
    embedder = Embedder(model, precision=precision)
    embedder.encode(texts[:100])
    before, start = memory("VmRSS"), time.perf_counter()
    vectors = embedder.encode(texts)
    seconds = time.perf_counter() - start
    tokens = sum(len(encoding.ids) for encoding in sample) / len(sample)
    grown = memory("VmHWM") - before
    return Point(precision, count, seconds, tokens, vectors.nbytes / 1e6, grown)


def grow(model: str, precision: str, count: int, data: Sequence[Path]) -> Point:
    """Measure one point in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.embedding_growth", "--model", model]
    command += ["--point", precision, str(count)]
    command += [word for path in data for word in ("--data", str(path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(done.stderr.strip().splitlines()[-1])
    return Point(**json.loads(done.stdout.splitlines()[-1]))


def grow_within(
    model: str, precision: str, most: int, seconds: float, data: Sequence[Path]
) -> Iterator[Point]:
    """Measure points ten times apart, as far as they fit into so many seconds together."""
    left, expected = seconds, 0.0
    count = min(FEWEST, most)
    while count <= most:
        if expected > left:
            click.echo(
                f"{precision}: {count:,} texts would take about {expected:.0f} s, "
                f"{left:.0f} of {seconds:.0f} are left (--seconds)"
            )
            return
        point = grow(model, precision, count, data)
        yield point
        left -= point.seconds
        expected = 10 * point.seconds
        count *= 10


def runnable(model: str, precisions: Sequence[str]) -> Iterator[str]:
    """Yield the precisions that can run here; say why the others cannot."""
    for precision in precisions:
        try:
            Embedder(model, precision=precision).encode(["ready"])
        except ModelError as error:
            click.echo(f"{precision} does not run here: {error}")
        else:
            yield precision


@click.command()
@click.option("--data", multiple=True, type=click.Path(path_type=Path), help="SGD dialogues.")
@click.option("--model", default="minilm-l6-v2", show_default=True)
@click.option("--precision", "precisions", multiple=True, type=click.Choice(PRECISIONS))
@click.option("--most", default=1_000_000, show_default=True, help="Texts of the last point.")
@click.option("--seconds", default=600.0, show_default=True, help="For each precision.")
@click.option("--quick", is_flag=True, help="A thousand texts.")
@click.option("--point", nargs=2, help="Measure one point here.", hidden=True)
@click.option("--json", "output", type=click.Path(path_type=Path))
def main(
    data: tuple[Path, ...],
    model: str,
    precisions: tuple[str, ...],
    most: int,
    seconds: float,
    quick: bool,
    point: tuple[str, str] | None,
    output: Path | None,
) -> None:
    """Measure how embedding grows with texts."""
    data = data or (SAMPLE,)
    if point is not None:
        click.echo(json.dumps(asdict(measure_growth(model, point[0], int(point[1]), data))))
        return
    described = describe_host()
    click.echo(json.dumps(described))
    points = []
    click.echo(HEADER)
    for precision in runnable(model, precisions or PRECISIONS):
        for found in grow_within(model, precision, FEWEST if quick else most, seconds, data):
            points.append(asdict(found))
            click.echo(found.line)
    publish(
        Figure(
            what=f"embed, {found['precision']}",
            rows=found["texts"],
            unit="texts/s",
            ours=found["texts"] / found["seconds"],
        )
        for found in points
    )
    if output is not None:
        output.write_text(json.dumps({"host": described, "growth": points}, indent=1))


if __name__ == "__main__":
    main()
