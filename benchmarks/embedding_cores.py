"""Why two cores are not twice one: ways to embed on both, and what the processor itself gives.

Every way embeds the same utterances, interleaved; the quickest run of each counts, for whatever
else runs on the machine can only slow one down. Beside the ways: matrix products alone, one thread
against two at once that share nothing. What those lose, no way of calling them can give back.

Usage: python -m benchmarks.embedding_cores [--data SGD]... [--texts 2000] [--precision bf16]
"""

import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from benchmarks.embedding import CALLS, MINILM, MODEL, distinct_utterances, torch_product
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.miner_logs import SAMPLE
from fastscore.vectors import Embedder, embedder, runtimes
from fastscore.vectors.precisions import PRECISIONS
from fastscore.vectors.runtimes import import_openvino

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
    """Return an embedder that hands OpenVINO a batch only when a thread is free."""
    usual = runtimes.CALLS_PER_THREAD
    model = Embedder(MODEL, precision="bf16", threads=CORES)

    def encode(texts: list[str]) -> Any:
        runtimes.CALLS_PER_THREAD = 1
        try:
            return model.encode(texts)
        finally:
            runtimes.CALLS_PER_THREAD = usual

    return encode


def in_batches_of(tokens: int, encode: Encoder) -> Encoder:
    """Return the same way with batches of another size."""

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
    """Give every process an embedder of its own and every second text."""
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
    """Return the wall seconds of each way's quickest run, of interleaved ones."""
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
    """Return how many times faster two threads compute matrix products than one.

    Each has inputs, weights and outputs of its own and waits for nobody.
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


@click.command()
@click.option("--texts", "count", default=2000, show_default=True, help="Utterances embedded.")
@click.option("--data", multiple=True, type=click.Path(path_type=Path), help="SGD dialogues.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="bf16", show_default=True)
@click.option("--repetitions", default=7, show_default=True)
@click.option("--quick", is_flag=True, help="A minute.")
@click.option("--json", "output", type=click.Path(path_type=Path))
def main(
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
    products = product_gain(precision, repetitions) if precision != "int8" else None
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


if __name__ == "__main__":
    main()
