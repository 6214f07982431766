"""Rejected lines: their place, the fault, and the expected value."""

import json

import polars as pl
import pytest

import fastscore
from fastscore.suites.declarations import REJECT_SCHEMA
from fastscore.suites.memory_finance import SUITE, MemoryFinance
from fastscore.vectors.view import VectorView
from tests.suites.memory_finance.tracing import dialog, read, read_lines, turn


@pytest.mark.parametrize(
    ("trace", "field", "found"),
    [
        (dialog(turns="x"), "turns", 'string "x"'),
        (dialog(turn(), None), "turns[1]", "null"),
        (dialog(turn(), 5), "turns[1]", "integer 5"),
        (dialog(turn(keys=["x", 5])), "turns[0].gt_turn_tags.memory_required_keys_gt[1]", None),
        (dialog(turn(keys="x")), "turns[0].gt_turn_tags.memory_required_keys_gt", 'string "x"'),
        (dialog(turn(risks=[True])), "turns[0].gt_turn_tags.risk_disclosure_required_gt[0]", None),
        (dialog(turn(rubric=[None])), "turns[0].gt_turn_tags.explainability_rubric_gt[0]", "null"),
        (dialog(turn(gt_turn_tags=[1])), "turns[0].gt_turn_tags", "array"),
        (dialog(turn(turn_pair_id="one")), "turns[0].turn_pair_id", 'string "one"'),
        (dialog(turn(turn_pair_id=10**20)), "turns[0].turn_pair_id", None),
        (dialog(turn(recall=5)), "turns[0].recall", "integer 5"),
        (dialog(turn(recall={"items": [None]})), "turns[0].recall.items[0]", "null"),
        (dialog(turn(recall={"items": [{}, {"content": 5}]})), "turns[0].recall.items[1].content",
         None),
        (dialog(turn(recall={"short_term_context": {}})), "turns[0].recall.short_term_context",
         "object"),
        (dialog(turn(compliance={"violations": [None]})), "turns[0].compliance.violations[0]",
         "null"),
        (dialog(turn("\ud800")), "turns[0].pred_assistant_text", None),
        (dialog(turn(), profile_gt="x"), "profile_gt", 'string "x"'),
        (dialog(turn(), profile_gt={"constraints_gt": ["a", 5]}), "profile_gt.constraints_gt[1]",
         "integer 5"),
        (dialog(turn(), profile_gt={"preferences_gt": [None]}), "profile_gt.preferences_gt[0]",
         "null"),
        (dialog(turn(), blueprint={"forbidden_list": ["a", 0, 5]}),
         "blueprint.forbidden_list[2]", "integer 5"),
        (dialog(turn(), raw_turns=[{}, 5]), "raw_turns[1]", "integer 5"),
        (dialog(turn(profile_snapshot={"preferred_topics": "x"}), profile_gt={"a": 1}),
         "turns[0].profile_snapshot.preferred_topics", 'string "x"'),
    ],
)  # fmt: skip
def test_a_line_is_rejected_with_its_place(trace, field, found):
    lines = [json.dumps(each) for each in (dialog(turn("a")), trace, dialog(turn("b")))]
    events, _ = read_lines(lines)
    assert dict(events.rejects.schema) == REJECT_SCHEMA
    (reject,) = events.rejects.to_dicts()
    assert (reject["line"], reject["field"]) == (2, field)
    assert reject["file"].endswith("dialog_trace.jsonl")
    assert reject["byte_offset"] == len(lines[0]) + 1
    assert reject["expected"]
    if found is not None:
        assert reject["found"] == found
    turns = SUITE.score(events, VectorView.empty(), MemoryFinance())["turns"]
    assert turns["line"].to_list() == [1, 3]
    assert events.counts == {"dialogues": 2, "turns": 2}


LONG = 31415926


