"""Exported models in the cache: downloading weights, building, finding and verifying models.

An export is a folder ``<cache>/models/<name>/`` of three files, ``model.onnx``, ``tokenizer.json``
and ``manifest.json``. It is built in a temporary folder beside it and renamed, after an older
export was renamed away. So readers see a complete model or none, and concurrent exports do not
conflict.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from fastscore_jit.system import sync_file, sync_folder

from fastscore_models.fetching import Tell, fetch, fetch_hub, report_nothing
from fastscore_models.recipe import (
    EXPORTER_VERSION,
    MODEL_FILES,
    STATIC,
    HashMismatchError,
    ModelExportError,
    NotExportedError,
    Recipe,
    RecipeError,
    UnsupportedModelError,
    is_layout,
    list_recipes,
    load_recipe,
    max_positions,
    read_layout,
    recipe_from_mapping,
    recipe_to_mapping,
    static_tensor,
    without_special_tokens,
)

_ABANDONED_AFTER = 3600.0
_NAMED_WORK_FOLDER = re.compile(r"\..+\.[0-9]+\.[a-z0-9_]+")


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def expect_hash(path: Path, found: str, expected: str) -> None:
    """Compare a digest with the expected one."""
    if found != expected:
        raise HashMismatchError(
            f"{path} has SHA-256 {found}: expected {expected}.",
            "The file is damaged or another version; remove it and export again.",
        )


def published(parent: Path) -> list[str]:
    """Return the names of the models in a folder, sorted."""
    found = parent.glob("*/manifest.json")
    return sorted(path.parent.name for path in found if not path.parent.name.startswith("."))


def read_manifest(path: Path, missing: str, hint: str) -> dict[str, Any]:
    """Read the manifest of a published model."""
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise NotExportedError(missing, hint) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelExportError(f"The manifest {path} cannot be read: {error}.", hint) from error
    return manifest


def build_and_publish(parent: Path, name: str, build: Callable[[Path, Path], None]) -> None:
    """Build a model's files in a temporary folder and rename it to its final place."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(parent)
        begun = f".{name}.{os.getpid()}."
        with tempfile.TemporaryDirectory(
            prefix=begun, dir=parent, ignore_cleanup_errors=True
        ) as work:
            built = Path(work, "export")
            built.mkdir()
            build(Path(work), built)
            _publish(built, parent / name)
    except OSError as error:
        raise ModelExportError(
            f"The model {name!r} could not be written below {parent}: {error.strerror}.",
            "Free space there or name another cache folder.",
        ) from error


def _remove_abandoned(parent: Path) -> None:
    """Remove temporary folders of killed exports: those without changes for an hour."""
    oldest = time.time() - _ABANDONED_AFTER
    for work in parent.iterdir():
        if not _NAMED_WORK_FOLDER.fullmatch(work.name):
            continue
        # Another exporter may be at work in it, or cleaning as well.
        with contextlib.suppress(FileNotFoundError):
            if max(path.stat().st_mtime for path in (work, *work.rglob("*"))) < oldest:
                shutil.rmtree(work, ignore_errors=True)


def write_files(folder: Path, onnx: bytes, tokenizer: bytes, about: Mapping[str, Any]) -> None:
    """Write a model's three files, flushed to disk; the manifest also has the others' digests."""
    digests = {
        "onnx_sha256": hashlib.sha256(onnx).hexdigest(),
        "tokenizer_sha256": hashlib.sha256(tokenizer).hexdigest(),
    }
    manifest = json.dumps({**about, **digests}, indent=2, sort_keys=True, ensure_ascii=False)
    files = {
        "model.onnx": onnx,
        "tokenizer.json": tokenizer,
        "manifest.json": f"{manifest}\n".encode(),
    }
    for name, content in files.items():
        with (folder / name).open("wb") as file:
            file.write(content)
            file.flush()
            sync_file(file.fileno())


def _publish(built: Path, target: Path) -> None:
    """Rename a built export to its final place, after renaming an older one away."""
    while True:
        try:
            os.rename(built, target)
            break
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        retired = built.parent / f"retired.{os.urandom(4).hex()}"
        # Another exporter may have moved it already.
        with contextlib.suppress(FileNotFoundError):
            os.rename(target, retired)
    sync_folder(target.parent)


MANIFEST_FORMAT = 1
_STATIC_FILES = ("model.safetensors", "tokenizer.json")

_DECIDING = ("pooling", "normalisation", "prefix", "dims", "max_tokens")
_ATTEMPTS = 100
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of a model in the cache."""

    folder: Path
    # digests of `model.onnx` and `tokenizer.json` when they were written
    onnx_sha256: str
    tokenizer_sha256: str

    @property
    def export_arguments(self) -> str:
        """The arguments of `fastscore models export` that write them."""
        raise NotImplementedError

    @property
    def onnx_path(self) -> Path:
        """The ONNX file."""
        return self.folder / "model.onnx"

    @property
    def tokenizer_path(self) -> Path:
        """The tokenizer, as published by the model's authors."""
        return self.folder / "tokenizer.json"

    def check_hashes(self) -> None:
        """Read the files and compare their SHA-256 with the manifest."""
        known = (
            (self.onnx_path, self.onnx_sha256),
            (self.tokenizer_path, self.tokenizer_sha256),
        )
        for path, expected in known:
            if not path.is_file():
                raise HashMismatchError(
                    f"The exported model lacks {path}.",
                    f"Run `fastscore models export {self.export_arguments}`.",
                )
            expect_hash(path, file_sha256(path), expected)


