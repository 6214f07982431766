"""Embedding: sentences per second and accuracy of every precision, beside sentence-transformers.

All contenders embed the same real utterances on one thread, interleaved in one process. Figures are
medians of CPU time, including tokenisation. Then two threads are compared with one. The limit is
the matrix products of a BERT-shaped model, in the fastest library. Every product of a layer is
timed with 512 rows in each library, and its best median counts. `benchmarks.embedding_scaling`
continues to a million texts, and explains why two processors are hardly faster.

Usage: python -m benchmarks.embedding [--texts 2000] [--data SGD]... [--quick] [--json FILE]
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from fastscore_models.export import find_exported

from benchmarks.end_to_end import download_weights
from benchmarks.figures import Figure, describe_host, publish
from benchmarks.harness import SEED, Case, measure
from benchmarks.miner_logs import SAMPLE, read_dialogues
from fastscore.errors import ModelError
from fastscore.files import cache_root
from fastscore.settings.options import available_processors
from fastscore.vectors.accuracy import measure_accuracy
from fastscore.vectors.embedder import Embedder, load_tokenizer
from fastscore.vectors.precisions import PRECISIONS, run_in_onnxruntime

ROWS = 512
CALLS = 20
ROUNDS = 7


@dataclass(frozen=True)
class Shape:
    """The dimensions and the number of layers of a model, which determine its products."""

    layers: int
    hidden: int
    inner: int

    @property
    def products(self) -> dict[tuple[int, int], int]:
        """Return the number of products per layer for each shape (inputs, outputs) of weights."""
        return {
            (self.hidden, self.hidden): 4,
            (self.hidden, self.inner): 1,
            (self.inner, self.hidden): 1,
        }

    def operations(self, tokens_by_text: Any) -> float:
        """Return the floating-point operations of all products over texts of ``tokens`` tokens."""
        lengths = np.asarray(tokens_by_text, float)
        weights = sum(2 * rows * cols * n for (rows, cols), n in self.products.items())
        # attention scores and weighted sums: every token with every token of its text
        attention = 4 * self.hidden * float((lengths**2).sum())
        return self.layers * (weights * float(lengths.sum()) + attention)


def onnxruntime_product(inputs: int, outputs: int) -> Callable[[], Any]:
    """Return ONNX Runtime's product with a constant, prepacked weight."""
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weight = numpy_helper.from_array(rng.normal(size=(inputs, outputs)).astype(np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, inputs])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [ROWS, outputs])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    x = rng.normal(size=(ROWS, inputs)).astype(np.float32)
    return lambda: session.run(None, {"x": x})


def torch_product(inputs: int, outputs: int, *, bfloat16: bool) -> Callable[[], Any]:
    """Return torch's product with a constant weight, on one thread."""
    import torch

    torch.set_num_threads(1)
    dtype = torch.bfloat16 if bfloat16 else torch.float32
    layer = torch.nn.Linear(inputs, outputs).to(dtype)
    x = torch.randn(ROWS, inputs).to(dtype)

    def product() -> Any:
        with torch.inference_mode():
            return layer(x)

    return product


def best_seconds(contenders: list[Callable[[], Any]]) -> float:
    """Return the CPU seconds per call of the fastest: the best median of interleaved runs."""
    times: list[list[float]] = [[] for _ in contenders]
    for call in contenders:
        call()
    for _ in range(ROUNDS):
        for mine, call in zip(times, contenders, strict=True):
            start = time.process_time()
            for _ in range(CALLS):
                call()
            mine.append((time.process_time() - start) / CALLS)
    return min(statistics.median(mine) for mine in times)


def peak(shape: Shape, precision: str) -> float:
    """Return the operations per CPU second of a layer's products, each by its fastest library."""
    operations = seconds = 0.0
    for (inputs, outputs), count in shape.products.items():
        contenders = [torch_product(inputs, outputs, bfloat16=precision == "bf16")]
        if precision == "fp32":
            contenders.append(onnxruntime_product(inputs, outputs))
        seconds += count * best_seconds(contenders)
        operations += count * 2.0 * ROWS * inputs * outputs
    return operations / seconds


MODEL = "minilm-l6-v2"
MINILM = Shape(layers=6, hidden=384, inner=1536)
PEER = "sentence-transformers fp32"
TARGETS = {"fp32": 1.4, "bf16": 4.0}

Encode = Callable[[list[str]], npt.NDArray[np.float32]]


