"""The analysis' numbers: worked by hand, and against the plain scorer's own."""

import json
import math
from typing import Any

import polars as pl
import pytest

from fastscore.suites.preference_shift.analysis import TOP_CONCEPTS_SCHEMA, top_concepts
from fastscore.suites.preference_shift.analysis.tables import (
    Scored,
    ablated_scores,
    ablations,
    around_shifts,
    construct_validity,
    first_recoveries,
    segment_similarities,
    simplex,
    weight_grid,
    window_sweep,
)
from tests.suites.preference_shift import conversing
from tests.suites.preference_shift.analysis.analysing import ITEMS, Row, scored_of, tables_of
from tests.suites.preference_shift.conversing import system, user


def log(model: str, session: str, *pairs: tuple[str, str], shifts: tuple[int, ...] = ()) -> Row:
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
def hand() -> Scored:
    return scored_of(tables_of(HAND))


def value(table: pl.DataFrame, column: str, **where: Any) -> Any:
    for name, wanted in where.items():
        table = table.filter(pl.col(name).eq_missing(pl.lit(wanted)))
    assert table.height == 1, table
    return table[column].item()


def test_ablations_by_hand(hand: Scored) -> None:
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


def test_top_concepts_by_hand() -> None:
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


def test_a_conversation_without_turns_keeps_the_value_that_the_run_gave(hand: Scored) -> None:
    logs = [*HAND, log("m", "3")]
    for profile, expected in (("default", None), ("published", 0.0)):
        scored = scored_of(tables_of(logs, profile), profile=profile)
        last = ablated_scores(scored).row(-1, named=True)
        assert last["tas"] == last["cc_only"] == last["tas_without_copying"] == expected
        assert last["cas"] is None
        assert last["cas_without_recovery"] is None


def test_the_simplex_has_66_points_that_sum_to_one() -> None:
    points = simplex()
    assert points.shape == (66, 3)
    assert set(map(math.fsum, points.tolist())) == {1.0}
    assert points.min() == 0.0
    assert len({tuple(point) for point in points.tolist()}) == 66
    assert simplex(1).tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_the_weight_grid_by_hand(hand: Scored) -> None:
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


def test_windows_by_hand(hand: Scored) -> None:
    delays = first_recoveries(hand, hand.options, "run")
    assert delays.select("conversation", "turn", "delay").rows() == [
        (0, 3, 0),
        (1, 2, 1),
        (1, 9, None),
    ]
    by_cosine = first_recoveries(hand, hand.options, "cosine")
    assert by_cosine["delay"].to_list() == [2, 1, None]
    sweep = window_sweep(hand)
    rates = sweep.filter((pl.col("group") == "all") & (pl.col("test") == "run"))
    assert rates["rate"].to_list() == pytest.approx([1 / 3, *[2 / 3] * 9])
    assert rates["n_shifts"].to_list() == [3] * 10
    assert rates["mean_delay"].to_list() == [0.0, *[0.5] * 9]
    assert rates.filter("is_own")["window"].to_list() == [3]


def test_windows_leave_out_shifts_that_a_missing_text_leaves_unknown() -> None:
    pairs = [("ant", "bee"), ("ant", "ant"), ("ant", "bee"), ("ant", "bee"), ("ant", "ant")]
    tables = tables_of([log("m", "1", *pairs, shifts=(1, 3))])
    lacking = pl.when(pl.col("turn") == 4).then(None)
    scores = [lacking.otherwise(pl.col(name)).alias(name) for name in ("cc", "cr", "i", "tas")]
    scored = scored_of({**tables, "turns": tables["turns"].with_columns(scores)})
    delays = first_recoveries(scored, scored.options, "run")
    assert delays.select("turn", "delay", "unknown_from").rows() == [(1, 1, 3), (3, 2, 1)]
    sweep = window_sweep(scored).filter(pl.col("test") == "run", pl.col("group") == "all")
    # the second shift is missed in one turn, unknown in two, recovered in three
    assert sweep["n_shifts"].to_list() == [2, 1, *[2] * 8]
    assert sweep["n_recovered"].to_list() == [0, 1, *[2] * 8]
    assert sweep["rate"].to_list() == [0.0, *[1.0] * 9]


def test_turns_around_shifts_by_hand(hand: Scored) -> None:
    near = around_shifts(hand)
    assert near.select("conversation", "turn").rows() == [(0, 3), (1, 2)]
    cc = near.select("cc:before", "cc:at", "cc:after").rows()
    assert cc == [pytest.approx((2 / 3, 1.0, 0.5)), pytest.approx((0.0, 0.0, 1.0))]
    of_concepts = near.select("cc_of_concepts:before", "cc_of_concepts:at").rows()
    assert of_concepts[0] == (pytest.approx(2 / 3), None)


def test_turns_beyond_another_shift_do_not_count() -> None:
    pairs = [("ant", "ant"), ("bee", "ant"), ("cat", "cat"), ("dog", "ant"), ("ant", "ant")]
    logs = [log("m", "1", *pairs, shifts=(2, 3))]
    near = around_shifts(scored_of(tables_of(logs)))
    assert near.select("turn", "cc:before", "cc:at", "cc:after").rows() == [
        (2, 1.0, 0.0, None),
        (3, 0.0, 1.0, 0.5),
    ]


def test_construct_contrasts_by_hand(hand: Scored) -> None:
    table = construct_validity(hand, None)
    row = {"group": "all", "score": "cc", "first": "at", "second": "before"}
    assert value(table, "n", **row) == 2
    assert value(table, "difference", **row) == pytest.approx((1 / 3 + 0) / 2)
    row["first"], row["second"] = "after", "at"
    assert value(table, "difference", **row) == pytest.approx((-0.5 + 1) / 2)
    row |= {"score": "cc_of_concepts"}
    assert (value(table, "n", **row), value(table, "n_null", **row)) == (1, 1)
    assert value(table, "reason", **row) == "too_few_units"
    across = {"group": "all", "score": "cr", "first": "within", "second": "across"}
    assert value(table, "reason", **across) == "missing_input"
    assert value(table, "difference", **across) is None


def test_segment_cosines_by_hand() -> None:
    pairs = [("ant", "ant"), ("ant bee", "bee"), ("cat", "ant"), ("cat", "cat")]
    logs = [log("m", "1", *pairs, shifts=(3,)), log("m", "2", ("ant", "ant"))]
    tables = tables_of(logs)
    idf = pl.DataFrame({"concept": [f"name={item['name']}" for item in ITEMS], "idf": [2.0] * 4})
    found = segment_similarities(tables["turns"], idf, scored_of(tables).conversations)
    # U1 = 2 ant + bee, S1 = ant + bee, U2 = 2 cat, S2 = ant + cat
    within = (3 / math.sqrt(10) + 1 / math.sqrt(2)) / 2
    across = (2 / math.sqrt(10) + 0) / 2
    assert found.rows() == [(0, pytest.approx(within), pytest.approx(across))]


def test_without_shifts_tables_have_no_numbers_and_no_errors() -> None:
    logs = [log("m", "1", ("ant", "ant")), log("n", "1", ("ant", "bee"))]
    scored = scored_of(tables_of(logs))
    sweep = window_sweep(scored)
    assert sweep["n_shifts"].sum() == 0
    assert sweep["rate"].null_count() == sweep.height
    table = construct_validity(scored, None)
    assert table["n"].sum() == 0
    assert table["difference"].null_count() == table.height
    assert json.loads(table.write_json()), "NaN would be no JSON"
