"""Summaries of parts that are added up apart, the same bytes for any split.

A suite's summary is asked for three times. Each time another function is in the place of
`summarise_metrics`: one that measures some parts, one that adds them up, and at last
`summarise_metrics` itself, with the sums of all parts. The grids are those of all rows, and sums on
them are exact, so no number depends on the split. Rows of one dialogue in several parts are one
unit: partial sums are by the key, and are merged.

What a suite computes beside these sums, it computes from the tables of all parts at last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.suites.base import Suite
from fastscore.suites.columns import collected
from fastscore.suites.declarations import Metric
from fastscore.suites.summary import (
    SUMMARY_SCHEMA,
    Added,
    Summarised,
    summarise_metrics,
    tables_of,
)
from fastscore.suites.sums import Size, grids_of, joint_size, list_reasons, size_of, sum_rows

Tables = Mapping[str, pl.LazyFrame]
Sizes = Sequence[Mapping[str, Size]]
"""The sizes of tables by name, for each time that a suite's summary adds up metrics, in order."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What some parts of a table add up to: see `Added`."""

    sums: pl.DataFrame
    reasons: pl.DataFrame


def measure_parts(suite: Suite, tables: Tables, options: Any) -> Sizes:
    """Return the sizes of the tables of some parts."""
    measured = []

    def aggregate(
        tables: Tables, metrics: Sequence[Metric], groups: Sequence[str], **settings: Any
    ) -> pl.DataFrame:
        summarised = _tables(tables, metrics, groups, settings)
        measured.append(
            {name: size_of(table.rows, table.metrics) for name, table in summarised.items()}
        )
        return pl.DataFrame(schema=SUMMARY_SCHEMA)

    suite.summary(tables, options, aggregate=aggregate)
    return measured


def joint_sizes(measured: Sequence[Sizes]) -> Sizes:
    """Return the sizes of the tables of all parts."""
    return [
        {name: joint_size([size[name] for size in sizes]) for name in sizes[0]}
        for sizes in zip(*measured, strict=True)
    ]


def add_up_parts(
    suite: Suite, tables: Tables, options: Any, sizes: Sizes
) -> Sequence[Mapping[str, Sums]]:
    """Add up the tables of some parts on the grids of tables of these sizes."""
    added: list[Mapping[str, Sums]] = []

    def aggregate(
        tables: Tables, metrics: Sequence[Metric], groups: Sequence[str], **settings: Any
    ) -> pl.DataFrame:
        of_tables = {}
        for name, table in _tables(tables, metrics, groups, settings).items():
            grids = grids_of(sizes[len(added)][name], table.metrics)
            rows = table.rows.select(*table.finest, pl.col(*grids).cast(pl.Float64))
            reasons = list_reasons(table.rows, table.finest_strata, table.metrics)
            # in an order of their own: the same rows give the same bytes
            of_tables[name] = Sums(
                sum_rows(rows, table.finest, grids).sort(table.finest or ":rows"),
                collected(reasons.sort(*table.finest_strata, ":metric", ":reason")),
            )
        added.append(of_tables)
        return pl.DataFrame(schema=SUMMARY_SCHEMA)

    suite.summary(tables, options, aggregate=aggregate)
    return added


def summary_of_sums(
    suite: Suite, tables: Tables, options: Any, added: Sequence[Mapping[str, Added]]
) -> pl.DataFrame:
    """Summarise tables whose parts were added up."""
    remaining = iter(added)

    def aggregate(*given: Any, **settings: Any) -> pl.DataFrame:
        return summarise_metrics(*given, **settings, added=next(remaining))

    return suite.summary(tables, options, aggregate=aggregate)


def _tables(
    tables: Tables, metrics: Sequence[Metric], groups: Sequence[str], settings: Mapping[str, Any]
) -> dict[str, Summarised]:
    return tables_of(tables, metrics, groups, settings.get("key", ("dialogue",)))
