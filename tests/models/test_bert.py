import numpy as np
import onnxruntime
import pytest
from fastscore_models.bert import build_encoder
from fastscore_models.recipe import UnsupportedModelError, max_positions
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.tiny_bert import forward, make_config, make_weights


def embed(model, ids):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(),
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )
    return session.run(None, {"input_ids": np.array(ids, np.int64)})[0]


@settings(max_examples=40)
@given(
    layers=st.integers(1, 3),
    heads=st.sampled_from([1, 2, 3, 4]),
    width=st.integers(1, 5),
    inner=st.integers(1, 30),
    vocabulary=st.integers(2, 50),
    pooling=st.sampled_from(["mean", "cls"]),
    family=st.sampled_from(["bert", "xlm-roberta"]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_equals_a_plain_forward_pass(
    layers, heads, width, inner, vocabulary, pooling, family, seed, data
):
    config = make_config(
        model_type=family,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_size=heads * width + heads,
        intermediate_size=inner,
        vocab_size=vocabulary,
        pad_token_id=1,
    )
    weights = make_weights(config, seed)
    length = data.draw(st.integers(1, max_positions(config)))
    token = st.integers(0, vocabulary - 1)
    ids = data.draw(st.lists(st.lists(token, min_size=length, max_size=length), max_size=3))
    ids.append([0] * length)
    found = embed(build_encoder(weights, config, pooling=pooling), ids)
    expected = [forward(weights, config, row, pooling) for row in ids]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=2e-5)


@pytest.mark.parametrize("prefix", ["bert.", "roberta."])
def test_prefixed_weights_give_the_same_model(prefix):
    config = make_config()
    plain = build_encoder(make_weights(config), config)
    assert build_encoder(make_weights(config, prefix=prefix), config) == plain


def test_half_precision_weights_are_widened():
    config = make_config()
    weights = {name: value.astype(np.float16) for name, value in make_weights(config).items()}
    found = embed(build_encoder(weights, config), [[2, 3, 4]])
    np.testing.assert_allclose(found[0], forward(weights, config, [2, 3, 4], "mean"), atol=2e-5)


def test_only_standard_operators_and_no_fused_norm():
    config = make_config()
    model = build_encoder(make_weights(config), config)
    assert {node.domain for node in model.graph.node} == {""}
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("LayerNormalization") == 1 + 2 * config["num_hidden_layers"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", "distilbert"),
        ("model_type", None),
        ("hidden_act", "gelu_new"),
        ("position_embedding_type", "relative_key"),
        ("is_decoder", True),
        ("num_attention_heads", 5),
        ("num_hidden_layers", 0),
        ("hidden_size", "12"),
    ],
)
def test_a_setting_it_cannot_build_is_refused_by_name(key, value):
    config = make_config()
    weights = make_weights(config)
    with pytest.raises(UnsupportedModelError, match=key):
        build_encoder(weights, config | {key: value})


def test_a_missing_tensor_is_named():
    config = make_config()
    weights = make_weights(config)
    del weights["encoder.layer.1.intermediate.dense.bias"]
    with pytest.raises(
        UnsupportedModelError, match=r"encoder\.layer\.1\.intermediate\.dense\.bias"
    ):
        build_encoder(weights, config)
