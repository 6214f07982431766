"""What an analysis reads of a run of preference_shift: frames with one number a conversation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from fastscore.statistics.clustered import LEVEL, Clusters, clustered_mean, hedges_g
from fastscore.statistics.curves import Curve, difference_curve
from fastscore.statistics.significance import Values, holm
from fastscore.suites.preference_shift.metrics import DIALOGUE_METRICS
from fastscore.suites.preference_shift.options import PreferenceShift

Bounds = tuple[float | None, float | None]
ALPHA = 0.05
MEAN_SCHEMA: dict[str, pl.DataType] = {
    "n": pl.Int64(),
    "n_units": pl.Int64(),
    "n_null": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
"""A mean over ``n`` rows of ``n_units`` units with its 95 % interval; ``n_null`` rows have none."""

DIFFERENCE_SCHEMA: dict[str, pl.DataType] = {
    "n_pair_units": pl.Int64(),
    "difference": pl.Float64(),
    "difference_low": pl.Float64(),
    "difference_high": pl.Float64(),
    "effect_g": pl.Float64(),
    "effect_low": pl.Float64(),
    "effect_high": pl.Float64(),
    "standard_error": pl.Float64(),
    "df": pl.Float64(),
    "p": pl.Float64(),
    "family": pl.Int64(),
    "holm_p": pl.Float64(),
    "is_significant": pl.Boolean(),
    "detectable": pl.Float64(),
    "reason": pl.String(),
}
"""A mean difference of pairs over ``n_pair_units`` units: its 95 % interval, Hedges' g with its
interval, and the test that belongs to the interval, by the method of `difference_curve`. ``holm_p``
is p corrected by Holm's procedure for the ``family`` headline tests of the group, null for others.
``is_significant`` is whether it is below 0.05 and the interval excludes 0. ``detectable`` is the
smallest true difference that such data show with a power of 80 %. ``reason`` is why there is no
test."""


def mean_intervals(
    frame: pl.DataFrame, columns: Sequence[str], bounds: Mapping[str, Bounds]
) -> list[dict[str, Any]]:
    """Return the mean of every column over its rows that are not null, with a 95 % interval."""
    found = []
    sums, counts = cluster_sums(frame, columns)
    for k, column in enumerate(columns):
        minimum, maximum = bounds[column]
        mean = clustered_mean(sums[:, k], counts[:, k], minimum=minimum, maximum=maximum)
        found.append(
            {
                "n": frame[column].count(),
                "n_null": frame[column].null_count(),
                "n_units": mean.n_units,
                "mean": mean.value,
                "low": mean.low,
                "high": mean.high,
                "reason": mean.reason,
            }
        )
    return found


def paired_difference(
    frame: pl.DataFrame, first: str, second: str, bounds: Bounds
) -> dict[str, Any]:
    """Compare two columns of one range over the rows that have both, first minus second."""
    sums, counts = cluster_sums(frame.drop_nulls([first, second]), [first, second])
    of_first, of_second = map(Clusters, sums.T, counts.T)
    curve = difference_curve(
        of_second, of_first, shared=True, minimum=bounds[0], maximum=bounds[1], test="t"
    )
    low, high = curve.interval(LEVEL)
    effect, effect_low, effect_high = hedges_g(of_second, of_first, paired=True) or [None] * 3
    return {
        "n_pair_units": curve.n_units,
        "difference": curve.value,
        "difference_low": low,
        "difference_high": high,
        "effect_g": effect,
        "effect_low": effect_low,
        "effect_high": effect_high,
        "standard_error": curve.error,
        "df": curve.degrees,
        "p": curve.p_value(),
        "reason": curve.reason,
        "curve": curve,
    }


def with_corrected(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Correct the headline tests of one group as a family, by Holm's procedure."""
    p_values = [row.get("p") if row.get("is_headline", True) else None for row in rows]
    family = sum(p is not None for p in p_values)
    found = []
    for row, corrected in zip(rows, holm(p_values), strict=True):
        members = None if corrected is None else family
        ends = row.get("difference_low"), row.get("difference_high")
        curve: Curve | None = row.get("curve")
        more = {
            "family": members,
            "holm_p": corrected,
            "is_significant": is_significant(corrected, *ends),
            "detectable": curve and curve.detectable(ALPHA / (members or 1)),
        }
        found.append({name: row[name] for name in row if name != "curve"} | more)
    return found


def is_significant(corrected: float | None, low: float | None, high: float | None) -> bool | None:
    """Tell whether a corrected p is below 0.05 and the interval excludes 0; None without a p."""
    if corrected is None:
        return None
    return corrected < ALPHA and low is not None and high is not None and not low <= 0.0 <= high


