import json

import numpy as np
import onnxruntime
import pytest
from fastscore_models.bert import build_masked
from fastscore_models.export import export_masked, list_masked
from fastscore_models.recipe import HashMismatchError, UnsupportedModelError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.tiny_bert import (
    log_probability,
    make_config,
    make_head,
    make_weights,
    write_masked_folder,
)

TOKENIZER = json.dumps({"version": "1.0", "added_tokens": [{"id": 4, "content": "[MASK]"}]})


def run(model, ids, places, mask):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ids, places = np.array(ids, np.int64), np.array(places, np.int64)
    every = np.arange(len(ids))
    target = ids[every, places]
    ids[every, places] = mask
    return session.run(None, {"input_ids": ids, "masked": places, "target": target})[0]


@settings(max_examples=30)
@given(
    layers=st.integers(1, 2),
    heads=st.sampled_from([1, 2, 3]),
    vocabulary=st.integers(2, 40),
    seed=st.integers(0, 1000),
    own_decoder=st.booleans(),
    data=st.data(),
)
def test_equals_a_plain_forward_pass(layers, heads, vocabulary, seed, own_decoder, data):
    config = make_config(
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_size=4 * heads,
        vocab_size=vocabulary,
    )
    encoder, head = make_weights(config, seed), make_head(config, seed)
    if own_decoder:
        shape = (vocabulary, 4 * heads)
        decoder = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        head["cls.predictions.decoder.weight"] = decoder
    length = data.draw(st.integers(1, 16))
    token = st.integers(0, vocabulary - 1)
    ids = data.draw(st.lists(st.lists(token, min_size=length, max_size=length), min_size=1))
    places = [data.draw(st.integers(0, length - 1)) for _ in ids]
    prefixed = {f"bert.{name}": value for name, value in encoder.items()}
    found = run(build_masked(prefixed | head, config), ids, places, 0)
    expected = [
        log_probability(encoder | head, config, row, place, 0)
        for row, place in zip(ids, places, strict=True)
    ]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-5)


def test_roberta_head():
    config = make_config(model_type="roberta", pad_token_id=1)
    encoder, head = make_weights(config), make_head(config)
    names = {
        "cls.predictions.transform.dense": "lm_head.dense",
        "cls.predictions.transform.LayerNorm": "lm_head.layer_norm",
        "cls.predictions": "lm_head",
    }
    renamed = {}
    for name, value in head.items():
        old = next(old for old in names if name.startswith(f"{old}."))
        renamed[names[old] + name.removeprefix(old)] = value
    prefixed = {f"roberta.{name}": value for name, value in encoder.items()}
    found = run(build_masked(prefixed | renamed, config), [[3, 1, 4]], [1], 2)
    expected = log_probability(encoder | head, config, [3, 1, 4], 1, 2)
    np.testing.assert_allclose(found, [expected], atol=1e-4)


def test_export_leaves_three_files(tmp_path):
    folder = write_masked_folder(tmp_path / "mlm", TOKENIZER)
    exported = export_masked("mlm", tmp_path / "cache", folder)
    files = {str(path.relative_to(tmp_path / "cache")) for path in tmp_path.rglob("cache/*/*/*")}
    assert files == {
        f"masked-models/mlm/{name}" for name in ("model.onnx", "tokenizer.json", "manifest.json")
    }
    assert (exported.mask_id, exported.max_tokens) == (4, 16)
    assert list_masked(tmp_path / "cache") == ["mlm"]
    assert export_masked("mlm", tmp_path / "cache", folder) == exported
    exported.check_hashes()
    exported.onnx_path.write_bytes(exported.onnx_path.read_bytes()[:-1] + b"!")
    with pytest.raises(HashMismatchError, match=r"model\.onnx"):
        exported.check_hashes()


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [('{"version": "1.0"}', "no mask token"), ("{", "cannot be read"), ("[]", "cannot be read")],
)
def test_a_tokenizer_without_a_mask_is_refused(tmp_path, tokenizer, message):
    folder = write_masked_folder(tmp_path / "mlm", tokenizer)
    with pytest.raises(UnsupportedModelError, match=message):
        export_masked("mlm", tmp_path / "cache", folder)
    assert list_masked(tmp_path / "cache") == []


@pytest.mark.parametrize("lost", ["cls.predictions.bias", "cls.predictions.transform.dense.weight"])
def test_a_missing_tensor_of_the_head_is_named(lost):
    config = make_config()
    weights = make_weights(config) | make_head(config)
    del weights[lost]
    with pytest.raises(UnsupportedModelError, match=lost.replace(".", r"\.")):
        build_masked(weights, config)
