"""The suite's metrics, those of turns, segments and shifts, then those of conversations."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from polars import col as C

from fastscore.suites.declarations import Fixed, Formula, Metric, NullRule, Ratio, Scale
from fastscore.suites.preference_shift.options import CAS_PARTS, PreferenceShift
from fastscore.suites.showing import EvidenceRows, Mark, Row, disjoint, occurrences

REFUSING, ECHOING = "always refusing", "echoing the user"
"""Agents that pay no attention: their scores are shown beside the headline metrics."""
TRIVIAL = (REFUSING, ECHOING)
NO_TURN, NO_SHIFT = Fixed("n_turns", 0), Fixed("n_shifts", 0)


def of_turns(*columns: str, **which: Any) -> EvidenceRows:
    """Show columns of the turns of the conversation."""
    return EvidenceRows(table="turns", names=("turn",), columns=columns, **which)


def of_shifts(*columns: str) -> EvidenceRows:
    """Show columns of the shifts of the conversation."""
    return EvidenceRows(table="shifts", names=("turn",), columns=columns)


def _of_weights(of: str) -> EvidenceRows:
    """Show the concepts of a turn or a segment with their weights."""
    columns = ("idf", "user", "system")
    return EvidenceRows(table=f"{of}_weights", names=("concept",), columns=columns, same=(of,))


def mark_concepts(text: str, concepts: Sequence[str], others: Collection[str]) -> tuple[Mark, ...]:
    """Mark the values of concepts, as good if the other side has them too."""
    marks = [
        mark
        for concept in concepts
        for mark in occurrences(
            text, concept.partition("=")[2], good=concept in others, label=concept
        )
    ]
    return disjoint(marks)


def _in_text(side: str, other: str) -> EvidenceRows:
    def marks(row: Row) -> tuple[Mark, ...]:
        return mark_concepts(row[text], row[concepts], row[f"{other}_concepts"])

    text, concepts = f"{side}_text", f"{side}_concepts"
    return EvidenceRows(columns=(concepts,), text=text, marks=marks)


IN_TEXTS = (_in_text("user", "system"), _in_text("system", "user"))
IN_SEGMENT = (of_turns("user_concepts", "system_concepts", same=("segment",)),)
GROUNDED, BY_TOPICS = (("is_legacy", False), ("is_legacy", True))
"""With which options evidence is that of concepts, and that of topics."""
ANSWERS = EvidenceRows(
    table="answers",
    names=("shift", "turn"),
    columns=("like_new", "like_old", "topics", "new_topics", "old_topics", "shift"),
    only_with=BY_TOPICS,
)
ALIGNED = 0.65
"""The least likeness of topics that recovers a shift, or interferes."""
LONGEST_SEEN = 4
"""Without a recovery interference is a share of so many turns at most."""


def _last_of_window(row: Row, options: PreferenceShift) -> int:
    last: int = row["turn"] + max(1, options.window) - 1
    return last


of_window = partial(
    of_turns,
    where=lambda row, options: C("turn").is_between(row["turn"], _last_of_window(row, options)),
)
"""Shows columns of the turns from a shift to the end of its window."""


def _adaptation(prefix: str) -> Callable[[Row, PreferenceShift], str]:
    """Return what writes TAS with its weights, of columns with a prefix."""
    cc, cr, i = (f"{{{prefix}{part}}}" for part in ("cc", "cr", "i"))
    return lambda row, options: (
        f"min(1, max(-1, {options.alpha:g} * {cc} + {options.beta:g} * {cr} - "
        f"{options.gamma:g} * {i}))"
    )


def _first_turn(row: Row, options: PreferenceShift, delay: str, *tests: str) -> str:
    """Write which turn of the window is the first that meets one of the tests."""
    window = f"from turn {row['turn']} to {_last_of_window(row, options)}"
    return f"{' or '.join(tests)} {window}: turn {row['turn'] + row[delay]} is the first"


def _delay(row: Row, options: PreferenceShift) -> str:
    if options.is_legacy:
        return f"answer with topics number {{delay}} is the first with like_new >= {ALIGNED}"
    tests = [f"cc >= {options.recovery_cc:g}"]
    if options.recovery != "cc":
        tests.append(f"cr >= {options.recovery_cr:g}")
    return _first_turn(row, options, "delay", *tests)


TURNS = ("T", "turns of the conversation with both texts")
CONCEPTS_U = ("E_U", "set of catalogue concepts in the user's text")
CONCEPTS_S = ("E_S", "set of catalogue concepts in the system's text")
UNION_U = ("E_U", "union of the concepts of the user turns of the segment")
UNION_S = ("E_S", "union of the concepts of the system turns of the segment")
WEIGHTS = ("a_U", "vector with the inverse document frequency of each concept of $E_U$, else 0")
WEIGHTS_S = ("a_S", "the vector of $E_S$")
GRAMS = (
    "G_n(t)",
    "set of n-grams of words (a to z, digits) of text t, for n = 3 and 4 (`--copy-orders`)",
)
GOLD = ("G", "gold concepts: concepts of the constraints in the user turn's metadata")
COPIED = ("I_t", "copying of turn t (`i`)")
PARTS = ((r"\mathrm{CC}", "`cc`"), (r"\mathrm{CR}", "`cr`"), ("I", "`i`"))
ALPHA = (
    (r"\alpha", "weight `--alpha`, 1"),
    (r"\beta", "weight `--beta`, 1"),
    (r"\gamma", "weight `--gamma`, 1"),
)
SHIFT = ("t_k", "user turn of shift k")
WINDOW = ("W", "turns of the window, `--window`, 3")
THETA = (r"\theta", "threshold `--recovery-cc`")
RATE = ("r", "recovery rate")
MEANS = (
    (r"\bar{I}", "mean copying"),
    (r"\bar{C}", "mean cross-coherence"),
    (r"\bar{R}", "mean context retention"),
)


_ZERO = C("zero_without_turns")
NO_TEXTS = NullRule(
    ~(C("has_user_text") & C("has_system_text")),
    "missing_input",
    "one of the two texts is absent or null (an empty text in every profile but default)",
)
NO_GOLD = (
    NullRule(
        ~(C("has_gold") | C("gold_is_user")),
        "missing_input",
        "the user turn's metadata has no constraints (the user's own concepts in the profile "
        "structured)",
    ),
    NullRule(
        ~C("has_system_text"),
        "missing_input",
        "the system's text is absent or null (an empty text in every profile but default)",
    ),
)
NONE_SCORED = NullRule(C("n_scored") == 0, "missing_input", "no turn of it has both texts")
UNKNOWN_DELAY, UNKNOWN_DELAY_COSINE = (
    NullRule(
        C(recovered).is_null(),
        "missing_input",
        "no turn of the window is known to meet the test and one of them lacks a text",
    )
    for recovered in ("recovered", "recovered_cosine")
)
NOT_RECOVERED, NOT_RECOVERED_COSINE = (
    NullRule(~C(recovered), "not_applicable", "no turn of the window meets the test")
    for recovered in ("recovered", "recovered_cosine")
)
AFTER_THE_END = NullRule(~C("in_dialogue"), "not_applicable", "the conversation has no such turn")
NONE_IN_WINDOW = NullRule(
    C("n_window_turns") == 0, "missing_input", "no turn of the window has both texts"
)
NO_TURNS = NullRule(
    ~_ZERO & (C("n_turns") == 0),
    "not_applicable",
    "the conversation has no turn (0 in every profile but default)",
)
NO_TURN_SCORED = NullRule(
    (C("n_turns") > 0) & (C("n_scored") == 0), "missing_input", "no turn has both texts"
)
NO_SHIFTS = NullRule(
    ~_ZERO & (C("n_shifts") == 0),
    "not_applicable",
    "the conversation has no shift (0 in every profile but default)",
)
UNKNOWN, UNKNOWN_COSINE = (
    NullRule(
        (C("n_shifts") > 0) & (C(known) == 0),
        "missing_input",
        "the recovery of every shift is unknown: no turn of the window is known to meet the test "
        "and one of them lacks a text",
    )
    for known in ("n_known_shifts", "n_known_shifts_cosine")
)
NONE_RECOVERED, NONE_RECOVERED_COSINE = (
    NullRule(C(recovered) == 0, "not_applicable", "no shift was recovered")
    for recovered in ("n_recovered", "n_recovered_cosine")
)
NO_SHIFT_INSIDE = NullRule(
    C("n_shifts_inside") == 0, "not_applicable", "no turn of the conversation has a shift"
)
NONE_AROUND = NullRule(
    C("n_turns_around_shifts") == 0, "missing_input", "no turn of the windows has both texts"
)
OF_MEANS = (NO_TURNS, NO_TURN_SCORED)
OF_CAS = (
    UNKNOWN,
    NullRule(
        ~C("is_legacy") & (C("n_recovered") == 0),
        "not_applicable",
        "no shift was recovered (in the profile legacy, CAS has no part for speed then)",
    ),
    NullRule(
        C("is_legacy") & (C("n_turns") == 0), "not_applicable", "the conversation has no turn"
    ),
)
OF_CAS_ALL = (
    NullRule(C("is_legacy"), "not_applicable", "the profile is legacy"),
    UNKNOWN,
    NullRule(C("n_shifts") == 0, "not_applicable", "the conversation has no shift"),
    NullRule(C("n_turns") == 0, "not_applicable", "the conversation has no turn"),
    NO_TURN_SCORED,
)
NONE_TRACKED = NullRule(
    ~C("gold_is_user") & (C("n_gold") == 0),
    "missing_input",
    "no turn has a value (0 in the profile structured)",
)

MADE = "llm-eval-workspace, METHODOLOGY_LIVING.md, section "
CC, CR, COPYING, TAS = (MADE + part for part in ("5.2", "5.3", "5.4", "5.5"))
SEGMENTS, DELTAS = MADE + "5.6", MADE + "5.7"
PUBLIC = "llm-eval-workspace, evaluate.py"
CONSISTENT = PUBLIC + " (updated)"

of_turn, of_segment, of_shift = (
    partial(Metric, table=table, role="part", scale=Scale("higher"), null_when=rules)
    for table, rules in (("turns", (NO_TEXTS,)), ("segments", (NONE_SCORED,)), ("shifts", ()))
)
"""Metrics from 0 to 1 of a turn, a segment and a shift, which are parts of others."""
IN_TURNS = Scale("lower", maximum=None, unit="turns")
TAS_FORMULA = (
    r"\mathrm{TAS} = "
    r"\min(1, \max(-1, \alpha \mathrm{CC} + \beta \mathrm{CR} - \gamma I))"
)
COSINE = "a_U · a_S / (|a_U| |a_S|), by the weights of the concepts"
_of_tracking = partial(
    of_turn,
    source=CONSISTENT,
    null_when=NO_GOLD,
    evidence=(EvidenceRows(columns=("gold_concepts",)), *IN_TEXTS),
)


TURN_METRICS = (
    of_turn(
        id="cc",
        name="Cross-coherence",
        source=CC,
        formula=Formula(
            r"\mathrm{CC} = \frac{|E_U \cap E_S|}{|E_U \cup E_S|}", CONCEPTS_U, CONCEPTS_S
        ),
        reading="1 if user and system name the same concepts, also if neither names one.",
        example="User: comedy, Tom Hanks. System: comedy. 1 / 2 = 0.5.",
        note=(
            "Turns in which neither side names a concept have 1, and can dominate a mean. "
            "`n_both_empty` counts them."
        ),
        evidence=IN_TEXTS,
        derivation=Ratio("n_shared", "n_either", "{n_shared} / {n_either} concepts"),
        same_test_as="cross_coherence",
    ),
    of_turn(
        id="cr",
        name="Context retention",
        source=CR,
        formula=Formula(
            r"\mathrm{CR} = \frac{a_U \cdot a_S}{\lVert a_U \rVert \lVert a_S \rVert}",
            CONCEPTS_U,
            CONCEPTS_S,
            WEIGHTS,
            WEIGHTS_S,
        ),
        reading="As CC, but rare concepts weigh more. 0 if one of the sets is empty.",
        example="Weights 3 and 4, the system names the second only: 16 / (5 * 4) = 0.8.",
        note=(
            "idf(c) = ln((1 + N) / (1 + df(c))) + 1, with N items in the catalogue and df(c) "
            "items with concept c. With 4 items, idf is 1.916 for a concept of one item and "
            "1.511 for a concept of two."
        ),
        evidence=(*IN_TEXTS, _of_weights("turn")),
        derivation=COSINE,
        same_test_as="context_retention",
    ),
    of_turn(
        id="i",
        name="Topic interference (copying)",
        source=COPYING,
        formula=Formula(r"I = \max_n \frac{|G_n(S) \cap G_n(U)|}{|G_n(S)|}", GRAMS),
        reading="The share of the system's phrases that repeat the user's. 0 for short texts.",
        example="S = 'the quick brown fox jumps', U = 'a quick brown fox': max(1/3, 0/2) = 0.333.",
        scale=Scale("lower"),
        evidence=(
            *IN_TEXTS,
            EvidenceRows(
                table="copied_phrases",
                names=("order",),
                columns=("share", "phrases", "copied"),
                same=("turn",),
            ),
        ),
        derivation="max({share})",
        same_test_as="topic_interference",
    ),
    of_turn(
        id="tas",
        name="Turn adaptation score",
        source=TAS,
        formula=Formula(TAS_FORMULA, *PARTS, *ALPHA),
        reading="High if the answer takes up the user's concepts in words of its own.",
        example="CC = 0.5, CR = 0.8, I = 0.4: 0.5 + 0.8 - 0.4 = 0.9.",
        note=(
            "alpha + beta is 2 by default, so good turns are clipped to 1. The mean of TAS "
            "therefore differs from the sum of the means of CC, CR and I."
        ),
        scale=Scale("higher", minimum=-1.0),
        evidence=(EvidenceRows(columns=("cc", "cr", "i")),),
        derivation=_adaptation(""),
        same_test_as="context_adaptation_score",
    ),
    _of_tracking(
        id="dst_precision",
        name="Precision of the system's concepts",
        formula=Formula(r"P = \frac{|E_S \cap G|}{|E_S|}", CONCEPTS_S, GOLD),
        reading="The share of its concepts that are gold. Of none: 1 without gold, else 0.",
        example="System names 3 concepts, 2 of them gold: 2 / 3 = 0.667.",
        derivation=Ratio("n_hits", "n_system"),
        same_test_as="dst_precision_mean",
    ),
    _of_tracking(
        id="dst_recall",
        name="Recall of the gold constraints",
        formula=Formula(r"R = \frac{|E_S \cap G|}{|G|}", CONCEPTS_S, GOLD),
        reading="The share of the constraints that the system takes up. 1 without a constraint.",
        example="4 gold concepts, the system names 2 of them: 2 / 4 = 0.5.",
        derivation=Ratio("n_hits", "n_gold"),
        same_test_as="dst_recall_mean",
    ),
    _of_tracking(
        id="dst_f1",
        name="F1 of precision and recall",
        formula=Formula(
            r"\mathrm{F1} = \frac{2 P R}{P + R}",
            ("P", "precision of the turn (`dst_precision`)"),
            ("R", "recall of the turn (`dst_recall`)"),
        ),
        reading="1 if system and constraints name the same concepts. 0 if both P and R are 0.",
        example="P = 2 / 3, R = 1 / 2: 0.571.",
        derivation=Ratio(
            "n_hits_twice", "n_system_and_gold", "2 * {n_hits} / ({n_system} + {n_gold})"
        ),
        same_test_as="dst_f1_mean",
    ),
    _of_tracking(
        id="dst_joint_accuracy",
        name="Joint accuracy",
        formula=Formula(
            r"J = \begin{cases} 1 & \text{if } E_S = G \\ 0 & \text{otherwise} \end{cases}",
            CONCEPTS_S,
            GOLD,
        ),
        reading="1 if the system names all constraints and nothing else.",
        example="Gold: comedy. System: comedy, Tom Hanks. J = 0.",
        derivation=lambda row, options: (
            f"the sets are {'' if row['dst_joint_accuracy'] else 'not '}equal"
        ),
        same_test_as="dst_joint_accuracy_mean",
    ),
)

SEGMENT_METRICS = (
    of_segment(
        id="segment_cc",
        name="Cross-coherence of a segment",
        source=DELTAS,
        formula=Formula(r"\mathrm{CC} = \frac{|E_U \cap E_S|}{|E_U \cup E_S|}", UNION_U, UNION_S),
        reading="CC of all that is said in a segment.",
        example="4 concepts of the user, 3 of them in the answers: 3 / 4 = 0.75.",
        evidence=IN_SEGMENT,
        derivation=Ratio("n_shared", "n_either", "{n_shared} / {n_either} concepts"),
    ),
    of_segment(
        id="segment_cr",
        name="Context retention of a segment",
        source=CR,
        formula=Formula(
            r"\mathrm{CR} = \frac{a_U \cdot a_S}{\lVert a_U \rVert \lVert a_S \rVert}",
            ("a_U", "sum of the weight vectors of the user turns of the segment"),
            ("a_S", "sum of the weight vectors of the system turns"),
        ),
        reading="CR of all that is said in a segment. Repeated concepts weigh more.",
        example="Sums (3, 4) and (0, 4): 16 / (5 * 4) = 0.8.",
        evidence=(*IN_SEGMENT, _of_weights("segment")),
        derivation=COSINE,
    ),
    of_segment(
        id="segment_i",
        name="Copying in a segment",
        source=COPYING,
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} I_t",
            COPIED,
            ("T", "turns of the segment with both texts"),
        ),
        reading="Mean copying in a segment.",
        example="I of 0.2 and 0.4: 0.3.",
        scale=Scale("lower"),
        evidence=(of_turns("i", same=("segment",)),),
        derivation="mean of {i}",
    ),
    of_segment(
        id="segment_tas",
        name="Adaptation score of a segment",
        source=TAS,
        formula=Formula(
            TAS_FORMULA,
            (r"\mathrm{CC}", "`segment_cc`"),
            (r"\mathrm{CR}", "`segment_cr`"),
            ("I", "`segment_i`"),
            *ALPHA,
        ),
        reading="TAS of all that is said in a segment.",
        example="CC = 0.75, CR = 0.8, I = 0.6: 0.75 + 0.8 - 0.6 = 0.95.",
        scale=Scale("higher", minimum=-1.0),
        evidence=(EvidenceRows(columns=("segment_cc", "segment_cr", "segment_i")),),
        derivation=_adaptation("segment_"),
    ),
)

SHIFT_METRICS = (
    of_shift(
        id="delay",
        name="Turns until the recovery test is met",
        source=SEGMENTS,
        formula=Formula(
            r"d = \min \{j < W \mid \mathrm{CC}_{t_k + j} \ge \theta\}",
            SHIFT,
            WINDOW,
            (r"\mathrm{CC}", "CC of a turn, in some profiles also CR"),
            THETA,
        ),
        reading="Turns until the answers follow the shift: 0 if the first answer does.",
        example="CC of 0.1 and 0.7 after the shift, $\\theta$ = 0.65: d = 1.",
        scale=IN_TURNS,
        null_when=(UNKNOWN_DELAY, NOT_RECOVERED),
        evidence=(of_window("cc", "cr", only_with=GROUNDED), replace(ANSWERS, same=("shift",))),
        derivation=_delay,
        same_test_as="avg_recovery_delay",
    ),
    of_shift(
        id="delay_cosine",
        name="Turns until CR alone meets its threshold",
        source=CONSISTENT,
        formula=Formula(
            r"d = \min \{j < W \mid \mathrm{CR}_{t_k + j} \ge \theta\}",
            SHIFT,
            WINDOW,
            (r"\mathrm{CR}", "CR of a turn"),
            (r"\theta", "threshold `--recovery-cr`, 0.65"),
        ),
        reading="As delay, by CR alone.",
        example="CR of 0.2 and 0.7 after the shift: d = 1.",
        scale=IN_TURNS,
        null_when=(UNKNOWN_DELAY_COSINE, NOT_RECOVERED_COSINE),
        evidence=(of_window("cr"),),
        derivation=lambda row, options: _first_turn(
            row, options, "delay_cosine", f"cr >= {options.recovery_cr:g}"
        ),
        same_test_as="avg_recovery_delay_cosine",
    ),
    of_shift(
        id="i_around_shift",
        name="Copying around a shift",
        source=SEGMENTS,
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} I_t",
            SHIFT,
            WINDOW,
            COPIED,
            ("T", "turns $t_k$ to $t_k + W - 1$ with both texts"),
        ),
        reading="Mean copying after one shift.",
        example="I of 0.0, 0.3 and 0.6: 0.3.",
        scale=Scale("lower"),
        null_when=(AFTER_THE_END, NONE_IN_WINDOW),
        evidence=(of_window("i"),),
        derivation="mean of {i}",
        same_test_as="topic_interference_around_shifts",
    ),
)


SLOWEST_DELAY = 5.0
"""The delay at which the part of CAS that rewards speed is 0."""
FIRST_DELAY, DELAY_SPAN = 1.0, 5.0
"""The delay at which this part is 1 in the profile legacy, and the turns in which it falls to 0."""


def _weighted(row: Row, options: PreferenceShift, late: str = "") -> str:
    """Write CAS with its weights. The profile legacy leaves out parts without a value."""
    if not late:
        late = f"1 - clip({{avg_recovery_delay}} / {SLOWEST_DELAY:g})"
        if options.is_legacy:
            late = f"1 - clip(({{avg_recovery_delay}} - {FIRST_DELAY:g}) / {DELAY_SPAN:g})"
    terms = {part: f"{{{part}}}" for part in CAS_PARTS} | {
        "topic_interference": "(1 - clip({topic_interference}))",
        "avg_recovery_delay": f"({late})",
    }
    shares = {
        part: share
        for part, share in options.cas_shares.items()
        if row[part] is not None or not options.is_legacy
    }
    total = " + ".join(f"{share:g} * {terms[part]}" for part, share in shares.items())
    return total if len(shares) == len(terms) else f"({total}) / {sum(shares.values()):g}"


def _by_profile(grounded: str, by_topics: str) -> Callable[[Row, PreferenceShift], str]:
    return lambda row, options: by_topics if options.is_legacy else grounded


_BY_PARTS = EvidenceRows(columns=CAS_PARTS)

_of_mean = partial(
    Metric,
    scale=Scale("higher"),
    null_when=OF_MEANS,
    fixed_where=(NO_TURN,),
    role="headline",
    baselines=TRIVIAL,
)

_of_recovery = partial(
    Metric, uses=("shift_events",), scale=Scale("higher"), fixed_where=(NO_TURN, NO_SHIFT)
)
_of_delay = partial(Metric, uses=("shift_events",), scale=IN_TURNS)
_of_deltas = partial(
    Metric, source=DELTAS, scale=Scale("lower", maximum=None, unit="concepts"), role="part"
)

DIALOGUE_METRICS = (
    _of_mean(
        id="cross_coherence",
        name="Mean cross-coherence",
        source=CC,
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} \mathrm{CC}_t",
            TURNS,
            (r"\mathrm{CC}_t", "CC of turn t (`cc`)"),
        ),
        reading="How far the answers name the concepts that the user names.",
        example="CC of 0.5 and 1.0: 0.75.",
        evidence=(
            of_turns("cc", only_with=GROUNDED),
            of_turns("cosine_to_user", text="system_text", only_with=BY_TOPICS),
        ),
        derivation=_by_profile("mean of {cc}", "mean of {cosine_to_user}"),
    ),
    _of_mean(
        id="context_retention",
        name="Mean context retention",
        source=CR,
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} \mathrm{CR}_t",
            TURNS,
            (r"\mathrm{CR}_t", "CR of turn t (`cr`)"),
        ),
        reading="As cross-coherence, with rare concepts weighing more.",
        example="CR of 0.8 and 0.4: 0.6.",
        evidence=(
            of_turns("cr", only_with=GROUNDED),
            of_turns("cosine_to_last", text="system_text", only_with=BY_TOPICS),
        ),
        derivation=_by_profile("mean of {cr}", "mean of {cosine_to_last}"),
    ),
    _of_mean(
        id="topic_interference",
        name="Mean copying",
        source=COPYING,
        formula=Formula(r"\frac{1}{|T|} \sum_{t \in T} I_t", TURNS, COPIED),
        reading="How far the answers repeat the user's phrases. Lower is better.",
        example="I of 0.0 and 0.3: 0.15.",
        scale=Scale("lower"),
        evidence=(of_turns("i", only_with=GROUNDED), ANSWERS),
        derivation=_by_profile(
            "mean of {i}",
            f"mean over shifts of answers with like_old >= {ALIGNED:g} / answers up to the "
            f"recovery (at most {LONGEST_SEEN} without one)",
        ),
    ),
    Metric(
        id="topic_interference_around_shifts",
        name="Mean copying around shifts",
        uses=("shift_events",),
        source=SEGMENTS,
        formula=Formula(
            r"\frac{1}{n} \sum_{w \in W} \sum_{t \in w} I_t",
            COPIED,
            ("W", "windows of all shifts (a turn in two windows counts twice)"),
            ("n", "number of turns in these windows that have both texts"),
        ),
        reading="Mean copying after shifts.",
        example="One window with I of 0.0, 0.3 and 0.6: 0.3.",
        scale=Scale("lower"),
        null_when=(NO_SHIFT_INSIDE, NONE_AROUND),
        micro=("i_around_shifts_sum", "n_turns_around_shifts"),
        evidence=(of_shifts("i_around_shift"),),
    ),
    _of_mean(
        id="context_adaptation_score",
        name="Adaptation score (mean TAS)",
        source=TAS,
        scale=Scale("higher", minimum=-1.0),
        formula=Formula(
            r"\frac{1}{|T|} \sum_{t \in T} \mathrm{TAS}_t",
            TURNS,
            (r"\mathrm{TAS}_t", "TAS of turn t (`tas`), already between -1 and 1"),
        ),
        reading="How well the answers follow the user. 1 is the maximum of each turn.",
        example="TAS of 0.9 and 1.0: 0.95.",
        evidence=(of_turns("tas", only_with=GROUNDED), replace(_BY_PARTS, only_with=BY_TOPICS)),
        derivation=lambda row, options: (
            _weighted(row, options) if options.is_legacy else "mean of {tas}"
        ),
    ),
    _of_recovery(
        id="topic_recovery_rate",
        name="Recovery rate",
        source=SEGMENTS,
        formula=Formula(
            r"r = \frac{|R|}{|K|}",
            ("K", "shifts whose turns tell whether they are recovered"),
            ("R", "shifts of K with a turn of the window that meets the test"),
        ),
        reading="The share of shifts that the answers follow in time.",
        example="3 shifts, 2 of them recovered: 2 / 3 = 0.667.",
        null_when=(UNKNOWN, NO_SHIFTS, NO_TURNS),
        micro=("n_recovered", "n_known_shifts"),
        evidence=(of_shifts("recovered", "delay"),),
        role="headline",
        baselines=TRIVIAL,
    ),
    _of_delay(
        id="avg_recovery_delay",
        name="Mean recovery delay",
        source=SEGMENTS,
        formula=Formula(
            r"\bar{d} = \frac{1}{|R|} \sum_{k \in R} d_k",
            ("R", "recovered shifts"),
            ("d_k", "delay of shift k (`delay`)"),
        ),
        reading="Turns until a recovered shift is followed. Shifts never recovered do not count.",
        example="Delays 0 and 1: 0.5.",
        null_when=(UNKNOWN, NONE_RECOVERED),
        micro=("delay_sum", "n_recovered"),
        evidence=(of_shifts("delay"),),
        role="headline",
        baselines=TRIVIAL,
    ),
    _of_recovery(
        id="recovery_rate_cosine",
        name="Recovery rate by CR alone",
        source=CONSISTENT,
        formula=Formula(
            r"r = \frac{|R|}{|K|}",
            ("K", "shifts whose turns tell whether CR reaches its threshold"),
            ("R", "shifts of K with such a turn in the window"),
        ),
        reading="As the recovery rate, by CR alone.",
        example="3 shifts, 1 of them recovered: 1 / 3 = 0.333.",
        note="The test is CR >= `--recovery-cr` (0.65). Nothing else counts.",
        null_when=(UNKNOWN_COSINE, NO_SHIFTS, NO_TURNS),
        micro=("n_recovered_cosine", "n_known_shifts_cosine"),
        evidence=(of_shifts("recovered_cosine", "delay_cosine"),),
        role="part",
    ),
    _of_delay(
        id="avg_recovery_delay_cosine",
        name="Mean recovery delay by CR alone",
        source=CONSISTENT,
        formula=Formula(
            r"\bar{d} = \frac{1}{|R|} \sum_{k \in R} d_k",
            ("R", "shifts recovered by CR alone"),
            ("d_k", "delay of shift k (`delay_cosine`)"),
        ),
        reading="As the mean recovery delay, by CR alone.",
        example="Delays 1 and 2: 1.5.",
        null_when=(UNKNOWN_COSINE, NONE_RECOVERED_COSINE),
        micro=("delay_cosine_sum", "n_recovered_cosine"),
        evidence=(of_shifts("delay_cosine"),),
        role="part",
    ),
    Metric(
        id="cas",
        name="Conversation adaptation score",
        uses=("shift_events",),
        source=PUBLIC + " (legacy), on the grounded parts",
        scale=Scale("higher"),
        formula=Formula(
            r"\mathrm{CAS} = .02 r + .04 \left(1 - \frac{\min(\bar{d}, 5)}{5}\right) "
            r"+ .04 (1 - \bar{I}) + .60 \bar{C} + .30 \bar{R}",
            RATE,
            (r"\bar{d}", "mean recovery delay"),
            *MEANS,
        ),
        reading="Recovery, copying and coherence in one number. Weights: `--cas-weights`.",
        example="0.02 * 1 + 0.04 * 0.8 + 0.04 * 0.9 + 0.60 * 0.5 + 0.30 * 0.6 = 0.568.",
        note=(
            "CAS leaves out conversations that fail, because they have no delay. So a mean of "
            "CAS is over a model's better conversations. Compare models by `cas_all`."
        ),
        null_when=OF_CAS,
        evidence=(_BY_PARTS,),
        derivation=_weighted,
    ),
    Metric(
        id="cas_all",
        name="Conversation adaptation score over all shifts",
        uses=("shift_events",),
        source=PUBLIC + " (legacy), every shift counted",
        scale=Scale("higher"),
        formula=Formula(
            r"\mathrm{CAS} = .02 r + .04 v + .04 (1 - \bar{I}) + .60 \bar{C} + .30 \bar{R}",
            RATE,
            ("K", "known shifts (no missing text in the window, or a turn that passes the test)"),
            (
                "v",
                r"mean over shifts of K of $1 - \frac{\min(d_k, 5)}{5}$, "
                "0 for those not recovered",
            ),
            *MEANS,
        ),
        reading="As CAS, but shifts that were never recovered count against the system.",
        example="0.02 * 0.5 + 0.04 * 0.4 + 0.04 * 0.9 + 0.60 * 0.5 + 0.30 * 0.6 = 0.542.",
        note="It equals CAS if every shift was recovered within five turns.",
        null_when=OF_CAS_ALL,
        evidence=(_BY_PARTS, of_shifts("recovered", "delay")),
        derivation=lambda row, options: _weighted(
            row,
            options,
            f"mean of 1 - clip(delay / {SLOWEST_DELAY:g}), 0 if not recovered, delays {{delay}}",
        ),
    ),
    *(
        Metric(
            id=f"{metric.id}_mean",
            name=f"{metric.name}, mean over turns",
            uses=("user_meta",),
            source=CONSISTENT,
            scale=Scale("higher"),
            formula=Formula(
                r"\frac{1}{|T|} \sum_{t \in T} v_t",
                ("T", f"turns with a value of `{metric.id}`"),
                ("v_t", f"value of turn t (`{metric.id}`)"),
            ),
            reading=metric.reading,
            example="Values 0.5 and 1.0: 0.75.",
            null_when=(NONE_TRACKED,),
            evidence=(of_turns(metric.id),),
            derivation=f"mean of {{{metric.id}}}",
        )
        for metric in TURN_METRICS
        if metric.id.startswith("dst_")
    ),
    _of_deltas(
        id="missing_concepts_total",
        name="Missing concepts",
        formula=Formula(r"\sum_{t \in T} |E_U \setminus E_S|", TURNS, CONCEPTS_U, CONCEPTS_S),
        reading="Concepts of the user that the answers leave out.",
        example="Two turns with 1 and 2 missing concepts: 3.",
        note="The column `missing_concepts` of the table `turns` lists them.",
        evidence=(of_turns("missing_concepts", where=C("cc").is_not_null()),),
        derivation="{missing_concepts_total} concepts",
    ),
    _of_deltas(
        id="hallucinated_concepts_total",
        name="Hallucinated concepts",
        formula=Formula(r"\sum_{t \in T} |E_S \setminus E_U|", TURNS, CONCEPTS_U, CONCEPTS_S),
        reading="Concepts that answers bring in although the user did not name them.",
        example="Two turns with 0 and 4 such concepts: 4.",
        note="The column `hallucinated_concepts` of the table `turns` lists them.",
        evidence=(of_turns("hallucinated_concepts", where=C("cc").is_not_null()),),
        derivation="{hallucinated_concepts_total} concepts",
    ),
)


MEANS_OF_TURNS = {metric.same_test_as: metric.id for metric in TURN_METRICS}
"""Metrics of dialogues that are means over turns, each with the metric of turns."""

METRICS = (*DIALOGUE_METRICS, *TURN_METRICS, *SEGMENT_METRICS, *SHIFT_METRICS)
"""Every metric of the suite, those of dialogues first."""
