"""Comparisons of small runs against the same statistics, computed dialogue by dialogue."""

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import fastscore
from fastscore.errors import UsageError
from fastscore.results.number_text import p_text
from fastscore.results.runs import Run
from fastscore.results.show_comparison import comparison_grids
from tests.conftest import fastscore_command
from tests.results.comparing import row_of, scored

METRICS = ("U_best", "average_U_best_early", "earliness")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def base(folder: Path) -> Run:
    return scored(folder, "base", ("m", 0.4, range(11)))


@pytest.fixture(scope="module")
def better(folder: Path) -> Run:
    return scored(folder, "better", ("m", 0.8, range(1, 13)))


@pytest.fixture(scope="module")
def both(folder: Path) -> Run:
    return scored(folder, "both", ("m1", 0.4, range(11)), ("m2", 0.8, range(1, 13)))


def values_by_dialogue(run: Run, metric: str, where: str | None = None) -> dict[str, list[float]]:
    """Collect a metric's values by the id that stands in the log."""
    uid = {
        row["dialogue"]: row["dialogue_uid"]
        for row in run.table("dialogues").collect().to_dicts()
        if where in (None, row["miner_uid"], row["challenge_type"])
    }
    found = defaultdict(list)
    for table in run.tables.values():
        for row in table.collect().to_dicts():
            if row.get(metric) is not None and row["dialogue"] in uid:
                found[uid[row["dialogue"]]].append(row[metric])
    return dict(found)


def mean_of(rows: dict[str, list[float]], chosen: list[str]) -> float:
    return float(np.mean([value for name in chosen for value in rows[name]]))


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_of_two_runs(base: Run, better: Run, metric: str) -> None:
    found = fastscore.compare(base, better)
    first, second = (values_by_dialogue(run, metric) for run in (base, better))
    common = sorted(first.keys() & second.keys())
    x, y = ([float(np.mean(side[name])) for name in common] for side in (first, second))
    row = row_of(found.differences, metric=metric)
    assert (row["design"], row["n_a"], row["n_b"]) == ("paired", len(common), len(common))
    assert row["mean_a"] == pytest.approx(mean_of(first, common))
    assert row["difference"] == pytest.approx(mean_of(second, common) - mean_of(first, common))
    assert row["reason"] == ("zero_variance" if metric == "earliness" else None)
    if metric != "earliness":  # depends on the step alone, so that no pair differs
        gains = np.subtract(y, x)
        assert row["low"] < row["difference"] < row["high"]
        assert row["effect"] == pytest.approx(gains.mean() / gains.std(ddof=1))
        assert row["t_p"] == pytest.approx(stats.ttest_rel(y, x).pvalue)
        assert row["rank_p"] == pytest.approx(stats.wilcoxon(y, x).pvalue)


def test_interval_resamples_whole_dialogues(base: Run, better: Run) -> None:
    found = fastscore.compare(base, better, metrics=["U_best"], samples=300, seed=4)
    first, second = (values_by_dialogue(run, "U_best") for run in (base, better))
    common = sorted(first.keys() & second.keys())
    resampled = []
    for sample in range(300):
        drawn = np.random.default_rng((4, 0, sample)).integers(0, len(common), len(common))
        chosen = [common[i] for i in drawn]
        resampled.append(mean_of(second, chosen) - mean_of(first, chosen))
    row = row_of(found.differences, metric="U_best")
    assert (row["low"], row["high"]) == pytest.approx(tuple(np.quantile(resampled, [0.025, 0.975])))


def test_sides_count_rows_nulls_and_dialogues(base: Run, better: Run) -> None:
    found = fastscore.compare(base, better)
    sides = found.sides.filter(pl.col("side") == str(base.path))
    summary = base.summary.filter(pl.col("group") == "all")
    shared = ["metric", "n", "n_null", "n_missing_input", "n_not_applicable", "mean"]
    assert_frame_equal(sides.select(shared), summary.select(shared), rel_tol=1e-14)
    row = row_of(sides, metric="U_best")
    means = [np.mean(values) for values in values_by_dialogue(base, "U_best").values()]
    assert (row["n"], row["n_null"], row["n_missing_input"]) == (18, 3, 3)
    assert row["n_dialogues"] == len(means) == 10
    low, high = stats.t.interval(0.95, 9, np.mean(means), stats.sem(means))
    assert (row["t_low"], row["t_high"]) == pytest.approx((low, high))
    assert row["normal_high"] == pytest.approx(np.mean(means) + 1.96 * stats.sem(means))


def test_dialogues_without_partner_are_told(base: Run, better: Run) -> None:
    assert fastscore.compare(base, better).notes == (
        f"1 dialogue of {base.path} without a partner",
        f"2 dialogues of {better.path} without a partner",
    )


def test_holm_is_over_all_rows_of_a_design(base: Run, better: Run) -> None:
    rows = fastscore.compare(base, better).differences.drop_nulls("t_p").sort("t_p")
    raw, n = rows["t_p"].to_list(), rows.height
    assert n == 4
    stepped = [min(1.0, max((n - j) * raw[j] for j in range(i + 1))) for i in range(n)]
    assert rows["t_p_holm"].to_list() == pytest.approx(stepped)


