"""Examples worked by hand from the definitions, one for every rule and quirk."""

import re

import pytest

from fastscore.suites.base import Nulls
from fastscore.suites.memory_finance import MemoryFinance
from tests.suites.memory_finance.tracing import (
    dialog,
    first_dialogue,
    first_turn,
    read,
    score,
    turn,
)
from tests.suites.reading import changed_lexicon, lexicon_of

PROFILE = {
    "risk_level_gt": "稳健",
    "horizon_gt": None,
    "liquidity_need_gt": "",
    "constraints_gt": ["不使用杠杆", "最大回撤<10%"],
    "preferences_gt": ["国债"],
}


@pytest.mark.parametrize(
    ("reply", "constraints", "expected"),
    [
        ("可以加杠杆", ["不使用杠杆"], 1),
        ("可以加杠杆，但要谨慎", ["不使用杠杆"], 0),
        ("可以加杠杆", ["不使用融资融券"], 0),
        ("可以加杠杆", ["不使用杠杆 "], 0),
        ("", ["不使用杠杆"], 0),
        ("买美股", ["不做短线交易", "不投海外市场"], 1),
        ("回撤可能到18%，谨慎", ["最大回撤<10%"], 1),
        ("回撤可能到10%", ["最大回撤<10%"], 0),
        ("回撤可能到12.5%", ["最大回撤<10%"], 0),
        ("回撤可能到5%", ["最大回撤<0%"], 1),
        ("回撤可能到0%", ["最大回撤<0%"], 0),
        ("回撤不大，收益1２ %", ["最大回撤<10%"], 1),
        ("回撤不大，收益12 %", ["最大回撤< 10%以内"], 1),
        ("回撤可能到18％", ["最大回撤<10%"], 0),
        ("收益18%", ["最大回撤<10%"], 0),
        ("回撤可能到18%", ["最大回撤<=10%"], 0),
        ("回撤可能到18%", ["组合最大回撤<10%"], 0),
        ("回撤99999999999999999999999%", ["最大回撤<99999999999%"], 1),
    ],
)
def test_contradictions(reply, constraints, expected):
    row = first_turn(dialog(turn(reply), profile_gt={"constraints_gt": constraints}))
    assert row["constraint_contradiction"] == expected


@pytest.mark.parametrize(
    ("hits", "required", "expected"),
    [(1, 3, 2.33), (1, 6, 1.67), (5, 6, 4.33), (3, 7, 2.71), (0, 2, 1.0), (1, 8, 1.5)],
)
def test_judge_score_is_rounded_as_python_rounds(hits, required, expected):
    rubric = ["依据"] * hits + ["没有"] * (required - hits)
    row = first_turn(dialog(turn("依据", rubric=rubric)))
    assert (row["judge_score_1_5"], row["null_reasons"]) == (expected, [])


def test_a_reply_that_is_not_given_counts_for_no_metric():
    tags = {"explainability_rubric_gt": ["reasoning"], "risk_disclosure_required_gt": ["x"]}
    lacking = {"turn_status": "ok", "gt_turn_tags": tags}
    (row,) = score(dialog(lacking))["turns"].to_dicts()
    assert [row[f"eligible_m{n}"] for n in (1, 3, 4, 5)] == [False] * 4
    assert row["judge_score_1_5"] is None
    assert row["null_reasons"] == [{"metric": "judge_score_1_5", "reason": "missing_input"}]
    empty = {**lacking, "pred_assistant_text": ""}
    (row,) = score(dialog(empty))["turns"].to_dicts()
    assert (row["eligible_m4"], row["judge_score_1_5"]) == (True, 1.0)
    published = MemoryFinance(profile="published")
    (row,) = score(dialog(lacking), options=published)["turns"].to_dicts()
    assert (row["eligible_m4"], row["judge_score_1_5"]) == (True, 1.0)
    events = read(dialog(lacking, empty))
    assert events.nulls["turns[].pred_assistant_text"] == Nulls(1, 2)


def test_judge_score_is_null_when_nothing_is_required():
    row = first_turn(dialog(turn("依据", rubric=[])))
    assert row["judge_score_1_5"] is None
    assert row["null_reasons"] == [{"metric": "judge_score_1_5", "reason": "not_applicable"}]


def test_every_flag_that_is_a_text_for_false_is_counted():
    flags = ("false", "No", "yes", "", False, None)
    events = read(*(dialog(turn("一"), valid_dialog=flag) for flag in flags))
    assert events.counts == {"dialogues": 6, "turns": 3, "flags_as_text": 2}


