"""Suite ``turn_length``: how many words a turn has. A log is JSON Lines of dialogue and text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from fastscore.options import check_values
from fastscore.suites import declarations as declared
from fastscore.suites.base import Events
from fastscore.suites.summary import summarise_metrics

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

    shortest: int = declared.option(
        1, help="The fewest letters of a word.", minimum=1, unit="letters"
    )

    def __post_init__(self) -> None:
        check_values(self)


@dataclass(frozen=True, slots=True)
class TurnLengthSuite:
    """Dialogues, by the length of their turns."""

    name: str = "turn_length"
    title: str = "How many words a turn has"
    version: int = 1
    options: type[TurnLength] = TurnLength
    source: declared.Source = SOURCE
    tables: tuple[declared.Table, ...] = (DIALOGUES,)
    metrics: tuple[declared.Metric, ...] = (WORDS,)
    runs_without_embedder: bool = True

    def needs_vectors(self, options: TurnLength) -> bool:
        """Compare nothing by meaning."""
        return False

    def events(self, raw: pl.DataFrame, options: TurnLength) -> Events:
        """Take the rows as they are."""
        named = raw.with_columns(pl.coalesce("dialogue", "file").alias("dialogue"))
        return Events({"turns": named}, declared.empty_rejects())

    def texts(self, events: Events, options: TurnLength) -> pl.Series:
        """Embed nothing."""
        return pl.Series("text", [], dtype=pl.String)

    def score(self, events: Events, vectors: Any, options: TurnLength) -> dict[str, pl.DataFrame]:
        """Count words of at least so many letters; a mean a dialogue, in input order."""
        words = pl.col("text").str.count_matches(rf"\S{{{options.shortest},}}")
        turns = events.frames["turns"].group_by("dialogue", maintain_order=True)
        scored = turns.agg(pl.col("file", "line").first(), words.mean().alias("words"))
        nothing = pl.lit([], dtype=declared.NULL_REASONS_DTYPE).alias("null_reasons")
        return {"dialogues": scored.with_columns(nothing).select(*DIALOGUES.schema)}

    def summarise(
        self,
        tables: Mapping[str, pl.LazyFrame],
        options: TurnLength,
        *,
        cluster: str | None = None,
    ) -> pl.DataFrame:
        """Summarise over all dialogues."""
        return summarise_metrics(tables, self.metrics, (), suite=self.name, cluster=cluster)

    def legacy_files(
        self, tables: Mapping[str, pl.LazyFrame], inputs: tuple[str, ...], options: Any
    ) -> dict[str, bytes]:
        """Write nothing else."""
        return {}


SUITE = TurnLengthSuite()
