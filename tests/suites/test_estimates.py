"""Sums by dialogue and estimates of means, worked out by hand: units, exclusions, scales, nulls."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import polars as pl
import pytest

from fastscore.errors import UsageError
from fastscore.suites.declarations import (
    NULL_REASONS_DTYPE,
    Design,
    Fixed,
    Formula,
    Metric,
    Scale,
)
from fastscore.suites.sums import (
    ALONE,
    Part,
    Sums,
    estimate,
    joined_values,
    name_of,
    sum_by_dialogue,
)

SCORE = Metric(
    id="score",
    name="Score",
    formula=Formula(text="x"),
    scale=Scale("higher", minimum=None, maximum=None),
    null_when=("missing_input",),
    source="here",
)
PAIRS = Design(pair=("task",))
"""Dialogues are pairs under two models by their task."""
T_3 = 3.182446305284263
"""The quantile of t with 3 degrees of freedom that leaves 2.5 % above it, of a printed table."""

Row = tuple[str, str | None, str, float | None]


def summed(rows: Sequence[Row], metric: Metric = SCORE, design: Design = PAIRS) -> Sums:
    frame = pl.DataFrame(
        rows, schema=["dialogue", "task", "model", "score"], orient="row"
    ).with_columns(
        null_reasons=pl.when(pl.col("score").is_null())
        .then(pl.lit([{"metric": "score", "reason": "bad_input"}], NULL_REASONS_DTYPE))
        .otherwise(pl.lit([], NULL_REASONS_DTYPE))
    )
    return sum_by_dialogue({"dialogues": frame.lazy()}, [metric], design, ("model",))


TWICE: list[Row] = [
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


def one_of(sums: Sums) -> Part:
    (part,) = estimate(sums)
    return part


def test_the_unit_of_an_interval_is_that_of_the_design() -> None:
    found = one_of(summed(TWICE)).estimate
    # deviations of the tasks from 4 are -2, -1, 0 and 3: their squares add up to 14
    half = T_3 * math.sqrt(14 / 3 / 4)
    assert (found.value, found.n_units, found.degrees_of_freedom) == (4.0, 4, pytest.approx(3.0))
    assert (found.low, found.high) == pytest.approx((4.0 - half, 4.0 + half))


@pytest.mark.parametrize("id", ["id", "pair", "unit", "repeat", "rows"])
def test_a_metric_may_be_called_as_a_column_of_sums(id: str) -> None:
    frame = pl.DataFrame(TWICE, schema=["dialogue", "task", "model", id], orient="row")
    rows = frame.with_columns(null_reasons=pl.lit([], NULL_REASONS_DTYPE)).lazy()
    metrics = [replace(SCORE, id=id)]
    found = one_of(sum_by_dialogue({"dialogues": rows}, metrics, PAIRS)).estimate
    assert (found.value, found.n_units) == (4.0, 4)


def test_a_design_with_another_unit_has_its_units() -> None:
    own = one_of(summed(TWICE, design=Design(pair=("task",), unit=("dialogue",)))).estimate
    assert (own.value, own.n_units) == (4.0, 8)
    few = one_of(summed(TWICE, design=Design(pair=("task",), unit=("model",)))).estimate
    assert (few.value, few.n_units, few.low, few.reason) == (4.0, 2, None, "too_few_units")


def test_dialogues_without_a_unit_are_units_of_their_own_and_counted() -> None:
    rows: list[Row] = [("1", None, "x", 1.0), ("2", None, "x", 3.0), ("3", "b", "x", 2.0)]
    sums = summed(rows)
    assert one_of(sums).estimate.n_units == 3
    assert sums.lacking == {("task",): 2}


def test_a_pair_of_two_columns_is_null_only_if_both_are() -> None:
    rows: list[Row] = [("1", None, "x", 1.0), ("2", None, "x", 3.0), ("3", "b", "x", 2.0)]
    sums = summed(rows, design=Design(pair=("task", "model")))
    assert sums.frame["pair"].to_list() == [" / x", " / x", "b / x"]


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_names_of_different_values_differ(n_columns: int) -> None:
    odd = [
        "a",
        "/",
        "a /",
        "/ a",
        "a / a",
        " / ",
        "",
        " ",
        '"',
        '"a',
        '"a"',
        '""',
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


def test_rows_whose_value_is_fixed_are_left_out_and_named_by_a_label() -> None:
    metric = replace(SCORE, fixed_where=(Fixed("model", "y"),))
    part = one_of(summed([*TWICE, ("9", "a", "x", None)], metric))
    assert (part.estimate.value, part.n, part.left_out) == (3.5, 4, 4)
    assert part.where == "model x"
    assert part.nulls == {"bad_input": 1}


def test_scales_are_kept_apart() -> None:
    parts = estimate(summed(TWICE, replace(SCORE, scale=replace(SCORE.scale, by="model"))))
    assert [(one.scale, one.where, one.estimate.value) for one in parts] == [
        ("x", "model x", 3.5),
        ("y", "model y", 4.5),
    ]


def test_a_mean_is_that_of_exact_sums() -> None:
    # in doubles 0.1 + 0.2 + 0.3 is not 0.6, whose third is 0.2
    metric = replace(SCORE, scale=Scale("higher"))
    rows: list[Row] = [(str(n), str(n), "x", n / 10) for n in (1, 2, 3)]
    assert one_of(summed(rows, metric)).estimate.value == 0.2


def test_a_column_that_names_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no label column 'tusk'"):
        summed(TWICE, design=Design(pair=("tusk",)))
