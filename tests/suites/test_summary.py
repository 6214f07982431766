"""Summaries of small tables, worked out by hand: grids, reasons of nulls, order, micro averages."""

import math
from dataclasses import replace

import polars as pl
import pytest

from fastscore.suites import sums as sums_module
from fastscore.suites.declarations import NULL_REASONS_DTYPE, Formula, Metric, Scale
from fastscore.suites.sums import choose_grids, sum_rows
from tests.suites.summaries import summarise_metrics

SCORE = Metric(
    id="score",
    name="Score",
    formula=Formula(text="x"),
    scale=Scale("higher", minimum=None, maximum=None),
    null_when=("missing_input",),
    source="here",
)
LABELS = ("miner",)


def table(scores, reasons, miners=("a", "b")):
    """Return rows with a score, its reason where it is null, and a label."""
    listed = [
        None if reason is None else [{"metric": "score", "reason": reason}] if reason else []
        for reason in reasons
    ]
    return {
        "dialogues": pl.LazyFrame(
            {"miner": miners, "score": scores, "null_reasons": listed},
            schema={"miner": pl.String, "score": pl.Float64, "null_reasons": NULL_REASONS_DTYPE},
        )
    }


def reasons_of(tables, **known):
    """Return by value of the label (None: all rows) how often each reason was counted."""
    summary = summarise_metrics(tables, [SCORE], LABELS, **known)
    names = ("n_not_applicable", "n_missing_input", "n_bad_input", "n_no_vector")
    return {row["value"]: tuple(row[name] for name in names) for row in summary.to_dicts()}


@pytest.mark.parametrize(
    ("rows", "minimum", "maximum", "bits"),
    [
        # squares of magnitude 2^(2 * 62) or less, one to three of them, stay below 2^126
        (1, 0.0, 0.75, 62),
        (3, 0.0, 0.75, 62),
        # four or more, counted as 2^3 at most, of 2^(2 * 61)
        (4, 0.0, 0.75, 61),
        (7, 0.0, 0.75, 61),
        # counted as 2^5 at most: (126 - 5) / 2, rounded down
        (16, 0.0, 0.75, 60),
        # five is below 2^3: three bits stand before the point; whichever end is further from 0
        (1, 0.0, 5.0, 59),
        (1, -5.0, 1.0, 59),
        (1, -1.0, 5.0, 59),
    ],
)
def test_a_grid_leaves_room_for_the_sum_of_squares(rows, minimum, maximum, bits):
    metric = replace(SCORE, scale=Scale("higher", minimum, maximum))
    assert choose_grids(pl.DataFrame({"score": [0.5] * rows}), [metric]) == {"score": bits}


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ([0.5, -6.0, None], 59),  # 6 is below 2^3
        ([2.0**-1000, None], 962),  # no finer than 2^-(62 + 900)
        ([2.0**70], 62 - 71),
    ],
)
def test_a_grid_without_a_whole_range_is_that_of_the_largest_magnitude(values, bits):
    for minimum, maximum in ((None, None), (0.0, None), (None, 99.0)):
        metric = replace(SCORE, scale=Scale("higher", minimum, maximum))
        assert choose_grids(pl.DataFrame({"score": values}), [metric]) == {"score": bits}


def test_a_number_on_a_grid_is_a_multiple_of_a_power_of_two():
    rows = pl.DataFrame({"row": [0, 1, 2], "value": [0.75, -0.5, None]})
    sums = sum_rows(rows, ["row"], ["row"], {"value": 5}).sort("row")
    assert sums["value:sum"].to_list() == [24, -16, 0]  # of 1/32
    assert sums["value:squares"].to_list() == [576, 256, 0]  # of 1/1024
    assert sums["value:n"].to_list() == [1, 1, 0]


def test_sums_are_merged_while_runs_are_read(monkeypatch):
    monkeypatch.setattr(sums_module, "_RUNS_AT_ONCE", 4)
    monkeypatch.setattr(sums_module, "BATCH_ROWS", 1)
    values = {"value": [1.0, None, -3.0] * 9, "other": [2.0] * 27}
    rows = pl.DataFrame({"key": ["a", "b", None] * 9, **values, "fixed": [True, True, False] * 9})
    grids, flags = {"value": 0, "other": 0}, ("fixed",)
    sums = sum_rows(rows.lazy(), ["key"], ["key"], grids, ("other",), flags).sort("key")
    other = (9, 18, 36, 2.0, 2.0)
    assert sums.rows() == [
        (None, 9, 9, -27, 81, -3.0, -3.0, *other, 2.0, 2.0, 0),
        ("a", 9, 9, 9, 9, 1.0, 1.0, *other, 2.0, 2.0, 9),
        ("b", 9, 0, 0, 0, None, None, *other, 2.0, 2.0, 9),
    ]


