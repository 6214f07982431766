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


def test_an_empty_later_snapshot_replaces_a_full_one() -> None:
    full = {"risk_level": "high", "preferred_topics": ["X"]}
    row = first_dialogue(
        dialog(
            turn("稳健", profile_snapshot=full),
            turn("", profile_snapshot={}),
            profile_gt={"risk_level_gt": "稳健"},
        )
    )
    assert accuracies(row) == (1.0, 0.0, 0.0)
    assert row["preferences_f1"] == 1.0


def test_unknown_labels_are_never_right() -> None:
    row = first_dialogue(dialog(turn(""), profile_gt={"risk_level_gt": "unknown", "x": 1}))
    assert accuracies(row) == (0.0, 0.0, 0.0)


def test_without_a_snapshot_precision_is_one() -> None:
    row = first_dialogue(
        dialog(turn("国债好"), profile_gt={"preferences_gt": ["国债", "红利基金", "国债"]})
    )
    # the set has two members, one of them mentioned: P = 1, R = 1/2
    assert row["preferences_f1"] == pytest.approx(2 / 3, abs=1e-15)


def test_wanted_texts_may_span_replies() -> None:
    wanted = {"preferences_gt": ["一\n二", "二\n一", ""], "constraints_gt": ["三"]}
    row = first_dialogue(dialog(turn("甲一"), turn("二乙"), profile_gt=wanted))
    # two of three are found, all found ones are wanted
    assert row["preferences_f1"] == pytest.approx(0.8, abs=1e-15)
    assert row["constraints_f1"] == 0.0
