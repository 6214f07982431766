"""Scores of batches are those of a run, wherever a stream is cut."""

import json
import pickle
import subprocess
import sys
from typing import get_args

import polars as pl
import pyarrow as pa
import pytest

import fastscore
from fastscore.api.arguments import SuiteName
from fastscore.errors import InputError, UsageError
from fastscore.suites import registry
from fastscore.suites.registry import load_suite
from tests.run.logs import utterance, write_logs, write_varied_logs
from tests.suites.preference_shift.conversing import exchange, write_catalogue

LEXICAL = fastscore.ScoreDialogue(lex_weight=1.0)


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs")


def table_of(logs):
    """Return the rows of logs with their places, as an engine has them."""
    rows = fastscore.scan([str(log) for log in logs], "score_dialogue").collect()
    return rows.to_arrow(compat_level=pl.CompatLevel.oldest())


def of_run(logs, table):
    """Return a table of a run, with reasons as plain texts."""
    return plain(fastscore.score([str(log) for log in logs], LEXICAL).tables[table])


def plain(table):
    reason = pl.struct(
        pl.element().struct.field("metric"), pl.element().struct.field("reason").cast(pl.String)
    )
    return table.with_columns(pl.col("null_reasons").list.eval(reason))


def streamed(scorer, batches, **how):
    found = pa.Table.from_batches(scorer.map_batches(batches, **how), scorer.schema)
    return pl.DataFrame(pl.from_arrow(found))


@pytest.mark.parametrize(
    ("table", "size"), [("steps", 1), ("utterances", 50), ("dialogues", 7), ("dialogues", 1000)]
)
def test_a_stream_gives_what_a_run_does_wherever_it_is_cut(logs, table, size):
    scorer = fastscore.Scorer(LEXICAL, table)
    batches = table_of(logs).to_batches(max_chunksize=size)
    assert streamed(scorer, batches, rows=size).equals(of_run(logs, table))


def test_a_batch_gives_what_a_run_does_with_file_and_line(logs):
    scorer = fastscore.Scorer(fastscore.ScoreDialogue(lex_weight=1.0), "dialogues")
    found = scorer(table_of(logs))
    assert isinstance(found, pa.Table)
    assert found.schema == scorer.schema
    expected = of_run(logs, "dialogues")
    assert pl.DataFrame(pl.from_arrow(found)).equals(expected)
    assert set(found["file"].to_pylist()) == {str(log) for log in logs}
    all_scores = scorer.scores(table_of(logs))
    assert plain(all_scores.tables["steps"]).equals(of_run(logs, "steps"))
    assert all_scores.rejects.is_empty()


def test_without_places_lines_are_rows_of_the_stream(logs):
    rows = pl.concat([pl.read_ndjson(log) for log in logs])
    scorer = fastscore.Scorer(LEXICAL, "steps")
    whole = plain(fastscore.score(rows, fastscore.ScoreDialogue(lex_weight=1.0)).tables["steps"])
    assert streamed(scorer, rows.iter_slices(11), rows=1).equals(whole)


def test_it_is_pickled_before_and_after_it_is_used(logs):
    scorer = fastscore.Scorer(LEXICAL, "steps")
    table = table_of(logs)
    fresh = pickle.loads(pickle.dumps(scorer))
    expected = scorer(table)
    assert fresh(table).equals(expected)
    again = pickle.loads(pickle.dumps(scorer))
    assert again.schema == expected.schema
    assert again.signature == scorer.signature
    assert again(table).equals(expected)


