"""Judge scores: sources, refusals, and correlations."""

import json

import polars as pl
import pytest

from fastscore.results.agreement import read_judgements
from fastscore.suites.judged import MEAN, collect_judged, describe_rejects, judge_source
from fastscore.suites.preference_shift.analysis.tables import convergent_validity
from tests.conftest import write_lines
from tests.suites.preference_shift.analysis.analysing import scored_of, tables_of
from tests.suites.preference_shift.analysis.test_statistics import log

SCALE = (1.0, 5.0)
ANSWERS = ("ant", "ant bee", "ant bee cat", "ant bee cat dog", "dog", "ant")


def judged_logs(*judges, model="m"):
    """Make one conversation a judge, each answered differently; no judge where None."""
    logs = [
        log(model, f"{number}", ("ant", answer))
        for number, answer in zip(range(len(judges)), ANSWERS, strict=False)
    ]
    return [
        made if judge is None else made | {"judge": judge}
        for made, judge in zip(logs, judges, strict=True)
    ]


def scored(logs):
    return scored_of(tables_of(logs))


def read_judged(run, file, scale, extra=()):
    judgements = None if file is None else read_judgements(file, judge_source(extra))
    return collect_judged(run.conversations, judgements, scale, extra)


def scores_of(judged):
    return judged.scores.select("conversation", "judge", "score").rows()


def test_a_file_names_conversations_as_the_log_or_as_the_run_does(tmp_path):
    """Three conversations of two users under two models: ids of the log are not unique."""
    conversations = pl.DataFrame(
        {
            "conversation": pl.Series([0, 1, 2], dtype=pl.UInt32),
            "file": ["a.jsonl"] * 3,
            "line": [1, 2, 3],
            "dialogue": ["u1", "u1", "u2"],
            "model": ["m", "n", "m"],
            "identity": ["u1 of m", "u1 of n", "u2"],
            "judge": pl.Series([None] * 3, dtype=pl.String),
        }
    )
    file = tmp_path / "judge.csv"
    file.write_text("dialogue,model,coherence\nu1 of m,,1\nu1,n,2\nu2,,3\nu1,,4\n")
    found = collect_judged(conversations, read_judgements(file, judge_source(())), SCALE)
    assert scores_of(found) == [(0, "coherence", 1.0), (1, "coherence", 2.0), (2, "coherence", 3.0)]
    assert found.rejects["reason"].to_list() == ["several conversations of the run"]


def test_scores_of_the_log_with_their_mean():
    judged = read_judged(
        scored(judged_logs({"coherence": 4, "proactiveness": 2}, {"coherence": 5}, None)),
        None,
        SCALE,
    )
    assert judged.names == ("proactiveness", "coherence", MEAN)
    assert scores_of(judged) == [
        (0, "coherence", 4.0),
        (0, MEAN, 3.0),
        (0, "proactiveness", 2.0),
        (1, "coherence", 5.0),
    ]
    assert judged.rejects.is_empty()
    assert describe_rejects(judged) == ""


def test_what_is_no_score_in_range_is_refused_with_its_place():
    judges = ({"coherence": 7.1}, {"coherence": "4"}, {"coherence": True}, {"coherence": 0})
    judged = read_judged(
        scored(judged_logs(*judges, {"coherence": None}, {"coherence": 1})), None, SCALE
    )
    assert scores_of(judged) == [(5, "coherence", 1.0)]
    rejects = judged.rejects.select("file", "line", "field", "reason", "found", "expected").rows()
    expected = "a number from 1 to 5, or null"
    assert rejects == [
        ("logs/a.jsonl", 1, "judge.coherence", "out of range", "7.1", expected),
        ("logs/a.jsonl", 2, "judge.coherence", "not a number", '"4"', expected),
        ("logs/a.jsonl", 3, "judge.coherence", "not a number", "true", expected),
        ("logs/a.jsonl", 4, "judge.coherence", "out of range", "0", expected),
    ]
    assert describe_rejects(judged) == (
        "4 judge values refused, the first logs/a.jsonl:1: judge.coherence: out of range (7.1)."
    )