def test_only_columns_that_are_summed_are_read():
    rows = pl.LazyFrame({"key": ["a", "a"], "value": [1.0, 2.0], "other": ["no number", "none"]})
    rows = rows.with_columns(pl.col("other").cast(pl.Float64))
    assert sum_rows(rows, ["key"], ["key"], {"value": 0})["value:sum"].to_list() == [3]
    with pytest.raises(pl.exceptions.InvalidOperationError, match="no number"):
        sum_rows(rows, ["key"], ["key"], {"other": 0})


def test_a_list_of_reasons_that_is_null_gives_none():
    tables = table([0.5, None, None, None], [None, "bad_input", "", None], [*"aaab"])
    assert reasons_of(tables) == {None: (0, 0, 1, 0), "a": (0, 0, 1, 0), "b": (0, 0, 0, 0)}


def test_a_sole_reason_counts_the_nulls_of_each_label():
    tables = table([None, 0.5, None], ["", "", ""], [*"aba"])
    assert reasons_of(tables, sole_reasons={"score": "no_vector"}) == {
        None: (0, 0, 0, 2),
        "a": (0, 0, 0, 2),
        "b": (0, 0, 0, 0),
    }


def test_a_sole_reason_stands_before_that_of_what_is_switched_off():
    tables = table([None, None], ["", ""])
    known = {"sole_reasons": {"score": "no_vector"}, "switched_off": {"score": "not_applicable"}}
    assert reasons_of(tables, **known)[None] == (0, 0, 0, 2)


def test_what_has_a_value_under_one_label_is_not_switched_off():
    tables = table([None, 0.5], ["missing_input", ""])
    assert reasons_of(tables, switched_off={"score": "not_applicable"}) == {
        None: (0, 1, 0, 0),
        "a": (0, 1, 0, 0),
        "b": (0, 0, 0, 0),
    }


def test_rows_are_in_the_order_of_values_and_then_of_metrics_as_declared():
    rows = pl.LazyFrame(
        {"miner": ["b", "a"], "score": [0.5, 1.0], "cost": [1.0, 2.0], "null_reasons": [[], []]},
        schema_overrides={"null_reasons": NULL_REASONS_DTYPE},
    )
    metrics = [SCORE, replace(SCORE, id="cost")]
    summary = summarise_metrics({"dialogues": rows}, metrics, LABELS)
    assert summary.select("group", "value", "metric", "mean").rows() == [
        ("all", None, "score", 0.75),
        ("all", None, "cost", 1.5),
        ("miner", "a", "score", 1.0),
        ("miner", "a", "cost", 2.0),
        ("miner", "b", "score", 0.5),
        ("miner", "b", "cost", 1.0),
    ]


def test_extremes_that_are_zero_have_no_sign():
    tables = table([-0.0, -1.0, -0.0, 1.0], [""] * 4, [*"aabb"])
    summary = summarise_metrics(tables, [SCORE], LABELS)
    assert [repr(one) for one in summary["maximum"].to_list()] == ["1.0", "0.0", "1.0"]
    assert [repr(one) for one in summary["minimum"].to_list()] == ["-1.0", "-1.0", "0.0"]


def test_values_beyond_64_bits_are_added_up_exactly():
    summary = summarise_metrics(
        table([2.0**80, 2.0**81, 2.0**80 * 3], [""] * 3, [*"aaa"]), [SCORE], LABELS
    )
    assert summary["mean"].to_list() == [2.0**81] * 2
    assert summary["maximum"].to_list() == [2.0**80 * 3] * 2


def test_reasons_of_what_is_switched_off_are_counted_without_being_read():
    tables = table([None] * 3, ["missing_input"] * 3, [*"aba"])
    unread = {"dialogues": tables["dialogues"].drop("null_reasons")}
    known = {"switched_off": {"score": "missing_input"}}
    assert (
        reasons_of(unread, **known)
        == reasons_of(tables)
        == {None: (0, 3, 0, 0), "a": (0, 2, 0, 0), "b": (0, 1, 0, 0)}
    )


def test_what_is_no_number_is_refused_by_name():
    with pytest.raises(ValueError, match="'score' holds NaN"):
        summarise_metrics(
            table([math.nan, 0.5, None], ["", "", "bad_input"], [*"aab"]), [SCORE], ()
        )
    bounded = replace(SCORE, scale=Scale("higher"))
    with pytest.raises(ValueError, match="'score', far out of its declared range"):
        summarise_metrics(table([math.inf, 0.5], ["", ""]), [bounded], ())
