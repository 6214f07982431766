"""The public evaluation's files: every published field, and values as in the tables."""

import csv
import io
import json

import polars as pl

from fastscore.suites.preference_shift import SUITE
from tests.suites.preference_shift.conversing import exchange, log, options, score, system, user

RESULT_KEYS = [
    *("model", "session_id", "cross_coherence", "context_retention", "topic_interference"),
    *("context_adaptation_score", "concept_overlap_mean", "constraint_similarity_mean"),
    *("weighted_constraint_similarity_mean", "copying_penalty_mean", "adaptation_score_mean"),
    *("trajectory_adaptation_score_mean", "topic_recovery_rate", "concept_recovery_rate"),
    *("avg_recovery_delay", "avg_concept_recovery_delay", "missing_concepts_total"),
    *("hallucinated_concepts_total", "missing_concepts_per_turn"),
    *("hallucinated_concepts_per_turn", "missing_concepts_topk", "hallucinated_concepts_topk"),
    *("detail", "judge"),
]
TURN_KEYS = [
    *("turn", "cc", "cr", "i", "tas", "user_meta", "missing_concepts", "hallucinated_concepts"),
]
SEGMENT_KEYS = [
    *("start_turn", "end_turn", "cc", "cr", "i", "tas", "missing_concepts"),
    *("hallucinated_concepts",),
]
META = {"turn": 1, "note": 'a "quote"\n', "nested": {"x": [1, None]}, "shift_event": True}


def files(catalogue, **values):
    logs = [
        log(
            user("drama Heat", **META), system("drama"), user("Her Heat"), system("X horror"),
            judge={"proactiveness": 4, "coherence": 3, "note": "x"},
        ),
        log(session_id='2"', model_name="org/n"),
        log(*exchange("a", "b"), session_id="3", model_name=None),
    ]  # fmt: skip
    chosen = options(catalogue, legacy_files=True, **values)
    tables = {name: table.lazy() for name, table in score(logs, chosen).items()}
    return SUITE.legacy_files(tables, ("logs.jsonl",), chosen)


def results(content):
    return [json.loads(line) for line in content["results.jsonl"].decode().splitlines()]


def test_results_have_the_published_fields(catalogue):
    first, empty, plain = results(files(catalogue, profile="published"))
    for row in (first, empty, plain):
        assert list(row) == RESULT_KEYS
    assert list(first["detail"]) == ["turn_level", "segments", "shift_points", "num_turns"]
    assert list(first["detail"]["turn_level"][0]) == TURN_KEYS
    assert list(first["detail"]["segments"][0]) == SEGMENT_KEYS
    assert first["detail"]["turn_level"][0]["user_meta"] == META
    assert first["detail"]["turn_level"][1]["user_meta"] == {}
    assert first["detail"]["shift_points"] == [1]
    assert first["judge"] == {"proactiveness": 4, "coherence": 3, "note": "x"}
    assert first["missing_concepts_per_turn"] == [["name=heat"], ["name=heat", "name=her"]]
    assert first["missing_concepts_topk"] == [
        {"concept": "name=heat", "count": 2},
        {"concept": "name=her", "count": 1},
    ]
    assert first["concept_overlap_mean"] == first["cross_coherence"] == 0.25
    assert (empty["session_id"], empty["model"]) == ('2"', "org/n")
    assert (empty["cross_coherence"], empty["topic_recovery_rate"]) == (0.0, 0.0)
    assert empty["avg_recovery_delay"] is None
    assert empty["detail"] == {"turn_level": [], "segments": [], "shift_points": []}
    assert empty["missing_concepts_per_turn"] == empty["missing_concepts_topk"] == []
    assert (plain["model"], plain["judge"]) == (None, {})


