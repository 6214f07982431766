"""Every dialogue of a run has one name: in any format, order, shard and spelling of a path."""

import gzip
import json
import shutil
from pathlib import Path

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.chosen import naming_source
from fastscore.logs.read.rows import read_names
from fastscore.suites.identity import file_names
from fastscore.suites.registry import load_suite
from tests.conftest import write_lines
from tests.suites.preference_shift.conversing import exchange

TURNS = exchange("a drama", "Heat")


def talk(pairs=1, **labels):
    return {**labels, "conversation": TURNS * pairs}


def turn(id, speaker, **labels):
    return {"session_id": id, "speaker": speaker, "text": "Heat", **labels}


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, rows)
    return path


@pytest.fixture
def suite(tmp_path):
    catalogue = lines(tmp_path / "catalogue.jsonl", [{"name": "Heat", "genre": ["drama"]}])
    return fastscore.PreferenceShift(catalogue=str(catalogue), segments="metadata")


def scored(logs, suite, **more):
    return fastscore.score(logs, suite, embedder=None, **more)


def names(logs, suite, **more):
    return scored(logs, suite, **more).tables["dialogues"]["dialogue"].to_list()


def test_a_name_is_the_id_the_variants_and_the_place_where_it_is_needed(tmp_path, suite):
    rows = [
        talk(session_id=""),
        talk(session_id=None),
        talk(session_id="1"),
        talk(session_id="1"),
        talk(session_id="2", model_name="m/1"),
        talk(session_id=20250101000000000001),
        talk(session_id=20250101000000000002),
    ]
    a = lines(tmp_path / "a" / "x.jsonl", rows)
    b = lines(tmp_path / "b" / "x.jsonl", [talk(session_id="1"), talk(session_id="3")])
    ours = [
        "a/x.jsonl:1",
        "a/x.jsonl:2",
        "1/in=a/x.jsonl:3",
        "1/in=a/x.jsonl:4",
        "2/model=m%2F1",
        "20250101000000000001",
        "20250101000000000002",
    ]
    theirs = ["1/in=b/x.jsonl:1", "3"]
    assert names([a, b], suite) == ours + theirs
    assert names([b, a], suite) == theirs + ours


def test_formats_and_lines_do_not_matter(tmp_path, suite):
    rows = [talk(k, session_id="1", model_name=m) for m, k in (("a", 1), ("b", 2), ("c", 3))]

    @fastscore.metric(suite="preference_shift", range=(0, None), better="neither")
    def n_turns_mine(dialogues: pl.LazyFrame, turns: pl.LazyFrame) -> pl.LazyFrame:
        """Number of turns."""
        n = turns.group_by("dialogue_row").agg(value=pl.len().cast(pl.Float64))
        return dialogues.select("dialogue_row").join(n, on="dialogue_row", how="left")

    paths = [lines(tmp_path / "a.jsonl", rows), tmp_path / "b.json", tmp_path / "c.json"]
    paths[1].write_text(json.dumps(rows))
    paths[2].write_text(json.dumps(rows, indent=1))
    first, *others = [scored(path, suite, metrics=[n_turns_mine]) for path in paths]
    assert first.tables["dialogues"]["n_turns_mine"].to_list() == [1, 2, 3]
    for run in (first, *others):
        assert len(fastscore.explain(run, "1/model=c", "cc").explanations) == 3
        for table, frame in first.tables.items():
            assert run.tables[table].drop("file", "line").equals(frame.drop("file", "line"))
        assert run.summary.equals(first.summary)


def test_names_do_not_depend_on_shards(tmp_path):
    rows = [talk(session_id=str(at % 50), model_name="ab"[at % 2]) for at in range(300)]
    paths = [str(lines(tmp_path / "a" / "x.jsonl", rows[:150])), str(tmp_path / "x.json")]
    Path(paths[1]).write_text(json.dumps(rows[150:]))
    source = load_suite("preference_shift").source
    found = []
    for size in (2000, 1 << 20):
        plan = plan_shards(
            resolve_inputs(paths, source.formats), source, shard_bytes=size, scratch=tmp_path
        )
        read = [
            read_names(shard.file_ranges, naming_source(source), plan.shared_names)
            for shard in plan.shards
        ]
        found.append(pl.concat(read).sort())
    assert found[0].equals(found[1])
    assert found[0].n_unique() == 300