def test_the_schema_is_known_before_the_model_is_loaded():
    code = (
        "import sys, fastscore\n"
        "scorer = fastscore.Scorer('score_dialogue', 'steps')\n"
        "assert 'U_step' in scorer.schema.names\n"
        "assert not {'onnxruntime', 'faiss', 'fastscore.vectors.embedder'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("suite", get_args(SuiteName))
def test_every_type_of_a_schema_is_plain(suite, tmp_path):
    catalogue = write_catalogue(tmp_path)
    needs_one = suite == "preference_shift"
    chosen = fastscore.PreferenceShift(catalogue=catalogue) if needs_one else suite
    for table in (*(each.name for each in load_suite(suite).tables), "rejects"):
        for field in fastscore.Scorer(chosen, table).schema:
            assert not any(word in str(field.type) for word in ("large", "dictionary", "view"))


def test_a_dialogue_that_comes_again_is_refused():
    def row(uid, step):
        return {
            "dialogue_uid": uid,
            "event": "predicted",
            "utterance_index": 0,
            "step": step,
            "prediction": "a",
            "ground_truth": None,
        }

    scorer = fastscore.Scorer(LEXICAL, "dialogues")
    rows = [row("a", 0), row("b", 0), row("c", 0), row("a", 1)]
    for rows_at_once in (1, 100):
        batches = (pa.RecordBatch.from_pylist([each]) for each in rows)
        with pytest.raises(InputError, match=r"frame:4: the dialogue \(dialogue_uid 'a'\) comes"):
            list(scorer.map_batches(batches, rows=rows_at_once))


def test_rows_without_a_key_are_the_dialogue_of_their_file():
    rows = [
        {"file": file, "line": line, "event": "predicted", "utterance_index": 0, "step": line}
        | {"prediction": "a", "ground_truth": None}
        for file in ("x.jsonl", "y.jsonl")
        for line in range(3)
    ]
    scorer = fastscore.Scorer(LEXICAL, "dialogues")
    batches = [pa.RecordBatch.from_pylist([row]) for row in rows]
    assert streamed(scorer, batches, rows=1)["dialogue"].to_list() == ["x.jsonl", "y.jsonl"]


def conversations():
    chat = json.dumps(exchange("I like Drama", "Her is a Drama", "now Horror Film", "Alien"))
    return [{"session_id": f"s{i}", "model_name": "m", "conversation": chat} for i in range(5)]


def test_rows_that_are_dialogues_may_have_no_key(tmp_path):
    options = fastscore.PreferenceShift(catalogue=write_catalogue(tmp_path), segments="metadata")
    scorer = fastscore.Scorer(options, "dialogues", embedder=None)
    rows = [{"conversation": row["conversation"]} for row in conversations()]
    batches = [pa.RecordBatch.from_pylist([row]) for row in rows]
    expected = fastscore.score(pl.DataFrame(rows), options, embedder=None).tables["dialogues"]
    found = streamed(scorer, batches, rows=1)
    assert found.height == 5
    assert found.equals(plain(expected))


def test_other_names_of_columns_are_mapped(logs):
    columns = {"dialogue_uid": "meta.id", "prediction": "guess"}
    scorer = fastscore.Scorer(LEXICAL, "steps", columns=columns)
    assert scorer.key[:2] == ["meta.id", "challenge_uid"]
    moved = [
        {**row, "meta": {"id": row.pop("dialogue_uid")}, "guess": row.pop("prediction")}
        for row in table_of(logs).to_pylist()
    ]
    batches = pa.Table.from_pylist(moved).to_batches(max_chunksize=9)
    assert streamed(scorer, batches, rows=9).equals(of_run(logs, "steps"))


def test_turns_of_a_row_each_are_joined_over_batches(tmp_path):
    turns = [
        {"session_id": f"s{chat}", "turn": turn, "role": role, "content": text}
        for chat in range(3)
        for turn, (role, text) in enumerate(
            [("user", "I like Drama"), ("assistant", "Her is a Drama")] * 2
        )
    ]
    options = fastscore.PreferenceShift(catalogue=write_catalogue(tmp_path), segments="metadata")
    scorer = fastscore.Scorer(options, "dialogues", embedder=None, layout="turns")
    whole = pl.DataFrame(pl.from_arrow(scorer(pl.DataFrame(turns))))
    batches = [pa.RecordBatch.from_pylist([turn]) for turn in turns]
    found = streamed(scorer, batches, rows=1)
    assert found.height == 3
    assert found.equals(whole)


def bad_rows():
    return pa.table(
        {
            "file": ["a.jsonl", "a.jsonl", "b.jsonl"],
            "line": [7, 9, 2],
            "event": ["predicted", "predicted", "utterance_complete"],
            "utterance_index": ["0", "zero", "0"],
            "step": [0, 0, None],
            "prediction": ["hello", "hello", None],
            "ground_truth": [None, None, "hello"],
            "dialogue_uid": ["d", "d", "d"],
        }
    )


def test_rejects_have_their_places_and_are_counted_in_a_warning():
    scorer = fastscore.Scorer(LEXICAL, "steps")
    with pytest.warns(fastscore.RejectsWarning, match=r"1 of 3 rows\. The first: a\.jsonl:9"):
        assert scorer(bad_rows()).num_rows == 1
    scores = scorer.scores(bad_rows())
    assert scores.rejects.select("file", "line", "field", "reason").rows() == [
        ("a.jsonl", 9, "utterance_index", "wrong_type")
    ]
    rejects = fastscore.Scorer(LEXICAL, "rejects")
    (batch,) = rejects.map_batches(bad_rows().to_batches())
    assert batch.schema == rejects.schema
    assert batch["line"].to_pylist() == [9]


def test_empty_batches_give_empty_tables(logs):
    scorer = fastscore.Scorer(LEXICAL, "steps")
    table = table_of(logs)
    assert scorer(table[:0]).num_rows == 0
    assert scorer(table[:0]).schema == scorer.schema
    assert list(scorer.map_batches([])) == []
    assert list(scorer.map_batches([table[:0]])) == []
    mixed = [table[:0], table[:5], table[:0], table[5:]]
    assert streamed(scorer, mixed, rows=1).equals(of_run(logs, "steps"))


def test_a_column_may_be_null_throughout_a_batch():
    guess, complete = utterance("a", "a", dialogue_uid="d")
    batches = [
        pa.RecordBatch.from_pylist([row])
        for row in (guess | {"ground_truth": None}, complete | {"step": None})
    ]
    scorer = fastscore.Scorer(LEXICAL, "steps")
    for rows in (1, 10):
        assert streamed(scorer, batches, rows=rows)["U_step"].to_list() == [1.0]


def test_bad_requests_are_named(logs):
    with pytest.raises(UsageError, match="Unknown table 'step' of score_dialogue"):
        fastscore.Scorer("score_dialogue", "step")
    with pytest.raises(TypeError, match=r"suite: fastscore\.Scorer\(fastscore\.ScoreD"):
        fastscore.Scorer("score_dialogue", lex_weight=1.0)
    with pytest.raises(UsageError, match="Unknown suite"):
        fastscore.Scorer("dialogue_score")
    scorer = fastscore.Scorer(LEXICAL)
    with pytest.raises(UsageError, match="The batch is of type str, expected a frame"):
        scorer(str(logs[0]))
    with pytest.raises(InputError, match="no row has what score_dialogue needs"):
        scorer(pa.table({"text": ["a"]}))
    with pytest.raises(InputError, match="no row has dialogue_uid"):
        list(
            scorer.map_batches(
                [
                    table_of(logs)
                    .drop_columns(["file", "line"])
                    .rename_columns({"dialogue_uid": "conversation_id"})
                ]
            )
        )


def test_memory_is_bounded_by_the_rows_that_are_scored_together(logs):
    read = []

    def batches():
        for batch in table_of(logs).to_batches(max_chunksize=10):
            read.append(batch.num_rows)
            yield batch

    scorer = fastscore.Scorer(LEXICAL, "steps")
    first = next(iter(scorer.map_batches(batches(), rows=20)))
    assert first.num_rows
    assert sum(read) <= 40


def test_a_suite_of_this_process_alone_scores_here_and_is_not_pickled(monkeypatch):
    monkeypatch.setattr(registry, "_declared_here", {})

    @fastscore.suite(
        columns={"text": str}, metrics={"turns": {"range": (0, None), "better": "neither"}}
    )
    def counted(rows: pl.LazyFrame) -> pl.LazyFrame:
        """Turns of a dialogue."""
        return rows.group_by("dialogue_row").agg(turns=pl.len().cast(pl.Float64))

    scorer = fastscore.Scorer(counted)
    batches = [pa.RecordBatch.from_pylist([{"dialogue": id, "text": "x"}]) for id in "aab"]
    assert streamed(scorer, batches, rows=1)["turns"].to_list() == [2.0, 1.0]
    with pytest.raises(UsageError, match="'counted' is declared in this process alone"):
        pickle.dumps(scorer)


@pytest.mark.usefixtures("default_model")
def test_vectors_give_what_a_run_does(tmp_path):
    logs = write_varied_logs(tmp_path / "logs", files=2, dialogues=3)
    options = fastscore.ScoreDialogue(lex_weight=0.5, baseline_pairs=20)
    run = fastscore.score([str(log) for log in logs], options, store=tmp_path / "store")
    scorer = fastscore.Scorer(options, "steps", store=tmp_path / "other")
    found = streamed(scorer, table_of(logs).to_batches(max_chunksize=9), rows=20)
    expected = run.tables["steps"]
    assert found["U_step"].to_numpy() == pytest.approx(expected["U_step"].to_numpy(), abs=1e-6)
    assert scorer.signature == run.signature


def orders(n):
    """Return guests' messages, those of all conversations after one another, as exports are."""
    states = {"menu_exploration_style": "explores_menu", "ordering_style": "one_by_one"}
    return [
        {"conversation_id": f"c{c}", "experiment_level": 1, "role": "agent", "content": f"m{m}"}
        | states
        | {"mood_tone": "confused" if m * 7 % (c + 3) == 1 else "casual"}
        for m in range(12)
        for c in range(n)
    ]


def test_rows_of_one_line_are_sorted_totally_by_their_numbers(tmp_path):
    """Any engine puts rows into the order of the log, however it moved them."""
    (tmp_path / "log.json").write_text(json.dumps(orders(20)), "utf-8")
    log = str(tmp_path / "log.json")
    run = fastscore.score(log, "guest_simulation", progress=False).tables["dialogues"]
    scorer = fastscore.Scorer("guest_simulation", "dialogues")
    rows = fastscore.scan(log, "guest_simulation").with_row_index("row").collect()
    order = [*scorer.key, "file", "row"]
    assert rows["line"].n_unique() == 1
    assert not rows.select(order).is_duplicated().any()
    moved = rows.sample(fraction=1.0, shuffle=True, seed=1).sort(order)
    found = streamed(scorer, moved.iter_slices(7), rows=7)
    columns = ["dialogue", "BVS"]
    assert found.select(columns).sort("dialogue").equals(run.select(columns).sort("dialogue"))
    assert run["BVS"].n_unique() > 1


@pytest.mark.parametrize("size", [1, 100])
def test_ids_that_repeat_have_names_of_their_own(tmp_path, size):
    """Two dialogues of one id on one line: the second in a stream is named by its place."""
    options = fastscore.PreferenceShift(catalogue=write_catalogue(tmp_path), segments="metadata")
    scorer = fastscore.Scorer(options, "dialogues", embedder=None)
    log = tmp_path / "log.json"
    chats = conversations()
    log.write_text(json.dumps([chats[0], chats[1], chats[0], chats[0]]), "utf-8")
    assert scorer.key == ["session_id"]
    rows = fastscore.scan(str(log), options).collect()
    run = fastscore.score(str(log), options, embedder=None, progress=False).tables["dialogues"]
    names = [name.replace(f"{log}", log.name) for name in scorer(rows)["dialogue"].to_pylist()]
    assert names == run["dialogue"].to_list()
    assert run["dialogue"].n_unique() == 4
    in_stream = streamed(scorer, rows.iter_slices(size), rows=size)["dialogue"]
    assert in_stream.n_unique() == 4
    assert in_stream[1] == "s1/model=m"


def test_a_call_asks_polars_for_few_frames(logs):
    """Each collected frame takes a tenth of a millisecond, whatever it holds."""
    scorer, rows = fastscore.Scorer(LEXICAL, "steps"), table_of(logs[:1])
    scorer(rows)
    collected = []

    def note(frame, event, called):
        if event == "c_call" and called.__name__ == "collect":
            collected.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        scorer(rows)
    finally:
        sys.setprofile(None)
    assert 20 < len(collected) < 54


@pytest.mark.parametrize("read", ["call", "stream"])
def test_every_batch_of_other_columns_is_looked_at(logs, read):
    rows = pl.DataFrame(pl.from_arrow(table_of(logs)))
    scorer = fastscore.Scorer(LEXICAL, "steps")
    n_steps = scorer(rows).num_rows
    for wrong in (rows.rename({"event": "kind"}), pl.DataFrame({"a": [1]})):
        with pytest.raises(InputError, match="no row has "):
            scorer(wrong) if read == "call" else streamed(scorer, [rows, wrong])
    assert scorer(rows.reverse()[::-1].with_columns(more=1)).num_rows == n_steps > 0


def test_one_frame_is_a_stream(logs):
    scorer = fastscore.Scorer(LEXICAL, "steps")
    table = table_of(logs)
    expected = plain(streamed(scorer, table.to_batches(max_chunksize=7)))
    for whole in (table, pl.DataFrame(pl.from_arrow(table)), table.to_pandas(), table.to_reader()):
        assert plain(streamed(scorer, whole)).equals(expected)
