"""Summaries by hand and against plain Python: grids, labels, units, intervals, parts."""

import io
import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
import scipy.stats
from hypothesis import given, settings

from fastscore import open_run
from fastscore.api.examples import example_names
from fastscore.errors import UsageError
from fastscore.settings.options import build_options
from fastscore.suites import columns
from fastscore.suites import summary as summaries
from fastscore.suites import sums as sums_module
from fastscore.suites.declarations import NULL_REASONS_DTYPE, Design, Fixed, Formula, Metric, Scale
from fastscore.suites.summary import Added, add_up_parts, joint_sizes, measure_parts, summarise
from fastscore.suites.sums import (
    ALONE,
    estimate,
    grids_of,
    joined_values,
    name_of,
    size_of,
    sum_by_dialogue,
    sum_rows,
)
from tests.conftest import often
from tests.suites.summaries import suite_of, summarise_metrics

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
    scores = pl.DataFrame({"score": [0.5] * rows})
    assert grids_of(size_of(scores, [metric]), [metric]) == {"score": bits}


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
        scores = pl.DataFrame({"score": values})
        assert grids_of(size_of(scores, [metric]), [metric]) == {"score": bits}


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
    flags = {"value:fixed": [True, True, False] * 9, "other:scale": [7] * 27}
    rows = pl.DataFrame({"key": ["a", "b", None] * 9, **values, **flags})
    grids = {"value": 0, "other": 0}
    sums = sum_rows(rows.lazy(), ["key"], ["key"], grids, ["other:scale"], ["value:fixed"])
    other = (9, 18, 36, 2.0, 2.0, 7, 7)
    assert sums.sort("key").rows() == [
        (None, 9, 9, -27, 81, -3.0, -3.0, *other, 0),
        ("a", 9, 9, 9, 9, 1.0, 1.0, *other, 9),
        ("b", 9, 0, 0, 0, None, None, *other, 9),
    ]


def test_only_columns_that_are_summed_are_read():
    rows = pl.LazyFrame({"key": ["a", "a"], "value": [1.0, 2.0], "other": ["no number", "none"]})
    rows = rows.with_columns(pl.col("other").cast(pl.Float64))
    assert sum_rows(rows, ["key"], ["key"], {"value": 0})["value:sum"].to_list() == [3]
    with pytest.raises(pl.exceptions.InvalidOperationError, match="no number"):
        sum_rows(rows, ["key"], ["key"], {"other": 0})


SOLE, OFF = {"sole_reasons": {"score": "no_vector"}}, {"switched_off": {"score": "not_applicable"}}


@pytest.mark.parametrize(
    ("scores", "reasons", "miners", "known", "all_rows", "by_miner"),
    [
        # a list of reasons that is null gives none
        ([0.5, None, None, None], [None, "bad_input", "", None], "aaab", {}, (0, 0, 1, 0),
         {"a": (0, 0, 1, 0), "b": (0, 0, 0, 0)}),
        # a sole reason counts the nulls of each label
        ([None, 0.5, None], ["", "", ""], "aba", SOLE, (0, 0, 0, 2),
         {"a": (0, 0, 0, 2), "b": (0, 0, 0, 0)}),
        # and goes before the reason of what is switched off
        ([None, None], ["", ""], "ab", SOLE | OFF, (0, 0, 0, 2),
         {"a": (0, 0, 0, 1), "b": (0, 0, 0, 1)}),
        # what has a value under one label is not switched off
        ([None, 0.5], ["missing_input", ""], "ab", OFF, (0, 1, 0, 0),
         {"a": (0, 1, 0, 0), "b": (0, 0, 0, 0)}),
    ],
    ids=["null", "sole", "sole and off", "one value"],
)  # fmt: skip
def test_nulls_are_counted_by_their_reasons(scores, reasons, miners, known, all_rows, by_miner):
    assert reasons_of(table(scores, reasons, [*miners]), **known) == {None: all_rows, **by_miner}


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


# --- sums by label, and intervals


OF_ROWS = replace(SCORE, table="rows")
BOUNDED = replace(OF_ROWS, scale=Scale("higher"))
KEY = ("file", "dialogue")
PLACE = pl.col("file").replace_strict({"a": 300, "b": 600}, default=0, return_dtype=pl.Int64)
NAME = pl.col("dialogue") + PLACE
ROW_LABELS = ("level", "kind", "absent")
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


def tables(dialogues, rows):
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


def summarise_rows(dialogues, rows, metric=OF_ROWS):
    return summarise_metrics(tables(dialogues, rows), [metric], ROW_LABELS)


