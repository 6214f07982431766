"""The suite's summary: every metric over all and by condition, and what each condition adds.

Two trivial planners are scored beside it. The first has the run's plan, but quotes every wish word
by word when it presents the plan and in the raw output. A preference with one informative token is
then addressed (M8), and one with two is satisfied by the lexical channel (M10), whatever the places
are. The second synthesises every slot and names a conflict, a reason and a strategy each time,
whatever members want.
"""

from collections.abc import Mapping
from itertools import pairwise

import polars as pl

from fastscore.suites.base import Aggregate
from fastscore.suites.group_travel.metrics import METRICS, SUMMARISED
from fastscore.suites.group_travel.metrics.satisfaction import FIRINGS, LEAST_HITS
from fastscore.suites.group_travel.metrics.sources import PHRASING, QUOTING
from fastscore.suites.group_travel.options import GroupTravel
from fastscore.suites.group_travel.schema import DIALOGUES
from fastscore.suites.group_travel.terms import CONDITIONS
from fastscore.suites.summary import SUMMARY_SCHEMA, summarise_metrics

CONDITION, GROUP_TYPE, BOTH = "condition", "group_type", "group_type_and_condition"
DELTA = "condition_delta"


def summarise_dialogues(
    tables: Mapping[str, pl.LazyFrame],
    options: GroupTravel,
    *,
    cluster: str | None = None,
    aggregate: Aggregate = summarise_metrics,
) -> pl.DataFrame:
    """Summarise committed tables.

    Parameters
    ----------
    tables, options
        The tables by name, and the options of the run.
    cluster
        A column of every table: the unit of intervals in place of the dialogue.
    aggregate
        What adds up metrics.

    Returns
    -------
    pl.DataFrame
        In the schema of `fastscore.suites.summary`, over all and by condition; by group type and
        by condition within each (``family/C4``) where that is asked for. Beside M10 is shown how
        often each of its channels fires, the sum in ``micro_numerator``. The group
        ``condition_delta`` has in ``mean`` what a condition's mean is above the one before it
        (``C2-C1`` to ``C5-C4``), and nothing else.
    """
    dialogues = tables["dialogues"].with_columns(
        pl.format("{}/{}", GROUP_TYPE, CONDITION).alias(BOTH),
        *(pl.col(channel.id).alias(str(channel.numerator)) for channel in FIRINGS),
    )
    groups = (CONDITION, GROUP_TYPE, BOTH) if options.by_group_type else (CONDITION,)
    summary = aggregate(
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


_KEY = list(DIALOGUES.dialogue_key)
_PHRASED, _FROM_PAIRS = (
    tuple(metric.id for metric in METRICS if agent in metric.baselines)
    for agent in (PHRASING, QUOTING)
)


def score_trivial_agents(tables: Mapping[str, pl.LazyFrame], options: GroupTravel) -> pl.DataFrame:
    """Score both planners on the log of these tables.

    Returns
    -------
    pl.DataFrame
        ``agent``, the key of a dialogue, and the metrics that declare a baseline; null where the
        run has no value.
    """
    dialogues = tables["dialogues"].select(*_KEY, *_PHRASED, *_FROM_PAIRS)
    quoted = dialogues.select(*_KEY, *(pl.col(_FROM_PAIRS).name.prefix("run:"),)).join(
        _quote(tables["pairs"]), on=_KEY, how="left", nulls_equal=True
    )
    quoting = quoted.select(
        pl.lit(QUOTING).alias("agent"),
        *_KEY,
        *(pl.when(pl.col(f"run:{id}").is_not_null()).then(id).alias(id) for id in _FROM_PAIRS),
    )
    phrasing = dialogues.select(
        pl.lit(PHRASING).alias("agent"),
        *_KEY,
        *(pl.when(pl.col(id).is_not_null()).then(1.0).alias(id) for id in _PHRASED),
    )
    found = pl.concat([quoting, phrasing], how="diagonal")
    return found.sort("agent", *_KEY).collect()


def _quote(pairs: pl.LazyFrame) -> pl.LazyFrame:
    """Score each dialogue as if all wishes stood in the presentation and in the raw output."""
    n_tokens = pl.col("informative_tokens").list.len()
    is_equal = pl.col("plan_similarity").is_not_null()  # with vectors a quotation is equal
    judged = pairs.with_columns(
        addressed=_or("addressed", (n_tokens > 0) | is_equal),
        satisfied=_or("satisfied", n_tokens >= LEAST_HITS),
    )
    share = pl.col("satisfied").mean()
    members = judged.drop_nulls("satisfied").group_by(*_KEY, "member").agg(share.alias("share"))
    logs = pl.col("share").log().mean().exp()
    welfare = members.group_by(_KEY).agg(
        W1=pl.col("share").mean(),
        W2=pl.col("share").min(),
        W3=pl.when(pl.col("share").min() > 0).then(logs).otherwise(0.0),
        M11=(pl.col("share") == 1.0).mean(),
    )
    addressed = judged.group_by(_KEY).agg(M8=pl.col("addressed").mean())
    return addressed.join(welfare, on=_KEY, how="left", nulls_equal=True)


def _or(judged: str, quoted: pl.Expr) -> pl.Expr:
    """Return whether a preference is met by the run or by quotation; null where it is not asked."""
    return pl.when(pl.col(judged).is_not_null()).then(pl.col(judged) | quoted)
