import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from fastscore.vectors.view import as_series, text_ids


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
