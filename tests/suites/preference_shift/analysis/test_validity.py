"""Correlations with a judge, paired differences and their families, worked out independently."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from fastscore.suites.judged import JUDGE_REJECT_SCHEMA, JUDGE_SCHEMA, MEAN, OVERALL, Judged
from fastscore.suites.preference_shift.analysis.tables import (
    CONVERGENT_SCHEMA,
    SCORE_NAMES,
    Scored,
    convergent_validity,
    mean_intervals,
    paired_difference,
    untestable,
    with_corrected,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from tests.statistics.test_correlation import plain_kendall, plain_spearman

UNIT_RANGE = (0.0, 1.0)


def scored_of_rows(rows: Sequence[dict[str, Any]]) -> Scored:
    """Make the scores of conversations: rows name ``cluster``, ``model`` and some scores."""
    columns = {"cluster": pl.Int64, "model": pl.String} | dict.fromkeys(SCORE_NAMES, pl.Float64)
    frame = (
        pl.DataFrame(rows, schema=columns)
        .with_columns(pl.lit(None, dtype=pl.String).alias("judge"))
        .with_row_index("conversation")
    )
    none = pl.DataFrame()
    return Scored(frame, none, none, PreferenceShift(catalogue="c.jsonl"), "signature")


def judged_of(**scores: Sequence[float | None]) -> Judged:
    """Make a judge's scores, one a conversation under each name."""
    given = [
        (number, name.replace("_", " "), score)
        for name, values in scores.items()
        for number, score in enumerate(values)
        if score is not None
    ]
    frame = pl.DataFrame(given, schema=JUDGE_SCHEMA, orient="row")
    names = tuple(name.replace("_", " ") for name in scores)
    rejects = pl.DataFrame(schema=JUDGE_REJECT_SCHEMA)
    refused = pl.DataFrame(schema={"conversation": pl.UInt32, "judge": pl.String})
    return Judged(frame, rejects, names, (1.0, 5.0), refused, ())


def row_of(table: pl.DataFrame, **where: Any) -> dict[str, Any]:
    chosen = table.filter(pl.col(name) == value for name, value in where.items())
    assert chosen.height == 1
    return chosen.row(0, named=True)


def crossed(n_users: int, n_models: int, seed: int) -> tuple[list[dict[str, Any]], list[float]]:
    """Draw users by models: models differ in both scores, users in neither."""
    generator = np.random.default_rng(seed)
    users, models = np.indices((n_users, n_models)).reshape(2, -1)
    tas = generator.normal(size=users.size) / 20 + models / 10
    judge = np.clip(np.round(generator.normal(size=users.size) + models + 1.5), 1, 5)
    rows = [
        {"cluster": int(user), "model": f"m{model}", "tas": float(score), "cas": float(score**3)}
        for user, model, score in zip(users, models, tas, strict=True)
    ]
    return rows, [float(score) for score in judge]


def test_conversations_are_ranked_within_their_model() -> None:
    rows, judge = crossed(12, 3, seed=1)
    table = convergent_validity(scored_of_rows(rows), judged_of(overall=judge))
    assert dict(table.schema) == CONVERGENT_SCHEMA
    within = row_of(table, group="all", level="conversation", score="tas")
    triples = [(r["tas"], score, r["model"]) for r, score in zip(rows, judge, strict=True)]
    assert within["rho"] == pytest.approx(plain_spearman(triples))
    assert within["tau"] == pytest.approx(plain_kendall(triples))
    assert (within["n"], within["n_units"]) == (36, 12)
    pooled = row_of(table, group="all", level="pooled", score="tas")
    assert pooled["rho"] == pytest.approx(stats.spearmanr([r["tas"] for r in rows], judge)[0])
    assert (pooled["rho_p"], pooled["rho_low"], pooled["reason"]) == (None, None, "mixes_models")
    # the differences between models alone make the pooled correlation
    assert pooled["rho"] > 0.5 > abs(within["rho"])
    between = row_of(table, group="all", level="model", score="tas")
    assert (between["rho"], between["n"]) == (pytest.approx(1.0), 3)
    assert between["rho_p"] == pytest.approx(1 / 3)
    one = row_of(table, group="model", value="m1", score="tas")
    ours = [(tas, score) for tas, score, model in triples if model == "m1"]
    assert one["rho"] == pytest.approx(stats.spearmanr(*zip(*ours, strict=True)).statistic)


def test_only_headline_correlations_are_one_family() -> None:
    rows, judge = crossed(12, 1, seed=3)
    judged = judged_of(coherence=judge, overall=judge[::-1])
    table = convergent_validity(scored_of_rows(rows), judged)
    headlines = table.filter("is_headline")
    assert headlines.select("score", "judge").rows() == [("tas", OVERALL), ("cas", OVERALL)]
    # cas is a monotone function of tas here: equal p, of which Holm doubles the smaller one
    assert headlines["family"].to_list() == [2, 2]
    assert headlines["rho_holm_p"].to_list() == pytest.approx(
        [min(1.0, 2 * p) for p in headlines["rho_p"]]
    )
    others = table.filter(~pl.col("is_headline"))
    assert others["rho_holm_p"].null_count() == others["family"].null_count() == others.height
    assert others.filter(score="tas")["rho_p"].null_count() == 0


