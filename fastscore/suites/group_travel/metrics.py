"""The suite's metrics, and the rows of its summary: data only."""

from typing import Literal

from fastscore.suites.declarations import Metric

PREFERENCES, TURNS, METADATA, SYNTHESIS = "preferences", "turns", "metadata", "synthesis"
PLAN, PLAN_TEXT, CATALOGUE, EMBEDDER = "plan", "plan text", "catalogue", "embedder"
SOURCES = {
    PREFERENCES: "what members say in turns of `user_provide_SLOT`, and who says it",
    TURNS: "that there are turns, of feedback and of acceptance too",
    METADATA: "`member_count` and `members` of the first turn's metadata",
    SYNTHESIS: "utterances and metadata of turns of `sys_synthesize_SLOT`",
    PLAN: "the days of the last plan: meals, accommodation, attractions, events, stops",
    PLAN_TEXT: "utterances of `sys_present_plan`, and the plan's raw output",
    CATALOGUE: "the records of `ref_info_*`",
    EMBEDDER: "the texts' vectors; with `--embedder none` the metric is null or goes without them",
}
"""What a metric can use, and what is meant by it."""

_SYNTHESISED, _THEORY, _FEEDBACK = ("C3", "C4", "C5"), ("C4", "C5"), ("C5",)
_SATISFIED = (PREFERENCES, PLAN, PLAN_TEXT, CATALOGUE, EMBEDDER)
_USES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("W1", "W2", "W3"), _SATISFIED),
    "M1": (PREFERENCES, METADATA),
    "M2": (PREFERENCES, SYNTHESIS, CATALOGUE),
    "M3": (SYNTHESIS,),
    "M4": (SYNTHESIS,),
    "M4b": (TURNS, SYNTHESIS, PLAN_TEXT),
    "M5": (TURNS, SYNTHESIS),
    "M6": (PREFERENCES, TURNS),
    "M7_total_turns": (TURNS,),
    "M7_turns_per_slot": (PREFERENCES, TURNS),
    "M7_feedback_turn_overhead": (TURNS,),
    "M8": (PREFERENCES, SYNTHESIS, PLAN_TEXT, EMBEDDER),
    "M8a": (PREFERENCES, SYNTHESIS, EMBEDDER),
    "M8b": (PREFERENCES, PLAN_TEXT, EMBEDDER),
    "M9": (PLAN, CATALOGUE),
    "M10": _SATISFIED,
    "M10b": (PREFERENCES, PLAN, CATALOGUE),
    "M11": _SATISFIED,
    "M12": (PREFERENCES, PLAN, PLAN_TEXT, EMBEDDER),
    "M13": (PREFERENCES, PLAN, PLAN_TEXT, EMBEDDER),
    "M14": (PREFERENCES, SYNTHESIS, EMBEDDER),
    "M15": (PREFERENCES, PLAN, CATALOGUE, EMBEDDER),
    "M16": (PLAN,),
}
_CONDITIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("M2", "M3", "M8a", "M14"), _SYNTHESISED),
    "M4": _THEORY,
    "M5": _FEEDBACK,
}
_NO_HEADLINE = ("M6", "M8a", "M8b", "M10", "M10b")
"""Scripted (M6), parts of M8, W1 under another name (M10, as the source says) and one of its
channels; beside them the counts of M7."""
_FLAGS = {
    **dict.fromkeys(("M1", "M13", "W2", "W3", "M11"), "multi_user"),
    **dict.fromkeys(("M2", "M3", "M8", "M8a", "M14"), "enable_synthesis"),
    "M4": "use_social_theory",
    "M5": "enable_feedback",
}
"""The flag without which a metric's definition is another one."""
QUOTING, PHRASING = "quoting every wish", "using fixed phrases"
_BASELINES = {
    **dict.fromkeys(("W1", "W2", "W3", "M8", "M11"), (QUOTING,)),
    **dict.fromkeys(("M2", "M3", "M4"), (PHRASING,)),
}
"""Planners that pay no attention, by the metric that their scores stand beside."""
_COMPUTED_WITHOUT = ("W2", "W3", "M8", "M11")
"""Those that are computed without it too: of the only member, of the plan alone."""


