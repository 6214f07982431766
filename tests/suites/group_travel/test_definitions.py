"""The metrics by hand: worked examples of the definitions, and their edges."""

import json
import math

import numpy as np
import polars as pl
import pytest

from fastscore.suites.group_travel import SUITE, GroupTravel
from fastscore.suites.group_travel.catalogue import LARGEST_LITERAL, parse_cell
from fastscore.suites.summary import SUMMARY_SCHEMA, summarise
from tests.suites.group_travel.travelling import (
    CATALOGUE,
    DAY,
    DEFAULTS,
    dialogue,
    flags,
    opening,
    pairs_of,
    presented,
    ratio,
    read,
    score,
    turn,
    wish,
)

ACTIONABLE = ("lodging", "cuisine", "event", "attraction")


def angle(text):
    """Return a vector whose cosine with that of an ordinary text is the number that leads it."""
    try:
        cosine = float(text.split()[0])
    except ValueError:
        cosine = 1.0
    return np.array([cosine, math.sqrt(1.0 - cosine * cosine)], np.float32)


# --- the examples of the metrics


def test_m8_of_28_preferences_sixteen_by_synthesis_or_plan():
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


def test_m12_is_the_mean_of_sixteen_cosines():
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


def test_m13_of_four_members():
    means = {"a": "0.38", "b": "0.41", "c": "0.39", "d": "0.40"}
    wishes = [wish(member, "cuisine", f"{mean} x") for member, mean in means.items()]
    # a second wish of one member, as well met as the first, leaves that member's mean
    plan = [{**DAY, "event": "Gig"}]
    row = dialogue(*presented(plan), *wishes, wish("a", "event", "0.38 x"), semantic=angle)
    # 2 (0.03 + 0.01 + 0.02 + 0.02 + 0.01 + 0.01) / (2 * 16 * 0.395)
    assert row["M13"] == pytest.approx(0.20 / 12.64, abs=1e-6)
    assert row["M12"] == pytest.approx((4 * 0.395 + 0.38) / 5, abs=1e-6)
    assert dialogue(*presented([DAY]), wishes[0], semantic=angle)["M13"] == 0.0
    orthogonal = [wish(member, "cuisine", "0.0 x") for member in means]
    assert dialogue(*presented([DAY]), *orthogonal, semantic=angle)["M13"] == 0.0
    unasked = wish("a", "house_rule", "x")
    assert dialogue(*presented([DAY]), unasked, semantic=angle)["M13"] is None


def test_m14_is_the_mean_over_pairs_of_explained_slots():
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


def test_m15_eight_of_twelve_grounded_places():
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
def test_thresholds_are_reached_at_their_float32_value(cosine, addressed):
    turns = [
        opening("C3"),
        wish("a", "cuisine", "sushi"),
        turn("System", "sys_synthesize_cuisine", f"{cosine} x"),
    ]
    pair = pairs_of(*turns, semantic=angle)["a", "cuisine"]
    assert pair["addressed_synthesis"] is addressed
    assert GroupTravel().address_sim == 0.45


@pytest.mark.parametrize(("cosine", "satisfied"), [("0.42", True), ("0.4199", False)])
def test_a_place_satisfies_from_042(cosine, satisfied):
    turns = [*presented([{"lunch": f"{cosine} Inn"}]), wish("a", "cuisine", "sushi")]
    assert pairs_of(*turns, semantic=angle)["a", "cuisine"]["semantic_channel"] is satisfied


def test_only_the_first_400_lines_of_the_plan_are_compared():
    def near(*lines):
        plan = {"days": [DAY], "raw_output": "\n\n".join(lines)}
        turns = [*presented(plan), wish("a", "travel_purpose", "x")]
        return pairs_of(*turns, semantic=angle)["a", "travel_purpose"]["plan_similarity"]

    filler = [f"0.1 {number}" for number in range(400)]
    assert near(*filler[1:], "0.9 last") == pytest.approx(0.9)
    assert near(*filler, "0.9 last") == pytest.approx(0.1)


def test_literals_beyond_eight_mebibytes_are_text():
    inside = "x" * (LARGEST_LITERAL - 2)
    assert parse_cell(f"'{inside}'") == inside
    assert parse_cell(f"'{inside}x'") == f"'{inside}x'"
    # JSON may be of any size
    assert parse_cell(json.dumps([inside * 2])) == [inside * 2]


