"""The summary: macro over dialogues, micro over turns, repeated ids, labels; failure cases."""

import polars as pl

from fastscore.suites.base import CommittedRun
from fastscore.suites.memory_finance import SUITE, MemoryFinance
from fastscore.suites.memory_finance.metrics import RECITING, REFUSING
from fastscore.suites.memory_finance.schema import TURNS
from fastscore.suites.memory_finance.show import report_sections
from fastscore.suites.memory_finance.summarise import legacy_summary
from fastscore.suites.summary import summarise
from fastscore.suites.sums import estimate, sum_metrics
from tests.suites.memory_finance.tracing import dialog, score, turn


def summary_rows(tables):
    lazy = {name: table.lazy() for name, table in tables.items()}
    frame = summarise(SUITE, lazy, MemoryFinance())
    return {(row["group"], row["value"], row["metric"]): row for row in frame.to_dicts()}


def rubric_dialog(hits, misses, **more):
    return dialog(turn("依据", rubric=["依据"] * hits + ["没有"] * misses), **more)


def test_micro_macro_and_groups():
    tables = score(
        rubric_dialog(1, 0, dialog_id="a", difficulty="easy", profile_gt={"x": 1}),
        rubric_dialog(1, 3, dialog_id="b", difficulty="hard"),
        dialog(turn("依据"), dialog_id="c", difficulty="hard"),
    )
    rows = summary_rows(tables)
    found = rows["all", None, "rubric_hit_rate"]
    assert (found["n"], found["n_null"], found["n_not_applicable"]) == (2, 1, 1)
    assert found["mean"] == (1 + 1 / 4) / 2
    assert (found["micro_numerator"], found["micro_denominator"]) == (2.0, 5.0)
    assert rows["difficulty", "hard", "rubric_hit_rate"]["mean"] == 0.25
    assert rows["all", None, "judge_score_mean"]["micro"] == (5.0 + 2.0) / 2
    profile = rows["all", None, "profile_score"]
    # empty sets agree on both sides, and no level is labelled
    assert (profile["n"], profile["mean"], profile["n_missing_input"]) == (1, 2 / 5, 2)
    assert rows["all", None, "judge_score_1_5"]["n"] == 2


def test_a_note_counts_dialogues_without_an_id():
    rows = [rubric_dialog(1, 0, dialog_id=name) for name in ("a", None, "", "b")]
    (note,) = SUITE.notes(score(*rows)["dialogues"].lazy(), MemoryFinance())
    assert note.startswith("2 dialogues have no dialog_id and count as one")
    assert not SUITE.notes(score(*rows[:2])["dialogues"].lazy(), MemoryFinance())


def test_metrics_of_words_that_are_zero_everywhere_are_named():
    def noted(level, reply):
        spoken = turn(reply, risks=["波动风险"], profile_snapshot={"risk_level": level})
        log = dialog(spoken, profile_gt={"risk_level_gt": level})
        return SUITE.notes(score(log)["dialogues"].lazy(), MemoryFinance())

    (note,) = noted("konservativ", "Es gibt ein Kursrisiko.")
    assert note.startswith("risk_level_acc, horizon_acc, liquidity_acc, risk_coverage: 0 in all")
    assert not noted("稳健", "Es gibt ein Kursrisiko.")
    assert not noted("konservativ", "存在波动")


def test_nulls_of_the_judge_score_have_the_reasons_of_the_table():
    # two replies are missing, and of a turn that is answered nothing is required
    answers = dialog(turn(None, rubric=["依据"]), turn("依据"), turn("依据", rubric=["依据"]))
    tables = score(answers, dialog(turn(None, rubric=["没有", "依据"]), dialog_id="e"))
    listed = [reason for row in tables["turns"]["null_reasons"].to_list() for reason in row]
    assert {one["metric"] for one in listed} == {"judge_score_1_5"}
    reasons = sorted(one["reason"] for one in listed)
    assert reasons == ["missing_input", "missing_input", "not_applicable"]
    found = summary_rows(tables)["all", None, "judge_score_1_5"]
    assert (found["n"], found["n_null"]) == (1, 3)
    assert (found["n_missing_input"], found["n_not_applicable"]) == (2, 1)


