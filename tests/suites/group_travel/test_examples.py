"""The worked examples and checks of the definitions that no other test has: by hand.

Where the others stand: M1, M2, M4 to M7 and the conditions' gates in `test_conversation`; M9, M11,
M16, W1 to W3, stops, places and catalogues in `test_plans`; normal forms, tokens, rooms, conflicts
and theory in `test_words`; cells and what holds in every dialogue in `test_logs`; the
45 real plans and the planted defects in `test_against_plain`.
"""

import json
import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.suites.group_travel.catalogue import LARGEST_LITERAL, parse_cell
from fastscore.suites.group_travel.lexicon import NULLS, SLOT_ALIASES, load_lexicon
from fastscore.suites.summary import SUMMARY_SCHEMA, summarise
from tests.suites.group_travel.test_wishes import satisfied
from tests.suites.group_travel.travelling import (
    DAY,
    dialogue,
    opening,
    pairs_of,
    presented,
    ratio,
    score,
    turn,
    wish,
)

ACTIONABLE = ("lodging", "cuisine", "event", "attraction")


def angle(text: str) -> Any:
    """Return a vector whose cosine with that of an ordinary text is the number that leads it."""
    try:
        cosine = float(text.split()[0])
    except ValueError:
        cosine = 1.0
    return np.array([cosine, math.sqrt(1.0 - cosine * cosine)], np.float32)


# --- the examples of the metrics


def test_m8_of_28_preferences_sixteen_by_synthesis_or_plan() -> None:
    slots = (*ACTIONABLE, "traveler_type", "travel_purpose", "spending_preference")
    wishes = [
        (f"m{member}", slot, f"{slot[:3]}{member}word") for member in range(4) for slot in slots
    ]
    synthesis = [
        turn("System", f"sys_synthesize_{slot}", f"We noted {word}")
        for _, slot, word in wishes[:15]
    ]
    # five of the plan's six were acknowledged before
    plan = turn("System", "sys_present_plan", " ".join(word for *_, word in wishes[10:16]))
    row = dialogue(opening("C4"), *(wish(*stated) for stated in wishes), *synthesis, plan)
    assert ratio(row, "M8") == (16 / 28, 16, 28)
    assert ratio(row, "M8a") == (15 / 28, 15, 28)
    assert ratio(row, "M8b") == (6 / 28, 6, 28)


def test_m10_fourteen_of_sixteen() -> None:
    row = dialogue(*satisfied([(4, 4), (3, 4), (4, 4), (3, 4)]))
    assert ratio(row, "M10") == (0.875, 14, 16)
    assert ratio(row, "M11") == (0.5, 2, 4)
    # members have equally many preferences
    assert row["W1"] == row["M10"]


def test_m10b_eight_of_twelve() -> None:
    # two of three categories for each of four members; lodging has none
    row = dialogue(*satisfied([(2, 4)] * 4))
    assert ratio(row, "M10b") == (8 / 12, 8, 12)
    assert ratio(row, "M10") == (0.5, 8, 16)


