import pytest
from fastscore_kernels import mt19937_pairs
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import index_pairs

GOLDEN = {
    (2, 0): [(1, 0), (0, 1), (1, 0), (1, 0), (1, 0), (0, 1), (0, 1), (1, 0)],
    (5, 0): [(3, 4), (0, 2), (4, 3), (3, 2), (3, 2), (4, 1), (4, 1), (2, 1)],
    (7, 0): [(6, 3), (6, 3), (0, 2), (4, 3), (3, 6), (6, 2), (3, 2), (4, 1)],
    (20, 0): [(12, 13), (1, 8), (16, 15), (12, 9), (15, 11), (18, 6), (16, 4), (9, 4)],
    (5, 1): [(1, 4), (0, 2), (0, 3), (3, 4), (3, 1), (0, 3), (0, 3), (3, 4)],
    (5, -1): [(1, 4), (0, 2), (0, 3), (3, 4), (3, 1), (0, 3), (0, 3), (3, 4)],
    (33, 12345): [(26, 0), (19, 23), (12, 17), (27, 10), (23, 7), (27, 16), (11, 12), (22, 5)],
}


@pytest.mark.parametrize(("n", "seed"), GOLDEN)
def test_published_pairs(n, seed):
    assert [tuple(pair) for pair in mt19937_pairs(n, 8, seed).tolist()] == GOLDEN[n, seed]


@given(
    st.one_of(
        st.integers(2, 300), st.integers(2, 2**32), st.sampled_from([2**31, 2**32 - 1, 2**32])
    ),
    st.integers(0, 30),
    st.one_of(st.integers(-10, 10), st.integers(), st.integers(-(2**200), 2**200)),
)
def test_equals_python(n, pairs, seed):
    assert mt19937_pairs(n, pairs, seed).tolist() == index_pairs(n, pairs, seed)


@pytest.mark.parametrize(
    ("n", "pairs", "seed", "error"),
    [
        (1, 1, 0, ValueError),
        (2**32 + 1, 1, 0, ValueError),
        (2, -1, 0, ValueError),
        (2, 1, 0.5, TypeError),
        (2.0, 1, 0, TypeError),
        (True, 1, 0, TypeError),
    ],
)
def test_bad_arguments_are_named(n, pairs, seed, error):
    with pytest.raises(error, match="expected"):
        mt19937_pairs(n, pairs, seed)