def test_dialogues_of_one_id_count_together_but_not_in_m2():
    tables = score(
        rubric_dialog(1, 0, dialog_id="a", profile_gt={"preferences_gt": ["依据"]}),
        rubric_dialog(0, 2, dialog_id="b"),
        rubric_dialog(1, 2, dialog_id="a", profile_gt={"preferences_gt": ["无"]}),
        rubric_dialog(1, 0, dialog_id=None, profile_gt={"x": 1}),
    )
    found = summary_rows(tables)["all", None, "rubric_hit_rate"]
    assert found["n"] == 3
    assert found["mean"] == (2 / 4 + 0 / 2 + 1 / 1) / 3
    legacy = legacy_summary(tables["turns"], tables["dialogues"], "set")["metrics"]
    by_dialog = legacy["m5_explainability"]["by_dialog"]
    assert list(by_dialog) == ["a", "b", ""]
    assert by_dialog["a"] == {"rubric_hit_rate": 0.5, "judge_score_mean": (5.0 + 2.33) / 2}
    profiles = legacy["m2_profile_accuracy"]
    # the last line of an id stands at the place of its first, and each line counts
    assert list(profiles["by_dialog"]) == ["a", "None"]
    assert profiles["by_dialog"]["a"]["preferences_f1"] == 0.0
    assert profiles["counts"]["eligible_count"] == 3
    assert profiles["micro"]["preferences_f1"] == (1.0 + 0.0 + 1.0) / 3
    assert summary_rows(tables)["all", None, "preferences_f1"]["n"] == 3


def test_dialogues_of_one_id_count_under_their_first_label_by_the_alphabet():
    rows = summary_rows(
        score(
            rubric_dialog(1, 0, dialog_id="a", difficulty="hard"),
            rubric_dialog(0, 2, dialog_id="a", difficulty="easy"),
            rubric_dialog(0, 1, dialog_id="a", difficulty="middling"),
            rubric_dialog(1, 1, dialog_id="b", difficulty="hard"),
            # none is no label
            rubric_dialog(1, 0, dialog_id="c"),
            rubric_dialog(3, 0, dialog_id="c", difficulty="hard"),
        )
    )
    found = {
        value: (row["n"], row["mean"], row["micro_numerator"], row["micro_denominator"])
        for (group, value, metric), row in rows.items()
        if (group, metric) == ("difficulty", "rubric_hit_rate")
    }
    # easy: a with 1 of 1 + 2 + 1; hard: b with 1 of 2 and c with 4 of 4; middling: nobody
    assert found == {"easy": (1, 1 / 4, 1.0, 4.0), "hard": (2, (1 / 2 + 4 / 4) / 2, 5.0, 6.0)}


def test_cases_are_counted_by_turns_and_dialogues():
    tables = score(
        rubric_dialog(1, 0, dialog_id="a", profile_gt={"x": 1}),
        dialog(turn("依据"), turn("依据", rubric=["依据"]), dialog_id="b"),
        dialog(dialog_id="c", valid_dialog=False),
    )
    cases = SUITE.cases({name: table.lazy() for name, table in tables.items()})
    found = {of: counts for of, *counts in cases.rows()}
    assert list(found) == ["M1, turns", "M2, dialogues", "M3, turns", "M4, turns", "M5, turns"]
    # two of three turns have a rubric; one of three dialogues has a profile
    assert found["M5, turns"] == [2, 1, 0]
    assert found["M2, dialogues"][0] == 1
    assert sum(found["M2, dialogues"][:2]) == 3