def test_summary_by_condition_and_group_type():
    dialogues = []
    for condition, voices in (("C1", 1), ("C2", 1), ("C2", 2), ("C2", 3), ("C4", 3)):
        speaking = [turn(f"m{number}", "user_provide_event", "x") for number in range(voices)]
        about = {"member_count": 4, "group_type": "spouses" if voices == 2 else "family"}
        dialogues.append([opening(condition, **about), *speaking])
    options = GroupTravel(by_group_type=True)
    tables = {name: table.lazy() for name, table in score(*dialogues).items()}
    summary = summarise(SUITE, tables, options)
    assert dict(summary.schema) == SUMMARY_SCHEMA

    def found(group, value, metric="M1"):
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


# --- M1 to M7 and the conditions


NAMES = ("Grandparent 1", "Grandparent 2", "Parent", "Child")


def provide(speaker, slot, utterance="anything"):
    return turn(speaker, f"user_provide_{slot}", utterance)


def synthesize(slot, utterance="", **fields):
    return turn("System", f"sys_synthesize_{slot}", utterance, metadata=fields or None)


def test_m1_every_member_of_four_speaks():
    turns = [opening("C4", member_count=4), *(provide(name, "cuisine") for name in NAMES)]
    assert ratio(dialogue(*turns), "M1") == (1.0, 4, 4)


def diverging(slot):
    wishes = {"cuisine": ("Italian", "Thai"), "event": ("music", "sports")}
    first, second = wishes.get(slot, ("museums", "shopping"))
    return [provide("A", slot, first), provide("B", slot, second)]


def test_m2_two_of_three_divergent_slots():
    turns = [
        opening("C3"),
        *(wish for slot in ("cuisine", "event", "attraction") for wish in diverging(slot)),
        provide("A", "lodging", "a private room"),
        provide("B", "lodging", "own room please"),
        synthesize("cuisine", has_conflict=True),
        synthesize("event", "You have different wishes"),
        synthesize("attraction", "There is no conflict.", has_conflict=False),
    ]
    assert ratio(dialogue(*turns), "M2") == (2 / 3, 2, 3)


def test_m3_explained_by_metadata_or_words():
    turns = [
        opening("C3"),
        synthesize("cuisine", resolution_explanation="Both are near"),
        synthesize("event", "one two three four five six", resolution_explanation="N/A"),
        synthesize("attraction", "one two three four five"),
        synthesize("house_rule", resolution_explanation=None),
    ]
    assert ratio(dialogue(*turns), "M3") == (0.5, 2, 4)


def test_m4_three_named_strategies_of_four():
    strategies = {
        "cuisine": "Family Friendly",
        "event": "parent_veto",
        "attraction": "Include Both",
        "lodging": "N/A",
        "travel_purpose": "ignored",
    }
    turns = [synthesize(slot, resolution_strategy=name) for slot, name in strategies.items()]
    assert ratio(dialogue(opening("C4"), *turns), "M4") == (0.75, 3, 4)
    assert ratio(dialogue(opening("C3"), *turns), "M4") == (0.0, 0, 0)
    assert dialogue(opening("C4"))["M4"] is None


def test_m4b_one_of_eight_turns():
    turns = [
        *(synthesize(slot, "We found a way") for slot in ("cuisine", "event", "attraction")),
        *(turn("System", "sys_feedback_cuisine", "Changed") for _ in range(3)),
        turn("System", "sys_present_plan", ""),
        turn("System", "sys_feedback_event", "By parental authority, no"),
        turn("Parent", "user_feedback_event", "parental authority"),
    ]
    assert ratio(dialogue(opening("C5"), *turns), "M4b") == (0.125, 1, 8)


def test_m5_all_three_conflicts_get_feedback():
    turns = [
        synthesize("cuisine", has_conflict=True),
        synthesize("event", has_conflict="yes"),
        synthesize("house_rule", has_conflict=1),
        synthesize("attraction", "a conflict", has_conflict=False),
        turn("A", "user_feedback_cuisine", "x"),
        turn("System", "sys_feedback_events", "x"),
        turn("A", "user_feedback_house_rule", "x"),
    ]
    assert ratio(dialogue(opening("C5"), *turns), "M5") == (1.0, 3, 3)
    assert ratio(dialogue(opening("C4"), *turns), "M5") == (0.0, 0, 0)
    assert dialogue(opening("C5"), turns[3])["M5"] is None