@dataclass(frozen=True)
class Row:
    """One contender's figures."""

    contender: str
    sentences_per_second: float
    tokens_per_second: float
    times_peer: float
    gflops: float
    cosine_mean: float
    cosine_min: float
    spearman: float
    difference_p99: float


class Named:
    """A contender with an embedder's interface, for the accuracy measurement."""

    precision, device = "fp32", "cpu"
    fingerprint = ""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode


def distinct_utterances(data: Sequence[Path], count: int) -> list[str]:
    """Draw distinct utterances."""
    texts = {turn.text for dialogue in read_dialogues(data) for turn in dialogue.turns}
    ordered = sorted(texts)
    random.Random(SEED).shuffle(ordered)
    return ordered[:count]


def runnable(threads: int) -> dict[str, Embedder]:
    """Return the embedders that can run here, by precision."""
    found = {}
    for precision in PRECISIONS:
        try:
            found[precision] = Embedder(MODEL, precision=precision, threads=threads)
            found[precision].encode(["ready"])
        except ModelError as error:
            click.echo(f"{precision} does not run here: {error}")
            found.pop(precision, None)
    return found


def sentence_transformer(weights: Path, *, bfloat16: bool) -> Encode:
    """Return sentence-transformers' encode call with its defaults, on one thread."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    arguments = {"dtype": torch.bfloat16} if bfloat16 else {}
    model = SentenceTransformer(str(weights), device="cpu", model_kwargs=arguments)
    model.max_seq_length = 256

    def encode(texts: list[str]) -> npt.NDArray[np.float32]:
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        # in bf16 vectors have length 1 to only three digits
        found = np.asarray(vectors, np.float32)
        unit: npt.NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return found if not bfloat16 else unit

    return encode


def onnxruntime_loop() -> Encode:
    """Return the usual first loop: text by text through ONNX Runtime."""
    exported = find_exported(MODEL, cache_root())
    run = run_in_onnxruntime(exported.onnx_path)
    tokenizer = load_tokenizer(exported.tokenizer_path, exported.recipe.max_tokens)

    def encode(texts: list[str]) -> npt.NDArray[np.float32]:
        ids = (np.array([tokenizer.encode(text).ids], np.int64) for text in texts)
        return np.concatenate([run({"input_ids": one}) for one in ids])

    return encode


def compare(texts: list[str], weights: Path, repetitions: int) -> list[Row]:
    """Measure all contenders on the same texts, one thread each."""
    ours = runnable(1)
    encoders: dict[str, Encode] = {
        f"fastscore {precision}": embedder.encode for precision, embedder in ours.items()
    }
    encoders[PEER] = sentence_transformer(weights, bfloat16=False)
    encoders["sentence-transformers bf16"] = sentence_transformer(weights, bfloat16=True)
    encoders["ONNX Runtime, text by text"] = onnxruntime_loop()
    contenders = {name: _bound(encode, texts) for name, encode in encoders.items()}
    timings = measure(Case("embedding", len(texts), contenders), repetitions).timings
    seconds = {timing.contender: timing.cpu * len(texts) / 1e9 for timing in timings}
    lengths = token_counts(texts)
    exact = encoders[PEER](texts)
    rows = []
    for name, encode in encoders.items():
        accuracy = measure_accuracy(Named(encode), texts, exact)  # type: ignore[arg-type]
        rows.append(
            Row(
                name,
                len(texts) / seconds[name],
                sum(lengths) / seconds[name],
                seconds[PEER] / seconds[name],
                MINILM.operations(lengths) / seconds[name] / 1e9,
                accuracy.cosine_mean,
                accuracy.cosine_min,
                accuracy.spearman,
                accuracy.difference_p99,
            )
        )
    return rows


def _bound(encode: Encode, texts: list[str]) -> Callable[[], Any]:
    return lambda: encode(texts)


def token_counts(texts: list[str]) -> list[int]:
    """Count the tokens of each text, including special tokens."""
    exported = find_exported(MODEL, cache_root())
    tokenizer = load_tokenizer(exported.tokenizer_path, exported.recipe.max_tokens)
    return [len(encoding.ids) for encoding in tokenizer.encode_batch_fast(texts)]


def outside_share(embedder: Embedder, texts: list[str]) -> float:
    """Return the share of an encode call's CPU time, on one thread, outside the model."""
    run, tokenizer = embedder._load()
    inside = 0.0

    def timed(inputs: Any) -> Any:
        nonlocal inside
        start = time.thread_time()
        output = run(inputs)
        inside += time.thread_time() - start
        return output

    embedder._loaded = timed, tokenizer
    try:
        start = time.process_time()
        embedder.encode(texts)
        return 1 - inside / (time.process_time() - start)
    finally:
        embedder._loaded = run, tokenizer


