"""From traces to the tables: turns as the published rows, dialogues as their sums and ratios."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import polars.selectors as cs
from fastscore_jit.arrays import Float64Array, Indices, Mask

from fastscore.suites.base import Events
from fastscore.suites.columns import all_null_reasons, filled, keep_where
from fastscore.suites.declarations import NullReason
from fastscore.suites.grouping import counts_of
from fastscore.suites.memory_finance.events import turns_of_status
from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.memory_keys import score_memory_keys
from fastscore.suites.memory_finance.options import MemoryFinance
from fastscore.suites.memory_finance.profile import score_profiles
from fastscore.suites.memory_finance.replies import (
    SEVERE,
    find_contradictions,
    score_compliance,
    score_risk,
    score_rubric,
    search_replies,
)
from fastscore.suites.memory_finance.schema import (
    DEFAULT_TRACE_VERSION,
    DIALOGUES,
    MEMORY_SOURCES,
    RATIOS,
    TURNS,
)

if TYPE_CHECKING:
    from fastscore.vectors.view import VectorView


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
    no_element = columns["n_elements"] == 0
    columns["judge_score_1_5"] = columns["judge_score_1_5"].set(pl.Series(unanswered), None)
    columns["null_reasons"] = all_null_reasons(
        [
            ("judge_score_1_5", "not_applicable", no_element),
            ("judge_score_1_5", "missing_input", ~no_element & unanswered),
        ],
        turns.height,
    )
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
    causes: list[tuple[str, NullReason, Mask]] = [
        *((of.id, "not_applicable", counts[of.denominator or ""] == 0) for of in RATIOS),
        *((name, "not_applicable", ~valid) for name in profiles),
        *((name, "missing_input", valid & ~eligible) for name in profiles),
    ]
    columns: dict[str, Any] = {
        **dialogues.to_dict(),
        **places,
        "eligible_m2": eligible,
        **counts,
        **ratios,
        **{name: keep_where(eligible, scores) for name, scores in profiles.items()},
        "null_reasons": all_null_reasons(causes, dialogues.height),
    }
    return pl.DataFrame({name: columns[name] for name in DIALOGUES.schema})


def count_turns(
    turns: Mapping[str, Any], group: Indices, n_groups: int
) -> dict[str, Indices | Float64Array]:
    """Sum what the metrics count over the turns of each group.

    Parameters
    ----------
    turns
        What `counted` needs of each turn, and which are eligible for which metric.
    group
        The group of each turn, int64 (turns,).
    n_groups
        How many groups there are.

    Returns
    -------
    dict of arrays
        A row a group; sums of judge scores add in order of the turns.
    """
    sums: dict[str, Indices | Float64Array] = {}
    for metric, amounts in counted(turns).items():
        rows = np.flatnonzero(turns[f"eligible_{metric}"])
        groups = group[rows]
        sums[f"{metric}_turns"] = counts_of(groups, n_groups)
        for name, amount in amounts.items():
            total = np.bincount(groups, amount[rows], n_groups)
            # of nothing, numpy's weighted counts are whole numbers
            is_real = name == "judge_score_sum"
            sums[name] = total.astype(np.float64) if is_real else total.astype(np.int64)
    return sums


def counted(turns: Mapping[str, Any]) -> dict[str, dict[str, Float64Array | Indices | Mask]]:
    """Return by metric what is summed over the turns that are eligible for it, besides them.

    Parameters
    ----------
    turns
        Arrays of a number a turn: ``constraint_contradiction``, ``risk_tag_hits`` and what
        `numbers_of_turns` returns.
    """
    n_keys, n_recalled, n_risks = turns["n_keys"], turns["n_recalled"], turns["n_risks"]
    return {
        "m1": {
            "required_key_total": n_keys,
            "required_key_hit_total": n_recalled,
            "strict_key_turns": n_recalled == n_keys,
            "contradiction_turns": turns["constraint_contradiction"],
            **{f"{source}_hit_total": turns[f"n_{source}"] for source in MEMORY_SOURCES},
        },
        "m3": {
            "risk_required_total": n_risks,
            "risk_hit_total": turns["risk_tag_hits"],
            "strict_risk_turns": turns["risk_tag_hits"] >= n_risks,
        },
        "m4": {
            "compliance_match_count": turns["given_compliance"] == turns["found_compliance"],
            "severe_count": turns["found_compliance"] == SEVERE,
            "forbidden_turns": turns["n_forbidden"] > 0,
        },
        "m5": {
            "rubric_required_total": turns["n_elements"],
            "rubric_hit_total": turns["n_explained"],
            "judge_score_sum": turns["judge_score"],
        },
    }


def numbers_of_turns(turns: pl.DataFrame) -> dict[str, Any]:
    """Read what `count_turns` needs from rows of the table ``turns``."""
    numbers = turns.select(
        cs.starts_with("eligible_"),
        "constraint_contradiction",
        "risk_tag_hits",
        n_keys=pl.col("key_hit_flags").list.len(),
        n_recalled=pl.col("key_hit_flags").list.sum(),
        n_risks=pl.col("risk_required_tags").list.len(),
        given_compliance=pl.col("gt_compliance_label").to_physical(),
        found_compliance=pl.col("pred_compliance_label").to_physical(),
        n_forbidden=pl.col("forbidden_hits").list.len(),
        n_elements=pl.col("rubric_required").list.len(),
        n_explained=pl.col("rubric_hit_items").list.len(),
        judge_score=pl.col("judge_score_1_5"),
        **{f"n_{name}": pl.col("m1_source_hits").struct.field(name) for name in MEMORY_SOURCES},
    )
    return {name: numbers[name].to_numpy() for name in numbers.columns}


def ratios_of(counts: Mapping[str, Indices | Float64Array]) -> dict[str, pl.Series]:
    """Return the ratios of M1 and M3 to M5, null where their denominator is zero."""
    ratios = {}
    for metric in RATIOS:
        numerator, denominator = counts[metric.numerator or ""], counts[metric.denominator or ""]
        ratios[metric.id] = keep_where(denominator > 0, numerator / np.maximum(denominator, 1))
    return ratios
