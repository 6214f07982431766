"""Profiles: snapshots, labels and mentions in replies, worked by hand."""

from typing import Any

import pytest

from tests.suites.memory_finance.tracing import dialog, first_dialogue, turn


def accuracies(row: dict[str, Any]) -> tuple[float, ...]:
    return tuple(row[f"{name}_acc"] for name in ("risk_level", "horizon", "liquidity"))


def test_profile_comes_from_the_last_snapshot_and_from_words() -> None:
    profile = {
        "risk_level_gt": "进取",
        "horizon_gt": "<=6月",
        "liquidity_need_gt": "高",
        "constraints_gt": ["A", "B"],
        "preferences_gt": [],
    }
    snapshot = {"risk_level": " high ", "forbidden_assets": ["A", "C"]}
    row = first_dialogue(
        dialog(
            turn("保守", profile_snapshot={"risk_level": "low"}),
            turn("26月内保留现金 B", profile_snapshot=snapshot, turn_status="error"),
            turn("", profile_snapshot=None),
            turn("", profile_snapshot="no object"),
            profile_gt=profile,
        )
    )
    # the risk is stated; "6月" in "26月" makes the horizon short; cash makes liquidity high
    assert accuracies(row) == (1.0, 1.0, 1.0)
    # predicted {A, C, B}: precision 2/3, recall 1
    assert row["constraints_f1"] == pytest.approx(0.8, abs=1e-15)
    assert row["preferences_f1"] == 1.0
    assert row["profile_score"] == pytest.approx(4.8 / 5, abs=1e-15)


def test_without_a_snapshot_precision_is_one() -> None:
    row = first_dialogue(
        dialog(turn("国债好"), profile_gt={"preferences_gt": ["国债", "红利基金", "国债"]})
    )
    # the set has two members, one of them mentioned: P = 1, R = 1/2
    assert row["preferences_f1"] == pytest.approx(2 / 3, abs=1e-15)
