"""Suite ``turn_length``: how many words a turn has. A log is JSON Lines of dialogue and text."""

from dataclasses import dataclass

import polars as pl

import fastscore
from fastscore.settings.options import option

WORDS = {"range": (0, None), "better": "neither", "formula": "mean of words over turns"}


@dataclass(frozen=True, kw_only=True)
class TurnLength:
    """The suite's one option."""

    suite = "turn_length"
    shortest: int = option(1, help="The fewest letters of a word.", minimum=1, unit="letters")


@fastscore.suite(columns={"text": str}, metrics={"words": WORDS}, options=TurnLength)
def turn_length(rows: pl.LazyFrame, options: TurnLength) -> pl.LazyFrame:
    """How many words a turn has."""
    words = pl.col("text").str.count_matches(rf"\S{{{options.shortest},}}")
    return rows.group_by("dialogue_row").agg(words=words.mean())
