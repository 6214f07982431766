"""The parts of a log that metrics use, and the conditions that make several metrics null."""

from typing import Any

import polars as pl
from polars import col as C

from fastscore.suites.declarations import Fixed, Formula, Metric, NullRule, Scale
from fastscore.suites.group_travel.lexicon import (
    ACCEPT_PLAN,
    ACTIONABLE,
    APPROVE,
    CATEGORY_SLOTS,
    PRESENT_PLAN,
    PROVIDE,
    SYNTHESIZE,
    SYS_FEEDBACK,
)
from fastscore.suites.showing import EvidenceRows

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
    EMBEDDER: "the texts' vectors. With `--embedder none` the metric is null or goes without them",
}
"""What a metric can use, and what is meant by it."""

QUOTING, PHRASING = "quoting every wish", "using fixed phrases"
"""Planners that pay no attention."""

NOT_SYNTHESISED = Fixed("enable_synthesis", False, only_in=("C3", "C4", "C5"))
NO_PLAN = NullRule(C("itinerary").is_null(), "missing_input", "the dialogue has no plan")
NO_SYNTHESIS = NullRule(~C("enable_synthesis"), "not_applicable", "synthesis is not enabled")
NO_EMBEDDER = NullRule(~C("has_vectors"), "no_vector", "the run has no embedder")
NO_PREFERENCE = NullRule(C("n_pairs") == 0, "missing_input", "no preference is stated")
UNKNOWN_PREFERENCE = NullRule(
    C("no_preference"), "missing_input", "the text or the member of a preference was not given"
)
UNKNOWN_ACTIONABLE = NullRule(
    C("no_actionable"),
    "missing_input",
    "the text or the member of an actionable preference was not given",
)
UNKNOWN_SYNTHESIS = NullRule(
    C("enable_synthesis") & C("no_synthesis_text"),
    "missing_input",
    "the utterance of the synthesis of a slot with a preference was not given",
)
UNKNOWN_PRESENTATION = NullRule(
    C("no_presentation"), "missing_input", "the utterance of a presentation was not given"
)


def ratio(id: str, name: str, formula: Formula, **more: Any) -> Metric:
    """Declare a metric that columns ``ID_num`` and ``ID_den`` add up: a headline unless told."""
    told = {"scale": Scale("higher"), "role": "headline", "source": f"Metric Reference, {id}"}
    micro = (f"{id}_num", f"{id}_den")
    return Metric(id=id, name=name, formula=formula, micro=micro, **{**told, **more})


def of_turns(column: str, **which: Any) -> EvidenceRows:
    """Show a column of turns with what was said."""
    shown = {"table": "turns", "names": ("member", "slot"), "text": "utterance", **which}
    return EvidenceRows(columns=(column,), **shown)


def of_pairs(*columns: str, **which: Any) -> EvidenceRows:
    """Show columns of preferences."""
    names = ("member", "slot")
    return EvidenceRows(table="pairs", names=names, columns=columns, text="preference", **which)


_OF_SLOT = ["dialogue_row", "slot"]


def ascending_sum(column: str) -> pl.Expr:
    """Add a group's values from the least up, so that the order of its rows does not matter."""
    return C(column).drop_nulls().sort().cum_sum().last()


_OF_SYSTEM = "sys_"


def find_missing(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Find the dialogues in which something was not given that metrics read.

    An utterance that was given and is empty says nothing. One that was not given is unknown.
    """
    kind, slot = C("kind"), C("slot")
    unsaid, unnamed = ~C("has_utterance"), ~C("has_speaker")
    lacking = frames["turns"].filter(unsaid | unnamed)
    explained = frames["synthesis"].filter(C("explanation").is_not_null())
    for name, slots in (("is_stated", frames["pairs"]), ("is_explained", explained)):
        known = slots.select(_OF_SLOT).join(lacking, on=_OF_SLOT, how="semi").unique()
        known = known.with_columns(pl.lit(True).alias(name))
        lacking = lacking.join(known, on=_OF_SLOT, how="left", maintain_order="left")
    # nobody is known to have said it, or nobody knows what was said
    preference = (kind == PROVIDE) & ~C("is_system") & (unsaid | (unnamed & C("is_said")))
    actionable = preference & slot.is_in(ACTIONABLE)
    of_system = C("intent").str.strip_chars().str.to_lowercase().str.starts_with(_OF_SYSTEM)
    causes = {
        "no_preference": preference,
        "no_actionable": actionable,
        "no_category": preference & slot.is_in(CATEGORY_SLOTS),
        "no_resolved": actionable & C("is_explained"),
        "no_synthesis_text": (kind == SYNTHESIZE) & unsaid & C("is_stated"),
        "no_presentation": (kind == PRESENT_PLAN) & unsaid,
        "no_system_text": kind.is_in([SYNTHESIZE, SYS_FEEDBACK, PRESENT_PLAN]) & unsaid,
        "no_voice": (kind == PROVIDE) & unnamed,
        "no_acceptance": kind.is_in([ACCEPT_PLAN, APPROVE]) & unnamed,
        "no_speaker": unnamed & ~of_system,
    }
    return lacking.group_by("dialogue_row").agg(
        cause.any().alias(name) for name, cause in causes.items()
    )
