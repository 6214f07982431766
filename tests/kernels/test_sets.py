import math

import numpy as np
import pytest
from fastscore_kernels import idf_cosine_csr, intersection_size_csr, jaccard_csr, set_difference_csr
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


def test_large_sets_slices_and_threads():
    rng = np.random.default_rng(0)
    pairs = [tuple(set(rng.integers(0, 5_000, 3_000).tolist()) for _ in "ab") for _ in range(3)]
    a, b = csr(x for x, _ in pairs), csr(y for _, y in pairs)
    expected = [naive.jaccard(x, y, 1.0) for x, y in pairs]
    assert jaccard_csr(a, b, threads=2).tolist() == expected
    part = [(column[0], column[1][1:]) for column in (a, b)]
    assert jaccard_csr(*part).tolist() == expected[1:]
    for array in a:
        array.flags.writeable = False
    assert jaccard_csr(a, b).tolist() == expected


@pytest.mark.parametrize(
    ("values", "offsets", "error", "message"),
    [
        ([1, 1], [0, 2], ValueError, "1 then 1 in row 0"),
        ([3, 5, 4], [0, 1, 3], ValueError, "5 then 4 in row 1"),
        ([1, 2], [0, 3], ValueError, "within 0 and 2"),
        ([1, 2], [0, 2, 1], ValueError, "falls from 2 to 1"),
        ([1.5], [0, 1], TypeError, "float64"),
        ([2**40], [0, 1], TypeError, "int64"),
        ([], [], ValueError, "empty"),
    ],
)
def test_bad_columns_are_named(values, offsets, error, message):
    column = (np.array(values), np.array(offsets, np.int64))
    with pytest.raises(error, match=message):
        jaccard_csr(column, column)


def test_other_bad_arguments_are_named():
    one, two = csr([{1}]), csr([{1}, {2}])
    with pytest.raises(ValueError, match="`a` has 1 rows and `b` has 2"):
        jaccard_csr(one, two)
    with pytest.raises(TypeError, match=r"expected \(values, offsets\)"):
        jaccard_csr([1, 2], one)
    with pytest.raises(IndexError, match="holds the value 1"):
        idf_cosine_csr(one, one, [1.0])
