"""From traces to the tables: turns as the published rows, dialogues as their sums and ratios."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from fastscore.suites.base import Events, NullReason
from fastscore.suites.columns import null_reasons
from fastscore.suites.json_values import Indices, Mask
from fastscore.suites.memory_finance.lexicon import load_lexicon
from fastscore.suites.memory_finance.memory_keys import score_memory_keys
from fastscore.suites.memory_finance.options import MemoryFinanceOptions
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
    PROFILE_METRICS,
    RATIOS,
    TURNS,
)

Frames = Mapping[str, pl.DataFrame]


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
    turns = pl.concat(
        [
            frames["turns"].select("dialogue_row", "turn_pair_id", "ok"),
            score_memory_keys(frames),
            score_risk(frames, replies, lexicon),
            score_compliance(frames, replies, lexicon),
            score_rubric(frames, replies, lexicon),
        ],
        how="horizontal",
    ).with_columns(
        eligible_m1=pl.col("ok") & (pl.col("n_keys") > 0),
        eligible_m2=pl.lit(False),
        eligible_m3=pl.col("ok") & (pl.col("n_risks") > 0),
        eligible_m4=pl.col("ok"),
        eligible_m5=pl.col("ok") & (pl.col("n_elements") > 0),
        constraint_contradiction=pl.Series(find_contradictions(frames, replies, lexicon)),
    )
    places = frames["dialogues"].select(
        "file",
        "line",
        "dialogue",
        pl.col("run_id").fill_null(""),
        pl.col("trace_version").fill_null(DEFAULT_TRACE_VERSION),
    )
    unscored = {"judge_score_1_5": turns["judge_score_1_5"].is_null().to_numpy()}
    return {
        "turns": pl.concat(
            [
                places.select(pl.all().gather(turns["dialogue_row"])),
                turns,
                null_reasons(unscored, "not_applicable", turns.height).to_frame(),
            ],
            how="horizontal",
        ).select(*TURNS.schema),
        "dialogues": _score_dialogues(
            frames, places, turns, score_profiles(frames, replies, lexicon)
        ),
    }


def _score_dialogues(
    frames: Frames, places: pl.DataFrame, turns: pl.DataFrame, profiles: pl.DataFrame
) -> pl.DataFrame:
    dialogues = frames["dialogues"]
    counts = count_turns(turns, turns["dialogue_row"].to_numpy(), dialogues.height)
    ratios = ratios_of(counts)
    eligible = (dialogues["valid"] & dialogues["has_profile"]).to_numpy()
    nothing = pl.lit(None, dtype=pl.Float64)
    profiles = profiles.select(
        pl.when(pl.Series(eligible)).then(pl.all()).otherwise(nothing).name.keep()
    )
    missing = {name: ratios[name].is_null().to_numpy() for name in ratios.columns}
    invalid = ~dialogues["valid"].to_numpy()
    unlabelled = ~eligible & ~invalid
    reasons = pl.concat(
        [
            null_reasons(missing, "not_applicable", dialogues.height).to_frame("ratio"),
            _profile_reasons(invalid, "not_applicable").to_frame("invalid"),
            _profile_reasons(unlabelled, "missing_input").to_frame("unlabelled"),
        ],
        how="horizontal",
    ).select(pl.concat_list("ratio", "invalid", "unlabelled").alias("null_reasons"))
    return pl.concat(
        [
            places,
            dialogues.drop(*places.columns),
            pl.DataFrame({"eligible_m2": eligible}),
            counts,
            ratios,
            profiles,
            reasons,
        ],
        how="horizontal",
    ).select(*DIALOGUES.schema)


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

    def count(rows: pl.Expr, summed: pl.Expr | None = None) -> pl.Series:
        kept = turns.select(
            rows.alias("rows"), (pl.lit(1) if summed is None else summed).alias("n")
        )
        keep = kept["rows"].to_numpy()
        totals = np.bincount(group[keep], weights=kept["n"].to_numpy()[keep], minlength=n_groups)
        # of nothing, numpy's weighted counts are whole numbers
        return pl.Series(totals.astype(np.float64 if kept["n"].dtype.is_float() else np.int64))

    m1, m3, m4, m5 = (pl.col(f"eligible_{metric}") for metric in ("m1", "m3", "m4", "m5"))
    n_keys, n_key_hits = pl.col("key_hit_flags").list.len(), pl.col("key_hit_flags").list.sum()
    n_risks, n_risk_hits = pl.col("risk_required_tags").list.len(), pl.col("risk_tag_hits")
    source = pl.col("m1_source_hits").struct
    return pl.DataFrame(
        {
            "m1_turns": count(m1),
            "required_key_total": count(m1, n_keys),
            "required_key_hit_total": count(m1, n_key_hits),
            "strict_key_turns": count(m1 & (n_key_hits == n_keys)),
            "contradiction_turns": count(m1, pl.col("constraint_contradiction")),
            "short_term_hit_total": count(m1, source.field("short_term")),
            "long_term_hit_total": count(m1, source.field("long_term")),
            "profile_hit_total": count(m1, source.field("profile")),
            "m3_turns": count(m3),
            "risk_required_total": count(m3, n_risks),
            "risk_hit_total": count(m3, n_risk_hits),
            "strict_risk_turns": count(m3 & (n_risk_hits >= n_risks)),
            "m4_turns": count(m4),
            "compliance_match_count": count(
                m4 & (pl.col("pred_compliance_label") == pl.col("gt_compliance_label"))
            ),
            "severe_count": count(m4 & (pl.col("pred_compliance_label") == "severe_violation")),
            "forbidden_turns": count(m4 & (pl.col("forbidden_hits").list.len() > 0)),
            "m5_turns": count(m5),
            "rubric_required_total": count(m5, pl.col("rubric_required").list.len()),
            "rubric_hit_total": count(m5, pl.col("rubric_hit_items").list.len()),
            "judge_score_sum": count(m5, pl.col("judge_score_1_5")),
        }
    )


def ratios_of(counts: pl.DataFrame) -> pl.DataFrame:
    """Return the ratios of M1 and M3 to M5, null where their denominator is zero."""
    return counts.select(
        pl.when(pl.col(metric.denominator or "") > 0)
        .then(pl.col(metric.numerator or "") / pl.col(metric.denominator or ""))
        .alias(metric.id)
        for metric in RATIOS
    )


def _profile_reasons(rows: Mask, reason: NullReason) -> pl.Series:
    return null_reasons({metric.id: rows for metric in PROFILE_METRICS}, reason, len(rows))
