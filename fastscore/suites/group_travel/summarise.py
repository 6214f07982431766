"""The suite's summary: every metric over all and by condition, and what each condition adds."""

from collections.abc import Mapping
from itertools import pairwise

import polars as pl

from fastscore.suites.group_travel.metrics import SUMMARISED
from fastscore.suites.group_travel.metrics.satisfaction import FIRINGS
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.terms import CONDITIONS
from fastscore.suites.summary import SUMMARY_SCHEMA, summarise_metrics

CONDITION, GROUP_TYPE, BOTH = "condition", "group_type", "group_type_and_condition"
DELTA = "condition_delta"


def summarise_dialogues(
    tables: Mapping[str, pl.LazyFrame],
    options: GroupTravel,
    *,
    cluster: str | None = None,
) -> pl.DataFrame:
    """Summarise committed tables.

    Parameters
    ----------
    tables, options
        The tables by name, and the options of the run.
    cluster
        A column of every table: the unit of intervals in place of the dialogue.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by condition; by group type and
        by condition within each (``family/C4``) where that is asked for. Beside M10 stands how
        often each of its channels fires, the sum in ``micro_numerator``. The group
        ``condition_delta`` has in ``mean`` what a condition's mean is above the one before it
        (``C2-C1`` to ``C5-C4``), and nothing else.
    """
    dialogues = tables["dialogues"].with_columns(
        pl.format("{}/{}", GROUP_TYPE, CONDITION).alias(BOTH),
        *(pl.col(channel.id).alias(str(channel.numerator)) for channel in FIRINGS),
    )
    groups = (CONDITION, GROUP_TYPE, BOTH) if options.by_group_type else (CONDITION,)
    summary = summarise_metrics(
        {"dialogues": dialogues}, SUMMARISED, groups, suite="group_travel", cluster=cluster
    )
    return pl.concat([summary, _deltas(summary)])


def _deltas(summary: pl.DataFrame) -> pl.DataFrame:
    """Return the difference of each condition's means and those of the one before."""
    names = list(CONDITIONS)
    pairs = pl.DataFrame(
        {
            "value": [f"{after}-{before}" for before, after in pairwise(names)],
            "before": names[:-1],
            "after": names[1:],
        }
    )
    means = summary.filter(pl.col("group") == CONDITION).select("value", "metric", "mean")
    return (
        pairs.join(means.rename({"value": "after"}), on="after", maintain_order="left_right")
        .join(
            means.rename({"value": "before", "mean": "mean_before"}),
            on=["before", "metric"],
            maintain_order="left",
        )
        .select(
            pl.lit("group_travel").alias("suite"),
            pl.lit(DELTA).alias("group"),
            "value",
            "metric",
            (pl.col("mean") - pl.col("mean_before")).alias("mean"),
        )
        .with_columns(
            pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in SUMMARY_SCHEMA.items()
            if name not in ("suite", "group", "value", "metric", "mean")
        )
        .select(*SUMMARY_SCHEMA)
    )
