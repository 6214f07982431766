"""Proposed readings of a log: columns, words and layouts."""

import json

import pytest

import fastscore
from fastscore.api.examples import write_example
from fastscore.errors import UsageError
from fastscore.logs.inputs.column_map import column_map, map_source
from fastscore.logs.inputs.layout import load_layout
from fastscore.suites.registry import load_suite
from tests.logs.samples.screened import found, message, refusal, screened
from tests.logs.samples.wrong_logs import RIGHT, renamed, write


def test_words_in_another_case(tmp_path):
    rows = [{**row, "event": row["event"].title()} for row in RIGHT["score_dialogue"]]
    log = write(tmp_path / "log.jsonl", rows)
    said = refusal("score_dialogue", log)
    assert said == (
        f"{log}: no row has what score_dialogue needs: event is never 'predicted' or "
        "'utterance_complete'.\n"
        "  looked for: predicted, utterance_complete\n"
        "  found: 'Predicted' (2), 'Utterance_Complete' (1)\n"
        "Type --value event:Predicted=predicted --value "
        "event:Utterance_Complete=utterance_complete."
    )
    words = {"event": {"Predicted": "predicted", "Utterance_Complete": "utterance_complete"}}
    screened("score_dialogue", log, columns=column_map(values=words))


def test_a_layout_may_name_columns_that_are_not_there(tmp_path):
    chat = [{"role": "user", "content": "a burger"}, {"role": "assistant", "content": "this"}]
    log = write(tmp_path / "log.jsonl", [{"messages": chat}])
    columns = load_layout("openai").of("guest_simulation")
    assert screened("guest_simulation", log, columns=columns).files
    # unless the user does so too
    named = columns | column_map({"name": "messages[].nick"})
    assert "looked for: messages[].nick" in refusal("guest_simulation", log, columns=named)


def test_a_word_must_mean_one_that_is_known():
    source = load_suite("preference_shift").source
    with pytest.raises(UsageError, match="means 'USR', which is none"):
        map_source(source, column_map(values={"speaker": {"user": "USR"}}))
    map_source(source, column_map(values={"speaker": {"system": ""}}))
    with pytest.raises(UsageError, match="Objects of an array can be left out, rows cannot"):
        map_source(
            load_suite("guest_simulation").source, column_map(values={"role": {"system": ""}})
        )


def test_the_reference_is_not_proposed_as_the_reply(tmp_path):
    rows = renamed("memory_finance", "gt_assistant_text")
    log = write(tmp_path / "log.jsonl", rows)
    key = "gt_assistant_text"
    assert refusal("memory_finance", log) == message(
        "memory_finance", log, found("memory_finance", key), ""
    )


def test_an_array_of_another_column_is_not_proposed(tmp_path):
    (row,) = RIGHT["memory_finance"]
    rows = [{("raw_turns" if key == "turns" else key): value for key, value in row.items()}]
    assert (
        "raw_turns"
        not in refusal("memory_finance", write(tmp_path / "a.jsonl", rows)).split("\n")[-1]
    )


def test_a_trace_needs_its_status_and_whether_it_is_valid(tmp_path):
    text = write(tmp_path / "log.jsonl", RIGHT["memory_finance"]).read_text()
    log = tmp_path / "other.jsonl"
    log.write_text(text.replace("turn_status", "state"))
    said = refusal("memory_finance", log)
    assert "  turns[].turn_status: absent or null in 2 objects of turns[]\n" in said
    assert said.endswith("Type --column turn_status=state.")
    log.write_text(text.replace("valid_dialog", "is_valid"))
    said = refusal("memory_finance", log)
    assert "  valid_dialog: absent or null in 1 row\n" in said
    assert said.endswith("Type --column valid_dialog=is_valid.")
    log.write_text(text.replace('"ok"', '"success"'))
    assert refusal("memory_finance", log) == (
        f"{log}: no row has what memory_finance needs: turns[].turn_status is never 'ok'.\n"
        "  looked for: ok\n"
        "  found: 'success' (2)\n"
        "Type --value turn_status:success=ok."
    )
    screened("memory_finance", log, columns=column_map(values={"turn_status": {"success": "ok"}}))


def test_a_column_of_another_type_is_not_called_absent(tmp_path):
    rows = [
        {**row, "step": str(row["step"])} if "step" in row else row
        for row in RIGHT["score_dialogue"]
    ]
    said = refusal("score_dialogue", write(tmp_path / "log.jsonl", rows))
    assert "\n  step: found strings (2), expected integers, in 2 rows\n" in said
    assert "step=step" not in said
    # one that can be read is enough; cells of CSV are read as numbers
    screened("score_dialogue", write(tmp_path / "log.jsonl", [*rows, *RIGHT["score_dialogue"]]))


def test_metadata_under_another_name_are_missed(tmp_path):
    write_example("group_travel", tmp_path)
    log = next((tmp_path / "logs").iterdir())
    read = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    rows = [row for row in read if not any("metadata" in turn for turn in row["turns"])]
    assert rows
    right = fastscore.score(rows, "group_travel", embedder="none")
    assert not any(note.startswith("M1 is") for note in right.notes)
    renamed = [{("about" if k == "metadata" else k): v for k, v in row.items()} for row in rows]
    scores = fastscore.score(renamed, "group_travel", embedder="none")
    assert any(
        note.startswith("M1 is scored without it: no row has metadata (looked for: metadata; ")
        for note in scores.notes
    )
    # a turn's own are enough
    inside = [
        {"turns": [{"metadata": row["metadata"], **row["turns"][0]}, *row["turns"][1:]]}
        for row in rows
    ]
    scores = fastscore.score(inside, "group_travel", embedder="none")
    assert not any(note.startswith("M1 is") for note in scores.notes)
