"""Groups of keywords and numbers of distinct values, against plain Python."""

import numpy as np
import polars as pl
from fastscore_kernels import keyword_groups, number_hashes, number_texts
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import naive_keyword_groups, naive_numbers

ALPHABET = "ab波动é߿一丁😀🙂"
TEXTS = st.lists(
    st.text(alphabet=ALPHABET, max_size=12)
    | st.text(alphabet="波动一二", max_size=30)
    | st.text(alphabet=ALPHABET + " ,的是", min_size=20, max_size=150),
    max_size=6,
)
KEYWORDS = st.text(alphabet=ALPHABET, min_size=1, max_size=3) | st.text(
    alphabet="波动一", min_size=1, max_size=4
)
GROUPS = st.lists(st.lists(KEYWORDS, max_size=3), max_size=5)


@given(TEXTS, GROUPS, st.sampled_from((1, 40)))
def test_keyword_groups_oracle(texts, groups, repeat):
    groups = groups * repeat
    bits = keyword_groups(texts, groups)
    assert bits.shape == (len(texts), max(1, -(-len(groups) // 64)))
    found = [
        {g for g in range(64 * bits.shape[1]) if int(row[g // 64]) >> (g % 64) & 1} for row in bits
    ]
    assert found == naive_keyword_groups(texts, groups)


@given(
    st.lists(
        st.none()
        | st.text("ab\0é", max_size=3)
        | st.text(max_size=20)
        # texts of a few lengths that differ in one byte
        | st.tuples(st.sampled_from((7, 8, 9, 16, 17, 31, 33, 64, 70)), st.integers(0, 69)).map(
            lambda drawn: "a" * drawn[1] + "b" + "a" * (drawn[0] - drawn[1])
        ),
        max_size=40,
    )
)
def test_number_texts_oracle(texts):
    codes, firsts = number_texts(texts)
    assert (codes.tolist(), firsts.tolist()) == naive_numbers(texts)
    views = pl.Series(["before", *texts], dtype=pl.String)[1:]
    assert number_texts(views)[0].tolist() == codes.tolist()


@given(st.lists(st.integers(0, 5) | st.integers(0, 2**64 - 1), max_size=40))
def test_number_hashes_oracle(hashes):
    codes, firsts = number_hashes(np.array(hashes, np.uint64))
    assert (codes.tolist(), firsts.tolist()) == naive_numbers(hashes)