def _metric(
    id: str,
    name: str,
    formula: str,
    null_rule: str,
    section: str,
    *,
    maximum: float | None = 1.0,
    better: Literal["higher", "lower", "neither"] = "higher",
    unit: str = "1",
    ratio: bool = True,
) -> Metric:
    return Metric(
        id=id,
        name=name,
        table="dialogues",
        formula=formula,
        minimum=0.0,
        maximum=maximum,
        better=better,
        null_rule=null_rule,
        source=f"Metric Reference, {section}",
        unit=unit,
        numerator=f"{id}_num" if ratio else None,
        denominator=f"{id}_den" if ratio else None,
        is_secondary=id.startswith("M7_") or id in ("M8a", "M8b"),
        uses=_USES[id],
        conditions=_CONDITIONS.get(id, ()),
        headline=not id.startswith("M7_") and id not in _NO_HEADLINE,
        fixed_where=((_FLAGS[id], False),) if id in _FLAGS and id not in _COMPUTED_WITHOUT else (),
        scale_by=_FLAGS[id] if id in _COMPUTED_WITHOUT else "",
        baselines=_BASELINES.get(id, ()),
    )


_NO_SYNTHESIS = "not_applicable where synthesis is not enabled"
_NO_PLAN = "missing_input without a plan"
_NOT_GIVEN = "where the text or the member of a preference was not given"
_NO_PAIRS = (
    f"{_NO_PLAN}, or {_NOT_GIVEN} (actionable slots); not_applicable without an actionable "
    "preference"
)
_NO_VECTORS = f"{_NO_PAIRS} that says something; no_vector without an embedder"