@dataclass(frozen=True, slots=True)
class ExportedModel(ModelFiles):
    """An embedding model in the cache."""

    recipe: Recipe
    dim: int
    source_sha256: tuple[tuple[str, str], ...]  # digests of its source files, by name

    @property
    def export_arguments(self) -> str:
        """The model's name."""
        return self.recipe.name


def models_folder(cache_dir: Path) -> Path:
    """Return the folder of all exported models."""
    return cache_dir / "models"


def export(
    recipe: Recipe,
    cache_dir: Path,
    *,
    folder: Path | None = None,
    download: Callable[[Recipe, Path], Path] = fetch,
) -> ExportedModel:
    """Build a model's ONNX file in the cache, after downloading its weights if necessary.

    An intact export of the same recipe and exporter version is reused, unless `folder` is given.
    Leftovers of exports killed more than an hour ago are removed.
    """
    if recipe.name in list_recipes() and recipe != load_recipe(recipe.name):
        raise RecipeError(
            f"The recipe {recipe.name!r} has the name of a model that ships with fastscore, "
            "but is another recipe.",
            "Give it a name of its own.",
        )
    if folder is None:
        with contextlib.suppress(ModelExportError):
            existing = find_exported(recipe.name, cache_dir)
            if existing.recipe == recipe:
                existing.check_hashes()
                return existing

    def build(work: Path, built: Path) -> None:
        _build(recipe, download(recipe, work) if folder is None else folder, built)

    build_and_publish(models_folder(cache_dir), recipe.name, build)
    return _find_published(recipe.name, cache_dir)


def export_layout(
    model: str, cache_dir: Path, *, name: str | None = None, tell: Tell = report_nothing
) -> ExportedModel:
    """Export a model in the layout of sentence-transformers: a folder, or a model of the hub.

    Pooling, prefix, dimension and maximum number of tokens are read from its own files.
    """
    called = name or model.rstrip("/").rpartition("/")[2].lower()
    if Path(model).is_dir() and not is_layout(Path(model)):
        raise UnsupportedModelError(
            f"The folder {model} has no modules.json.",
            "Write a recipe (.toml) for it into a folder, and name that as folder.",
        )
    with tempfile.TemporaryDirectory(prefix="fastscore-") as work:
        folder = Path(model) if is_layout(Path(model)) else fetch_hub(model, Path(work), tell=tell)
        recipe, weights = read_layout(folder, called)
        return export(recipe, cache_dir, folder=weights)


def _find_published(name: str, cache_dir: Path) -> ExportedModel:
    """Find an export just published, which another exporter may be replacing."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(NotExportedError):
            return find_exported(name, cache_dir)
        time.sleep(_PAUSE_SECONDS)
    return find_exported(name, cache_dir)


def find_exported(name: str, cache_dir: Path) -> ExportedModel:
    """Find an exported model by its recipe's name, without reading its weights."""
    folder = models_folder(cache_dir) / name
    path = folder / "manifest.json"
    hint = f"Run `fastscore models export {name}`."
    missing = f"The model {name!r} has not been exported to {folder.parent}."
    manifest = read_manifest(path, missing, hint)
    try:
        if manifest["format"] != MANIFEST_FORMAT:
            raise ModelExportError(f"The manifest {path} has another format.", hint)
        if manifest["exporter"] != EXPORTER_VERSION:
            raise NotExportedError(
                f"The model {name!r} in {folder.parent} was made by version "
                f"{manifest['exporter']} of the exporter: expected {EXPORTER_VERSION}.",
                hint,
            )
        return _from_manifest(manifest, folder)
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelExportError(f"The manifest {path} is damaged: {error!r}.", hint) from error


def list_exported(cache_dir: Path) -> list[str]:
    """Return the names of the models in the cache, sorted."""
    return published(models_folder(cache_dir))


def is_export_of(exported: ExportedModel, recipe: Recipe) -> bool:
    """Return whether an export gives the vectors that a recipe describes.

    All settings that affect vectors are compared: pooling, normalisation, prefix, dimensions,
    tokens, and the digest of each source file in the recipe.
    """
    found = dict(exported.source_sha256)
    return all(
        getattr(exported.recipe, field) == getattr(recipe, field) for field in _DECIDING
    ) and all(found.get(name) == digest for name, digest in recipe.digests.items())


