"""Accepted and refused input, and changes that must not affect numbers."""

import json

import polars as pl
import pytest

import fastscore
from fastscore.suites.group_travel import SUITE, GroupTravel
from tests.conftest import write_lines
from tests.suites.group_travel.travelling import (
    dialogue,
    opening,
    raw_rows,
    score,
    turn,
)

TURNS = [
    {**opening("C3", group_type="family"), "utterance": "Hi, \"all\"\n"},
    turn("Ann", "user_provide_cuisine", "Italian, or thai"),
    turn("Bob", "user_provide_cuisine", "seafood"),
    turn("System", "sys_present_plan", "", plan={"days": [{"lunch": "A"}]}),
]  # fmt: skip


def write_csv(path, turns):
    frame = raw_rows(turns).drop("file", "line", "byte_offset", "turns", "dialogue_id")
    frame.rename({"speaker": " Speaker", "utterance": "TEXT"}).write_csv(path, include_bom=True)


def test_one_bad_row_costs_no_other():
    rows = raw_rows([*TURNS, turn("", "user_accept_plan", "ok"), {"utterance": "?"}])
    events = SUITE.read(rows, GroupTravel())
    assert events.rejects.select("line", "field", "reason").rows() == [
        (7, "speaker", "missing_field"),
        (6, "speaker", "missing_field"),
    ]
    assert events.frames["pairs"].height == 2


def test_a_turn_that_is_no_object_is_a_reject():
    turns = [{**t, "metadata": t.get("metadata")} for t in TURNS]
    row = {"turns": json.dumps([*turns, 5])}
    events = SUITE.read(raw_rows([row], name="x{}.jsonl"), GroupTravel())
    assert events.rejects.select("field", "found").rows() == [("turns[4]", "integer 5")]
    assert events.frames["pairs"].height == 2


def test_turns_of_json_lines_need_their_dialogue():
    events = SUITE.read(raw_rows(TURNS, name="x{}.jsonl"), GroupTravel())
    assert events.rejects["field"].unique().to_list() == ["dialogue_id"]


PRESENT = "sys_present_plan"
FAULTS = [
    *(
        (turn("System", PRESENT, plan=plan), "plan", fault)
        for plan, fault in (
            ("{'days': [}", "neither JSON nor a literal; read as raw output"),
            ("12", "no list of days; ignored"),
            ('{"day1": {"lunch": "A"}}', "no list of days; ignored"),
            ('["Day 1: lunch at A", {}]', "1 of 2 days are not objects; left out"),
            ("{'days': ({'lunch': 'A'},)}", None),
            (
                '[{"lunch": "A", "dinner": 5, "event": {"place": "B"}}]',
                "2 of 3 values of days name no place; left out",
            ),
            (
                '[{"meals": [{"lunch": "A"}]}]',
                "1 of 1 values of days name no place; left out",
            ),
            ('[{"lunch": null, "dinner": []}, {}]', None),
            ('{"days": [], "raw_output": "none found"}', None),
            ('{"raw_output": "none found"}', None),
        )
    ),
    *(
        (turn("System", "x", ref_info_events=records), "ref_info_events", fault)
        for records, fault in (
            ("nothing found", "no list of records; ignored"),
            (["A", "B"], "2 of 2 entries are no records with a name; left out"),
            ([{"name": "A"}, "B", {"x": 1}], "2 of 3 entries are no records with a name; left out"),
            (
                {"in": [{"name": "A"}], "note": "B"},
                "1 of 2 entries are no records with a name; left out",
            ),
            ({"note": "B"}, "no list of records; ignored"),
            ({"in": [{"name": "A"}]}, None),
        )
    ),
]


@pytest.mark.parametrize(("said", "cell", "fault"), FAULTS)
def test_what_of_a_cell_cannot_be_read_is_a_warning(said, cell, fault):
    row = dialogue(opening("C4"), said)
    assert row["warnings"] == ([] if fault is None else [f"line 3, {cell}: {fault}"])


def test_what_of_a_synthesis_cannot_be_read_is_a_warning():
    turns = [
        turn("System", "sys_welcome", metadata={"member_count": "four", "condition": "borda"}),
        turn("System", "sys_synthesize_event", metadata="not this", constraint_state="nor that"),
        turn("System", "sys_synthesize_food", metadata={"resolution_explanation": ["a", "b"]}),
        turn("System", "sys_synthesize_hotel"),
        turn("A", "x", metadata="nobody reads this"),
        turn("System", "x", constraint_state="the last"),
    ]
    assert dialogue(*turns)["warnings"] == [
        "line 2, metadata: member_count is no whole number; ignored; condition is 'borda', not "
        "C1 to C5; ignored. Use group_type",
        "line 3, constraint_state: no object; ignored",
        "line 3, metadata: no object; ignored",
        "line 4, metadata: resolution_explanation is not a text; ignored",
        "line 7, constraint_state: no object; ignored",
    ]


def test_one_id_in_two_files_is_two_dialogues(tmp_path):
    for condition in ("C3", "C5"):
        turns = [{**opening(condition), "utterance": "Hi"}, *TURNS[1:]]
        rows = [{"dialogue_id": "trip", **row} for row in turns]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{condition}.jsonl").write_text(lines)
    scores = fastscore.score(tmp_path, "group_travel", embedder=None)
    found = scores.tables["dialogues"].select("dialogue", "condition").rows()
    assert found == [("trip/in=C3.jsonl", "C3"), ("trip/in=C5.jsonl", "C5")]
    counted = scores.summary.filter(pl.col("group") == "condition", pl.col("metric") == "M1")
    assert counted.select("value", "n").rows() == [("C3", 1), ("C5", 1)]


