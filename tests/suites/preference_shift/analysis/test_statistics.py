"""The analysis' numbers: by hand, and against the plain scorer's own."""

import json
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats

from fastscore.suites.judged import JUDGE_REJECT_SCHEMA, JUDGE_SCHEMA, MEAN, OVERALL, Judged
from fastscore.suites.preference_shift.analysis import TOP_CONCEPTS_SCHEMA, top_concepts
from fastscore.suites.preference_shift.analysis.tables import (
    CONVERGENT_SCHEMA,
    SCORE_NAMES,
    Scored,
    ablated_scores,
    ablations,
    around_shifts,
    construct_validity,
    convergent_validity,
    first_recoveries,
    mean_intervals,
    paired_difference,
    segment_similarities,
    untestable,
    weight_grid,
    window_sweep,
    with_corrected,
)
from fastscore.suites.preference_shift.options import PreferenceShift
from tests.statistics.test_agreement import plain_kendall, plain_spearman
from tests.suites.preference_shift import conversing
from tests.suites.preference_shift.analysis.analysing import ITEMS, scored_of, tables_of
from tests.suites.preference_shift.conversing import system, user


def log(model, session, *pairs, shifts=()):
    turns = [
        turn
        for number, (asked, answered) in enumerate(pairs, start=1)
        for turn in (user(asked, shift_event=number in shifts), system(answered))
    ]
    return conversing.log(*turns, session_id=session, model_name=model, shift_events=[])


HAND = [
    # cc: 1, 1/3, 1 (no concept), 0, 1; a shift at turn 3, recovered at once by the convention
    log(
        "m",
        "1",
        ("ant", "ant"),
        ("ant bee", "bee cat"),
        ("hello", "hello"),
        ("cat", "dog"),
        ("cat", "cat"),
        shifts=(3,),
    ),
    # cc: 0, 0, 1; a shift at turn 2, recovered at turn 3, and one beyond the end
    log("m", "2", ("ant", "bee"), ("bee", "cat"), ("dog", "dog"), shifts=(2,))
    | {"shift_events": [{"turn": 9}]},
    log("n", "1", ("ant", "bee"), ("ant", "ant")),
]


@pytest.fixture
def hand():
    return scored_of(tables_of(HAND))


def value(table, column, **where):
    for name, wanted in where.items():
        table = table.filter(pl.col(name).eq_missing(pl.lit(wanted)))
    assert table.height == 1, table
    return table[column].item()


def test_ablations_by_hand(hand):
    table = ablations(hand)
    # over turns: m/1 (1 + 1/3 + 1 + 0 + 1) / 5, m/2 1/3, n/1 1/2
    cc = [10 / 15, 1 / 3, 1 / 2]
    assert value(table, "mean", group="all", variant="cc_only") == pytest.approx(sum(cc) / 3)
    # cosines of equally weighted sets: m/1 1, 1/2, 0, 0, 1; m/2 0, 0, 1; n/1 0, 1
    cr = [2.5 / 5, 1 / 3, 1 / 2]
    assert value(table, "mean", group="all", variant="cr_only") == pytest.approx(sum(cr) / 3)
    # 1 + 1 is clipped to 1: m/1 1, 5/6, 1, 0, 1; m/2 0, 0, 1; n/1 0, 1; nobody has three words
    tas = [23 / 30, 1 / 3, 1 / 2]
    for variant in ("tas", "tas_without_copying"):
        assert value(table, "mean", group="all", variant=variant) == pytest.approx(sum(tas) / 3)
    # (0.04 * 1 + 0.6 cc + 0.3 cr) / 0.94
    cas = [(0.04 + 0.6 * a + 0.3 * b) / 0.94 for a, b in zip(cc, cr, strict=True)]
    found = value(table, "mean", group="all", variant="cas_without_recovery")
    assert found == pytest.approx(sum(cas) / 3)
    # no shift in n/1, so no CAS
    assert value(table, "n", group="all", variant="cas") == 2
    assert value(table, "n_null", group="all", variant="cas") == 1
    assert value(table, "n_pairs", group="all", variant="cas_without_recovery") == 2
    # over all shifts: m/1 0.02 + 0.04, m/2 recovers after one turn and has one beyond its end
    of_all = [0.02 + 0.04, 0.02 / 2 + 0.04 * 0.8 / 2]
    of_all = [c * 0.94 + part for c, part in zip(cas, of_all, strict=False)]
    assert value(table, "mean", group="all", variant="cas_all") == pytest.approx(sum(of_all) / 2)
    difference = value(table, "difference", group="all", variant="cc_only")
    assert difference == pytest.approx(sum(cc) / 3 - sum(tas) / 3)
    assert value(table, "rank", group="model", value="m", variant="tas") == 1
    assert value(table, "rank", group="model", value="n", variant="tas") == 2
    assert value(table, "rank", group="all", variant="tas") is None


