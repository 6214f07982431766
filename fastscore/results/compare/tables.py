"""What a comparison contains: its tables, and what a reader must know beside them."""

from dataclasses import dataclass, field

import polars as pl

from fastscore.suites.declarations import NULL_REASONS, Metric

ALPHA = 0.05

SIDES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "side": pl.String(),
    "metric": pl.String(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    **{f"n_{reason}": pl.Int64() for reason in NULL_REASONS},
    "n_dialogues": pl.Int64(),
    "n_units": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "standard_error": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "reason": pl.String(),
}
"""One row a group, side and metric, over all rows of the side: rows with and without a value, the
dialogues and units with a value, the mean over rows with its 95 % interval, and why it has none."""

DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "a": pl.String(),
    "b": pl.String(),
    "metric": pl.String(),
    "design": pl.Enum(["paired", "independent"]),
    "n_a": pl.Int64(),
    "n_b": pl.Int64(),
    "n_units": pl.Int64(),
    "mean_a": pl.Float64(),
    "mean_b": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "standard_error": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "test": pl.String(),
    "p": pl.Float64(),
    "p_holm": pl.Float64(),
    "family": pl.String(),
    "family_size": pl.Int64(),
    "alpha": pl.Float64(),
    "significant": pl.Boolean(),
    "verdict": pl.String(),
    "effect": pl.Float64(),
    "effect_low": pl.Float64(),
    "effect_high": pl.Float64(),
    "detectable": pl.Float64(),
    "reason": pl.String(),
}
"""One row a group, pair of sides and metric. ``n_a`` and ``n_b`` count dialogues with a value (of
pairs, those with a value on both sides), ``n_units`` the clusters. ``difference`` is ``mean_b -
mean_a`` with its 95 % interval; ``p`` tests that difference, by ``test``; ``p_holm`` is corrected
over the ``family_size`` distinct tests of its ``family``. ``verdict`` is ``better``, ``worse``,
``higher`` or ``lower`` if `significant` and the interval excludes 0, else empty. ``effect`` is
Hedges' g with its interval. ``detectable`` is the smallest true difference that would have been
significant with a probability of .8. ``reason`` tells why there is no interval or no test."""

PUBLISHED_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "a": pl.String(),
    "b": pl.String(),
    "metric": pl.String(),
    "n_a": pl.Int64(),
    "n_b": pl.Int64(),
    "mean_a": pl.Float64(),
    "normal_low_a": pl.Float64(),
    "normal_high_a": pl.Float64(),
    "mean_b": pl.Float64(),
    "normal_low_b": pl.Float64(),
    "normal_high_b": pl.Float64(),
    "cohens_d": pl.Float64(),
    "student_t": pl.Float64(),
    "student_p": pl.Float64(),
    "welch_t": pl.Float64(),
    "welch_p": pl.Float64(),
    "mann_whitney_u": pl.Float64(),
    "mann_whitney_p": pl.Float64(),
}
"""The statistics of the public guest_simulation code and document, one row a group, pair of sides
and metric: independent samples of one value a dialogue. ``normal`` is the mean -/+ 1.96 standard
errors with variances over n, as is the pooled deviation of ``cohens_d``. Nothing is corrected."""

RANKING_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "metric": pl.String(),
    "place": pl.Int64(),
    "system": pl.String(),
    "n_dialogues": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "place_low": pl.Int64(),
    "place_high": pl.Int64(),
    "letters": pl.String(),
    "is_best": pl.Boolean(),
}
"""One row a group, metric and system, best first. Means are over the dialogues of all systems, or
over each system's own if they share none. ``low`` and ``high`` hold for all systems at once with
95 % (Bonferroni). ``place_low`` and ``place_high`` are a 95 % bootstrap interval of the place.
Systems with a letter in common cannot be told apart; ``is_best`` if that letter is the first's."""

REPEATS_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "side": pl.String(),
    "metric": pl.String(),
    "n_dialogues": pl.Int64(),
    "n_repeats": pl.Int64(),
    "mean": pl.Float64(),
    "sd_dialogues": pl.Float64(),
    "sd_repeats": pl.Float64(),
    "sd_residual": pl.Float64(),
}
"""One row a group, side and metric: standard deviations between dialogues, between repeats and of
the rest, by the method of moments of a crossed design; a negative variance counts as 0."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` returns.

    Parameters
    ----------
    suite
        The suite of the runs.
    sides
        In `SIDES_SCHEMA`.
    differences
        In `DIFFERENCES_SCHEMA`.
    ranking
        In `RANKING_SCHEMA`; no row for two systems.
    notes
        What a reader must know: other signatures, dialogues without a partner, too few units.
    unit
        The column whose values are the units: ``dialogue`` or the cluster column.
    alpha
        The level below which a corrected p-value is significant.
    metrics
        What is compared. A judge's scores are among it.
    published
        In `PUBLISHED_SCHEMA`; no row unless they were asked for.
    repeats
        In `REPEATS_SCHEMA`; no row without a column of repeats.

    Examples
    --------
    >>> found = fastscore.compare("run", by="miner_uid", metrics=["average_U_best_early"])
    >>> found.ranking.head(3)
    """

    suite: str
    sides: pl.DataFrame
    differences: pl.DataFrame
    ranking: pl.DataFrame
    notes: tuple[str, ...]
    unit: str = "dialogue"
    alpha: float = ALPHA
    metrics: tuple[Metric, ...] = ()
    published: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PUBLISHED_SCHEMA))
    repeats: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REPEATS_SCHEMA))

    def __str__(self) -> str:
        """Return the headline: what differs and in which direction."""
        from fastscore.results.compare.show import headline

        return headline(self)

    def _repr_html_(self) -> str:
        """Show the differences as a small table, in a notebook."""
        from fastscore.results.compare.show import comparison_html

        return comparison_html(self)
