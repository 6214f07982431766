"""Candidates nearest by character n-grams: by hand, and against plain Python."""

import numpy as np
import pytest
from fastscore_kernels import index_character_ngrams, nearest_by_character_ngrams
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.ngrams import cosines


def spaced(texts):
    """Lay texts out as the kernel takes them."""
    joined = " " + "".join(f"{text} " for text in texts)
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32)
    return points, np.cumsum([0, *(len(text) + 1 for text in texts)])


def nearest(groups, texts, top, least, threads=None):
    index = index_character_ngrams(
        *spaced([value for group in groups for value in group]), np.cumsum([0, *map(len, groups)])
    )
    out = nearest_by_character_ngrams(
        index, *spaced(texts), top=top, least=least, threads=threads
    ).reshape(len(texts), len(groups), top)
    return [[[row for row in best if row >= 0] for best in text] for text in out.tolist()]


def test_by_hand():
    # n-grams of " ab ": " ab", "ab ", " ab "; of " ac ": " ac", "ac ", " ac "; none is common
    groups = [["ab", "ac"], ["ab ac", "zz"]]
    assert nearest(groups, ["ab", "xab", "ac ab", ""], 2, 0.5) == [
        [[0], [2]],
        # "ab " alone is known, one of three equal weights: 1 / sqrt(3), and 1 / sqrt(6)
        [[0], []],
        # both halves are 1 / sqrt(2), the first row wins; word order does not count
        [[0, 1], [2]],
        [[], []],
    ]
    assert nearest(groups, ["xab"], 1, 1 / 3**0.5 - 1e-9) == [[[0], []]]
    assert nearest(groups, ["xab"], 1, 1 / 3**0.5 + 1e-9) == [[[], []]]
    assert nearest(groups, ["xab"], 1, 1 / 6**0.5 - 1e-9) == [[[0], [2]]]


def test_a_word_of_one_letter_is_one_ngram_and_none_crosses_a_space():
    assert nearest([["x", "xy", "y"]], ["x", "x y", "xy"], 3, 1e-9) == [[[0]], [[0, 2]], [[1]]]


words = st.lists(st.text("abé\U0001f600", min_size=1, max_size=6), min_size=1, max_size=3)
values = st.lists(words.map(" ".join), min_size=1, max_size=6, unique=True)
asked = st.lists(st.lists(st.text("abcé\U0001f600", max_size=7), max_size=4).map(" ".join))


@given(st.lists(values, min_size=1, max_size=3), asked, st.integers(1, 4), st.floats(0.05, 1.0))
def test_equals_plain_cosines(groups, texts, top, least):
    found = nearest(groups, texts, top, least)
    first = np.cumsum([0, *map(len, groups)])
    for text, by_group in zip(texts, found, strict=True):
        for group, before, rows in zip(groups, first[:-1], by_group, strict=True):
            expected = cosines(text, group)
            got = [expected[row - before] for row in rows]
            others = [c for i, c in enumerate(expected) if i + before not in rows]
            assert len(set(rows)) == len(rows) <= top
            assert all(cosine >= least - 1e-12 for cosine in got)
            assert got == pytest.approx(sorted(got, reverse=True), abs=1e-12)
            if len(rows) < top:
                assert all(cosine < least + 1e-12 for cosine in others)
            else:
                assert max(others, default=0.0) <= min(got) + 1e-12


def test_threads_change_nothing():
    groups = [[f"value {number}" for number in range(50)]]
    texts = [f"a value of {number}" for number in range(1000)]
    assert nearest(groups, texts, 3, 0.2, threads=1) == nearest(groups, texts, 3, 0.2, threads=2)


def test_what_is_wrong_is_named():
    index = index_character_ngrams(*spaced(["ab"]), [0, 1])
    points, offsets = spaced(["ab"])
    with pytest.raises(ValueError, match="`points` has no space at an offset"):
        nearest_by_character_ngrams(index, points, np.add(offsets, [1, 0]), top=1, least=0.5)
    for wrong in ({"top": 0, "least": 0.5}, {"top": 1, "least": 0.0}):
        with pytest.raises(ValueError, match="expected at least 1 and a number above 0"):
            nearest_by_character_ngrams(index, points, offsets, **wrong)
    with pytest.raises(TypeError, match="`points` has dtype float64"):
        index_character_ngrams(points.astype(float), offsets, [0, 1])