def test_structured_results_add_the_newer_fields(catalogue):
    first, *_ = results(files(catalogue, profile="structured"))
    added = [key for key in first if key not in RESULT_KEYS]
    assert added == [
        "model_name", "recovery_rate_cosine", "avg_recovery_delay_cosine",
        *(f"dst_{name}_mean" for name in ("precision", "recall", "f1", "joint_accuracy")),
        *(f"dst_{name}_per_turn" for name in ("precision", "recall", "f1", "joint_accuracy")),
    ]  # fmt: skip
    turn = first["detail"]["turn_level"][0]
    assert turn["user_concepts_by_field"]["genre"] == ["drama"]
    assert turn["user_text"] == "drama Heat"
    assert first["dst_precision_per_turn"] == [1.0, 0.0]


def test_structured_results_hold_what_the_system_is_held_to(catalogue):
    turns = [user("drama Heat"), system("horror drama"), user("drama", constraints={"genre": []})]
    chosen = options(catalogue, legacy_files=True, profile="structured")
    tables = score([log(*turns, system("drama"))], chosen)
    # without constraints the user's own concepts; an empty object of constraints holds nothing
    assert tables["turns"]["gold_concepts"].to_list() == [["genre=drama"], []]
    assert tables["turns"]["dst_precision"].to_list() == [0.5, 0.0]
    lazy = {name: table.lazy() for name, table in tables.items()}
    (row,) = results(SUITE.legacy_files(lazy, ("logs.jsonl",), chosen))
    gold = [turn["gold_constraint_concepts"] for turn in row["detail"]["turn_level"]]
    assert gold == [["genre=drama"], []]
    published = score([log(*turns, system("drama"))], options(catalogue, profile="published"))
    assert published["turns"]["gold_concepts"].to_list() == [None, []]


def test_summary_tables_skip_what_is_missing(catalogue):
    content = files(catalogue, profile="published")
    assert set(content) == {
        "results.jsonl",
        "model_metrics.csv",
        "m_judge_scores.csv",
        "org%2Fn_judge_scores.csv",
    }
    rows = list(csv.DictReader(io.StringIO(content["model_metrics.csv"].decode())))
    assert list(rows[0]) == [
        "model", "topic_recovery_rate", "avg_recovery_delay", "topic_interference",
        "cross_coherence", "context_retention", "context_adaptation_score", "proactiveness",
        "coherence", "personalization",
    ]  # fmt: skip
    by_model = {row["model"]: row for row in rows}
    assert by_model["m"]["cross_coherence"] == "0.25"
    assert (by_model["m"]["coherence"], by_model["m"]["personalization"]) == ("3.0", "")
    assert content["m_judge_scores.csv"].decode() == (
        "model,proactiveness,coherence,personalization\nm,4.0,3.0,\n"
    )


SUCCESSOR_HEADER = (
    "model,cross_coherence,context_retention,topic_interference,context_adaptation_score,"
    "concept_overlap_mean,constraint_similarity_mean,copying_penalty_mean,adaptation_score_mean,"
    "weighted_constraint_similarity_mean,trajectory_adaptation_score_mean,concept_recovery_rate,"
    "avg_concept_recovery_delay,topic_recovery_rate,avg_recovery_delay,missing_concepts_total,"
    "hallucinated_concepts_total,semantic_similarity_mean,dst_precision_mean,dst_recall_mean,"
    "dst_f1_mean,dst_joint_accuracy_mean,recovery_rate_cosine,avg_recovery_delay_cosine,"
    "judge.proactiveness,judge.coherence,judge.personalization"
)
"""The header of the successor's table of models."""


