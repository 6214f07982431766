import itertools

import numpy as np
import pytest
from fastscore_kernels import distinct_counts_ragged, idf_cosine_counted_csr
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import kernels as naive

TERMS = 30
bags = st.lists(st.integers(0, TERMS - 1), max_size=40)
weights = st.lists(st.floats(0.125, 20), min_size=TERMS, max_size=TERMS)


def ragged(rows):
    values, offsets = naive.ragged(rows)
    return np.array(values, np.int32), np.array(offsets, np.int64)


@given(st.lists(bags, max_size=6))
def test_counts_equal_the_oracle(rows):
    values, offsets = ragged(rows)
    given_values = values.copy()
    distinct, counts, places = distinct_counts_ragged(values, offsets)
    pairs = list(zip(distinct.tolist(), counts.tolist(), strict=True))
    found = [pairs[low:high] for low, high in itertools.pairwise(places)]
    assert found == [naive.distinct_counts(row) for row in rows]
    assert values.tolist() == given_values.tolist()


@given(st.lists(st.tuples(bags, bags), max_size=6), weights)
def test_the_counted_cosine_equals_the_oracle(pairs, idf):
    a = distinct_counts_ragged(*ragged(row for row, _ in pairs))
    b = distinct_counts_ragged(*ragged(row for _, row in pairs))
    got = idf_cosine_counted_csr(a, b, np.array(idf))
    expected = [naive.idf_cosine_counted(x, y, idf) for x, y in pairs]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)
    np.testing.assert_array_equal(got, idf_cosine_counted_csr(b, a, np.array(idf)))


def test_neither_threads_nor_chunks_change_a_bag():
    rng = np.random.default_rng(5)
    sizes = rng.integers(0, 9, 20_000)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    values = rng.integers(0, TERMS, offsets[-1]).astype(np.int32)
    one = distinct_counts_ragged(values, offsets, threads=1)
    two = distinct_counts_ragged(values, offsets, threads=3)
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)


def test_values_must_have_a_weight():
    bag = (np.array([3], np.int32), np.array([1]), np.array([0, 1]))
    with pytest.raises(IndexError, match="`b` holds the value 3 at position 0; expected places"):
        idf_cosine_counted_csr((bag[0] - 2, *bag[1:]), bag, np.ones(3))
    with pytest.raises(ValueError, match="offsets"):
        distinct_counts_ragged(np.zeros(2, np.int32), np.array([0, 3]))