@pytest.mark.parametrize(
    ("accepting", "expected"),
    [
        (("A", "B"), (1.0, 2, 2)),
        (("A", " a"), (0.5, 1, 2)),
        (("Group",), (1.0, 2, 2)),
        (("A", "B", "C"), (1.0, 2, 2)),
        (("System",), (None, 0, 0)),
        ((), (None, 0, 0)),
    ],
)
def test_m6_counts_who_accepts(accepting, expected):
    turns = [opening("C2"), provide("A", "event"), provide("B", "event")]
    turns += [turn(name, "user_accept_plan") for name in accepting]
    assert ratio(dialogue(*turns), "M6") == expected


def test_m7_counts_turns():
    turns = [
        opening("C5"),
        turn("A", "", "hello"),
        turn("A", "", " "),
        provide("A", "food"),
        provide("B", "cuisine"),
        provide("A", "event"),
        turn("A", "user_feedback_event"),
        turn("System", "SYS_FEEDBACK_event", "ok"),
    ]
    row = dialogue(*turns)
    assert row["M7_total_turns"] == 7
    assert ratio(row, "M7_turns_per_slot") == (3.5, 7, 2)
    assert row["M7_feedback_turn_overhead"] == 2
    assert dialogue(opening("C5"))["M7_turns_per_slot"] is None


@pytest.mark.parametrize(
    ("metadata", "name", "condition", "source"),
    [
        (flags("C3"), "x_C5{}.csv", "C3", "metadata"),
        ({"flags": flags("C4")}, "x{}.csv", "C4", "metadata"),
        ({"condition_flags": flags("C1")}, "x{}.csv", "C1", "metadata"),
        ({"condition": "c2"}, "C5{}_.csv", "C2", "condition"),
        (None, "trip{}_condition-3.csv", "C3", "file_name"),
        (None, "trip{}-c4.csv.gz", "C4", "file_name"),
        (None, "doc4{}.csv", "C2", "content"),
        ({"enable_synthesis": "yes"}, "a{}.csv", "C3", "content,metadata,content,content"),
        ({"multi_user": 0, "enable_feedback": True}, "a{}.csv", "custom", None),
    ],
)
def test_where_the_flags_come_from(metadata, name, condition, source):
    turns = [turn("System", "x", metadata=metadata), provide("A", "event"), provide("B", "event")]
    row = dialogue(*turns, name=name)
    assert row["condition"] == condition
    assert source in (None, row["flag_source"])


# --- plans, stops and catalogues: M9, M12, M13 and M16


SAMPLE = [
    {**DAY, "days": 1, "breakfast": "-", "point_of_interest_list": (
        "Inn, stay from 20:00 to 21:00, nearest transit: A, 5m away; Cafe, visit from 21:30 to "
        "22:45, nearest transit: B, 10m away; Inn, stay from 23:15 to 08:30, nearest transit: A, 1m"
    )},
    {**DAY, "days": 2, "point_of_interest_list": "Zoo, visit from 09:00 to 10:15"},
    {**DAY, "days": 3, "dinner": "-", "point_of_interest_list": "9:00 AM - 10:15 AM: Museum"},
    {},
]  # fmt: skip


def m16(plan, **options):
    return ratio(dialogue(*presented(plan), options=GroupTravel(**options)), "M16")


def test_m16_of_a_published_three_day_sample():
    assert m16(SAMPLE) == (13 / 15, 13, 15)
    assert m16({"days": SAMPLE}) == (13 / 15, 13, 15)
    # without a wrap past midnight the first day's stops are out of order
    assert m16(SAMPLE, strict_overnight=True) == (12 / 15, 12, 15)


def places_of(plan, **cells):
    rows = score(presented(plan, **cells))["places"]
    return dict(rows.select("key", "grounded").rows())


