import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastscore_kernels import levenshtein_pairs, levenshtein_similarity_pairs
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import levenshtein, levenshtein_similarity

ALPHABETS = (
    "ab",
    "abcdefgh XYZ,.",
    "你好世界是的",
    "aé\u0301ñß",
    "a😀🎉👍\U0010ffff",
    "ab你😀é\x00",
)
texts = st.sampled_from(ALPHABETS).flatmap(lambda letters: st.text(letters, max_size=24))
anything = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@st.composite
def pairs(draw):
    """Draw two texts that may share a prefix and a suffix, and may be equal."""
    start, middle, end = draw(texts), draw(st.one_of(texts, anything)), draw(texts)
    other = draw(st.one_of(texts, anything, st.just(middle)))
    repeat = draw(st.sampled_from([1, 1, 1, 4]))
    return start + middle * repeat + end, draw(st.sampled_from([start, ""])) + other + end


@given(st.lists(pairs(), max_size=3))
def test_equals_the_oracle(rows):
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    assert levenshtein_pairs(a, b).tolist() == [levenshtein(x, y) for x, y in rows]
    expected = [levenshtein_similarity(x, y) for x, y in rows]
    assert levenshtein_similarity_pairs(a, b).tolist() == expected


def test_known_distances():
    a = ["kitten", "", "Saturday", "你好吗", "e\u0301", "👍🏽", "flaw", "abc"]
    b = ["sitting", "four", "Sunday", "你好", "é", "👍", "lawn", "abc"]
    assert levenshtein_pairs(a, b).tolist() == [3, 4, 3, 1, 2, 1, 2, 0]


def test_more_astral_symbols_than_a_pair_may_share():
    many = "".join(chr(0x1F300 + i) for i in range(90))
    a, b = [many, many[:60], "a" + many], [many[::-1], many[60:] + "b", "b" + many[1:] + "a"]
    assert levenshtein_pairs(a, b).tolist() == [
        levenshtein(x, y) for x, y in zip(a, b, strict=True)
    ]


ROWS = (
    ["kitten", "", "你好吗", "a longer text than a view holds"],
    ["sitting", "x", "你好", "a text"],
)


@pytest.mark.parametrize(
    "make",
    [
        list,
        pl.Series,
        lambda rows: pl.Series(rows, dtype=pl.Categorical),
        pa.array,
        lambda rows: pa.array(rows, pa.large_string()),
        lambda rows: pa.array(rows, pa.string_view()),
        lambda rows: pa.array(rows).dictionary_encode(),
        lambda rows: pa.chunked_array([rows[:1], rows[1:]]),
        lambda rows: pa.array(["skipped", *rows, "cut"]).slice(1, len(rows)),
        lambda rows: pa.array(["skipped", *rows, "cut"], pa.string_view()).slice(1, len(rows)),
        lambda rows: pl.Series(["skipped", *rows, "cut"]).slice(1, len(rows)),
        lambda rows: pl.concat([pl.Series(rows[:2]), pl.Series(rows[2:])], rechunk=False),
    ],
)
def test_every_layout_of_strings(make):
    expected = [levenshtein(x, y) for x, y in zip(*ROWS, strict=True)]
    assert levenshtein_pairs(make(ROWS[0]), make(ROWS[1])).tolist() == expected
    assert levenshtein_pairs(make(ROWS[0]), ROWS[1]).tolist() == expected


def test_types_and_empty_columns():
    assert levenshtein_pairs(["a"], ["b"]).dtype == np.int32
    assert levenshtein_similarity_pairs(["a"], ["b"]).dtype == np.float64
    for empty in ([], pl.Series([], dtype=pl.String), pa.array([], pa.string_view())):
        assert levenshtein_pairs(empty, empty).size == 0


def test_repeated_pairs_and_pairs_that_look_repeated():
    rng = np.random.default_rng(5)
    same_edges = ["x" * 8 + "".join(rng.choice(list("abé"), 90)) + "y" * 8 for _ in range(12)]
    others = ["z" + text[::-1] + "w" for text in same_edges]
    very_long = ["".join(rng.choice(list("abc"), 600)) for _ in range(2)]
    rows = [(x, y) for x in same_edges for y in others] + [tuple(very_long)]
    rows = [rows[at] for at in rng.integers(0, len(rows), 600)] + rows[-1:] * 3
    expected = {row: levenshtein(*row) for row in set(rows)}
    a, b = [row[0] for row in rows], [row[1] for row in rows]
    assert levenshtein_pairs(a, b).tolist() == [expected[row] for row in rows]
    assert levenshtein_pairs(b, a).tolist() == [expected[row] for row in rows]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_and_neighbours_change_nothing(threads):
    rng = np.random.default_rng(3)
    size = 20_000
    a, b = (
        ["".join(rng.choice(list("abcd你😀"), k)) for k in rng.integers(0, 40, size)] for _ in "ab"
    )
    together = levenshtein_pairs(a, b, threads=threads)
    for start, stop in ((0, 1), (7, 60), (size - 20, size)):
        alone = levenshtein_pairs(a[start:stop], b[start:stop], threads=1)
        assert together[start:stop].tolist() == alone.tolist()


@pytest.mark.parametrize(
    ("a", "b", "error", "message"),
    [
        (pl.Series(["x", None]), ["a", "b"], ValueError, "null.*position 1"),
        ([None], ["a"], ValueError, "null.*position 0"),
        (["x"], ["a", "b"], ValueError, "`a` has 1 rows and `b` has 2"),
        (pl.Series([1, 2]), ["a", "b"], TypeError, "`a` has type Int64"),
        ([1, 2], ["a", "b"], TypeError, "`a` is list"),
    ],
)
def test_bad_columns_are_named(a, b, error, message):
    with pytest.raises(error, match=message):
        levenshtein_pairs(a, b)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True])
def test_bad_thread_counts_are_named(threads):
    with pytest.raises(ValueError, match="`threads`"):
        levenshtein_pairs(["a"], ["b"], threads=threads)
