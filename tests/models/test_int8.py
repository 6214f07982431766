"""The int8 rewrite against the same arithmetic in plain numpy."""

import numpy as np
import onnxruntime
import pytest
from fastscore_jit.system import processor_flags
from fastscore_models.bert import build_encoder
from fastscore_models.int8 import quantisable, quantise, with_outputs
from onnx import numpy_helper

from tests.models.tiny_bert import make_config, make_weights


def session(model):
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


@pytest.mark.skipif(
    not {"avx512_vnni", "avx_vnni"} & processor_flags(),
    reason="without VNNI, products of int8 are cut off at 16 bits: fastscore refuses int8 there",
)
def test_a_product_is_that_of_rounded_factors():
    config = make_config()
    model = build_encoder(make_weights(config), config)
    ids = {"input_ids": np.random.default_rng(0).integers(0, 30, (6, 9))}
    tensors = quantisable(model)
    found = dict(zip(tensors, session(with_outputs(model, tensors)).run(tensors, ids), strict=True))
    ranges = {name: (values.min(0), values.max(0)) for name, values in found.items()}
    rewritten = quantise(model, ranges)

    states, output = "states", "layer0.query"
    got = session(with_outputs(rewritten, [output])).run([output], ids)[0]
    weights = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    readers = [weights[f"layer0.{part}.weight"] for part in ("query", "key", "value")]
    low, high = ranges[states]
    loud = np.maximum(np.abs(low), np.abs(high))
    heavy = np.max([np.abs(weight).max(1) for weight in readers], axis=0)
    factor = loud**0.85 / heavy**0.15
    factor /= np.exp(np.log(factor).mean())
    smooth = found[states] / factor
    span = (smooth.max() - smooth.min()) / 255
    # the activation in 256 steps over its range, the weight in 255 steps an output
    rounded = np.rint(smooth / span) * span
    weight = readers[0] * factor[:, None]
    step = np.abs(weight).max(0) / 127
    expected = rounded @ (np.rint(weight / step) * step) + weights["layer0.query.bias"]
    np.testing.assert_allclose(got, expected, atol=0.02 * np.abs(expected).max())
    exact = found[states] @ readers[0] + weights["layer0.query.bias"]
    assert np.abs(got - exact).max() < 0.05 * np.abs(exact).max()


def test_two_products_stay_float32():
    config = make_config(num_hidden_layers=4)
    model = build_encoder(make_weights(config), config)
    names = quantisable(model)
    ranges = {name: (-np.ones(20), np.ones(20)) for name in names if name.endswith("activated")}
    ranges |= {name: (-np.ones(12), np.ones(12)) for name in names if name not in ranges}
    rewritten = quantise(model, ranges)
    left = [node.output[0] for node in rewritten.graph.node if node.op_type == "Gemm"]
    assert left == ["layer0.narrowed", "layer3.narrowed"]
    same = quantise(model, ranges).SerializeToString(deterministic=True)
    assert rewritten.SerializeToString(deterministic=True) == same
