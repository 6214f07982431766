"""M1 to M7 and M16: who speaks and accepts, how conflicts are resolved, and whole days of plans."""

from typing import TYPE_CHECKING

import polars as pl
from polars import col as C
from polars import selectors

from fastscore.suites.columns import list_column, put_at
from fastscore.suites.declarations import Fixed, Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.lexicon import (
    ACCEPT_PLAN,
    ACTIONABLE,
    APPROVE,
    CATEGORY_SLOTS,
    FEEDBACK,
    MEALS,
    PRESENT_PLAN,
    PROVIDE,
    SYNTHESIZE,
    SYS_FEEDBACK,
    names_conflict,
    normalise,
    quotes_theory,
)
from fastscore.suites.group_travel.metrics import sources as use
from fastscore.suites.group_travel.similarity import Informative
from fastscore.suites.grouping import factorize
from fastscore.suites.showing import EvidenceRows

if TYPE_CHECKING:
    from fastscore.suites.group_travel.lexicon import Lexicon

_MINUTES_A_DAY = 24 * 60

M16 = use.ratio(
    "M16",
    "Plan coherence score",
    Formula(
        r"\mathrm{M16} = \frac{\sum_{d \in D} (m_d + v_d) + \sum_{d \in T} o_d}{4 |D| + |T|}",
        ("D", "days of the plan, except empty objects"),
        ("T", "days of D with a stop whose times can be read"),
        (r"m_d", "filled meals of day d: breakfast, lunch and dinner"),
        (r"v_d", "1 if the lunch of day d is not its dinner, else 0"),
        (
            r"o_d",
            "1 if the stops of day d start one after another and end after their start, else 0",
        ),
    ),
    null_when=(use.NO_PLAN,),
    evidence=(EvidenceRows(table="plan_lines", columns=(), text="text"),),
    reading="The share of passed checks. Meals that a day of travel leaves out lower it.",
    example="5 days, 3 of them with times: 5 * 4 + 3 = 23 checks, 21 passed: 21 / 23 = 0.913.",
    note=(
        "Lunch and dinner differ if one of them is empty, not if both are. Stops may overlap. The "
        "last one may end after midnight, except with `--strict-overnight`."
    ),
    uses=(use.PLAN,),
)


def check_days(
    plans: pl.DataFrame, names: pl.DataFrame, stops: pl.DataFrame, strict_overnight: bool
) -> pl.DataFrame:
    """Count the checks of each plan and those that it passes."""
    days = plans.select(plan=pl.int_range(pl.len()), day=pl.int_ranges("n_days"))
    days = days.explode("day").drop_nulls()
    meals = names.filter(C("kind").is_in(MEALS))
    dishes = meals.group_by("plan", "day", "kind", maintain_order=True).agg(
        C("normal").str.join(" ")
    )
    menu = [
        dishes.filter(C("kind") == meal).select("plan", "day", C("normal").alias(meal))
        for meal in MEALS
    ]
    for each in (*menu, _timely_days(stops, strict_overnight)):
        days = days.join(each, on=("plan", "day"), how="left", maintain_order="left")
    filled = pl.sum_horizontal(C(MEALS).is_not_null())
    varies = C("lunch").ne_missing(C("dinner"))
    is_timed = C("is_in_time").is_not_null()
    return days.group_by("plan", maintain_order=True).agg(
        passed=(filled + varies + C("is_in_time").fill_null(False)).sum().cast(pl.Int64),
        checks=(4 + is_timed.cast(pl.Int64)).sum(),
    )


def _timely_days(stops: pl.DataFrame, strict_overnight: bool) -> pl.DataFrame:
    """Tell for each day with a stop whose times can be read whether its stops follow each other."""
    start, end, day = C("start"), C("end"), pl.struct("plan", "day")
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
        .agg(C("is_in_time").all())
    )


