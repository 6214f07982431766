"""Logs by layout from the command line: lists, archives, parts of logs, unpaired turns."""

import json
import zipfile

import polars as pl
import pytest

import fastscore
from fastscore.logs.inputs.layout import layout_names, load_layout
from tests.cli.scoring import score
from tests.conftest import fastscore_command, write_lines

ASK, REPLY = "A comedy, please.", "Watch Her."
CHAT = [{"role": "user", "content": ASK}, {"role": "assistant", "content": REPLY}] * 2


def dialogues(run):
    return fastscore.open_run(run).scan("dialogues").collect()["dialogue"].to_list()


def test_layouts_are_listed_with_an_example_each():
    done = fastscore_command(["layouts"])
    assert done.returncode == 0
    blocks = done.stdout.rstrip("\n").split("\n\n")
    assert [block.partition(":")[0] for block in blocks] == list(layout_names())
    for block in blocks:
        _, example = block.splitlines()
        assert json.loads(example)


def test_layouts_are_printed_as_files(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(fastscore_command(["layouts", "openai", "--toml"]).stdout)
    assert load_layout(str(path)).chat == load_layout("openai").chat
    unknown = fastscore_command(["layouts", "opnai"])
    assert unknown.returncode == 2
    assert "openai" in unknown.stderr


def test_a_proposed_layout_is_kept_and_scored_by(tmp_path):
    path = write_lines(tmp_path / "log.jsonl", [{"key": "a", "messages": CHAT}])
    kept = tmp_path / "kept.toml"
    kept.write_text(fastscore_command(["inspect", path, "--as-layout", "preference_shift"]).stdout)
    code, _, said = score("preference_shift", tmp_path, path, "--layout", kept)
    assert code == 0, said
    none = fastscore_command(["inspect", path, "--as-layout", "memory_finance"])
    assert none.returncode == 2
    assert "Suites that can read them: preference_shift" in none.stderr


def test_brackets_alone_are_refused_with_what_to_leave_out(tmp_path):
    layout = tmp_path / "mine.toml"
    layout.write_text(f"""title = "Mine"
example = '{json.dumps([{"key": "a", "messages": CHAT}])}'
[chat]
dialogues = "[]"
turns = "messages"
""")
    done = fastscore_command(["layouts", layout])
    assert done.returncode == 2
    assert "dialogues of chat is '[]', expected a path before the brackets." in done.stderr
    assert "Leave it out" in done.stderr


def test_samples_of_an_archive_of_inspect_ai_are_dialogues(tmp_path):
    """As inspect_ai writes it: a header, summaries and a file for each sample and epoch."""
    path = tmp_path / "log.eval"
    head = {"version": 2, "eval": {"task": "t", "model": "m"}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", json.dumps(head | {"plan": {}}))
        archive.writestr("header.json", json.dumps(head | {"status": "success"}))
        archive.writestr("summaries.json", json.dumps([{"id": "d", "epoch": 1, "input": "x"}]))
        archive.writestr("reductions.json", "[]")
        for epoch in (1, 2):
            sample = {"id": "d", "epoch": epoch, "messages": CHAT, "output": {"model": "m"}}
            archive.writestr(f"samples/d_epoch_{epoch}.json", json.dumps(sample))
    code, _, said = score("preference_shift", tmp_path, path, "--layout", "inspect")
    assert code == 0, said
    assert dialogues(tmp_path / "run") == ["d:1/model=m", "d:2/model=m"]
    assert "left aside, as 3 files are no logs" in said
    shown = json.loads(fastscore_command(["inspect", path, "--json"]).stdout)
    assert f" {path} " in shown["commands"]["preference_shift"]


@pytest.mark.parametrize(
    ("option", "number", "lines", "expected"),
    [
        ("--limit", 3, 1, ["00", "01", "02"]),
        ("--limit", 4, 3, ["00", "01", "02", "10"]),  # lines that contain several
        ("--sample", 3, 1, None),
    ],
)
def test_each_dialogue_of_one_document_counts(tmp_path, option, number, lines, expected):
    rows = [
        {"samples": [{"id": f"{n}{m}", "epoch": 1, "messages": CHAT} for m in range(9 // lines)]}
        for n in range(lines)
    ]
    path = write_lines(tmp_path / "log.jsonl", rows)
    if lines == 1:
        path = path.rename(tmp_path / "log.json")
    code, _, said = score("preference_shift", tmp_path, path, "--layout=inspect", option, number)
    assert code == 0, said
    found = dialogues(tmp_path / "run")
    assert len(found) == number
    assert expected is None or found == [f"{name}:1" for name in expected]


def test_many_unpaired_turns_are_refused_with_the_option(tmp_path):
    chat = [{"role": "user", "content": ASK}] * 3 + CHAT[1:2]
    path = write_lines(tmp_path / "log.jsonl", [{"messages": chat}] * 5)
    code, _, said = score("preference_shift", tmp_path, path, "--layout", "openai")
    assert code == 3
    assert "10 of 20 messages pair with nothing" in said
    assert "Set merge_speakers to join" in said
    (tmp_path / "merged").mkdir()
    code, _, said = score(
        "preference_shift", tmp_path / "merged", path, "--layout", "openai", "--merge-speakers"
    )
    assert code == 0, said
    turns = fastscore.open_run(tmp_path / "merged" / "run").scan("turns").collect()
    assert turns.height == 5


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_headers_of_joined_files_are_no_rows(tmp_path, mark):
    header = "conversation_id,role,content\n"
    texts = ["".join(f'{n}{m},guest,"said, {m}"\n' for m in range(2)) for n in "ab"]
    path = tmp_path / "log.csv"
    path.write_text("".join(mark + header + text for text in texts))
    score("guest_simulation", tmp_path, path)  # whose metrics need more than texts
    run = fastscore.open_run(tmp_path / "run")
    assert dialogues(tmp_path / "run") == ["a0", "a1", "b0", "b1"]
    assert run.manifest.counts["rejects"] == 0
    lines = run.scan("messages").select(pl.col("line")).collect()["line"].to_list()
    assert lines == [2, 3, 5, 6]
