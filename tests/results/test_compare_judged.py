"""A judge's scores, joined to runs of any suite and compared like metrics."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fastscore
from fastscore.errors import InputError, UsageError
from fastscore.results.runs import Run
from tests.conftest import fastscore_command
from tests.results.comparing import guests, row_of, scored


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("judged")


@pytest.fixture(scope="module")
def base(folder: Path) -> Run:
    return scored(folder, "base", ("m", 0.4, range(8)))


@pytest.fixture(scope="module")
def better(folder: Path) -> Run:
    return scored(folder, "better", ("m", 0.8, range(8)))


@pytest.fixture(scope="module")
def both(folder: Path) -> Run:
    return scored(folder, "both", ("m1", 0.4, range(8)), ("m2", 0.8, range(8)))


def ids_of(run: Run) -> list[str]:
    return run.scan("dialogues").select("dialogue").collect()["dialogue"].to_list()


def judge_file(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def judged(path: Path, run: Run, scores: list[Any], **more: Any) -> Path:
    rows = [
        {"dialogue": dialogue, "judge": {"wit": score}, **more}
        for dialogue, score in zip(ids_of(run), scores, strict=True)
    ]
    return judge_file(path, rows)


A, B = [1, 2, 3, 2, 1, 4, 5, 2], [2, 4, 3, 5, 2, 4, 5, 4]


def test_scores_of_two_runs_are_compared_in_pairs(base: Run, better: Run, tmp_path: Path) -> None:
    files = [judged(tmp_path / "a.jsonl", base, A), judged(tmp_path / "b.jsonl", better, B)]
    found = fastscore.compare(base, better, judge=files, metrics=["judge.wit"])
    assert found.differences["metric"].to_list() == ["judge.wit"]
    row = row_of(found.differences, metric="judge.wit")
    # of the 2^8 choices of signs, those as far from 0 as seven rises and a tie that is no change
    difference = np.subtract(B, A)
    test = stats.permutation_test(
        (difference,),
        lambda d: abs(d.mean()) / d.std(ddof=1),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert (row["mean_a"], row["mean_b"]) == (20 / 8, 29 / 8)
    assert (row["n_a"], row["n_b"]) == (8, 8)
    assert row["test"] == "exact permutation"
    assert row["p"] == row["p_holm"] == pytest.approx(test.pvalue)
    ends = stats.ttest_rel(B, A).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    unbiased = math.sqrt(2 / 7) * math.gamma(3.5) / math.gamma(3.0)
    assert row["effect"] == pytest.approx(unbiased * difference.mean() / difference.std(ddof=1))


def test_they_stand_beside_the_metrics_and_correct_with_them(
    base: Run, better: Run, tmp_path: Path
) -> None:
    files = [judged(tmp_path / "a.jsonl", base, A), judged(tmp_path / "b.jsonl", better, B)]
    alone = fastscore.compare(base, better)
    found = fastscore.compare(base, better, judge=files)
    metrics = found.differences["metric"].to_list()
    assert metrics == [*alone.differences["metric"].to_list(), "judge.wit"]
    kept = ["metric", "mean_a", "mean_b", "difference", "low", "high", "p"]
    assert found.differences[:-1].select(kept).equals(alone.differences.select(kept))


def test_levels_of_one_run_are_compared(both: Run, tmp_path: Path) -> None:
    miners = both.scan("dialogues").select("miner_uid").collect()["miner_uid"].to_list()
    scores = [A[place % 8] if miner == "m1" else B[place % 8] for place, miner in enumerate(miners)]
    file = judged(tmp_path / "both.jsonl", both, scores)
    found = fastscore.compare(
        both, by="miner_uid", judge=file, metrics=["judge.wit"], pair_by="dialogue_uid"
    )
    sides = [
        [score for score, of in zip(scores, miners, strict=True) if of == miner]
        for miner in ("m1", "m2")
    ]
    row = row_of(found.differences, design="paired")
    assert (row["mean_a"], row["mean_b"], row["n_a"]) == (*np.mean(sides, axis=1), 8)
    apart = fastscore.compare(
        both, by="miner_uid", judge=file, metrics=["judge.wit"], unpaired=True, test="t"
    )
    row = row_of(apart.differences, design="independent")
    assert row["p"] == pytest.approx(stats.ttest_ind(*sides, equal_var=False).pvalue)


def test_what_is_missing_or_refused_is_null_for_its_reason(
    base: Run, better: Run, tmp_path: Path
) -> None:
    one = judged(tmp_path / "a.jsonl", base, [11, *A[1:]])
    other = judge_file(
        tmp_path / "b.jsonl",
        [
            *({"dialogue": id, "judge": {"wit": 3, "tone": 2}} for id in ids_of(better)[2:]),
            {"dialogue": "nobody", "judge": {"wit": 3}},
        ],
    )
    found = fastscore.compare(base, better, judge=[one, other], metrics=["judge.wit", "judge.tone"])
    sides = {(row["side"], row["metric"]): row for row in found.sides.to_dicts()}
    first = sides[str(base.path), "judge.wit"]
    assert (first["n"], first["n_bad_input"], first["n_missing_input"]) == (7, 1, 0)
    second = sides[str(better.path), "judge.wit"]
    assert (second["n"], second["n_bad_input"], second["n_missing_input"]) == (6, 0, 2)
    assert sides[str(base.path), "judge.tone"]["n_missing_input"] == 8
    assert row_of(found.differences, metric="judge.wit")["n_a"] == 6
    assert row_of(found.differences, metric="judge.tone")["reason"] == "too_few_units"
    notes = "\n".join(found.notes)
    assert f"{base.path}: 1 judge values refused, the first {one}:1: judge.wit: out of ran" in notes
    assert f"{better.path}: 1 judge values refused, the first {other}:7: dialogue: not in" in notes
    wider = fastscore.compare(
        base, better, judge=[one, other], metrics=["judge.wit"], judge_scale=(1, 11)
    )
    assert wider.sides.row(0, named=True)["n"] == 8


def test_a_place_tells_conversations_of_one_id_apart(folder: Path, tmp_path: Path) -> None:
    run = guests(folder, "levels", ("c", 1, [1.0]), ("c", 2, [0.0]), ("d", 1, [1.0]))
    names = ("conversation_id", "experiment_level", "file", "line")
    places = run.scan("dialogues").select(names).collect()
    rows = [
        {
            "dialogue": dialogue,
            "judge": {"wit": level},
            "judged_file": f"../{Path(file).relative_to(folder)}",
            "judged_line": line,
        }
        for dialogue, level, file, line in places.iter_rows()
    ]
    judge_file(tmp_path / "judgements.jsonl", rows)  # the folder names it
    found = fastscore.compare(run, by="experiment_level", judge=tmp_path, metrics=["judge.wit"])
    means = found.sides.select("side", "mean").rows()
    assert means == [("1", 1.0), ("2", 2.0)]
    for row in rows:
        del row["judged_file"], row["judged_line"]
    file = judge_file(tmp_path / "placeless.jsonl", rows)
    found = fastscore.compare(run, by="experiment_level", judge=file, metrics=["judge.wit"])
    assert "several conversations of the run" in "\n".join(found.notes)


def test_what_does_not_compare_is_refused(base: Run, better: Run, tmp_path: Path) -> None:
    a = judged(tmp_path / "a.jsonl", base, A, judged_by="x by pepper 1")
    b = judged(tmp_path / "b.jsonl", better, B, judged_by="y by pepper 1")
    with pytest.raises(UsageError, match="1 judge's files for 2 runs"):
        fastscore.compare(base, better, judge=a)
    with pytest.raises(UsageError, match=r"Several judges' scores: x by pepper 1, y by pepper 1\."):
        fastscore.compare(base, better, judge=[a, b])
    found = fastscore.compare(base, better, judge=[a, b], allow_different_signatures=True)
    assert "judges differ: x by pepper 1, y by pepper 1" in found.notes
    nobody = judge_file(tmp_path / "c.jsonl", [{"dialogue": "nobody", "coherence": 3}])
    with pytest.raises(UsageError, match=r"no score of a dialogue of .*not in the run \(nobody\)"):
        fastscore.compare(base, better, judge=[nobody, b])
    with pytest.raises(InputError):
        fastscore.compare(base, better, judge=[tmp_path / "nothing.jsonl", b])
    with pytest.raises(UsageError, match="expected a smaller and a larger number"):
        fastscore.compare(base, better, judge=[a, b], judge_scale=(5, 1))
    with pytest.raises(UsageError, match=r"no metric 'judge\.wits'.*"):
        fastscore.compare(base, better, judge=[a, a], metrics=["judge.wits"])


def test_the_command_shows_them(base: Run, better: Run, tmp_path: Path) -> None:
    a, b = judged(tmp_path / "a.jsonl", base, A), judged(tmp_path / "b.jsonl", better, B)
    files = ["--judge", str(a), "--judge", str(b)]
    shown = fastscore_command(["compare", base.path, better.path, *files, "--metric", "judge.wit"])
    assert shown.returncode == 0, shown.stderr
    assert "judge: wit" in shown.stdout
    csv = fastscore_command(["compare", base.path, better.path, *files, "--format", "csv"])
    table = pl.read_csv(csv.stdout.encode())
    assert table.row(-1, named=True)["name"] == "judge: wit"
