"""M1, M6 and M7: who speaks, who accepts the plan, and how many turns it takes; M16: its days."""

import polars as pl

from fastscore.suites.declarations import Fixed, Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.lexicon import ACCEPT_PLAN, APPROVE, FEEDBACK, MEALS, PROVIDE
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.showing import EvidenceRows

_MINUTES_A_DAY = 24 * 60

M16 = use.ratio(
    "M16",
    "Plan coherence score",
    Formula(
        r"\mathrm{M16} = \frac{\sum_{d \in D} (m_d + v_d) + \sum_{d \in T} o_d}{4 |D| + |T|}",
        ("D", "days of the plan that are not empty"),
        ("T", "days of D with a stop whose times can be read"),
        (r"m_d", "filled meals of day d: breakfast, lunch and dinner"),
        (r"v_d", "1 if the lunch of day d is not its dinner, else 0"),
        (r"o_d", "1 if the stops of day d follow each other in time, else 0"),
    ),
    null_when=(use.NO_PLAN,),
    evidence=(EvidenceRows(table="plan_lines", columns=(), text="text"),),
    reading="The share of passed checks. Meals that a day of travel leaves out lower it.",
    example="5 days, 3 of them with times: 5 * 4 + 3 = 23 checks, 21 passed: 21 / 23 = 0.913.",
    note=(
        "Lunch and dinner differ if one of them is empty, not if both are. The last stop may "
        "end after midnight, except with `--strict-overnight`."
    ),
    uses=(use.PLAN,),
)


def check_days(
    plans: pl.DataFrame, names: pl.DataFrame, stops: pl.DataFrame, strict_overnight: bool
) -> pl.DataFrame:
    """Count the checks of each plan and those that it passes."""
    days = plans.select(plan=pl.int_range(pl.len()), day=pl.int_ranges("n_days"))
    days = days.explode("day").drop_nulls()
    meals = names.filter(pl.col("kind").is_in(MEALS))
    dishes = meals.group_by("plan", "day", "kind", maintain_order=True).agg(
        pl.col("normal").str.join(" ")
    )
    menu = [
        dishes.filter(pl.col("kind") == meal).select("plan", "day", pl.col("normal").alias(meal))
        for meal in MEALS
    ]
    for each in (*menu, _timely_days(stops, strict_overnight)):
        days = days.join(each, on=("plan", "day"), how="left", maintain_order="left")
    filled = pl.sum_horizontal(pl.col(MEALS).is_not_null())
    varies = pl.col("lunch").ne_missing(pl.col("dinner"))
    is_timed = pl.col("is_in_time").is_not_null()
    return days.group_by("plan", maintain_order=True).agg(
        passed=(filled + varies + pl.col("is_in_time").fill_null(False)).sum().cast(pl.Int64),
        checks=(4 + is_timed.cast(pl.Int64)).sum(),
    )


def _timely_days(stops: pl.DataFrame, strict_overnight: bool) -> pl.DataFrame:
    """Tell for each day with a stop whose times can be read whether its stops follow each other."""
    start, end, day = pl.col("start"), pl.col("end"), pl.struct("plan", "day")
    timed = stops.drop_nulls(["start", "end"])
    is_last = day.ne_missing(day.shift(-1))
    if not strict_overnight:
        ends_next_day = is_last & (end < start)
        timed = timed.with_columns(pl.when(ends_next_day).then(end + _MINUTES_A_DAY).otherwise(end))
    is_first = day.ne_missing(day.shift())
    in_time = (end > start) & (is_first | (start > start.shift()))
    return (
        timed.select("plan", "day", is_in_time=in_time)
        .group_by("plan", "day")
        .agg(pl.col("is_in_time").all())
    )


_VOICES_TELL = pl.col("multi_user") | (pl.col("multi_user_source") == "content")
"""A single user is one voice whoever speaks, unless the voices decide that there is one."""

