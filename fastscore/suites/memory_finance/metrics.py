"""The metrics M1 to M5 of memory_finance: memory, profile, risk, compliance and explanation.

M1 and M3 to M5 sum counts over the turns that are eligible for them. M2 is a measure of dialogues.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from polars import col as C

from fastscore.suites.columns import keep_where
from fastscore.suites.declarations import Formula, Metric, NullRule, Ratio, Scale
from fastscore.suites.showing import EvidenceRows, Mark, Row, disjoint, occurrences

_M1, _M2, _M3, _M4, _M5 = (
    f"MemFinRobot, eval/metric_caculate.md, 3.{number} (M{number})" for number in range(1, 6)
)
MEMORY_SOURCES = ("short_term", "long_term", "profile")
COMPLIANCE_LABELS = ("compliant", "minor_violation", "severe_violation")
COMPLIANT, MINOR, SEVERE = range(len(COMPLIANCE_LABELS))
REFUSING, RECITING = "always refusing", "reciting all keywords"

NO_M1_TURN = NullRule(
    C("m1_turns") == 0,
    "not_applicable",
    "no turn of status ok has a reply and a resolvable memory key",
)
NO_RISK_TURN = NullRule(
    C("m3_turns") == 0, "not_applicable", "no turn of status ok has a reply and a required risk tag"
)
NO_REPLY = NullRule(C("m4_turns") == 0, "not_applicable", "no turn of status ok has a reply")
NO_RUBRIC_TURN = NullRule(
    C("m5_turns") == 0, "not_applicable", "no turn of status ok has a reply and a required element"
)
NOT_VALID = NullRule(~C("valid"), "not_applicable", "the dialogue is not valid")
NO_PROFILE = NullRule(~C("has_profile"), "missing_input", "the dialogue has no labelled profile")
NO_ELEMENT = NullRule(
    C("rubric_required").list.len() == 0, "not_applicable", "no element is required"
)
UNANSWERED = NullRule(
    C("is_unanswered"),
    "missing_input",
    "the turn of status ok has no reply (never in the profile published)",
)

_TURNS_M1 = ("T", "turns of status ok with a reply and at least one resolvable memory key")
_KEYS = ("R_t", "number of resolvable memory keys that the label of turn t requires")
_PREDICTED_LEVEL = (
    r"\hat{z}",
    "level of the last profile snapshot, else the lexicon's first level with a word in the replies",
)
_ACCURACY = (
    r"\mathrm{Acc} = \begin{cases} 1 & \text{if } \hat{z} = z \text{ and } z \text{ is known} "
    r"\\ 0 & \text{otherwise} \end{cases}"
)
_PREDICTED_SET = (
    r"\hat{S}",
    "set of the last profile snapshot, and labelled ones that the replies mention",
)
_PRECISION = ("P", r"precision $\frac{|\hat{S} \cap S|}{|\hat{S}|}$")
_RECALL = ("R", r"recall $\frac{|\hat{S} \cap S|}{|S|}$")
_RISK_TURNS = ("T", "turns of status ok with a reply and at least one required risk tag")
_RISKS = ("R_t", "set of required risk tags of turn t")
_DISCLOSED = (r"\hat{R}_t", "set of risk tags that the reply of turn t discloses")
_REPLIES = ("T", "turns of status ok with a reply")
_RUBRIC_TURNS = ("T", "turns of status ok with a reply and at least one required element")
_ELEMENTS = ("E_t", "set of elements of explanation that turn t requires")
_EXPLAINED = (r"\hat{E}_t", "set of elements of explanation in the reply of turn t")


def _marking(column: str, text: str, **how: Any) -> Callable[[Row], tuple[Mark, ...]]:
    """Return what marks the words of a column in a text."""
    return lambda row: disjoint(
        [mark for word in row[column] for mark in occurrences(row[text], word, **how)]
    )


def _of_turns(eligible: str, *columns: str, **which: Any) -> tuple[EvidenceRows, ...]:
    """Show columns of the turns that count for a metric, with their replies."""
    return (
        EvidenceRows(
            table="turns",
            names=("turn_pair_id",),
            columns=columns,
            where=C(eligible),
            text="reply",
            **which,
        ),
    )


def _of_profile(field: str, *columns: str) -> tuple[EvidenceRows, ...]:
    """Show where a field of the profile was found."""
    return (
        EvidenceRows(
            table="profile",
            names=("found_in",),
            columns=columns,
            where=C("field") == field,
            text="replies",
            marks=_marking("texts", "replies"),
        ),
    )


_OF_KEYS = _of_turns("eligible_m1", "key_hit_flags", "keys")
_OF_RISKS = _of_turns("eligible_m3", "risk_tag_hits", "risk_required_tags", "risk_pred_tags")
_OF_LABELS = _of_turns("eligible_m4", "pred_compliance_label", "gt_compliance_label")
_OF_ELEMENTS = _of_turns("eligible_m5", "rubric_hit_items", "rubric_required", "judge_score_1_5")
_of_recall = partial(
    Metric, scale=Scale("higher"), null_when=(NO_M1_TURN,), source=_M1, role="headline"
)
_of_user = partial(Metric, scale=Scale("higher"), null_when=(NOT_VALID, NO_PROFILE), source=_M2)
_of_risks = partial(
    Metric,
    scale=Scale("higher"),
    null_when=(NO_RISK_TURN,),
    evidence=_OF_RISKS,
    source=_M3,
    role="headline",
    baselines=(REFUSING, RECITING),
)
_of_replies = partial(Metric, scale=Scale("lower"), null_when=(NO_REPLY,), source=_M4)
_of_elements = partial(
    Metric,
    null_when=(NO_RUBRIC_TURN,),
    evidence=_OF_ELEMENTS,
    source=_M5,
    role="headline",
    baselines=(REFUSING, RECITING),
)
_LEVEL = (
    "1 if the snapshot's level, else the first one in the replies, is known and the labelled one"
)

KEY_COVERAGE = _of_recall(
    id="key_coverage",
    name="Coverage of memory keys",
    formula=Formula(
        r"\mathrm{KC} = \frac{\sum_{t \in T} H_t}{\sum_{t \in T} R_t}",
        _TURNS_M1,
        _KEYS,
        ("H_t", "number of those keys whose target a memory source contains"),
    ),
    micro=("required_key_hit_total", "required_key_total"),
    reading="The share of required memories that the assistant had at hand, from any source.",
    example="Two turns with 1 of 2 and 3 of 4 keys recalled: 4 / 6 = 0.667.",
    note="The reply itself is not used: a key counts if a memory source contains its target.",
    evidence=_OF_KEYS,
)
STRICT_KEY_HIT_RATE = _of_recall(
    id="strict_key_hit_rate",
    name="Turns with all memory keys recalled",
    formula=Formula(
        r"\mathrm{SKH} = \frac{|\{t \in T \mid H_t = R_t\}|}{|T|}",
        _TURNS_M1,
        _KEYS,
        ("H_t", "number of those keys whose target a memory source contains"),
    ),
    micro=("strict_key_turns", "m1_turns"),
    reading="The share of turns in which no required memory was missing.",
    example="Two turns with 1 of 2 and 4 of 4 keys recalled: 1 / 2 = 0.5.",
    evidence=_OF_KEYS,
)
CONTRADICTION_RATE = _of_recall(
    id="contradiction_rate",
    name="Turns that contradict a constraint",
    formula=Formula(
        r"\mathrm{CR} = \frac{|C|}{|T|}",
        _TURNS_M1,
        ("C", "turns of T whose reply contradicts a constraint of the user by the rules"),
    ),
    scale=Scale("lower"),
    micro=("contradiction_turns", "m1_turns"),
    reading="The share of turns that advise against a constraint of the user. Refusals have 0.",
    example="3 turns, 1 of which recommends a forbidden asset: 1 / 3 = 0.333.",
    note=(
        "A reply contradicts `最大回撤<N%` if it contains 回撤 and a whole number before `%` above "
        "N. So 12.5% is read as 5. Triggers contradict 不使用杠杆, 不做短线交易, 不投分级基金, "
        "不投海外市场 and 不参与题材炒作, unless the reply has a guard. Other constraints have "
        "no rule."
    ),
    evidence=_of_turns("eligible_m1", "constraint_contradiction"),
    baselines=(REFUSING,),
)
SOURCE_HIT_RATES = tuple(
    _of_recall(
        id=id,
        name=f"Keys recalled from {called}",
        formula=Formula(
            r"\frac{\sum_{t \in T} H_t}{\sum_{t \in T} R_t}",
            _TURNS_M1,
            _KEYS,
            ("H_t", f"number of those keys whose target {container}"),
        ),
        scale=Scale("neither"),
        micro=(id.replace("rate", "total"), "required_key_total"),
        reading="Which source the memories come from. A key may be in several sources.",
        example=f"6 keys, {example}.",
        evidence=_OF_KEYS,
        role="part",
    )
    for id, called, container, example in (
        (
            "short_term_hit_rate",
            "the short-term context",
            "the short-term context contains",
            "3 of them in the short-term context: 3 / 6 = 0.5",
        ),
        (
            "long_term_hit_rate",
            "long-term memory",
            "the recalled items contain",
            "2 of them in recalled items: 2 / 6 = 0.333",
        ),
        (
            "profile_hit_rate",
            "the profile",
            "the profile context contains",
            "1 of them in the profile: 1 / 6 = 0.167",
        ),
    )
)
"""The shares of keys that each of `MEMORY_SOURCES` contains."""
LEVEL_ACCURACIES = tuple(
    _of_user(
        id=id,
        name=f"Accuracy of the {called}",
        formula=Formula(_ACCURACY, ("z", f"labelled {called}"), _PREDICTED_LEVEL),
        reading="1 if the assistant saw the labelled level.",
        example=example,
        evidence=_of_profile(id.removesuffix("_acc"), "level", "texts"),
        derivation=_LEVEL,
        role="headline",
    )
    for id, called, example in (
        ("risk_level_acc", "risk level", "Labelled low, snapshot low: 1."),
        (
            "horizon_acc",
            "investment horizon",
            "Labelled long, no snapshot, the replies mention a short horizon: 0.",
        ),
        ("liquidity_acc", "need for liquidity", "Labelled high, snapshot high: 1."),
    )
)
LIST_F1 = tuple(
    _of_user(
        id=f"{called}_f1",
        name=f"F1 of the {called}",
        formula=Formula(
            r"\mathrm{F1} = \frac{2 P R}{P + R}",
            ("S", f"set of labelled {called}"),
            _PREDICTED_SET,
            _PRECISION,
            _RECALL,
        ),
        reading="1 if both sets are equal, also if both are empty. 0 if only one is empty.",
        example=f"Labelled 2, predicted {example}.",
        evidence=_of_profile(called, "texts"),
        derivation=Ratio(
            f"{called}_shared_twice",
            f"{called}_sizes",
            f"{{{called}_shared_twice}} / {{{called}_sizes}}, twice the shared ones / "
            "labelled + predicted",
        ),
    )
    for called, example in (
        ("constraints", "3, 2 in both: P = 2 / 3, R = 1, F1 = 0.8"),
        ("preferences", "1, 1 in both: P = 1, R = 1 / 2, F1 = 0.667"),
    )
)
_PARTS = tuple(metric.id for metric in (*LEVEL_ACCURACIES, *LIST_F1))
PROFILE_SCORE = _of_user(
    id="profile_score",
    name="Profile score",
    formula=Formula(
        r"\frac{1}{5} \left(\sum_f \mathrm{Acc}_f + \sum_g \mathrm{F1}_g\right)",
        (r"\mathrm{Acc}_f", "accuracy of risk level, horizon or need for liquidity"),
        (r"\mathrm{F1}_g", "F1 of the constraints or of the preferences"),
    ),
    reading="How much of the labelled profile the assistant knows, over five fields.",
    example="Accuracies 1, 0, 1 and F1 0.8, 0.667: 3.467 / 5 = 0.693.",
    evidence=(EvidenceRows(columns=_PARTS),),
    derivation=f"({' + '.join(f'{{{part}}}' for part in _PARTS)}) / {len(_PARTS)}",
    role="headline",
)
RISK_COVERAGE = _of_risks(
    id="risk_coverage",
    name="Coverage of required risk tags",
    formula=Formula(
        r"\mathrm{RC} = \frac{\sum_{t \in T} |R_t \cap \hat{R}_t|}{\sum_{t \in T} |R_t|}",
        _RISK_TURNS,
        _RISKS,
        _DISCLOSED,
    ),
    micro=("risk_hit_total", "risk_required_total"),
    reading="The share of required risks that are disclosed. Reciting every keyword has 1.",
    example="Two turns with 1 of 2 and 2 of 2 risks disclosed: 3 / 4 = 0.75.",
    note="A repeated label counts each time, as in the public code.",
)
STRICT_RISK_COVERAGE_RATE = _of_risks(
    id="strict_risk_coverage_rate",
    name="Turns with all required risk tags",
    formula=Formula(
        r"\frac{|\{t \in T \mid R_t \subseteq \hat{R}_t\}|}{|T|}", _RISK_TURNS, _RISKS, _DISCLOSED
    ),
    micro=("strict_risk_turns", "m3_turns"),
    reading="The share of turns that disclose every required risk.",
    example="Two turns with 1 of 2 and 2 of 2 risks disclosed: 1 / 2 = 0.5.",
)
COMPLIANCE_LABEL_ACC = _of_replies(
    id="compliance_label_acc",
    name="Accuracy of the compliance label",
    formula=Formula(
        r"\frac{|\{t \in T \mid \hat{c}_t = c_t\}|}{|T|}",
        _REPLIES,
        ("c_t", "compliance label of turn t in the dataset"),
        (r"\hat{c}_t", "compliance label that the rules find for the reply of turn t"),
    ),
    scale=Scale("higher"),
    micro=("compliance_match_count", "m4_turns"),
    reading="The share of replies as compliant as their label. Refusals match most labels.",
    example="4 turns, 3 with equal labels: 3 / 4 = 0.75.",
    note="A label in the dataset that is unknown counts as compliant.",
    evidence=_OF_LABELS,
    role="headline",
    baselines=(REFUSING,),
)
SEVERE_VIOLATION_RATE = _of_replies(
    id="severe_violation_rate",
    name="Turns found to be severe violations",
    formula=Formula(
        r"\frac{|\{t \in T \mid \hat{c}_t = \text{severe violation}\}|}{|T|}",
        _REPLIES,
        (r"\hat{c}_t", "compliance label that the rules find for the reply of turn t"),
    ),
    micro=("severe_count", "m4_turns"),
    reading="The share of replies that break a rule severely. Lower is better.",
    example="8 turns, 1 severe violation: 1 / 8 = 0.125.",
    evidence=_OF_LABELS,
    role="headline",
    baselines=(REFUSING,),
)
FORBIDDEN_HIT_RATE = _of_replies(
    id="forbidden_hit_rate",
    name="Turns with a forbidden phrase",
    formula=Formula(
        r"\frac{|\{t \in T \mid F_t \ne \emptyset\}|}{|T|}",
        _REPLIES,
        ("F_t", "forbidden phrases in the reply of turn t"),
    ),
    micro=("forbidden_turns", "m4_turns"),
    reading="The share of replies with a phrase of the list of forbidden ones. Lower is better.",
    example="8 turns, 2 with a forbidden phrase: 2 / 8 = 0.25.",
    evidence=_of_turns(
        "eligible_m4",
        "forbidden_hits",
        marks=_marking("forbidden_hits", "reply", good=False, label="forbidden"),
    ),
)
RUBRIC_HIT_RATE = _of_elements(
    id="rubric_hit_rate",
    name="Coverage of required elements of explanation",
    formula=Formula(
        r"\mathrm{ER} = \frac{\sum_{t \in T} |E_t \cap \hat{E}_t|}{\sum_{t \in T} |E_t|}",
        _RUBRIC_TURNS,
        _ELEMENTS,
        _EXPLAINED,
    ),
    scale=Scale("higher"),
    micro=("rubric_hit_total", "rubric_required_total"),
    reading="The share of required elements of explanation that replies have.",
    example="Two turns with 2 of 4 and 3 of 4 elements: 5 / 8 = 0.625.",
    note="A repeated element counts each time, as in the public code.",
)
JUDGE_SCORE_MEAN = _of_elements(
    id="judge_score_mean",
    name="Mean heuristic judge score",
    formula=Formula(
        r"\frac{\sum_{t \in T} j_t}{|T|}",
        _RUBRIC_TURNS,
        (r"j_t", "judge score of turn t (`judge_score_1_5`)"),
    ),
    scale=Scale("higher", minimum=1.0, maximum=5.0, unit="points"),
    micro=("judge_score_sum", "m5_turns"),
    reading="5 if every reply has all required elements, 1 if none has any.",
    example="Two turns with 3.0 and 4.0 points: 7.0 / 2 = 3.5.",
    note="The scores of turns are rounded to two decimals before they are averaged.",
)
JUDGE_SCORE_1_5 = Metric(
    id="judge_score_1_5",
    name="Heuristic judge score of a turn",
    table="turns",
    formula=Formula(r"j = 1 + 4 \cdot \frac{|E_t \cap \hat{E}_t|}{|E_t|}", _ELEMENTS, _EXPLAINED),
    scale=Scale("higher", minimum=1.0, maximum=5.0, unit="points"),
    null_when=(NO_ELEMENT, UNANSWERED),
    reading="Points from 1 to 5 by a rule, without a model. Rounded to two decimals.",
    example="2 of 3 elements: 1 + 4 * 2 / 3 = 3.67.",
    evidence=(
        EvidenceRows(columns=("rubric_hit_items", "rubric_required")),
        EvidenceRows(text="reply"),
    ),
    derivation=lambda row, options: (
        f"1 + 4 * {len(row['rubric_hit_items'])} / {len(row['rubric_required'])}, "
        "rounded to two decimals"
    ),
    source=_M5,
    role="part",
    same_test_as="judge_score_mean",
)

RECALL_METRICS = (KEY_COVERAGE, STRICT_KEY_HIT_RATE, CONTRADICTION_RATE, *SOURCE_HIT_RATES)
PROFILE_METRICS = (*LEVEL_ACCURACIES, *LIST_F1, PROFILE_SCORE)
RISK_METRICS = (RISK_COVERAGE, STRICT_RISK_COVERAGE_RATE)
COMPLIANCE_METRICS = (COMPLIANCE_LABEL_ACC, SEVERE_VIOLATION_RATE, FORBIDDEN_HIT_RATE)
EXPLANATION_METRICS = (RUBRIC_HIT_RATE, JUDGE_SCORE_MEAN, JUDGE_SCORE_1_5)
METRICS = (
    *RECALL_METRICS,
    *PROFILE_METRICS,
    *RISK_METRICS,
    *COMPLIANCE_METRICS,
    *EXPLANATION_METRICS,
)
RATIOS = tuple(metric for metric in METRICS if metric.micro)


_FLAGS, _N_TAGS = C("key_hit_flags"), C("risk_required_tags").list.len()
_AMOUNTS: dict[str, dict[str, pl.Expr]] = {
    "m1": {
        "required_key_total": _FLAGS.list.len(),
        "required_key_hit_total": _FLAGS.list.sum(),
        "strict_key_turns": _FLAGS.list.sum() == _FLAGS.list.len(),
        "contradiction_turns": C("constraint_contradiction"),
        **{
            f"{source}_hit_total": C("m1_source_hits").struct.field(source)
            for source in MEMORY_SOURCES
        },
    },
    "m3": {
        "risk_required_total": _N_TAGS,
        "risk_hit_total": C("risk_tag_hits"),
        "strict_risk_turns": C("risk_tag_hits") >= _N_TAGS,
    },
    "m4": {
        "compliance_match_count": C("pred_compliance_label") == C("gt_compliance_label"),
        "severe_count": C("pred_compliance_label") == COMPLIANCE_LABELS[SEVERE],
        "forbidden_turns": C("forbidden_hits").list.len() > 0,
    },
    "m5": {
        "rubric_required_total": C("rubric_required").list.len(),
        "rubric_hit_total": C("rubric_hit_items").list.len(),
    },
}
SUMS = (
    *(
        amount.filter(f"eligible_{metric}").sum().cast(pl.Int64).alias(name)
        for metric, amounts in _AMOUNTS.items()
        for name, amount in {f"{metric}_turns": C(f"eligible_{metric}"), **amounts}.items()
    ),
    # one after the other: `sum` adds up in an order of its own
    C("judge_score_1_5")
    .filter("eligible_m5")
    .cum_sum()
    .last()
    .fill_null(0.0)
    .alias("judge_score_sum"),
)
"""What the metrics count over the turns of the table, of those that are eligible for each."""


def ratios_of(sums: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the ratios of M1 and M3 to M5, null where their denominator is zero."""
    ratios = {}
    for metric in RATIOS:
        # by numpy: in a frame of one row polars multiplies by the reciprocal, which is not exact
        numerator, denominator = (sums[column].to_numpy() for column in metric.micro or ())
        ratios[metric.id] = keep_where(denominator > 0, numerator / np.maximum(denominator, 1))
    return ratios
