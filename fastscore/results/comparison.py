"""What a comparison found: the sides, their differences, and what a reader must know."""

from dataclasses import dataclass

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
    "mean": pl.Float64(),
    "n_dialogues": pl.Int64(),
    "dialogue_mean": pl.Float64(),
    "t_low": pl.Float64(),
    "t_high": pl.Float64(),
    "normal_low": pl.Float64(),
    "normal_high": pl.Float64(),
}
"""One row a group, side and metric: rows with and without a value and their mean; dialogues with a
value, the mean of their means and its 95 % intervals (t, and 1.96 standard errors)."""

DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "a": pl.String(),
    "b": pl.String(),
    "metric": pl.String(),
    "design": pl.Enum(["paired", "independent"]),
    "n_a": pl.Int64(),
    "n_b": pl.Int64(),
    "mean_a": pl.Float64(),
    "mean_b": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "effect": pl.Float64(),
    "effect_unsigned": pl.Float64(),
    "alpha": pl.Float64(),
    "t": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "t_p": pl.Float64(),
    "t_p_holm": pl.Float64(),
    "t_significant": pl.Boolean(),
    "rank": pl.Float64(),
    "rank_p": pl.Float64(),
    "rank_p_holm": pl.Float64(),
    "rank_significant": pl.Boolean(),
    "reason": pl.String(),
}
"""One row a group, pair of sides, metric and design. ``n_a`` and ``n_b`` count dialogues with a
value (in the paired design the pairs, twice); ``low`` and ``high`` bound the difference of means.
``effect`` is Cohen's d_z of pairs or d of independent samples, ``effect_unsigned`` the same without
its sign; ``t`` is the paired or Welch's test (published statistics: Student's), ``rank`` Wilcoxon's
signed ranks or Mann and Whitney's U; ``_holm`` corrects over all rows of one design, and is
``_significant`` below ``alpha``. ``reason`` says why a number is null."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found.

    Parameters
    ----------
    suite
        The suite of the runs.
    sides
        In `SIDES_SCHEMA`.
    differences
        In `DIFFERENCES_SCHEMA`.
    notes
        What a reader must know: other signatures, dialogues of several rows, and those without a
        partner or a label.
    published_statistics
        Whether independent samples went by Student's t and variances over n.
    alpha
        The level below which a corrected p-value is significant.
    judge_metrics
        The judge's scores among the metrics.
    """

    suite: str
    sides: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]
    published_statistics: bool = False
    alpha: float = ALPHA
    judge_metrics: tuple[Metric, ...] = ()

    def __repr__(self) -> str:
        from fastscore.results.show_comparison import headline

        return f"Comparison of {self.suite}: {headline(self)}"

    def _repr_html_(self) -> str:
        """Show the differences as a small table, in a notebook."""
        from fastscore.results.show_comparison import comparison_html

        return comparison_html(self)