_VOICES_TELL = C("multi_user") | (C("multi_user_source") == "content")
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
            C("no_voice") & _VOICES_TELL,
            "missing_input",
            "the speaker of a preference was not given",
        ),
        NullRule(
            (C("no_speaker") & pl.all_horizontal(C("member_count", "listed_members").is_null())),
            "missing_input",
            "members are counted by speakers and a speaker was not given",
        ),
        NullRule(C("M1_den") == 0, "missing_input", "no member is known"),
    ),
    evidence=(use.of_turns("kind", where=C("kind") == PROVIDE),),
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
            C("no_acceptance") & ~C("everyone_accepts"),
            "missing_input",
            "the speaker of an acceptance was not given",
        ),
        NullRule(
            C("no_voice") & _VOICES_TELL & C("anyone_accepts"),
            "missing_input",
            "the speaker of a preference was not given",
        ),
        NullRule(~C("anyone_accepts"), "not_applicable", "no turn accepts or approves"),
    ),
    evidence=(
        use.of_turns("kind", where=C("kind").is_in([ACCEPT_PLAN, APPROVE]), names=("member",)),
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
    evidence=(use.of_turns("is_counted", where=C("is_counted")),),
    derivation="{M7_total_turns} turns",
    reading="The length of the dialogue.",
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
            C("M7_turns_per_slot_den") == 0, "not_applicable", "no preference is stated for a slot"
        ),
    ),
    evidence=(use.of_turns("is_counted", where=C("is_counted")),),
    reading="The length of the dialogue for each topic.",
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
    evidence=(use.of_turns("kind", where=C("kind").is_in(FEEDBACK)),),
    derivation="{M7_feedback_turn_overhead} turns",
    reading="The turns that feedback adds.",
    example="2 turns of members and 1 of the system: 3.",
    note="The source does not say whether this is a count or a share. It is a count.",
    role="part",
    uses=(use.TURNS,),
    source="Metric Reference, M7",
)


