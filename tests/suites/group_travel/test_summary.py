"""The summary: by condition and group type, and the firings of channels."""

import math
from typing import Any

import polars as pl
import pytest

from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.suites.summary import SUMMARY_SCHEMA, summarise
from tests.suites.group_travel.travelling import opening, score, turn


def test_summary_by_condition_and_group_type() -> None:
    dialogues = []
    for condition, voices in (("C1", 1), ("C2", 1), ("C2", 2), ("C2", 3), ("C4", 3)):
        speaking = [turn(f"m{number}", "user_provide_event", "x") for number in range(voices)]
        about = {"member_count": 4, "group_type": "spouses" if voices == 2 else "family"}
        dialogues.append([opening(condition, **about), *speaking])
    options = GroupTravel(by_group_type=True)
    tables = {name: table.lazy() for name, table in score(*dialogues).items()}
    summary = summarise(SUITE, tables, options)
    assert dict(summary.schema) == SUMMARY_SCHEMA

    def found(group: str, value: str | None, metric: str = "M1") -> dict[str, Any]:
        rows = summary.filter(
            (pl.col("group") == group)
            & pl.col("value").eq_missing(pl.lit(value))
            & (pl.col("metric") == metric)
        )
        return rows.row(0, named=True)

    second = found("condition", "C2")
    # 1/4, 2/4 and 3/4: mean 0.5, sd 0.25, so (1/4)^2 / 3 is its variance
    assert (second["mean"], second["sd"], second["n"], second["n_units"]) == (0.5, 0.25, 3, 3)
    assert (second["micro_numerator"], second["micro_denominator"]) == (6.0, 12.0)
    # Wilson's interval of 12 trials, (1/2)(1/2) / (1/48), with t of two degrees of freedom:
    # its half width at 1/2 is t / (2 sqrt(12 + t^2))
    assert second["ci_low"] == pytest.approx(0.5 - 4.302653 / (2 * math.sqrt(12 + 4.302653**2)))
    assert second["ci_high"] == pytest.approx(0.5 + 4.302653 / (2 * math.sqrt(12 + 4.302653**2)))
    # in C1 the definition gives every M1, which is 1/4 with one of four voices
    delta = found("condition_delta", "C2-C1")
    assert (delta["mean"], delta["mean_all_rows"]) == (None, 0.25)
    assert found("condition_delta", "C2-C1", "M7_total_turns")["mean"] is not None
    assert found("condition", "C1")["sd"] is None
    assert found("group_type_and_condition", "spouses/C2")["mean"] == 0.5
    assert (found("all", None, "M2")["n_null"], found("all", None, "M2")["n_not_applicable"]) == (
        5,
        5,
    )
    assert summary.filter(value="C3-C2").is_empty()
