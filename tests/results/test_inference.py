"""Comparisons of sides with a known truth: each test is a fault that comparisons once had."""

import math
import random

import numpy as np
import polars as pl
import pytest
from scipy import stats

from benchmarks.inference import PAGE, compared, filled, metric, sums_of
from fastscore.results.comparison import headline, verdict_notes
from tests.conftest import often
from tests.results.comparing import row_of

UNBOUNDED = (metric("x", minimum=None, maximum=None),)


def of_units(**sides: object) -> pl.DataFrame:
    """Return the differences of sides with these values of one metric without a range."""
    made = {name: sums_of({"x": values}, metrics=UNBOUNDED) for name, values in sides.items()}  # type: ignore[dict-item]
    return compared(made).differences


@pytest.mark.parametrize("shift", [0.5, 0.01])
def test_equal_shifts_of_all_pairs_have_a_verdict(shift: float) -> None:
    values = random.Random(1).sample(range(20, 50), 20)
    before = [value / 100 for value in values]
    after = [value + shift for value in before]
    found = compared({"a": sums_of({"x": before}), "b": sums_of({"x": after})})
    row = row_of(found.differences)
    assert (row["test"], row["p"], row["verdict"]) == ("sign", 2 * 0.5**20, "better")
    assert (row["low"], row["reason"]) == (None, "zero_variance")
    assert "better in 1 metric: x" in headline(found)
    # with five pairs the two-sided p is the smallest that a sign test has
    few = {"a": sums_of({"x": before[:5]}), "b": sums_of({"x": after[:5]})}
    (note,) = compared(few).notes
    assert "5 units cannot give a corrected p below 0.05: the smallest p is 0.062" in note


def of_missing(complete: bool) -> dict[str, object]:
    """Compare three systems, the third of which lacks most dialogues."""
    gauss = random.Random(3).gauss
    a = [gauss(0.60, 0.05) for _ in range(100)]
    b = [value - 0.05 + gauss(0, 0.03) for value in a]
    a[:8] = [0.40 + gauss(0, 0.01) for _ in range(8)]
    b[:8] = [0.60 + gauss(0, 0.01) for _ in range(8)]
    c = [0.5 + gauss(0, 0.02) for _ in range(8)]
    sides = {name: sums_of({"x": values}) for name, values in {"A": a, "B": b, "C": c}.items()}
    found = compared(sides, complete=complete)
    return {"ranking": found.ranking, "notes": found.notes, "rows": found.differences}


def test_a_ranking_that_a_verdict_contradicts_is_refused() -> None:
    found = of_missing(complete=False)
    assert found["ranking"].is_empty()  # type: ignore[attr-defined]
    assert any("x: not ranked" in note for note in found["notes"])  # type: ignore[attr-defined]
    assert row_of(found["rows"], a="A", b="B")["verdict"] == "worse"  # type: ignore[arg-type]
    # on the eight dialogues that all have, B is the best, and no verdict says otherwise
    common = of_missing(complete=True)
    assert common["ranking"]["system"].to_list() == ["B", "C", "A"]  # type: ignore[index]
    assert set(common["ranking"]["sample"]) == {"8 pairs of all"}  # type: ignore[index]
    assert row_of(common["rows"], a="A", b="B")["verdict"] == "better"  # type: ignore[arg-type]


@pytest.mark.parametrize("family", [1, 9])
def test_detectable_is_at_the_corrected_level(family: int) -> None:
    generator = np.random.default_rng(5)
    metrics = [metric(f"m{k}", minimum=None, maximum=None) for k in range(family)]
    values = generator.normal(0, 0.1, (family, 30))
    sides = [
        sums_of({one.id: row for one, row in zip(metrics, rows, strict=True)}, metrics=metrics)
        for rows in (np.zeros((family, 30)), values)
    ]
    row = row_of(compared(dict(zip("ab", sides, strict=True))).differences, metric="m0")
    quantile = stats.t.ppf(1 - 0.025 / family, 29) + stats.t.ppf(0.8, 29)
    expected = quantile * values[0].std(ddof=1) / math.sqrt(30)
    assert row["detectable"] == pytest.approx(expected)