def write(path, rows):
    if path.suffix == ".jsonl":
        write_lines(path, rows)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        pl.DataFrame(rows, infer_schema_length=None).write_csv(path)
    else:
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet"])
def test_a_joined_file_with_columns_wins_over_the_log(suffix, tmp_path):
    rows = [
        {"session_id": "1", "model": "m", "coherence": 2, "tone": 3},
        {"session_id": "0", "model": "m", "coherence": 9, "tone": None},
    ]
    file = write(tmp_path / f"judge.{suffix}", rows)
    run = scored(judged_logs({"coherence": 4}, {"coherence": 5}, {"coherence": 3}))
    judged = read_judged(run, file, SCALE, ["tone"])
    assert judged.names == ("coherence", "tone", MEAN)
    found = [row for row in scores_of(judged) if row[1] != MEAN]
    assert found == [(1, "coherence", 2.0), (1, "tone", 3.0), (2, "coherence", 3.0)]
    assert judged.rejects.select("dialogue", "field", "found").rows() == [
        ("0", "judge.coherence", "9")
    ]


def test_rows_that_belong_to_no_conversation_or_to_several_are_refused(tmp_path):
    logs = [*judged_logs(None), *judged_logs(None, None, model="n")]
    rows = [
        {"dialogue": "0", "coherence": 2},
        {"dialogue": "0", "model": "n", "coherence": 3},
        {"dialogue": "0", "model": "n", "coherence": 4},
        {"dialogue": "7", "coherence": 5},
        {"dialogue": "1", "coherence": 1},
        {"dialogue": "1", "model": "m", "coherence": 1},
    ]
    judged = read_judged(scored(logs), write(tmp_path / "judge.jsonl", rows), SCALE)
    assert scores_of(judged) == [(1, "coherence", 3.0), (2, "coherence", 1.0)]
    assert judged.rejects.select("line", "reason").sort("line").rows() == [
        (1, "several conversations of the run"),
        (3, "given before"),
        (4, "not in the run"),
        (6, "not in the run"),
    ]


def test_one_bad_line_never_loses_the_good_ones(tmp_path):
    file = tmp_path / "judge.jsonl"
    file.write_text(
        '{"session_id": "0", "coherence": 4}\nnonsense\n{"session_id": "1", "coherence": 2}\n'
    )
    judged = read_judged(scored(judged_logs(None, None)), file, SCALE)
    assert scores_of(judged) == [(0, "coherence", 4.0), (1, "coherence", 2.0)]
    assert judged.rejects["line"].to_list() == [2]


def test_a_score_that_is_given_twice_counts_once(tmp_path):
    logs = judged_logs(None, None, None)
    rows = [
        {"session_id": f"{n}", "judge": {"coherence": 2 + n}, "coherence": 5, "overall": n + 1}
        for n in range(3)
    ]
    judged = read_judged(scored(logs), write(tmp_path / "judge.jsonl", rows), SCALE)
    assert [row for row in scores_of(judged) if row[1] == "coherence"] == [
        (n, "coherence", 2.0 + n) for n in range(3)
    ]
    assert [row[2] for row in scores_of(judged) if row[1] == MEAN] == [1.5, 2.5, 3.5]
    rejects = judged.rejects.select("line", "field", "reason", "found").rows()
    assert rejects == [(n, "judge.coherence", "given before", "5") for n in (1, 2, 3)]
    table = convergent_validity(scored(logs), judged)
    assert set(table.filter(judge="coherence", score="tas", group="all")["n"]) == {3}


def test_a_null_replaces_no_score(tmp_path):
    logs = judged_logs({"coherence": 4}, {"coherence": 3}, {"coherence": 2})
    rows = [
        {"session_id": "0", "judge": {"coherence": None}},
        {"session_id": "1", "judge": {"coherence": None}, "coherence": 5},
        {"session_id": "2", "coherence": None},
    ]
    judged = read_judged(scored(logs), write(tmp_path / "judge.jsonl", rows), SCALE)
    assert scores_of(judged) == [
        (0, "coherence", 4.0),
        (1, "coherence", 5.0),
        (2, "coherence", 2.0),
    ]
    assert judged.rejects.is_empty()


def test_no_score_is_called_as_their_mean_is(tmp_path):
    logs = judged_logs({MEAN: 2, "coherence": 3, "overall": 4}, {"coherence": 5})
    judged = read_judged(scored(logs), None, SCALE)
    assert judged.names == ("coherence", "overall", MEAN)
    assert (0, MEAN, 3.5) in scores_of(judged)
    assert judged.rejects.select("line", "field", "reason").rows() == [
        (1, f"judge.{MEAN}", "reserved name")
    ]
    assert convergent_validity(scored(logs), judged).height