def test_the_mean_of_scores_is_the_headline_without_an_overall_score() -> None:
    rows, judge = crossed(6, 1, seed=3)
    judged = judged_of(coherence=judge, tone=judge, mean_of_scores=judge)
    assert judged.names[-1] == MEAN
    table = convergent_validity(scored_of_rows(rows), judged)
    assert set(table.filter("is_headline")["judge"]) == {MEAN}


def test_three_dialogues_in_perfect_order_are_not_significant() -> None:
    rows = [{"cluster": k, "model": "m", "tas": k / 4, "cas": 1 - k / 4} for k in range(3)]
    table = convergent_validity(scored_of_rows(rows), judged_of(overall=[1.0, 2.0, 4.0]))
    tas = row_of(table, score="tas")
    assert (tas["rho"], tas["rho_p"]) == (pytest.approx(1.0), pytest.approx(1 / 3))
    assert (tas["rho_holm_p"], tas["smallest_holm_p"]) == pytest.approx((2 / 3, 2 / 3))
    assert tas["is_significant"] is False
    assert tas["detectable_rho"] is None
    assert untestable(table) == (
        "Too few units for a significant correlation: with 3 units and 2 headline correlations "
        "the smallest possible corrected p is 0.667."
    )


def test_differences_are_paired_t_tests_if_every_unit_has_one_row() -> None:
    x, y = np.random.default_rng(8).uniform(size=(2, 9))
    frame = pl.DataFrame({"cluster": np.arange(9), "x": x, "y": y})
    found = paired_difference(frame, "x", "y", UNIT_RANGE)
    test = stats.ttest_rel(x, y)
    ends = test.confidence_interval()
    assert found["difference"] == pytest.approx((x - y).mean())
    assert (found["difference_low"], found["difference_high"]) == pytest.approx(tuple(ends))
    assert (found["p"], found["df"]) == pytest.approx((test.pvalue, 8))
    # Hedges' g of pairs: d_z with the usual correction, 1 - 3 / (4 * 8 - 1) to two digits
    d_z = (x - y).mean() / (x - y).std(ddof=1)
    assert found["effect_g"] == pytest.approx(d_z * (1 - 3 / 31), abs=2e-3)


def test_answers_of_several_models_to_one_dialogue_are_one_unit() -> None:
    x, y = np.random.default_rng(9).uniform(size=(2, 6))
    once = pl.DataFrame({"cluster": np.arange(6), "x": x, "y": y})
    thrice = pl.concat([once] * 3)
    for name in ("difference_low", "difference_high", "p", "df", "effect_g", "n_pair_units"):
        expected = paired_difference(once, "x", "y", UNIT_RANGE)[name]
        assert paired_difference(thrice, "x", "y", UNIT_RANGE)[name] == pytest.approx(expected)
    alone, repeated = (
        mean_intervals(frame, ["x"], {"x": UNIT_RANGE})[0] for frame in (once, thrice)
    )
    for end in ("low", "high"):
        assert alone[end] == pytest.approx(repeated[end])


def test_families_of_differences_count_tests_that_exist() -> None:
    tests = [{"p": p, "difference_low": low, "difference_high": 1.0} for p, low in FAMILY]
    tests.append({"p": 0.2, "difference_low": -1.0, "difference_high": 1.0, "is_headline": False})
    found = with_corrected(tests)
    # Holm over three: 3 * 0.01, 2 * 0.03, 0.04 raised to its predecessor's
    assert [row["holm_p"] for row in found] == pytest.approx([0.03, None, 0.06, 0.06, None])
    assert [row["family"] for row in found] == [3, None, 3, 3, None]
    assert [row["is_significant"] for row in found] == [True, None, False, False, None]


FAMILY = [(0.01, 0.2), (None, None), (0.04, 0.1), (0.03, 0.1)]


def test_the_detectable_difference_grows_with_the_family() -> None:
    x, y = np.random.default_rng(8).uniform(size=(2, 9))
    frame = pl.DataFrame({"cluster": np.arange(9), "x": x, "y": y})
    one = paired_difference(frame, "x", "y", UNIT_RANGE)
    alone = with_corrected([one])[0]["detectable"]
    error = (x - y).std(ddof=1) / 3
    assert alone == pytest.approx((stats.t.ppf(0.975, 8) + stats.t.ppf(0.8, 8)) * error)
    of_two = with_corrected([one, one])[0]["detectable"]
    assert of_two == pytest.approx((stats.t.ppf(0.9875, 8) + stats.t.ppf(0.8, 8)) * error)
