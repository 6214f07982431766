"""Sixty wrong inputs and what each must say, and what is no fault."""

import builtins
import errno
import gzip
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, column_map, mapped
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.inputs.layout import load_layout
from fastscore.logs.inputs.looking import ROWS_LOOKED_AT
from fastscore.logs.inputs.screening import Screened, screen
from fastscore.suites.registry import load_suite
from tests.logs.inputs.wrong_logs import (
    NEEDED,
    RIGHT,
    changed,
    nested,
    nulled,
    renamed,
    without,
    write,
)

OTHER_NAMES = {
    "score_dialogue": "text",
    "preference_shift": "content",
    "memory_finance": "response",
    "guest_simulation": "speaker",
    "group_travel": "message",
}
OTHER_CASES = {
    "score_dialogue": "Prediction",
    "preference_shift": "Text",
    "memory_finance": "predAssistantText",
    "guest_simulation": "ROLE",
    "group_travel": "Utterance",
}
WHERE = {
    "score_dialogue": ("prediction", "2 rows"),
    "preference_shift": ("conversation[].text", "2 objects of conversation[]"),
    "memory_finance": ("turns[].pred_assistant_text", "2 objects of turns[]"),
    "guest_simulation": ("role", "2 rows"),
    "group_travel": ("utterance", "2 rows"),
}
LOOKED_FOR = {**NEEDED, "group_travel": "utterance, text"}
FOUND = {
    "score_dialogue": "event (3), utterance_index (3), step (2), {}ground_truth (1)",
    "preference_shift": "speaker (2){}",
    "memory_finance": "turn_pair_id (2), turn_status (2){}",
    "guest_simulation": "conversation_id (2), {}content (2)",
    "group_travel": "dialogue_id (2), speaker (2), intent (2){}",
}
FOREIGN = {
    "score_dialogue": ("memory_finance", "event", "dialog_id (1), valid_dialog (1), turns (1)"),
    "preference_shift": (
        "memory_finance",
        "conversation",
        "dialog_id (1), valid_dialog (1), turns (1)",
    ),
    "memory_finance": ("guest_simulation", "turns", "conversation_id (2), role (2), content (2)"),
    "guest_simulation": ("memory_finance", "role", "dialog_id (1), valid_dialog (1), turns (1)"),
    "group_travel": (
        "memory_finance",
        "turns[].speaker",
        "turn_pair_id (2), turn_status (2), pred_assistant_text (2)",
    ),
}
INSPECT = "`fastscore inspect` lists the keys of a log and the suites that it fits."


def screened(suite: str, *inputs: Path, columns: ColumnMap = NO_MAP) -> Screened:
    source = mapped(load_suite(suite).source, columns)
    return screen(resolve_inputs(inputs, source.formats), source, suite)


def refusal(suite: str, *inputs: Path, columns: ColumnMap = NO_MAP) -> str:
    with pytest.raises(InputError) as caught:
        screened(suite, *inputs, columns=columns)
    assert caught.value.exit_code == 3
    return str(caught.value)


def found(suite: str, key: str) -> str:
    """Return the keys that are found, one more among them."""
    more = f"{key} (2)" if key else ""
    text = FOUND[suite]
    if ", {}" in text:
        return text.format(f"{more}, " if more else "")
    return text.format(f", {more}" if more else "")


def message(suite: str, path: Path, keys: str, nearest: str, absence: str = "") -> str:
    """Return the whole message of a log that lacks what a suite needs."""
    place, asked = WHERE[suite]
    lines = [
        f"{path}: no row has what {suite} needs.",
        f"  {place}: {absence or f'absent or null in {asked}'}",
        f"    looked for: {LOOKED_FOR[suite]}",
        f"    found: {keys}",
    ]
    if nearest:
        lines += [f"    nearest: {nearest}", f"Type --column {NEEDED[suite]}={nearest}."]
    else:
        lines.append(f"Say where it stands: --column {NEEDED[suite]}=KEY; {INSPECT}")
    return "\n".join(lines)


