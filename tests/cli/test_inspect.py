"""`fastscore inspect`: contents of logs, fitting suites, and a command that scores them."""

import contextlib
import json
import shlex

import polars as pl
import pytest

import fastscore
from fastscore.api.examples import example_names, write_example
from tests.conftest import fastscore_command, write_lines
from tests.logs.samples.wrong_logs import RIGHT


def fast(*arguments, folder):
    with contextlib.chdir(folder):
        return fastscore_command(arguments)


def found(folder, *logs):
    done = fast("inspect", *logs, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def renamed(path, names):
    text = path.read_text("utf-8")
    for name, other in names.items():
        text = text.replace(f'"{name}":', f'"{other}":')
    path.write_text(text, "utf-8")


@pytest.mark.parametrize("suite", example_names())
def test_each_example_fits_its_suite_as_it_is(tmp_path, suite):
    write_example(suite, tmp_path / "example")
    told = found(tmp_path, "example/logs")
    command = f"fastscore score {suite} example/logs -o run"
    assert told["commands"][suite].startswith(command)
    for file in told["files"]:
        first = file["fits"][0]
        assert (first["suite"], first["flags"]) == (suite, [])
        assert file["rows_looked_at"] > 0
    assert told["others"] == {}
    if suite == "score_dialogue":
        (tmp_path / "run").mkdir()  # a name that is taken is not proposed
        assert found(tmp_path, "example/logs")["commands"][suite].startswith(f"{command}2")


RENAMED = {
    "preference_shift": {"text": "content", "speaker": "role"},
    "memory_finance": {"pred_assistant_text": "reply"},
}


@pytest.mark.parametrize("suite", RENAMED)
def test_the_command_scores_what_has_other_names(tmp_path, suite):
    example = write_example(suite, tmp_path / "example")
    first = fast(*shlex.split(example.command("base"))[1:], folder=tmp_path)
    assert first.returncode == 0, first.stderr
    for path in (tmp_path / "example" / "logs").iterdir():
        renamed(path, RENAMED[suite])
    command = found(tmp_path, "example/logs")["commands"][suite]
    assert "--column" in command
    more = " ".join(example.options)
    typed = command.replace("--catalogue FILE", "") + " " + more
    done = fast(*shlex.split(typed)[1:], folder=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = [fastscore.open_run(tmp_path / name) for name in ("base", "run")]
    assert runs[0].summary.equals(runs[1].summary)


def test_keys_have_types_nulls_and_examples(tmp_path):
    rows = [{"a": 1, "b": {"c": None}}, {"a": None, "b": {"c": "text"}}, {"a": "x", "b": {}}]
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\nbroken\n")
    (file,) = found(tmp_path, "log.jsonl")["files"]
    assert file["whole"]
    keys = {key.pop("path"): key for key in file["keys"]}
    assert keys["a"] == {
        "count": 3,
        "null_share": 0.3333,
        "types": {"integer": 1, "string": 1},
        "example": "1",
    }
    assert keys["b.c"] == {"count": 2, "null_share": 0.5, "types": {"string": 1}, "example": "text"}
    assert file["fits"] == []
    assert set(file["unfit"]) == set(example_names())
    assert "group_travel" in file["unfit"]


def test_what_is_no_log_is_named_with_the_reason(tmp_path):
    write_example("memory_finance", tmp_path / "mixed")
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "mixed" / "table.parquet")
    (tmp_path / "mixed" / "broken.parquet").write_bytes(b"nothing")
    done = fast("inspect", "mixed", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mixed/LICENSE.md: its suffix names no format that is read" in done.stdout
    assert "broken.parquet" in done.stdout
    assert "fits memory_finance" in done.stdout
    assert "fastscore score memory_finance mixed -o run" in done.stdout


def test_columns_that_stand_in_arrays_are_not_missed(tmp_path):
    write_example("group_travel", tmp_path / "example")
    log = next((tmp_path / "example" / "logs").iterdir())
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()[:2]]
    write_lines(log, rows)
    (file,) = found(tmp_path, "example/logs")["files"]
    (fit,) = file["fits"]
    assert (fit["suite"], fit["null_for_want_of"], fit["scored_without"]) == (
        "group_travel",
        {},
        {},
    )
    for row in rows:
        row.pop("metadata")
        for turn in row["turns"]:
            turn.pop("plan", None)
            turn.pop("metadata", None)
    write_lines(log, rows)
    (file,) = found(tmp_path, "example/logs")["files"]
    assert "W1" in file["fits"][0]["null_for_want_of"]["turns[].plan"]
    assert file["fits"][0]["scored_without"] == {"turns[].metadata": ["M1"]}
    shown = fast("inspect", "example/logs", folder=tmp_path).stdout
    assert "  without turns[].metadata, scored all the same: M1" in shown


def test_the_roles_of_speakers_are_one_line_for_all_suites(tmp_path):
    said = [("client", "a comedy"), ("agent", "Airplane!")] * 2
    turns = [{"role": role, "content": text} for role, text in said]
    rows = [
        {"id": str(n), "messages": [{"role": "system", "content": "x"}, *turns]} for n in (1, 2)
    ]
    write_lines(tmp_path / "log.jsonl", rows)
    lines = fast("inspect", "log.jsonl", folder=tmp_path).stdout.splitlines()
    speakers = [line for line in lines if line.startswith("speakers: ")]
    assert speakers == ["speakers: agent = assistant, client = user, system = system"]
    assert lines[0].startswith("`fastscore judge` and a suite of your own")
    assert "  It measures how conversational recommenders follow a user" in lines[2]
    assert sum(line.startswith("fits ") for line in lines) > 1
    (file,) = found(tmp_path, "log.jsonl")["files"]
    assert file["speakers"] == {"agent": "assistant", "client": "user", "system": "system"}


def test_a_key_that_may_name_versions_is_offered_as_the_model(tmp_path):
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    rows = [{"id": "1", "prompt_version": name, "messages": turns} for name in ("a", "b")]
    write_lines(tmp_path / "log.jsonl", rows)
    shown = fast("inspect", "log.jsonl", folder=tmp_path).stdout
    said = "If 'prompt_version' tells systems apart, such as two versions, add: "
    assert shown.splitlines()[-1] == f"{said}--column model=prompt_version"
    write_lines(tmp_path / "log.jsonl", [row | {"model": "m"} for row in rows])
    assert "tells systems apart" not in fast("inspect", "log.jsonl", folder=tmp_path).stdout


def longest_line(text):
    return max(map(len, text.splitlines()))


def test_of_a_log_that_is_read_few_keys_are_shown(tmp_path):
    spoken = {"messages": [{"role": "user", "content": "A drama, please."}]}
    rows = {
        "read": spoken | {f"key{n}": n for n in range(30)},
        "not": {f"key{n}": n for n in range(30)},
    }
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
        shown = fast("inspect", f"{name}.jsonl", folder=tmp_path).stdout
        assert ("and 13 more keys: --json lists all" in shown) == (name == "read")
        assert ("key29" in shown) == (name == "not")


def test_a_folder_of_texts_says_how_to_convert_one(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("User: Hi\nBot: Hello\nUser: A drama\nBot: Heat\n")
    shown = fast("inspect", "texts", folder=tmp_path).stdout
    assert "No logs (`fastscore inspect FILE` says how one can be converted):" in shown
    assert "jq -Rnc" in fast("inspect", "texts/a.txt", folder=tmp_path).stderr


def test_no_line_is_endless(tmp_path):
    """Many names, keys, inputs and flags are listed in part, and commands stay whole."""
    turn = {"text": "a comedy", "k" * 3000: 1} | {f"key{n}": n for n in range(300)}
    names = [f"customer with the long number {n}" for n in range(60)]
    chat = [{**turn, "speaker": name} for name in names]
    (tmp_path / "log.jsonl").write_text(json.dumps({"id": "1", "conversation": chat}) + "\n")
    shown = fast("inspect", "log.jsonl", folder=tmp_path).stdout
    assert longest_line(shown) < 1800
    assert "more keys: --json lists all" in shown
    # many inputs are one glob
    logs = tmp_path / "logs"
    logs.mkdir()
    text = "".join(json.dumps(row) + "\n" for row in RIGHT["score_dialogue"])
    for number in range(70):
        (logs / f"of_this_one_dialogue_{number:02}.jsonl").write_text(text)
    every = sorted(f"logs/{path.name}" for path in logs.iterdir())
    shown = fast("inspect", *every, folder=tmp_path).stdout
    assert longest_line(shown) < 1800
    assert "fastscore score score_dialogue 'logs/*.jsonl' -o run" in shown
    # many flags are a layout
    intents = [f"user_provide_cuisines{'!' * n}" for n in range(1, 30)]
    rows = [
        {"dialogue_id": "t", "speaker": who, "intent": intent, "utterance": "x"}
        for intent in intents
        for who in ("ann", "system")
    ]
    write_lines(tmp_path / "plans.jsonl", rows)
    shown = fast("inspect", "plans.jsonl", folder=tmp_path).stdout
    assert longest_line(shown) < 1800


def test_an_export_under_other_names_leads_to_a_command(tmp_path):
    """An array of chats is read as lines of them are; an array inside an object is taken out."""
    said = [{"author": who, "body": f"text {at}"} for at, who in enumerate(["human", "ai"] * 2)]
    chats = [{"uuid": f"u{n}", "entries": said} for n in range(5)]
    (tmp_path / "array.json").write_text(json.dumps(chats))
    shown = fast("inspect", "array.json", folder=tmp_path).stdout
    judging = "fastscore judge array.json -o judgements --column turns=entries --column speaker="
    assert judging in shown
    (tmp_path / "object.json").write_text(json.dumps({"at": 1, "conversations": chats}))
    shown = fast("inspect", "object.json", folder=tmp_path).stdout
    command = "jq -c '.conversations[]' object.json > chats.jsonl"
    assert f"If each element is a chat: {command}\n" in shown


def test_chats_that_no_suite_reads_are_offered_to_a_judge(tmp_path):
    """By a command that was tried, or by what must be named."""
    said = [{"role": who, "content": text} for who, text in (("用户", "你好"), ("助手", "您好"))]
    (tmp_path / "roles.jsonl").write_text(json.dumps({"messages": said}))
    keys = {"对话": [{"角色": turn["role"], "内容": turn["content"]} for turn in said]}
    (tmp_path / "keys.jsonl").write_text(json.dumps(keys))
    shown = fast("inspect", "roles.jsonl", folder=tmp_path).stdout
    assert '[{"role": "用户",' in shown.replace("\n", "")
    (command,) = (line for line in shown.splitlines() if "fastscore judge roles" in line)
    named = (
        "judge keys.jsonl --column turns=对话 --column speaker=角色 --column text=内容 --model M"
    )
    shown = fast("inspect", "keys.jsonl", folder=tmp_path).stdout
    assert "`fastscore judge` reads any chat whose keys are named: --column turns=KEY" in shown
    (tmp_path / "texts.jsonl").write_text(
        json.dumps({"id": "a", "turns": ["你好", "您好", "谢谢"]})
    )
    shown = fast("inspect", "texts.jsonl", folder=tmp_path).stdout
    texts = "--column messages=turns --alternate user"
    assert f"If the user begins, `fastscore judge` reads texts by turns: {texts}" in shown
    of_texts = ["judge", "texts.jsonl", *texts.split(), "--model", "M", "-o", "out"]
    for words in (shlex.split(command)[1:], [*shlex.split(named), "-o", "out"], of_texts):
        tried = fast(*words, "--dry-run", folder=tmp_path)
        assert tried.returncode == 0, tried.stderr
        assert "requests   1," in tried.stdout


def test_columns_of_a_turn_each_are_named(tmp_path):
    """A suite reads the first question and answer; nobody reads the others."""
    (tmp_path / "numbered.csv").write_text("id,Turn 1,Turn 2,Turn 3\na,Hi,Hello,Bye\n")
    shown = fast("inspect", "numbered.csv", folder=tmp_path).stdout
    assert "If the columns 'turn 1', 'turn 2', 'turn 3' are turns of one dialogue" in shown
    assert "speaker=KEY" not in shown
    (tmp_path / "pairs.csv").write_text("question,answer,question2,answer2\nHi,Hello,Bye,Good\n")
    shown = fast("inspect", "pairs.csv", folder=tmp_path).stdout
    assert "If the columns 'question', 'answer', 'question2', 'answer2' are turns" in shown
    (tmp_path / "one.csv").write_text("question,answer,score1,score2\nHi,Hello,1,2\n")
    assert "If the columns" not in fast("inspect", "one.csv", folder=tmp_path).stdout


def test_one_key_that_is_missing_is_asked_for_and_texts_of_other_rows_are_no_pairs(tmp_path):
    write_example("score_dialogue", tmp_path / "example")
    renamed(tmp_path / "example" / "logs" / "dialogues.jsonl", {"prediction": "step_text"})
    shown = fast("inspect", "example/logs", folder=tmp_path).stdout
    asked = "prediction: absent or null in all rows. Name its key: --column prediction=KEY."
    assert f"not score_dialogue: {asked}\n" in shown
    assert "are pairs" not in shown
