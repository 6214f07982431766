"""Sums and intervals of a summary: against plain Python, fractions and SciPy."""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given, settings

from fastscore.suites import columns
from fastscore.suites import summary as summaries
from fastscore.suites.declarations import NULL_REASONS_DTYPE, Metric, Scale
from fastscore.suites.sums import choose_grids
from tests.conftest import often
from tests.suites.summaries import summarise_metrics
from tests.suites.test_summary import SCORE as OF_DIALOGUES

Row = tuple[Any, ...]
SCORE = replace(OF_DIALOGUES, table="rows")
BOUNDED = replace(SCORE, scale=Scale("higher"))
KEY = ("file", "dialogue")
PLACE = pl.col("file").replace_strict({"a": 300, "b": 600}, default=0, return_dtype=pl.Int64)
NAME = pl.col("dialogue") + PLACE
LABELS = ("level", "kind", "absent")
DIALOGUE_SCHEMA = {
    "file": pl.String,
    "dialogue": pl.Int64,
    "level": pl.Int64,
    "kind": pl.String,
    "absent": pl.String,
}
FILES, NUMBERS = st.sampled_from(["a", "b", None]), st.integers(0, 3)
KINDS = st.sampled_from([None, "", "é", "z", "𝔷", "Z"])
DIALOGUES = st.lists(
    st.tuples(FILES, NUMBERS, st.none() | st.integers(0, 20), KINDS, st.none()), max_size=12
)
VALUES = st.none() | st.floats(-1, 1) | st.sampled_from([0.5, -0.5, 1.0, -1.0, 2.0**-40, -0.0])
ROWS = st.lists(st.tuples(FILES, NUMBERS, VALUES), max_size=20)


def tables(dialogues: Sequence[Row], rows: Sequence[Row]) -> dict[str, pl.LazyFrame]:
    """Return the dialogues with their labels, and rows of them with a score."""
    missing = [{"metric": "score", "reason": "missing_input"}]
    frame = pl.DataFrame(
        rows,
        schema={**{name: DIALOGUE_SCHEMA[name] for name in KEY}, "score": pl.Float64},
        orient="row",
    )
    reasons = pl.Series(
        "null_reasons",
        [missing if value is None else [] for value in frame["score"]],
        dtype=NULL_REASONS_DTYPE,
    )
    return {
        "rows": frame.with_columns(reasons, NAME).lazy(),
        "dialogues": pl.LazyFrame(dialogues, schema=DIALOGUE_SCHEMA, orient="row").with_columns(
            NAME
        ),
    }


def summarise(
    dialogues: Sequence[Row], rows: Sequence[Row], metric: Metric = SCORE
) -> pl.DataFrame:
    return summarise_metrics(tables(dialogues, rows), [metric], LABELS)


def members(dialogues: Sequence[Row], rows: Sequence[Row]) -> dict[tuple[str, Any], list[Row]]:
    """Return the rows of every value of a label; of several dialogues with a key the first counts.

    Also the rows of all, under ``("all", None)``.
    """
    first: dict[Any, Row] = {}
    for dialogue in dialogues:
        first.setdefault(dialogue[:2], dialogue)
    found: dict[tuple[str, Any], list[Row]] = {("all", None): list(rows)}
    for place, name in enumerate(LABELS, len(KEY)):
        values = sorted({str(one[place]) for one in first.values() if one[place] is not None})
        for value in values:
            of_value = [
                row
                for row in rows
                if row[:2] in first
                and first[row[:2]][place] is not None
                and str(first[row[:2]][place]) == value
            ]
            if of_value:
                found[name, value] = of_value
    return found


@settings(max_examples=often(25, 400), deadline=None)
@given(dialogues=DIALOGUES, rows=ROWS, data=st.data())
def test_a_summary_by_label_is_that_of_plain_python(
    dialogues: list[Row], rows: list[Row], data: st.DataObject
) -> None:
    summary = summarise(dialogues, rows)
    expected = members(dialogues, rows)
    assert summary.select("group", "value").rows() == list(expected)
    bits = choose_grids(
        pl.DataFrame({"score": [row[2] for row in rows]}, {"score": pl.Float64}), [SCORE]
    )["score"]
    for row in summary.rows(named=True):
        of_group = expected[row["group"], row["value"]]
        values = [one[2] for one in of_group if one[2] is not None]
        assert (row["minimum"], row["maximum"]) == (
            min(values, default=None),
            max(values, default=None),
        )
        assert (row["n"], row["n_null"]) == (len(values), len(of_group) - len(values))
        assert row["n_missing_input"] == row["n_null"]
        assert row["n_units"] == len({one[:2] for one in of_group if one[2] is not None})
        whole = [round(Fraction(value) * Fraction(2) ** bits) for value in values]
        if values:
            mean = Fraction(sum(whole), len(whole))
            assert row["mean"] == float(mean / Fraction(2) ** bits)
        if len(values) > 1:
            squares = sum((one - mean) ** 2 for one in whole) / (len(whole) - 1)
            assert row["sd"] == math.ldexp(math.sqrt(squares), -bits)
    shuffled = data.draw(st.permutations(rows))
    assert summarise(dialogues, shuffled).equals(summary, null_equal=True)


