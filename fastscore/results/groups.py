"""The summary of a run by any of its labels: those of the run's own summary, or others."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fastscore.errors import UsageError, nearest
from fastscore.options import build_options
from fastscore.results.dialogue_sums import LABEL_TABLE, can_label
from fastscore.results.runs import Run
from fastscore.suites.base import Suite
from fastscore.suites.registry import load_suite
from fastscore.suites.summary import ALL

MOST_GROUPS = 100
BETWEEN = " / "


def summarise_by(run: Run, columns: Sequence[str]) -> pl.DataFrame:
    """Summarise a run by one label column, or by each combination of several.

    Parameters
    ----------
    run
        A complete run.
    columns
        Columns of its table ``dialogues`` that name things. Rows in which one of them is null are
        in no group.

    Returns
    -------
    pl.DataFrame
        In the schema of the summary; ``group`` is the columns' names, ``value`` their values.
        Each value's rows are what the suite's own summary says of those dialogues alone.

    Raises
    ------
    UsageError
        No such column, or more than `MOST_GROUPS` values.
    """
    columns = list(dict.fromkeys(columns))
    summary = run.summary
    if len(columns) == 1 and columns[0] in set(summary["group"]) - {ALL}:
        return summary.filter(pl.col("group") == columns[0])
    dialogues = run.table(LABEL_TABLE)
    schema = dialogues.collect_schema()
    known = [name for name, dtype in schema.items() if can_label(dtype)]
    for column in columns:
        if column not in known:
            raise UsageError(
                f"{run.path}: table {LABEL_TABLE!r} has no labels {column!r}.",
                nearest(column, _likely(known, summary, schema)),
            )
    levels = dialogues.select(columns).drop_nulls().unique().sort(columns).collect()
    if levels.height > MOST_GROUPS:
        raise UsageError(
            f"{run.path}: {BETWEEN.join(columns)} has {levels.height:,} values, expected at most "
            f"{MOST_GROUPS}."
        )
    if levels.is_empty():
        raise UsageError(f"{run.path}: no dialogue has a {BETWEEN.join(columns)}.")
    suite = load_suite(run.manifest.suite)
    options = build_options(suite.options, run.manifest.options)
    parts = [
        suite.summarise(_tables_of(run, suite, level), options)
        .filter(pl.col("group") == ALL)
        .with_columns(
            pl.lit(BETWEEN.join(columns)).alias("group"),
            pl.lit(BETWEEN.join(str(value) for value in level.values())).alias("value"),
        )
        for level in levels.iter_rows(named=True)
    ]
    return pl.concat(parts)


def _likely(known: Sequence[str], summary: pl.DataFrame, schema: pl.Schema) -> list[str]:
    """Return the labels to suggest: those of the summary, and what is no count."""
    groups = set(summary["group"])
    return [name for name in known if name in groups or not schema[name].is_integer()]


def _tables_of(run: Run, suite: Suite, level: Mapping[str, Any]) -> dict[str, pl.LazyFrame]:
    """Keep the rows of the dialogues that have these labels."""
    chosen = run.table(LABEL_TABLE).filter(
        *(pl.col(column).eq(pl.lit(value)) for column, value in level.items())
    )
    keys = {table.name: table.dialogue_key for table in suite.tables}
    return {
        name: chosen
        if name == LABEL_TABLE
        else table.join(chosen, on=keys[name], how="semi", nulls_equal=True)
        for name, table in run.tables.items()
    }
