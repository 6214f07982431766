"""Every table of an analysis, by name."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.ablations import ablations
from fastscore.suites.preference_shift.analysis.construct import construct_validity
from fastscore.suites.preference_shift.analysis.convergent import convergent_validity
from fastscore.suites.preference_shift.analysis.intervals import mean_intervals
from fastscore.suites.preference_shift.analysis.scored import (
    GROUP_SCHEMA,
    SCORE_NAMES,
    SCORE_RANGES,
    Scored,
    by_group,
)
from fastscore.suites.preference_shift.analysis.weights import weight_grid
from fastscore.suites.preference_shift.analysis.windows import window_sweep

COMPONENT_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "score": pl.String(),
    "n": pl.Int64(),
    "n_units": pl.Int64(),
    "n_null": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "sd": pl.Float64(),
    "median": pl.Float64(),
    "reason": pl.String(),
}
"""A score in a group: its mean over the ``n`` conversations of ``n_units`` units that have it, the
mean's 95 % confidence interval, the sample standard deviation and the median. The score is null in
``n_null`` conversations. ``reason`` is why there is no interval."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of an analysis."""

    components: pl.DataFrame
    ablations: pl.DataFrame
    weight_grid: pl.DataFrame
    window_sweep: pl.DataFrame
    convergent_validity: pl.DataFrame
    construct_validity: pl.DataFrame
    top_concepts: pl.DataFrame
    judge_rejects: pl.DataFrame

    def by_name(self) -> Mapping[str, pl.DataFrame]:
        """Return every table under its file's name."""
        return {name: getattr(self, name) for name in self.__slots__}


def make_tables(
    scored: Scored,
    judged: Judged,
    segment_cosines: pl.DataFrame | None,
    frequent: pl.DataFrame,
) -> Tables:
    """Compute every table.

    Parameters
    ----------
    scored, judged
        The run's scores and the judge's.
    segment_cosines
        As in `construct_validity`.
    frequent
        What `top_concepts` returns.
    """
    return Tables(
        components(scored),
        ablations(scored),
        weight_grid(scored),
        window_sweep(scored),
        convergent_validity(scored, judged),
        construct_validity(scored, segment_cosines),
        frequent,
        judged.rejects,
    )


def components(scored: Scored) -> pl.DataFrame:
    """Describe every score of the conversations.

    Returns
    -------
    pl.DataFrame
        In `COMPONENT_SCHEMA`.
    """
    names = list(SCORE_NAMES)
    names.remove("cc_of_concepts")
    rows = []
    for group, frame in by_group(scored.conversations):
        means = mean_intervals(frame, names, SCORE_RANGES)
        for name, mean in zip(names, means, strict=True):
            values = frame[name].drop_nulls().sort()
            row = {
                **group,
                "score": name,
                "n": values.len(),
                "n_units": mean.n_units,
                "n_null": frame.height - values.len(),
                "mean": mean.value,
                "low": mean.low,
                "high": mean.high,
                "sd": values.std(),
                "median": values.median(),
                "reason": mean.reason,
            }
            rows.append(row)
    return pl.DataFrame(rows, schema=COMPONENT_SCHEMA)
