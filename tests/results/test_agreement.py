"""Judges' files and people's compared: units, raters, coefficients and refusals."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

import fastscore
from fastscore.errors import InputError, UsageError
from tests.conftest import fastscore_command
from tests.statistics.test_agreement import plain_alpha

ONE = [1, 2, 3, 4, 5, 3, 2, 4, 1, 5]
TWO = [1, 3, 3, 4, 4, 2, 2, 5, 2, 5]
PEOPLE = [2, 2, 3, 5, 4, 3, 1, 4, 1, 4]


def judge_file(path: Path, scores: list[int], **more: object) -> Path:
    rows = [
        {"dialogue": f"d{at}", "judge": {"coherence": score}, **more}
        for at, score in enumerate(scores)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    people = ["dialogue,rater,coherence"]
    people += [f"d{at},ann,{score}" for at, score in enumerate(PEOPLE)]
    people += [f"d{at},bob,{score}" for at, score in enumerate(TWO[:4])]
    (tmp_path / "people.csv").write_text("\n".join(people))
    return [
        judge_file(tmp_path / "one.jsonl", ONE, judged_by="one"),
        judge_file(tmp_path / "two.jsonl", TWO[::-1], judged_by="two").rename(tmp_path / "2.jsonl"),
        tmp_path / "people.csv",
    ]


def test_pairs_of_raters_have_the_kappa_of_scikit_learn(files: list[Path]) -> None:
    found = fastscore.agreement(*files)
    assert found.raters == ("one", "two", "ann", "bob")
    scores = {"one": ONE, "two": TWO[::-1], "ann": PEOPLE, "bob": TWO[:4]}
    assert found.pairs.height == 6
    for row in found.pairs.iter_rows(named=True):
        n = row["n"]
        a, b = scores[row["first"]][:n], scores[row["second"]][:n]
        expected = cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert row["kappa"] == pytest.approx(expected, abs=1e-12)
        assert row["difference"] == pytest.approx(np.mean(b) - np.mean(a))
        assert n == (4 if "bob" in (row["first"], row["second"]) else 10)
        assert row["reason"] == ("too_few_values" if n == 4 else None)
        assert (row["low"] is None) == (n == 4)


def test_all_raters_have_krippendorffs_alpha(files: list[Path]) -> None:
    found = fastscore.agreement(*files)
    nan = np.nan
    matrix = np.array([ONE, TWO[::-1], PEOPLE, [*TWO[:4], *[nan] * 6]], float).T
    for row in found.alphas.iter_rows(named=True):
        assert row["alpha"] == pytest.approx(plain_alpha(matrix, row["distance"]), abs=1e-12)
        assert (row["raters"], row["n"]) == (4, 10)
        assert row["low"] < row["alpha"] < row["high"]
    assert found.alphas["distance"].to_list() == ["ordinal", "interval"]


def test_models_and_files_tell_dialogues_of_one_id_apart(tmp_path: Path) -> None:
    """Two models talk with the same user: the cluster is the user, the unit the dialogue."""
    rows = [
        {"dialogue": f"d{at}", "model": model, "judge": {"coherence": score}, "judged_by": rater}
        for rater, shift in (("one", 0), ("two", 1))
        for model in ("m", "n")
        for at, score in enumerate(np.roll(ONE, shift).tolist())
    ]
    (tmp_path / "both.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = fastscore.agreement(tmp_path / "both.jsonl")
    (pair,) = found.pairs.iter_rows(named=True)
    assert (pair["first"], pair["second"], pair["n"]) == ("one", "two", 20)
    # equal scores of both models say nothing new: the interval is that of ten dialogues
    alone = fastscore.agreement(
        judge_file(tmp_path / "a.jsonl", ONE),
        judge_file(tmp_path / "b.jsonl", np.roll(ONE, 1).tolist()),
    ).pairs.row(0, named=True)
    for name in ("kappa", "low", "high"):
        assert pair[name] == pytest.approx(alone[name], abs=1e-12)
    assert alone["first"] == str(tmp_path / "a.jsonl")  # no rater is named


def test_two_files_of_one_name_are_two_raters(tmp_path: Path) -> None:
    files = [judge_file(tmp_path / name, ONE, judged_by="j") for name in ("a.jsonl", "b.jsonl")]
    assert fastscore.agreement(*files).raters == tuple(f"j ({file})" for file in files)


def test_what_is_left_out_is_noted(tmp_path: Path, files: list[Path]) -> None:
    (tmp_path / "odd.csv").write_text("dialogue,coherence,wit\nd0,9,3\nd1,2,3\nd2,3,4\n")
    found = fastscore.agreement(files[0], tmp_path / "odd.csv", columns=["wit"])
    assert found.pairs["n"].to_list() == [2]
    first, second = found.notes
    assert "0 rows and 1 score were refused, the first at line 2: judge.coherence" in first
    assert second == f"wit: only {tmp_path / 'odd.csv'} scored it; it is not compared."


def test_raters_that_share_nothing_are_refused(tmp_path: Path, files: list[Path]) -> None:
    with pytest.raises(UsageError, match="Only one rater: one"):
        fastscore.agreement(files[0])
    other = tmp_path / "other.csv"
    other.write_text("dialogue,coherence\nx1,3\n")
    with pytest.raises(UsageError, match=r"No two raters .* 'd0' by one, 'x1' by"):
        fastscore.agreement(files[0], other)
    other.write_text("dialogue,coherence\nd1,3\nd1,4\n")
    with pytest.raises(
        InputError, match=r"other\.csv:2: .* scored coherence of dialogue 'd1' more"
    ):
        fastscore.agreement(files[0], other)
    other.write_text("dialogue,tone\nd1,3\n")
    with pytest.raises(InputError, match="no score was found"):
        fastscore.agreement(files[0], other)
    with pytest.raises(UsageError, match="judge_scale"):
        fastscore.agreement(*files, scale=(5, 1))


def test_the_command_shows_both_tables_and_every_value(files: list[Path]) -> None:
    paths = [str(file) for file in files]
    shown = fastscore_command(["agreement", *paths])
    assert shown.returncode == 0, shown.stderr
    assert "Each pair of raters: Cohen's kappa with quadratic weights" in shown.stdout
    assert "All raters: Krippendorff's alpha" in shown.stdout
    assert "too few dialogues" in shown.stdout
    found = fastscore.agreement(*files)
    written = json.loads(fastscore_command(["agreement", *paths, "--json"]).stdout)
    assert written["pairs"] == found.pairs.to_dicts()
    table = pl.read_csv(fastscore_command(["agreement", *paths, "--format", "csv"]).stdout.encode())
    assert table.height == 6 + 2
    refused = fastscore_command(["agreement", paths[0]])
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: Only one rater")
