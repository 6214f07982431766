"""Judges' files and people's compared: units, raters, coefficients and refusals."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner
from sklearn.metrics import cohen_kappa_score

import fastscore
from fastscore.cli import cli
from fastscore.errors import InputError, UsageError
from tests.conftest import fastscore_command
from tests.statistics.test_agreement import plain_alpha


def kappas(found: fastscore.Agreement) -> pl.DataFrame:
    """Return the rows of pairs' kappas."""
    return found.coefficients.filter(coefficient="weighted_kappa")


def alphas(found: fastscore.Agreement) -> pl.DataFrame:
    """Return the rows of alphas of all raters."""
    return found.coefficients.filter(pl.col("coefficient").str.starts_with("alpha_"))


ONE = [1, 2, 3, 4, 5, 3, 2, 4, 1, 5]
TWO = [1, 3, 3, 4, 4, 2, 2, 5, 2, 5]
PEOPLE = [2, 2, 3, 5, 4, 3, 1, 4, 1, 4]


def written(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def judge_file(path: Path, scores: list[int], **more: object) -> Path:
    rows = enumerate(scores)
    return written(
        path, ({"dialogue": f"d{at}", "judge": {"coherence": one}, **more} for at, one in rows)
    )


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
    assert kappas(found).height == 6
    for row in kappas(found).iter_rows(named=True):
        n = row["n"]
        a, b = scores[row["first"]][:n], scores[row["second"]][:n]
        expected = cohen_kappa_score(a, b, weights="quadratic", labels=[1, 2, 3, 4, 5])
        assert row["value"] == pytest.approx(expected, abs=1e-12)
        assert row["difference"] == pytest.approx(np.mean(b) - np.mean(a))
        assert n == (4 if "bob" in (row["first"], row["second"]) else 10)
        assert row["reason"] == ("too_few_values" if n == 4 else None)
        assert (row["low"] is None) == (n == 4)


def test_tables_of_raters_with_long_names_fit_80_columns(tmp_path: Path) -> None:
    raters = ("meta-llama/Meta-Llama-3.1-70B-Instruct", "anthropic/claude-3-5-sonnet-20241022")
    rows = [
        {"dialogue": f"d{at}", "judged_by": rater, "judge": {"personalization": score}}
        for rater, scores in zip(raters, (ONE, TWO), strict=True)
        for at, score in enumerate(scores)
    ]
    log = written(tmp_path / "judges.jsonl", rows)
    done = CliRunner(env={"COLUMNS": "80"}).invoke(cli, ["agreement", str(log)])
    lines = done.output.splitlines()
    assert max(map(len, lines)) <= 80
    # no word of the headers or of the dimension is broken, and names break where a reader would
    assert {"first", "second", "n", "kappa", "95", "interval", "difference"} <= {*lines[1].split()}
    assert lines[3].strip() == "personalization"
    assert lines[4].split()[:2] == ["meta-llama/Meta-", "anthropic/claude-3-"]


def test_all_raters_have_krippendorffs_alpha(files: list[Path]) -> None:
    found = fastscore.agreement(*files)
    nan = np.nan
    matrix = np.array([ONE, TWO[::-1], PEOPLE, [*TWO[:4], *[nan] * 6]], float).T
    rows = alphas(found).to_dicts()
    for row, level in zip(rows, ("ordinal", "interval"), strict=True):
        assert row["coefficient"] == f"alpha_{level}"
        assert row["value"] == pytest.approx(plain_alpha(matrix, level), abs=1e-12)
        assert (row["raters"], row["n"]) == (4, 10)
        assert row["low"] < row["value"] < row["high"]


def test_models_and_files_tell_dialogues_of_one_id_apart(tmp_path: Path) -> None:
    """Two models talk with the same user: the cluster is the user, the unit the dialogue."""
    rows = [
        {"dialogue": f"d{at}", "model": model, "judge": {"coherence": score}, "judged_by": rater}
        for rater, shift in (("one", 0), ("two", 1))
        for model in ("m", "n")
        for at, score in enumerate(np.roll(ONE, shift).tolist())
    ]
    found = fastscore.agreement(written(tmp_path / "both.jsonl", rows))
    (pair,) = kappas(found).iter_rows(named=True)
    assert (pair["first"], pair["second"], pair["n"]) == ("one", "two", 20)
    # equal scores of both models say nothing new: the interval is that of ten dialogues
    alone = fastscore.agreement(
        judge_file(tmp_path / "a.jsonl", ONE),
        judge_file(tmp_path / "b.jsonl", np.roll(ONE, 1).tolist()),
    )
    alone = kappas(alone).row(0, named=True)
    for name in ("value", "low", "high"):
        assert pair[name] == pytest.approx(alone[name], abs=1e-12)
    assert alone["first"] == str(tmp_path / "a.jsonl")  # no rater is named


def test_raters_who_read_another_model_are_not_compared(tmp_path: Path) -> None:
    """Equal ids under two models are two dialogues, also if each judge read one model."""
    files = [
        judge_file(tmp_path / f"{model}.jsonl", ONE, model=model, judged_by=f"judge of {model}")
        for model in ("m", "n")
    ]
    with pytest.raises(
        UsageError,
        match=r"'d0' of m by judge of m, 'd0' of n by judge of n\)\. .*"
        "equal models",
    ):
        fastscore.agreement(*files)
    # people who name no model rated the only one that there is
    people = judge_file(tmp_path / "people.jsonl", PEOPLE, judged_by="ann")
    assert kappas(fastscore.agreement(files[0], people))["n"].to_list() == [10]
    with pytest.raises(InputError, match=r"people\.jsonl:1: dialogue 'd0' has no model, and other"):
        fastscore.agreement(*files, people)


def test_two_judgements_of_levels_that_share_ids_are_compared(tmp_path: Path) -> None:
    """Logs of guest_simulation: the same four ids at five levels, a file each; folders differ."""
    rows = [
        {"dialogue": f"case{case}", "model": None, "judge": {"coherence": 1 + (case + level) % 5}}
        | {"judged_file": f"exp{level}/{case}.jsonl", "judged_line": 1}
        for case in range(4)
        for level in range(5)
    ]
    for rater, folder, shift in (("one", "logs", 0), ("two", "/elsewhere/logs", 1)):
        lines = [
            {**row, "judged_by": rater, "judged_file": f"{folder}/{row['judged_file']}"}
            | {"judge": {"coherence": 1 + (row["judge"]["coherence"] - 1 + shift * at % 2) % 5}}
            for at, row in enumerate(rows)
        ]
        written(tmp_path / f"{rater}.jsonl", lines)
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    found = fastscore.agreement(*files)
    assert kappas(found)["n"].to_list() == [20]
    assert kappas(found)["reason"].to_list() == ["too_few_values"]  # four units have no interval
    # the remedy of the refusal works: without places rows of one id are refused, with levels not
    bare = [
        {key: value for key, value in json.loads(line).items() if not key.startswith("judged_f")}
        for line in files[0].read_text().splitlines()
    ]
    written(files[0], bare)
    with pytest.raises(InputError, match=r"more than once, again at .*give 'model', or 'judged_fi"):
        fastscore.agreement(*files)


def test_files_of_other_names_are_noted(tmp_path: Path) -> None:
    files = [
        judge_file(tmp_path / name, ONE, judged_by=name, judged_file=f"logs/{name}")
        for name in ("a.jsonl", "b.jsonl")
    ]
    (note,) = fastscore.agreement(*files).notes
    assert note.startswith("10 dialogues were read from files of several names, such as logs/a")


def test_verdicts_on_pairs_are_compared(tmp_path: Path) -> None:
    """A judge's pairs.jsonl and people who saw some of the pairs the other way round."""
    verdicts = ["A", "A", "tie", "B", "A", "B", "tie", "A", "A", "B"]
    lines = [
        {"dialogue": f"d{at}", "model_a": "m", "model_b": "n", "verdict": {"overall": one}}
        | {"orders": [], "judged_by": "judge"}
        for at, one in enumerate(verdicts)
    ]
    written(tmp_path / "pairs.jsonl", lines)
    other = {"A": "B", "B": "A", "tie": "tie"}
    people = ["dialogue,model_a,model_b,rater,overall"]
    people += [f"d{at},n,m,ann,{other[one]}" for at, one in enumerate(verdicts[:8])]
    people += [f"d8,m,n,ann,{verdicts[8]}", "d9,m,n,ann,A"]  # the last one disagrees
    (tmp_path / "people.csv").write_text("\n".join(people))
    found = fastscore.agreement(tmp_path / "pairs.jsonl", tmp_path / "people.csv")
    (pair,) = kappas(found).iter_rows(named=True)
    worth = {"A": 2, "tie": 1, "B": 0}
    judged = [worth[one] for one in verdicts]
    expected = cohen_kappa_score(judged, [*judged[:9], 2], weights="quadratic", labels=[0, 1, 2])
    assert (pair["n"], pair["value"]) == (10, pytest.approx(expected))
    assert pair["difference"] == pytest.approx(0.1)
    shares = {row["coefficient"]: row["value"] for row in found.coefficients.to_dicts()}
    assert shares["percent_agreement"] == pytest.approx(0.9)
    scores = judge_file(tmp_path / "scores.jsonl", ONE)
    with pytest.raises(
        UsageError, match=r"pairs\.jsonl has verdicts on pairs, .*scores\.jsonl scor"
    ):
        fastscore.agreement(tmp_path / "pairs.jsonl", scores)


def test_opposite_and_constant_raters_have_no_interval(tmp_path: Path) -> None:
    rows = {
        "ann": [1, 2, 3, 4, 5] * 4,
        "bob": [5, 4, 3, 2, 1] * 4,
        "cat": [3] * 20,
        "dan": [4] * 20,
    }
    files = [judge_file(tmp_path / f"{name}.jsonl", scores) for name, scores in rows.items()]
    opposite, constant = fastscore.agreement(*files[:2]), fastscore.agreement(*files[2:])
    (kappa,) = kappas(opposite).iter_rows(named=True)
    assert (kappa["value"], kappa["low"], kappa["reason"]) == (-1.0, None, "opposite_ratings")
    (kappa,) = kappas(constant).iter_rows(named=True)
    assert (kappa["value"], kappa["low"], kappa["reason"]) == (0.0, None, "zero_variance")
    assert alphas(constant)["low"].to_list() == [None, None]
    assert alphas(constant)["reason"].to_list() == ["zero_variance"] * 2
    shown = fastscore_command(["agreement", *map(str, files[:2])]).stdout
    assert "opposite scores" in shown
    assert "no disagreement" not in shown


def test_two_files_of_one_name_are_two_raters(tmp_path: Path) -> None:
    files = [judge_file(tmp_path / name, ONE, judged_by="j") for name in ("a.jsonl", "b.jsonl")]
    assert fastscore.agreement(*files).raters == tuple(f"j ({file})" for file in files)


def test_what_is_left_out_is_noted(tmp_path: Path, files: list[Path]) -> None:
    (tmp_path / "odd.csv").write_text("dialogue,coherence,wit\nd0,9,3\nd1,2,3\nd2,3,4\n")
    found = fastscore.agreement(files[0], tmp_path / "odd.csv", columns=["wit"])
    assert kappas(found)["n"].to_list() == [2]
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
    other.write_text("ticket,who,coherence\nd1,ann,3\n")
    with pytest.raises(
        InputError, match=r"no column 'dialogue'; found the columns 'ticket', 'who'"
    ):
        fastscore.agreement(files[0], other)
    other.write_text("dialogue,tone\nd1,3\n")
    with pytest.raises(InputError, match="no score was found") as raised:
        fastscore.agreement(files[0], other)
    assert str(raised.value).endswith('columns=["tone"], in a shell the option judge_column.')
    other.write_text("dialogue,overall\nd1,0\n")
    with pytest.raises(InputError, match=r"out of range \(0\).*option judge_range"):
        fastscore.agreement(files[0], other)
    other.write_bytes("dialogue;rater;overall\nd1;J\xfcrgen M.;3\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"other\.csv:2: the text is not UTF-8.*iconv"):
        fastscore.agreement(files[0], other)
    with pytest.raises(UsageError, match="judge_scale"):
        fastscore.agreement(*files, scale=(5, 1))
    with pytest.raises(UsageError, match="judge_scale"):
        fastscore.agreement(*files, scale=(0, math.inf))


def test_the_scale_of_a_judges_folder_is_the_default(tmp_path: Path) -> None:
    """On 0 to 10, where 1 to 5 would leave five of eight dialogues out; by hand, all agree."""
    people = [{"dialogue": f"d{n}", "rater": "ann", "tone": n + 1} for n in range(8)]
    rows = [{"dialogue": f"d{n}", "judged_by": "m", "judge": {"tone": n + 1}} for n in range(8)]
    for name, scale in (("one", [0, 10]), ("two", [1, 5])):
        folder = tmp_path / name
        folder.mkdir()
        pl.DataFrame(rows).write_ndjson(folder / "judgements.jsonl")
        (folder / "summary.json").write_text(json.dumps({"scale": scale}))
    found = fastscore.agreement(tmp_path / "one", people)
    kappa = found.coefficients.filter(coefficient="weighted_kappa").row(0, named=True)
    assert (kappa["n"], kappa["value"], found.notes) == (8, 1.0, ())
    narrow = fastscore.agreement(tmp_path / "one", people, scale=(1, 5))
    assert narrow.coefficients["n"].max() == 5
    with pytest.raises(UsageError, match=r"different scales: .*one.* from 0 to 10, .* 1 to 5"):
        fastscore.agreement(tmp_path / "one", tmp_path / "two")


def test_columns_of_numbers_that_are_not_read_are_named(tmp_path: Path) -> None:
    rows = [{"dialogue": f"d{n}", "overall": n, "wit": n, "said": "x"} for n in range(1, 6)]
    found = fastscore.agreement(rows, rows)
    assert [note for note in found.notes if "not read" in note] == [
        "frame 1: columns that are not read: wit",
        "frame 2: columns that are not read: wit",
    ]
    assert not fastscore.agreement(rows, rows, columns=["wit"]).notes


def test_the_command_shows_both_tables_and_every_value(files: list[Path]) -> None:
    paths = [str(file) for file in files]
    shown = fastscore_command(["agreement", *paths])
    assert shown.returncode == 0, shown.stderr
    assert "Each pair of raters: Cohen's kappa with quadratic weights" in shown.stdout
    assert "Krippendorff's alpha, ordinal" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "too few dialogues" in shown.stdout
    found = fastscore.agreement(*files)
    written = json.loads(fastscore_command(["agreement", *paths, "--json"]).stdout)
    table = pl.read_csv(fastscore_command(["agreement", *paths, "--format", "csv"]).stdout.encode())
    assert table.height == 6 + 2 + 4 * (6 + 1)
    assert written["coefficients"] == found.coefficients.to_dicts()
    refused = fastscore_command(["agreement", paths[0]])
    assert refused.returncode == 2
    assert refused.stderr.startswith("Error: Only one rater")


def test_frames_and_rows_are_compared_as_their_files(tmp_path: Path) -> None:
    """A notebook has scores in memory: the numbers are those of the same rows in a file."""
    rows = [{"dialogue": f"d{n}", "overall": n % 5 + 1, "empathy": 3} for n in range(9)]
    others = [{**row, "overall": (n * 2) % 5 + 1} for n, row in enumerate(rows)]
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, scores in zip(paths, (rows, others), strict=True):
        pl.DataFrame(scores).write_csv(path)
    of_files = fastscore.agreement(*paths)
    found = fastscore.agreement(pl.DataFrame(rows), others)
    assert found.raters == ("frame 1", "frame 2")
    names = ("first", "second")
    assert kappas(found).drop(names).equals(kappas(of_files).drop(names))
    assert alphas(found).equals(alphas(of_files))
    named = fastscore.agreement(
        pl.DataFrame(rows).with_columns(rater=pl.lit("ann")), others, columns=["empathy"]
    )
    assert named.raters == ("ann", "frame 2")
    with pytest.raises(UsageError, match="frame 1, frame 2: no column 'warmth'"):
        fastscore.agreement(pl.DataFrame(rows), others, columns=["warmth"])
    verdicts = {"dialogue": ["u1", "u2"], "model_a": "x", "model_b": "y", "overall": ["A", "B"]}
    frame = pl.DataFrame(verdicts)
    frame.write_csv(tmp_path / "verdicts.csv")
    drawn = [
        fastscore.rank(one).strengths.drop("rater") for one in (frame, tmp_path / "verdicts.csv")
    ]
    assert drawn[0].equals(drawn[1])
    with pytest.raises(InputError, match="no column 'dialogue'"):
        fastscore.rank(frame.drop("dialogue"))


def test_people_s_columns_of_any_rubric_are_read(tmp_path: Path) -> None:
    judged = [{"dialogue": f"d{at}", "judge": {"honesty": score}} for at, score in enumerate(ONE)]
    people = pl.DataFrame({"dialogue": [f"d{at}" for at in range(10)], "honesty": PEOPLE})
    found = fastscore.agreement(written(tmp_path / "judge.jsonl", judged), people)
    assert kappas(found)["dimension"].to_list() == ["honesty"]
    kappa = cohen_kappa_score(ONE, PEOPLE, weights="quadratic", labels=[1, 2, 3, 4, 5])
    assert kappas(found)["value"].item() == pytest.approx(kappa, rel=1e-12)


def test_the_folder_that_judge_wrote_is_read_as_its_scores(tmp_path: Path) -> None:
    (tmp_path / "judged").mkdir()
    scores = judge_file(tmp_path / "judged" / "judgements.jsonl", ONE, judged_by="one")
    (tmp_path / "judged" / "repeats.parquet").touch()
    other = judge_file(tmp_path / "two.jsonl", TWO, judged_by="two")
    found = fastscore.agreement(tmp_path / "judged", other)
    assert found.coefficients.equals(fastscore.agreement(scores, other).coefficients)
