"""Dialogues of every suite as a judge reads them, and whose logs they are."""

import json
from dataclasses import replace

import polars as pl
import pytest

import fastscore
from fastscore.api.examples import example_names, write_example
from fastscore.errors import InputError, UsageError
from fastscore.llm.transcripts import find_logs, read_transcripts
from fastscore.suites.declarations import Column, Source
from fastscore.suites.registry import load_suite
from fastscore.suites.showing import spoken
from fastscore.suites.sums import name_of
from tests.by_keywords import score_by_keywords
from tests.conftest import write_lines
from tests.run.logs import utterance
from tests.suites.preference_shift.conversing import exchange, log, system


def transcripts_of(folder, name, *rows):
    path = write_lines(folder / f"{name}.jsonl", rows)
    return read_transcripts(find_logs([str(path)], name))[0]


def test_logs_of_one_row_a_dialogue_have_transcripts(tmp_path):
    talk = log(*exchange("hi", ""), system("hello"), session_id="7", model_name="m")
    (shifting,) = transcripts_of(tmp_path, "preference_shift", talk)
    assert (shifting.dialogue, shifting.model) == ("7", "m")
    assert shifting.turns == (("USER", "hi"), ("SYSTEM", "hello"))
    trace = {"dialog_id": "d", "turns": [{"user_text": "a?", "pred_assistant_text": "b."}]}
    (traced,) = transcripts_of(tmp_path, "memory_finance", trace)
    assert traced.turns == (("USER", "a?"), ("ASSISTANT", "b."))


def test_logs_of_one_row_a_message_have_transcripts(tmp_path):
    travellers = transcripts_of(
        tmp_path,
        "group_travel",
        {"dialogue_id": "g", "speaker": "Ann", "intent": "x", "utterance": "one"},
        {"dialogue_id": "h", "speaker": "Bob", "intent": "x", "utterance": "two"},
        {"dialogue_id": "g", "speaker": "System", "intent": "x", "utterance": "three"},
    )
    assert [each.dialogue for each in travellers] == ["g", "h"]
    assert travellers[0].turns == (("ann", "one"), ("SYSTEM", "three"))
    (guest,) = transcripts_of(
        tmp_path,
        "guest_simulation",
        {"conversation_id": "c", "role": "guest", "name": "guest", "content": "pizza"},
        {"conversation_id": "c", "role": "system", "name": "test_case_info", "content": "{}"},
        {"conversation_id": "c", "role": "waiter", "content": "sure"},
    )
    assert guest.turns == (("guest", "pizza"), ("waiter", "sure"))
    rows = utterance("hey", "h", dialogue_uid="u")
    (miner,) = transcripts_of(tmp_path, "score_dialogue", *rows)
    assert miner.turns == (("PREDICTION 0 OF 0", "h"), ("UTTERANCE 0", "hey"))


@pytest.mark.parametrize("suite", example_names())
def test_dialogues_have_the_ids_and_places_of_the_suites_tables(suite, tmp_path):
    write_example(suite, tmp_path)
    options = {
        "score_dialogue": {"lex_weight": 1.0},
        "guest_simulation": {"personas": str(tmp_path / "personas.json")},
        "preference_shift": {"catalogue": str(tmp_path / "catalogue.jsonl")},
    }.get(suite, {})
    if suite == "preference_shift":
        options["segments"] = "metadata"
    scores = score_by_keywords(str(tmp_path / "logs"), suite, embedder=None, **options)
    # a judge names dialogues as the log does
    ids = ("session_id", "conversation_id", "dialog_id")
    dialogues = scores.tables["dialogues"]
    dialogues = dialogues.with_columns(
        dialogue=next((name for name in ids if name in dialogues.columns), "dialogue")
    )
    columns = [name for name in ("dialogue", "model", "file", "line") if name in dialogues.columns]
    found = read_transcripts(find_logs([str(tmp_path / "logs")], suite))[0]
    assert sorted(dialogues.select(columns).rows()) == sorted(
        tuple(getattr(each, name) for name in columns) for each in found
    )
    # a judge's intervals have the units of the suite's design
    units = dialogues.select(name_of(load_suite(suite).design.unit)).to_series()
    assert sorted(each.unit for each in found) == units.sort().to_list()


