"""Exact sums against their oracle, and for any order and any batches."""

import math

import numpy as np
import pytest
from fastscore_kernels.sums import COUNT, ExactSums
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.sums import exact_sums

GROUPS = 4
VALUES = st.none() | st.floats(-1, 1) | st.sampled_from([0.5, -0.5, 1.0, -1.0, 2.0**-40, -0.0])
ROWS = st.lists(st.tuples(VALUES, st.integers(0, GROUPS - 1)), max_size=40)


def added(rows, bits, *, cuts=()):
    sums = ExactSums(GROUPS, bits)
    values = np.array([math.nan if value is None else value for value, _ in rows], np.float64)
    groups = np.array([group for _, group in rows], np.int64)
    for part in np.split(np.arange(len(rows)), sorted(cuts)):
        sums.add(values[part], groups[part])
    return sums


@given(ROWS, st.sampled_from([0, 1, 30, 39, 40, 41, 52, 61, 62]))
def test_exact_sums_oracle(rows, bits):
    sums = added(rows, bits)
    values, groups = [value for value, _ in rows], [group for _, group in rows]
    counts, totals, squares = exact_sums(values, groups, GROUPS, bits)
    assert sums.limbs[:, COUNT].tolist() == counts
    assert sums.totals() == totals
    assert sums.squares() == squares
    for group in range(GROUPS):
        members = [value for value, of in rows if of == group and value is not None]
        assert sums.extremes[group].tolist() == [
            min(members, default=math.inf),
            max(members, default=-math.inf),
        ]


@given(ROWS, st.data())
def test_exact_sums_depend_on_neither_order_nor_batches(rows, data):
    shuffled = data.draw(st.permutations(rows))
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    one, other = added(rows, 60), added(shuffled, 60, cuts=cuts)
    assert one.totals() == other.totals()
    assert one.squares() == other.squares()


def test_limbs_carry():
    rows = 300_000
    sums = ExactSums(1, 62)
    sums.add(np.full(rows, -1.0), np.zeros(rows, np.int64))
    sums.add(np.full(rows, 1.0 - 2.0**-53), np.zeros(rows, np.int64))
    least = 2**62 - 2**9
    assert sums.totals() == [rows * (least - 2**62)]
    assert sums.squares() == [rows * (2**124 + least**2)]


def test_values_beyond_the_grid_and_groups_beyond_the_table_are_refused():
    one = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match=r"beyond 2\*\*0"):
        ExactSums(1, 62).add(np.array([1.5]), one)
    with pytest.raises(ValueError, match="beyond"):
        ExactSums(1, 0).add(np.array([np.inf]), one)
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        ExactSums(1, 0).add(np.array([1.0]), one + 1)
    with pytest.raises(ValueError, match="float32"):
        ExactSums(1, 0).add(np.zeros(1, np.float32), one)
