import math
from fractions import Fraction

import numpy as np
from fastscore_kernels import (
    gini_ragged,
    group_rows,
    segment_first_argmax,
    segment_moments,
    take_ranges,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import kernels as naive

amounts = st.one_of(
    st.floats(0, 1), st.floats(0, 1e6), st.just(0.0), st.sampled_from([math.nan, math.inf])
)


@given(st.lists(st.lists(amounts, max_size=12), max_size=5))
def test_gini_equals_the_oracle(groups):
    values, offsets = naive.ragged(groups)
    got = gini_ragged(np.array(values), offsets)
    np.testing.assert_allclose(got, [naive.gini(g) for g in groups], rtol=1e-9, atol=1e-12)


numbers = st.one_of(st.integers(-2, 2).map(float), st.sampled_from([math.nan, math.inf, -math.inf]))


@given(st.lists(st.lists(numbers, max_size=8), max_size=5))
def test_first_argmax_equals_the_oracle(groups):
    values, offsets = naive.ragged(groups)
    got = segment_first_argmax(np.array(values, np.float64), offsets)
    assert got.tolist() == [naive.first_argmax(g) for g in groups]


def whole(words):
    """Return signed 128-bit integers from their upper and lower halves."""
    numbers = [(int(high) << 64) + int(low) for high, low in words.T]
    return [number - (number >> 127 << 128) for number in numbers]


@given(
    st.lists(st.lists(st.one_of(st.floats(-1, 1), st.just(math.nan)), max_size=6), max_size=5),
    st.sampled_from([0, 1, 5, 51, 62]),
)
def test_moments_equal_sums_of_whole_numbers(groups, bits):
    values, offsets = naive.ragged(groups)
    found = segment_moments(np.array(values, np.float64), offsets, bits)
    numbers = [[value for value in group if not math.isnan(value)] for group in groups]
    rounded = [[round(Fraction(value) * 2**bits) for value in group] for group in numbers]
    assert found.counts.tolist() == [len(group) for group in numbers]
    assert whole(found.sums) == [sum(group) for group in rounded]
    assert whole(found.squares) == [sum(each * each for each in group) for group in rounded]
    ends = [(min(group), max(group)) if group else (math.nan,) * 2 for group in numbers]
    np.testing.assert_array_equal(found.ends.T, np.reshape(ends, (-1, 2)))


def test_moments_of_many_numbers_are_carried_into_the_upper_half():
    values = np.tile([1.0, -1.0, -1.0], 1000)
    found = segment_moments(values, [0, 1, 3000], 56)
    assert whole(found.sums) == [2**56, -(1001 << 56)]
    assert whole(found.squares) == [2**112, 2999 << 112]


def test_offsets_may_start_late_and_arrays_may_be_views():
    values = np.arange(20.0)[::2]
    values.flags.writeable = False
    assert segment_first_argmax(values, [2, 5, 5, 10]).tolist() == [2, -1, 4]
    assert gini_ragged(values, [3, 4]).tolist() == [0.0]


@given(st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n - 1)))))
def test_grouped_rows_equal_the_oracle(case):
    n_owners, owners = case
    rows, offsets = naive.ragged(naive.group_rows(owners, n_owners))
    order, bounds = group_rows(np.array(owners, np.int64), n_owners)
    assert order.tolist() == rows
    assert bounds.tolist() == offsets


@given(st.lists(st.integers(-9, 9), max_size=8), st.data())
def test_taken_ranges_equal_the_oracle(values, data):
    place = st.integers(0, len(values))
    ranges = data.draw(st.lists(st.tuples(place, place).map(sorted), max_size=6))
    expected, offsets = naive.ragged(values[start:end] for start, end in ranges)
    starts = np.array([start for start, _ in ranges], np.int64)
    sizes = np.array([end - start for start, end in ranges], np.int64)
    taken, bounds = take_ranges(np.array(values, np.int64), starts, sizes)
    assert taken.tolist() == expected
    assert bounds.tolist() == offsets