def test_groups_of_two_runs_are_compared_each_by_itself(base: Run, better: Run) -> None:
    found = fastscore.compare(base, better, by="challenge_type", metrics=["U_best"])
    assert found.differences["group"].to_list() == ["easy", "hard"]
    for group in ("easy", "hard"):
        first = values_by_dialogue(base, "U_best", group)
        second = values_by_dialogue(better, "U_best", group)
        common = sorted(first.keys() & second.keys())
        row = row_of(found.differences, group=group)
        assert row["n_a"] == len(common)
        assert row["mean_b"] == pytest.approx(mean_of(second, common))


def test_levels_of_one_run_as_independent_samples_and_as_pairs(both: Run) -> None:
    found = fastscore.compare(both, by="miner_uid", pair_by="dialogue_uid", metrics=["U_best"])
    first, second = (values_by_dialogue(both, "U_best", miner) for miner in ("m1", "m2"))
    x, y = ([float(np.mean(values)) for values in side.values()] for side in (first, second))
    row = row_of(found.differences, design="independent")
    assert (row["a"], row["b"], row["n_a"], row["n_b"]) == ("m1", "m2", 10, 11)
    assert row["difference"] == pytest.approx(
        mean_of(second, list(second)) - mean_of(first, list(first))
    )
    assert row["t_p"] == pytest.approx(stats.ttest_ind(y, x, equal_var=False).pvalue)
    assert row["rank_p"] == pytest.approx(stats.mannwhitneyu(y, x).pvalue)
    pooled = np.sqrt((np.var(x, ddof=1) * 9 + np.var(y, ddof=1) * 10) / 19)
    assert row["effect"] == pytest.approx((np.mean(y) - np.mean(x)) / pooled)
    assert row["low"] < row["difference"] < row["high"]
    assert row_of(found.differences, design="paired")["n_a"] == 9
    assert found.notes == (
        "1 dialogue of miner_uid m1 without a partner at m2",
        "2 dialogues of miner_uid m2 without a partner at m1",
    )


def test_levels_without_common_ids_have_no_pairs(both: Run) -> None:
    found = fastscore.compare(both, by="miner_uid", metrics=["U_best"])
    assert found.differences["design"].to_list() == ["independent"]
    (note,) = found.notes
    assert "no dialogue stands at two values of miner_uid (m1 has '" in note
    assert "--pair-by names a column" in note
    alone = fastscore.compare(
        both, by="miner_uid", pair_by="dialogue_uid", unpaired=True, levels=["m2", "m1"]
    )
    assert set(alone.differences["design"]) == {"independent"}
    assert set(alone.differences["a"]) == {"m2"}


def test_two_runs_as_independent_samples(base: Run, better: Run) -> None:
    found = fastscore.compare(base, better, unpaired=True, metrics=["U_best"])
    assert (found.differences["n_a"].item(), found.differences["n_b"].item()) == (10, 11)


def test_published_statistics_have_one_variance_over_n(both: Run) -> None:
    found = fastscore.compare(both, by="miner_uid", published_statistics=True, metrics=["U_best"])
    sides = (values_by_dialogue(both, "U_best", miner) for miner in ("m1", "m2"))
    x, y = ([float(np.mean(values)) for values in side.values()] for side in sides)
    row = row_of(found.differences, design="independent")
    student = stats.ttest_ind(y, x, equal_var=True)
    assert (row["t"], row["t_p"]) == pytest.approx((student.statistic, student.pvalue))
    assert row["degrees_of_freedom"] == len(x) + len(y) - 2
    pooled = np.sqrt((np.var(x) + np.var(y)) / 2)
    assert row["effect"] == pytest.approx((np.mean(y) - np.mean(x)) / pooled)
    side = row_of(found.sides, side="m1")
    assert side["normal_high"] == pytest.approx(np.mean(x) + 1.96 * np.std(x) / np.sqrt(len(x)))
    shown = fastscore_command(
        ["compare", both.path, "--by", "miner_uid", "--metric", "U_best", "--published-statistics"]
    )
    assert "Student" in shown.stdout, shown.stderr
    assert "Welch" not in shown.stdout


def test_alpha_stands_beside_each_p_and_effects_lose_their_sign(both: Run) -> None:
    worse = {"by": "miner_uid", "levels": ["m2", "m1"], "metrics": ["U_best"]}
    at_default, at_tiny = (
        fastscore.compare(both, **worse, **alpha).differences for alpha in ({}, {"alpha": 1e-9})
    )
    row = row_of(at_default, design="independent")
    x, y = (list(values_by_dialogue(both, "U_best", miner).values()) for miner in ("m2", "m1"))
    means = [np.array([np.mean(values) for values in side]) for side in (x, y)]
    n, m = map(len, means)
    squares = sum(((side - side.mean()) ** 2).sum() for side in means)
    by_hand = abs(means[0].mean() - means[1].mean()) / math.sqrt(squares / (n + m - 2))
    assert row["effect"] == pytest.approx(-by_hand)
    assert row["effect_unsigned"] == pytest.approx(by_hand)
    assert at_default["alpha"].unique().to_list() == [0.05]
    assert (row["t_significant"], row["rank_significant"]) == (
        row["t_p_holm"] < 0.05,
        row["rank_p_holm"] < 0.05,
    )
    assert row["t_significant"]
    assert at_tiny["alpha"].unique().to_list() == [1e-9]
    assert not row_of(at_tiny, design="independent")["t_significant"]


