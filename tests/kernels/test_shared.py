import numpy as np
import pytest
from fastscore_kernels import count_shared_members, count_shared_ngrams
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import kernels as naive

words = st.sampled_from([0, 1, 2, 16, 1 << 32, (1 << 64) - 1])
lists = st.lists(st.tuples(words, words), max_size=8)
texts = st.text("ab你é😀e\u0301\0", max_size=12)


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


@given(st.lists(st.tuples(texts, texts), max_size=5), st.integers(1, 6))
def test_ngrams_equal_the_oracle(rows, n):
    got = count_shared_ngrams([a for a, _ in rows], [b for _, b in rows], n)
    grams = naive.character_ngrams
    assert got.T.tolist() == [counted(grams(a, n), grams(b, n)) for a, b in rows]


def test_many_rows_on_threads_and_long_ones():
    rng = np.random.default_rng(0)
    a, b = (["".join(rng.choice([*"abcd你"], k)) for k in rng.integers(0, 9, 9_000)] for _ in "ab")
    a[5] = b[6] = "".join(rng.choice([*"abcd你"], 3_000))
    got = count_shared_ngrams(a, b, 4, threads=2)
    grams = naive.character_ngrams
    assert got[:, :20].T.tolist() == [
        counted(grams(x, 4), grams(y, 4)) for x, y in zip(a[:20], b[:20], strict=True)
    ]
    assert np.array_equal(got[:, 8_000:], count_shared_ngrams(a[8_000:], b[8_000:], 4, threads=1))


def test_what_is_no_argument_is_refused():
    with pytest.raises(ValueError, match="`order` is 7; expected 1 to 6"):
        count_shared_ngrams(["a"], ["b"], 7)
    with pytest.raises(ValueError, match="`a` has 1 rows and `b` has 2"):
        count_shared_ngrams(["a"], ["b", "c"], 1)
    with pytest.raises(ValueError, match="`a` has 0 rows and `b` has 1"):
        count_shared_members(([], [], [0]), ([], [], [0, 0]))
    with pytest.raises(ValueError, match=r"`a\[0\]` has 1 rows"):
        count_shared_members((np.ones(1, np.uint64), [], [0]), ([], [], [0]))