def scaling(texts: list[str], repetitions: int) -> dict[str, float]:
    """Return the speed-up of two threads over one, in wall time, by precision."""
    one, two = runnable(1), runnable(2)
    gains = {}
    for precision in one:
        walls: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repetitions):
            for threads, embedder in ((1, one[precision]), (2, two[precision])):
                start = time.perf_counter()
                embedder.encode(texts)
                walls[threads].append(time.perf_counter() - start)
        gains[precision] = statistics.median(walls[1]) / statistics.median(walls[2])
    return gains


def print_rows(rows: Sequence[Row], peaks: dict[str, float]) -> None:
    """Print the comparison as a Markdown table."""
    click.echo(
        "| | sentences/s | tokens/s | times | GFLOP/s | of the peak | cos mean | cos min "
        "| Spearman | p99 | target |"
    )
    click.echo("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
    for row in rows:
        precision = row.contender.split()[-1]
        share = f"{row.gflops / peaks[precision]:.0%}" if precision in peaks else ""
        target = ""
        if row.contender.startswith("fastscore") and precision in TARGETS:
            reached = row.times_peer >= TARGETS[precision]
            target = f"{TARGETS[precision]}x: {'reached' if reached else 'SHORT'}"
        click.echo(
            f"| {row.contender} | {row.sentences_per_second:.0f} | {row.tokens_per_second:.0f} "
            f"| {row.times_peer:.2f} | {row.gflops:.0f} | {share} | {row.cosine_mean:.6f} "
            f"| {row.cosine_min:.5f} | {row.spearman:.5f} | {row.difference_p99:.5f} | {target} |"
        )


def figures(rows: Sequence[Row], n_texts: int) -> Iterator[Figure]:
    """Yield each of our precisions beside sentence-transformers in fp32."""
    (peer,) = (row for row in rows if row.contender == PEER)
    for row in rows:
        if row.contender.startswith("fastscore"):
            yield Figure(
                what=f"embed, {row.contender}",
                rows=n_texts,
                unit="sentences/s",
                ours=row.sentences_per_second,
                peer=PEER,
                theirs=peer.sentences_per_second,
                ratio=row.times_peer,
                aim=TARGETS.get(row.contender.split()[-1]),
            )


@click.command()
@click.option("--texts", "count", default=2000, show_default=True, help="Utterances compared.")
@click.option("--data", multiple=True, type=click.Path(path_type=Path), help="SGD dialogues.")
@click.option("--weights", type=click.Path(exists=True, path_type=Path), envvar="FASTSCORE_MINILM")
@click.option("--repetitions", default=5, show_default=True)
@click.option("--quick", is_flag=True, help="A minute or two.")
@click.option("--json", "output", type=click.Path(path_type=Path))
def main(
    count: int,
    data: tuple[Path, ...],
    weights: Path | None,
    repetitions: int,
    quick: bool,
    output: Path | None,
) -> None:
    """Measure embedding in every precision."""
    data = data or (SAMPLE,)
    if quick:
        count, repetitions = 300, 3
    texts = distinct_utterances(data, count)
    described = describe_host()
    click.echo(json.dumps(described))
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(texts, weights or download_weights(Path(folder) / "weights"), repetitions)
    peaks = {precision: peak(MINILM, precision) / 1e9 for precision in ("fp32", "bf16")}
    print_rows(rows, peaks)
    for precision, limit in peaks.items():
        click.echo(f"GEMM peak of a core, {precision}: {limit:.0f} GFLOP/s")
    outside = {name: outside_share(one, texts) for name, one in runnable(1).items()}
    for precision, share in outside.items():
        click.echo(f"{precision}: {share:.1%} of CPU time is outside the model")
    gains = scaling(texts, repetitions) if available_processors() > 1 else {}
    for precision, gain in gains.items():
        click.echo(f"{precision}: two threads are {gain:.2f} times as fast as one")
    publish(figures(rows, len(texts)))
    if output is not None:
        found = {
            "host": described,
            "rows": [asdict(row) for row in rows],
            "gemm_peak_gflops": peaks,
            "outside": outside,
            "two_threads": gains,
        }
        output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
