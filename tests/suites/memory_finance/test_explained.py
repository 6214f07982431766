"""Explained traces: keys that point at nothing, numbers of turns that repeat, rejected lines."""

import json

import pytest

from fastscore import open_run
from fastscore.results.explaining import Dialogues, explain_metrics
from tests.conftest import fastscore_command
from tests.suites.memory_finance.tracing import dialog, turn

PROFILE = {"risk_level_gt": "稳健", "constraints_gt": ["不使用杠杆"]}
RECALLED = {"short_term_context": "用户偏好稳健"}
KEYS = ["profile_gt.risk_level_gt", "profile_gt.constraints_gt[7]", None]


def run_of(folder, *dialogs, rejected=0):
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in dialogs))
    words = ["score", "memory_finance", log, "-o", folder / "run", "--max-rejects", "1"]
    assert fastscore_command(words).returncode in (0, 3)  # 3 if every line is rejected
    assert open_run(folder / "run").manifest.counts["rejects"] == rejected
    return folder / "run"


def explained(run, metric):
    return explain_metrics(Dialogues(open_run(run)), 0, [metric])


@pytest.mark.usefixtures("undrawn")
def test_a_key_that_cannot_be_resolved_is_named_and_not_counted(tmp_path):
    asked = turn("好的。", keys=KEYS, recall=RECALLED)
    run = run_of(tmp_path, dialog(asked, profile_gt=PROFILE))
    (found,) = explained(run, "key_coverage")
    # one of three keys points at something, and that is recalled
    assert (found.value, found.numerator, found.denominator) == (1.0, 1, 1)
    (evidence,) = found.evidence
    assert evidence.found == (
        "key hit flags 1, "
        "keys profile_gt.risk_level_gt (profile_field): found in short_term, wanted '稳健', "
        "profile_gt.constraints_gt[7]: cannot be resolved, not counted, "
        "null: cannot be resolved, not counted"
    )
    page = tmp_path / "page.html"
    assert fastscore_command(["report", run, "-o", page]).returncode == 0
    assert "key profile_gt.constraints_gt[7]: cannot be resolved, not counted" in page.read_text()


@pytest.mark.parametrize("numbers", [(1, 1), ("1", "2"), (None, None), (2.0, True)])
def test_evidence_has_the_reply_of_its_own_turn(tmp_path, numbers):
    first, second = (
        turn(reply, label="compliant", turn_pair_id=number)
        for reply, number in zip(("第一答", "第二答"), numbers, strict=True)
    )
    run = run_of(tmp_path, dialog(first, second))
    (found,) = explained(run, "compliance_label_acc")
    assert [evidence.text for evidence in found.evidence] == ["第一答", "第二答"]


def test_lines_of_one_id_have_their_own_evidence(tmp_path):
    rejected, invalid = dialog(turn("甲"), 3), dialog(turn("乙"), valid_dialog=0)
    first = dialog(turn("丙", label="compliant"), profile_gt={"risk_level_gt": "进取"})
    second = dialog(turn("丁", label="compliant"), profile_gt=PROFILE)
    run = run_of(tmp_path, rejected, invalid, first, second, dialog(turns=""), rejected=1)
    opened = Dialogues(open_run(run))
    evidence = [
        (
            [
                each.text
                for each in explain_metrics(opened, row, ["compliance_label_acc"])[0].evidence
            ],
            [each.found for each in explain_metrics(opened, row, ["risk_level_acc"])[0].evidence][
                :1
            ],
        )
        for row in range(4)
    ]
    levels = [["level high, texts 进取"], ["level medium, texts 稳健"]]
    assert evidence[0] == evidence[3] == ([], [])
    assert evidence[1:3] == [(["丙"], levels[0]), (["丁"], levels[1])]


def test_a_run_without_a_dialogue_says_so(tmp_path):
    run = run_of(tmp_path, dialog(3), rejected=1)
    for words in (("d",), ("--random",), ("--worst",)):
        done = fastscore_command(["explain", run, *words, "key_coverage"])
        assert done.returncode == 2
        assert "the run has no dialogue" in done.stderr