def test_top_concepts_by_hand():
    turns = pl.LazyFrame(
        {
            "dialogue": ["1", "1", "2", "3"],
            "model": ["m", "m", "n", None],
            "missing_concepts": [["genre=x", "name=a=b"], ["genre=x"], ["genre=w"], ["genre=x"]],
            "hallucinated_concepts": [[], ["genre=x"], [], []],
        },
        schema_overrides={"hallucinated_concepts": pl.List(pl.String)},
    )
    table = top_concepts(turns)
    assert dict(table.schema) == TOP_CONCEPTS_SCHEMA
    assert table.rows() == [
        ("all", None, "missing", "genre", 1, "genre=x", 3, 2, 0.75),
        ("all", None, "missing", "genre", 2, "genre=w", 1, 1, 0.25),
        ("all", None, "missing", "name", 1, "name=a=b", 1, 1, 0.25),
        ("all", None, "hallucinated", "genre", 1, "genre=x", 1, 1, 0.25),
        ("model", "m", "missing", "genre", 1, "genre=x", 2, 1, 1.0),
        ("model", "m", "missing", "name", 1, "name=a=b", 1, 1, 0.5),
        ("model", "m", "hallucinated", "genre", 1, "genre=x", 1, 1, 0.5),
        ("model", "n", "missing", "genre", 1, "genre=w", 1, 1, 1.0),
    ]


def test_a_conversation_without_turns_keeps_the_value_that_the_run_gave(hand):
    logs = [*HAND, log("m", "3")]
    for profile, expected in (("default", None), ("published", 0.0)):
        scored = scored_of(tables_of(logs, profile), profile=profile)
        last = ablated_scores(scored).row(-1, named=True)
        assert last["tas"] == last["cc_only"] == last["tas_without_copying"] == expected
        assert last["cas"] is None
        assert last["cas_without_recovery"] is None


def test_the_weight_grid_by_hand(hand):
    grid = weight_grid(hand)
    assert grid.height == 3 * 66
    assert value(grid, "tas", group="all", w_cc=1.0, w_cr=0.0) == pytest.approx(
        (2 / 3 + 1 / 3 + 0.5) / 3
    )
    assert value(grid, "tas", group="all", w_cc=0.0, w_cr=1.0) == pytest.approx(
        (0.5 + 1 / 3 + 0.5) / 3
    )
    half = value(grid, "tas", group="model", value="m", w_cc=0.5, w_cr=0.5)
    assert half == pytest.approx(((2 / 3 + 0.5) / 2 + 1 / 3) / 2)
    assert value(grid, "rank", group="model", value="n", w_cc=0.0, w_cr=1.0) == 1
    assert value(grid, "rank", group="model", value="m", w_cc=0.0, w_cr=0.0) == 1
    assert value(grid, "rank", group="model", value="n", w_cc=0.0, w_cr=0.0) == 1, "all are 0"


