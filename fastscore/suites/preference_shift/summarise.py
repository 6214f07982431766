"""The suite's summary: every metric over all conversations, and by model."""

from collections.abc import Mapping

import polars as pl

from fastscore.suites.preference_shift import schema
from fastscore.suites.summary import summarise_metrics

_KEY = "key"


def summarise_logs(tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Summarise committed tables.

    Every table carries the model itself, so nothing is joined by conversation.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by model.
    """
    keyed = {
        name: table.with_columns(pl.col("model").alias(_KEY)) for name, table in tables.items()
    }
    return summarise_metrics(
        keyed, schema.METRICS, schema.GROUPS, suite="preference_shift", key=_KEY
    )
