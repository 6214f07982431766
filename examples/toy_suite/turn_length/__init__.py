"""Suite ``turn_length``: how many words a turn has. A log is JSON Lines of dialogue and text."""

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from fastscore.options import check_values, option
from fastscore.suites import declarations as declared
from fastscore.suites.base import Events, Suite

WORDS = declared.Metric(
    id="words", name="Words a turn", table="dialogues", formula="mean of words over turns",
    minimum=0.0, maximum=None, better="neither", null_rule="never null",
    source="examples/toy_suite", unit="words",
)  # fmt: skip

SOURCE = declared.Source(
    columns=(
        declared.Column(name="dialogue", kind="text"),
        declared.Column(name="text", kind="text", required=True, needed_by=declared.ALL_METRICS),
    ),
    dialogue_key=("dialogue",),
)
DIALOGUES = declared.Table(
    name="dialogues",
    grain="a dialogue",
    columns=(
        declared.OutputColumn(name="file", dtype=pl.String(), description="Its log."),
        declared.OutputColumn(name="line", dtype=pl.Int64(), description="Its first line."),
        declared.OutputColumn(name="dialogue", dtype=pl.String(), description="Its name."),
        declared.OutputColumn(name="words", dtype=pl.Float64(), description="Mean", metric="words"),
        declared.OutputColumn(
            name="null_reasons", dtype=declared.NULL_REASONS_DTYPE, description="Always empty."
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnLength:
    """The suite's one option."""

    suite: ClassVar[str] = "turn_length"

    shortest: int = option(1, help="The fewest letters of a word.", minimum=1, unit="letters")

    def __post_init__(self) -> None:
        check_values(self)


def read(raw: pl.DataFrame, options: TurnLength) -> Events:
    """Take the rows as they are."""
    named = raw.with_columns(pl.coalesce("dialogue", "file").alias("dialogue"))
    return Events({"turns": named}, declared.empty_rejects())


def score(events: Events, vectors: Any, options: TurnLength) -> dict[str, pl.DataFrame]:
    """Count words of at least so many letters; a mean a dialogue, in input order."""
    words = pl.col("text").str.count_matches(rf"\S{{{options.shortest},}}")
    turns = events.frames["turns"].group_by("dialogue", maintain_order=True)
    scored = turns.agg(pl.col("file", "line").first(), words.mean().alias("words"))
    nothing = pl.lit([], dtype=declared.NULL_REASONS_DTYPE).alias("null_reasons")
    return {"dialogues": scored.with_columns(nothing).select(*DIALOGUES.schema)}


SUITE = Suite(
    name="turn_length",
    package=__name__,
    title="How many words a turn has",
    version=1,
    options=TurnLength,
    source=SOURCE,
    tables=(DIALOGUES,),
    metrics=(WORDS,),
    read=read,
    score=score,
)
