"""Three systems or more: places, tables for a paper."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import polars as pl
import pytest

import fastscore
from fastscore.results import comparison
from fastscore.results.comparison import Comparison, paper_grids
from fastscore.results.runs import Run
from fastscore.terminal.grids import latex
from tests.conftest import fastscore_command
from tests.results.comparing import scored

SKILLS = {"poor": 0.2, "middling": 0.55, "equal": 0.55, "good": 0.95}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("ranking")
    return [scored(folder, name, ("m", skill, range(30))) for name, skill in SKILLS.items()]


@pytest.fixture(scope="module")
def found(runs: list[Run]) -> Comparison:
    return fastscore.compare(*runs, metrics=["average_U_best_early"])


def test_systems_are_ranked_best_first_and_equal_ones_share_a_place(
    found: Comparison, runs: list[Run]
) -> None:
    rows = found.ranking
    names = [Path(system).name for system in rows["system"]]
    assert names[0] == "good"
    assert names[-1] == "poor"
    assert rows["place"].to_list() == [1, 2, 2, 4]
    assert rows["apart_from_next"].to_list() == [True, False, True, None]
    assert rows["is_best"].to_list() == [True, False, False, False]
    assert rows["place_low"].to_list()[0] == rows["place_high"].to_list()[0] == 1
    assert found.differences.height == len(list(combinations(runs, 2)))
    assert rows["sample"].unique().to_list() == ["29 pairs of all"]  # of one the steps are missing


def test_a_place_is_by_the_mean_difference_from_the_others(
    found: Comparison, runs: list[Run]
) -> None:
    means = {
        str(run.path): run.scan("dialogues").select("average_U_best_early").collect().mean().item()
        for run in runs
    }
    for row in found.ranking.to_dicts():
        others = [mean for name, mean in means.items() if name != row["system"]]
        expected = means[row["system"]] - sum(others) / len(others)
        assert row["mean_difference"] == pytest.approx(expected)
    one = fastscore.compare(*runs[:2], metrics=["average_U_best_early"])
    assert one.ranking.is_empty()


def test_bounds_of_places_are_those_of_the_verdicts(found: Comparison) -> None:
    wins = {
        (row["b"], row["a"]) if row["verdict"] == "better" else (row["a"], row["b"])
        for row in found.differences.to_dicts()
        if row["verdict"]
    }
    for row in found.ranking.to_dicts():
        lost = sum(loser == row["system"] for _, loser in wins)
        won = sum(winner == row["system"] for winner, _ in wins)
        assert (row["place_low"], row["place_high"]) == (1 + lost, 4 - won)


def test_a_paper_has_the_best_in_bold(found: Comparison, runs: list[Run]) -> None:
    (grid,) = paper_grids(found)
    text = latex(grid)
    assert len(re.findall(r"\\textbf\{", text)) == 1
    (bold,) = [line for line in text.splitlines() if r"\textbf" in line]
    assert "good" in bold
    shown = fastscore_command(["compare", *(run.path for run in runs), "--format", "markdown"])
    assert shown.returncode == 0, shown.stderr
    assert "apart from next" in shown.stdout
    printed = fastscore_command(["compare", *(run.path for run in runs), "--json"])
    assert json.loads(printed.stdout)["ranking"][0]["place"] == 1


def test_a_system_below_one_that_is_apart_from_the_best_is_not_in_bold(found: Comparison) -> None:
    ranking = found.ranking.sort("place").with_columns(is_best=pl.col("place") != 2)
    (grid,) = paper_grids(replace(found, ranking=ranking))
    best = ranking["system"][0]
    (column,) = grid.columns[1:]
    assert [grid.columns[0].cells[place] for place in column.bold] == [best]


def test_two_systems_have_the_better_one_in_bold(runs: list[Run]) -> None:
    found = fastscore.compare(runs[0], runs[3], metrics=["average_U_best_early"])
    (grid,) = paper_grids(found)
    assert [sorted(column.bold) for column in grid.columns] == [[], [1]]


def test_of_many_differences_the_strongest_are_shown(tmp_path: Path) -> None:
    logs = [(f"m{miner:02d}", miner / 15, range(8)) for miner in range(16)]
    run = scored(tmp_path, "many", *logs)
    words = ["compare", run.path, "--by", "miner_uid", "--metric", "average_U_best_early"]
    short = fastscore_command(words, COLUMNS="100").stdout
    assert "note: 20 of 120 differences are shown, the strongest. --all shows all" in short
    pairs = re.findall(r"^(m\d\d against m\d\d) ", short, re.MULTILINE)
    assert len(pairs) == 20
    found = fastscore.compare(run, by="miner_uid", metrics=["average_U_best_early"])
    rows = found.differences.to_dicts()
    rows.sort(key=lambda row: (row["verdict"] == "", -abs(row["effect"] or 0.0)))
    assert pairs == [f"{row['b']} against {row['a']}" for row in rows[:20]]
    assert all(re.search(rf"^m{miner:02d} ", short, re.MULTILINE) for miner in range(16))
    assert "20 of 120 differences are shown" in found._repr_html_()
    whole = fastscore_command([*words, "--all"], COLUMNS="100").stdout
    assert len(re.findall(r"^m\d\d against m\d\d ", whole, re.MULTILINE)) == 120
    assert "differences are shown" not in whole


def test_each_difference_that_is_tested_is_told(runs: list[Run]) -> None:
    told: list[tuple[str, int, int]] = []
    fastscore.compare(
        *runs, metrics=["average_U_best_early"], progress=lambda *one: told.append(one)
    )
    assert told == [("compare", done, 6) for done in range(7)]


def test_notes_are_of_the_differences_that_are_shown(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(comparison, "MOST_DIFFERENCES", 5)
    found = fastscore.compare(*runs)
    each_has_a_note = found.differences.with_columns(p_skewed=pl.lit(0.9))
    comparison.show_comparison(replace(found, differences=each_has_a_note))
    _, *noted = capsys.readouterr().out.split("note: ")
    assert any("no difference, as one side or both have no value: semantic" in n for n in noted)
    told = [note for note in noted if " against " in note]
    assert told
    assert all(note.startswith("average_U_best_early, ") for note in told)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX here")
def test_tables_for_a_paper_are_set_by_latex(runs: list[Run], tmp_path: Path) -> None:
    shown = fastscore_command(["compare", *(run.path for run in runs), "--format", "latex"])
    head = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}"
    text = f"{head}\n{shown.stdout}\n\\end{{document}}\n"
    (tmp_path / "table.tex").write_text(text, encoding="utf-8")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:]
    assert (tmp_path / "table.pdf").exists()
