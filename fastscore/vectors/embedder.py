"""Texts to vectors: every text alone decides its vector.

Texts of equal token count go through the model together, so nothing is padded or masked. One
model, single-threaded inside, is shared by as many Python threads as asked for (a run releases
the GIL): batches are independent, so threads change neither a result nor its order. The next
window is tokenised while the current one is in the model.
"""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Vectors
from fastscore_models import (
    ExportedModel,
    ModelExportError,
    NotExportedError,
    Recipe,
    check_hashes,
    find_exported,
    is_export_of,
    list_exported,
    list_recipes,
    load_recipe,
)

from fastscore.errors import ModelError, UsageError
from fastscore.paths import cache_root
from fastscore.processors import available_processors
from fastscore.vectors.batches import cut_batches, group_texts, load_tokenizer, run_batches
from fastscore.vectors.precisions import (
    EXACT,
    calls_at_once,
    check_precision,
    graph_sha256,
    load_inference,
)
from fastscore.vectors.runtimes import Inference, Inputs
from fastscore.vectors.text_ids import as_series

if TYPE_CHECKING:
    import polars as pl

    from fastscore.vectors.text_ids import Texts

Progress = Callable[[int, int], None]


class Embedder:
    """An exported model, ready to encode.

    Parameters
    ----------
    recipe
        A model's name, or the path of a recipe file (``.toml``) that was exported.
    precision
        ``"fp32"``: equal to sentence-transformers within 1e-6. ``"bf16"`` and ``"int8"``: faster,
        where the processor can; `accuracy.measure_accuracy` says how near they come.
    threads
        Batches in the model at once; None for one a processor. No vector depends on it.
    cache_dir
        Root of the cache; None for `fastscore.paths.cache_root`.

    Raises
    ------
    ModelError
        If the model is unknown, not exported, or damaged, or the precision cannot run here.
    UsageError
        If `precision` or `threads` cannot be used.
    """

    def __init__(
        self,
        recipe: str = "minilm-l6-v2",
        *,
        precision: str = EXACT,
        threads: int | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        check_precision(precision)
        if threads is not None and threads < 1:
            raise UsageError(f"The number of threads is {threads}: expected at least 1.")
        self.precision = precision
        self.threads = threads or available_processors()
        self._exported = _find(recipe, cache_dir or cache_root())
        self._graph_sha256 = graph_sha256(self._exported, precision)
        self._loaded: tuple[Inference, Any] | None = None
        self._loading = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._exported.recipe.name

    @property
    def recipe(self) -> Recipe:
        """What the model was exported from."""
        return self._exported.recipe

    @property
    def exported(self) -> ExportedModel:
        """The model's files in the cache."""
        return self._exported

    @property
    def dim(self) -> int:
        """Full width of the vectors."""
        return self._exported.dim

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's vector."""
        recipe = self._exported.recipe
        parts = {
            "max_tokens": recipe.max_tokens,
            "normalisation": recipe.normalisation,
            "onnx": self._graph_sha256,
            "pooling": recipe.pooling,
            "precision": self.precision,
            "prefix": recipe.prefix,
            "tokenizer": self._exported.tokenizer_sha256,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def encode(
        self, texts: "Texts", *, dim: int | None = None, progress: Progress | None = None
    ) -> Vectors:
        """Embed texts.

        Parameters
        ----------
        texts
            Strings, a polars Series or an Arrow array, without nulls. Repeats are embedded again.
        dim
            Keep the leading `dim` components and normalise anew; None for all.
        progress
            Called with (texts done, texts in all).

        Returns
        -------
        float32 (n, dim)
            C-contiguous, rows of length 1 in the order of `texts`.

        Raises
        ------
        ModelError
            If the model's files are damaged.
        UsageError
            If `dim` is not within the model's width, or a text is null.
        """
        width = check_dim(dim, self.dim)
        series = as_series(texts)
        if series.null_count():
            raise UsageError(f"{series.null_count()} of the texts are null: expected strings.")
        vectors = np.empty((len(series), width), np.float32)
        run, tokenizer = self._load()
        done = 0
        batches = self._batches(series, tokenizer)
        calls = calls_at_once(self.precision, self.threads)
        with closing(run_batches(run, batches, calls)) as outputs:
            for output, rows in outputs:
                vectors[rows] = truncate(output, width)
                done += len(rows)
                if progress is not None:
                    progress(done, len(series))
        return vectors

    def open_model(self) -> Inference:
        """Return the model itself: token ids of equal count to vectors, from any thread.

        Raises
        ------
        ModelError
            If the model's files are damaged.
        """
        return self._load()[0]

    def _load(self) -> tuple[Inference, Any]:
        """Check the model's files and open them, once for all threads."""
        with self._loading:
            if self._loaded is None:
                exported = self._exported
                try:
                    check_hashes(exported)
                except ModelExportError as error:
                    raise ModelError(error.message, error.hint) from error
                self._loaded = (
                    load_inference(exported, self.precision, self.threads),
                    load_tokenizer(exported.tokenizer_path, exported.recipe.max_tokens),
                )
            return self._loaded

    def _batches(
        self, series: "pl.Series", tokenizer: Any
    ) -> Iterator[tuple[Inputs, npt.NDArray[np.int64]]]:
        """Yield the inputs of texts of equal token count, and the texts' rows."""
        for group in group_texts(series, tokenizer, self._exported.recipe.prefix):
            for batch in cut_batches(*group.ids.shape):
                yield {"input_ids": group.ids[batch]}, group.rows[batch]


def check_dim(dim: int | None, full: int) -> int:
    """Return the width asked for, `full` for None.

    Raises
    ------
    UsageError
        If it is not within 1 and `full`.
    """
    if dim is None:
        return full
    if not 1 <= dim <= full:
        raise UsageError(f"The dimension asked for is {dim}: expected 1 to {full}.")
    return dim


def truncate(vectors: Vectors, dim: int) -> Vectors:
    """Keep leading components and scale rows to length 1 again; a zero row stays zero.

    Parameters
    ----------
    vectors : float32 (n, full)
        Rows of length 1.
    dim
        1 to full; vectors of full width are returned as they are.

    Returns
    -------
    float32 (n, dim)
        C-contiguous.
    """
    if dim == vectors.shape[1]:
        return vectors
    cut = np.ascontiguousarray(vectors[:, :dim])
    lengths = np.sqrt(np.einsum("ij,ij->i", cut, cut, dtype=np.float64))
    lengths[lengths == 0] = 1
    cut /= lengths[:, None].astype(np.float32)
    return cut


def _find(name: str, cache: Path) -> ExportedModel:
    """Find an export, and refuse one that its recipe no longer describes."""
    try:
        described = name.endswith(".toml") or name in list_recipes()
        wanted = load_recipe(name) if described else None
        try:
            exported = find_exported(wanted.name if wanted else name, cache)
        except NotExportedError as error:
            if name not in list_exported(cache):
                load_recipe(name)  # an unknown name has a message of its own
            raise ModelError(error.message, f"Run `fastscore models export {name}`.") from error
    except ModelExportError as error:
        raise ModelError(error.message, error.hint) from error
    if wanted is not None and not is_export_of(exported, wanted):
        raise ModelError(
            f"The model {wanted.name!r} was exported from another recipe than {name} is now.",
            f"Run `fastscore models export {name}`.",
        )
    return exported
