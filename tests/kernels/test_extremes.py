"""Invariants for any input, and inputs at the limits."""

import math

import numpy as np
import pytest
from fastscore_kernels import (
    cosine_pairs,
    gini_ragged,
    jaccard_csr,
    levenshtein_pairs,
    max_cosine_ragged,
    mean_pair_cosine_groups,
    ngram_copy_ratio,
    segment_first_argmax,
    text_hash128,
)

from tests.kernels.test_sets import csr


def distance(a, b):
    return int(levenshtein_pairs([a], [b])[0])


SMALLEST = 5e-324
MILLION = 1_000_000


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], math.nan),
        ([3.0], 0.0),
        ([2.0] * 7, 0.0),
        ([0.0] * 7, 0.0),
        ([math.nan, 1.0], math.nan),
        ([SMALLEST, SMALLEST], 0.0),
        ([0.0, SMALLEST], 0.0),  # of a mean that counts as none
        ([0.0, 1e300], 0.5),
        ([1.0] * MILLION, 0.0),
    ],
    ids=[
        "empty",
        "one",
        "equal",
        "zero",
        "nan",
        "denormal",
        "denormal and zero",
        "large",
        "a million",
    ],
)
def test_gini_at_the_ends(values, expected):
    (found,) = gini_ragged(np.array(values, np.float64), [0, len(values)])
    assert found == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("last", [0, MILLION, MILLION // 2])
def test_one_value_beside_many_that_stand_in_order(last):
    """The Gini coefficient of 0, 1, ..., n - 1 in whatever order is (n + 1) / 3n."""
    others = np.delete(np.arange(MILLION + 1), last)
    for values in (np.append(others, last), np.append(last, others), np.append(last, others[::-1])):
        (found,) = gini_ragged(values.astype(np.float64), [0, MILLION + 1])
        assert found == pytest.approx((MILLION + 2) / (3 * (MILLION + 1)), rel=1e-9)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("", "", 0),
        ("", "x", 1),
        ("x" * MILLION, "x" * MILLION, 0),
        ("x" * MILLION, "x" * (MILLION - 3) + "yyy", 3),
        ("x" * MILLION, "", MILLION),
        ("\0", "", 1),
        ("\U0010ffff", "\ud7ff", 1),
    ],
    ids=["empty", "one", "equal", "a million", "against nothing", "zero", "last characters"],
)
def test_edit_distance_at_the_ends(a, b, expected):
    assert distance(a, b) == expected


def test_columns_without_a_row():
    nothing = np.zeros(0)
    assert levenshtein_pairs([], []).tolist() == []
    assert text_hash128([]).shape[0] == 0
    assert ngram_copy_ratio([], [], orders=(3,)).size == 0
    assert gini_ragged(nothing, [0]).tolist() == []
    assert segment_first_argmax(nothing, [0]).tolist() == []
    assert jaccard_csr(csr([]), csr([])).tolist() == []
    none = np.zeros(0, np.int64)
    matrix = np.zeros((0, 4), np.float32)
    assert cosine_pairs(matrix, none, none).tolist() == []
    assert mean_pair_cosine_groups(matrix, none, [0], 10, 0).tolist() == []
    assert max_cosine_ragged(matrix, none, none, none, [0])[0].tolist() == []


def test_arrays_that_may_not_be_written_or_are_not_contiguous():
    matrix = np.eye(6, dtype=np.float32)
    rows = np.arange(12)[::2] // 2
    for each in (matrix, rows):
        each.flags.writeable = False
    assert cosine_pairs(matrix, rows, rows).tolist() == [1.0] * 6
    values = np.array([0.0, 9.0, 4.0, 9.0])[::2]
    assert gini_ragged(values, [0, 2]).tolist() == [0.5]
