"""What an analysis reads of a run of preference_shift: frames with one number a conversation."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from fastscore.suites.preference_shift.metrics import DIALOGUE_METRICS
from fastscore.suites.preference_shift.options import PreferenceShift

ALL = "all"
UNIT = "dialogue"
MODEL = "model"
GROUP_SCHEMA: dict[str, pl.DataType] = {"group": pl.String(), "value": pl.String()}
"""As in a run's summary: ``all`` with no value, or ``model`` with its name."""

_KEY = ("file", "line")
_TURN_COLUMNS = ("turn", "segment", "is_shift", "both_empty", "cc", "cr", "i", "tas")
_CC_OF_CONCEPTS = pl.when(~pl.col("both_empty")).then("cc").alias("cc_of_concepts")
_SHIFT_COLUMNS = ("turn", "in_dialogue", "recovered", "delay")
_SCORES = {
    "tas": "context_adaptation_score",
    "cc": "cross_coherence",
    "cr": "context_retention",
    "i": "topic_interference",
    "recovery_rate": "topic_recovery_rate",
    "recovery_delay": "avg_recovery_delay",
    "cas": "cas",
    "cas_all": "cas_all",
    "i_around_shifts": "topic_interference_around_shifts",
}
_RANGES = {metric.id: (metric.minimum, metric.maximum) for metric in DIALOGUE_METRICS}
SCORE_RANGES = {name: _RANGES[column] for name, column in _SCORES.items()} | {
    "cc_of_concepts": _RANGES["cross_coherence"]
}
"""The smallest and largest value of a score, None if it has none."""
SCORE_NAMES = {
    "tas": "TAS",
    "cas": "CAS",
    "cas_all": "CAS over all shifts",
    "cc": "CC",
    "cc_of_concepts": "CC with concepts",
    "cr": "CR",
    "i": "I (copying)",
    "i_around_shifts": "I around shifts",
    "recovery_rate": "recovery rate",
    "recovery_delay": "recovery delay",
}
"""How a conversation's scores are called in figures and tables."""


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a run.

    Parameters
    ----------
    conversations
        One row each, in input order: ``conversation`` (its number from 0), ``cluster`` (the number
        of its unit, from 0 in sorted order: by default its dialogue id, so that the answers of
        several models in one dialogue are one unit), file, line, dialogue, model, n_turns,
        n_shifts, judge
        (JSON), and its scores by their short names (`SCORE_NAMES`), null as the run has them.
    turns
        One row each: conversation, cluster, model, turn, segment, is_shift, both_empty,
        cc, cr, i, tas and
        ``cc_of_concepts``: cc, null where neither side has a concept and cc is 1 by convention.
    shifts
        One row each: conversation, cluster, model, turn, in_dialogue, recovered, delay.
    options
        The options that the run was scored with.
    signature
        The run's signature.
    unit
        The column whose values are the units.
    """

    conversations: pl.DataFrame
    turns: pl.DataFrame
    shifts: pl.DataFrame
    options: PreferenceShift
    signature: str
    unit: str = UNIT

    @property
    def models(self) -> list[str]:
        """The models' names, sorted; conversations without one belong to none."""
        return self.conversations["model"].drop_nulls().unique().sort().to_list()


def of_models(scored: Scored, models: list[str]) -> Scored:
    """Return the scores of these models alone; all of them where none is named."""
    if not models:
        return scored
    is_shown = pl.col("model").is_in(models)
    return replace(
        scored,
        conversations=scored.conversations.filter(is_shown),
        turns=scored.turns.filter(is_shown),
        shifts=scored.shifts.filter(is_shown),
    )


def make_scored(
    tables: Mapping[str, pl.LazyFrame],
    options: PreferenceShift,
    signature: str,
    unit: str = UNIT,
) -> Scored:
    """Make the frames of an analysis from the suite's tables.

    Parameters
    ----------
    tables, options, signature
        Of a complete run.
    unit
        A column of table ``dialogues``: conversations with the same value are one unit, and one
        without a value is a unit of its own.
    """
    label = pl.col(unit).cast(pl.String).fill_null(pl.format("{}:{}", *_KEY))
    conversations = (
        tables["dialogues"]
        .select(
            *_KEY,
            (label.rank("dense") - 1).cast(pl.Int64).alias("cluster"),
            "dialogue",
            "model",
            "n_turns",
            "n_shifts",
            "judge",
            *(pl.col(column).cast(pl.Float64).alias(name) for name, column in _SCORES.items()),
        )
        .collect()
        .with_row_index("conversation")
    )
    labels = conversations.lazy().select(*_KEY, "conversation", "cluster", "model")
    return Scored(
        conversations,
        _labelled(tables["turns"].select(*_KEY, *_TURN_COLUMNS, _CC_OF_CONCEPTS), labels),
        _labelled(tables["shifts"].select(*_KEY, *_SHIFT_COLUMNS), labels),
        options,
        signature,
        unit,
    )


def _labelled(rows: pl.LazyFrame, labels: pl.LazyFrame) -> pl.DataFrame:
    joined = rows.join(labels, on=_KEY, how="inner").drop(*_KEY)
    return joined.sort("conversation", "turn").collect()


def by_group(frame: pl.DataFrame) -> Iterator[tuple[dict[str, str | None], pl.DataFrame]]:
    """Yield all rows, then each model's where there are several, with the group's two columns."""
    yield {"group": ALL, "value": None}, frame
    models = frame["model"].drop_nulls().unique().sort().to_list()
    if len(models) > 1:
        parts = frame.partition_by("model", as_dict=True)
        for model in models:
            yield {"group": MODEL, "value": model}, parts[(model,)]