def _build(recipe: Recipe, source: Path, built: Path) -> None:
    from fastscore_models.bert import build_static

    is_static = recipe.pooling == STATIC
    hashes = source_hashes(source, recipe.digests, _STATIC_FILES if is_static else MODEL_FILES)
    tokenizer = (source / "tokenizer.json").read_bytes()
    if is_static:
        weights = _read_weights(source)
        model = build_static(weights[static_tensor(list(weights))])
        tokenizer = without_special_tokens(tokenizer)
    else:
        model = _encoder_graph(recipe, source)
    about = {
        "format": MANIFEST_FORMAT,
        "exporter": EXPORTER_VERSION,
        "recipe": recipe_to_mapping(recipe),
        "source_sha256": hashes,
        "dim": recipe.dim,
    }
    write_files(built, model.SerializeToString(deterministic=True), tokenizer, about)


def _encoder_graph(recipe: Recipe, source: Path) -> Any:
    from fastscore_models.bert import build_encoder

    config, weights = read_source(source)
    model = build_encoder(weights, config, pooling=recipe.pooling)
    if config["hidden_size"] != recipe.dim:
        raise RecipeError(
            f"The recipe {recipe.name!r} says {recipe.dim} dimensions: "
            f"the model in {source} has {config['hidden_size']}."
        )
    if recipe.max_tokens > max_positions(config):
        raise RecipeError(
            f"The recipe {recipe.name!r} allows {recipe.max_tokens} tokens: "
            f"the model in {source} has {max_positions(config)} positions."
        )
    return model


def read_source(source: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a model folder's ``config.json`` and the tensors of its weights."""
    try:
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    except (ValueError, TypeError, RecursionError) as error:
        raise UnsupportedModelError(f"The model in {source} cannot be read: {error}.") from error
    if not isinstance(config, dict):
        place = source / "config.json"
        raise UnsupportedModelError(f"{place} holds {config!r:.60}, expected an object.")
    return config, _read_weights(source)


def _read_weights(source: Path) -> dict[str, Any]:
    from safetensors.numpy import load_file

    try:
        return load_file(source / "model.safetensors")
    except (ValueError, TypeError, RecursionError) as error:
        raise UnsupportedModelError(f"The model in {source} cannot be read: {error}.") from error
    except Exception as error:  # safetensors raises its own class for a broken file
        raise UnsupportedModelError(f"The weights in {source} are damaged: {error}.") from error


def source_hashes(
    source: Path, expected: Mapping[str, str], names: Sequence[str] = MODEL_FILES
) -> dict[str, str]:
    """Hash a model's files and compare them with the known digests."""
    hashes = {}
    for name in names:
        path = source / name
        if not path.is_file():
            raise ModelExportError(
                f"The folder {source} has no {name}.",
                f"Expected {', '.join(names)} in it.",
            )
        hashes[name] = file_sha256(path)
        if name in expected:
            expect_hash(path, hashes[name], expected[name])
    return hashes


def _from_manifest(manifest: Mapping[str, Any], folder: Path) -> ExportedModel:
    recipe = recipe_from_mapping(manifest["recipe"], f"in {folder / 'manifest.json'}")
    if manifest["dim"] != recipe.dim:
        raise ModelExportError(
            f"The manifest {folder / 'manifest.json'} states dim {manifest['dim']!r}, its recipe "
            f"{recipe.dim}.",
            f"Run `fastscore models export {recipe.name}`.",
        )
    return ExportedModel(
        recipe=recipe,
        folder=folder,
        onnx_sha256=manifest["onnx_sha256"],
        tokenizer_sha256=manifest["tokenizer_sha256"],
        dim=recipe.dim,
        source_sha256=tuple(sorted(manifest["source_sha256"].items())),
    )


TOLERANCE = 1e-5
_UNCHECKED_IDS = (1, 2, 3, 4)


def verify(exported: ExportedModel) -> float:
    """Check hashes and run a test sentence through the graph.

    ONNX's reference evaluator computes the vector, without code of the scoring runtime. Without a
    known vector in the recipe, the vector must be finite and have length 1.
    """
    import onnx
    from onnx.reference import ReferenceEvaluator

    exported.check_hashes()
    check = exported.recipe.check
    ids = np.array([check.ids if check else _UNCHECKED_IDS], np.int64)
    evaluator = ReferenceEvaluator(onnx.load(exported.onnx_path))
    (vectors,) = cast("list[npt.NDArray[np.float32]]", evaluator.run(None, {"input_ids": ids}))
    vector = vectors[0].astype(np.float64)
    difference = abs(float(np.linalg.norm(vector)) - 1)
    if check:
        known = np.array(check.components)
        difference = max(difference, float(np.abs(vector[: len(known)] - known).max()))
    if not difference <= TOLERANCE:
        raise ModelExportError(
            f"The model {exported.recipe.name!r} gives the test sentence a vector that is off by "
            f"{difference:.2g}: expected at most {TOLERANCE:g}.",
            f"Run `fastscore models export {exported.recipe.name}`.",
        )
    return difference