def test_the_suite_is_the_runs_or_the_only_one_that_reads_the_logs(tmp_path):
    write_example("preference_shift", tmp_path / "shifts")
    assert find_logs([str(tmp_path / "shifts" / "logs")]).suite == "preference_shift"
    write_example("score_dialogue", tmp_path / "ex")
    assert find_logs([str(tmp_path / "ex" / "logs")]).suite == "score_dialogue"
    moved = tmp_path / "moved.jsonl"
    text = (tmp_path / "ex" / "logs" / "dialogues.jsonl").read_text()
    moved.write_text(text.replace('"dialogue_uid"', '"talk"'))
    fastscore.score(
        str(moved),
        fastscore.ScoreDialogue(lex_weight=1.0),
        output=tmp_path / "run",
        embedder=None,
        columns={"dialogue_uid": "talk"},
    )
    found = find_logs([str(tmp_path / "run")])
    assert (found.suite, found.inputs) == ("score_dialogue", (str(moved),))
    scored = fastscore.open_run(tmp_path / "run").scan("dialogues").collect()["dialogue"]
    said = read_transcripts(found)[0]
    assert sorted(each.dialogue for each in said) == sorted(scored)
    with pytest.raises(UsageError, match="a run of score_dialogue, not of memory_finance"):
        find_logs([str(tmp_path / "run")], "memory_finance")
    (tmp_path / "odd.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(InputError, match=r"odd\.jsonl: messages: absent or null in 1 row\. Name"):
        read_transcripts(find_logs([str(tmp_path / "odd.jsonl")]))


def test_any_suite_that_returns_turns_can_be_judged(tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    log.write_text('{"name": "b", "text": "hi"}\n{"name": "a", "text": "so"}\n')
    known = load_suite("score_dialogue")
    source = Source(columns=(Column(name="name", kind="text"), Column(name="text", kind="text")))

    def turns(raw, options):
        texts = raw.select("text", dialogue_row=pl.int_range(pl.len()), speaker=pl.lit("me"))
        return spoken(texts, raw.select("file", "line", dialogue="name"))

    new = replace(known, name="new", source=source)
    monkeypatch.setattr("fastscore.suites.score_dialogue.show.spoken_turns", turns)
    for place in ("fastscore.llm.transcripts", "fastscore.suites.registry"):
        monkeypatch.setattr(f"{place}.load_suite", lambda name: new)
    monkeypatch.setattr("fastscore.llm.transcripts.suite_names", lambda: ("new",))
    found = read_transcripts(find_logs([str(log)], "new"))[0]
    assert [(each.dialogue, each.line, each.turns) for each in found] == [
        ("b", 1, (("me", "hi"),)),
        ("a", 2, (("me", "so"),)),
    ]
    monkeypatch.delattr("fastscore.suites.score_dialogue.show.spoken_turns")
    with pytest.raises(UsageError, match="Logs of 'new' cannot be judged"):
        find_logs([str(log)], "new")


def test_turns_that_are_no_objects_are_not_spoken():
    raw = pl.DataFrame({"dialog_id": [None, "b"], "file": "f", "line": [3, 4]}).with_columns(
        turns=pl.Series(['[1, {"role": "x", "text": "hi"}, {"role": "y", "text": 2}]', '{"a": 1}'])
    )
    found = load_suite("memory_finance").turns(raw, {})
    assert found.rows() == [
        (0, "f:3", None, "f:3", "f", 3, "x", "hi"),
        (0, "f:3", None, "f:3", "f", 3, "y", None),
    ]


def test_logs_of_a_run_are_read_by_its_layout(tmp_path):
    chat = [{"from": "human", "value": "a pizza"}, {"from": "gpt", "value": "sure"}]
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"id": "c", "conversations": chat}) + "\n")
    with pytest.raises(InputError, match="every metric of guest_simulation is null"):
        fastscore.score(log, "guest_simulation", layout="sharegpt", output=tmp_path / "run")
    (found,) = read_transcripts(find_logs([str(tmp_path / "run")]))[0]
    assert found.dialogue == "c"
    assert [text for _, text in found.turns] == ["a pizza", "sure"]


def test_logs_without_a_suite_or_a_dialogue_are_refused(tmp_path):
    with pytest.raises(UsageError, match="Did you mean 'group_travel'"):
        find_logs(["x.jsonl"], "group_travl")
    (tmp_path / "empty.jsonl").write_text('{"conversation": []}\n')
    with pytest.raises(InputError, match="says anything"):
        read_transcripts(find_logs([str(tmp_path / "empty.jsonl")], "preference_shift"))