def cluster_sums(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[Values, Values]:
    """Return the sums and counts of clusters, each (clusters, columns).

    Values are added in ascending order within a cluster, so that no order of rows shows.
    """
    labels, codes = np.unique(frame["cluster"].to_numpy(), return_inverse=True)
    sums, counts = np.zeros((2, labels.size, len(columns)))
    for k, column in enumerate(columns):
        values = frame[column].cast(pl.Float64)
        numbers, of = values.drop_nulls().to_numpy(), codes[values.is_not_null().to_numpy()]
        order = np.lexsort((numbers, of))
        sums[:, k] = np.bincount(of[order], weights=numbers[order], minlength=labels.size)
        counts[:, k] = np.bincount(of, minlength=labels.size)
    return sums, counts


ALL = "all"
UNIT = "session_id"
MODEL = "model"
GROUP_SCHEMA: dict[str, pl.DataType] = {"group": pl.String(), "value": pl.String()}
"""As in a run's summary: ``all`` with no value, or ``model`` with its name."""

NAME = "identity"
_NAME = pl.col("dialogue").alias(NAME)
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
_RANGES = {metric.id: (metric.scale.minimum, metric.scale.maximum) for metric in DIALOGUE_METRICS}
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
    """The scores of a run."""

    # one row each, in input order: `conversation` (its number from 0), `cluster` (the number of its
    # unit, from 0 in sorted order: by default its session_id, so that the answers of several models
    # in one dialogue are one unit), `identity` (unique in the run), file, line, `dialogue` (the
    # session_id, by which judges name it), model, n_turns, n_shifts, judge (JSON), and its scores
    # by their short names (`SCORE_NAMES`), null as the run has them
    conversations: pl.DataFrame
    # one row each: conversation, cluster, model, turn, segment, is_shift, both_empty, cc, cr, i,
    # tas and `cc_of_concepts`: cc, null where neither side has a concept and cc is 1 by convention
    turns: pl.DataFrame
    # one row each: conversation, cluster, model, turn, in_dialogue, recovered, delay
    shifts: pl.DataFrame
    options: PreferenceShift  # the options that the run was scored with
    signature: str  # the run's signature
    unit: str = UNIT  # the column whose values are the units

    @property
    def models(self) -> list[str]:
        """The models' names, sorted; conversations without one belong to none."""
        return self.conversations["model"].drop_nulls().unique().sort().to_list()


def of_models(scored: Scored, models: list[str]) -> Scored:
    """Return the scores of these models, or all scores if no model is named."""
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
    """Make the frames of an analysis from the suite's tables."""
    label = pl.col(unit).cast(pl.String).fill_null(pl.col("dialogue"))
    conversations = (
        tables["dialogues"]
        .select(
            _NAME,
            "file",
            "line",
            (label.rank("dense") - 1).cast(pl.Int64).alias("cluster"),
            pl.col("session_id").alias("dialogue"),
            "model",
            "n_turns",
            "n_shifts",
            "judge",
            *(pl.col(column).cast(pl.Float64).alias(name) for name, column in _SCORES.items()),
        )
        .collect()
        .with_row_index("conversation")
    )
    labels = conversations.lazy().select(NAME, "conversation", "cluster", "model")
    return Scored(
        conversations,
        _labelled(tables["turns"].select(_NAME, *_TURN_COLUMNS, _CC_OF_CONCEPTS), labels),
        _labelled(tables["shifts"].select(_NAME, *_SHIFT_COLUMNS), labels),
        options,
        signature,
        unit,
    )


def _labelled(rows: pl.LazyFrame, labels: pl.LazyFrame) -> pl.DataFrame:
    joined = rows.join(labels, on=NAME, how="inner").drop(NAME)
    return joined.sort("conversation", "turn").collect()


def turns_around_shifts(
    scored: Scored, before: int, after: int, columns: Sequence[str]
) -> pl.DataFrame:
    """Return the turns around every shift that belong to the segments it parts."""
    turns = scored.turns.select("conversation", "segment", "turn", *columns)
    shifts = (
        scored.shifts.select("conversation", "cluster", "model", pl.col("turn").alias("shift"))
        .join(
            turns.select("conversation", "segment", pl.col("turn").alias("shift")),
            on=["conversation", "shift"],
            how="inner",
            maintain_order="left",
        )
        .with_row_index("shift_row")
    )
    distance = pl.col("turn") - pl.col("shift")
    sides = [
        shifts.with_columns(segment)
        .join(turns, on=["conversation", "segment"], how="inner", maintain_order="left_right")
        .with_columns(distance.alias("distance"))
        .filter(pl.col("distance").is_between(low, high))
        for segment, low, high in (
            (pl.col("segment") - 1, -before, -1),
            (pl.col("segment"), 0, after),
        )
    ]
    return pl.concat(sides)


def by_group(frame: pl.DataFrame) -> Iterator[tuple[dict[str, str | None], pl.DataFrame]]:
    """Yield all rows, then each model's where there are several, with the group's two columns."""
    yield {"group": ALL, "value": None}, frame
    models = frame["model"].drop_nulls().unique().sort()
    if len(models) > 1:
        for model in models:
            yield {"group": MODEL, "value": model}, frame.filter(pl.col("model") == model)
