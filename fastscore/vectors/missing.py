"""Embedding what a store lacks."""

from typing import TYPE_CHECKING, Protocol

import numpy as np

from fastscore.vectors.text_ids import as_series, distinct_ids, text_ids

if TYPE_CHECKING:
    from fastscore_jit.arrays import Vectors

    from fastscore.vectors.embedder import Progress
    from fastscore.vectors.store import VectorStore
    from fastscore.vectors.text_ids import Texts

_TEXTS_PER_APPEND = 8192


class Encoder(Protocol):
    """What makes a vector of a text: an `Embedder`, or a `PerplexityModel`."""

    def encode(self, texts: "Texts", *, progress: "Progress | None" = None) -> "Vectors":
        """Return a row for each text."""


def embed_missing(
    texts: "Texts",
    embedder: Encoder,
    store: "VectorStore",
    *,
    progress: "Progress | None" = None,
    texts_per_append: int = _TEXTS_PER_APPEND,
) -> int:
    """Embed the texts that a store lacks, each distinct one once.

    Texts go in windows, shortest first; a window is on disk before the next begins, so a killed
    run loses one at most.

    Parameters
    ----------
    texts
        Strings in any order, with repeats; nulls are ignored.
    embedder, store
        Of one fingerprint.
    progress
        Called with (texts embedded, texts to embed).
    texts_per_append
        The size of a window.

    Returns
    -------
    int
        How many texts were embedded.

    Raises
    ------
    StoreError
        If vectors could not be written.
    ModelError
        If the model's files are damaged.
    """
    distinct = as_series(texts).drop_nulls().unique()
    ids = text_ids(distinct)
    absent = store.missing(ids)
    distinct, ids = distinct.filter(absent), ids[absent]
    # The order among texts of one length is by id, so that it does not depend on the input's.
    by_id = distinct_ids(ids)[1]
    distinct, ids = distinct.gather(by_id), ids[by_id]
    lengths = distinct.str.len_bytes().to_numpy()
    order = np.argsort(lengths, kind="stable")
    for start in range(0, len(order), texts_per_append):
        window = order[start : start + texts_per_append]

        def advance(done: int, _: int, start: int = start) -> None:
            if progress is not None:
                progress(start + done, len(order))

        vectors = embedder.encode(distinct.gather(window), progress=advance)
        store.append(ids[window], vectors)
    return len(order)
