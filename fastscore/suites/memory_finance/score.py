"""From traces to the tables: turns as the published rows, dialogues as their sums and ratios."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from fastscore.suites.base import Events, NullReason
from fastscore.suites.columns import all_null_reasons, null_reasons, where
from fastscore.suites.json_values import Indices, Mask
from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.memory_keys import score_memory_keys
from fastscore.suites.memory_finance.options import MemoryFinanceOptions
from fastscore.suites.memory_finance.profile import Reals, score_profiles
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
    RATIOS,
    TURNS,
)


def score_traces(events: Events, options: MemoryFinanceOptions) -> dict[str, pl.DataFrame]:
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
        "run_id": dialogues["run_id"].fill_null(""),
        "trace_version": dialogues["trace_version"].fill_null(DEFAULT_TRACE_VERSION),
    }
    dialogue_row, ok = turns["dialogue_row"], turns["ok"].to_numpy()
    columns: dict[str, Any] = {
        **{name: of[dialogue_row] for name, of in places.items()},
        "turn_pair_id": turns["turn_pair_id"],
        **score_memory_keys(frames),
        **score_risk(frames, replies, lexicon),
        **score_compliance(frames, replies, lexicon),
        **score_rubric(frames, replies, lexicon),
        "constraint_contradiction": find_contradictions(frames, replies, lexicon),
        "eligible_m2": np.zeros(turns.height, np.bool_),
        "eligible_m4": ok,
    }
    for metric, required in (("m1", "n_keys"), ("m3", "n_risks"), ("m5", "n_elements")):
        columns[f"eligible_{metric}"] = ok & (columns[required] > 0)
    unscored = {"judge_score_1_5": columns["judge_score_1_5"].is_null().to_numpy()}
    columns["null_reasons"] = null_reasons(unscored, "not_applicable", turns.height)
    scored = pl.DataFrame({name: columns[name] for name in TURNS.schema})
    profiles = score_profiles(frames, replies, lexicon)
    counts = count_turns(scored, dialogue_row.to_numpy(), dialogues.height)
    return {"turns": scored, "dialogues": _score_dialogues(dialogues, places, counts, profiles)}


def _score_dialogues(
    dialogues: pl.DataFrame,
    places: Mapping[str, pl.Series],
    counts: pl.DataFrame,
    profiles: Mapping[str, Reals],
) -> pl.DataFrame:
    ratios, valid = ratios_of(counts), dialogues["valid"].to_numpy()
    eligible = valid & dialogues["has_profile"].to_numpy()
    causes: list[tuple[str, NullReason, Mask]] = [
        *((of.id, "not_applicable", counts[of.denominator or ""].to_numpy() == 0) for of in RATIOS),
        *((name, "not_applicable", ~valid) for name in profiles),
        *((name, "missing_input", valid & ~eligible) for name in profiles),
    ]
    columns: dict[str, Any] = {
        **dialogues.to_dict(),
        **places,
        "eligible_m2": eligible,
        **counts.to_dict(),
        **ratios.to_dict(),
        **{name: where(eligible, scores) for name, scores in profiles.items()},
        "null_reasons": all_null_reasons(causes, dialogues.height),
    }
    return pl.DataFrame({name: columns[name] for name in DIALOGUES.schema})


def count_turns(turns: pl.DataFrame, group: Indices, n_groups: int) -> pl.DataFrame:
    """Sum what the metrics count over the turns of each group.

    Parameters
    ----------
    turns
        The columns of the table ``turns``.
    group
        The group of each turn, int64 (turns,).
    n_groups
        How many groups there are.

    Returns
    -------
    pl.DataFrame
        A row a group; sums of judge scores add in order of the turns.
    """
    values = turns.select(
        value.cast(pl.Float64).alias(name) for name, (_, value) in _COUNTED.items()
    )
    eligible = {
        metric: np.flatnonzero(turns[f"eligible_{metric}"].to_numpy())
        for metric in dict.fromkeys(metric for metric, _ in _COUNTED.values())
    }
    groups = {metric: group[rows] for metric, rows in eligible.items()}
    sums = {
        name: np.bincount(groups[metric], values[name].to_numpy()[eligible[metric]], n_groups)
        for name, (metric, _) in _COUNTED.items()
    }
    # of nothing, numpy's weighted counts are whole numbers
    return pl.DataFrame(
        {
            name: total.astype(np.float64 if name == "judge_score_sum" else np.int64)
            for name, total in sums.items()
        }
    )


_N_KEYS, _N_KEY_HITS = pl.col("key_hit_flags").list.len(), pl.col("key_hit_flags").list.sum()
_N_RISKS, _N_RISK_HITS = pl.col("risk_required_tags").list.len(), pl.col("risk_tag_hits")
_SOURCE_HITS = pl.col("m1_source_hits").struct
_COMPLIANCE = pl.col("pred_compliance_label")
_COUNTED: Mapping[str, tuple[str, pl.Expr]] = {
    "m1_turns": ("m1", pl.lit(1)),
    "required_key_total": ("m1", _N_KEYS),
    "required_key_hit_total": ("m1", _N_KEY_HITS),
    "strict_key_turns": ("m1", _N_KEY_HITS == _N_KEYS),
    "contradiction_turns": ("m1", pl.col("constraint_contradiction")),
    "short_term_hit_total": ("m1", _SOURCE_HITS.field("short_term")),
    "long_term_hit_total": ("m1", _SOURCE_HITS.field("long_term")),
    "profile_hit_total": ("m1", _SOURCE_HITS.field("profile")),
    "m3_turns": ("m3", pl.lit(1)),
    "risk_required_total": ("m3", _N_RISKS),
    "risk_hit_total": ("m3", _N_RISK_HITS),
    "strict_risk_turns": ("m3", _N_RISK_HITS >= _N_RISKS),
    "m4_turns": ("m4", pl.lit(1)),
    "compliance_match_count": ("m4", pl.col("gt_compliance_label") == _COMPLIANCE),
    "severe_count": ("m4", _COMPLIANCE == "severe_violation"),
    "forbidden_turns": ("m4", pl.col("forbidden_hits").list.len() > 0),
    "m5_turns": ("m5", pl.lit(1)),
    "rubric_required_total": ("m5", pl.col("rubric_required").list.len()),
    "rubric_hit_total": ("m5", pl.col("rubric_hit_items").list.len()),
    "judge_score_sum": ("m5", pl.col("judge_score_1_5")),
}
"""What is summed over turns, and over those that are eligible for which metric."""


def ratios_of(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the ratios of M1 and M3 to M5, null where their denominator is zero."""
    ratios = {}
    for metric in RATIOS:
        numerator, denominator = (
            counts[name or ""].to_numpy() for name in (metric.numerator, metric.denominator)
        )
        ratios[metric.id] = where(denominator > 0, numerator / np.maximum(denominator, 1))
    return pl.DataFrame(ratios)
