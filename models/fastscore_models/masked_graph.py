"""Graphs of masked language models."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper

from fastscore_models.bert import (
    Graph,
    Weights,
    as_model,
    by_token,
    check_config,
    check_size,
    encode_states,
)
from fastscore_models.recipe import UnsupportedModelError


def build_masked(weights: Weights, config: Mapping[str, Any]) -> ModelProto:
    """Build a masked language model's graph."""
    check_config(config)
    check_size(weights)
    graph = Graph(weights)
    states = by_token(graph, encode_states(graph, config))
    axis = graph.constant("index_axis", np.array([1], np.int64))
    place = graph.node("Unsqueeze", ["masked", axis], "masked_index")
    state = graph.node("GatherND", [states, place], "masked_state", batch_dims=1)
    logits = _head(graph, config, state)
    shares = graph.node("LogSoftmax", [logits], "log_probabilities", axis=-1)
    wanted = graph.node("Unsqueeze", ["target", axis], "target_index")
    graph.node("GatherND", [shares, wanted], "log_probability", batch_dims=1)
    output = helper.make_tensor_value_info("log_probability", TensorProto.FLOAT, ["batch"])
    return as_model(graph, "masked_model", ["input_ids", "masked", "target"], output)


def _head(graph: Graph, config: Mapping[str, Any], state: str) -> str:
    """Add transform and decoder; return logits (batch, vocabulary)."""
    roberta = graph.has("lm_head.dense.weight")
    head = "lm_head" if roberta else "cls.predictions"
    transform = head if roberta else f"{head}.transform"
    norm = f"{head}.layer_norm" if roberta else f"{head}.transform.LayerNorm"
    weight = graph.constant("transform.weight", graph.tensor(f"{transform}.dense.weight"))
    bias = graph.constant("transform.bias", graph.tensor(f"{transform}.dense.bias"))
    moved = graph.node("Gemm", [state, weight, bias], "transformed", transB=1)
    active = graph.node("Gelu", [moved], "transform_activated", approximate="none")
    scale = graph.constant("transform_norm.weight", graph.tensor(f"{norm}.weight"))
    shift = graph.constant("transform_norm.bias", graph.tensor(f"{norm}.bias"))
    normalised = graph.node(
        "LayerNormalization",
        [active, scale, shift],
        "transform_norm",
        axis=-1,
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
    )
    table = _decoder_table(graph, config, head)
    offsets = graph.tensor(f"{head}.bias")
    if len(offsets) != int(config["vocab_size"]):
        raise UnsupportedModelError(
            f"The tensor {head}.bias has {len(offsets)} rows: expected vocab_size, "
            f"{config['vocab_size']}, as config.json says."
        )
    decoder_bias = graph.constant("decoder.bias", offsets)
    return graph.node("Gemm", [normalised, table, decoder_bias], "logits", transB=1)


def _decoder_table(graph: Graph, config: Mapping[str, Any], head: str) -> str:
    """Return the decoder's rows. Tied rows are the word embeddings, stored once."""
    own = f"{head}.decoder.weight"
    if graph.has(own) and not np.array_equal(
        graph.tensor(own), graph.weight("embeddings.word_embeddings.weight")
    ):
        return graph.constant("decoder.weight", graph.tensor(own))
    if not graph.has(own) and not config.get("tie_word_embeddings", True):
        raise UnsupportedModelError(
            f"The weights have no tensor {own!r}, "
            "and config.json sets tie_word_embeddings to false."
        )
    return "word_table"
