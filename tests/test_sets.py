"""Kernels of lists as functions of Series and as expressions, against plain Python."""

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore import sets
from fastscore.errors import FastscoreError, UsageError
from tests.oracles import kernels as naive

MEMBERS = {
    pl.String: st.sampled_from(
        ["", "a", "b", "é", "e\u0301", "你好", "a text of more than twelve"]
    ),
    pl.Int64: st.sampled_from([0, 1, -1, 7, 2**62, -(2**63)]),
    pl.UInt64: st.sampled_from([0, 1, 2**64 - 1]),
    pl.Int8: st.integers(-2, 2),
    pl.Float64: st.sampled_from([0.0, 0.5, 1.0, -3.25, math.inf]),
}
DTYPES = st.sampled_from(list(MEMBERS))


def rows_of(dtype):
    lists = st.none() | st.lists(st.none() | MEMBERS[dtype], max_size=6)
    return st.lists(st.tuples(lists, lists), max_size=5)


def members(row):
    return {member for member in row or () if member is not None}


def both(rows, function):
    return [None if a is None or b is None else function(members(a), members(b)) for a, b in rows]


def called(function, frame, **options):
    """Call a function in every way and return the result, which is equal."""
    series = function(*frame, **options)
    for query in (
        frame.lazy().select(function(*frame.columns, **options)),
        frame.lazy().select(function(*map(pl.col, frame.columns), **options)),
    ):
        assert query.collect().to_series().equals(series, null_equal=True, check_names=True)
        streamed = query.collect(engine="streaming").to_series()
        assert streamed.equals(series, check_dtypes=True)
    assert isinstance(series, pl.Series)
    return series


@given(st.data(), DTYPES)
def test_pairs_equal_the_oracle_however_they_are_called(data, dtype):
    rows = data.draw(rows_of(dtype))
    kind = pl.List(dtype)
    frame = pl.DataFrame(rows, schema={"a": kind, "b": kind}, orient="row")
    expected = both(rows, lambda a, b: naive.jaccard(a, b, 1.0))
    assert called(sets.jaccard, frame).to_list() == expected
    weights = sets.idf(frame["a"])
    assert weights == naive.idf([members(a) for a, _ in rows if a is not None])
    weights = dict(list(weights.items())[1:])
    cosines = both(rows, lambda a, b: naive.weighted_cosine(a, b, weights))
    found = called(sets.idf_cosine, frame, idf=weights).to_list()
    assert found == [None if one is None else pytest.approx(one, rel=1e-12) for one in cosines]


def test_integers_without_a_sign_equal_those_with_one_if_none_is_negative():
    unsigned = pl.Series([[2**64 - 1, 1]], dtype=pl.List(pl.UInt64))
    signed = pl.Series([[1, 2]], dtype=pl.List(pl.Int64))
    assert called(sets.jaccard, pl.DataFrame({"a": unsigned, "b": signed})).item() == 1 / 3
    weighted = sets.idf_cosine(unsigned, unsigned, idf={1: 2.0})
    assert weighted.item() == 1.0
    with pytest.raises(UsageError, match="lists of UInt64 and `b` of Int64; expected one kind"):
        sets.jaccard(unsigned, pl.Series([[-1]], dtype=pl.List(pl.Int64)))


def test_options_and_numbers_by_hand():
    empty = pl.Series("said", [[]])
    assert sets.jaccard(empty, empty, both_empty=0.0).item() == 0.0
    assert sets.jaccard(empty, empty).name == "said"
    # |1 - 3| twice, by 2 * 4 * 2; equal; all zero; one
    samples = pl.Series([[1, 3], [2, 2, 2], [0, 0], [5], [], [1, None, 3]])
    assert sets.gini(samples).to_list() == [0.25, 0.0, 0.0, 0.0, None, 0.25]
    assert sets.distinct_ratio(samples).to_list() == [1.0, 1 / 3, 0.5, 1.0, None, 1.0]


@pytest.mark.parametrize("size", [12, 13])
def test_many_members_that_differ_in_their_last_characters_are_told_apart(size):
    a = [str(number).rjust(size, "0") for number in range(3000)]
    b = [str(number).rjust(size, "0") for number in range(2000, 6000)]
    assert sets.jaccard(pl.Series([a]), pl.Series([b])).item() == 1000 / 6000


