"""Embedding from a thousand to a million texts, and on one and two cores.

``growth``: texts are real utterances, then predictions made of them by `benchmarks.miner_logs`.
Each point is measured in a separate process on all processors. A point that exceeds its precision's
time limit is reported with its estimated time, and skipped.

``cores``: every way embeds the same utterances, interleaved. The fastest run of each counts, as
other processes can only slow a run down. For comparison, matrix products alone run on one thread
and on two independent threads. Their loss is the minimum for any way.

Usage: python -m benchmarks.embedding_scaling growth|cores [--data SGD]...
"""

import json
import multiprocessing
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from fastscore_models.export import find_exported

from benchmarks.embedding import CALLS, MINILM, MODEL, distinct_utterances, torch_product
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.harness import SEED
from benchmarks.kernel_costs import memory
from benchmarks.miner_logs import (
    SAMPLE,
    Dialogue,
    Neighbours,
    counterparts,
    predict,
    read_dialogues,
)
from fastscore.errors import ModelError
from fastscore.files import cache_root
from fastscore.vectors import embedder, precisions
from fastscore.vectors.embedder import Embedder, load_tokenizer
from fastscore.vectors.precisions import PRECISIONS, import_openvino

FEWEST = 1000
TOKENIZED = 2000


@dataclass(frozen=True, slots=True)
class Point:
    """Cost of embedding a number of texts.

    Attributes
    ----------
    seconds
        Wall time, without loading the model.
    tokens_a_text
        Mean over a sample.
    vectors_mb, grown_mb
        Size of the vectors, and the peak growth of the process's memory, including them.
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
    """Draw distinct utterances. If there are too few, add predictions made of them.

    Raises
    ------
    click.ClickException
        The dialogues give too few texts.
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
    """Yield predictions of simulated miners, borrowing from ever more distant dialogues."""
    neighbours = Neighbours(dialogues)
    for distance in range(1, 9):
        for index, dialogue in enumerate(dialogues):
            borrowed = counterparts(dialogue, dialogues[neighbours.following(index, distance)])
            for turn, text in zip(dialogue.turns, borrowed, strict=True):
                yield from predict(turn.text, text)