def members(dialogues, rows):
    """Return the rows of every value of a label; of several dialogues with a key the first counts.

    Also the rows of all, under ``("all", None)``.
    """
    first = {}
    for dialogue in dialogues:
        first.setdefault(dialogue[:2], dialogue)
    found = {("all", None): list(rows)}
    for place, name in enumerate(ROW_LABELS, len(KEY)):
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
def test_a_summary_by_label_is_that_of_plain_python(dialogues, rows, data):
    summary = summarise_rows(dialogues, rows)
    expected = members(dialogues, rows)
    assert summary.select("group", "value").rows() == list(expected)
    scores = pl.DataFrame({"score": [row[2] for row in rows]}, {"score": pl.Float64})
    bits = grids_of(size_of(scores, [OF_ROWS]), [OF_ROWS])["score"]
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
    assert summarise_rows(dialogues, shuffled).equals(summary, null_equal=True)


@settings(max_examples=often(12, 200), deadline=None)
@given(dialogues=DIALOGUES, rows=ROWS, size=st.integers(1, 4))
def test_a_summary_depends_neither_on_batches_nor_on_columns_at_once(dialogues, rows, size):
    metrics = [replace(BOUNDED, micro=("score", "n")), replace(OF_ROWS, id="other")]
    frames = tables(dialogues, rows)
    frames["rows"] = frames["rows"].with_columns(
        pl.col("score").abs(), pl.lit(2).alias("n"), pl.col("score").alias("other")
    )
    whole = summarise_metrics(frames, metrics, ROW_LABELS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BATCH_ROWS", size)
        patch.setattr(summaries, "BYTES_AT_ONCE", 1)
        parts = summarise_metrics(frames, metrics, ROW_LABELS)
    assert parts.equals(whole, null_equal=True)


@settings(max_examples=often(12, 200), deadline=None)
@given(dialogues=DIALOGUES.filter(bool), rows=ROWS)
def test_keys_of_one_hash_are_told_apart(dialogues, rows):
    """Rows of known dialogues have their own labels, whatever their keys hash to."""
    known = {dialogue[:2] for dialogue in dialogues}
    rows = [row for row in rows if row[:2] in known]
    expected = summarise_rows(dialogues, rows)
    hash_of = summaries._hash_of

    def hash_badly(columns, seed):
        return hash_of(columns, seed) & pl.lit([0, 2**64 - 1][min(seed, 1)], pl.UInt64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "_hash_of", hash_badly)
        found = summarise_rows(dialogues, rows)
    assert found.equals(expected, null_equal=True)


@settings(max_examples=often(12, 200), deadline=None)
@given(rows=st.lists(st.tuples(FILES, NUMBERS, VALUES, KINDS), max_size=20))
def test_rows_that_carry_labels_are_summarised_by_their_own(rows):
    """The units of a label's value are the dialogues that have a row with it."""
    frames = tables([], [row[:3] for row in rows])
    kinds = pl.Series("kind", [row[3] for row in rows], dtype=pl.String)
    labelled = {"rows": frames["rows"].with_columns(kinds), "dialogues": frames["dialogues"]}
    summary = summarise_metrics(labelled, [OF_ROWS], ("kind",))
    for row in summary.filter(group="kind").rows(named=True):
        of_kind = [one for one in rows if one[3] == row["value"]]
        assert row["n"] + row["n_null"] == len(of_kind)
        assert row["n_units"] == len({one[:2] for one in of_kind if one[2] is not None})


def rows_of(*dialogues):
    """Return the rows of dialogues 0, 1, ... with these scores."""
    return [("a", number, value) for number, values in enumerate(dialogues) for value in values]


def test_an_interval_of_equal_dialogues_is_that_of_their_means():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 5)) + rng.normal(size=(7, 1))
    expected = scipy.stats.ttest_1samp(values.mean(axis=1), 0.0).confidence_interval()
    row = summarise_rows([], rows_of(*values.tolist())).row(0, named=True)
    assert (row["n"], row["n_units"], row["degrees_of_freedom"]) == (35, 7, pytest.approx(6))
    assert row["mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert [row["ci_low"], row["ci_high"]] == pytest.approx(expected, rel=1e-10)


def test_a_column_makes_other_units():
    frames = tables([], rows_of([1.0, 2.0], [3.0], [4.0], [5.0, 6.0]))
    # of the user "u" are dialogues 0 and 1
    user = (pl.col("dialogue") % 300).replace_strict({0: "u", 1: "u", 2: "v", 3: "w"})
    clustered = {name: frame.with_columns(user=user) for name, frame in frames.items()}
    row = summarise_metrics(clustered, [OF_ROWS], (), cluster="user").row(0, named=True)
    merged = summarise_rows([], rows_of([1.0, 2.0, 3.0], [4.0], [5.0, 6.0])).row(0, named=True)
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
def test_an_interval_or_the_reason_why_there_is_none(dialogues, reason):
    row = summarise_rows([], rows_of(*dialogues), BOUNDED).row(0, named=True)
    assert (row["ci_low"] is None, row["ci_high"] is None) == (bool(reason), bool(reason))
    assert row["interval_reason"] == reason
    if reason is None:
        assert 0.0 <= row["ci_low"] < row["ci_high"] <= 1.0


# --- estimates of means


PAIRS = Design(pair=("task",))
"""Dialogues are pairs under two models by their task."""
T_3 = 3.182446305284263
"""The quantile of t with 3 degrees of freedom that leaves 2.5 % above it, of a printed table."""


def summed(rows, metric=SCORE, design=PAIRS):
    frame = pl.DataFrame(
        rows, schema=["dialogue", "task", "model", "score"], orient="row"
    ).with_columns(
        null_reasons=pl.when(pl.col("score").is_null())
        .then(pl.lit([{"metric": "score", "reason": "bad_input"}], NULL_REASONS_DTYPE))
        .otherwise(pl.lit([], NULL_REASONS_DTYPE))
    )
    return sum_by_dialogue({"dialogues": frame.lazy()}, [metric], design, ("model",))


TWICE = [
    # a task under two models: the means of the tasks are 2, 3, 4 and 7
    ("1", "a", "x", 1.0),
    ("2", "a", "y", 3.0),
    ("3", "b", "x", 2.0),
    ("4", "b", "y", 4.0),
    ("5", "c", "x", 5.0),
    ("6", "c", "y", 3.0),
    ("7", "d", "x", 6.0),
    ("8", "d", "y", 8.0),
]


def one_of(sums):
    (part,) = estimate(sums)
    return part


def test_the_unit_of_an_interval_is_that_of_the_design():
    found = one_of(summed(TWICE)).estimate
    # deviations of the tasks from 4 are -2, -1, 0 and 3: their squares add up to 14
    half = T_3 * math.sqrt(14 / 3 / 4)
    assert (found.value, found.n_units, found.degrees_of_freedom) == (4.0, 4, pytest.approx(3.0))
    assert (found.low, found.high) == pytest.approx((4.0 - half, 4.0 + half))


@pytest.mark.parametrize("id", ["id", "pair", "unit", "repeat", "rows"])
def test_a_metric_may_be_called_as_a_column_of_sums(id):
    frame = pl.DataFrame(TWICE, schema=["dialogue", "task", "model", id], orient="row")
    rows = frame.with_columns(null_reasons=pl.lit([], NULL_REASONS_DTYPE)).lazy()
    metrics = [replace(SCORE, id=id)]
    found = one_of(sum_by_dialogue({"dialogues": rows}, metrics, PAIRS)).estimate
    assert (found.value, found.n_units) == (4.0, 4)


def test_a_design_with_another_unit_has_its_units():
    own = one_of(summed(TWICE, design=Design(pair=("task",), unit=("dialogue",)))).estimate
    assert (own.value, own.n_units) == (4.0, 8)
    few = one_of(summed(TWICE, design=Design(pair=("task",), unit=("model",)))).estimate
    assert (few.value, few.n_units, few.low, few.reason) == (4.0, 2, None, "too_few_units")


def test_dialogues_without_a_unit_are_units_of_their_own_and_counted():
    rows = [("1", None, "x", 1.0), ("2", None, "x", 3.0), ("3", "b", "x", 2.0)]
    sums = summed(rows)
    assert one_of(sums).estimate.n_units == 3
    assert sums.lacking == {("task",): 2}


def test_a_pair_of_two_columns_is_null_only_if_both_are():
    rows = [("1", None, "x", 1.0), ("2", None, "x", 3.0), ("3", "b", "x", 2.0)]
    sums = summed(rows, design=Design(pair=("task", "model")))
    assert sums.frame["pair"].to_list() == ["null / x", "null / x", "b / x"]


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_names_of_different_values_differ(n_columns):
    odd = [
        *("a", "null", "/", "a /", "/ a", "a / a", " / ", "", " ", '"', '"a', '"a"', '""'),
        "\\",
        '\\"',
        None,
    ]
    odd += [f"{ALONE}a", f'"{ALONE}', f'"\\"{ALONE}"', f'"{ALONE}a"']
    values = list(product(odd, repeat=n_columns))
    columns = [f"c{place}" for place in range(n_columns)]
    frame = pl.DataFrame(values, columns, orient="row")
    of_pair, of_group = frame.select(pair=name_of(columns), group=joined_values(columns))
    assert of_pair.null_count() == 1
    assert of_pair.n_unique() == len(values)
    assert of_group.drop_nulls().n_unique() == (len(odd) - 1) ** n_columns
    # a dialogue by itself is no other's name
    assert not of_pair.drop_nulls().str.starts_with(ALONE).any()
    plain = pl.select(c0=pl.lit("d/1"), c1=pl.lit("x"))
    assert plain.select(name_of(["c0", "c1"])).item() == "d/1 / x"


def test_rows_whose_value_is_fixed_are_left_out_and_named_by_a_label():
    metric = replace(SCORE, fixed_where=(Fixed("model", "y"),))
    part = one_of(summed([*TWICE, ("9", "a", "x", None)], metric))
    assert (part.estimate.value, part.n) == (3.5, 4)
    assert part.where == "model x"


def test_scales_are_kept_apart():
    parts = estimate(summed(TWICE, replace(SCORE, scale=replace(SCORE.scale, by="model"))))
    assert [(one.scale, one.where, one.estimate.value) for one in parts] == [
        ("x", "model x", 3.5),
        ("y", "model y", 4.5),
    ]


def test_a_mean_is_that_of_exact_sums():
    # in doubles 0.1 + 0.2 + 0.3 is not 0.6, whose third is 0.2
    metric = replace(SCORE, scale=Scale("higher"))
    rows = [(str(n), str(n), "x", n / 10) for n in (1, 2, 3)]
    assert one_of(summed(rows, metric)).estimate.value == 0.2


def test_a_column_that_names_nothing_is_refused():
    with pytest.raises(UsageError, match="no label column 'tusk'"):
        summed(TWICE, design=Design(pair=("tusk",)))


# --- sums that are added up in parts


def as_bytes(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def stored(frame):
    """Return a frame as it is read from a file that it was written to."""
    return pl.read_parquet(as_bytes(frame.collect())).lazy()


def summarise_in_parts(suite, whole, parts, options):
    sizes = joint_sizes([measure_parts(suite, part, options) for part in parts])
    sums = [add_up_parts(suite, part, options, sizes) for part in parts]
    added = [
        {
            name: Added(
                pl.concat([stored(one[number][name].sums) for one in sums]),
                pl.concat([stored(one[number][name].reasons) for one in sums]),
                size,
            )
            for name, size in of_tables.items()
        }
        for number, of_tables in enumerate(sizes)
    ]
    return summarise(suite, whole, options, added=added)


def split(frames, n_parts, seed):
    """Split the rows of tables at random: parts may be empty, dialogues in several."""
    rng = random.Random(seed)
    parts = [{} for _ in range(n_parts)]
    for name, lazy in frames.items():
        frame = lazy.collect()
        of_rows = [rng.randrange(n_parts) for _ in range(frame.height)]
        for number, part in enumerate(parts):
            chosen = [row for row, of_row in enumerate(of_rows) if of_row == number]
            part[name] = frame[chosen].lazy()
    return parts


def rated(labels=ROW_LABELS, **declared):
    """Return a suite whose rows have one metric with a range and one without.

    It has sums of two columns, values that are fixed, and several scales.
    """
    metrics = [
        replace(BOUNDED, scale=Scale("higher", -1.0), micro=("top", "n")),
        replace(BOUNDED, id="top", scale=Scale("higher", None, None)),
        replace(
            BOUNDED, id="open", scale=Scale("higher", -1.0, by="n"), fixed_where=(Fixed("n", 1),)
        ),
    ]
    return suite_of(metrics, labels, **declared)


@settings(max_examples=often(10, 900), deadline=None)
@given(
    dialogues=DIALOGUES,
    rows=ROWS,
    n_parts=st.integers(1, 5),
    seed=st.integers(0, 99),
    unit=st.sampled_from([("dialogue",), ("level",), ("level", "kind")]),
)
@pytest.mark.parametrize("labels", [ROW_LABELS, ("kind",), ()], ids=["joined", "carried", "none"])
def test_any_split_of_rows_gives_the_same_bytes(dialogues, rows, n_parts, seed, labels, unit):
    whole = tables(dialogues, rows)
    whole["rows"] = whole["rows"].with_columns(
        (pl.col("dialogue") % 3 + 1).alias("n"),
        (pl.col("score") * 2.0**70).alias("top"),
        pl.col("score").alias("open"),
    )
    if labels == ("kind",):
        whole["rows"] = whole["rows"].with_columns(kind=pl.col("file"))
    suite = rated(labels, design=Design(pair=unit))
    expected = summarise(suite, whole, None)
    parts = split(whole, n_parts, seed)
    found = summarise_in_parts(suite, whole, parts, None)
    assert as_bytes(found) == as_bytes(expected)


@pytest.mark.parametrize("name", example_names())
def test_any_split_of_an_example_gives_the_bytes_of_its_summary(name, example_run):
    run = open_run(example_run(name))
    options = build_options(run.suite.options, run.manifest.options)
    whole = {table.name: run.lazy_tables[table.name] for table in run.suite.tables}
    found = summarise_in_parts(run.suite, whole, split(whole, 7, 7), options)
    assert as_bytes(found) == as_bytes(pl.read_parquet(run.folder / "summary.parquet"))