def test_a_lone_surrogate_in_any_cell_costs_no_dialogue():
    half = "cut \\ud83d"
    cells = {
        "metadata": f'{{"group_type": "{half}", "dialogue_id": "trip"}}',
        "constraint_state": f'{{"synthesis": {{"cuisine": {{"operator": "{half}"}}}}}}',
        "plan": f'{{"days": [{{"lunch": "{half}"}}], "raw_output": "{half}"}}',
        "ref_info_restaurants": f'[{{"name": "{half}", "cuisines": ["{half}", "Thai"]}}]',
        "ref_info_events": f"[{{'name': '{half}', 'segment': ['{half}']}}]",
    }
    row = dialogue(*TURNS[:3], turn("System", "sys_synthesize_cuisine", "", **cells))
    assert row["M9"] == 1.0
    places = score([*TURNS[:3], turn("System", "sys_synthesize_cuisine", "", **cells)])["places"]
    assert places["place"].to_list() == ["cut \ufffd"]


def lines(tmp_path, *documents):
    path = write_lines(tmp_path / "d.jsonl", documents)
    run = tmp_path / "run"
    fastscore.score([path], "group_travel", output=run, embedder=None, max_rejects=1.0)
    return (
        pl.read_parquet(run / "dialogues" / "*.parquet"),
        pl.read_parquet(run / "rejects" / "*.parquet"),
    )


def test_files_that_are_read_together_keep_their_rejects(tmp_path):
    for name, last in (("a", 5), ("b", TURNS[2]), ("c", "x")):
        whole = {"turns": TURNS[:2]}
        texts = [whole, {"turns": []}, {"turns": [*TURNS[:2], last]}]
        write_lines(tmp_path / f"{name}.jsonl", texts)
    run = tmp_path / "run"
    fastscore.score(
        sorted(tmp_path.glob("*.jsonl")), "group_travel", output=run, embedder=None, max_rejects=1.0
    )
    scored = pl.read_parquet(run / "dialogues" / "*.parquet")
    names = [f"{file}.jsonl:{line}" for file in "abc" for line in (1, 3)]
    assert scored["dialogue"].to_list() == names
    assert scored["M7_total_turns"].to_list() == [2, 2, 2, 3, 2, 2]
    rejects = pl.read_parquet(run / "rejects" / "*.parquet")
    assert rejects.select(pl.col("file").str.tail(7), "line", "field").rows() == [
        ("a.jsonl", 2, "turns"),
        ("a.jsonl", 3, "turns[2]"),
        ("b.jsonl", 2, "turns"),
        ("c.jsonl", 2, "turns"),
        ("c.jsonl", 3, "turns[2]"),
    ]


def test_texts_of_other_types_in_rows_of_turns_are_rejects(tmp_path):
    turns = [{**TURNS[1], "utterance": ["Thai"]}, {**TURNS[2], "intent": {}}, TURNS[1]]
    scored, rejects = lines(tmp_path, *({"dialogue_id": "q", **t} for t in turns))
    assert rejects.select("line", "field", "reason").rows() == [
        (1, "utterance", "wrong_type"),
        (2, "intent", "wrong_type"),
    ]
    assert scored.select("dialogue", "M7_total_turns").rows() == [("q", 1)]


@pytest.mark.parametrize(
    ("name", "stated", "scenario"),
    [
        ("s0001-c1", None, "s0001"),
        ("trip_007_C3", None, "trip_007"),
        ("condition_2-lisbon", None, "lisbon"),
        ("lisbon", None, "lisbon"),
        ("C4", None, "C4"),
        ("c12-lisbon", None, "c12-lisbon"),
        ("s0001-c1", "winter", "winter"),
    ],
)
def test_the_scenario_is_what_conditions_have_in_common(name, stated, scenario):
    about = {} if stated is None else {"scenario": stated}
    found = dialogue({**opening("C3", dialogue_id=name, **about), "utterance": "Hi"}, *TURNS[1:])
    assert (found["dialogue"], found["scenario"]) == (name, scenario)


def test_a_run_tells_of_cells_that_could_not_be_read(tmp_path):
    said = turn("System", "sys_present_plan", plan='{"day1": {}}')
    wish = turn("Ann", "user_provide_cuisine", "Thai food")
    rows = [{"dialogue_id": "d", **each} for each in (said, wish)]
    run = fastscore.score(rows, GroupTravel(), embedder=None)
    (note,) = (note for note in run.notes if "cells" in note)
    assert note == (
        "1 dialogue has cells that could not be read, the first: line 1, plan: no list of days; "
        "ignored. Column `warnings` of table dialogues has all of them"
    )


def test_turns_in_rows_that_are_out_of_order_are_refused():
    said = [turn("Ann", f"user_provide_{what}", "Thai food") for what in ("cuisine", "budget")]
    rows = [{"dialogue_id": "d", "turn": str(2 - n), **each} for n, each in enumerate(said)]
    with pytest.raises(fastscore.FastscoreError, match="turn is '1' after '2'") as refused:
        fastscore.score(rows, GroupTravel(), embedder=None)
    assert "Sort the rows of each dialogue by turn, or leave the key out." in str(refused.value)
    rows.reverse()
    assert fastscore.score(rows, GroupTravel(), embedder=None).tables["pairs"].height == 2