M1 = use.ratio(
    "M1",
    "Member voice coverage",
    Formula(
        r"\mathrm{M1} = \min\left(1, \frac{|V|}{n}\right)",
        ("V", "members who stated a preference (a single user: the user alone)"),
        ("n", "`member_count`, else the listed members, else the speakers except the system"),
    ),
    null_when=(
        NullRule(
            pl.col("no_voice") & _VOICES_TELL,
            "missing_input",
            "the speaker of a preference was not given",
        ),
        NullRule(
            (
                pl.col("no_speaker")
                & pl.all_horizontal(pl.col("member_count", "listed_members").is_null())
            ),
            "missing_input",
            "members are counted by speakers and a speaker was not given",
        ),
        NullRule(pl.col("M1_den") == 0, "missing_input", "no member is known"),
    ),
    evidence=(use.of_turns("kind", where=pl.col("kind") == PROVIDE),),
    reading="1: every member stated a preference. A single user of four members gives 0.25.",
    example="4 of 4 members speak: 4 / 4 = 1. A single user of 4 members: 1 / 4 = 0.25.",
    note=(
        "The source does not mention empty utterances. An empty utterance also counts as a voice."
    ),
    fixed_where=(Fixed("multi_user", False),),
    uses=(use.PREFERENCES, use.METADATA),
)
M6 = use.ratio(
    "M6",
    "Member acceptance rate",
    Formula(
        r"\mathrm{M6} = \min\left(1, \frac{|A|}{\max(1, |V|)}\right)",
        ("A", "members who accept or approve (a turn of all, everyone or group: all of V)"),
        ("V", "members who stated a preference (a single user: the user alone)"),
    ),
    null_when=(
        NullRule(
            pl.col("no_acceptance") & ~pl.col("everyone_accepts"),
            "missing_input",
            "the speaker of an acceptance was not given",
        ),
        NullRule(
            pl.col("no_voice") & _VOICES_TELL & pl.col("anyone_accepts"),
            "missing_input",
            "the speaker of a preference was not given",
        ),
        NullRule(~pl.col("anyone_accepts"), "not_applicable", "no turn accepts or approves"),
    ),
    evidence=(
        use.of_turns("kind", where=pl.col("kind").is_in([ACCEPT_PLAN, APPROVE]), names=("member",)),
    ),
    reading="Acceptance is scripted in the published system, where the rate is always 1.",
    example="2 of 4 members accept: 2 / 4 = 0.5.",
    uses=(use.PREFERENCES, use.TURNS),
    role="",
)
M7_TOTAL_TURNS = Metric(
    id="M7_total_turns",
    name="Turns",
    formula=Formula(
        r"\mathrm{M7\_total\_turns} = |T|", ("T", "turns with an intent or an utterance")
    ),
    scale=Scale("neither", maximum=None, unit="turns"),
    evidence=(use.of_turns("is_counted", where=pl.col("is_counted")),),
    derivation="{M7_total_turns} turns",
    reading="The length of the dialogue. Neither direction is better.",
    example="28 turns, all of them with an utterance: 28.",
    role="part",
    uses=(use.TURNS,),
    source="Metric Reference, M7",
)
M7_TURNS_PER_SLOT = use.ratio(
    "M7_turns_per_slot",
    "Turns per slot",
    Formula(
        r"\mathrm{M7\_turns\_per\_slot} = \frac{|T|}{|S|}",
        ("T", "turns with an intent or an utterance"),
        ("S", "slots for which a preference was stated"),
    ),
    scale=Scale("neither", maximum=None, unit="turns"),
    null_when=(
        NullRule(
            pl.col("M7_turns_per_slot_den") == 0,
            "not_applicable",
            "no preference is stated for a slot",
        ),
    ),
    evidence=(use.of_turns("is_counted", where=pl.col("is_counted")),),
    reading="The length of the dialogue for each topic. Neither direction is better.",
    example="28 turns about 7 slots: 28 / 7 = 4.",
    role="part",
    uses=(use.PREFERENCES, use.TURNS),
    source="Metric Reference, M7",
)
M7_FEEDBACK_TURN_OVERHEAD = Metric(
    id="M7_feedback_turn_overhead",
    name="Feedback turns",
    formula=Formula(
        r"\mathrm{M7\_feedback\_turn\_overhead} = |F|",
        ("F", "turns of feedback, by members or the system"),
    ),
    scale=Scale("neither", maximum=None, unit="turns"),
    evidence=(use.of_turns("kind", where=pl.col("kind").is_in(FEEDBACK)),),
    derivation="{M7_feedback_turn_overhead} turns",
    reading="The turns that feedback adds. Neither direction is better.",
    example="2 turns of members and 1 of the system: 3.",
    note="The source does not say whether this is a count or a share. It is a count.",
    role="part",
    uses=(use.TURNS,),
    source="Metric Reference, M7",
)
METRICS = (M1, M6, M7_TOTAL_TURNS, M7_TURNS_PER_SLOT, M7_FEEDBACK_TURN_OVERHEAD, M16)


def count_turns(dialogues: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Count who speaks and accepts in each dialogue, and its turns."""
    kind, is_everyone = pl.col("kind"), pl.col("is_everyone")
    is_member = ~pl.col("is_system") & (pl.col("member") != "")
    provides = kind == PROVIDE
    accepts = kind.is_in([ACCEPT_PLAN, APPROVE]) & is_member
    member, slot = pl.col("member_row"), pl.col("slot")
    counts = turns.group_by("dialogue_row").agg(
        providers=member.filter(provides & is_member).n_unique(),
        speakers=member.filter(is_member & ~is_everyone).n_unique(),
        accepting=member.filter(accepts & ~is_everyone).n_unique(),
        everyone_accepts=(accepts & is_everyone).any(),
        anyone_accepts=accepts.any(),
        M7_total_turns=pl.col("is_counted").sum(),
        M7_turns_per_slot_num=pl.col("is_counted").sum(),
        M7_turns_per_slot_den=slot.filter(provides).n_unique(),
        M7_feedback_turn_overhead=kind.is_in(FEEDBACK).sum(),
    )
    stated = dialogues.select("dialogue_row", "multi_user", "member_count", "listed_members")
    voices = pl.when("multi_user").then("providers").otherwise(1)
    accepting = pl.when("everyone_accepts").then("M6_den").otherwise("accepting")
    return (
        counts.with_columns(pl.col(pl.UInt32).cast(pl.Int64))
        .join(stated, on="dialogue_row")
        .with_columns(
            M1_den=pl.coalesce("member_count", "listed_members", "speakers"),
            M6_den=pl.max_horizontal(voices, 1),
        )
        .with_columns(
            M1_num=pl.min_horizontal(voices, "M1_den"),
            M6_num=pl.min_horizontal(accepting, "M6_den"),
        )
        .drop("multi_user", "member_count", "listed_members")
    )
