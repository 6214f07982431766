"""Scores of public scripts beside runs over the same logs."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import fastscore
from fastscore.errors import InputError
from fastscore.results.migration import check_migration
from fastscore.results.runs import Run
from tests.conftest import fastscore_command

TRACES = Path(__file__).parents[1] / "suites" / "memory_finance" / "published"


@pytest.fixture
def lexical(golden: Path, tmp_path: Path) -> Run:
    return fastscore.score(
        golden / "a.jsonl",
        "score_dialogue",
        output=tmp_path / "run",
        lex_weight=1.0,
        max_rejects=1.0,
    )


def test_published_scores_agree_but_for_their_rounding(lexical: Run, golden: Path) -> None:
    found = check_migration(lexical, [golden / "a.lex1.0.expected.json"])
    assert found.agrees
    rows = {row["metric"]: row for row in found.metrics.iter_rows(named=True)}
    assert rows["lexical_similarity"]["rounding"] + rows["lexical_similarity"]["equal"] > 0
    assert rows["semantic_similarity"]["null_here"] > 0  # switched off: 0.0 there, null here
    assert rows["U_best"]["differs"] == rows["U_best"]["only_old"] == 0


def test_what_differs_is_named_with_the_option(lexical: Run, golden: Path, tmp_path: Path) -> None:
    found = check_migration(lexical, [golden / "a.lex0.5.expected.json"])
    assert not found.agrees
    rows = {row["metric"]: row for row in found.metrics.iter_rows(named=True)}
    assert rows["lexical_similarity"]["differs"] == 0
    assert "--lex-weight" in rows["U_step"]["options"]
    assert check_migration(lexical, [golden / "a.lex0.5.expected.json"], tolerance=1.0).agrees
    done = fastscore_command(["migrate", "check", lexical.path, golden / "a.lex0.5.expected.json"])
    assert done.returncode == 1
    assert "--lex-weight" in done.stdout
    other = json.loads((golden / "a.lex1.0.expected.json").read_text())
    other["log_file"] = "z.jsonl"
    (tmp_path / "z.json").write_text(json.dumps(other))
    missing = check_migration(lexical, [tmp_path / "z.json"])
    assert not missing.agrees
    assert missing.metrics["only_old"].sum() > 0


def test_turn_rows_of_memory_finance_agree(suite_runs: Mapping[str, Run]) -> None:
    run = suite_runs["memory_finance"]
    found = check_migration(run, [TRACES / "debug_finrobot_one2"])
    assert {"judge_score_1_5", "key_coverage", "profile_score"} <= set(found.metrics["metric"])
    assert found.metrics["equal"].sum() > 0


def test_a_guest_csv_is_paired_by_conversation_and_level(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    run = suite_runs["guest_simulation"]
    rows = run.table("dialogues").collect().rows(named=True)
    for level in {row["experiment_level"] for row in rows}:
        folder = tmp_path / f"exp{level}"
        folder.mkdir()
        lines = ["conversation_id,timestamp,PAS,BVS"]
        lines += [
            f"{row['dialogue']},now,{row['PAS']:.4f},{row['BVS']:.4f}"
            for row in rows
            if row["experiment_level"] == level and None not in (row["PAS"], row["BVS"])
        ]
        (folder / "all_conversations_metrics.csv").write_text("\n".join(lines) + "\n")
    found = check_migration(run, [tmp_path])
    assert found.agrees
    assert found.metrics["differs"].sum() == 0


def test_no_score_file_is_refused(lexical: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="No score file there"):
        check_migration(lexical, [empty])
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(InputError, match="not a score file of score_dialogue"):
        check_migration(lexical, [wrong])