def test_groups_and_windows_by_implode():
    frame = pl.DataFrame(
        {"user": [1, 1, 2, 2, 2], "spent": [0.0, 1.0, 4.0, 4.0, 4.0], "word": [*"abaab"]}
    )
    coefficient = sets.gini(pl.col("spent").implode())
    for engine in ("in-memory", "streaming"):
        groups = frame.lazy().group_by("user", maintain_order=True)
        found = groups.agg(coefficient, sets.distinct_ratio(pl.col("word").implode())).collect(
            engine=engine
        )
        assert found.rows() == [(1, 0.5, 1.0), (2, 0.0, 2 / 3)]
        assert frame.lazy().select(coefficient).collect(engine=engine).height == 1
    assert frame.with_columns(g=coefficient.over("user"))["g"].to_list() == [
        0.5,
        0.5,
        0.0,
        0.0,
        0.0,
    ]
    # each word beside all words of its user
    share = sets.jaccard(pl.concat_list("word"), pl.col("word").implode()).over("user")
    assert frame.select(share).to_series().to_list() == [0.5] * 5


def test_equal_numbers_are_equal_members():
    zeros, others = pl.Series([[0.0, math.nan]]), pl.Series([[-0.0, math.nan, math.nan]])
    assert sets.jaccard(zeros, others).item() == 1.0
    small, wide = pl.Series([[1, 2]], dtype=pl.List(pl.Int8)), pl.Series([[2, 3]])
    assert sets.jaccard(small, wide).item() == 1 / 3
    assert sets.idf_cosine(small, wide, idf={1: 1.0, 2: 1.0, 3: 1.0}).item() == pytest.approx(0.5)


def test_other_columns_of_lists_are_read():
    array = pl.Series([[1, 2], [3, 3]], dtype=pl.Array(pl.Int64, 2))
    assert sets.distinct_ratio(array).to_list() == [1.0, 0.5]
    words = pl.Series([["a", "b"], None], dtype=pl.List(pl.Categorical))
    assert sets.jaccard(words, pl.Series([["a"]])).to_list() == [0.5, None]
    empty = pl.Series([[], []])
    assert sets.jaccard(empty, words).to_list() == [0.0, None]
    assert sets.jaccard(empty, empty).to_list() == [1.0, 1.0]
    nothing = pl.Series([None, None])
    assert sets.jaccard(nothing, words).to_list() == [None, None]
    assert sets.gini(empty).to_list() == [None, None]
    assert sets.gini(nothing).to_list() == [None, None]
    assert sets.idf_cosine(words, words, idf={}).to_list() == [0.0, None]
    sliced = pl.Series([["a"], ["b", "b"], ["c"]])[1:]
    assert sets.distinct_ratio(sliced).to_list() == [0.5, 1.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sets.gini(pl.Series([1.0])),
            "`values` has dtype Float64; expected lists of strings or numbers. `.implode()` makes "
            "one list of a column or group.",
        ),
        (
            lambda: sets.jaccard(pl.Series([["a"]]), pl.Series([[True]])),
            "`b` has dtype List(Boolean); expected lists of strings or numbers.",
        ),
        (
            lambda: sets.jaccard(pl.Series([["a"]]), pl.Series([[1]])),
            "`a` has lists of String and `b` of Int64; expected one kind of members.",
        ),
        (
            lambda: sets.gini(pl.Series([["a"]])),
            "`values` has dtype List(String); expected lists of numbers.",
        ),
        (
            lambda: sets.gini(pl.Series([[1.0, -2.0]])),
            "`values` has the member -2.0; expected numbers of at least 0.",
        ),
        (
            lambda: sets.idf_cosine("a", "b", idf=[1.0]),
            "`idf` is of type list; expected a weight for each member, as in {'comedy': 1.5}.",
        ),
        (
            lambda: sets.idf_cosine("a", "b", idf={"a": 1.0, None: 2.0}),
            "`idf` has members of types NoneType and str; expected strings or numbers alone.",
        ),
        (lambda: sets.idf("a"), "`sets` is of type str; expected a Series of lists."),
    ],
)
def test_what_is_no_argument_is_refused_in_a_sentence(call, message):
    with pytest.raises(UsageError) as refused:
        call()
    assert str(refused.value) == message


def test_queries_refuse_other_columns_too():
    frame = pl.LazyFrame({"a": [["x"]], "b": [1]})
    for engine in ("in-memory", "streaming"):
        with pytest.raises(FastscoreError, match="`b` has dtype Int64; expected lists of strings"):
            frame.select(sets.jaccard("a", "b")).collect(engine=engine)
