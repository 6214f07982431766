"""M8: whether the synthesis of a slot, or the plan's text, addresses what a member wants."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array

from fastscore.suites.columns import keep_where
from fastscore.suites.group_travel.evidence import (
    Informative,
    TextCodes,
    find_evidence,
    joined,
)
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.similarity import Similarity, reaches
from fastscore.suites.grouping import take


def address_pairs(
    frames: dict[str, pl.DataFrame],
    texts: TextCodes,
    informative: Informative,
    similarity: Similarity,
    options: GroupTravel,
) -> pl.DataFrame:
    """Find what addresses each pair.

    Returns
    -------
    pl.DataFrame
        For each pair the columns of `schema.PAIRS` from ``synthesis_hits`` to ``addressed``.
    """
    pairs = frames["pairs"]
    n_dialogues = frames["dialogues"].height
    dialogue_row, slot_row = pairs["dialogue_row"].to_numpy(), pairs["slot_row"].to_numpy()
    n_slots = int(slot_row.max(initial=-1)) + 1
    dialogue_of_slot = np.zeros(n_slots, np.int64)
    dialogue_of_slot[slot_row] = dialogue_row

    synthesis_owner = frames["synthesis_texts"]["slot_row"]
    plan_owner = frames["plan_texts"]["dialogue_row"]
    synthesis = texts.grouped("synthesis_texts", synthesis_owner.to_numpy(), n_slots)
    plan = texts.grouped("plan_texts", plan_owner.to_numpy(), n_dialogues)
    both = joined([synthesis, take(plan, dialogue_of_slot)])
    in_synthesis = find_evidence(informative, slot_row, texts.targets(synthesis))
    in_plan = find_evidence(informative, dialogue_row, texts.targets(plan))
    in_both = find_evidence(informative, slot_row, texts.targets(both))

    to_synthesis, to_plan = _nearest(frames, similarity, n_slots)
    by_synthesis = in_synthesis.addressed | reaches(to_synthesis, options.address_sim)
    by_plan = in_plan.addressed | reaches(to_plan, options.address_sim)
    enabled = frames["dialogues"]["enable_synthesis"].to_numpy()[dialogue_row]
    has_plan_text = (np.diff(plan[1]) > 0)[dialogue_row]
    return pl.DataFrame(
        {
            "synthesis_hits": in_synthesis.hits,
            "synthesis_phrase": in_synthesis.phrase,
            "synthesis_similarity": pl.Series(to_synthesis, nan_to_null=True),
            "addressed_synthesis": keep_where(enabled, by_synthesis),
            "plan_hits": in_plan.hits,
            "plan_phrase": in_plan.phrase,
            "plan_similarity": pl.Series(to_plan, nan_to_null=True),
            "addressed_plan": keep_where(has_plan_text, by_plan),
            "addressed": keep_where(
                enabled | has_plan_text, in_both.addressed | by_synthesis | by_plan
            ),
        }
    )


def _nearest(
    frames: dict[str, pl.DataFrame], similarity: Similarity, n_slots: int
) -> tuple[Float64Array, Float64Array]:
    """Return each pair's highest similarity to a text of its slot, and to a line of its plan."""
    pairs, n_dialogues = frames["pairs"], frames["dialogues"].height
    wanted = similarity.rows.get("pairs", np.zeros(0, np.int64))
    owner = frames["synthesis_texts"]["slot_row"]
    synthesis = similarity.grouped("synthesis_texts", owner, n_slots)
    lines = similarity.grouped("plan_lines", frames["plan_lines"]["dialogue_row"], n_dialogues)
    return (
        similarity.nearest(wanted, synthesis, pairs["slot_row"].to_numpy()),
        similarity.nearest(wanted, lines, pairs["dialogue_row"].to_numpy()),
    )