def measure_growth(model: str, precision: str, count: int, data: Sequence[Path]) -> Point:
    """Embed a number of texts in this process."""
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
    """Measure one point in a separate process."""
    command = [sys.executable, "-m", "benchmarks.embedding_scaling", "growth", "--model", model]
    command += ["--point", precision, str(count)]
    command += [word for path in data for word in ("--data", str(path))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(done.stderr.strip().splitlines()[-1])
    return Point(**json.loads(done.stdout.splitlines()[-1]))


def grow_within(
    model: str, precision: str, most: int, seconds: float, data: Sequence[Path]
) -> Iterator[Point]:
    """Measure points, each ten times the one before, while they fit into a total time."""
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


@click.command("growth")
@click.option("--data", multiple=True, type=click.Path(path_type=Path), help="SGD dialogues.")
@click.option("--model", default="minilm-l6-v2", show_default=True)
@click.option("--precision", "precisions", multiple=True, type=click.Choice(PRECISIONS))
@click.option("--most", default=1_000_000, show_default=True, help="Texts of the last point.")
@click.option("--seconds", default=600.0, show_default=True, help="For each precision.")
@click.option("--quick", is_flag=True, help="A thousand texts.")
@click.option("--point", nargs=2, help="Measure one point here.", hidden=True)
@click.option("--json", "output", type=click.Path(path_type=Path))
def growth(
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


CORES = 2
ONE = "one thread"

Encoder = Callable[[list[str]], Any]


def openvino_way(**settings: object) -> Encoder:
    """Return an embedder whose model OpenVINO compiled with other settings."""
    openvino = import_openvino()
    usual = openvino.Core.compile_model

    def compile_model(core: Any, path: str, device: str, given: dict[str, object]) -> Any:
        return usual(core, path, device, {**given, **settings})

    model = Embedder(MODEL, precision="bf16", threads=CORES)
    openvino.Core.compile_model = compile_model
    try:
        model.encode(["ready"])
    finally:
        openvino.Core.compile_model = usual
    return model.encode


def one_call_a_thread() -> Encoder:
    """Return an embedder that passes a batch to OpenVINO only if a thread is free."""
    usual = precisions.CALLS_PER_THREAD
    model = Embedder(MODEL, precision="bf16", threads=CORES)

    def encode(texts: list[str]) -> Any:
        precisions.CALLS_PER_THREAD = 1
        try:
            return model.encode(texts)
        finally:
            precisions.CALLS_PER_THREAD = usual

    return encode


def in_batches_of(tokens: int, encode: Encoder) -> Encoder:
    """Return the same way with another batch size."""

    def changed(texts: list[str]) -> Any:
        usual = embedder.TOKENS_PER_BATCH
        embedder.TOKENS_PER_BATCH = tokens
        try:
            return encode(texts)
        finally:
            embedder.TOKENS_PER_BATCH = usual

    return changed


_worker: dict[str, Embedder] = {}


def _start_worker(model: str, precision: str) -> None:
    _worker["embedder"] = Embedder(model, precision=precision, threads=1)
    _worker["embedder"].encode(["ready"])


def _encode_in_worker(texts: list[str]) -> Any:
    return _worker["embedder"].encode(texts)


@contextmanager
def processes_way(precision: str) -> Iterator[Encoder]:
    """Return a way that gives every process its own embedder and every second text."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(CORES, _start_worker, (MODEL, precision)) as pool:
        yield lambda texts: pool.map(
            _encode_in_worker, [texts[first::CORES] for first in range(CORES)], chunksize=1
        )


def encoders(precision: str, stack: ExitStack) -> dict[str, Encoder]:
    """Return every way to embed in a precision; the first uses one core."""
    one = Embedder(MODEL, precision=precision, threads=1).encode
    two = Embedder(MODEL, precision=precision, threads=CORES).encode
    found: dict[str, Encoder] = {
        ONE: one,
        "two threads (as built)": two,
        "one thread, 256 tokens a batch": in_batches_of(256, one),
        "two threads, 256 tokens a batch": in_batches_of(256, two),
        "two processes": stack.enter_context(processes_way(precision)),
    }
    if precision == "bf16":
        found["two threads, one call each"] = one_call_a_thread()
        found["two threads, pinned"] = openvino_way(ENABLE_CPU_PINNING=True)
        found["one stream of two threads"] = openvino_way(NUM_STREAMS=1)
    return found


def measure(found: dict[str, Encoder], texts: list[str], repetitions: int) -> dict[str, float]:
    """Return the wall seconds of the fastest interleaved run of each way."""
    best = dict.fromkeys(found, float("inf"))
    for encode in found.values():
        encode(texts[:100])
    for _ in range(repetitions):
        for name, encode in found.items():
            start = time.perf_counter()
            encode(texts)
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def product_gain(precision: str, repetitions: int) -> float:
    """Return the speed-up of two threads over one for matrix products.

    Each thread has its own inputs, weights and outputs and never waits for others.
    """

    def prepare() -> Sequence[Callable[[], Any]]:
        return [torch_product(*shape, bfloat16=precision == "bf16") for shape in MINILM.products]

    def seconds(threads: int) -> float:
        products = [prepare() for _ in range(threads)]
        together = threading.Barrier(threads)
        took = [0.0] * threads

        def compute(number: int) -> None:
            for _ in range(CALLS):
                products[number][0]()
            together.wait()
            start = time.perf_counter()
            for _ in range(2 * CALLS):
                for product in products[number]:
                    product()
            took[number] = time.perf_counter() - start

        workers = [threading.Thread(target=compute, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return max(took)

    best = {1: float("inf"), CORES: float("inf")}
    for _ in range(2 * repetitions):
        for threads in best:
            best[threads] = min(best[threads], seconds(threads))
    return CORES * best[1] / best[CORES]


@click.command("cores")
@click.option("--texts", "count", default=2000, show_default=True, help="Utterances embedded.")
@click.option("--data", multiple=True, type=click.Path(path_type=Path), help="SGD dialogues.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="bf16", show_default=True)
@click.option("--repetitions", default=7, show_default=True)
@click.option("--quick", is_flag=True, help="A minute.")
@click.option("--json", "output", type=click.Path(path_type=Path))
def cores(
    count: int,
    data: tuple[Path, ...],
    precision: str,
    repetitions: int,
    quick: bool,
    output: Path | None,
) -> None:
    """Measure ways to embed on two cores."""
    if quick:
        count, repetitions = 300, 2
    texts = distinct_utterances(data or (SAMPLE,), count)
    described = describe_host()
    click.echo(json.dumps(described))
    with ExitStack() as stack:
        walls = measure(encoders(precision, stack), texts, repetitions)
    click.echo(f"| {precision} | s | texts/s | times one thread |\n|---|--:|--:|--:|")
    for name, wall in walls.items():
        gain = walls[ONE] / wall
        click.echo(f"| {name} | {wall:.2f} | {len(texts) / wall:.0f} | {gain:.2f} |")
    products = product_gain(precision, repetitions)
    if products is not None:
        click.echo(f"matrix products alone: two threads are {products:.2f} times as fast as one")
    publish(
        Figure(
            what=f"{precision}: {name}",
            rows=len(texts),
            unit="texts/s",
            ours=len(texts) / wall,
            peer=ONE,
            theirs=len(texts) / walls[ONE],
            ratio=walls[ONE] / wall,
        )
        for name, wall in walls.items()
        if name != ONE
    )
    if output is not None:
        found = {"host": described, "texts": len(texts), "seconds": walls, "products": products}
        output.write_text(json.dumps(found, indent=1))


main = click.Group("embedding_scaling", commands=[growth, cores])


if __name__ == "__main__":
    main()
