"""The suite's summary: every metric over all conversations, and by model."""

from collections.abc import Mapping

import polars as pl

from fastscore.suites.preference_shift import schema
from fastscore.suites.summary import summarise_metrics

_KEY = "place"


def summarise_logs(tables: Mapping[str, pl.LazyFrame]) -> pl.DataFrame:
    """Summarise committed tables.

    A conversation is known by its place: session ids repeat from model to model.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by model.
    """
    place = pl.format("{}:{}", "file", "line").alias(_KEY)
    placed = {name: table.with_columns(place) for name, table in tables.items()}
    return summarise_metrics(
        placed, schema.METRICS, schema.GROUPS, suite="preference_shift", key=_KEY
    )