@settings(max_examples=often(12, 200), deadline=None)
@given(dialogues=DIALOGUES, rows=ROWS, size=st.integers(1, 4))
def test_a_summary_depends_neither_on_batches_nor_on_columns_at_once(
    dialogues: list[Row], rows: list[Row], size: int
) -> None:
    metrics = [replace(BOUNDED, micro=("score", "n")), replace(SCORE, id="other")]
    frames = tables(dialogues, rows)
    frames["rows"] = frames["rows"].with_columns(
        pl.col("score").abs(), pl.lit(2).alias("n"), pl.col("score").alias("other")
    )
    whole = summarise_metrics(frames, metrics, LABELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BATCH_ROWS", size)
        patch.setattr(summaries, "BYTES_AT_ONCE", 1)
        parts = summarise_metrics(frames, metrics, LABELS)
    assert parts.equals(whole, null_equal=True)


@settings(max_examples=often(12, 200), deadline=None)
@given(dialogues=DIALOGUES.filter(bool), rows=ROWS)
def test_keys_of_one_hash_are_told_apart(dialogues: list[Row], rows: list[Row]) -> None:
    """Rows of known dialogues have their own labels, whatever their keys hash to."""
    known = {dialogue[:2] for dialogue in dialogues}
    rows = [row for row in rows if row[:2] in known]
    expected = summarise(dialogues, rows)
    hash_of = summaries._hash_of

    def hash_badly(columns: Sequence[str], seed: int) -> pl.Expr:
        return hash_of(columns, seed) & pl.lit([0, 2**64 - 1][min(seed, 1)], pl.UInt64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "_hash_of", hash_badly)
        found = summarise(dialogues, rows)
    assert found.equals(expected, null_equal=True)


@settings(max_examples=often(12, 200), deadline=None)
@given(rows=st.lists(st.tuples(FILES, NUMBERS, VALUES, KINDS), max_size=20))
def test_rows_that_carry_labels_are_summarised_by_their_own(rows: list[Row]) -> None:
    """The units of a label's value are the dialogues that have a row with it."""
    frames = tables([], [row[:3] for row in rows])
    kinds = pl.Series("kind", [row[3] for row in rows], dtype=pl.String)
    labelled = {"rows": frames["rows"].with_columns(kinds), "dialogues": frames["dialogues"]}
    summary = summarise_metrics(labelled, [SCORE], ("kind",))
    for row in summary.filter(group="kind").rows(named=True):
        of_kind = [one for one in rows if one[3] == row["value"]]
        assert row["n"] + row["n_null"] == len(of_kind)
        assert row["n_units"] == len({one[:2] for one in of_kind if one[2] is not None})


def rows_of(*dialogues: Sequence[float]) -> list[Row]:
    """Return the rows of dialogues 0, 1, ... with these scores."""
    return [("a", number, value) for number, values in enumerate(dialogues) for value in values]


def test_an_interval_of_equal_dialogues_is_that_of_their_means() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 5)) + rng.normal(size=(7, 1))
    expected = scipy.stats.ttest_1samp(values.mean(axis=1), 0.0).confidence_interval()
    row = summarise([], rows_of(*values.tolist())).row(0, named=True)
    assert (row["n"], row["n_units"], row["degrees_of_freedom"]) == (35, 7, pytest.approx(6))
    assert row["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(expected, rel=1e-10)


def test_a_column_makes_other_units() -> None:
    frames = tables([], rows_of([1.0, 2.0], [3.0], [4.0], [5.0, 6.0]))
    # of the user "u" are dialogues 0 and 1
    user = (pl.col("dialogue") % 300).replace_strict({0: "u", 1: "u", 2: "v", 3: "w"})
    clustered = {name: frame.with_columns(user=user) for name, frame in frames.items()}
    row = summarise_metrics(clustered, [SCORE], (), cluster="user").row(0, named=True)
    merged = summarise([], rows_of([1.0, 2.0, 3.0], [4.0], [5.0, 6.0])).row(0, named=True)
    assert (row.pop("units"), merged.pop("units")) == ("user", "dialogue")
    assert row == merged
    assert row["n_units"] == 3


@pytest.mark.parametrize(
    ("dialogues", "reason"),
    [
        ([], "too_few_units"),
        ([[0.5, 0.25]], "too_few_units"),
        ([[0.5], [0.25, 0.75]], "too_few_units"),
        ([[0.5, 0.25], [0.25, 0.5], [0.25, 0.5]], "zero_variance"),
        ([[0.5], [0.25], [0.5]], None),
        ([[1.0], [1.0], [1.0]], None),
    ],
)
def test_an_interval_or_the_reason_why_there_is_none(
    dialogues: list[list[float]], reason: str | None
) -> None:
    row = summarise([], rows_of(*dialogues), BOUNDED).row(0, named=True)
    assert (row["ci_low"] is None, row["ci_high"] is None) == (bool(reason), bool(reason))
    assert row["interval_reason"] == reason
    if reason is None:
        assert 0.0 <= row["ci_low"] < row["ci_high"] <= 1.0