def test_estimates_merge_lines_of_one_id_as_the_summary_does():
    lines = [
        rubric_dialog(row % 3, row % 4, dialog_id=f"d{row // 2}", difficulty="easy")
        for row in range(12)
    ]
    tables = {name: table.lazy() for name, table in score(*lines).items()}
    rows = {
        row["metric"]: row
        for row in summarise(SUITE, tables, MemoryFinance()).filter(group="all").to_dicts()
    }
    chosen = [metric for metric in SUITE.metrics if metric.table == "dialogues"]
    sums = sum_metrics(SUITE, tables, chosen, options=MemoryFinance(), design=SUITE.design)
    parts = [part for one in sums for part in estimate(one)]
    assert 0 < rows["rubric_hit_rate"]["n"] <= 6
    for part in parts:
        found, row = part.estimate, rows[part.metric.id]
        assert (found.value, part.n, found.n_units) == (row["mean"], row["n"], row["n_units"])
        assert (found.low, found.high) == (row["ci_low"], row["ci_high"])


def test_trivial_assistants_by_hand():
    # a name or an alias of a tag; the lexicon has neither x nor y, and repeats count each
    risks = ["波动", "volatility_risk", "无明确风险提示", "x"]
    rubric, key = ["信息依据", "信息依据", "x", "y"], "profile_gt.risk_level_gt"
    tables = score(
        dialog(
            turn("", risks=risks, rubric=rubric, label="compliant", keys=[key]),
            turn("", risks=["信用风险"], label="severe_violation"),
            profile_gt={"risk_level_gt": "稳健"},
        )
    )
    found = SUITE.trivial_agents({name: table.lazy() for name, table in tables.items()},
                                 MemoryFinance()).rows_by_key("agent", named=True)  # fmt: skip
    (reciting,), (refusing,) = found[RECITING], found[REFUSING]
    assert reciting["risk_coverage"] == (3 + 1) / (4 + 1)
    assert reciting["rubric_hit_rate"] == 2 / 4
    assert reciting["judge_score_mean"] == 1 + 4 * 2 / 4
    assert (refusing["risk_coverage"], refusing["rubric_hit_rate"]) == (0.0, 0.0)
    assert (refusing["judge_score_mean"], refusing["compliance_label_acc"]) == (1.0, 1 / 2)
    assert reciting["strict_risk_coverage_rate"] == 1 / 2
    assert refusing["strict_risk_coverage_rate"] == 0.0
    assert (refusing["contradiction_rate"], refusing["severe_violation_rate"]) == (0.0, 0.0)


def turn_row(number, **values):
    return {
        "file": "log.jsonl",
        "line": 1,
        "dialogue": "d",
        "turn_pair_id": number,
        "pred_compliance_label": "compliant",
        "constraint_contradiction": 0,
        "forbidden_hits": [],
        "eligible_m1": False,
        "eligible_m3": False,
        "key_hit_flags": [],
        "risk_required_tags": [],
        "risk_tag_hits": 0,
        "rubric_required": [],
        "rubric_hit_items": [],
    } | values


def test_cases_stand_by_gravity_then_by_failed_checks():
    rows = [
        turn_row(1, eligible_m1=True, key_hit_flags=[0, 0]),
        turn_row(2, constraint_contradiction=1),
        turn_row(3, constraint_contradiction=1, rubric_required=["a", "b"], rubric_hit_items=["a"]),
        turn_row(4, eligible_m3=True, risk_required_tags=["r", "s"]),
        turn_row(5, pred_compliance_label="severe_violation", forbidden_hits=["sure profit"]),
        turn_row(6),
    ]
    names = list(rows[0])
    frame = pl.DataFrame(rows, schema={name: TURNS.schema[name] for name in names})
    run = CommittedRun(name="run", signature="", tables={"turns": frame.lazy()})
    (section,) = report_sections(run, MemoryFinance())
    by_problem, cases = (listing.frame for listing in section.listings)
    assert by_problem["problem"].to_list() == [
        "severe violation",
        "contradicts a constraint",
        "no required risk disclosed",
        "no memory key recalled",
    ]
    assert cases["turn"].to_list() == [5, 3, 2, 4, 1]
    # a violation and a phrase; a contradiction and an element; a contradiction; two risks; two keys
    assert cases["failed checks"].to_list() == [2, 2, 1, 2, 2]
