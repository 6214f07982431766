"""Masked language models in the cache: building and finding them.

They are in ``<cache>/masked-models/<name>/``, with the same three files as an embedding model.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from fastscore_models.export import (
    ModelFiles,
    build_and_publish,
    published,
    read_manifest,
    read_source,
    source_hashes,
    write_files,
)
from fastscore_models.recipe import (
    ModelExportError,
    NotExportedError,
    UnsupportedModelError,
    max_positions,
)

FILL_MASK_EXPORTER_VERSION = 1

_MASK_TOKENS = ("[MASK]", "<mask>")


@dataclass(frozen=True, slots=True)
class MaskedModel(ModelFiles):
    """A masked language model in the cache."""

    name: str  # also that of its folder
    mask_id: int  # token id of the mask
    max_tokens: int  # longer texts are truncated, special tokens included

    @property
    def export_arguments(self) -> str:
        """A folder, the model's name and its task."""
        return f"FOLDER --name {self.name} --task fill-mask"


def masked_models_folder(cache_dir: Path) -> Path:
    """Return the folder of all exported masked language models."""
    return cache_dir / "masked-models"


def export_masked(name: str, cache_dir: Path, folder: Path) -> MaskedModel:
    """Build a masked language model's ONNX file into the cache."""
    if not name or name.startswith(".") or "/" in name or "\\" in name:
        raise ModelExportError(f"The model's name is {name!r}: expected a folder name.")
    build_and_publish(masked_models_folder(cache_dir), name, lambda _, built: _build(folder, built))
    return find_masked(name, cache_dir)


def find_masked(name: str, cache_dir: Path) -> MaskedModel:
    """Find an exported masked language model, without reading its weights."""
    folder = masked_models_folder(cache_dir) / name
    path = folder / "manifest.json"
    hint = f"Run `fastscore models export FOLDER --name {name} --task fill-mask`."
    listed = f" Exported: {', '.join(known)}." if (known := list_masked(cache_dir)) else ""
    missing = f"The masked language model {name!r} has not been exported to {folder.parent}."
    manifest = read_manifest(path, missing + listed, hint)
    try:
        version = manifest["exporter"]
        model = MaskedModel(
            name=name,
            folder=folder,
            onnx_sha256=str(manifest["onnx_sha256"]),
            tokenizer_sha256=str(manifest["tokenizer_sha256"]),
            mask_id=int(manifest["mask_id"]),
            max_tokens=int(manifest["max_tokens"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ModelExportError(f"The manifest {path} is damaged: {error!r}.", hint) from error
    if version != FILL_MASK_EXPORTER_VERSION:
        raise NotExportedError(
            f"The masked language model {name!r} was made by version {version} of the exporter: "
            f"expected {FILL_MASK_EXPORTER_VERSION}.",
            hint,
        )
    return model


def list_masked(cache_dir: Path) -> list[str]:
    """Return the names of the masked language models in the cache, sorted."""
    return published(masked_models_folder(cache_dir))


def _build(source: Path, built: Path) -> None:
    from fastscore_models.bert import build_masked

    hashes = source_hashes(source, {})
    config, weights = read_source(source)
    model = build_masked(weights, config)
    tokenizer = (source / "tokenizer.json").read_bytes()
    about = {
        "exporter": FILL_MASK_EXPORTER_VERSION,
        "task": "fill-mask",
        "source_sha256": hashes,
        "mask_id": _mask_id(tokenizer, source / "tokenizer.json"),
        "max_tokens": max_positions(config),
    }
    write_files(built, model.SerializeToString(deterministic=True), tokenizer, about)


def _mask_id(tokenizer: bytes, path: Path) -> int:
    """Return the id of the mask among a tokenizer's added tokens."""
    try:
        added = json.loads(tokenizer).get("added_tokens") or []
        ids = [int(token["id"]) for token in added if token["content"] in _MASK_TOKENS]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnsupportedModelError(f"{path} cannot be read: {error!r}.") from error
    if not ids:
        raise UnsupportedModelError(
            f"{path} has no mask token: expected {' or '.join(_MASK_TOKENS)} in added_tokens."
        )
    return ids[0]
