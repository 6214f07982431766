"""What is said of slots and plans: the texts of syntheses, of plans, and the lines of plans."""

import numpy as np
import polars as pl

from fastscore.suites.group_travel.plans import Plans
from fastscore.suites.group_travel.terms import PRESENT_PLAN
from fastscore.suites.grouping import factorize, first_of_each, offsets_of, place_in_group, take

MOST_LINES = 400
_LINE_ENDS = r"\r\n|[\r\x0b\x0c\x1c\x1d\x1e\x{85}\x{2028}\x{2029}]"


def synthesis_texts_of(
    synthesis: pl.DataFrame, dialogues: pl.DataFrame, pairs: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Return the texts of the synthesis of each slot that somebody has a preference for.

    ``resolutions`` has the last explanation of a slot. There are none without synthesis.
    """
    enabled = dialogues.filter("enable_synthesis").select("dialogue_row")
    stated = pairs.select("dialogue_row", "slot", "slot_row").unique(maintain_order=True)
    rows = synthesis.join(enabled, on="dialogue_row", how="semi", maintain_order="left")
    rows = rows.join(stated, on=["dialogue_row", "slot"], maintain_order="left")
    texts = (
        pl.concat(
            rows.select("slot_row", pl.col(name).alias("text")).with_row_index("row")
            for name in ("utterance", "explanation")
        )
        .filter(pl.col("text").fill_null("").str.strip_chars() != "")
        .sort("slot_row", "row", maintain_order=True)
        .select("slot_row", "text")
    )
    resolutions = (
        rows.drop_nulls("explanation")
        .group_by("slot_row", maintain_order=True)
        .agg(pl.col("explanation").last().alias("text"))
    )
    return {"synthesis_texts": texts, "resolutions": resolutions}


def plan_texts_of(turns: pl.DataFrame, dialogues: pl.DataFrame, plans: Plans) -> pl.DataFrame:
    """Return what the plan is presented by: presentations, then the planner's raw output."""
    presented = turns.filter(pl.col("kind") == PRESENT_PLAN).select(
        "dialogue_row", pl.col("utterance").alias("text"), pl.lit(False).alias("is_raw")
    )
    raw = dialogues.drop_nulls("plan").select(
        "dialogue_row",
        pl.lit(plans.plans["raw_output"]).gather(pl.col("plan")).alias("text"),
        pl.lit(True).alias("is_raw"),
    )
    return (
        pl.concat([presented, raw])
        .filter(pl.col("text").str.strip_chars() != "")
        .sort("dialogue_row", "is_raw", maintain_order=True)
    )


def plan_lines_of(plan_texts: pl.DataFrame) -> pl.DataFrame:
    """Cut the texts of plans into lines that are not empty, at most `MOST_LINES` a dialogue."""
    codes, texts = factorize(plan_texts["text"])
    lines = (
        texts.str.replace_all(_LINE_ENDS, "\n")
        .str.split("\n")
        .list.eval(pl.element().str.strip_chars().filter(pl.element().str.strip_chars() != ""))
    )
    numbers, distinct_lines = factorize(lines.explode(empty_as_null=False))
    line, offsets = take((numbers, offsets_of(lines.list.len().to_numpy())), codes)
    row = np.repeat(plan_texts["dialogue_row"].to_numpy(), np.diff(offsets))
    kept = np.flatnonzero(place_in_group(row) < MOST_LINES)
    kept = kept[first_of_each(row[kept] * len(distinct_lines) + line[kept])]
    return pl.DataFrame({"dialogue_row": row[kept], "text": distinct_lines.gather(line[kept])})
