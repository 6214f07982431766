"""Texts longer than the model takes: read whole in windows, or counted where they are cut.

A window is a run of as many of the text's tokens as the model takes; windows do not overlap, and
every token lies in one. What a `VectorStore` keeps of a text is the sum of its windows' vectors,
each times its tokens, so that texts can be joined: the direction of the sum of two is that of the
mean by tokens over the windows of both. Each text alone decides its sum.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Vectors

from fastscore.errors import UsageError
from fastscore.vectors.embedder import (
    Embedder,
    Progress,
    cut_batches,
    group_texts,
    load_tokenizer,
    run_batches,
)
from fastscore.vectors.precisions import calls_at_once
from fastscore.vectors.runtimes import Inputs
from fastscore.vectors.text_ids import as_series

if TYPE_CHECKING:
    import polars as pl

    from fastscore.vectors.text_ids import Texts

_Tag = tuple[npt.NDArray[np.int64], int]
_TEXTS_PER_COUNT = 8192


class WindowEmbedder:
    """An embedder that reads texts of any length, window by window.

    Parameters
    ----------
    embedder
        What embeds each window.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    @property
    def dim(self) -> int:
        """Full width of the vectors."""
        return self._embedder.dim

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's sum."""
        return _fingerprint("sum over windows, times tokens", self._embedder.fingerprint)

    def encode(self, texts: "Texts", *, progress: Progress | None = None) -> Vectors:
        """Sum the vectors of each text's windows, each times its tokens.

        Parameters
        ----------
        texts
            Strings, a polars Series or an Arrow array, without nulls.
        progress
            Called with (texts begun, texts in all).

        Returns
        -------
        float32 (n, dim)
            Of a text that the model takes whole, its vector times its tokens; special tokens do not
            count, and a text without any counts as one.
        """
        series = _whole_texts(texts)
        run = self._embedder.open_model()
        sums = np.zeros((len(series), self.dim))
        begun = np.zeros(len(series), np.bool_)
        calls = calls_at_once(self._embedder.precision, self._embedder.threads)
        with closing(run_batches(run, self._batches(series), calls)) as outputs:
            for output, (rows, tokens) in outputs:
                np.add.at(sums, rows, tokens * output.astype(np.float64))
                begun[rows] = True
                if progress is not None:
                    progress(int(np.count_nonzero(begun)), len(series))
        return sums.astype(np.float32)

    def _batches(self, series: "pl.Series") -> Iterator[tuple[Inputs, _Tag]]:
        """Yield windows of equal token count, the rows of their texts and the tokens of each."""
        exported = self._embedder.exported
        tokenizer = load_tokenizer(exported.tokenizer_path, None)
        prefix = tokenizer.encode(exported.recipe.prefix, add_special_tokens=False).ids
        # every window has the prefix, so the text has that much less room
        tokenizer.enable_truncation(exported.recipe.max_tokens - len(prefix))
        special = tokenizer.num_special_tokens_to_add(False)
        leading = _leading_specials(tokenizer)
        for group in group_texts(series, tokenizer, windows=True):
            tokens = max(1, group.ids.shape[1] - special)
            ids = np.insert(group.ids, [leading] * len(prefix), prefix, axis=1)
            for batch in cut_batches(*ids.shape):
                yield {"input_ids": ids[batch]}, (group.rows[batch], tokens)


class TokenCounter:
    """Counts the tokens of texts as an embedder's model would take them, if it took them whole.

    Parameters
    ----------
    embedder
        Whose tokenizer counts.
    """

    dim = 1

    def __init__(self, embedder: Embedder) -> None:
        self._exported = embedder.exported

    @property
    def limit(self) -> int:
        """The most tokens that the model takes; of longer texts it takes the beginning."""
        return self._exported.recipe.max_tokens

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hexadecimal) over all that decides a text's tokens."""
        exported = self._exported
        return _fingerprint("tokens", exported.tokenizer_sha256, exported.recipe.prefix)

    def encode(self, texts: "Texts", *, progress: Progress | None = None) -> Vectors:
        """Count the tokens of each text, special ones and the prefix included, float32 (n, 1)."""
        series = _whole_texts(texts)
        tokenizer = load_tokenizer(self._exported.tokenizer_path, None)
        counts = np.empty((len(series), 1), np.float32)
        for start in range(0, len(series), _TEXTS_PER_COUNT):
            some = (self._exported.recipe.prefix + series.slice(start, _TEXTS_PER_COUNT)).to_list()
            encodings = tokenizer.encode_batch_fast(some)
            counts[start : start + len(some), 0] = [len(encoding.ids) for encoding in encodings]
            if progress is not None:
                progress(start + len(some), len(series))
        return counts

    def may_be_cut(self, texts: "pl.Series") -> npt.NDArray[np.bool_]:
        """Say which texts are so long that counting their tokens is worth it.

        A token has at least one character of the normalised text; normalising lengthens no ASCII
        text, and others to six characters a byte at most.
        """
        n_bytes = texts.str.len_bytes().to_numpy().astype(np.int64)
        is_ascii = n_bytes == texts.str.len_chars().to_numpy()
        most = np.where(is_ascii, n_bytes, 6 * n_bytes) + len(self._exported.recipe.prefix) + 8
        found: npt.NDArray[np.bool_] = most > self.limit
        return found


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _whole_texts(texts: "Texts") -> "pl.Series":
    series = as_series(texts)
    if series.null_count():
        raise UsageError(f"{series.null_count()} of the texts are null: expected strings.")
    return series


def _leading_specials(tokenizer: Any) -> int:
    """Return how many special tokens stand before a text."""
    mask: list[int] = tokenizer.encode("a").special_tokens_mask
    return mask.index(0)