@pytest.fixture(params=sorted(RIGHT))
def suite(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_renamed_column(suite: str, tmp_path: Path) -> None:
    name = OTHER_NAMES[suite]
    log = write(tmp_path / "log.jsonl", renamed(suite, name))
    assert refusal(suite, log) == message(suite, log, found(suite, name), name)
    screened(suite, log, columns=column_map({NEEDED[suite]: name}))


def test_a_column_in_another_case(suite: str, tmp_path: Path) -> None:
    name = OTHER_CASES[suite]
    log = write(tmp_path / "log.jsonl", renamed(suite, name))
    assert refusal(suite, log) == message(suite, log, found(suite, name), name)


def test_a_dropped_column(suite: str, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", without(suite))
    assert refusal(suite, log) == message(suite, log, found(suite, ""), "")


def test_a_column_of_nulls(suite: str, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", nulled(suite))
    assert refusal(suite, log) == message(suite, log, found(suite, NEEDED[suite]), "")


RETYPED: dict[str, tuple[str, Any, str]] = {
    "score_dialogue": ("prediction", [1], "field prediction: wrong_type (found array"),
    "preference_shift": ("text", 7, "field conversation[0].text: wrong_type (found integer"),
    "memory_finance": ("turn_pair_id", {}, "field turns[0].turn_pair_id: wrong_type (found object"),
    "guest_simulation": ("role", True, "field role: wrong_type (found true"),
    "group_travel": ("utterance", {"a": 1}, "field utterance: wrong_type (found object"),
}


def test_a_column_of_another_type(suite: str, tmp_path: Path) -> None:
    name, value, told = RETYPED[suite]
    log = write(tmp_path / "log.jsonl", changed(suite, lambda row: {**row, name: value}))
    options: dict[str, Any] = {"score_dialogue": {"lex_weight": 1.0}}.get(suite, {})
    if suite == "preference_shift":
        catalogue = tmp_path / "catalogue.json"
        catalogue.write_text('[{"name": "Her", "genre": ["comedy"]}]')
        options = {"catalogue": str(catalogue), "segments": "metadata"}
    with pytest.raises(InputError) as caught:
        fastscore.score(log, suite, embedder="none", output=tmp_path / "run", **options)
    assert f"The first: {log}:1, {told}" in str(caught.value)


def test_a_nested_column(suite: str, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", nested(suite, "meta"))
    path = f"meta.{NEEDED[suite]}"
    said = refusal(suite, log)
    assert f"{path} (2)" in said
    assert said.endswith(f"    nearest: {path}\nType --column {NEEDED[suite]}={path}.")
    screened(suite, log, columns=column_map({NEEDED[suite]: path}))


def test_a_packed_log(suite: str, tmp_path: Path) -> None:
    name = OTHER_NAMES[suite]
    log = write(tmp_path / "log.jsonl", renamed(suite, name))
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert refusal(suite, packed) == message(suite, packed, found(suite, name), name)


def test_a_stored_log(suite: str, tmp_path: Path) -> None:
    name = OTHER_NAMES[suite]
    log = write(tmp_path / "log.parquet", renamed(suite, name))
    said = refusal(suite, log)
    if suite == "memory_finance":
        assert said.startswith(f"{str(log)!r} is a Parquet file, which this suite does not read.")
        return
    assert f"Type --column {NEEDED[suite]}={name}." in said
    assert ("no such column" in said) == (suite != "preference_shift")


def test_a_file_of_another_suite_that_was_named(suite: str, tmp_path: Path) -> None:
    other, place, keys = FOREIGN[suite]
    log = write(tmp_path / "log.jsonl", RIGHT[other])
    said = refusal(suite, log)
    assert said.startswith(f"{log}: no row has what {suite} needs.\n  {place}: absent or null in ")
    assert f"    found: {keys}" in said
    # nothing is listed twice
    assert said.count("    found: ") == 1


def test_a_folder_of_another_suite(suite: str, tmp_path: Path) -> None:
    other, place, _ = FOREIGN[suite]
    for name in "ab":
        write(tmp_path / "logs" / f"{name}.jsonl", RIGHT[other])
    first = tmp_path / "logs" / "a.jsonl"
    said = refusal(suite, tmp_path / "logs")
    assert said.startswith(f"{first} and 1 more: no row has what {suite} needs.\n  {place}: ")


def test_a_folder_with_a_file_of_another_suite(suite: str, tmp_path: Path) -> None:
    other, place, _ = FOREIGN[suite]
    good = write(tmp_path / "logs" / "good.jsonl", RIGHT[suite])
    foreign = write(tmp_path / "logs" / "other.jsonl", RIGHT[other])
    seen = screened(suite, tmp_path / "logs")
    assert [file.path for file in seen.files] == [str(good)]
    assert [file.path for file in seen.left_aside] == [str(foreign)]
    (note,) = seen.notes
    assert note.startswith(f"left aside, as 1 file is no log of {suite}: {foreign} (no {place}")
    # the same file is an error where it is named itself
    assert refusal(suite, tmp_path / "logs", foreign)


def test_a_file_of_no_format(suite: str, tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("hello\n")
    said = refusal(suite, log)
    assert said.startswith(f"The suffix of {str(log)!r} names no format that is read. Suffixes")


def test_folders_that_are_pooled(suite: str, tmp_path: Path) -> None:
    for name in ("a/1", "a/2", "b/1"):
        write(tmp_path / f"{name}.jsonl", RIGHT[suite])
    (note,) = screened(suite, tmp_path).notes
    assert note == (f"pools the files of 2 folders as one run: {tmp_path}/a (2), {tmp_path}/b (1)")
    # named one by one, as a shell writes a glob, they are pooled no less
    assert screened(suite, *sorted(tmp_path.glob("*/*.jsonl"))).notes == (note,)


def test_right_logs_say_nothing(suite: str, tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", RIGHT[suite])
    assert screened(suite, log).notes == ()


def test_words_in_another_case(tmp_path: Path) -> None:
    rows = [{**row, "event": row["event"].title()} for row in RIGHT["score_dialogue"]]
    log = write(tmp_path / "log.jsonl", rows)
    said = refusal("score_dialogue", log)
    assert said == (
        "No row has what score_dialogue needs: event is never 'predicted' or "
        "'utterance_complete'.\n"
        "  looked for: predicted, utterance_complete\n"
        "  found: 'Predicted' (2), 'Utterance_Complete' (1)\n"
        "Type --value event:Predicted=predicted --value "
        "event:Utterance_Complete=utterance_complete."
    )
    words = {"event": {"Predicted": "predicted", "Utterance_Complete": "utterance_complete"}}
    screened("score_dialogue", log, columns=column_map(values=words))


def test_words_that_are_all_foreign(tmp_path: Path) -> None:
    """One speaker under his own word, the other under none that is known."""
    turns = [{"speaker": "Ann", "text": "a comedy"}, {"speaker": "SYSTEM", "text": "this"}]
    log = write(tmp_path / "log.jsonl", [{"conversation": turns}])
    assert refusal("preference_shift", log).startswith(
        "No row has what preference_shift needs: conversation[].speaker is never 'USER'.\n"
        "  looked for: USER, SYSTEM\n"
        "  found: 'Ann' (1)\n"
    )


def test_a_column_that_was_asked_for_must_stand_somewhere(suite: str, tmp_path: Path) -> None:
    optional = {
        "score_dialogue": "miner_uid",
        "preference_shift": "model_name",
        "memory_finance": "run_id",
        "guest_simulation": "message_id",
        "group_travel": "plan",
    }[suite]
    log = write(tmp_path / "log.jsonl", RIGHT[suite])
    said = refusal(suite, log, columns=column_map({optional: "nope"}))
    assert said.startswith(f"{log}: no row has a column that is asked for.\n  ")
    assert f"{optional}: absent or null in " in said
    assert "    looked for: nope\n    found: " in said
    # late in a long file, or in another file, is somewhere
    late = [*RIGHT[suite] * 300, *changed(suite, lambda row: {**row, "nope": "x"})]
    if suite not in ("preference_shift", "memory_finance"):
        log = write(tmp_path / "late.jsonl", late)
        assert screened(suite, log, columns=column_map({optional: "nope"})).files


def test_a_layout_may_name_columns_that_are_not_there(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "a burger"}, {"role": "assistant", "content": "this"}]
    log = write(tmp_path / "log.jsonl", [{"messages": chat}])
    columns = load_layout("openai").of("guest_simulation")
    assert screened("guest_simulation", log, columns=columns).files
    # unless the user does so too
    named = columns | column_map({"name": "messages[].nick"})
    assert "looked for: messages[].nick" in refusal("guest_simulation", log, columns=named)


def test_a_word_must_mean_one_that_is_known() -> None:
    source = load_suite("preference_shift").source
    with pytest.raises(UsageError, match="means 'USR', which is none"):
        mapped(source, column_map(values={"speaker": {"user": "USR"}}))
    mapped(source, column_map(values={"speaker": {"system": ""}}))
    with pytest.raises(UsageError, match="Objects of an array can be left out, rows cannot"):
        mapped(load_suite("guest_simulation").source, column_map(values={"role": {"system": ""}}))


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_nulls_all_through_a_long_file_are_told(name: str, tmp_path: Path) -> None:
    log = tmp_path / name
    rows = [{**row, "prediction": None} for row in RIGHT["score_dialogue"][:2]] * 300
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    log.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    said = refusal("score_dialogue", log)
    assert said.startswith(
        f"{log}: no row has what score_dialogue needs.\n  prediction: absent or null in all rows\n"
    )
    # a value behind what was looked at is found in the text
    last = json.dumps(RIGHT["score_dialogue"][0]).encode()
    log.write_bytes(gzip.compress(text + last) if name.endswith("gz") else text + last)
    assert screened("score_dialogue", log).files


def test_a_log_of_completed_utterances_alone_is_one(tmp_path: Path) -> None:
    """A miner that predicted nothing for a dialogue is scored, as published: no steps."""
    good = write(tmp_path / "logs" / "a.jsonl", RIGHT["score_dialogue"])
    bare = write(tmp_path / "logs" / "b.jsonl", RIGHT["score_dialogue"][2:])
    seen = screened("score_dialogue", tmp_path / "logs")
    assert [file.path for file in seen.files] == [str(good), str(bare)]
    assert seen.left_aside == ()


def test_a_known_layout_is_named(tmp_path: Path) -> None:
    chat = [{"role": "user", "content": "a comedy"}, {"role": "assistant", "content": "this"}]
    log = write(tmp_path / "log.jsonl", [{"messages": chat}])
    for suite in ("preference_shift", "guest_simulation"):
        assert refusal(suite, log).endswith("\nType --layout openai.")
        screened(suite, log, columns=load_layout("openai").of(suite))
    chat = [{"from": "human", "value": "a comedy"}, {"from": "gpt", "value": "this"}]
    log = write(tmp_path / "log.jsonl", [{"conversations": chat}])
    assert refusal("preference_shift", log).endswith("\nType --layout sharegpt.")


def test_an_array_under_another_name_brings_its_fields(tmp_path: Path) -> None:
    turns = [{"who": "USER", "content": "a comedy"}, {"who": "SYSTEM", "content": "this"}]
    log = write(tmp_path / "log.jsonl", [{"dialogue": turns}])
    assert refusal("preference_shift", log).endswith(
        "Type --column conversation=dialogue --column speaker=who --column text=content."
    )


def test_files_of_another_shape_are_counted(tmp_path: Path) -> None:
    for name in "abc":
        rows: list[dict[str, Any]] = [
            {**row, "session_id": name} for row in RIGHT["preference_shift"]
        ]
        if name == "c":
            rows = [{**row, "model_name": "m"} for row in rows]
        write(tmp_path / f"{name}.jsonl", rows)
    (note,) = screened("preference_shift", tmp_path).notes
    assert note == (
        f"pools files of different shape: 1 file of 3 with model_name (first: {tmp_path}/c.jsonl)"
    )


def test_a_value_late_in_a_file_is_found(tmp_path: Path) -> None:
    lacking = [{**row, "prediction": None} for row in RIGHT["score_dialogue"][:2]] * 300
    log = write(tmp_path / "log.jsonl", [*lacking, *RIGHT["score_dialogue"]])
    assert screened("score_dialogue", log).notes == ()


def test_rows_in_which_a_column_is_not_read_ask_nothing(tmp_path: Path) -> None:
    # a dialogue that is not over has no ground truth yet
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"][:2])
    assert screened("score_dialogue", log).notes == ()


@pytest.mark.parametrize(
    ("name", "content"),
    [("log.jsonl", b""), ("log.jsonl", b"\n\n"), ("log.jsonl.gz", b"\x1f\x8b\x08cut")],
)
def test_what_holds_no_text_is_left_to_the_reader(
    name: str, content: bytes, tmp_path: Path
) -> None:
    log = tmp_path / name
    log.write_bytes(content)
    assert screened("score_dialogue", log).files


@pytest.mark.parametrize("content", [b"[]", b" [ ]\n"])
def test_an_empty_document_is_a_log(content: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_bytes(content)
    assert screened("group_travel", log).files


def test_an_array_of_sessions_is_not_taken_for_one(tmp_path: Path) -> None:
    """An array by itself is a conversation of that suite, whose turns have other keys."""
    log = tmp_path / "log.json"
    log.write_text(json.dumps(RIGHT["preference_shift"] * 2))
    assert refusal("preference_shift", log).endswith(
        "An array by itself is one conversation here, and this one holds several rows: "
        "`jq -c '.[]'` writes them as JSON Lines, one a line."
    )
    (row,) = RIGHT["preference_shift"]
    log.write_text(json.dumps(row["conversation"]))
    assert screened("preference_shift", log).files


def test_an_indented_document_is_no_json_lines(tmp_path: Path) -> None:
    good = write(tmp_path / "logs" / "trace.jsonl", RIGHT["memory_finance"])
    foreign = tmp_path / "logs" / "metrics_summary.json"
    foreign.write_text(json.dumps({"model": "m", "means": {"coverage": 0.5}}, indent=2))
    seen = screened("memory_finance", tmp_path / "logs")
    assert [file.path for file in seen.files] == [str(good)]
    assert [file.path for file in seen.left_aside] == [str(foreign)]
    assert seen.notes == (
        f"left aside, as 1 file is no log of memory_finance: {foreign} (no line is a JSON object; "
        "it begins with '{')",
    )
    assert refusal("memory_finance", foreign) == (
        f"{foreign}: no line is a JSON object; it begins with '{{'. JSON Lines have one object on "
        "each line: `jq -c .` writes an indented file so."
    )
    rows = tmp_path / "rows.json"
    rows.write_text("[{}]")
    assert refusal("memory_finance", rows) == (
        f"{rows}: no line is a JSON object; it begins with '[{{}}]'. JSON Lines have one object on "
        "each line: `jq -c '.[]'` writes those of an array so."
    )
    good.unlink()
    assert refusal("memory_finance", tmp_path / "logs").startswith(f"{foreign}: no line is a JSON")
    # beside a file of other keys, those are told
    other = write(tmp_path / "logs" / "other.jsonl", RIGHT["guest_simulation"])
    assert refusal("memory_finance", tmp_path / "logs").startswith(f"{other}: no row has what")


@pytest.mark.parametrize("content", [b"not json\n[1]\n", b"\xff\xfe\n"])
def test_text_without_a_row_is_refused(content: bytes, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(content)
    assert ": no line is a JSON object; it begins with " in refusal("score_dialogue", log)


def test_csv_and_json_documents(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", renamed("guest_simulation", "speaker"))
    said = refusal("guest_simulation", log)
    assert "  role: no such column\n" in said
    assert said.endswith("Type --column role=speaker.")
    # names of CSV have no case
    log = write(tmp_path / "cased.csv", renamed("guest_simulation", "ROLE"))
    assert screened("guest_simulation", log).notes == ()
    assert screened("guest_simulation", log, columns=column_map({"role": "Role"})).notes == ()
    rows = renamed("guest_simulation", "Role")
    said = refusal(
        "guest_simulation", write(tmp_path / "a.jsonl", rows), columns=column_map({"role": "ROLE"})
    )
    assert "    looked for: ROLE\n" in said
    log = write(tmp_path / "log.json", renamed("group_travel", "message"))
    assert refusal("group_travel", log).endswith("Type --column utterance=message.")
    # a document larger than what is read at first
    rows = changed("group_travel", lambda row: {**row, "utterance": "x" * 9000}) * 4
    assert screened("group_travel", write(tmp_path / "large.json", rows)).notes == ()


def test_reading_ends_as_soon_as_everything_was_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = write(tmp_path / "log.jsonl", RIGHT["score_dialogue"] * 5000)
    read = 0

    def counted(file: Any, array: str | None, given_up: Any) -> Iterator[dict[str, Any]]:
        nonlocal read
        for row in RIGHT["score_dialogue"] * 5000:
            read += 1
            yield row

    monkeypatch.setattr("fastscore.logs.inputs.looking.records", counted)
    screened("score_dialogue", log)
    assert read == ROWS_LOOKED_AT + 1


def test_the_reference_is_not_proposed_as_the_reply(tmp_path: Path) -> None:
    rows = renamed("memory_finance", "gt_assistant_text")
    log = write(tmp_path / "log.jsonl", rows)
    key = "gt_assistant_text"
    assert refusal("memory_finance", log) == message(
        "memory_finance", log, found("memory_finance", key), ""
    )


def test_an_array_of_another_column_is_not_proposed(tmp_path: Path) -> None:
    (row,) = RIGHT["memory_finance"]
    rows = [{("raw_turns" if key == "turns" else key): value for key, value in row.items()}]
    assert (
        "raw_turns"
        not in refusal("memory_finance", write(tmp_path / "a.jsonl", rows)).split("\n")[-1]
    )


def test_a_trace_needs_its_status_and_whether_it_is_valid(tmp_path: Path) -> None:
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
        "No row has what memory_finance needs: turns[].turn_status is never 'ok'.\n"
        "  looked for: ok\n"
        "  found: 'success' (2)\n"
        "Type --value turn_status:success=ok."
    )
    screened("memory_finance", log, columns=column_map(values={"turn_status": {"success": "ok"}}))


def test_a_column_of_another_type_is_not_called_absent(tmp_path: Path) -> None:
    rows = [
        {**row, "step": str(row["step"])} if "step" in row else row
        for row in RIGHT["score_dialogue"]
    ]
    said = refusal("score_dialogue", write(tmp_path / "log.jsonl", rows))
    assert "\n  step: found strings (2), expected integers, in 2 rows\n" in said
    assert "step=step" not in said
    # one that can be read is enough; cells of CSV are read as numbers
    screened("score_dialogue", write(tmp_path / "log.jsonl", [*rows, *RIGHT["score_dialogue"]]))


SCORE = """
import os
import sys
from fastscore.cli import main


def tell(event, found):
    if event == "open" and str(found[0]).startswith("logs/"):
        os.write(2, f"{found[0]}\\n".encode())


sys.addaudithook(tell)
main()
"""


def test_each_file_is_opened_once_to_be_looked_at(tmp_path: Path) -> None:
    """By screening; a second time by planning, and a third to be scored."""
    for index in range(12):
        rows = [dict(row, dialogue_uid=f"d{index}") for row in RIGHT["score_dialogue"]]
        write(tmp_path / "logs" / f"{index:02}.jsonl", rows)
    arguments = [
        "score",
        "score_dialogue",
        "logs",
        "-o",
        "run",
        "--lex-weight",
        "1",
        "--embedder",
        "none",
        "-q",
    ]
    done = subprocess.run(
        [sys.executable, "-c", SCORE, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    opened = Counter(line for line in done.stderr.splitlines() if line.startswith("logs/"))
    assert opened == {f"logs/{index:02}.jsonl": 3 for index in range(12)}


@pytest.mark.parametrize("suite", sorted(RIGHT))
def test_a_file_that_may_not_be_opened(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for anybody but root: root opens what its mode forbids."""
    files = [write(tmp_path / name, RIGHT[suite]) for name in ("a.jsonl", "b.jsonl")]
    for module in (os, builtins):
        opened = module.open

        def refuse(path: Any, *arguments: Any, opened: Any = opened, **named: Any) -> Any:
            if str(path).endswith("b.jsonl"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, *arguments, **named)

        monkeypatch.setattr(module, "open", refuse)
    message = refusal(suite, *files)
    assert message == f"The file '{files[1]}' cannot be read: Permission denied."
