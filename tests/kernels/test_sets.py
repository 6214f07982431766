"""Sets, bags and shared members against plain Python."""

import itertools
import math

import numpy as np
from fastscore_kernels import (
    count_shared_members,
    count_shared_ngrams,
    distinct_counts_ragged,
    idf_cosine_counted_csr,
    idf_cosine_csr,
    intersection_size_csr,
    jaccard_csr,
    set_difference_csr,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import kernels as naive

TERMS = 40
sets = st.sets(st.integers(0, TERMS - 1), max_size=20)
rows = st.lists(st.tuples(sets, sets), max_size=5)


def csr(members):
    values, offsets = naive.ragged(sorted(row) for row in members)
    return np.array(values, np.int32), np.array(offsets, np.int64)


@given(rows, st.sampled_from([0.0, 1.0, math.nan]))
def test_overlaps_equal_the_oracle(pairs, both_empty):
    a, b = csr(x for x, _ in pairs), csr(y for _, y in pairs)
    assert intersection_size_csr(a, b).tolist() == [len(x & y) for x, y in pairs]
    np.testing.assert_array_equal(
        jaccard_csr(a, b, both_empty=both_empty),
        [naive.jaccard(x, y, both_empty) for x, y in pairs],
    )


@given(rows)
def test_differences_equal_the_oracle(pairs):
    a, b = csr(x for x, _ in pairs), csr(y for _, y in pairs)
    values, offsets = set_difference_csr(a, b)
    expected_values, expected_offsets = csr(x - y for x, y in pairs)
    assert values.dtype == np.int32
    assert values.tolist() == expected_values.tolist()
    assert offsets.tolist() == expected_offsets.tolist()


@given(rows, st.lists(st.floats(0, 20), min_size=TERMS, max_size=TERMS))
def test_idf_cosine_equals_the_oracle(pairs, idf):
    a, b = csr(x for x, _ in pairs), csr(y for _, y in pairs)
    weights = np.array(idf)
    weights[weights < 1e-60] = 0.0
    got = idf_cosine_csr(a, b, weights)
    np.testing.assert_allclose(
        got, [naive.idf_cosine(x, y, weights.tolist()) for x, y in pairs], rtol=1e-12, atol=0
    )
    np.testing.assert_array_equal(got, idf_cosine_csr(b, a, weights))


def test_nan_and_infinity_in_idf_spread():
    a, b = csr([{0, 1}, {0, 2}, {1}]), csr([{0, 1}, {0, 2}, {1}])
    assert np.isnan(idf_cosine_csr(a, b, [np.nan, 1, np.inf])).tolist() == [True, True, False]


# --- bags


WORDS = 30
bags = st.lists(st.integers(0, WORDS - 1), max_size=40)
weights = st.lists(st.floats(0.125, 20), min_size=WORDS, max_size=WORDS)


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
    expected = [naive.idf_cosine(x, y, idf) for x, y in pairs]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)
    np.testing.assert_array_equal(got, idf_cosine_counted_csr(b, a, np.array(idf)))


# --- shared members and n-grams


words = st.sampled_from([0, 1, 2, 16, 1 << 32, (1 << 64) - 1])
lists = st.lists(st.tuples(words, words), max_size=8)
SHARED_TEXTS = st.text("ab你é😀e\u0301\0", max_size=12)


def columns(rows):
    """Return lists of pairs of words as a column."""
    members, offsets = naive.ragged(rows)
    high, low = np.array(members, np.uint64).reshape(-1, 2).T
    return high, low, np.array(offsets)


def counted(one, other):
    return [len(one), len(other), len(one & other)]


@given(st.lists(st.tuples(lists, lists), max_size=5))
def test_members_equal_the_oracle(rows):
    got = count_shared_members(columns(a for a, _ in rows), columns(b for _, b in rows))
    assert got.T.tolist() == [counted({*a}, {*b}) for a, b in rows]


@given(st.lists(st.tuples(SHARED_TEXTS, SHARED_TEXTS), max_size=5), st.integers(1, 6))
def test_ngrams_equal_the_oracle(rows, n):
    got = count_shared_ngrams([a for a, _ in rows], [b for _, b in rows], n)
    grams = naive.character_ngrams
    assert got.T.tolist() == [counted(grams(a, n), grams(b, n)) for a, b in rows]
