"""Encoders and masked language models of the BERT family as ONNX graphs, of their weights.

The graph takes ``input_ids`` (batch, tokens) and returns ``embedding`` (batch, dim). It has no mask
input: the caller batches texts of equal token count, so that nothing is ever padded and a vector
depends only on its text. Only standard ONNX operators are emitted, so any runtime can load the
file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from fastscore_models.recipe import EXPORTER_VERSION, UnsupportedModelError, first_position

OPSET = 20
IR_VERSION = 10

# A protobuf message is limited to 2 GiB.
_MAX_BYTES = 2**31 - 2**20

Weights = Mapping[str, npt.NDArray[Any]]


class Graph:
    """A graph under construction: its nodes and constants, and the source weights."""

    def __init__(self, weights: Weights) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._weights = weights
        self._prefix = next(
            (
                prefix
                for prefix in ("", "bert.", "roberta.")
                if f"{prefix}embeddings.word_embeddings.weight" in weights
            ),
            "",
        )

    def weight(self, name: str) -> npt.NDArray[np.float32]:
        """Return a named weight as float32."""
        return self.tensor(self._prefix + name)

    def tensor(self, name: str) -> npt.NDArray[np.float32]:
        """Return the weight with a full name as float32."""
        if name not in self._weights:
            raise UnsupportedModelError(
                f"The weights have no tensor {name!r}: expected a model of the BERT family."
            )
        return np.asarray(self._weights[name]).astype(np.float32)

    def has(self, name: str) -> bool:
        """Return whether there is a weight with a full name."""
        return name in self._weights

    def constant(self, name: str, values: npt.ArrayLike) -> str:
        """Add a constant and return its name."""
        array = np.asarray(values, order="C")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, inputs: list[str], output: str, **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def linear(self, inputs: str, source: str, output: str, scale: float = 1.0) -> str:
        """Add ``inputs @ weight.T + bias`` over rows, both times `scale`."""
        factor = np.float32(scale)
        weight = self.constant(f"{output}.weight", self.weight(f"{source}.weight").T * factor)
        bias = self.constant(f"{output}.bias", self.weight(f"{source}.bias") * factor)
        return self.node("Gemm", [inputs, weight, bias], output)

    def layer_norm(self, inputs: str, source: str, output: str, epsilon: float) -> str:
        """Add a layer normalisation over the last axis."""
        weight = self.constant(f"{output}.weight", self.weight(f"{source}.weight"))
        bias = self.constant(f"{output}.bias", self.weight(f"{source}.bias"))
        return self.node(
            "LayerNormalization", [inputs, weight, bias], output, axis=-1, epsilon=epsilon
        )


def build_encoder(
    weights: Weights, config: Mapping[str, Any], *, pooling: str = "mean"
) -> onnx.ModelProto:
    """Build a sentence encoder's ONNX model."""
    check_config(config)
    check_size(weights)
    graph = Graph(weights)
    states = encode_states(graph, config)
    _pool(graph, states, pooling)
    output = helper.make_tensor_value_info(
        "embedding", TensorProto.FLOAT, ["batch", int(config["hidden_size"])]
    )
    return as_model(graph, "encoder", ["input_ids"], output)


def encode_states(graph: Graph, config: Mapping[str, Any]) -> str:
    """Add embeddings and all layers; return token states (batch * tokens, hidden)."""
    states = _embed(graph, config)
    for layer in range(int(config["num_hidden_layers"])):
        states = _encoder_layer(graph, config, layer, states)
    return states


def check_size(weights: Weights) -> None:
    """Refuse weights that exceed the size limit of an ONNX file."""
    if sum(int(np.prod(array.shape)) for array in weights.values()) * 4 > _MAX_BYTES:
        raise UnsupportedModelError(
            "The weights take more than 2 GB in float32, the limit of an ONNX file."
        )


def check_config(config: Mapping[str, Any]) -> None:
    """Refuse a ``config.json`` that this exporter would build wrongly."""
    family = config.get("model_type")
    if family not in ("bert", "roberta", "xlm-roberta"):
        _refuse("model_type", family, "'bert', 'roberta' or 'xlm-roberta'")
    if config.get("hidden_act", "gelu") != "gelu":
        _refuse("hidden_act", config["hidden_act"], "'gelu'")
    if config.get("position_embedding_type", "absolute") not in ("absolute", None):
        _refuse("position_embedding_type", config["position_embedding_type"], "'absolute'")
    for key in ("is_decoder", "add_cross_attention"):
        if config.get(key):
            _refuse(key, config[key], "false")
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads"):
        if type(config.get(key)) is not int or config[key] < 1:
            _refuse(key, config.get(key), "a positive integer")
    if config["hidden_size"] % config["num_attention_heads"]:
        _refuse("num_attention_heads", config["num_attention_heads"], "a divisor of hidden_size")


