"""Sixty wrong inputs and what each must say, and what is no fault."""

import builtins
import errno
import gzip
import os
from typing import Any

import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.column_map import column_map
from tests.by_keywords import score_by_keywords
from tests.logs.samples.screened import found, message, refusal, screened
from tests.logs.samples.wrong_logs import (
    NEEDED,
    OTHER_NAMES,
    RIGHT,
    changed,
    nested,
    nulled,
    renamed,
    without,
    write,
)

OTHER_CASES = {
    "score_dialogue": "Prediction",
    "preference_shift": "Text",
    "memory_finance": "predAssistantText",
    "guest_simulation": "ROLE",
    "group_travel": "Utterance",
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


@pytest.fixture(params=sorted(RIGHT))
def suite(request):
    return str(request.param)


def test_a_renamed_column(suite, tmp_path):
    for name in (OTHER_CASES[suite], OTHER_NAMES[suite]):
        log = write(tmp_path / "log.jsonl", renamed(suite, name))
        assert refusal(suite, log) == message(suite, log, found(suite, name), name)
    screened(suite, log, columns=column_map({NEEDED[suite]: name}))
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    assert refusal(suite, packed) == message(suite, packed, found(suite, name), name)
    assert screened(suite, write(tmp_path / "right.jsonl", RIGHT[suite])).notes == ()


def test_a_dropped_column(suite, tmp_path):
    log = write(tmp_path / "log.jsonl", without(suite))
    assert refusal(suite, log) == message(suite, log, found(suite, ""), "")
    log = write(tmp_path / "log.jsonl", nulled(suite))
    assert refusal(suite, log) == message(suite, log, found(suite, NEEDED[suite]), "")


RETYPED: dict[str, tuple[str, Any, str]] = {
    "score_dialogue": ("prediction", [1], "field prediction: wrong_type (found array"),
    "preference_shift": ("text", 7, "field conversation[0].text: wrong_type (found integer"),
    "memory_finance": ("turn_pair_id", {}, "field turns[0].turn_pair_id: wrong_type (found object"),
    "guest_simulation": ("role", True, "field role: wrong_type (found true"),
    "group_travel": ("utterance", {"a": 1}, "field utterance: wrong_type (found object"),
}


def test_a_column_of_another_type(suite, tmp_path):
    name, value, told = RETYPED[suite]
    log = write(tmp_path / "log.jsonl", changed(suite, lambda row: {**row, name: value}))
    options: dict[str, Any] = {"score_dialogue": {"lex_weight": 1.0}}.get(suite, {})
    if suite == "preference_shift":
        catalogue = tmp_path / "catalogue.json"
        catalogue.write_text('[{"name": "Her", "genre": ["comedy"]}]')
        options = {"catalogue": str(catalogue), "segments": "metadata"}
    with pytest.raises(InputError) as caught:
        score_by_keywords(log, suite, embedder="none", output=tmp_path / "run", **options)
    assert f"The first: {log}:1, {told}" in str(caught.value)


def test_a_nested_column(suite, tmp_path):
    log = write(tmp_path / "log.jsonl", nested(suite, "meta"))
    path = f"meta.{NEEDED[suite]}"
    said = refusal(suite, log)
    assert f"{path} (2)" in said
    assert said.endswith(f"    nearest: {path}\nType --column {NEEDED[suite]}={path}.")
    screened(suite, log, columns=column_map({NEEDED[suite]: path}))


def test_a_stored_log(suite, tmp_path):
    name = OTHER_NAMES[suite]
    log = write(tmp_path / "log.parquet", renamed(suite, name))
    said = refusal(suite, log)
    if suite == "memory_finance":
        assert said.startswith(f"{str(log)!r} is a Parquet file, which this suite does not read.")
        return
    assert f"Type --column {NEEDED[suite]}={name}." in said
    assert ("no such column" in said) == (suite != "preference_shift")


def test_a_file_of_another_suite_that_was_named(suite, tmp_path):
    other, place, keys = FOREIGN[suite]
    log = write(tmp_path / "log.jsonl", RIGHT[other])
    said = refusal(suite, log)
    assert said.startswith(f"{log}: no row has what {suite} needs.\n  {place}: absent or null in ")
    assert f"    found: {keys}" in said
    # nothing is listed twice
    assert said.count("    found: ") == 1
    write(tmp_path / "more.jsonl", RIGHT[other])
    said = refusal(suite, tmp_path)
    assert said.startswith(f"{log} and 1 more: no row has what {suite} needs.\n  {place}: ")


def test_a_folder_with_a_file_of_another_suite(suite, tmp_path):
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


def test_a_file_of_no_format(tmp_path):
    log = tmp_path / "log.txt"
    log.write_text("hello\n")
    said = refusal("score_dialogue", log)
    assert said.startswith(f"The suffix of {str(log)!r} names no format that is read. Suffixes")


def test_folders_that_are_pooled(tmp_path):
    for name in ("a/1", "a/2", "b/1"):
        write(tmp_path / f"{name}.jsonl", RIGHT["score_dialogue"])
    (note,) = screened("score_dialogue", tmp_path).notes
    assert note == (f"pools the files of 2 folders as one run: {tmp_path}/a (2), {tmp_path}/b (1)")
    # named one by one, as a shell writes a glob, they are pooled no less
    assert screened("score_dialogue", *sorted(tmp_path.glob("*/*.jsonl"))).notes == (note,)


def test_a_column_that_was_asked_for_must_stand_somewhere(suite, tmp_path):
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


def test_a_file_that_may_not_be_opened(tmp_path, monkeypatch):
    """As for anybody but root: root opens what its mode forbids."""
    files = [write(tmp_path / name, RIGHT["score_dialogue"]) for name in ("a.jsonl", "b.jsonl")]
    for module in (os, builtins):
        opened = module.open

        def refuse(path: Any, *arguments: Any, opened: Any = opened, **named: Any) -> Any:
            if str(path).endswith("b.jsonl"):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return opened(path, *arguments, **named)

        monkeypatch.setattr(module, "open", refuse)
    message = refusal("score_dialogue", *files)
    assert message == f"The file '{files[1]}' cannot be read: Permission denied."
