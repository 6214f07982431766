"""Cosines and the pairs that are drawn for their means, against plain Python."""

import numpy as np
import pytest
from fastscore_kernels import (
    cosine_pairs,
    max_cosine_ragged,
    mean_pair_cosine_groups,
    mt19937_pairs,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import dot, index_pairs, mean_pair_cosine, ragged


def vectors(texts, dim, seed=0):
    drawn = np.random.default_rng(seed).normal(size=(texts, dim))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


@st.composite
def views(draw):
    texts, dim = draw(st.integers(1, 9)), draw(st.sampled_from([1, 3, 15, 16, 17, 64, 100, 384]))
    rows = st.integers(0, texts - 1)
    matrix = vectors(texts, dim, draw(st.integers(0, 2**32)))
    matrix.flags.writeable = draw(st.booleans())
    return matrix, rows


@given(st.data())
def test_pairs_equal_the_oracle(data):
    matrix, rows = data.draw(views())
    pairs = data.draw(st.lists(st.tuples(rows, rows), max_size=5))
    a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    got = cosine_pairs(matrix, np.array(a, np.int32), np.array(b, np.int64))
    exact = [dot(matrix[i].tolist(), matrix[j].tolist()) for i, j in pairs]
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(got, cosine_pairs(matrix, np.array(b, int), np.array(a, int)))


@given(st.data())
def test_means_of_groups_equal_the_oracle(data):
    matrix, rows = data.draw(views())
    groups = data.draw(st.lists(st.lists(rows, max_size=7), max_size=4))
    pairs, seed = data.draw(st.integers(1, 40)), data.draw(st.integers(-5, 2**40))
    members, offsets = ragged(groups)
    got = mean_pair_cosine_groups(matrix, np.array(members, int), np.array(offsets), pairs, seed)
    exact = [mean_pair_cosine([matrix[i].tolist() for i in g], pairs, seed) for g in groups]
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-6)


@given(st.data())
def test_nearest_candidate_equals_the_oracle(data):
    matrix, rows = data.draw(views())
    groups = data.draw(st.lists(st.lists(rows, max_size=6), max_size=4))
    asked = data.draw(st.lists(st.tuples(rows, st.integers(-1, len(groups) - 1)), max_size=6))
    candidates, offsets = ragged(groups)
    best, position = max_cosine_ragged(
        matrix,
        np.array([row for row, _ in asked], int),
        np.array([group for _, group in asked], int),
        np.array(candidates, int),
        offsets,
    )
    for (row, group), cosine, place in zip(asked, best, position, strict=True):
        choices = groups[group] if group >= 0 else []
        if not choices:
            assert np.isnan(cosine)
            assert place == -1
            continue
        exact = [dot(matrix[row].tolist(), matrix[other].tolist()) for other in choices]
        assert cosine == pytest.approx(max(exact), abs=1e-6)
        assert exact[place] == pytest.approx(max(exact), abs=1e-6)
        assert choices.index(choices[place]) == place
        assert cosine == cosine_pairs(matrix, [row], [choices[place]])[0]


def test_nan_and_infinity_spread():
    matrix = np.array([[1, 0], [np.nan, 1], [np.inf, 1]], np.float32)
    got = cosine_pairs(matrix, [0, 0, 0], [0, 1, 2])
    assert got[0] == 1
    assert np.isnan(got[1])
    assert np.isinf(got[2])
    best, position = max_cosine_ragged(matrix, [0, 0], [0, 1], [1, 0, 1], [0, 2, 3])
    assert best[0] == 1
    assert position.tolist() == [1, -1]


# --- pairs


@given(
    st.one_of(
        st.integers(2, 300), st.integers(2, 2**32), st.sampled_from([2**31, 2**32 - 1, 2**32])
    ),
    st.integers(0, 30),
    st.one_of(st.integers(-10, 10), st.integers(), st.integers(-(2**200), 2**200)),
)
def test_equals_python(n, pairs, seed):
    assert mt19937_pairs(n, pairs, seed).tolist() == index_pairs(n, pairs, seed)
