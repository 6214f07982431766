"""Exported models, and the stores of vectors that they filled."""

import contextlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fastscore_models.export import (
    ExportedModel,
    MaskedModel,
    export,
    export_layout,
    export_masked,
    fetch,
    find_exported,
    find_masked,
    is_export_of,
    list_exported,
    list_masked,
    verify,
)
from fastscore_models.recipe import (
    MODEL_FILES,
    ModelExportError,
    NotExportedError,
    Recipe,
    list_recipes,
    load_recipe,
)

from fastscore.errors import ModelError, StoreError, UsageError
from fastscore.files import cache_root
from fastscore.settings.extras import require
from fastscore.vectors.accuracy import (
    BATCH_DEPENDENCE_LIMIT,
    REFERENCE_LIMIT,
    Accuracy,
    list_accuracies,
    measure_accuracy,
    reference_difference,
    reference_texts,
    save_accuracy,
)
from fastscore.vectors.embedder import (
    Embedder,
    TokenCounter,
    WindowEmbedder,
    export_errors_explained,
)
from fastscore.vectors.perplexity import PerplexityModel
from fastscore.vectors.precisions import CPU, CUDA, EXACT, PRECISIONS, DeviceName, Precision
from fastscore.vectors.store import STORE_FILE, VectorStore


@dataclass(frozen=True, slots=True)
class ModelListing:
    """A model: its recipe, and its export where there is one."""

    name: str  # the model's name
    state: str  # `"exported"`, `"not exported"`, or `"damaged"`: its manifest cannot be used
    # the recipe; None where only a damaged export, or one of another version, is known
    recipe: Recipe | None
    exported: ExportedModel | None  # its export in the cache, or None

    @property
    def accuracies(self) -> list[Accuracy]:
        """What `verify_model` has measured, precision by precision."""
        return [] if self.exported is None else list_accuracies(self.exported.folder)

    @property
    def line(self) -> str:
        """The listing as one line of text."""
        dims = pooling = licence = "?"
        if self.recipe is not None:
            dims = "/".join(map(str, self.recipe.dims))
            pooling, licence = self.recipe.pooling, self.recipe.licence
        digest = f" ({self.exported.onnx_sha256[:8]})" if self.exported is not None else ""
        return f"{self.name:<40} {dims:<16} {pooling:<5} {licence:<12} {self.state}{digest}"


def list_models() -> list[ModelListing]:
    """List the recipes that ship with the package and the exports of others in the cache."""
    cache = cache_root()
    with export_errors_explained():
        shipped = {name: load_recipe(name) for name in list_recipes()}
    others = [name for name in list_exported(cache) if name not in shipped]
    return [_listing(name, shipped.get(name), cache) for name in (*shipped, *others)]


def _listing(name: str, recipe: Recipe | None, cache: Path) -> ModelListing:
    """List one model; a shipped recipe counts as exported only as it is now."""
    try:
        exported = find_exported(name, cache)
    except NotExportedError:
        return ModelListing(name, "not exported", recipe, None)
    except ModelExportError:
        return ModelListing(name, "damaged", recipe, None)
    if recipe is not None and not is_export_of(exported, recipe):
        return ModelListing(name, "not exported", recipe, None)
    return ModelListing(name, "exported", recipe or exported.recipe, exported)