def test_m12_is_the_mean_of_sixteen_cosines() -> None:
    members = "abcd"
    # 0.24, 0.26, ... 0.54: 0.39 in the middle
    wishes = [
        wish(members[number % 4], ACTIONABLE[number // 4], f"{0.24 + 0.02 * number:.2f} x")
        for number in range(16)
    ]
    plan = [{**DAY, "event": "Gig", "attraction": "Zoo"}]
    row = dialogue(*presented(plan), *wishes, semantic=angle)
    assert row["M12"] == pytest.approx(0.39, abs=1e-6)
    assert (row["M12_num"], row["M12_den"]) == (pytest.approx(6.24, abs=1e-5), 16)


def test_m13_of_four_members() -> None:
    means = {"a": "0.38", "b": "0.41", "c": "0.39", "d": "0.40"}
    wishes = [wish(member, "cuisine", f"{mean} x") for member, mean in means.items()]
    row = dialogue(*presented([DAY]), *wishes, semantic=angle)
    # 2 (0.03 + 0.01 + 0.02 + 0.02 + 0.01 + 0.01) / (2 * 16 * 0.395)
    assert row["M13"] == pytest.approx(0.20 / 12.64, abs=1e-6)
    assert row["M12"] == pytest.approx(0.395, abs=1e-6)
    assert dialogue(*presented([DAY]), wishes[0], semantic=angle)["M13"] == 0.0
    orthogonal = [wish(member, "cuisine", "0.0 x") for member in means]
    assert dialogue(*presented([DAY]), *orthogonal, semantic=angle)["M13"] == 0.0
    unasked = wish("a", "house_rule", "x")
    assert dialogue(*presented([DAY]), unasked, semantic=angle)["M13"] is None


def test_m14_is_the_mean_over_pairs_of_explained_slots() -> None:
    turns = [
        opening("C4"),
        wish("a", "cuisine", "0.35 barbecue"),
        wish("b", "cuisine", "0.67 buffet"),
        wish("b", "event", "0.99 music"),
        wish("b", "house_rule", "0.99 quiet"),
        *(
            turn("System", f"sys_synthesize_{slot}", metadata={"resolution_explanation": "family"})
            for slot in ("cuisine", "house_rule")
        ),
        turn("System", "sys_synthesize_event", metadata={"resolution_explanation": "N/A"}),
    ]
    row = dialogue(*turns, semantic=angle)
    assert row["M14"] == pytest.approx(0.51, abs=1e-6)
    assert row["M14_den"] == 2


def test_m15_eight_of_twelve_grounded_places() -> None:
    named = ["Old Mill", "Blue Lake"]
    near = [f"0.{30 + 5 * number} Sight {number}" for number in range(8)]
    far = ["0.29 Barn", "-0.9 Shed"]
    names = [*named, *near, *far]
    plan = [{"attraction": [*names, "Nowhere"]}]
    records = [{"name": name} for name in names]
    wishes = [wish("a", "attraction", "the OLD mill"), wish("b", "house_rule", "a blue lake view")]
    tables = score([*presented(plan, ref_info_attractions=records), *wishes], semantic=angle)
    row = tables["dialogues"].row(0, named=True)
    assert ratio(row, "M15") == (8 / 12, 8, 12)
    assert tables["places"]["explicit"].sum() == 2
    assert tables["places"].filter(key="0 9 shed")["similarity"].item() == 0.0


# --- the checks in the definitions' text


@pytest.mark.parametrize(("cosine", "addressed"), [("0.45", True), ("0.4499", False)])
def test_thresholds_are_reached_at_their_float32_value(cosine: str, addressed: bool) -> None:
    turns = [
        opening("C3"),
        wish("a", "cuisine", "sushi"),
        turn("System", "sys_synthesize_cuisine", f"{cosine} x"),
    ]
    pair = pairs_of(*turns, semantic=angle)["a", "cuisine"]
    assert pair["addressed_synthesis"] is addressed
    assert GroupTravel().address_sim == 0.45


@pytest.mark.parametrize(("cosine", "satisfied"), [("0.42", True), ("0.4199", False)])
def test_a_place_satisfies_from_042(cosine: str, satisfied: bool) -> None:
    turns = [*presented([{"lunch": f"{cosine} Inn"}]), wish("a", "cuisine", "sushi")]
    assert pairs_of(*turns, semantic=angle)["a", "cuisine"]["semantic_channel"] is satisfied


def test_only_the_first_400_lines_of_the_plan_are_compared() -> None:
    def near(*lines: str) -> Any:
        plan = {"days": [DAY], "raw_output": "\n\n".join(lines)}
        turns = [*presented(plan), wish("a", "travel_purpose", "x")]
        return pairs_of(*turns, semantic=angle)["a", "travel_purpose"]["plan_similarity"]

    filler = [f"0.1 {number}" for number in range(400)]
    assert near(*filler[1:], "0.9 last") == pytest.approx(0.9)
    assert near(*filler, "0.9 last") == pytest.approx(0.1)


def test_slots_by_other_names() -> None:
    wishes = [wish(alias, alias.upper(), "x") for alias in SLOT_ALIASES]
    assert set(pairs_of(*wishes)) == set(SLOT_ALIASES.items())


def test_the_system_is_no_member() -> None:
    names = ("System", "sys", "ASSISTANT", "agent", " Planner ", "mediator")
    turns = [*(wish(name, "event", "x") for name in names), wish("a", "event", "y")]
    assert ratio(dialogue(opening("C2"), *turns), "M1") == (1.0, 1, 1)
    assert list(pairs_of(*turns)) == [("a", "event")]


def test_what_is_no_strategy_and_no_explanation() -> None:
    turns = [opening("C4")]
    for null in NULLS:
        said = {"resolution_strategy": f" {null.upper()} ", "resolution_explanation": null.title()}
        turns.append(turn("System", "sys_synthesize_event", metadata=said))
    row = dialogue(*turns)
    assert (row["M3"], row["M4"]) == (0.0, 0.0)


def test_what_does_not_fill_a_meal() -> None:
    nothing = ("", "-", "N/A", "na", "None", "NULL", "nan", "nil", "TBD", None)
    row = dialogue(*presented([{**DAY, "breakfast": value} for value in nothing]))
    assert ratio(row, "M16") == (0.75, 30, 40)


def test_the_categories_that_count_everywhere() -> None:
    sizes = {slot: len(names) for slot, names in load_lexicon().categories.items()}
    assert sizes == {"cuisine": 21, "event": 4, "attraction": 15}


@pytest.mark.parametrize(
    ("first", "second", "divergent"),
    [
        # jaccard of parts of categories: 1/2 is no divergence, 1/3 is
        ("thai", "thai or italian", False),
        ("thai and indian", "thai or italian", True),
        ("thai", "thai", False),
        # not every member names a category: tokens
        ("thai", "quiet", True),
        ("thai", "please", False),
    ],
)
def test_m2_divergence_is_a_jaccard_below_one_half(
    first: str, second: str, divergent: bool
) -> None:
    row = dialogue(opening("C3"), wish("a", "cuisine", first), wish("b", "cuisine", second))
    assert row["M2_den"] == int(divergent)


STRATEGIES = (
    *("hard_constraint", "weighted_avg", "parent_budget_hc", "include_both", "parent_veto_hc"),
    *("parent_vote_lower_misery", "least_misery", "subgroup_optional", "self_select"),
    *("subgroup_required", "elder_stamina_hc", "flexible_shared_first"),
    *("elder_accessibility_hc", "approval_vote_plus_coverage", "budget_guardrail_hc"),
    *("shared_rules_intersection_hc", "higher_pref_with_compensation", "mutual_interest"),
    *("log_roll", "individual_choice", "declare_upfront_hc"),
)


def test_ids_of_strategies_give_theory_away() -> None:
    turns = [turn("System", "sys_synthesize_event", f"Strategy: {name}.") for name in STRATEGIES]
    assert ratio(dialogue(*turns), "M4b") == (1.0, 21, 21)


def test_literals_beyond_eight_mebibytes_are_text() -> None:
    inside = "x" * (LARGEST_LITERAL - 2)
    assert parse_cell(f"'{inside}'") == inside
    assert parse_cell(f"'{inside}x'") == f"'{inside}x'"
    # JSON may be of any size
    assert parse_cell(json.dumps([inside * 2])) == [inside * 2]


def test_summary_by_condition_and_group_type() -> None:
    dialogues = []
    for condition, voices in (("C1", 1), ("C2", 1), ("C2", 2), ("C2", 3), ("C4", 3)):
        speaking = [turn(f"m{number}", "user_provide_event", "x") for number in range(voices)]
        about = {"member_count": 4, "group_type": "spouses" if voices == 2 else "family"}
        dialogues.append([opening(condition, **about), *speaking])
    options = GroupTravel(by_group_type=True)
    tables = {name: table.lazy() for name, table in score(*dialogues).items()}
    summary = summarise(SUITE, tables, options)
    assert dict(summary.schema) == SUMMARY_SCHEMA

    def found(group: str, value: str | None, metric: str = "M1") -> dict[str, Any]:
        rows = summary.filter(
            (pl.col("group") == group)
            & pl.col("value").eq_missing(pl.lit(value))
            & (pl.col("metric") == metric)
        )
        return rows.row(0, named=True)

    second = found("condition", "C2")
    # 1/4, 2/4 and 3/4: mean 0.5, sd 0.25, so (1/4)^2 / 3 is its variance
    assert (second["mean"], second["sd"], second["n"], second["n_units"]) == (0.5, 0.25, 3, 3)
    assert (second["micro_numerator"], second["micro_denominator"]) == (6.0, 12.0)
    # Wilson's interval of 12 trials, (1/2)(1/2) / (1/48), with t of two degrees of freedom:
    # its half width at 1/2 is t / (2 sqrt(12 + t^2))
    assert second["ci_low"] == pytest.approx(0.5 - 4.302653 / (2 * math.sqrt(12 + 4.302653**2)))
    assert second["ci_high"] == pytest.approx(0.5 + 4.302653 / (2 * math.sqrt(12 + 4.302653**2)))
    # in C1 the definition gives every M1, which is 1/4 with one of four voices
    delta = found("condition_delta", "C2-C1")
    assert (delta["mean"], delta["mean_all_rows"]) == (None, 0.25)
    assert found("condition_delta", "C2-C1", "M7_total_turns")["mean"] is not None
    assert found("condition", "C1")["sd"] is None
    assert found("group_type_and_condition", "spouses/C2")["mean"] == 0.5
    assert (found("all", None, "M2")["n_null"], found("all", None, "M2")["n_not_applicable"]) == (
        5,
        5,
    )
    assert summary.filter(value="C3-C2").is_empty()
