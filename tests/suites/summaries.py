"""Summaries of metrics in tables of tests, without a suite of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from fastscore.suites.base import Suite, Summarised
from fastscore.suites.declarations import Design, Metric, Source, Table
from fastscore.suites.summary import summarise


def suite_of(
    metrics: Sequence[Metric], groups: Sequence[str], *, design: Design | None = None, **known: Any
) -> Suite:
    """Return a suite of metrics in tables."""
    asked = Summarised(metrics=metrics, groups=groups, **known)
    names = dict.fromkeys(("dialogues", *(metric.table for metric in metrics)))
    return Suite(
        name="s",
        package=__name__,
        title="t",
        version=1,
        options=object,
        source=Source(columns=()),
        tables=tuple(Table(name=name, grain="row", columns=()) for name in names),
        metrics=tuple(metrics),
        design=replace(design or Design(), groups=tuple(groups)),
        read=lambda raw, options: raw,  # type: ignore[arg-type,return-value]
        score=lambda events, vectors, options: {},
        summarise=lambda options, columns: [asked],
    )


def summarise_metrics(
    tables: Mapping[str, pl.LazyFrame],
    metrics: Sequence[Metric],
    groups: Sequence[str],
    cluster: str | None = None,
    **declared: Any,
) -> pl.DataFrame:
    """Summarise metrics over all rows, and by each label; rows without a name are dialogues."""
    named = {
        name: rows if "dialogue" in rows.collect_schema() else rows.with_row_index("dialogue")
        for name, rows in tables.items()
    }
    return summarise(suite_of(metrics, groups, **declared), named, None, cluster=cluster)
