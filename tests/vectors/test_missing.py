from collections import Counter

import numpy as np
import polars as pl
import pytest

from fastscore.vectors.store import VectorStore, embed_missing
from tests.vectors.conftest import WORDS

TEXTS = [f"{first} {second}" for first in WORDS[:8] for second in WORDS[:7]]


class Counting:
    """An embedder that counts how often each text goes through the model."""

    def __init__(self, embedder):
        self.embedder, self.seen = embedder, Counter()

    def encode(self, texts, **options):
        self.seen.update(list(texts))
        return self.embedder.encode(texts, **options)


@pytest.fixture
def store(tmp_path, tiny):
    return VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)


def test_each_distinct_text_is_embedded_once(store, tiny):
    counting = Counting(tiny)
    texts = pl.Series([*TEXTS, None, *TEXTS[:9], ""])
    assert embed_missing(texts, counting, store) == len(TEXTS) + 1
    assert embed_missing(texts, counting, store) == 0
    assert embed_missing([*TEXTS, "w1 w2 w3"], counting, store) == 1
    assert counting.seen == Counter([*TEXTS, "", "w1 w2 w3"])
    view = store.view(texts)
    codes = view.codes(texts)
    np.testing.assert_allclose(view.matrix[codes[: len(TEXTS)]], tiny.encode(TEXTS), atol=1e-6)


def test_a_killed_run_keeps_its_windows(store, tiny):
    class Killed(Counting):
        def encode(self, texts, **options):
            if sum(self.seen.values()) >= 30:
                raise KeyboardInterrupt
            return super().encode(texts, **options)

    with pytest.raises(KeyboardInterrupt):
        embed_missing(TEXTS, Killed(tiny), store, texts_per_append=10)
    assert store.stats().vectors == 30
    assert embed_missing(TEXTS, tiny, store) == len(TEXTS) - 30


def test_the_order_of_texts_does_not_matter(tmp_path, tiny):
    files = []
    for number, texts in enumerate((TEXTS, TEXTS[::-1])):
        store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path / str(number))
        embed_missing(texts, tiny, store)
        files.append(next(store.folder.glob("*.faiss")).read_bytes())
    assert files[0] == files[1]