def export_model(
    name: str,
    folder: Path | None,
    *,
    alias: str | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> ExportedModel:
    """Export a model into the cache, from a folder or from where its recipe says."""
    require("embed", "Exporting a model")
    with export_errors_explained():
        has_recipe = name.endswith(".toml") or name in list_recipes()
        if not has_recipe and folder is None and (Path(name).is_dir() or "/" in name):
            return export_layout(name, cache_root(), name=alias, tell=tell)
        if alias is not None:
            raise UsageError("name is for models without a recipe, which names its model itself.")
        recipe = load_recipe(name)
        unchecked = [file for file in MODEL_FILES if file not in recipe.digests]
        if folder is not None and unchecked:
            tell(
                f"The recipe of {recipe.name} pins no SHA-256 of {', '.join(unchecked)}. The files "
                f"in {folder} are taken as they are."
            )
        download = partial(fetch, tell=tell)
        return export(recipe, cache_root(), folder=folder, download=download)


def export_masked_model(folder: Path, name: str | None = None) -> MaskedModel:
    """Export a masked language model from its folder into the cache."""
    if not folder.is_dir():
        raise UsageError(
            f"There is no folder {folder}: a masked language model is exported from the folder of "
            "its config.json, model.safetensors and tokenizer.json."
        )
    require("embed", "Exporting a model")
    label = folder.resolve().name if name is None else name
    with export_errors_explained():
        return export_masked(label, cache_root(), folder)


def list_masked_models() -> list[str]:
    """List the masked language models in the cache, a line each."""
    lines = []
    cache = cache_root()
    for name in list_masked(cache):
        try:
            found = find_masked(name, cache)
            state = f"exported ({found.onnx_sha256[:8]})"
        except NotExportedError:
            state = "not exported"
        except ModelExportError:
            state = "damaged"
        lines.append(f"{name:<40} {'fill-mask':<35} {state}")
    return lines


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify_model` found."""

    exported: ExportedModel  # the model; its files are intact
    test_difference: float  # how far its vector for the recipe's test sentence is off
    # the largest difference from sentence-transformers over the reference texts, in fp32; None
    # where there are no reference vectors of the model
    reference_difference: float | None
    accuracies: tuple[Accuracy, ...]  # what was measured, by precision
    refused: Mapping[str, str]  # why the other precisions cannot run here


def verify_model(
    name: str,
    *,
    precision: Precision | None = None,
    device: DeviceName = CPU,
    texts: Sequence[str] | None = None,
) -> Verification:
    """Check an exported model and measure how near each precision comes to fp32.

    What was measured is kept beside the model, where `list_models` and every run find it.
    """
    sample = _sample(texts)
    exact = Embedder(name)
    with export_errors_explained():
        difference = verify(exact.exported)
    off = reference_difference(exact)
    if off is not None and off > REFERENCE_LIMIT:
        raise ModelError(
            f"The fp32 vectors of {exact.name} differ from sentence-transformers' by {off:.1e}: "
            f"expected at most {REFERENCE_LIMIT:g}."
        )
    expected = exact.encode(sample)
    accuracies, refused = [], dict[str, str]()
    every = PRECISIONS if device == CPU else (EXACT,)
    for wanted in every if precision is None else (precision,):
        try:
            embedder = Embedder(name, precision=wanted, device=device)
            accuracy = measure_accuracy(embedder, sample, expected)
        except ModelError as error:
            if precision is not None or device != CPU:
                raise
            refused[wanted] = str(error)
            continue
        _check_dependence(f"Vectors of {embedder.name} in {wanted}", accuracy.batch_dependence)
        save_accuracy(embedder, accuracy)
        accuracies.append(accuracy)
    return Verification(exact.exported, difference, off, tuple(accuracies), refused)


def _sample(texts: Sequence[str] | None) -> list[str]:
    """Return the texts to measure on, None for those that come with the package."""
    sample = reference_texts() if texts is None else list(texts)
    if len(sample) < 2:
        raise UsageError(f"There are {len(sample)} texts to measure on: expected at least 2.")
    return sample


def _check_dependence(what: str, change: float) -> None:
    if not change <= BATCH_DEPENDENCE_LIMIT:
        raise ModelError(
            f"{what} change by {change:.1e} with the texts that they are computed with: expected "
            f"at most {BATCH_DEPENDENCE_LIMIT:g}."
        )


def open_store(
    name: str, root: Path | None, precision: Precision = EXACT, device: DeviceName = CPU
) -> VectorStore:
    """Open the store of an exported model's vectors of a precision and device."""
    embedder = Embedder(name, precision=precision, device=device)
    return VectorStore.open(embedder.fingerprint, embedder.dim, root=root)


@dataclass(frozen=True, slots=True)
class StoreListing:
    """A store in the folder of stores."""

    folder: Path  # where it lies
    # the exported model whose vectors it has; None if no exported model computes them
    model: str | None
    precision: str | None
    # what it holds
    vectors: int
    segments: int
    bytes: int


def list_stores(root: Path | None) -> list[StoreListing]:
    """List the stores in a folder, the largest first."""
    folder = root or cache_root() / "vectors"
    known = _fingerprints()
    found = []
    for description in sorted(folder.glob(f"*/{STORE_FILE}")):
        with contextlib.suppress(StoreError, OSError, ValueError, KeyError):
            about = json.loads(description.read_text(encoding="utf-8"))
            store = VectorStore.open(about["fingerprint"], about["dim"], root=folder)
            model, precision = known.get(about["fingerprint"], (None, None))
            stats = store.stats()
            sizes = stats.vectors, stats.segments, stats.bytes
            found.append(StoreListing(store.folder, model, precision, *sizes))
    return sorted(found, key=lambda each: -each.bytes)


def prune_stores(root: Path | None, *, dry_run: bool) -> list[StoreListing]:
    """Remove the stores whose vectors no exported model computes; return them."""
    unused = [each for each in list_stores(root) if each.model is None]
    for each in unused if not dry_run else ():
        shutil.rmtree(each.folder)
    return unused


def _fingerprints() -> dict[str, tuple[str, str]]:
    """Return the model and precision of each fingerprint that can be computed here."""
    found = {}
    for listing in list_models():
        ways = [(EXACT, CUDA), *((precision, CPU) for precision in PRECISIONS)]
        for precision, device in ways if listing.exported is not None else ():
            with contextlib.suppress(ModelError):
                embedder = Embedder(listing.name, precision=precision, device=device)
                label = precision if device == CPU else f"{precision} {device}"
                for each in (embedder, WindowEmbedder(embedder), TokenCounter(embedder)):
                    found[each.fingerprint] = (listing.name, label)
    for name in list_masked(cache_root()):
        with contextlib.suppress(ModelError):
            found[PerplexityModel(name).fingerprint] = (name, EXACT)
    return found