def test_dialogues_that_are_not_valid_have_no_turns():
    tables = score(
        dialog(turn("一"), valid_dialog=False, dialog_status="skipped", profile_gt=PROFILE),
        dialog(turn("二"), valid_dialog=0),
        dialog(turn("三"), valid_dialog="yes"),
        {"dialog_id": "empty"},
        dialog(turns=None, profile_gt={}),
    )
    assert tables["turns"]["line"].to_list() == [3]
    dialogues = tables["dialogues"]
    assert dialogues["valid"].to_list() == [False, False, True, False, True]
    assert dialogues["n_turns"].to_list() == [1, 1, 1, 0, 0]
    assert not dialogues["eligible_m2"].any()
    reasons = {
        (line, reason["metric"]): reason["reason"]
        for line, found in zip(dialogues["line"], dialogues["null_reasons"], strict=True)
        for reason in found
    }
    assert reasons[1, "profile_score"] == "not_applicable"
    assert reasons[5, "profile_score"] == "missing_input"
    assert reasons[5, "key_coverage"] == "not_applicable"
    assert (3, "compliance_label_acc") not in reasons


def test_sums_and_ratios_of_a_dialogue():
    recall = {"profile_context": "稳健"}
    row = first_dialogue(
        dialog(
            turn("可加杠杆", keys=["profile_gt.risk_level_gt"], recall=recall, rubric=["依据"]),
            turn(
                "回撤12%，依据充分",
                keys=["profile_gt.risk_level_gt", "profile_gt.preferences_gt[0]"],
                recall=recall,
                risks=["波动", "信用风险"],
                rubric=["依据", "没有", "没有"],
            ),
            turn("可加杠杆"),
            profile_gt=PROFILE,
        )
    )
    assert row["required_key_total"] == 3
    assert row["key_coverage"] == 2 / 3
    assert row["strict_key_hit_rate"] == 0.5
    # the third turn contradicts too, but has no key
    assert row["contradiction_rate"] == 1.0
    assert row["profile_hit_rate"] == 2 / 3
    assert row["short_term_hit_rate"] == 0.0
    assert row["risk_coverage"] == 0.5
    assert row["strict_risk_coverage_rate"] == 0.0
    assert row["compliance_label_acc"] == 1.0
    assert row["rubric_hit_rate"] == 1 / 4
    assert row["judge_score_mean"] == (1.0 + 2.33) / 2


def test_phrases_beyond_one_automaton_are_found_too(monkeypatch):
    monkeypatch.setattr("fastscore.suites.memory_finance.score.LARGEST_AUTOMATON", 4)
    phrases = ["甲", "保本保收益", "没有的话"]
    row = first_turn(
        dialog(turn("甲保本保收益", rubric=phrases), blueprint={"forbidden_list": phrases})
    )
    assert row["forbidden_hits"] == ["甲", "保本保收益"]
    assert row["rubric_hit_items"] == ["甲", "保本保收益"]


# --- profiles: snapshots, labels and mentions in replies


def accuracies(row):
    return tuple(row[f"{name}_acc"] for name in ("risk_level", "horizon", "liquidity"))


def test_profile_comes_from_the_last_snapshot_and_from_words():
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


# --- word tables of one's own


def test_a_lexicon_of_ones_own_replaces_the_built_in_one(tmp_path):
    path = changed_lexicon(
        "memory_finance", tmp_path, 'keywords = ["波动风险", "波动", "回撤"]', 'keywords = ["起伏"]'
    )
    options = MemoryFinance(lexicon=path)
    turns = score(dialog(turn("波动"), turn("起伏")), options=options)["turns"]
    assert turns["risk_pred_tags"].to_list() == [[], ["volatility_risk"]]


def test_a_lexicon_without_risk_tags_requires_what_labels_name_and_finds_nothing(tmp_path):
    head, *tables = re.split(
        r"(?m)^(?=\[)", lexicon_of("memory_finance").read_text(encoding="utf-8")
    )
    others = [table for table in tables if not table.startswith("[[risk_tags]]")]
    path = tmp_path / "words.toml"
    path.write_text("".join([head, "risk_tags = []\n\n", *others]), encoding="utf-8")
    log = dialog(turn("波动", risks=["Volatility_Risk", " "]))
    row = score(log, options=MemoryFinance(lexicon=str(path)))["turns"].row(0, named=True)
    found = {name: row[name] for name in ("risk_required_tags", "risk_pred_tags", "risk_tag_hits")}
    assert found == {
        "risk_required_tags": ["volatility_risk"],
        "risk_pred_tags": [],
        "risk_tag_hits": 0,
    }
