"""What the model cuts is counted, each text once, whatever the shards; and long texts are kept."""

import polars as pl
import pytest

import fastscore
from tests.by_keywords import score_by_keywords
from tests.conftest import fastscore_command, write_lines
from tests.models.tiny_bert import tiny_cache
from tests.run.logs import utterance
from tests.run.running import run_lexical

WORDS = [f"w{number}" for number in range(20)]
LIMIT = 16
"""The most tokens of the tiny model, of which two are special: fourteen words."""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    cache = tiny_cache(tmp_path_factory.mktemp("cache"), WORDS, name="cut-tiny", max_tokens=LIMIT)
    patch = pytest.MonkeyPatch()
    patch.setenv("FASTSCORE_CACHE", str(cache))
    yield "cut-tiny"
    patch.undo()


def write_log(path, uid, truth, prediction):
    write_lines(path, utterance(truth, prediction, dialogue_uid=uid))


LONG = " ".join(WORDS[:15])
LONGER = " ".join(WORDS)
WHOLE = " ".join(WORDS[:14])


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    write_log(folder / "a.jsonl", "a", LONG, WHOLE)
    write_log(folder / "b.jsonl", "b", LONG, LONGER)
    return folder


def score(logs, output, model, *more):
    done = fastscore_command(
        ["score", "score_dialogue", logs, "-o", output, "--embedder", model,
         "--lex-weight", "0.5", "--store", output.with_name("store"), *more]
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_outcome_says_how_many_texts_were_cut(logs, tmp_path, model):
    shown = score(logs, tmp_path / "run", model)
    assert "2 texts cut at the model's limit" in shown
    run = fastscore.open_run(tmp_path / "run")
    assert run.manifest.counts["cut_texts"] == 2
    listed = run.cut_texts.sort("tokens")
    assert listed["tokens"].to_list() == [17, 22]
    assert listed["limit"].to_list() == [LIMIT, LIMIT]
    assert listed["text"].to_list() == [LONG, LONGER]
    assert run.damaged() == []
    # again, with all vectors and counts in the store
    score(logs, tmp_path / "again", model)
    assert fastscore.open_run(tmp_path / "again").manifest.counts["cut_texts"] == 2


def test_a_text_of_several_shards_counts_once(logs, tmp_path, model):
    request = {"embedder": model, "store": tmp_path / "store", "lex_weight": 0.5}
    scores = score_by_keywords(logs, "score_dialogue", **request)
    assert sorted(scores.cut_texts["text"].to_list()) == sorted([LONG, LONGER])
    del request["lex_weight"]
    outcome = run_lexical(
        [logs], tmp_path / "run", options={"lex_weight": 0.5}, shard_bytes=1, **request
    )
    assert (outcome.manifest.shards, outcome.manifest.counts["cut_texts"]) == (2, 2)


def test_without_an_embedder_nothing_is_cut(logs, tmp_path):
    run = fastscore.score(
        logs, fastscore.ScoreDialogue(lex_weight=1.0), output=tmp_path / "run", embedder=None
    )
    assert "cut_texts" not in run.manifest.counts
    assert run.cut_texts.is_empty()
    assert not (tmp_path / "run" / "cut_texts").exists()


def test_long_texts_of_a_run_are_embedded_once(tmp_path, model):
    plan = {"days": [{"lunch": "w1", "dinner": "w2"}], "raw_output": " ".join(WORDS * 3)}
    turns = [
        {"speaker": "a", "intent": "user_provide_cuisine", "utterance": "w1 w2"},
        {"speaker": "System", "intent": "sys_present_plan", "utterance": "w3", "plan": plan},
    ]
    path = write_lines(tmp_path / "trips.jsonl", [{"dialogue_id": d, "turns": turns} for d in "xy"])
    found = {}
    for long in ("windows", "cut"):
        options = {"embedder": model, "store": tmp_path / "store", "m12_long": long}
        run = score_by_keywords(path, "group_travel", output=tmp_path / long, **options)
        in_memory = score_by_keywords(path, "group_travel", **options)
        found[long] = run.scan("dialogues").collect()["M12"].to_list()
        assert in_memory.tables["dialogues"]["M12"].to_list() == found[long]
        # M8 reads the raw output line by line and still cuts it; M12 as published cuts it too
        assert run.manifest.counts["cut_texts"] == {"windows": 1, "cut": 2}[long]
    assert found["windows"] != found["cut"]
    assert pl.Series(found["windows"]).n_unique() == 1
