"""What is unknown of dialogues because turns were logged without their utterance or speaker.

An utterance that was given and is empty says nothing; one that was not may have said anything.
"""

import polars as pl

from fastscore.suites.group_travel.terms import ACTIONABLE, CATEGORY_SLOTS
from fastscore.suites.group_travel.turns import (
    ACCEPT_PLAN,
    APPROVE,
    PRESENT_PLAN,
    PROVIDE,
    SYNTHESIZE,
    SYS_FEEDBACK,
)

_OF_SLOT = ["dialogue_row", "slot"]
_OF_SYSTEM = "sys_"


def find_missing(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Find the dialogues in which something was not given that metrics read.

    Returns
    -------
    pl.DataFrame
        For each dialogue, as booleans: ``no_preference``, ``no_actionable``, ``no_category`` and
        ``no_resolved``, a preference for any slot, an actionable one, one with categories, an
        actionable one whose resolution is explained; ``no_synthesis_text`` of a slot with a
        preference; ``no_presentation``; ``no_system_text`` of those that M4b reads;
        ``no_voice``, ``no_acceptance`` and ``no_speaker``: who states a preference, who accepts,
        who speaks in a turn that is not the system's.
    """
    kind, slot = pl.col("kind"), pl.col("slot")
    unsaid, unnamed = ~pl.col("has_utterance"), ~pl.col("has_speaker")
    lacking = frames["turns"].filter(unsaid | unnamed)
    explained = frames["synthesis"].filter(pl.col("explanation").is_not_null())
    for name, slots in (("is_stated", frames["pairs"]), ("is_explained", explained)):
        known = slots.select(_OF_SLOT).join(lacking, on=_OF_SLOT, how="semi").unique()
        known = known.with_columns(pl.lit(True).alias(name))
        lacking = lacking.join(known, on=_OF_SLOT, how="left", maintain_order="left")
    # nobody is known to have said it, or nobody knows what was said
    preference = (kind == PROVIDE) & ~pl.col("is_system") & (unsaid | (unnamed & pl.col("is_said")))
    actionable = preference & slot.is_in(ACTIONABLE)
    of_system = pl.col("intent").str.strip_chars().str.to_lowercase().str.starts_with(_OF_SYSTEM)
    causes = {
        "no_preference": preference,
        "no_actionable": actionable,
        "no_category": preference & slot.is_in(CATEGORY_SLOTS),
        "no_resolved": actionable & pl.col("is_explained"),
        "no_synthesis_text": (kind == SYNTHESIZE) & unsaid & pl.col("is_stated"),
        "no_presentation": (kind == PRESENT_PLAN) & unsaid,
        "no_system_text": kind.is_in([SYNTHESIZE, SYS_FEEDBACK, PRESENT_PLAN]) & unsaid,
        "no_voice": (kind == PROVIDE) & unnamed,
        "no_acceptance": kind.is_in([ACCEPT_PLAN, APPROVE]) & unnamed,
        "no_speaker": unnamed & ~of_system,
    }
    found = lacking.group_by("dialogue_row").agg(
        cause.any().alias(name) for name, cause in causes.items()
    )
    rows = frames["dialogues"].select("dialogue_row")
    return rows.join(found, on="dialogue_row", how="left", maintain_order="left").select(
        pl.col(*causes).fill_null(False)
    )


def not_given() -> dict[str, pl.Expr]:
    """Return by metric whether a turn that it reads was not given, as `find_missing` calls them.

    A single user is one voice whoever speaks, but where the voices tell that it is single. M2 and
    M3 are known where the other turns or the metadata of each slot decide them.
    """
    synthesised = pl.col("enable_synthesis")
    no_preference, no_presentation = pl.col("no_preference"), pl.col("no_presentation")
    no_synthesis_text = synthesised & pl.col("no_synthesis_text")
    by_voices = pl.col("multi_user") | (pl.col("multi_user_source") == "content")
    no_voice = pl.col("no_voice") & by_voices
    by_speakers = pl.all_horizontal(pl.col("member_count", "listed_members").is_null())
    no_acceptance = pl.col("no_acceptance") & ~pl.col("everyone_accepts")
    satisfied = ("W1", "W2", "W3", "M10", "M11", "M12", "M13")
    return {
        **dict.fromkeys(satisfied, pl.col("no_actionable")),
        "M1": no_voice | (pl.col("no_speaker") & by_speakers),
        "M2": synthesised & (no_preference | (pl.col("M2_unknown") > 0)),
        "M3": synthesised & (pl.col("M3_unknown") > 0),
        "M4b": pl.col("no_system_text"),
        "M6": no_acceptance | (no_voice & pl.col("anyone_accepts")),
        "M8": no_preference | no_presentation | no_synthesis_text,
        "M8a": synthesised & (no_preference | pl.col("no_synthesis_text")),
        "M8b": no_preference | no_presentation,
        "M10b": pl.col("no_category"),
        "M14": synthesised & pl.col("no_resolved"),
        "M15": no_preference,
    }
