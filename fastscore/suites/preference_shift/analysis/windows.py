"""How recovery depends on the window, from the scores of turns alone."""

from typing import Any

import polars as pl

from fastscore.suites.preference_shift.analysis.intervals import mean_intervals
from fastscore.suites.preference_shift.analysis.scored import GROUP_SCHEMA, Scored, by_group
from fastscore.suites.preference_shift.options import PreferenceShift

LONGEST = 10

SWEEP_SCHEMA: dict[str, pl.DataType] = {
    **GROUP_SCHEMA,
    "test": pl.String(),
    "window": pl.Int64(),
    "n_shifts": pl.Int64(),
    "n_units": pl.Int64(),
    "n_recovered": pl.Int64(),
    "rate": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "mean_delay": pl.Float64(),
    "is_own": pl.Boolean(),
}
"""Recovery of a group's shifts in a window: the share of ``n_shifts`` shifts (micro; those alone of
which it is known) that a turn of the window meets the test for, with a 95 % interval over
``n_units`` units, and the mean delay of those. ``test`` is ``run`` (the run's own) or ``cosine``
(CR alone). ``is_own`` marks the run's own window."""


def window_sweep(scored: Scored) -> pl.DataFrame:
    """Compute recovery rate and delay for windows from 1 turn on.

    Parameters
    ----------
    scored
        The run's scores.

    Returns
    -------
    pl.DataFrame
        In `SWEEP_SCHEMA`, for windows up to ten turns, or the run's own if that is longer.
        Shifts beyond the last turn count as not recovered, as in the run; those of which texts
        that are missing in the window leave it unknown do not count.
    """
    options = scored.options
    own = max(1, options.window)
    windows = range(1, max(LONGEST, own) + 1)
    rows: list[dict[str, Any]] = []
    for test in ("run", "cosine"):
        delays = first_recoveries(scored, options, test)
        for group, frame in by_group(delays):
            rows += [
                {**group, "test": test, "is_own": row["window"] == own, **row}
                for row in _sweep(frame, windows)
            ]
    return pl.DataFrame(rows, schema=SWEEP_SCHEMA)


def first_recoveries(scored: Scored, options: PreferenceShift, test: str) -> pl.DataFrame:
    """Return how many turns after each shift a turn first meets the test, whatever the window.

    Returns
    -------
    pl.DataFrame
        conversation, cluster, model, turn, ``delay`` (0 is the shift's own turn; null where no
        later turn of the conversation meets the test) and ``unknown_from``, as many turns after
        the shift the first lacks a text; null where none does.
    """
    met = pl.col("cr") >= options.recovery_cr
    if test == "run":
        by_cc = pl.col("cc") >= options.recovery_cc
        met = by_cc | met if options.recovery == "cc-or-cr" else by_cc
    shifts = scored.shifts.select("conversation", "cluster", "model", "turn").sort("turn")
    for name, is_found in (("delay", met), ("unknown_from", pl.col("cc").is_null())):
        turns = scored.turns.filter(is_found).select(
            "conversation", "turn", pl.col("turn").alias(name)
        )
        shifts = shifts.join_asof(
            turns.sort("turn"),
            on="turn",
            by="conversation",
            strategy="forward",
            check_sortedness=False,
        ).with_columns(pl.col(name) - pl.col("turn"))
    return shifts.sort("conversation", "turn")


def _sweep(frame: pl.DataFrame, windows: range) -> list[dict[str, Any]]:
    is_met = {window: (pl.col("delay") < window).fill_null(False) for window in windows}
    is_unknown = {window: (pl.col("unknown_from") < window).fill_null(False) for window in windows}
    inside = {
        f"{window}": pl.when(is_met[window] | ~is_unknown[window])
        .then(is_met[window])
        .alias(f"{window}")
        for window in windows
    }
    frame = frame.with_columns(inside.values())
    rates = mean_intervals(frame, list(inside), dict.fromkeys(inside, (0.0, 1.0)))
    delays = frame.select(
        pl.col("delay").filter(pl.col("delay") < window).mean().alias(f"{window}")
        for window in windows
    )
    return [
        {
            "window": window,
            "n_shifts": frame[f"{window}"].count(),
            "n_units": rate.n_units,
            "n_recovered": int(frame[f"{window}"].sum()),
            "rate": rate.value,
            "low": rate.low,
            "high": rate.high,
            "mean_delay": delays[f"{window}"].item(),
        }
        for window, rate in zip(windows, rates, strict=True)
    ]
