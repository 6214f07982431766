import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.errors import StoreError
from fastscore.vectors.view import VectorView

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