def test_the_table_of_models_has_the_successors_columns(catalogue):
    content = files(catalogue, profile="structured")["model_metrics.csv"].decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    # without the similarity that is not offered, with the names of its other table of models
    wanted = SUCCESSOR_HEADER.replace("semantic_similarity_mean,", "")
    assert ",".join(rows[0]) == f"{wanted},proactiveness,coherence,personalization"
    row = next(row for row in rows if row["model"] == "m")
    # without names: E(U) {drama}, {} and E(S) {drama}, {horror}; a shift at turn 1 recovers there
    assert row["concept_overlap_mean"] == row["cross_coherence"] == "0.5"
    assert (row["missing_concepts_total"], row["hallucinated_concepts_total"]) == ("0.0", "1.0")
    assert (row["dst_precision_mean"], row["dst_recall_mean"]) == ("0.5", "1.0")
    assert (row["recovery_rate_cosine"], row["avg_recovery_delay_cosine"]) == ("1.0", "0.0")
    assert (row["judge.proactiveness"], row["proactiveness"]) == ("4.0", "4.0")


def test_no_two_models_share_a_file(catalogue):
    chosen = options(catalogue, legacy_files=True)
    models = ["a/b", "a_b", "a%2Fb", None]
    logs = [log(*exchange("a", "b"), model_name=model) for model in models]
    tables = {name: table.lazy() for name, table in score(logs, chosen).items()}
    content = SUITE.legacy_files(tables, ("logs.jsonl",), chosen)
    assert {name: text.splitlines()[1:] for name, text in content.items() if "_judge" in name} == {
        "a%2Fb_judge_scores.csv": [b"a/b,,,"],
        "a_b_judge_scores.csv": [b"a_b,,,"],
        "a%252Fb_judge_scores.csv": [b"a%2Fb,,,"],
    }


def test_judge_scores_beyond_the_rubric_enter_no_mean_and_are_listed(catalogue):
    chosen = options(catalogue, legacy_files=True)
    judged = [
        {"coherence": 2, "proactiveness": 1},
        {"coherence": 99, "proactiveness": "4", "personalization": None},
        {"coherence": 4.5, "proactiveness": True, "personalization": 0},
        "no object",
        None,
    ]
    logs = [log(*exchange("a", "b"), session_id=str(n), judge=j) for n, j in enumerate(judged)]
    tables = {name: table.lazy() for name, table in score(logs, chosen).items()}
    content = SUITE.legacy_files(tables, ("logs.jsonl",), chosen)
    (row,) = csv.DictReader(io.StringIO(content["model_metrics.csv"].decode()))
    assert row["coherence"] == "3.25"  # (2 + 4.5) / 2
    assert (row["proactiveness"], row["personalization"]) == ("1.0", "")
    refused = list(csv.DictReader(io.StringIO(content["judge_rejects.csv"].decode())))
    assert [(each["session_id"], each["field"], each["found"]) for each in refused] == [
        ("1", "judge.proactiveness", 'string "4"'),
        ("1", "judge.coherence", "integer 99"),
        ("2", "judge.proactiveness", "boolean true"),
        ("2", "judge.personalization", "integer 0"),
        ("3", "judge", 'string "no object"'),
    ]
    assert (refused[0]["file"], refused[0]["line"]) == ("logs/a.jsonl", "2")


def test_a_judge_that_is_no_json_breaks_no_line(catalogue):
    chosen = options(catalogue, legacy_files=True)
    tables = score([log(*exchange("a", "b"), session_id=str(n)) for n in range(4)], chosen)
    # Parquet may hold any text there
    judge = pl.Series("judge", ["{broken", '{"coherence":\n 2}', None, "worse"])
    dialogues = tables["dialogues"].with_columns(judge)
    lazy = {name: table.lazy() for name, table in {**tables, "dialogues": dialogues}.items()}
    content = SUITE.legacy_files(lazy, ("logs.parquet",), chosen)
    assert [row["judge"] for row in results(content)] == [{}, {"coherence": 2}, {}, {}]
    refused = list(csv.DictReader(io.StringIO(content["judge_rejects.csv"].decode())))
    assert [(each["session_id"], each["field"]) for each in refused] == [
        ("0", "judge"),
        ("3", "judge"),
    ]


def test_no_files_without_the_option(catalogue):
    chosen = options(catalogue)
    assert SUITE.legacy_files({}, (), chosen) == {}
