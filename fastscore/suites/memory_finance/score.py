"""From traces to the tables: turns as the published rows, dialogues as their sums and ratios."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from fastscore_jit.arrays import Float64Array, Indices

from fastscore.suites.base import Events
from fastscore.suites.columns import filled, find_nulls, keep_where
from fastscore.suites.memory_finance.events import turns_of_status
from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.memory_keys import score_memory_keys
from fastscore.suites.memory_finance.metrics import (
    JUDGE_SCORE_1_5,
    PROFILE_METRICS,
    RATIOS,
    count_turns,
    ratios_of,
)
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.profile import score_profiles
from fastscore.suites.memory_finance.replies import (
    find_contradictions,
    score_compliance,
    score_risk,
    score_rubric,
    search_replies,
)
from fastscore.suites.memory_finance.schema import (
    DEFAULT_TRACE_VERSION,
    DIALOGUES,
    TURNS,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView

_COUNTED = ("m1_turns", "m3_turns", "m4_turns", "m5_turns")


def score_traces(
    events: Events, vectors: "VectorView", options: MemoryFinance
) -> dict[str, pl.DataFrame]:
    """Score the dialogues of `read_traces`.

    Returns
    -------
    dict of pl.DataFrame
        ``turns`` and ``dialogues`` in the schema of the suite's tables.
    """
    frames = events.frames
    lexicon = load_lexicon(options.lexicon)
    replies = search_replies(frames, lexicon)
    dialogues, turns = frames["dialogues"], frames["turns"]
    places = {
        "file": dialogues["file"],
        "line": dialogues["line"],
        "dialogue": dialogues["dialogue"],
        "run_id": filled(dialogues["run_id"], ""),
        "trace_version": filled(dialogues["trace_version"], DEFAULT_TRACE_VERSION),
    }
    dialogue_row = turns["dialogue_row"]
    ok = turns_of_status(frames, "ok")
    # a turn that failed has no reply to miss
    unanswered = ok & ~turns["has_reply"].to_numpy() & (not options.nulls_are_empty)
    ok &= ~unanswered
    columns: dict[str, Any] = {
        **{name: of[dialogue_row] for name, of in places.items()},
        "turn_pair_id": turns["turn_pair_id"],
        **score_memory_keys(frames),
        **score_risk(frames, replies, lexicon),
        **score_compliance(frames, replies, lexicon),
        **score_rubric(frames, replies),
        "constraint_contradiction": find_contradictions(frames, replies, lexicon),
        "eligible_m2": np.zeros(turns.height, np.bool_),
        "eligible_m4": ok,
    }
    for metric, required in (("m1", "n_keys"), ("m3", "n_risks"), ("m5", "n_elements")):
        columns[f"eligible_{metric}"] = ok & (columns[required] > 0)
    columns["judge_score_1_5"] = columns["judge_score_1_5"].set(pl.Series(unanswered), None)
    facts = pl.DataFrame({"n_elements": columns["n_elements"], "is_unanswered": unanswered})
    columns["null_reasons"] = find_nulls(facts, [JUDGE_SCORE_1_5]).column
    scored = pl.DataFrame({name: columns[name] for name in TURNS.schema})
    profiles = score_profiles(frames, replies, lexicon)
    counts = count_turns(columns, dialogue_row.to_numpy(), dialogues.height)
    return {"turns": scored, "dialogues": _score_dialogues(dialogues, places, counts, profiles)}


def _score_dialogues(
    dialogues: pl.DataFrame,
    places: Mapping[str, pl.Series],
    counts: Mapping[str, Indices | Float64Array],
    profiles: Mapping[str, Float64Array],
) -> pl.DataFrame:
    ratios, valid = ratios_of(counts), dialogues["valid"].to_numpy()
    eligible = valid & dialogues["has_profile"].to_numpy()
    rows = dialogues.select("valid", "has_profile").with_columns(
        pl.Series(rule, counts[rule]) for rule in _COUNTED
    )
    columns: dict[str, Any] = {
        **dialogues.to_dict(),
        **places,
        "eligible_m2": eligible,
        **counts,
        **ratios,
        **{name: keep_where(eligible, scores) for name, scores in profiles.items()},
        "null_reasons": find_nulls(rows, [*RATIOS, *PROFILE_METRICS]).column,
    }
    return pl.DataFrame({name: columns[name] for name in DIALOGUES.schema})
