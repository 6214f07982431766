"""Static int8: an encoder's graph with quantised products and fixed ranges of activations.

Activations are quantised to unsigned 8 bits with one scale per tensor, weights to signed 8 bits
with one scale per output. First, each input channel is divided by a factor that its weights absorb
("SmoothQuant"), so that a few large channels do not reduce the precision of the others. All ranges
are constants of the graph, so a text's vector does not depend on other texts.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Range = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]

INT8_VERSION = 1

# Exponent of SmoothQuant: the best of 0.7 to 0.9 on dialogue.
_SMOOTHING = 0.85


def quantisable(model: onnx.ModelProto) -> list[str]:
    """Return the tensors whose ranges `quantise` needs, sorted."""
    return sorted({node.input[0] for node in _products(model)})


def with_outputs(model: onnx.ModelProto, tensors: list[str]) -> onnx.ModelProto:
    """Return a copy of a model that also returns inner tensors."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for name in tensors:
        copy.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return copy


def quantise(model: onnx.ModelProto, ranges: Mapping[str, Range]) -> onnx.ModelProto:
    """Rewrite an encoder's products in int8.

    The second product of the first and of the last layer's feed-forward stay float32. Quantised,
    they would lose most accuracy, and each takes only a twelfth of the time.

    Parameters
    ----------
    model
        From `bert.build_encoder`.
    ranges
        Minimum and maximum by channel, for each tensor of `quantisable`.

    Returns
    -------
    onnx.ModelProto
        A model with equal inputs and outputs. Products are ONNX Runtime's MatMulIntegerToFloat.
    """
    weights = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    products = _products(model)
    readers = defaultdict(list)
    for node in products:
        readers[node.input[0]].append(weights[node.input[1]])
    chosen = {node.output[0] for node in products}
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, npt.NDArray[Any]] = {}
    factors: dict[str, npt.NDArray[np.float32]] = {}
    replaced: set[str] = set()
    for node in model.graph.node:
        if node.output[0] not in chosen:
            nodes.append(node)
            continue
        source, weight, bias = node.input
        if source not in factors:
            factors[source] = _smoothing(ranges[source], readers[source])
            constants |= _activation_constants(source, ranges[source], factors[source])
            nodes += _quantised_activation(source)
        scaled = weights[weight] * factors[source][:, None]
        scales = np.maximum(np.abs(scaled).max(0) / 127, 1e-12).astype(np.float32)
        constants[f"{weight}.int8"] = np.clip(np.rint(scaled / scales), -127, 127).astype(np.int8)
        constants[f"{weight}.scale"] = scales
        replaced.add(weight)
        inputs = [f"{source}.uint8", f"{weight}.int8", f"{source}.scale", f"{weight}.scale"]
        inputs += [f"{source}.zero", "", bias]
        nodes.append(
            helper.make_node(
                "MatMulIntegerToFloat",
                inputs,
                [node.output[0]],
                name=node.name,
                domain="com.microsoft",
            )
        )
    return _as_model(model, nodes, constants, replaced)


def _products(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Return the products to quantise."""
    gemms = [node for node in model.graph.node if node.op_type == "Gemm"]
    narrowing = [node.output[0] for node in gemms if node.output[0].endswith(".narrowed")]
    kept = {*narrowing[:1], *narrowing[-1:]}
    return [node for node in gemms if node.output[0] not in kept]


def _smoothing(bounds: Range, weights: list[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32]:
    """Return the divisor of each channel; their geometric mean is 1."""
    loudness = np.maximum(np.abs(bounds[0]), np.abs(bounds[1])) + 1e-6
    heaviness = np.max([np.abs(weight).max(1) for weight in weights], axis=0) + 1e-6
    factors = loudness**_SMOOTHING / heaviness ** (1 - _SMOOTHING)
    smoothed: npt.NDArray[np.float32] = (factors / np.exp(np.log(factors).mean())).astype(
        np.float32
    )
    return smoothed


def _activation_constants(
    source: str, bounds: Range, factors: npt.NDArray[np.float32]
) -> dict[str, npt.NDArray[Any]]:
    low = min(float((bounds[0] / factors).min()), 0.0)
    high = max(float((bounds[1] / factors).max()), 0.0)
    scale = max((high - low) / 255, 1e-12)
    zero = int(np.clip(round(-low / scale), 0, 255))
    return {
        f"{source}.inverse": (1 / factors).astype(np.float32),
        f"{source}.scale": np.array(scale, np.float32),
        f"{source}.zero": np.array(zero, np.uint8),
    }


def _quantised_activation(source: str) -> list[onnx.NodeProto]:
    smooth, scale, zero = f"{source}.smooth", f"{source}.scale", f"{source}.zero"
    return [
        helper.make_node("Mul", [source, f"{source}.inverse"], [smooth], name=smooth),
        helper.make_node(
            "QuantizeLinear", [smooth, scale, zero], [f"{source}.uint8"], name=f"{source}.uint8"
        ),
    ]


def _as_model(
    model: onnx.ModelProto,
    nodes: list[onnx.NodeProto],
    constants: Mapping[str, npt.NDArray[Any]],
    replaced: set[str],
) -> onnx.ModelProto:
    kept = [item for item in model.graph.initializer if item.name not in replaced]
    added = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    body = helper.make_graph(
        nodes, "encoder_int8", model.graph.input, model.graph.output, kept + added
    )
    opsets = [*model.opset_import, helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(
        body,
        opset_imports=opsets,
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=f"{model.producer_version}.{INT8_VERSION}",
    )