def test_windows_by_hand(hand):
    delays = first_recoveries(hand)
    assert delays.select("conversation", "turn", "delay").rows() == [
        (0, 3, 0),
        (1, 2, 1),
        (1, 9, None),
    ]
    rates = window_sweep(hand).filter(group="all")
    assert rates["rate"].to_list() == pytest.approx([1 / 3, *[2 / 3] * 9])
    assert rates["n_shifts"].to_list() == [3] * 10
    assert rates["mean_delay"].to_list() == [0.0, *[0.5] * 9]
    assert rates.filter("is_own")["window"].to_list() == [3]


def test_windows_leave_out_shifts_that_a_missing_text_leaves_unknown():
    pairs = [("ant", "bee"), ("ant", "ant"), ("ant", "bee"), ("ant", "bee"), ("ant", "ant")]
    tables = tables_of([log("m", "1", *pairs, shifts=(1, 3))])
    lacking = pl.when(pl.col("turn") == 4).then(None)
    scores = [lacking.otherwise(pl.col(name)).alias(name) for name in ("cc", "cr", "i", "tas")]
    scored = scored_of({**tables, "turns": tables["turns"].with_columns(scores)})
    delays = first_recoveries(scored)
    assert delays.select("turn", "delay", "unknown_from").rows() == [(1, 1, 3), (3, 2, 1)]
    sweep = window_sweep(scored).filter(group="all")
    # the second shift is missed in one turn, unknown in two, recovered in three
    assert sweep["n_shifts"].to_list() == [2, 1, *[2] * 8]
    assert sweep["n_recovered"].to_list() == [0, 1, *[2] * 8]
    assert sweep["rate"].to_list() == [0.0, *[1.0] * 9]


def test_turns_around_shifts_by_hand(hand):
    near = around_shifts(hand)
    assert near.select("conversation", "shift").rows() == [(0, 3), (1, 2)]
    cc = near.select("before", "at", "after").rows()
    assert cc == [pytest.approx((2 / 3, 1.0, 0.5)), pytest.approx((0.0, 0.0, 1.0))]


def test_turns_beyond_another_shift_do_not_count():
    pairs = [("ant", "ant"), ("bee", "ant"), ("cat", "cat"), ("dog", "ant"), ("ant", "ant")]
    logs = [log("m", "1", *pairs, shifts=(2, 3))]
    near = around_shifts(scored_of(tables_of(logs)))
    assert near.select("shift", "before", "at", "after").rows() == [
        (2, 1.0, 0.0, None),
        (3, 0.0, 1.0, 0.5),
    ]


def test_construct_contrasts_by_hand(hand):
    table = construct_validity(hand, None)
    row = {"group": "all", "score": "cc", "first": "at", "second": "before"}
    assert value(table, "n", **row) == 2
    assert value(table, "difference", **row) == pytest.approx((1 / 3 + 0) / 2)
    row["first"], row["second"] = "after", "at"
    assert value(table, "difference", **row) == pytest.approx((-0.5 + 1) / 2)
    across = {"group": "all", "score": "cr", "first": "within", "second": "across"}
    assert value(table, "reason", **across) == "missing_input"
    assert value(table, "difference", **across) is None


def test_segment_cosines_by_hand():
    pairs = [("ant", "ant"), ("ant bee", "bee"), ("cat", "ant"), ("cat", "cat")]
    logs = [log("m", "1", *pairs, shifts=(3,)), log("m", "2", ("ant", "ant"))]
    tables = tables_of(logs)
    idf = pl.DataFrame({"concept": [f"name={item['name']}" for item in ITEMS], "idf": [2.0] * 4})
    found = segment_similarities(tables["turns"], idf, scored_of(tables).conversations)
    # U1 = 2 ant + bee, S1 = ant + bee, U2 = 2 cat, S2 = ant + cat
    within = (3 / math.sqrt(10) + 1 / math.sqrt(2)) / 2
    across = (2 / math.sqrt(10) + 0) / 2
    assert found.rows() == [(0, pytest.approx(within), pytest.approx(across))]


