"""Texts to vectors with ONNX Runtime: every text alone decides its vector.

Texts of equal token count go through the model together, so nothing is padded or masked. One
session, single-threaded inside, is shared by as many Python threads as asked for (a run releases
the GIL): batches are independent, so threads change neither a result nor its order. The next
window is tokenised while the current one is in the model.
"""

import hashlib
import json
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
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
from fastscore.vectors.text_ids import as_series

if TYPE_CHECKING:
    import polars as pl

    from fastscore.vectors.text_ids import Texts

PRECISIONS = ("fp32",)
Progress = Callable[[int, int], None]
Vectors = npt.NDArray[np.float32]

# Activations of 512 tokens stay close to the core's cache.
_TOKENS_PER_BATCH = 512
_TEXTS_PER_WINDOW = 8192


class Embedder:
    """An exported model, ready to encode.

    Parameters
    ----------
    recipe
        A model's name, or the path of a recipe file (``.toml``) that was exported.
    precision
        ``"fp32"``: equal to sentence-transformers within 1e-6.
    threads
        Batches in the model at once; None for one a processor. No vector depends on it.
    cache_dir
        Root of the cache; None for `fastscore.paths.cache_root`.

    Raises
    ------
    ModelError
        If the model is unknown, not exported, or damaged.
    UsageError
        If `precision` or `threads` cannot be used.
    """

    def __init__(
        self,
        recipe: str = "minilm-l6-v2",
        *,
        precision: str = "fp32",
        threads: int | None = None,
        cache_dir: Path | None = None,
    ) -> None:
        if precision not in PRECISIONS:
            raise UsageError(
                f"Unknown precision {precision!r}: expected one of {', '.join(PRECISIONS)}."
            )
        if threads is not None and threads < 1:
            raise UsageError(f"The number of threads is {threads}: expected at least 1.")
        self.precision = precision
        self._threads = threads or _processors()
        self._exported = _find(recipe, cache_dir or cache_root())
        self._loaded: tuple[Any, Any] | None = None
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
            "onnx": self._exported.onnx_sha256,
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
        session, tokenizer = self._load()
        done = 0
        with ThreadPoolExecutor(self._threads, thread_name_prefix="fastscore-embed") as pool:
            running: deque[tuple[Future[Vectors], npt.NDArray[np.int64]]] = deque()
            for batch, rows in self._batches(series, tokenizer):
                running.append((pool.submit(_run, session, batch), rows))
                # Enough in flight to keep threads busy while the next window is tokenised.
                while len(running) > 4 * self._threads:
                    done += _collect(running, vectors)
                    if progress is not None:
                        progress(done, len(series))
            while running:
                done += _collect(running, vectors)
                if progress is not None:
                    progress(done, len(series))
        return vectors

    def _load(self) -> tuple[Any, Any]:
        """Check the model's files and open them, once for all threads."""
        with self._loading:
            if self._loaded is None:
                try:
                    check_hashes(self._exported)
                except ModelExportError as error:
                    raise ModelError(error.message, error.hint) from error
                self._loaded = _session(self._exported), _tokenizer(self._exported)
            return self._loaded

    def _batches(
        self, series: "pl.Series", tokenizer: Any
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield token ids (batch, tokens) of texts of equal token count, and their rows."""
        prefix = self._exported.recipe.prefix
        for start in range(0, len(series), _TEXTS_PER_WINDOW):
            texts = series.slice(start, _TEXTS_PER_WINDOW).to_list()
            if prefix:
                texts = [prefix + text for text in texts]
            tokens = [encoding.ids for encoding in tokenizer.encode_batch_fast(texts)]
            lengths = np.fromiter(map(len, tokens), np.int64, len(tokens))
            order = np.argsort(lengths, kind="stable")
            cuts = np.flatnonzero(np.diff(lengths[order])) + 1
            for group in np.split(order, cuts):
                length = int(lengths[group[0]])
                size = max(1, _TOKENS_PER_BATCH // length)
                for at in range(0, len(group), size):
                    rows = group[at : at + size]
                    yield np.array([tokens[row] for row in rows], np.int64), start + rows


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


def _processors() -> int:
    """Return how many processors we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run(session: Any, batch: npt.NDArray[np.int64]) -> Vectors:
    vectors: Vectors = session.run(None, {"input_ids": batch})[0]
    return vectors


def _collect(
    running: "deque[tuple[Future[Vectors], npt.NDArray[np.int64]]]", vectors: Vectors
) -> int:
    """Put the oldest batch's vectors into their rows; return how many."""
    future, rows = running.popleft()
    vectors[rows] = truncate(future.result(), vectors.shape[1])
    return len(rows)


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


def _session(exported: ExportedModel) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # Shapes vary from batch to batch; a remembered pattern for each would only cost memory.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(exported.onnx_path),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],
        )
    except Exception as error:  # the runtime has a class of its own for each way to fail
        raise ModelError(f"ONNX Runtime cannot load {exported.onnx_path}: {error}") from error


def _tokenizer(exported: ExportedModel) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(exported.tokenizer_path))
    except Exception as error:  # tokenizers raises bare Exception
        raise ModelError(f"{exported.tokenizer_path} cannot be read: {error}") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(exported.recipe.max_tokens)
    return tokenizer
