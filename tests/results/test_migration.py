"""Scores of public scripts beside runs over the same logs."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

import fastscore
from fastscore.errors import InputError
from fastscore.results.migration import check_migration
from fastscore.results.runs import Run
from tests.conftest import fastscore_command, without_reader
from tests.oracles import guest_simulation as plain_guests
from tests.oracles import preference_shift as plain_shifts
from tests.oracles.preference_shift_concepts import PROFILES, make_catalogue
from tests.suites.memory_finance.test_published import BUNDLED, WITHOUT_MEMORY, published_runs


@pytest.fixture
def lexical(golden: Path, tmp_path: Path) -> Run:
    return fastscore.score(
        golden / "a.jsonl",
        fastscore.ScoreDialogue(lex_weight=1.0),
        output=tmp_path / "run",
        max_rejects=1.0,
    )


def test_published_scores_agree_but_for_their_rounding(lexical: Run, golden: Path) -> None:
    found = check_migration(lexical, [golden / "a.lex1.0.expected.json"])
    assert found.agrees
    rows = {row["metric"]: row for row in found.metrics.iter_rows(named=True)}
    assert rows["lexical_similarity"]["rounding"] + rows["lexical_similarity"]["equal"] > 0
    assert rows["semantic_similarity"]["null_here"] > 0  # switched off: 0.0 there, null here
    assert rows["U_best"]["differs"] == rows["U_best"]["only_old"] == 0


def test_a_closed_pipe_keeps_the_verdict(lexical: Run, golden: Path) -> None:
    old = golden / "a.lex0.5.expected.json"
    assert without_reader(["migrate", "check", lexical.path, old]) == (1, b"")


def test_scores_of_a_log_in_a_folder_are_found(lexical: Run, golden: Path, tmp_path: Path) -> None:
    document = json.loads((golden / "a.lex1.0.expected.json").read_text())
    document["log_file"] = "logs/of/a.jsonl"
    (tmp_path / "a-score.json").write_text(json.dumps(document))
    assert check_migration(lexical, [tmp_path / "a-score.json"]).agrees


def test_a_log_that_the_run_lacks_is_named(lexical: Run, golden: Path, tmp_path: Path) -> None:
    document = json.loads((golden / "a.lex1.0.expected.json").read_text())
    document["log_file"] = "logs/other.jsonl"
    (tmp_path / "a-score.json").write_text(json.dumps(document))
    done = fastscore_command(["migrate", "check", lexical.path, tmp_path])
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == (
        "the old scores name the log 'other.jsonl', which the run lacks: it has 'a.jsonl'"
    )


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


@pytest.mark.parametrize("folder", published_runs(), ids=lambda folder: str(folder.name))
def test_every_number_that_memory_finance_published_agrees(folder: Path, tmp_path: Path) -> None:
    """Summary (micro, macro, counts and dialogues) and turn rows, without a tolerance."""
    (trace,) = folder.glob("dialog_trace*")
    run = fastscore.score(
        trace,
        fastscore.MemoryFinance(
            profile="published", ignore_memory_keys=folder.name == WITHOUT_MEMORY
        ),
        output=tmp_path / "run",
    )
    found = check_migration(run, [folder])
    assert found.agrees
    counted = found.metrics.select("equal", "rounding", "null_here", "null_there").sum().row(0)
    (written,) = folder.glob("metrics_summary*.json")
    groups = json.loads(written.read_text())["metrics"].values()
    (turns,) = folder.glob("turn_eval*")
    n_turns = gzip.decompress(turns.read_bytes()).count(b"\n")
    n_summary = sum(
        len(part) for group in groups for part in (group["micro"], group["macro"], group["counts"])
    ) + sum(len(values) for group in groups for values in group["by_dialog"].values())
    assert counted == (n_summary + 7 * n_turns, 0, 0, 0)


def test_a_changed_summary_is_noticed(tmp_path: Path) -> None:
    folder = BUNDLED / "debug_finrobot_one2"
    (trace,) = folder.glob("dialog_trace*")
    run = fastscore.score(
        trace, fastscore.MemoryFinance(profile="published"), output=tmp_path / "run"
    )
    (written,) = folder.glob("metrics_summary*.json")
    summary = json.loads(written.read_text())
    summary["metrics"]["m4_compliance"]["counts"]["severe_count"] += 1
    summary["metrics"]["m5_explainability"]["micro"]["judge_score_mean"] += 1e-9
    (tmp_path / "metrics_summary.json").write_text(json.dumps(summary))
    found = check_migration(run, [tmp_path / "metrics_summary.json"])
    differing = found.metrics.filter(pl.col("differs") > 0)
    assert set(differing["metric"]) == {"severe_count", "judge_score_mean"}
    assert set(found.worst["place"]) == {"m4_compliance counts", "m5_explainability micro"}


def test_results_of_preference_shift_are_paired_by_model_and_session(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    """The old scores are those of the plain scorer, written as the published file has them."""
    run = suite_runs["preference_shift/published"]
    (log,) = (Path(about["name"]) for about in run.manifest.inputs)
    catalogue = make_catalogue(plain_shifts.read_lines(Path(run.manifest.options["catalogue"])))
    scored = plain_shifts.score_logs(plain_shifts.read_lines(log), catalogue, PROFILES["published"])
    rows = [
        {
            "model": one["model_name"],
            "session_id": one["session_id"],
            "cross_coherence": one["cc"],
            "context_retention": one["cr"],
            "topic_interference": one["i"],
            "context_adaptation_score": one["tas"],
            "topic_recovery_rate": one["recovery_rate"],
            "avg_recovery_delay": one["avg_recovery_delay"],
            "missing_concepts_total": one["missing_total"],
            "hallucinated_concepts_total": one["hallucinated_total"],
            "judge": {"coherence": 4},
        }
        for one in scored
    ]
    old = tmp_path / "results.jsonl"
    old.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_migration(run, [old], tolerance=1e-12)
    assert found.agrees
    assert found.metrics["differs"].sum() == found.metrics["null_here"].sum() == 0
    agreeing = found.metrics.select(
        pl.sum_horizontal("equal", "rounding", "tolerated").sum()
    ).item()
    assert agreeing == 8 * len(rows)
    assert len({row["model"] for row in rows}) > 1
    rows[0]["cross_coherence"] += 0.5
    rows[1]["avg_recovery_delay"] = None if rows[1]["avg_recovery_delay"] is not None else 1.0
    rows[2]["session_id"] = "no such session"
    old.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_migration(run, [old], tolerance=1e-12)
    assert not found.agrees
    by_metric = {row["metric"]: row for row in found.metrics.iter_rows(named=True)}
    assert by_metric["cross_coherence"]["differs"] == 1
    assert "--match" in by_metric["cross_coherence"]["options"]
    assert (
        by_metric["avg_recovery_delay"]["null_here"] + by_metric["avg_recovery_delay"]["null_there"]
        == 1
    )
    assert by_metric["cross_coherence"]["only_old"] == 1


def test_a_guest_csv_is_paired_by_conversation_and_level(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    """The old scores are the plain scorer's, to four decimals as the public script writes."""
    run = suite_runs["guest_simulation/published"]
    personas = plain_guests.read_personas(Path(run.manifest.options["personas"]))
    n_rows = 0
    for log in (Path(about["name"]) for about in run.manifest.inputs):
        lines = log.read_text(encoding="utf-8").splitlines()
        scored = plain_guests.score_lines(lines, personas, profile="published")
        for (name, level), found in scored.items():
            csv = tmp_path / f"exp{level}" / "all_conversations_metrics.csv"
            csv.parent.mkdir(exist_ok=True)
            if not csv.exists():
                csv.write_text("conversation_id,timestamp,PAS,BVS,ORA,DEI,CRRS\n")
            cells = [f"{found[metric]:.4f}" for metric in ("PAS", "BVS", "ORA", "DEI", "CRRS")]
            with csv.open("a") as written:
                written.write(",".join([name, "now", *cells]) + "\n")
            n_rows += 1
    agreed = check_migration(run, [tmp_path])
    assert agreed.agrees
    counted = agreed.metrics.select("equal", "rounding", "null_here", "null_there").sum().row(0)
    assert sum(counted[:2]) == 5 * n_rows
    assert counted[2:] == (0, 0)
    done = fastscore_command(["migrate", "check", run.path, tmp_path])
    assert done.returncode == 0
    assert done.stdout.startswith(f"{5 * n_rows:,} old numbers: ")