def test_without_shifts_tables_have_no_numbers_and_no_errors():
    logs = [log("m", "1", ("ant", "ant")), log("n", "1", ("ant", "bee"))]
    scored = scored_of(tables_of(logs))
    sweep = window_sweep(scored)
    assert sweep["n_shifts"].sum() == 0
    assert sweep["rate"].null_count() == sweep.height
    table = construct_validity(scored, None)
    assert table["n"].sum() == 0
    assert table["difference"].null_count() == table.height
    assert json.loads(table.write_json()), "NaN would be no JSON"


# --- correlations with a judge, paired differences and their families


UNIT_RANGE = (0.0, 1.0)


def scored_of_rows(rows):
    """Make the scores of conversations: rows name ``cluster``, ``model`` and some scores."""
    columns = {"cluster": pl.Int64, "model": pl.String} | dict.fromkeys(SCORE_NAMES, pl.Float64)
    frame = (
        pl.DataFrame(rows, schema=columns)
        .with_columns(pl.lit(None, dtype=pl.String).alias("judge"))
        .with_row_index("conversation")
    )
    none = pl.DataFrame()
    return Scored(frame, none, none, PreferenceShift(catalogue="c.jsonl"), "signature")


def judged_of(**scores):
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


def row_of(table, **where):
    chosen = table.filter(pl.col(name) == value for name, value in where.items())
    assert chosen.height == 1
    return chosen.row(0, named=True)


def crossed(n_users, n_models, seed):
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


def test_conversations_are_ranked_within_their_model():
    rows, judge = crossed(12, 3, seed=1)
    table = convergent_validity(scored_of_rows(rows), judged_of(overall=judge))
    assert dict(table.schema) == CONVERGENT_SCHEMA
    within = row_of(table, group="all", score="tas")
    triples = [(r["tas"], score, r["model"]) for r, score in zip(rows, judge, strict=True)]
    assert within["rho"] == pytest.approx(plain_spearman(triples))
    assert within["tau"] == pytest.approx(plain_kendall(triples))
    assert (within["n"], within["n_units"]) == (36, 12)
    # differences between models alone would make a correlation over all of them
    assert stats.spearmanr([r["tas"] for r in rows], judge)[0] > 0.5 > abs(within["rho"])
    one = row_of(table, group="model", value="m1", score="tas")
    ours = [(tas, score) for tas, score, model in triples if model == "m1"]
    assert one["rho"] == pytest.approx(stats.spearmanr(*zip(*ours, strict=True)).statistic)


def test_only_headline_correlations_are_one_family():
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


def test_the_mean_of_scores_is_the_headline_without_an_overall_score():
    rows, judge = crossed(6, 1, seed=3)
    judged = judged_of(coherence=judge, tone=judge, mean_of_scores=judge)
    assert judged.names[-1] == MEAN
    table = convergent_validity(scored_of_rows(rows), judged)
    assert set(table.filter("is_headline")["judge"]) == {MEAN}


def test_three_dialogues_in_perfect_order_are_not_significant():
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


def test_differences_are_paired_t_tests_if_every_unit_has_one_row():
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


def test_answers_of_several_models_to_one_dialogue_are_one_unit():
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


def test_families_of_differences_count_tests_that_exist():
    tests = [{"p": p, "difference_low": low, "difference_high": 1.0} for p, low in FAMILY]
    found = with_corrected(tests)
    # Holm over three: 3 * 0.01, 2 * 0.03, 0.04 raised to its predecessor's
    assert [row["holm_p"] for row in found] == pytest.approx([0.03, None, 0.06, 0.06])
    assert [row["family"] for row in found] == [3, None, 3, 3]
    assert [row["is_significant"] for row in found] == [True, None, False, False]


FAMILY = [(0.01, 0.2), (None, None), (0.04, 0.1), (0.03, 0.1)]