def _refuse(key: str, found: object, expected: str) -> None:
    raise UnsupportedModelError(
        f"The model's config.json sets {key} to {found!r}: this exporter builds {expected}."
    )


def _embed(graph: Graph, config: Mapping[str, Any]) -> str:
    """Add word, position and type embeddings; return token states (batch * tokens, hidden)."""
    hidden = int(config["hidden_size"])
    heads = int(config["num_attention_heads"])
    words = graph.weight("embeddings.word_embeddings.weight")
    if words.shape[1] != hidden:
        raise UnsupportedModelError(
            f"The word embeddings are {words.shape[1]} wide: "
            f"expected hidden_size, {hidden}, as config.json says."
        )
    # Every token of a single text has type 0, so its row joins the position table.
    positions = graph.weight("embeddings.position_embeddings.weight")[first_position(config) :]
    positions = positions + graph.weight("embeddings.token_type_embeddings.weight")[0]

    graph.node("Shape", ["input_ids"], "batch_tokens")
    graph.node("Shape", ["input_ids"], "tokens", start=1, end=2)
    graph.constant("zero", np.array([0], np.int64))
    graph.constant("heads_width", np.array([heads, hidden // heads], np.int64))
    graph.constant("hidden", np.array([hidden], np.int64))
    graph.constant("row_shape", np.array([-1, hidden], np.int64))
    graph.node("Concat", ["batch_tokens", "heads_width"], "head_shape", axis=0)

    gathered = graph.node("Gather", [graph.constant("word_table", words), "input_ids"], "word_rows")
    table = graph.constant("position_table", positions)
    placed = graph.node("Slice", [table, "zero", "tokens", "zero"], "position_rows")
    summed = graph.node("Add", [gathered, placed], "embedded")
    normalised = graph.layer_norm(
        summed, "embeddings.LayerNorm", "embedded_norm", float(config.get("layer_norm_eps", 1e-12))
    )
    return graph.node("Reshape", [normalised, "row_shape"], "states")


def _encoder_layer(graph: Graph, config: Mapping[str, Any], layer: int, states: str) -> str:
    """Add one transformer layer over token rows.

    Add and LayerNormalization stay separate: the fused SkipLayerNormalization is slower on CPU.
    """
    source = f"encoder.layer.{layer}"
    name = f"layer{layer}"
    epsilon = float(config.get("layer_norm_eps", 1e-12))
    context = _attention(graph, config, f"{source}.attention.self", name, states)
    attended = graph.linear(context, f"{source}.attention.output.dense", f"{name}.attended")
    residual = graph.node("Add", [attended, states], f"{name}.attended_sum")
    middle = graph.layer_norm(
        residual, f"{source}.attention.output.LayerNorm", f"{name}.attended_norm", epsilon
    )
    widened = graph.linear(middle, f"{source}.intermediate.dense", f"{name}.widened")
    activated = graph.node("Gelu", [widened], f"{name}.activated", approximate="none")
    narrowed = graph.linear(activated, f"{source}.output.dense", f"{name}.narrowed")
    residual = graph.node("Add", [narrowed, middle], f"{name}.narrowed_sum")
    return graph.layer_norm(residual, f"{source}.output.LayerNorm", f"{name}.states", epsilon)


def _attention(graph: Graph, config: Mapping[str, Any], source: str, name: str, states: str) -> str:
    """Add multi-head self-attention over whole texts; return context rows."""
    width = int(config["hidden_size"]) // int(config["num_attention_heads"])
    heads = {}
    for part, scale, order in (
        ("query", 1 / np.sqrt(width), [0, 2, 1, 3]),
        ("key", 1.0, [0, 2, 3, 1]),
        ("value", 1.0, [0, 2, 1, 3]),
    ):
        rows = graph.linear(states, f"{source}.{part}", f"{name}.{part}", float(scale))
        split = graph.node("Reshape", [rows, "head_shape"], f"{name}.{part}_split")
        heads[part] = graph.node("Transpose", [split], f"{name}.{part}_heads", perm=order)
    scores = graph.node("MatMul", [heads["query"], heads["key"]], f"{name}.scores")
    shares = graph.node("Softmax", [scores], f"{name}.shares", axis=-1)
    mixed = graph.node("MatMul", [shares, heads["value"]], f"{name}.mixed")
    joined = graph.node("Transpose", [mixed], f"{name}.joined", perm=[0, 2, 1, 3])
    return graph.node("Reshape", [joined, "row_shape"], f"{name}.context")


def by_token(graph: Graph, states: str) -> str:
    """Reshape token states to (batch, tokens, hidden)."""
    shape = graph.node("Concat", ["batch_tokens", "hidden"], "state_shape", axis=0)
    return graph.node("Reshape", [states, shape], "token_states")


def _pool(graph: Graph, states: str, pooling: str) -> None:
    """Add pooling over each text's tokens and L2 normalisation."""
    tokens = by_token(graph, states)
    if pooling == "cls":
        first = graph.constant("first_token", np.array(0, np.int64))
        pooled = graph.node("Gather", [tokens, first], "pooled", axis=1)
    elif pooling == "mean":
        axis = graph.constant("token_axis", np.array([1], np.int64))
        pooled = graph.node("ReduceMean", [tokens, axis], "pooled", keepdims=0)
    else:
        raise UnsupportedModelError(f"Unknown pooling {pooling!r}: expected 'mean' or 'cls'.")
    _normalise(graph, pooled)


def _normalise(graph: Graph, pooled: str) -> None:
    """Add L2 normalisation; a vector of zeros is unchanged."""
    last = graph.constant("last_axis", np.array([-1], np.int64))
    length = graph.node("ReduceL2", [pooled, last], "length", keepdims=1)
    tiny = graph.constant("tiny", np.array([1e-12], np.float32))
    divisor = graph.node("Max", [length, tiny], "divisor")
    graph.node("Div", [pooled, divisor], "embedding")


def build_static(table: npt.NDArray[Any]) -> onnx.ModelProto:
    """Build the ONNX model of static embeddings: the normalised mean of the tokens' rows."""
    graph = Graph({})
    rows = graph.constant("table", np.asarray(table, np.float32))
    gathered = graph.node("Gather", [rows, "input_ids"], "rows")
    axis = graph.constant("token_axis", np.array([1], np.int64))
    total = graph.node("ReduceSum", [gathered, axis], "total", keepdims=0)
    # the mean's divisor is irrelevant: rows are scaled to length 1
    _normalise(graph, total)
    output = helper.make_tensor_value_info(
        "embedding", TensorProto.FLOAT, ["batch", int(table.shape[1])]
    )
    return as_model(graph, "static", ["input_ids"], output)


def as_model(
    graph: Graph, name: str, inputs: Sequence[str], output: onnx.ValueInfoProto
) -> onnx.ModelProto:
    """Return the model of a graph with int64 inputs: ``input_ids`` per token, others per text."""
    shapes = {"input_ids": ["batch", "tokens"]}
    declared = [
        helper.make_tensor_value_info(key, TensorProto.INT64, shapes.get(key, ["batch"]))
        for key in inputs
    ]
    body = helper.make_graph(graph.nodes, name, declared, [output], graph.constants)
    return helper.make_model(
        body,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="fastscore-models",
        producer_version=str(EXPORTER_VERSION),
    )


def build_masked(weights: Weights, config: Mapping[str, Any]) -> onnx.ModelProto:
    """Build a masked language model's graph."""
    check_config(config)
    check_size(weights)
    graph = Graph(weights)
    states = by_token(graph, encode_states(graph, config))
    axis = graph.constant("index_axis", np.array([1], np.int64))
    place = graph.node("Unsqueeze", ["masked", axis], "masked_index")
    state = graph.node("GatherND", [states, place], "masked_state", batch_dims=1)
    logits = _masked_head(graph, config, state)
    shares = graph.node("LogSoftmax", [logits], "log_probabilities", axis=-1)
    wanted = graph.node("Unsqueeze", ["target", axis], "target_index")
    graph.node("GatherND", [shares, wanted], "log_probability", batch_dims=1)
    output = helper.make_tensor_value_info("log_probability", TensorProto.FLOAT, ["batch"])
    return as_model(graph, "masked_model", ["input_ids", "masked", "target"], output)


def _masked_head(graph: Graph, config: Mapping[str, Any], state: str) -> str:
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