def test_rows_that_several_could_mean_are_refused(
    suite_runs: Mapping[str, Run], tmp_path: Path
) -> None:
    run = suite_runs["guest_simulation/published"]
    rows = run.scan("dialogues").collect()
    assert rows["conversation_id"].n_unique() < rows.height
    csv = tmp_path / "all_conversations_metrics.csv"
    listed = "".join(f"{name},0.5\n" for name in rows["conversation_id"].unique())
    csv.write_text("conversation_id,PAS\n" + listed)
    with pytest.raises(InputError, match=r"one row for several rows of .*: place"):
        check_migration(run, [csv])


def test_no_score_file_is_refused(lexical: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(
        InputError, match=r"in .*/empty or a folder below: looked for \*-score\.json"
    ):
        check_migration(lexical, [empty])
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{}")
    with pytest.raises(InputError, match="not a score file of score_dialogue"):
        check_migration(lexical, [wrong])
    wrong.write_text('{"a":' * 100_000)
    with pytest.raises(InputError, match="not a score file of score_dialogue"):
        check_migration(lexical, [wrong])
    packed = tmp_path / "scores.json.gz"
    for content, found in (
        (gzip.compress(b"{}")[:-3], "the gzip stream ends early"),
        (gzip.compress(bytes(100 << 20)), "expected at most 250 times as much"),
    ):
        packed.write_bytes(content)
        with pytest.raises(InputError, match=found):
            check_migration(lexical, [packed])


def test_a_file_without_a_score_is_refused(suite_runs: Mapping[str, Run], tmp_path: Path) -> None:
    wrong = tmp_path / "personas.json"
    wrong.write_text('{"persona_attributes": []}\n')
    run = suite_runs["guest_simulation/published"]
    with pytest.raises(InputError, match=r"No score of guest_simulation is in .*personas\.json"):
        check_migration(run, [wrong])