@pytest.mark.parametrize(
    ("trace", "field"),
    [
        (dialog(valid_dialog=LONG), "valid_dialog"),
        (dialog(turn(LONG)), "turns[0].pred_assistant_text"),
        (dialog(turn([LONG])), "turns[0].pred_assistant_text"),
        (dialog(turn(label=LONG)), "turns[0].gt_turn_tags.compliance_label_gt"),
        (dialog(turn(recall=LONG)), "turns[0].recall"),
        (dialog(turn(), profile_gt={"risk_level_gt": LONG}), "profile_gt.risk_level_gt"),
        (dialog(turn(), blueprint={"forbidden_list": [LONG]}), "blueprint.forbidden_list[0]"),
    ],
)
def test_a_number_that_python_does_not_read_rejects_its_line(trace, field):
    faulty = json.dumps(trace).replace(str(LONG), "7" * 5000)
    events, _ = read_lines([json.dumps(dialog(turn("a"))), faulty, json.dumps(dialog(turn("b")))])
    (reject,) = events.rejects.to_dicts()
    assert (reject["line"], reject["field"], reject["reason"]) == (2, field, "out_of_range")
    assert reject["expected"] == "whole numbers of at most 4300 digits"
    assert events.counts == {"dialogues": 2, "turns": 2}


def test_what_is_not_read_rejects_nothing():
    events = read(
        dialog(turn(keys=5), valid_dialog=False, profile_gt=5, raw_turns=5),
        dialog(turn(profile_snapshot={"preferred_topics": "x"}), profile_gt={}),
        dialog(turn(recall=[], compliance="", gt_turn_tags=0), profile_gt=False, raw_turns=[]),
    )
    assert events.rejects.is_empty()


@pytest.mark.parametrize("turns", [{"a": 1}, "abc", 5, None])
def test_turns_of_an_invalid_dialogue_may_be_anything(turns):
    events = read(dialog(valid_dialog=False) | {"turns": turns})
    assert events.rejects.is_empty()
    assert events.frames["dialogues"]["n_turns"].to_list() == [0]


def test_lines_that_are_no_objects_are_rejected_by_the_reader():
    events, rejects = read_lines(["[1]", "{", '{"valid_dialog": true, "turns": []}'])
    assert rejects["line"].to_list() == [1, 2]
    assert events.counts == {"dialogues": 1, "turns": 0}


def test_escaped_keys_and_equal_keys_are_read_as_python_reads_them():
    line = (
        '{"valid_dialog": true, "turns": [ {"turn_status": "ok", "turn_status": "error",'
        ' "pred_\\u0061ssistant_text": "\\u6ce2动" , "x": [{"turn_status": "\\"]"}]} ] }'
    )
    events, _ = read_lines([line])
    turns = events.frames["turns"]
    assert turns["reply"].to_list() == ["波动"]
    assert turns["status"].to_list() == ["error"]


def test_a_frame_may_hold_json_of_several_lines_or_none_at_all():
    rows = [(row, dialog(turn(f"reply {row}"), profile_gt={"a": 1})) for row in range(6)]
    columns = ("valid_dialog", "turns", "profile_gt", "blueprint", "raw_turns")
    cells = {
        name: [json.dumps(trace.get(name), indent=row % 2 or None) for row, trace in rows]
        for name in columns
    }
    cells["blueprint"][1] = "{\n}"
    cells["valid_dialog"][2] = "yes"
    cells["turns"][3] = cells["turns"][3].rstrip("\n]}")
    cells["profile_gt"][4] = '{"a'
    scores = fastscore.score(
        pl.DataFrame({"dialog_id": list("abcdef"), "run_id": "r", **cells}),
        "memory_finance",
        embedder=None,
        max_rejects=0.5,
    )
    assert scores.tables["turns"]["line"].to_list() == [1, 2, 6]
    assert scores.tables["dialogues"]["eligible_m2"].to_list() == [True] * 3
    assert scores.rejects.select("line", "field", "reason", "expected").rows() == [
        (3, "valid_dialog", "not_json", "valid JSON"),
        (4, "turns", "not_json", "valid JSON"),
        (5, "profile_gt", "not_json", "valid JSON"),
    ]
