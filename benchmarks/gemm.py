"""The matrix products of a BERT-shaped model, as fast as any library here computes them.

Every product of a layer is timed with 512 rows in each library; its best median counts. What a
whole model then reaches, counting the same products only, is its share of the core's limit.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS = 512
CALLS = 20
ROUNDS = 7


@dataclass(frozen=True)
class Shape:
    """What decides the products of a model: its widths and its layers."""

    layers: int
    hidden: int
    inner: int

    @property
    def products(self) -> dict[tuple[int, int], int]:
        """How often a layer multiplies by a weight of (inputs, outputs)."""
        return {
            (self.hidden, self.hidden): 4,
            (self.hidden, self.inner): 1,
            (self.inner, self.hidden): 1,
        }

    def operations(self, tokens_by_text: Any) -> float:
        """Return the floating-point operations of all products over texts of so many tokens."""
        lengths = np.asarray(tokens_by_text, float)
        weights = sum(2 * rows * cols * n for (rows, cols), n in self.products.items())
        # scores and mixing: every token with every token of its text
        attention = 4 * self.hidden * float((lengths**2).sum())
        return self.layers * (weights * float(lengths.sum()) + attention)


def onnxruntime_product(inputs: int, outputs: int) -> Callable[[], Any]:
    """Make ONNX Runtime's product with a constant weight, which it packs beforehand."""
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
    """Make torch's product with a constant weight, on one thread."""
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
    """Return the CPU seconds of a call of the fastest: the best median of interleaved runs."""
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