METRICS = (
    _metric("W1", "Utilitarian welfare", "mean of s_i over members", _NO_PAIRS, "W1"),
    _metric("W2", "Egalitarian welfare", "least s_i of the members", _NO_PAIRS, "W2", ratio=False),
    _metric(
        "W3",
        "Nash welfare",
        "geometric mean of s_i; 0 where one is 0",
        _NO_PAIRS,
        "W3",
        ratio=False,
    ),
    _metric(
        "M1",
        "Member voice coverage",
        "members who stated a preference / members, at most 1; 1 / members with a single user",
        "missing_input where nobody is known to be a member, or who states a preference or, if "
        "members are counted by speakers, who speaks was not given",
        "M1",
    ),
    _metric(
        "M2",
        "Conflict detection rate",
        "divergent slots whose synthesis names the conflict / divergent slots",
        f"{_NO_SYNTHESIS} or no slot is divergent; missing_input {_NOT_GIVEN}, or the utterance "
        "that could have named a conflict",
        "M2",
    ),
    _metric(
        "M3",
        "Resolution explanation rate",
        "synthesised slots that are explained / synthesised slots",
        f"{_NO_SYNTHESIS} or no slot is synthesised; missing_input where the utterance that could "
        "have explained a slot was not given",
        "M3",
    ),
    _metric(
        "M4",
        "Theory strategy usage rate",
        "actionable slots with a named strategy / actionable slots that are synthesised; 0 where "
        "social theory is not used",
        "not_applicable where theory is used and no actionable slot is synthesised",
        "M4",
    ),
    _metric(
        "M4b",
        "Theory text leakage rate",
        "turns that quote theory / turns that synthesise, give feedback or present the plan",
        "not_applicable without such a turn; missing_input where the utterance of one was not "
        "given",
        "M4b",
        better="lower",
    ),
    _metric(
        "M5",
        "Feedback activation rate",
        "conflict slots with a feedback turn / conflict slots; 0 where feedback is not enabled",
        "not_applicable where feedback is enabled and no slot is flagged as a conflict",
        "M5",
    ),
    _metric(
        "M6",
        "Member acceptance rate",
        "members who accept / members who stated a preference (one with a single user, and never "
        "fewer than one), at most 1",
        "not_applicable without a turn of acceptance; missing_input where who accepts or states a "
        "preference was not given",
        "M6",
    ),
    _metric(
        "M7_total_turns",
        "Turns",
        "turns with an intent or an utterance",
        "never",
        "M7",
        maximum=None,
        better="neither",
        unit="turns",
        ratio=False,
    ),
    _metric(
        "M7_turns_per_slot",
        "Turns per slot",
        "turns / slots for which a preference was stated",
        "not_applicable without such a slot",
        "M7",
        maximum=None,
        better="neither",
        unit="turns",
    ),
    _metric(
        "M7_feedback_turn_overhead",
        "Feedback turns",
        "turns of feedback",
        "never",
        "M7",
        maximum=None,
        better="neither",
        unit="turns",
        ratio=False,
    ),
    _metric(
        "M8",
        "Preference addressing score",
        "preferences addressed by the synthesis or the plan / preferences",
        "missing_input without a preference, or where a text of M8a or M8b was not given; without "
        "synthesis, as M8b",
        "M8",
    ),
    _metric(
        "M8a",
        "Preference addressing score of the synthesis",
        "preferences addressed by the synthesis of their slot / preferences",
        f"{_NO_SYNTHESIS}; missing_input without a preference, {_NOT_GIVEN}, or the utterance of "
        "its slot's synthesis",
        "M8",
    ),
    _metric(
        "M8b",
        "Preference addressing score of the plan",
        "preferences addressed by the plan's presentation or raw output / preferences",
        f"missing_input without a preference or a text of the plan, {_NOT_GIVEN}, or the "
        "utterance of a presentation",
        "M8",
    ),
    _metric(
        "M9",
        "Plan grounding rate",
        "distinct places of the plan that the catalogue has / distinct places of the plan",
        f"{_NO_PLAN}, a place in it or a catalogue",
        "M9",
    ),
    _metric(
        "M10",
        "Member slot satisfaction rate",
        "satisfied actionable preferences / actionable preferences",
        _NO_PAIRS,
        "M10",
    ),
    _metric(
        "M10b",
        "Category lookup satisfaction rate",
        "preferences that share a category with a selected place / preferences with a category",
        f"{_NO_PLAN}, or {_NOT_GIVEN} (slots with categories); not_applicable without a preference "
        "that names a category",
        "M10b",
    ),
    _metric(
        "M11",
        "All-constraints satisfied rate",
        "members whose actionable preferences are all satisfied / members who have any",
        _NO_PAIRS,
        "M11",
    ),
    _metric(
        "M12",
        "Semantic preference satisfaction",
        "mean similarity of actionable preferences and the plan's entries for their slot",
        _NO_VECTORS,
        "M12",
    ),
    _metric(
        "M13",
        "Fairness (Gini coefficient)",
        "sum of |x_i - x_j| over ordered pairs / (2 n^2 mean), x_i a member's mean in M12; at most "
        "(n - 1) / n",
        _NO_VECTORS,
        "M13",
        better="lower",
        ratio=False,
    ),
    _metric(
        "M14",
        "Concession rate",
        "mean similarity of actionable preferences and the explanation of their slot's resolution",
        f"{_NO_SYNTHESIS} or no such slot is explained; missing_input {_NOT_GIVEN} (such slots); "
        "no_vector without an embedder",
        "M14",
    ),
    _metric(
        "M15",
        "Serendipity score",
        "grounded places that nobody named and that are near a preference / grounded places",
        f"{_NO_PLAN}, a grounded place or a preference, or {_NOT_GIVEN}; no_vector without an "
        "embedder",
        "M15",
    ),
    _metric(
        "M16",
        "Plan coherence score",
        "passed checks / checks: three meals, their variety, the order of stops",
        _NO_PLAN,
        "M16",
    ),
)
RATIOS = tuple(metric for metric in METRICS if metric.numerator is not None)

CHANNELS = tuple(
    Metric(
        id=f"n_{channel}_channel",
        name=f"Firings of the {channel} channel",
        table="dialogues",
        formula=f"actionable preferences that are satisfied {by}",
        minimum=0.0,
        maximum=None,
        better="neither",
        null_rule="never",
        source="Metric Reference, M10",
        unit="pairs",
        numerator=f"{channel}_fired",
        denominator="M10_den",
        is_secondary=True,
    )
    for channel, by in (
        ("room", "by their room type"),
        ("category", "by a category"),
        ("lexical", "by tokens"),
        ("semantic", "by similarity"),
    )
)
"""How often each channel of M10 fires: no metrics of their own, but the summary has them beside
M10. The numerator, which the summary adds up, is the count itself."""
_AFTER_M10 = [metric.id for metric in METRICS].index("M10") + 1
SUMMARISED = (*METRICS[:_AFTER_M10], *CHANNELS, *METRICS[_AFTER_M10:])
"""The rows of the summary, in order."""

REAL_NUMERATORS = ("W1", "M12", "M14")
"""Ratios whose numerator is a sum of shares or similarities, not a count."""
