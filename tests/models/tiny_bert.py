"""A tiny BERT with random weights, and a plain numpy forward pass to hold the exporter to."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fastscore_models.export import export
from fastscore_models.recipe import Digests, Recipe
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from fastscore.files import cache_root


def make_config(**changes: Any) -> dict[str, Any]:
    return {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": 12,
        "intermediate_size": 20,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 16,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "pad_token_id": 0,
        "type_vocab_size": 2,
        "vocab_size": 30,
    } | changes


def make_weights(config: dict[str, Any], seed: int = 0, prefix: str = "") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": draw(config["vocab_size"], hidden),
        "embeddings.position_embeddings.weight": draw(config["max_position_embeddings"], hidden),
        "embeddings.token_type_embeddings.weight": draw(config["type_vocab_size"], hidden),
        "embeddings.LayerNorm.weight": draw(hidden),
        "embeddings.LayerNorm.bias": draw(hidden),
    }
    for layer in range(config["num_hidden_layers"]):
        for name, rows, columns in (
            ("attention.self.query", hidden, hidden),
            ("attention.self.key", hidden, hidden),
            ("attention.self.value", hidden, hidden),
            ("attention.output.dense", hidden, hidden),
            ("intermediate.dense", inner, hidden),
            ("output.dense", hidden, inner),
        ):
            weights[f"encoder.layer.{layer}.{name}.weight"] = draw(rows, columns) / 3
            weights[f"encoder.layer.{layer}.{name}.bias"] = draw(rows)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            weights[f"encoder.layer.{layer}.{name}.weight"] = draw(hidden)
            weights[f"encoder.layer.{layer}.{name}.bias"] = draw(hidden)
    return {prefix + name: value for name, value in weights.items()}


def forward(
    weights: dict[str, np.ndarray], config: dict[str, Any], ids: list[int], pooling: str
) -> np.ndarray:
    """One text through BERT, token by token and head by head, in double precision."""
    states = token_states(weights, config, ids)
    pooled = states[0] if pooling == "cls" else np.mean(states, axis=0)
    return pooled / np.linalg.norm(pooled)


def token_states(
    weights: dict[str, np.ndarray], config: dict[str, Any], ids: list[int]
) -> list[np.ndarray]:
    get = {name: value.astype(np.float64) for name, value in weights.items()}
    first = config["pad_token_id"] + 1 if config["model_type"] != "bert" else 0

    def dense(name: str, x: np.ndarray) -> np.ndarray:
        return get[f"{name}.weight"] @ x + get[f"{name}.bias"]

    def norm(name: str, x: np.ndarray) -> np.ndarray:
        scaled = (x - x.mean()) / math.sqrt(x.var() + config["layer_norm_eps"])
        return scaled * get[f"{name}.weight"] + get[f"{name}.bias"]

    states = [
        norm(
            "embeddings.LayerNorm",
            get["embeddings.word_embeddings.weight"][token]
            + get["embeddings.position_embeddings.weight"][first + place]
            + get["embeddings.token_type_embeddings.weight"][0],
        )
        for place, token in enumerate(ids)
    ]
    width = config["hidden_size"] // config["num_attention_heads"]
    for layer in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            [dense(f"{name}.attention.self.{part}", x) for x in states]
            for part in ("query", "key", "value")
        )
        following = []
        for place, x in enumerate(states):
            context = []
            for head in range(config["num_attention_heads"]):
                span = slice(head * width, (head + 1) * width)
                scores = [query[place][span] @ other[span] / math.sqrt(width) for other in key]
                shares = [math.exp(score - max(scores)) for score in scores]
                context.append(
                    sum(share * other[span] for share, other in zip(shares, value, strict=True))
                    / sum(shares)
                )
            attended = dense(f"{name}.attention.output.dense", np.concatenate(context))
            middle = norm(f"{name}.attention.output.LayerNorm", attended + x)
            wide = dense(f"{name}.intermediate.dense", middle)
            wide = np.array([z * 0.5 * (1 + math.erf(z / math.sqrt(2))) for z in wide])
            narrow = dense(f"{name}.output.dense", wide)
            following.append(norm(f"{name}.output.LayerNorm", narrow + middle))
        states = following
    return states


def make_head(config: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of BertForMaskedLM's head; its decoder is tied to the word embeddings."""
    rng = np.random.default_rng(1000 + seed)
    hidden = config["hidden_size"]
    shapes = {
        "transform.dense.weight": (hidden, hidden),
        "transform.dense.bias": (hidden,),
        "transform.LayerNorm.weight": (hidden,),
        "transform.LayerNorm.bias": (hidden,),
        "bias": (config["vocab_size"],),
    }
    return {
        f"cls.predictions.{name}": rng.standard_normal(shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def log_probability(
    weights: dict[str, np.ndarray], config: dict[str, Any], ids: list[int], place: int, mask: int
) -> float:
    """ln of the probability of one token when it is masked, step by step in double precision.

    `weights` are an encoder's without prefix, and `make_head`'s.
    """
    get = {name: value.astype(np.float64) for name, value in weights.items()}
    head = "cls.predictions"
    masked = [mask if at == place else token for at, token in enumerate(ids)]
    state = token_states(weights, config, masked)[place]
    moved = get[f"{head}.transform.dense.weight"] @ state + get[f"{head}.transform.dense.bias"]
    active = np.array([z * 0.5 * (1 + math.erf(z / math.sqrt(2))) for z in moved])
    scaled = (active - active.mean()) / math.sqrt(active.var() + config["layer_norm_eps"])
    normed = scaled * get[f"{head}.transform.LayerNorm.weight"]
    normed = normed + get[f"{head}.transform.LayerNorm.bias"]
    decoder = get.get(f"{head}.decoder.weight", get["embeddings.word_embeddings.weight"])
    logits = [float(row @ normed + b) for row, b in zip(decoder, get[f"{head}.bias"], strict=True)]
    total = sum(math.exp(logit - max(logits)) for logit in logits)
    return logits[ids[place]] - max(logits) - math.log(total)


def make_recipe(**changes: Any) -> Recipe:
    fields = {
        "name": "tiny",
        "description": "",
        "licence": "none",
        "pooling": "mean",
        "normalisation": "l2",
        "prefix": "",
        "dims": (12,),
        "max_tokens": 8,
    }
    digests = msgspec.convert(changes.pop("sha256", {}), Digests)
    return Recipe(**(fields | changes), sha256=digests)


def write_masked_folder(folder: Path, tokenizer: str, **changes: Any) -> Path:
    """Write the folder of a tiny masked language model, as BertForMaskedLM saves it."""
    folder.mkdir()
    config = make_config(**changes)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer)
    weights = make_weights(config, prefix="bert.") | make_head(config)
    save_file(weights, folder / "model.safetensors")
    return folder


def write_folder(folder: Path, tokenizer: str = '{"version": "1.0"}', **changes: Any) -> Path:
    """Write a model folder as the hub has them: config, weights, tokenizer."""
    folder.mkdir()
    config = make_config(**changes)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(tokenizer)
    save_file(make_weights(config), folder / "model.safetensors")
    return folder


def word_tokenizer(words: Sequence[str], *, mask: bool = False) -> str:
    """Make the tokenizer.json of a vocabulary of whole words, at most 26."""
    vocabulary = {
        word: row for row, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])
    }
    tokenizer = Tokenizer(WordLevel(vocabulary, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    if mask:
        tokenizer.add_special_tokens(["[MASK]"])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    # As published tokenizers do: what the recipe says must win.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    return tokenizer.to_str()


def tiny_cache(cache: Path, words: Sequence[str], **recipe: Any) -> Path:
    """Make a cache of the compiled kernels, and of a tiny model that knows some words."""
    folder = write_folder(cache / "source", word_tokenizer(words))
    export(make_recipe(**recipe), cache, folder=folder)
    link_kernels(cache)
    return cache


def link_kernels(cache: Path) -> None:
    """Let a cache have the compiled kernels of this one: to compile them takes a minute."""
    kernels = cache_root() / "kernels"
    kernels.mkdir(parents=True, exist_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "kernels").symlink_to(kernels)
