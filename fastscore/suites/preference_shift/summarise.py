"""The suite's summary: every metric over all conversations, and by model."""

from collections.abc import Mapping

import polars as pl

from fastscore.suites.preference_shift import schema
from fastscore.suites.preference_shift.metrics import METRICS
from fastscore.suites.preference_shift.options import PreferenceShift
from fastscore.suites.summary import summarise_metrics


def summarise_logs(
    tables: Mapping[str, pl.LazyFrame], options: PreferenceShift, *, cluster: str | None = None
) -> pl.DataFrame:
    """Summarise committed tables.

    Parameters
    ----------
    tables, options
        Each table has the model itself, so nothing is joined by conversation.
    cluster
        A column of every table: the unit of intervals in place of the conversation.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by model.
    """
    return summarise_metrics(
        tables,
        METRICS,
        schema.GROUPS,
        suite="preference_shift",
        key=schema.TURNS.dialogue_key,
        cluster=cluster,
    )