def test_a_sample_depends_on_names_alone(tmp_path, suite, monkeypatch):
    rows = [talk(session_id=str(at // 2), model_name="ab"[at % 2]) for at in range(40)]
    path = lines(tmp_path / "logs" / "c.jsonl", rows)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
    shutil.copytree(tmp_path / "logs", tmp_path / "moved")
    monkeypatch.chdir(tmp_path)
    logs = ["logs", "./logs/c.jsonl", str(path), "moved/c.jsonl", "packed.jsonl.gz", rows]
    samples = [names(each, suite, sample=5, seed=5) for each in logs]
    assert len(samples[0]) == 5
    assert samples == [samples[0]] * len(logs)


def test_ids_that_are_blank_in_some_rows_are_refused(tmp_path, suite):
    path = tmp_path / "merged.csv"
    path.write_text("conversation_id,role,content\nd1,agent,x\n,agent,y\nd2,agent,z\n")
    with pytest.raises(InputError, match=r"merged\.csv:3: conversation_id: empty"):
        scored(path, "guest_simulation")
    turns = [turn("d", "USER"), turn("", "SYSTEM"), turn("e", "USER"), turn("", "SYSTEM")]
    with pytest.raises(InputError, match=r"log\.jsonl:2: session_id: empty"):
        scored(lines(tmp_path / "log.jsonl", turns), suite, layout="turns")


def test_models_within_an_id_are_told_apart_or_refused(tmp_path, suite):
    path = tmp_path / "log.jsonl"
    apart = [turn("d", who, model=m) for m in "ab" for who in ("USER", "SYSTEM")]
    assert names(lines(path, apart), suite, layout="turns") == ["d/model=a", "d/model=b"]
    replies = [turn("d", "USER"), turn("d", "SYSTEM", model="a")]
    assert names(lines(path, replies), suite, layout="turns") == ["d/model=a"]
    mixed = [*replies, turn("d", "USER"), turn("d", "SYSTEM", model="b")]
    with pytest.raises(InputError, match="'a', 'b' in dialogue d, and none in some"):
        scored(lines(path, mixed), suite, layout="turns")


def test_long_ids_of_turns_are_exact(tmp_path, suite):
    ids = [20250101000000000001, 20250101000000000002]
    rows = [turn(id, who) for id in ids for who in ("USER", "SYSTEM")]
    found = names(lines(tmp_path / "log.jsonl", rows), suite, layout="turns")
    assert found == [str(id) for id in ids]


def test_one_id_in_several_files_and_levels(tmp_path):
    def message(id, **labels):
        return {"conversation_id": id, "role": "agent", "content": "hi", **labels}

    a, b = tmp_path / "a" / "g.json", tmp_path / "b" / "g.json"
    for path, rows in (
        (a, [message("c"), message("c", experiment_level=2), message("d")]),
        (b, [message("c"), message("e")]),
    ):
        path.parent.mkdir()
        path.write_text(json.dumps(rows))
    found = names([a, b], fastscore.GuestSimulation())
    assert found == ["c/in=a/g.json", "c/level=2", "d", "c/in=b/g.json", "e"]


def test_files_are_named_by_the_ends_of_their_paths():
    paths = ["./logs/a/x.jsonl", "logs/b/x.jsonl.gz", "logs/b/y.jsonl", "z.json", "z.json.gz"]
    found = file_names(paths)
    assert [found[path] for path in paths] == [
        "a/x.jsonl",
        "b/x.jsonl",
        "y.jsonl",
        "z.json",
        "z.json.gz",
    ]
