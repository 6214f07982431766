"""Columns of texts to columns of vectors, with and without a store."""

import numpy as np
import polars as pl
import pytest

from fastscore.errors import StoreError, UsageError
from fastscore.vectors.store import VectorStore

TEXTS = pl.Series("said", ["b", None, "a", "b", "a b"])


def as_rows(vectors: pl.Series) -> list[list[float] | None]:
    return [None if each is None else list(each) for each in vectors.to_list()]


def test_a_column_of_texts_becomes_a_column_of_vectors(tiny):
    vectors = tiny.embed(TEXTS)
    assert vectors.name == "said"
    assert vectors.dtype == pl.Array(pl.Float32, tiny.dim)
    b, a, both = tiny.encode(["b", "a", "a b"]).tolist()
    assert as_rows(vectors) == [b, None, a, b, both]
    assert as_rows(tiny.embed(["a", None])) == [a, None]
    cut = tiny.embed(TEXTS, dim=2)
    assert cut.dtype == pl.Array(pl.Float32, 2)
    np.testing.assert_array_equal(cut.drop_nulls().to_numpy()[1], tiny.encode(["a"], dim=2)[0])
    frame = pl.DataFrame(TEXTS).with_columns(vector=vectors)
    assert frame.filter(pl.col("said") == "b")["vector"].n_unique() == 1


def test_errors_name_what_to_do(tiny, tmp_path):
    store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)
    with pytest.raises(UsageError, match=r"no embedder\. Open it by `VectorStore\.of\(embedder\)`"):
        store.get_or_embed(TEXTS)
    with pytest.raises(StoreError, match=r"Embed them first: `VectorStore\.get_or_embed` does"):
        store.view(TEXTS)
    with pytest.raises(StoreError, match=r"Embed them first: `VectorStore\.get_or_embed` does"):
        store.view(pl.Series([], dtype=pl.String)).codes(TEXTS)
    for wrong, found in ((pl.Series([1]), "dtype Int64"), ("a", "type str"), ([1], "type list")):
        with pytest.raises(UsageError, match=f"`texts` is of {found}; expected a Series or list"):
            tiny.embed(wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"The dimension asked for is 9999"):
        VectorStore.of(tiny, root=tmp_path).get_or_embed(TEXTS, dim=9_999)
