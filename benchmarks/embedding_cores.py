"""Why two cores are not twice one: ways to embed on both, and what the processor itself gives.

Every way embeds the same utterances, interleaved; the quickest run of each counts, for whatever else
runs on the machine can only slow one down. Beside the ways: matrix products alone, one thread
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
import numpy as np

from benchmarks import gemm
from benchmarks.embedding import MINILM, MODEL, distinct_utterances
from benchmarks.host import describe_host
from benchmarks.source_dialogues import SAMPLE
from fastscore.vectors import Embedder, embedder
from fastscore.vectors.precisions import PRECISIONS
from fastscore.vectors.runtimes import import_openvino
from fastscore.vectors.text_ids import as_series

CORES = 2
ONE = "one thread"

Way = Callable[[list[str]], Any]


def openvino_way(settings: dict[str, object], *, calls: int) -> Way:
    """Return an embedder on OpenVINO with settings of its own, and so many calls at once."""
    model = Embedder(MODEL, precision="bf16", threads=calls)
    _, tokenizer = model._load()
    compiled = (
        import_openvino()
        .Core()
        .compile_model(
            str(model.exported.onnx_path), "CPU", {"INFERENCE_PRECISION_HINT": "bf16", **settings}
        )
    )
    own = threading.local()

    def run(inputs: Any) -> Any:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        own.request.infer(dict(inputs))
        return own.request.get_output_tensor(0).data.copy()

    model._loaded = run, tokenizer
    return model.encode


def asynchronous_way() -> Way:
    """Return an embedder whose batches OpenVINO itself hands to its two streams."""
    model = Embedder(MODEL, precision="bf16", threads=1)
    _, tokenizer = model._load()
    openvino = import_openvino()
    settings = {"INFERENCE_PRECISION_HINT": "bf16", "NUM_STREAMS": CORES, **_unpinned(CORES)}
    compiled = openvino.Core().compile_model(str(model.exported.onnx_path), "CPU", settings)
    queue = openvino.AsyncInferQueue(compiled, CORES)

    def encode(texts: list[str]) -> Any:
        vectors = np.empty((len(texts), model.dim), np.float32)

        def keep(request: Any, rows: Any) -> None:
            vectors[rows] = request.get_output_tensor(0).data

        queue.set_callback(keep)
        for inputs, rows in model._batches(as_series(texts), tokenizer):
            queue.start_async(dict(inputs), rows)
        queue.wait_all()
        return vectors

    return encode


def in_batches_of(tokens: int, encode: Way) -> Way:
    """Return the same way with batches of another size."""

    def changed(texts: list[str]) -> Any:
        usual = embedder.TOKENS_PER_BATCH
        embedder.TOKENS_PER_BATCH = tokens
        try:
            return encode(texts)
        finally:
            embedder.TOKENS_PER_BATCH = usual

    return changed


def _unpinned(threads: int) -> dict[str, object]:
    return {"INFERENCE_NUM_THREADS": threads, "ENABLE_CPU_PINNING": False}


_worker: dict[str, Embedder] = {}


def _start_worker(precision: str) -> None:
    _worker["embedder"] = Embedder(MODEL, precision=precision, threads=1)
    _worker["embedder"].encode(["ready"])


def _encode_in_worker(texts: list[str]) -> Any:
    return _worker["embedder"].encode(texts)


@contextmanager
def processes_way(precision: str) -> Iterator[Way]:
    """Give every process an embedder of its own and every second text."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(CORES, _start_worker, (precision,)) as pool:
        yield lambda texts: pool.map(
            _encode_in_worker, [texts[first::CORES] for first in range(CORES)], chunksize=1
        )


def ways(precision: str, stack: ExitStack) -> dict[str, Way]:
    """Return every way to embed in a precision; the first uses one core."""
    one = Embedder(MODEL, precision=precision, threads=1).encode
    two = Embedder(MODEL, precision=precision, threads=CORES).encode
    found: dict[str, Way] = {
        ONE: one,
        "two threads (as built)": two,
        "one thread, 256 tokens a batch": in_batches_of(256, one),
        "two threads, 256 tokens a batch": in_batches_of(256, two),
        "two processes": stack.enter_context(processes_way(precision)),
    }
    if precision == "bf16":
        pinned = {"NUM_STREAMS": CORES, "INFERENCE_NUM_THREADS": CORES, "ENABLE_CPU_PINNING": True}
        found["two streams, pinned"] = openvino_way(pinned, calls=CORES)
        inside = {"NUM_STREAMS": 1, **_unpinned(CORES)}
        found["one stream of two threads"] = openvino_way(inside, calls=1)
        found["AsyncInferQueue of two"] = asynchronous_way()
    return found


def measure(found: dict[str, Way], texts: list[str], repetitions: int) -> dict[str, float]:
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
        return [
            gemm.torch_product(*shape, bfloat16=precision == "bf16") for shape in MINILM.products
        ]

    def seconds(threads: int) -> float:
        products = [prepare() for _ in range(threads)]
        together = threading.Barrier(threads)
        took = [0.0] * threads

        def compute(number: int) -> None:
            for _ in range(gemm.CALLS):
                products[number][0]()
            together.wait()
            start = time.perf_counter()
            for _ in range(2 * gemm.CALLS):
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
        walls = measure(ways(precision, stack), texts, repetitions)
    click.echo(f"| {precision} | s | texts/s | times one thread |\n|---|--:|--:|--:|")
    for name, wall in walls.items():
        gain = walls[ONE] / wall
        click.echo(f"| {name} | {wall:.2f} | {len(texts) / wall:.0f} | {gain:.2f} |")
    products = product_gain(precision, repetitions) if precision != "int8" else None
    if products is not None:
        click.echo(f"matrix products alone: two threads are {products:.2f} times as fast as one")
    if output is not None:
        found = {"host": described, "texts": len(texts), "seconds": walls, "products": products}
        output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