def test_m9_fifteen_of_sixteen():
    names = [f"Sight {number}" for number in range(12)]
    plan = [{**DAY, "attraction": ";".join(f"{name}, Rockford" for name in names) + ";"}]
    records = [{"name": name} for name in names[1:]]
    row = dialogue(*presented(plan, ref_info_attractions=records, **CATALOGUE))
    assert ratio(row, "M9") == (15 / 16, 15, 16)


def test_how_a_place_is_looked_up():
    plan = {"itinerary": [{
        "Breakfast": "Dial A Cake (Rockford)",
        "meals": {"LUNCH": {"name": "Flying Mango, the, Rockford"}, "supper": "x"},
        "dinner": ["Cafe Southall; Cost: 14", "Rating: 5", "n/a"],
        "attractions": "Pure luxury one bdrm + sofa bed on Central Park.,",
        "hotels": "unknown key",
        "POI list": "cafe SOUTHALL, visit from 9:00 to 10:00, nearest transit: C, 3m away",
    }]}  # fmt: skip
    assert places_of(plan, **CATALOGUE) == {
        "dial a cake": True,
        "flying mango the": False,
        "cafe southall": True,
        "pure luxury one bdrm sofa bed on central park": True,
    }


def test_no_place_is_found_without_a_plan_or_catalogue():
    for cells in ({}, {"ref_info_restaurants": "[]"}, {"ref_info_restaurants": [{"city": "x"}]}):
        assert dialogue(*presented([DAY], **cells))["M9"] is None
    row = dialogue(*presented("No plan was found.", **CATALOGUE))
    assert row["warnings"] == ["line 3, plan: neither JSON nor a literal; read as raw output"]
    missing = ("M9", "M10", "M10b", "M11", "M12", "M13", "M15", "M16", "W1", "W2", "W3")
    reasons = {entry["metric"]: entry["reason"] for entry in row["null_reasons"]}
    assert {reasons[metric] for metric in missing} == {"missing_input"}


def test_only_m12_reads_in_windows():
    plan = {"days": [{"lunch": "Luigi"}], "raw_output": "one\ntwo"}
    turns = [opening("C2"), wish("a", "cuisine", "pizza"), turn("System", "x", plan=plan)]
    events = read(turns)
    assert SUITE.long_texts(events, DEFAULTS).to_list() == ["Luigi", "one\ntwo"]
    assert "Luigi\none\ntwo" not in SUITE.texts(events, DEFAULTS).to_list()
    cut = GroupTravel(m12_long="cut")
    events = read(turns, options=cut)
    assert SUITE.long_texts(events, cut).is_empty()
    assert "Luigi\none\ntwo" in SUITE.texts(events, cut).to_list()


# --- wishes and what satisfies them: M8, M10, M10b, M11 and W1 to W3


def satisfied(shares):
    """Make members who have some of their actionable wishes met by category."""
    plan = [{**DAY, "attraction": "Art", "event": "Gig"}]
    records = {"ref_info_attractions": [{"name": "Art", "type": "Museums"}],
               "ref_info_events": [{"name": "Gig", "segment": "Music"}]}  # fmt: skip
    turns = presented(plan, **CATALOGUE, **records)
    met = {"cuisine": "italian", "attraction": "museum", "event": "music", "lodging": "entire home"}
    unmet = {"cuisine": "thai", "attraction": "zoos", "event": "sports", "lodging": "dorm"}
    for number, (hits, wishes) in enumerate(shares):
        slots = list(met)[:wishes]
        turns += [
            wish(f"m{number}", slot, (met if place < hits else unmet)[slot])
            for place, slot in enumerate(slots)
        ]
    return turns


def test_m10_m11_and_welfare_of_four_members():
    row = dialogue(*satisfied([(4, 4), (3, 4), (2, 4), (4, 4)]))
    assert ratio(row, "M10") == (13 / 16, 13, 16)
    assert ratio(row, "M10b") == (11 / 12, 11, 12)  # lodging has no category
    assert ratio(row, "M11") == (0.5, 2, 4)
    assert row["W1"] == 0.8125
    assert row["W2"] == 0.5
    assert math.isclose(row["W3"], 0.782542, abs_tol=5e-7)
    assert (row["n_category_channel"], row["n_room_channel"]) == (11, 2)
    assert [member["satisfaction"] for member in row["members"]] == [1.0, 0.75, 0.5, 1.0]
