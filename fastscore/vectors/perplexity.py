"""Pseudo-perplexity of texts under a masked language model (Salazar et al. 2020).

Each token that the tokenizer did not add is masked in turn:
``ln PPPL(t) = -(1/N) sum_i ln p(t_i | t with t_i masked)``. What a `VectorStore` keeps of a text is
this logarithm, as a vector of width 1.
"""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Vectors
from fastscore_models.export import MaskedModel, find_masked

from fastscore.files import cache_root
from fastscore.settings.extras import require
from fastscore.settings.options import available_processors
from fastscore.vectors.embedder import (
    TextGroup,
    cut_batches,
    export_errors_explained,
    group_texts,
    load_tokenizer,
)
from fastscore.vectors.precisions import Inference, Inputs, run_batches, run_in_onnxruntime
from fastscore.vectors.view import Progress, without_nulls

if TYPE_CHECKING:
    from fastscore.vectors.view import Texts

Rows = npt.NDArray[np.int64]


class PerplexityModel:
    """An exported masked language model, ready to judge texts.

    ``threads`` batches are in the model at once; no result depends on it.
    """

    dim = 1

    def __init__(
        self, name: str, *, threads: int | None = None, cache_dir: Path | None = None
    ) -> None:
        require("embed", "Pseudo-perplexity")
        with export_errors_explained():
            self._model: MaskedModel = find_masked(name, cache_dir or cache_root())
        self._threads = threads or available_processors()
        self._loaded: tuple[Inference, Any] | None = None
        self._loading = threading.Lock()

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def onnx_sha256(self) -> str:
        """SHA-256 (hexadecimal) of its graph."""
        return self._model.onnx_sha256

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's perplexity."""
        parts = {
            "mask_id": self._model.mask_id,
            "max_tokens": self._model.max_tokens,
            "onnx": self._model.onnx_sha256,
            "quantity": "ln pseudo-perplexity",
            "tokenizer": self._model.tokenizer_sha256,
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def encode(self, texts: "Texts", *, progress: Progress | None = None) -> Vectors:
        """Compute the logarithm of each text's pseudo-perplexity."""
        series = without_nulls(texts)
        run, tokenizer = self._load()
        sums = np.zeros(len(series))
        counts = np.zeros(len(series), np.int64)
        batches = (
            batch
            for group in group_texts(series, tokenizer)
            for batch in _masked_batches(group, self._model.mask_id)
        )
        with closing(run_batches(run, batches, self._threads)) as outputs:
            for log_probability, rows in outputs:
                # in the order of the tokens, however they were cut into batches
                np.add.at(sums, rows, log_probability.astype(np.float64))
                np.add.at(counts, rows, 1)
                if progress is not None:
                    progress(int(np.count_nonzero(counts)), len(series))
        with np.errstate(invalid="ignore"):
            return (-sums / counts).astype(np.float32)[:, None]

    def _load(self) -> tuple[Inference, Any]:
        """Check the model's files and open them, once for all threads."""
        with self._loading:
            if self._loaded is None:
                with export_errors_explained():
                    self._model.check_hashes()
                self._loaded = (
                    run_in_onnxruntime(self._model.onnx_path),
                    load_tokenizer(self._model.tokenizer_path, self._model.max_tokens),
                )
            return self._loaded


def _masked_batches(group: TextGroup, mask_id: int) -> Iterator[tuple[Inputs, Rows]]:
    """Yield texts of one token count with one token masked each, text by text, left to right."""
    special = np.array([encoding.special_tokens_mask for encoding in group.encodings], bool)
    text, place = np.nonzero(~special)
    for batch in cut_batches(len(text), group.ids.shape[1]):
        some, masked = text[batch], place[batch]
        ids = group.ids[some]
        every = np.arange(len(some))
        target = ids[every, masked]
        ids[every, masked] = mask_id
        yield {"input_ids": ids, "masked": masked, "target": target}, group.rows[some]
