"""Ids of texts, and views of vectors by them."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.errors import StoreError
from fastscore.vectors.view import VectorView, as_series, text_ids

TEXTS = ["b", "", "naïve", "a", "b"]
MATRIX = np.eye(5, dtype=np.float32)


def test_ids_are_sorted_and_the_matrix_contiguous():
    view = VectorView.from_texts(TEXTS, MATRIX)
    pairs = [tuple(row) for row in view.ids.tolist()]
    assert pairs == sorted(set(pairs))
    assert view.matrix.flags.c_contiguous
    assert view.matrix.dtype == np.float32


@given(
    st.lists(st.text(max_size=4), unique=True, max_size=20),
    st.lists(st.integers(0, 19) | st.none(), max_size=40),
)
def test_codes_of_any_column(texts, picks):
    matrix = np.arange(len(texts), dtype=np.float32)[:, None]
    view = VectorView.from_texts(texts, matrix)
    column = [None if pick is None or pick >= len(texts) else texts[pick] for pick in picks]
    codes = view.codes(pl.Series(column, dtype=pl.String))
    found = [None if code < 0 else texts[int(view.matrix[code, 0])] for code in codes]
    assert found == column


def test_a_text_without_a_vector_is_named():
    view = VectorView.from_texts(TEXTS, MATRIX)
    with pytest.raises(StoreError, match=r"2 distinct texts have no vector, the first is 'zebra'"):
        view.codes(["a", "zebra", "yak", "zebra"])


def test_ids_are_of_the_text_alone():
    texts = ["", "a", "naïve café", "你好", "x" * 1000, "a"]
    ids = text_ids(texts)
    assert ids.shape == (6, 2)
    assert ids[0].tolist() == [0, 0]
    assert ids[1].tolist() == ids[5].tolist()
    assert len({tuple(row) for row in ids.tolist()}) == 5
    for column in (pl.Series(texts), pa.array(texts), pa.array(texts, pa.large_string())):
        np.testing.assert_array_equal(text_ids(column), ids)


@pytest.mark.parametrize(
    "texts",
    [
        ["a", None],
        ("a", None),
        pl.Series(["a", None]),
        pl.Series(["a", None], dtype=pl.Categorical),
        pa.array(["a", None]),
        pa.chunked_array([["a"], [None]]),
    ],
)
def test_as_series_takes_columns_of_every_kind(texts):
    series = as_series(texts)
    assert series.dtype == pl.String
    assert series.to_list() == ["a", None]


@pytest.mark.parametrize("texts", [[1, 2], pl.Series([1, 2]), pa.array([1, 2])])
def test_numbers_are_refused(texts):
    with pytest.raises(TypeError):
        as_series(texts)