def test_nulls_on_one_side_are_told_beside_the_verdict() -> None:
    generator = np.random.default_rng(3)
    hard = generator.random(50) * 0.6
    a = np.clip(1 - hard + generator.normal(0, 0.02, 50), 0, 1)
    b = np.clip(a + generator.normal(0.03, 0.03, 50), 0, 1)
    b[hard > 0.35] = np.nan
    lost = int((hard > 0.35).sum())
    found = compared({"base": sums_of({"x": a, "y": a}), "new": sums_of({"x": b, "y": a * np.nan})})
    row = row_of(found.differences, metric="x")
    assert (row["null_a"], row["null_b"], row["n_base"]) == (0, lost, 50)
    assert f"; {lost} null in new only (" in headline(found)
    notes = verdict_notes(found)
    assert row["lacking"] == f"{lost} null in new only"
    assert "y: 50 null in new only" in notes
    assert not any("both sides" in note for note in notes)


def test_alpha_is_the_level_of_interval_and_verdict() -> None:
    a, b = next(
        (a, b)
        for seed in range(999)
        for generator in [np.random.default_rng(seed)]
        for a in [generator.integers(30, 70, 15) / 100]
        for b in [a + np.round(generator.normal(0.03, 0.06, 15), 2)]
        if 0.06 < stats.ttest_rel(a, b).pvalue < 0.09
    )
    sides = {"a": sums_of({"x": a}), "b": sums_of({"x": b})}
    strict, wide = (row_of(compared(sides, alpha=alpha).differences) for alpha in (0.05, 0.1))
    assert (strict["significant"], strict["verdict"]) == (False, "")
    assert (wide["significant"], wide["verdict"]) == (True, "better")
    expected = stats.ttest_rel(b, a).confidence_interval(0.9)
    assert (wide["low"], wide["high"]) == pytest.approx((expected.low, expected.high))


def test_repeats_are_part_of_every_test() -> None:
    """30 dialogues in 3 repeats a side, whose repeats differ by .05 without a true difference."""
    said, trials = 0, often(30, 400)
    for seed in range(trials):
        generator = np.random.default_rng(seed)
        level = generator.normal(0.5, 0.1, 30)
        sides = {}
        for side in "ab":
            shifts = generator.normal(0, 0.05, 3)
            values = np.concatenate([level + s + generator.normal(0, 0.02, 30) for s in shifts])
            labels = [f"{side}{k}" for k in range(3) for _ in range(30)]
            sides[side] = sums_of(
                {"x": values}, [*range(30)] * 3, repeats=labels, metrics=UNBOUNDED
            )
        row = row_of(compared(sides, repeats="file").differences)
        assert row["test"] == "t"
        said += bool(row["significant"])
    assert said / trials <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / trials)


def test_rows_of_one_pair_are_pooled_and_a_change_of_their_numbers_is_no_verdict() -> None:
    values = [0.3 + 0.5 * (k % 10) / 10 for k in range(40)]
    hard = [18 if value < 0.5 else 6 for value in values]
    sides = {"a": sums_of({"x": values}, counts=[6] * 40), "b": sums_of({"x": values}, counts=hard)}
    found = compared(sides)
    row = row_of(found.differences)
    assert row["p_holm"] < 0.001
    assert row["uneven"] == pytest.approx(row["difference"])
    assert (row["higher"], row["lower"], row["verdict"]) == (0, 0, "")
    assert any("unequal numbers of rows, so there is no verdict" in n for n in verdict_notes(found))
    # each dialogue's own change is one, whatever the number of its rows
    better = [value + 0.1 for value in values]
    sides["b"] = sums_of({"x": better}, counts=hard)
    row = row_of(compared(sides).differences)
    assert row["difference"] - row["uneven"] == pytest.approx(0.1)


def test_a_sample_without_rare_winners_is_told() -> None:
    """Most lose a little: the mean of the sample is sure, that of the population is not."""
    generator = np.random.default_rng(2)
    changes = np.where(generator.random(60) < 0.06, 0.2, -0.05) + generator.normal(0, 0.02, 60)
    rows = of_units(a=np.zeros(60), b=changes)
    row = row_of(rows)
    assert row["p_skewed"] >= row["p"]
    assert row["p_sign"] == pytest.approx(stats.binomtest(int((changes > 0).sum()), 60).pvalue)


