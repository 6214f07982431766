from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.vectors import view as text_ids_module
from fastscore.vectors.view import IdIndex, as_series, distinct_ids, text_ids

# Few first words, so that many ids share one.
WORD = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
IDS = st.lists(st.tuples(WORD, WORD), max_size=30)


def as_ids(pairs):
    return np.array(pairs, np.uint64).reshape(-1, 2)


@given(IDS)
def test_distinct_ids(pairs):
    ids = as_ids(pairs)
    distinct, positions, inverse = distinct_ids(ids)
    expected = sorted(set(pairs))
    assert [tuple(row) for row in distinct.rows().tolist()] == expected
    assert positions.tolist() == [pairs.index(pair) for pair in expected]
    assert inverse.tolist() == [expected.index(pair) for pair in pairs]


@given(IDS, IDS)
def test_an_index_finds_what_is_there(pairs, wanted):
    index = IdIndex(distinct_ids(as_ids(pairs))[0])
    among = sorted(set(pairs))
    expected = [among.index(pair) if pair in among else -1 for pair in wanted]
    assert index.find(*np.ascontiguousarray(as_ids(wanted).T)).tolist() == expected


@pytest.mark.parametrize("few", [0, 1, 64, 10**9])
@given(pairs=IDS, held=IDS)
def test_sorted_ids_are_found_whichever_side_is_searched(few, pairs, held):
    wanted, among = sorted(set(pairs)), sorted(set(held))
    index = IdIndex(distinct_ids(as_ids(wanted))[0])
    expected = [wanted.index(pair) if pair in wanted else -1 for pair in among]
    with mock.patch.object(text_ids_module, "_FEW", few):
        assert index.find_sorted(distinct_ids(as_ids(among))[0]).tolist() == expected


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


def test_as_series_of_nothing():
    assert as_series([]).dtype == pl.String
    assert as_series(pl.Series([None, None])).dtype == pl.String


@pytest.mark.parametrize("texts", [[1, 2], pl.Series([1, 2]), pa.array([1, 2])])
def test_numbers_are_refused(texts):
    with pytest.raises(TypeError):
        as_series(texts)
