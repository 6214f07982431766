"""Kernels of texts as functions of Series and as expressions, against plain Python."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore import text
from fastscore.errors import FastscoreError, UsageError
from tests.oracles import kernels as naive

words = st.one_of(
    st.text(max_size=8), st.sampled_from(["e\u0301", "é", "😀", "你好", "don't", "A b a B"])
)
texts = st.none() | st.lists(words, max_size=5).map(" ".join)
columns = st.lists(st.tuples(texts, texts), max_size=6)


def similarity(a, b):
    return naive.levenshtein_similarity(a, b) if a or b else 1.0


def overlap(a, b):
    return naive.jaccard(naive.character_ngrams(a, 2), naive.character_ngrams(b, 2), 1.0)


ORACLES = {
    text.levenshtein: naive.levenshtein,
    text.levenshtein_similarity: similarity,
    text.copy_ratio: lambda a, b: naive.copy_ratio(a, b, (3, 4)),
    text.ngram_overlap: overlap,
}


@pytest.mark.parametrize("function", ORACLES)
@given(columns)
def test_equals_the_oracle_however_it_is_called(function, rows):
    expected = [None if a is None or b is None else ORACLES[function](a, b) for a, b in rows]
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")
    series = function(frame["a"], frame["b"])
    assert series.to_list() == expected
    for each in (
        frame.select(function("a", "b")),
        frame.lazy().select(function(pl.col("a"), "b")).collect(),
        frame.lazy().select(function("a", pl.col("b"))).collect(engine="streaming"),
    ):
        assert each.to_series().equals(series, check_dtypes=True, check_names=True)


def test_options_by_hand():
    empty = pl.Series("said", [""])
    assert text.levenshtein(empty, empty).name == "said"
    assert text.levenshtein(empty, empty).dtype == pl.Int32
    assert text.levenshtein_similarity(empty, empty, both_empty=0.0).item() == 0.0
    # shorter than n: a text is an n-gram by itself
    night, nacht = pl.Series(["night"]), pl.Series(["nacht"])
    assert text.ngram_overlap(night, nacht, n=6).item() == 0.0
    assert text.ngram_overlap(night, night, n=6).item() == 1.0
    assert text.ngram_overlap(empty, empty, both_empty=0.5).item() == 0.5
    assert text.ngram_overlap(empty, night, both_empty=0.5).item() == 0.0
    # one two three, two three four: the first is copied
    copied = text.copy_ratio(
        pl.Series(["One two three four", "one"]), pl.Series(["ONE, two three!"]), orders=[3]
    )
    assert copied.to_list() == [0.5, 0.0]


def test_one_row_is_compared_with_every_row():
    frame = pl.DataFrame({"a": ["ab", None, "b"]})
    against = frame.select(
        text.levenshtein("a", pl.lit("a")), one=text.levenshtein(pl.lit("a"), "a")
    )
    assert against.rows() == [(1, 1), (None, None), (1, 1)]
    assert text.levenshtein(frame["a"], pl.Series(["a"])).to_list() == [1, None, 1]
    assert frame.clear().select(text.levenshtein("a", pl.lit("a"))).height == 0


def test_groups_and_windows_have_rows_of_their_own():
    frame = pl.DataFrame({"user": [1, 2, 1, 2], "a": ["hey", "you", "he", "yo"]})
    # each text beside the first of its user
    distance = text.levenshtein("a", pl.col("a").first())
    assert frame.with_columns(d=distance.over("user"))["d"].to_list() == [0, 0, 1, 1]
    for engine in ("in-memory", "streaming"):
        groups = frame.lazy().group_by("user", maintain_order=True)
        means = groups.agg(text.levenshtein("a", pl.lit("he")).mean().alias("d"))
        # hey 1 and he 0; you 3 and yo 2
        assert means.collect(engine=engine).rows() == [(1, 0.5), (2, 2.5)]


def test_other_columns_of_strings_are_read():
    for dtype in (pl.Categorical, pl.Enum(["ab", "b"])):
        column = pl.Series(["ab", "b", None], dtype=dtype)
        assert text.levenshtein(column, pl.Series(["b"])).to_list() == [1, 0, None]
    nothing = pl.Series([None, None])
    assert text.levenshtein(nothing, nothing).to_list() == [None, None]
    assert text.levenshtein(nothing.clear(), nothing.clear()).to_list() == []
    sliced = pl.Series(["a" * 40, None, "b" * 30, "c"])[1:3]
    assert text.levenshtein(sliced, pl.Series(["b"])).to_list() == [None, 29]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: text.levenshtein(pl.Series([1]), pl.Series(["a"])),
            "`a` has dtype Int64; expected String.",
        ),
        (
            lambda: text.copy_ratio(pl.Series(["a"]), pl.Series([["a"]])),
            "`source` has dtype List(String); expected String.",
        ),
        (
            lambda: text.levenshtein(pl.Series(["a"]), "b"),
            "`a` is a Series and `b` is of type str; expected Series alone, or column names and "
            "expressions alone.",
        ),
        (
            lambda: text.levenshtein(["a"], "b"),
            "`a` is of type list; expected a polars Series, the name of a column, or an "
            "expression.",
        ),
        (
            lambda: text.levenshtein(pl.Series(["a", "b"]), pl.Series(["a"] * 3)),
            "`b` has 3 rows and `a` has 2; expected as many, or one.",
        ),
        (lambda: text.ngram_overlap("a", "b", n=7), "`n` is 7; expected an integer from 1 to 6."),
        (
            lambda: text.copy_ratio("a", "b", orders=[0]),
            "`orders` is [0]; expected integers of at least 1, as in (3, 4).",
        ),
    ],
)
def test_what_is_no_argument_is_refused_in_a_sentence(call, message):
    with pytest.raises(UsageError) as refused:
        call()
    assert str(refused.value) == message


def test_queries_refuse_other_columns_too():
    frame = pl.LazyFrame({"a": ["x"], "b": [1]})
    for engine in ("in-memory", "streaming"):
        with pytest.raises(FastscoreError, match="`b` has dtype Int64; expected String"):
            frame.select(text.levenshtein("a", "b")).collect(engine=engine)


def test_a_query_knows_its_dtypes_before_it_runs():
    frame = pl.LazyFrame({"a": ["x"], "b": ["y"]})
    schema = frame.select(
        text.levenshtein("a", "b"), s=text.ngram_overlap("a", "b")
    ).collect_schema()
    assert schema == {"a": pl.Int32, "s": pl.Float64}
