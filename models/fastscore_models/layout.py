"""Models in the folder layout of sentence-transformers: a recipe read from their own files."""

import json
from pathlib import Path
from typing import Any

from fastscore_models.recipe import Recipe, UnsupportedModelError, recipe_from_mapping

MODULES = "modules.json"
STATIC = "static"
_STATIC_TOKENS = 1 << 20
"""Static embeddings have no positions: texts are cut here only."""


def is_layout(folder: Path) -> bool:
    """Return whether a folder has the layout."""
    return (folder / MODULES).is_file()


def read_layout(folder: Path, name: str) -> tuple[Recipe, Path]:
    """Read how a model embeds from its modules.

    Parameters
    ----------
    folder
        A folder with ``modules.json``.
    name
        The name of the recipe.

    Returns
    -------
    tuple
        The recipe, and the folder of weights and tokenizer.

    Raises
    ------
    UnsupportedModelError
        Names the module or the setting that cannot be exported.
    """
    modules = _read(folder / MODULES)
    if not isinstance(modules, list) or not modules:
        raise UnsupportedModelError(f"{folder / MODULES} lists no modules.")
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    places = [folder / str(module.get("path", "")) for module in modules]
    prompts = _read(folder / "config_sentence_transformers.json", {})
    chosen = prompts.get("default_prompt_name")
    recipe: dict[str, Any] = {
        "name": name,
        "prefix": (prompts.get("prompts") or {}).get(chosen, "") if chosen else "",
    }
    rest = kinds[1:]
    if kinds[0] == "Transformer" and rest[:1] == ["Pooling"] and set(rest[1:]) <= {"Normalize"}:
        recipe |= _transformer(places[0], places[1])
    elif kinds[0] == "StaticEmbedding" and set(rest) <= {"Normalize"}:
        recipe |= {"pooling": STATIC, "dims": [_static_width(places[0])]}
        recipe["max_tokens"] = _STATIC_TOKENS
    else:
        raise UnsupportedModelError(
            f"The model in {folder} has the modules {', '.join(kinds)}.",
            "An export takes Transformer, Pooling and Normalize, or StaticEmbedding and Normalize.",
        )
    return recipe_from_mapping(recipe, f"of {folder}"), places[0]


def _transformer(place: Path, pooling_place: Path) -> dict[str, Any]:
    from fastscore_models.bert import max_positions

    config = _read(place / "config.json")
    pooling = _read(pooling_place / "config.json")
    flags = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value]
    modes = flags or [f"pooling_mode_{pooling.get('pooling_mode')}"]
    known = {
        "pooling_mode_cls_token": "cls",
        "pooling_mode_cls": "cls",
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_mean": "mean",
    }
    if len(modes) != 1 or modes[0] not in known:
        raise UnsupportedModelError(
            f"{pooling_place / 'config.json'} pools by {', '.join(modes)}.",
            "An export takes the mean of all tokens, or the first token.",
        )
    limit = _read(place / "sentence_bert_config.json", {}).get("max_seq_length")
    positions = max_positions(config)
    return {
        "pooling": known[modes[0]],
        "dims": [int(config["hidden_size"])],
        "max_tokens": min(int(limit), positions) if limit else positions,
    }


def _static_width(place: Path) -> int:
    from safetensors import safe_open

    with safe_open(place / "model.safetensors", "numpy") as weights:
        return int(weights.get_slice(static_tensor(list(weights.keys()))).get_shape()[1])


def static_tensor(names: list[str]) -> str:
    """Return the name of the table of static embeddings.

    Raises
    ------
    UnsupportedModelError
        There is none.
    """
    for known in ("embedding.weight", "embeddings"):
        if known in names:
            return known
    raise UnsupportedModelError(
        f"The weights have the tensors {', '.join(names)}: expected embedding.weight."
    )


def without_special_tokens(tokenizer: bytes) -> bytes:
    """Return a tokenizer that adds no special tokens, as static embeddings expect."""
    return json.dumps(json.loads(tokenizer) | {"post_processor": None}).encode()


def _read(path: Path, otherwise: Any = None) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if otherwise is not None:
            return otherwise
        raise UnsupportedModelError(f"The file {path} is missing.") from None
    except (OSError, ValueError) as error:
        raise UnsupportedModelError(f"{path} cannot be read: {error}.") from error