def test_printed_tables_have_alpha_at_each_p_and_a_mark_behind_those_below_it(both: Run) -> None:
    worse = {"by": "miner_uid", "levels": ["m2", "m1"], "metrics": ["U_best"]}
    for alpha, sign in ((0.05, "*"), (1e-9, "")):
        found = fastscore.compare(both, **worse, alpha=alpha)
        row = row_of(found.differences, design="independent")
        assert row["t_p_holm"] > 1e-9 < row["rank_p_holm"]
        (grid,) = (grid for grid in comparison_grids(found) if grid.title.startswith("independent"))
        cells = {column.header: column.cells for column in grid.columns}
        for test, name in (("t", "Welch"), ("rank", "Mann-Whitney")):
            below = sign if row[f"{test}_p_holm"] < 0.05 else ""
            expected = f"{p_text(row[f'{test}_p_holm'])}{below}"
            assert cells[f"p {name} (Holm, α={alpha:g})"] == (expected,)


def test_without_a_p_nothing_is_significant_or_not(base: Run, better: Run) -> None:
    row = row_of(fastscore.compare(base, better, metrics=["earliness"]).differences)
    assert (row["t_p_holm"], row["t_significant"], row["rank_significant"]) == (None,) * 3


def test_alpha_is_an_option_with_bounds(both: Run) -> None:
    command = ["compare", both.path, "--by", "miner_uid", "--metric", "U_best", "--alpha"]
    assert "p < 0.01" in fastscore_command([*command, "0.01"]).stdout
    for alpha in ("0", "1", "nan", "much"):
        assert fastscore_command([*command, alpha]).returncode == 2
    for value in (0.0, 1.0, math.nan):
        with pytest.raises(UsageError, match="expected a number above 0 and below 1"):
            fastscore.compare(both, by="miner_uid", alpha=value)


def test_different_signatures_are_refused_by_name(base: Run, folder: Path) -> None:
    other = scored(folder, "other", ("m", 0.4, range(4)), semantic="jaccard", lex_weight=0.5)
    with pytest.raises(UsageError, match=r"lex_weight is 1\.0 in .*base and 0\.5 in .*other; sem"):
        fastscore.compare(base, other)
    found = fastscore.compare(base, other, allow_different_signatures=True, metrics=["U_best"])
    assert any("signatures differ: semantic is" in note for note in found.notes)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "One run has nothing to be compared with"),
        ({"by": "minerr_uid"}, "Did you mean 'miner_uid'?"),
        ({"by": "miner_uid", "levels": ["m3", "m1"]}, "no miner_uid is 'm3'. Did you mean"),
        ({"by": "miner_uid", "levels": ["m1"]}, "Levels of 'miner_uid': 'm1'; expected two"),
        ({"by": "dialogue"}, "'dialogue' has 21 values, expected at most 20"),
        ({"levels": ["m1"], "by": None}, "Name the column with --by"),
        ({"by": "miner_uid", "metrics": ["U_bets"]}, "Did you mean 'U_best'?"),
        ({"by": "miner_uid", "tables": ["turns"]}, "no table 'turns'"),
        ({"by": "average_U_best_early"}, "no table has labels 'average_U_best_early'"),
    ],
)
def test_unknown_names_are_refused(both: Run, words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        fastscore.compare(both, **words)
    assert message in str(refused.value)


def test_nothing_to_pair_is_refused(base: Run, folder: Path) -> None:
    elsewhere = scored(folder, "elsewhere", ("m", 0.4, range(20, 22)))
    with pytest.raises(UsageError, match=r"No dialogue of .*base \(such as .* is in .*elsewhere"):
        fastscore.compare(base, elsewhere)


def test_command_shows_tables_and_json(base: Run, better: Run) -> None:
    words = ["compare", base.path, better.path, "--table", "utterances"]
    shown = fastscore_command(words, COLUMNS="200")
    assert shown.returncode == 0, shown.stderr
    for words in ("U_best", "missing_input", "Wilcoxon", "Holm", "better", "note: 1 dialogue of"):
        assert words in shown.stdout
    printed = json.loads(fastscore_command(["compare", base.path, better.path, "--json"]).stdout)
    found = fastscore.compare(base, better)
    assert printed["differences"] == found.differences.to_dicts()
    assert printed["sides"] == found.sides.to_dicts()
    refused = fastscore_command(["compare", base.path, base.path / "none"])
    assert refused.returncode == 2
    assert "no run there" in refused.stderr
