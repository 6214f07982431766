"""Summaries: against the standard library's statistics, and for any order of rows."""

import math
import statistics
from dataclasses import replace
from fractions import Fraction
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pytest
from hypothesis import given, settings

from fastscore.suites.declarations import NULL_REASONS_DTYPE, Formula, Metric, Scale
from fastscore.suites.summary import SUMMARY_SCHEMA
from tests.suites.summaries import summarise_metrics

METRIC = Metric(
    id="score",
    name="Score",
    table="rows",
    formula=Formula(text="x"),
    scale=Scale("higher", minimum=None, maximum=None),
    null_when=("missing_input",),
    source="here",
    micro=("top", "bottom"),
)

VALUES = st.one_of(
    st.none(),
    st.floats(-1, 1).filter(lambda x: x == 0 or abs(x) > 1e-100),
    st.integers(-(10**9), 10**9).map(lambda x: x / 1000),
    st.sampled_from([0.0, 1.0, 0.1, 1e-12]),
)
ROWS = st.lists(
    st.tuples(st.integers(0, 4), VALUES, st.floats(0, 9), st.integers(0, 5)), max_size=40
)


def frames(rows: list[tuple[int, Any, float, int]]) -> dict[str, pl.LazyFrame]:
    missing = [{"metric": "score", "reason": "missing_input"}]
    labels = {"dialogue": [f"d{number}" for number in range(5)], "miner_uid": [*"aabb", None]}
    return {
        "rows": pl.LazyFrame(
            {
                "dialogue": [f"d{row[0]}" for row in rows],
                "score": [row[1] for row in rows],
                "top": [row[2] for row in rows],
                "bottom": [row[3] for row in rows],
                "null_reasons": [missing if row[1] is None else [] for row in rows],
            },
            schema={
                "dialogue": pl.String,
                "score": pl.Float64,
                "top": pl.Float64,
                "bottom": pl.Int64,
                "null_reasons": NULL_REASONS_DTYPE,
            },
        ),
        "dialogues": pl.LazyFrame({**labels, "challenge_uid": [None] * 5}),
    }


def summarise(rows: list[tuple[int, Any, float, int]]) -> pl.DataFrame:
    return summarise_metrics(frames(rows), [METRIC], ("miner_uid", "challenge_uid"))


@settings(max_examples=50)
@given(rows=ROWS)
def test_summary_equals_exact_statistics(rows: list[tuple[int, Any, float, int]]) -> None:
    summary = summarise(rows)
    assert dict(summary.schema) == SUMMARY_SCHEMA
    assert "challenge_uid" not in summary["group"]
    groups = {("all", None): range(5), ("miner_uid", "a"): (0, 1), ("miner_uid", "b"): (2, 3)}
    expected = [
        key for key, of in groups.items() if key[1] is None or any(r[0] in of for r in rows)
    ]
    assert list(summary.select("group", "value").rows()) == expected
    largest = max((abs(row[1]) for row in rows if row[1] is not None), default=0.0)
    for row in summary.rows(named=True):
        members = [r for r in rows if r[0] in groups[row["group"], row["value"]]]
        values = [Fraction(r[1]) for r in members if r[1] is not None]
        assert row["n"] == len(values)
        assert row["n_null"] == row["n_missing_input"] == len(members) - len(values)
        assert row["minimum"] == min(values, default=None)
        assert row["maximum"] == max(values, default=None)
        if values:
            mean = float(statistics.mean(values))
            assert row["mean"] == pytest.approx(mean, rel=1e-15, abs=largest * 2**-51)
        if len(values) > 1:
            sd = math.sqrt(statistics.variance(values))
            assert row["sd"] == pytest.approx(sd, rel=1e-12, abs=largest * 1e-12)
        else:
            assert row["sd"] is None
        top, bottom = (sum(Fraction(r[i]) for r in members) for i in (2, 3))
        assert row["micro_numerator"] == pytest.approx(float(top), abs=1e-13)
        assert row["micro_denominator"] == float(bottom)
        assert row["micro"] == (pytest.approx(float(top / bottom)) if bottom else None)


def test_equal_values_have_no_deviation() -> None:
    summary = summarise([(0, 0.1, 0.0, 0)] * 7)
    assert summary["sd"].to_list() == [0.0, 0.0]
    assert summary["mean"].to_list() == [0.1, 0.1]


@pytest.mark.parametrize(("minimum", "maximum"), [(None, 1.0), (0.0, None), (None, None)])
def test_a_metric_may_have_one_bound_or_none(minimum: float | None, maximum: float | None) -> None:
    tables = frames([(0, 0.5, 1.0, 1), (1, 0.25, 1.0, 1)])
    metric = replace(METRIC, scale=Scale("higher", minimum, maximum))
    assert summarise_metrics(tables, [metric], ())["mean"].to_list() == [0.375]


def test_values_beyond_64_bits_are_added_up_exactly() -> None:
    rows = [(0, 2.0**80, 0.0, 0), (0, 2.0**81, 0.0, 0), (0, 2.0**80 * 3, 0.0, 0)]
    summary = summarise(rows)
    assert summary["mean"].to_list() == [2.0**81] * 2
    assert summary["maximum"].to_list() == [2.0**80 * 3] * 2


SWITCHED_OFF = [(number % 5, None, 1.0, 1) for number in range(7)]


def test_reasons_of_what_is_switched_off_are_counted_without_being_read() -> None:
    read = summarise(SWITCHED_OFF)
    tables = frames(SWITCHED_OFF)
    unread = {**tables, "rows": tables["rows"].drop("null_reasons")}
    labels = ("miner_uid", "challenge_uid")
    counted = summarise_metrics(unread, [METRIC], labels, switched_off={"score": "missing_input"})
    assert counted.equals(read, null_equal=True)


def test_reasons_are_read_where_a_metric_is_not_null_in_every_row() -> None:
    rows = [*SWITCHED_OFF, (0, 0.5, 1.0, 1)]
    summary = summarise_metrics(frames(rows), [METRIC], (), switched_off={"score": "bad_input"})
    assert summary.select("n", "n_null", "n_missing_input", "n_bad_input").row(0) == (1, 7, 7, 0)


def test_what_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'score' holds NaN"):
        summarise([(0, math.nan, 1.0, 1), (1, 0.5, 1.0, 1), (2, None, 1.0, 1)])
    tables = frames([(0, math.inf, 1.0, 1)])
    with pytest.raises(ValueError, match="'score', far out of its declared range"):
        summarise_metrics(tables, [replace(METRIC, scale=Scale("higher"))], ())
