import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.vectors.view import IdIndex, as_series, distinct_ids, text_ids

# Few first words, so that many ids share one.
WORD = st.sampled_from([0, 1, 2, 2**63, 2**64 - 1])
IDS = st.lists(st.tuples(WORD, WORD), max_size=30)


def as_ids(pairs):
    return np.array(pairs, np.uint64).reshape(-1, 2)


@given(pairs=IDS, held=IDS)
def test_shared_ids_are_found_whichever_side_is_searched(pairs, held):
    wanted, among = sorted(set(pairs)), sorted(set(held))
    both = sorted(set(pairs) & set(held))
    here, there = (IdIndex(distinct_ids(as_ids(ids))[0]) for ids in (wanted, among))
    expected = [[ids.index(pair) for pair in both] for ids in (wanted, among)]
    assert [places.tolist() for places in here.shared(there)] == expected
    assert [places.tolist() for places in there.shared(here)] == expected[::-1]


def test_a_look_up_of_few_ids_costs_the_same_in_any_store():
    random = np.random.default_rng(1)
    held = random.integers(0, 2**64, (200_000, 2), np.uint64)
    few, many = (IdIndex(distinct_ids(ids)[0]) for ids in (held[:100], held))
    assert few.shared(many)[0].size == 100  # the index of the many is made once
    tracemalloc.start()
    few.shared(many)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 100_000  # bytes: half a byte an id that is held


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