def test_a_page_of_several_runs_is_one_family() -> None:
    """A base and five runs without a true difference: some verdict in at most 5 % of pages."""
    said, pages = 0, often(30, 600)
    for seed in range(pages):
        generator = np.random.default_rng(seed)
        level = generator.normal(0, 0.1, 30)
        sides = {
            f"r{k}": sums_of({"x": level + generator.normal(0, 0.07, 30)}, metrics=UNBOUNDED)
            for k in range(6)
        }
        found = compared(sides, contrasts="first").differences
        assert set(found["a"]) == {"r0"}
        assert set(found["family_size"]) == {5}
        said += bool(found.filter(pl.col("verdict") != "").height)
    assert said / pages <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / pages)


def test_bounds_of_places_hold_the_true_places() -> None:
    """Six systems .002 apart: a bootstrap of places had the true place of the best in .81."""
    trials, own = often(10, 200), 0
    for seed in range(trials):
        generator = np.random.default_rng(seed)
        level = generator.normal(0.5, 0.1, 12)
        sides = {
            f"s{k}": sums_of(
                {"x": level + generator.normal(0, 0.08, 12) - 0.002 * k}, metrics=UNBOUNDED
            )
            for k in range(6)
        }
        ranking = compared(sides).ranking
        own += sum(
            row["place_low"] <= 1 + int(row["system"][1]) <= row["place_high"]
            for row in ranking.to_dicts()
        )
    assert own / (6 * trials) >= 0.93


def test_equivalence_and_no_worse_by_hand() -> None:
    generator = np.random.default_rng(9)
    before = generator.normal(0.5, 0.1, 60)
    after = before + generator.normal(0, 0.03, 60)
    sides = {
        name: sums_of({"x": values}, metrics=UNBOUNDED)
        for name, values in {"a": before, "b": after}.items()
    }
    found = compared(sides, margin=0.02)
    row = row_of(found.differences)
    worse = stats.ttest_rel(after, before - 0.02, alternative="greater").pvalue
    above = stats.ttest_rel(after, before + 0.02, alternative="less").pvalue
    assert row["p_no_worse"] == pytest.approx(worse)
    assert row["p_equal"] == pytest.approx(max(worse, above))
    assert "equal within 0.02 in 1 metric" in headline(found)
    # of a metric that is better lower, no worse is the other side
    lower = (metric("x", minimum=None, maximum=None, better="lower"),)
    sides = {
        name: sums_of({"x": values}, metrics=lower)
        for name, values in {"a": before, "b": after}.items()
    }
    assert row_of(compared(sides, margin=0.02).differences)["p_no_worse"] == pytest.approx(above)


def test_skewed_drops_do_not_fail_a_gate_of_fifty_pairs() -> None:
    """90 % lose .04, 10 % gain .36: the mean is the same. t alone fails .10 and .21 of checks."""
    checks = often(25, 400)
    for limits in (1, 6):
        metrics = [metric(f"m{k}", minimum=None, maximum=None) for k in range(limits)]
        failed = 0
        for seed in range(checks):
            generator = np.random.default_rng(seed)
            changes = {
                one.id: np.where(generator.random(50) < 0.1, 0.36, -0.04)
                + generator.normal(0, 0.02, 50)
                for one in metrics
            }
            still = {one.id: np.zeros(50) for one in metrics}
            sides = {"a": sums_of(still, metrics=metrics), "b": sums_of(changes, metrics=metrics)}
            drops = compared(sides, limits=dict.fromkeys(still, 0.0)).drops
            failed += "failed" in drops["outcome"].to_list()
        assert failed / checks <= 0.06 + 3 * math.sqrt(0.06 * 0.94 / checks)


def test_the_page_has_the_rates_of_the_record() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert filled(text) == text


def test_a_p_below_the_level_beside_an_interval_across_0_has_a_note() -> None:
    for seed in range(999):
        generator = np.random.default_rng(seed)
        a = generator.normal(0.5, 0.05, 8)
        found = compared(
            {
                name: sums_of({"x": values})
                for name, values in (("a", a), ("b", a + 0.03 + generator.normal(0, 0.035, 8)))
            }
        )
        row = row_of(found.differences)
        if row["p_holm"] < 0.05 and row["low"] <= 0 <= row["high"]:
            break
    assert row["verdict"] == ""
    (note,) = verdict_notes(found)
    assert note.startswith(
        "x: the interval includes 0, so there is no verdict (exact permutation: p"
    )