def count_turns(dialogues: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Count who speaks and accepts in each dialogue, and its turns."""
    kind, is_everyone = C("kind"), C("is_everyone")
    is_member = ~C("is_system") & (C("member") != "")
    provides = kind == PROVIDE
    accepts = kind.is_in([ACCEPT_PLAN, APPROVE]) & is_member
    member, slot = C("member_row"), C("slot")
    counts = turns.group_by("dialogue_row").agg(
        providers=member.filter(provides & is_member).n_unique(),
        speakers=member.filter(is_member & ~is_everyone).n_unique(),
        accepting=member.filter(accepts & ~is_everyone).n_unique(),
        everyone_accepts=(accepts & is_everyone).any(),
        anyone_accepts=accepts.any(),
        M7_total_turns=C("is_counted").sum(),
        M7_turns_per_slot_num=C("is_counted").sum(),
        M7_turns_per_slot_den=slot.filter(provides).n_unique(),
        M7_feedback_turn_overhead=kind.is_in(FEEDBACK).sum(),
    )
    stated = dialogues.select("dialogue_row", "multi_user", "member_count", "listed_members")
    voices = pl.when("multi_user").then("providers").otherwise(1)
    accepting = pl.when("everyone_accepts").then("M6_den").otherwise("accepting")
    return (
        counts.with_columns(selectors.unsigned_integer().cast(pl.Int64))
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


DIVERGENT_BELOW = 0.5
_LEAST_TOKENS = 6
_OF_SLOT = ["dialogue_row", "slot"]


def _of_syntheses(*columns: str) -> EvidenceRows:
    return EvidenceRows(table="synthesis", names=("slot",), columns=columns, text="utterance")


M2 = use.ratio(
    "M2",
    "Conflict detection rate",
    Formula(
        r"\mathrm{M2} = \frac{|C|}{|D|}",
        ("D", "slots on which two members' wishes have a Jaccard similarity below 0.5"),
        ("C", "slots of D whose synthesis flags a conflict or names one in words"),
    ),
    null_when=(
        use.NO_SYNTHESIS,
        use.UNKNOWN_PREFERENCE,
        NullRule(
            C("M2_unknown") > 0,
            "missing_input",
            "an utterance that could have named a conflict was not given",
        ),
        NullRule(C("M2_den") == 0, "not_applicable", "members diverge on no slot"),
    ),
    evidence=(_of_syntheses("names_conflict", "has_conflict", "description"),),
    reading="The share of real disagreements that the system recognises.",
    example="Members diverge on 3 slots and 2 syntheses name the conflict: 2 / 3 = 0.667.",
    note=(
        'The source says "different preferences" and names three words. The similarity, its '
        "threshold and the other words are ours. Lodging compares room types, and the other "
        "actionable slots compare categories, if every member names one. Otherwise informative "
        "tokens are compared. Words that are a label (`Conflict:`) or denied (`no conflict`) do "
        "not count."
    ),
    fixed_where=(use.NOT_SYNTHESISED,),
    baselines=(use.PHRASING,),
    uses=(use.PREFERENCES, use.SYNTHESIS, use.CATALOGUE),
)
M3 = use.ratio(
    "M3",
    "Resolution explanation rate",
    Formula(
        r"\mathrm{M3} = \frac{|E|}{|S|}",
        ("S", "slots with a synthesis"),
        ("E", "slots of S with an explanation, or with an utterance of at least 6 tokens"),
    ),
    null_when=(
        use.NO_SYNTHESIS,
        NullRule(
            C("M3_unknown") > 0,
            "missing_input",
            "an utterance that could have explained a slot was not given",
        ),
        NullRule(C("M3_den") == 0, "not_applicable", "no slot has a synthesis"),
    ),
    evidence=(_of_syntheses("is_explained", "explanation"),),
    reading="The share of syntheses with a reason. Most longer utterances count as one.",
    example="4 slots have a synthesis, each with an explanation: 4 / 4 = 1.",
    note="N/A, none and similar words are not explanations.",
    fixed_where=(use.NOT_SYNTHESISED,),
    baselines=(use.PHRASING,),
    uses=(use.SYNTHESIS,),
)
M4 = use.ratio(
    "M4",
    "Theory strategy usage rate",
    Formula(
        r"\mathrm{M4} = \begin{cases} |T| / |S| & \text{if social theory is used} \\"
        r" 0 & \text{otherwise} \end{cases}",
        ("S", "actionable slots with a synthesis"),
        ("T", "slots of S whose synthesis names a strategy"),
    ),
    null_when=(
        NullRule(
            C("use_social_theory") & (C("M4_den") == 0),
            "not_applicable",
            "social theory is used and no actionable slot has a synthesis",
        ),
    ),
    evidence=(_of_syntheses("has_strategy"),),
    reading="The share of actionable slots that a named strategy decides.",
    example="Family Friendly, parent_veto, Include Both and N/A for 4 slots: 3 / 4 = 0.75.",
    fixed_where=(Fixed("use_social_theory", False, only_in=("C4", "C5")),),
    baselines=(use.PHRASING,),
    uses=(use.SYNTHESIS,),
)
M4B = use.ratio(
    "M4b",
    "Theory text leakage rate",
    Formula(
        r"\mathrm{M4b} = \frac{|Q|}{|T|}",
        ("T", "turns of synthesis, of feedback by the system and of presentation"),
        ("Q", "turns of T with a phrase of social choice theory"),
    ),
    scale=Scale("lower"),
    null_when=(
        NullRule(
            C("no_system_text"), "missing_input", "the utterance of such a turn was not given"
        ),
        NullRule(C("M4b_den") == 0, "not_applicable", "the dialogue has no such turn"),
    ),
    evidence=(use.of_turns("quotes_theory", names=("kind", "slot")),),
    reading="The share of turns that quote theory instead of applying it.",
    example="8 turns, one of them with `parental authority`: 1 / 8 = 0.125.",
    note=(
        "The source gives four phrases. The snake_case identifiers and the other patterns are ours."
    ),
    uses=(use.TURNS, use.SYNTHESIS, use.PLAN_TEXT),
)
M5 = use.ratio(
    "M5",
    "Feedback activation rate",
    Formula(
        r"\mathrm{M5} = \begin{cases} |F| / |C| & \text{if feedback is enabled} \\"
        r" 0 & \text{otherwise} \end{cases}",
        ("C", "slots whose synthesis flags a conflict in its metadata"),
        ("F", "slots of C with a turn of feedback"),
    ),
    null_when=(
        NullRule(
            C("enable_feedback") & (C("M5_den") == 0),
            "not_applicable",
            "feedback is enabled and no slot is flagged as a conflict",
        ),
    ),
    evidence=(_of_syntheses("has_conflict"), use.of_turns("kind", where=C("kind").is_in(FEEDBACK))),
    reading="The share of flagged conflicts that are followed up. Words do not count as a flag.",
    example="3 slots are flagged and each has feedback: 3 / 3 = 1.",
    fixed_where=(Fixed("enable_feedback", False, only_in=("C5",)),),
    uses=(use.TURNS, use.SYNTHESIS),
)
METRICS = (
    M1,
    M2,
    M3,
    M4,
    M4B,
    M5,
    M6,
    M7_TOTAL_TURNS,
    M7_TURNS_PER_SLOT,
    M7_FEEDBACK_TURN_OVERHEAD,
    M16,
)


def mark_theory(turns: pl.DataFrame, lexicon: "Lexicon") -> pl.DataFrame:
    """Add ``quotes_theory`` to turns; null in turns that M4b does not read."""
    read = turns["kind"].is_in([SYNTHESIZE, SYS_FEEDBACK, PRESENT_PLAN]).fill_null(False)
    codes, texts = factorize(turns["utterance"].filter(read))
    quotes = quotes_theory(texts, lexicon)[codes]
    return turns.with_columns(quotes_theory=put_at(read.arg_true(), quotes, turns.height))


def mark_syntheses(synthesis: pl.DataFrame, lexicon: "Lexicon") -> pl.DataFrame:
    """Add to turns of synthesis whether they name a conflict and explain their slot."""
    texts = pl.concat(
        [synthesis["utterance"], synthesis["description"].fill_null("").rename("utterance")]
    )
    codes, found = factorize(texts)
    names = names_conflict(found, lexicon)[codes]
    normal = normalise(found)
    n_tokens = pl.select(
        pl.when(normal != "").then(normal.str.count_matches(" ", literal=True) + 1).otherwise(0)
    ).to_series()
    utterances = pl.Series(codes[: synthesis.height])
    return synthesis.with_columns(
        names_conflict=names.head(synthesis.height) | names.tail(synthesis.height),
        is_explained=C("explanation").is_not_null()
        | (n_tokens.gather(utterances) >= _LEAST_TOKENS),
    )


def count_syntheses(
    frames: dict[str, pl.DataFrame], wishes: pl.DataFrame, informative: Informative
) -> pl.DataFrame:
    """Count the numerators and denominators of M2 to M5 in each dialogue.

    ``M2_unknown`` and ``M3_unknown`` are the slots that an utterance which was not given could
    have counted.
    """
    quotes_theory = C("quotes_theory")
    quoting = (
        frames["turns"]
        .group_by("dialogue_row")
        .agg(M4b_num=quotes_theory.sum(), M4b_den=quotes_theory.count())
    )
    counts = frames["dialogues"].select("dialogue_row", "use_social_theory", "enable_feedback")
    for part in (_count_slots(frames), _count_divergence(frames, wishes, informative), quoting):
        counts = counts.join(part, on="dialogue_row", how="left", maintain_order="left")
    return counts.select(
        "dialogue_row",
        pl.when("use_social_theory").then(C("^M4_.*$")),
        pl.when("enable_feedback").then(C("^M5_.*$")),
        C("^M(2|3|4b)_.*$"),
    )


def _count_slots(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Count the slots that are synthesised, explained, in conflict and given feedback."""
    slots = (
        frames["synthesis"]
        .group_by(_OF_SLOT)
        .agg(
            C("is_explained").any(),
            C("has_utterance").all(),
            C("has_strategy").any(),
            C("has_conflict").fill_null(False).any(),
        )
    )
    with_feedback = (
        frames["turns"]
        .filter(C("kind").is_in(FEEDBACK))
        .select(_OF_SLOT)
        .unique()
        .with_columns(has_feedback=True)
    )
    actionable, conflict = C("slot").is_in(ACTIONABLE), C("has_conflict")
    return (
        slots.join(with_feedback, on=_OF_SLOT, how="left")
        .group_by("dialogue_row")
        .agg(
            M3_num=C("is_explained").sum(),
            M3_den=pl.len(),
            M3_unknown=(~C("is_explained") & ~C("has_utterance")).sum(),
            M4_num=(actionable & C("has_strategy")).sum(),
            M4_den=actionable.sum(),
            M5_num=(conflict & C("has_feedback").fill_null(False)).sum(),
            M5_den=conflict.sum(),
        )
    )


def _count_divergence(
    frames: dict[str, pl.DataFrame], wishes: pl.DataFrame, informative: Informative
) -> pl.DataFrame:
    """Count the slots on which members diverge, and those whose synthesis names a conflict."""
    pairs = frames["pairs"]
    divergent = _divergent_slots(
        pairs.select(*_OF_SLOT, want=_wish_sets(pairs, wishes, informative))
    )
    flagged = C("has_conflict").fill_null(False) | C("names_conflict")
    detected_slots = (
        frames["synthesis"]
        .group_by(_OF_SLOT)
        .agg(flagged.any().alias("detected"), C("has_utterance").all())
    )
    detected = C("detected").fill_null(False)
    silent = ~C("has_utterance").fill_null(True)
    return (
        divergent.join(detected_slots, on=_OF_SLOT, how="left")
        .group_by("dialogue_row")
        .agg(M2_num=detected.sum(), M2_den=pl.len(), M2_unknown=(~detected & silent).sum())
    )


def _wish_sets(pairs: pl.DataFrame, wishes: pl.DataFrame, informative: Informative) -> pl.Series:
    """Return what each pair wants as a set: List(String).

    Room types for lodging and categories for the other actionable slots, where every member of
    the slot names some; else informative tokens.
    """
    values, offsets = informative.every
    tokens = list_column(pl.Series(values).cast(pl.String), offsets)
    named = pairs.select("slot", "slot_row").with_columns(
        wishes["wanted_rooms", "category_tokens"], tokens=tokens.gather(informative.row)
    )

    def everyone_names(column: str) -> pl.Expr:
        return (C(column).list.len() > 0).all().over("slot_row")

    return named.select(
        pl.when((C("slot") == "lodging") & everyone_names("wanted_rooms"))
        .then("wanted_rooms")
        .when(C("slot").is_in(CATEGORY_SLOTS) & everyone_names("category_tokens"))
        .then("category_tokens")
        .otherwise("tokens")
    ).to_series()


def _divergent_slots(wishes: pl.DataFrame) -> pl.DataFrame:
    """Return the slots on which the wishes of two members have a Jaccard index below 0.5."""
    a, b = C("want"), C("want_other")
    n_common = a.list.set_intersection(b).list.len()
    jaccard = n_common / (a.list.len() + b.list.len() - n_common)
    stated = wishes.filter(a.list.len() > 0).with_row_index("member")
    two_members = stated.join(stated, on=_OF_SLOT, suffix="_other").filter(
        C("member") < C("member_other")
    )
    return two_members.filter(jaccard < DIVERGENT_BELOW).select(_OF_SLOT).unique()
