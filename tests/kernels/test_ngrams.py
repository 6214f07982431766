import numpy as np
import polars as pl
import pytest
from fastscore_kernels import ngram_copy_ratio
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import copy_ratio

tokens = st.one_of(
    st.sampled_from(
        ["a", "b", "A", "ab", "don't", "DON'T", "x'y'z", "'", "''", "é", "你", "1", "_"]
    ),
    st.text("aB1' -é你\u212a", max_size=6),
)
turns = st.lists(tokens, max_size=14).map(" ".join)


@st.composite
def pairs(draw):
    """Draw two turns, of which the second may quote the first."""
    system, user = draw(turns), draw(turns)
    start, stop = sorted(draw(st.tuples(st.integers(0, 40), st.integers(0, 40))))
    return system, user + draw(st.sampled_from(["", " ", "'"])) + system[start:stop]


@given(st.lists(pairs(), max_size=4), st.lists(st.integers(1, 5), min_size=1, max_size=3))
def test_equals_the_oracle(rows, orders):
    system, user = [row[0] for row in rows], [row[1] for row in rows]
    got = ngram_copy_ratio(system, user, orders)
    assert got.tolist() == [copy_ratio(s, u, orders) for s, u in rows]


def test_by_hand():
    system = [
        "one two three four",
        "one two three four",
        "a b a b a b",
        "two words",
        "Don't stop me",
    ]
    user = ["ONE two, three!", "four three two one", "b a b a", "two words", "so don't stop me now"]
    # 1 of 2 trigrams; none; {a b a, b a b} both; too short for order 3; the apostrophe joins
    assert ngram_copy_ratio(system, user, (3,)).tolist() == [0.5, 0.0, 1.0, 0.0, 1.0]
    assert ngram_copy_ratio(system, user).tolist() == [0.5, 0.0, 1.0, 0.0, 1.0]


def test_long_turns_and_threads():
    rng = np.random.default_rng(0)
    size = 9_000
    vocabulary = [f"w{i}" for i in range(9)]
    system, user = (
        [" ".join(rng.choice(vocabulary, n)) for n in rng.integers(0, 30, size)] for _ in "ab"
    )
    system[5] = user[5] = " ".join(rng.choice(vocabulary, 5_000))
    got = ngram_copy_ratio(pl.Series(system), pl.Series(user), threads=2)
    assert got.tolist() == [copy_ratio(s, u, (3, 4)) for s, u in zip(system, user, strict=True)]
    assert ngram_copy_ratio(system[5:9], user[5:9]).tolist() == got[5:9].tolist()


@pytest.mark.parametrize("orders", [(), (0,), (3, -1), ((3,),)])
def test_bad_orders_are_named(orders):
    with pytest.raises(ValueError, match="`orders`"):
        ngram_copy_ratio(["a"], ["b"], orders)


def test_columns_of_different_length_are_named():
    with pytest.raises(ValueError, match="`system` has 1 rows and `user` has 2"):
        ngram_copy_ratio(["a"], ["b", "c"])
