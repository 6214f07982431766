"""The summary of a run by other labels than its own, or with other units of its intervals."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import polars as pl

from fastscore.errors import UsageError, did_you_mean
from fastscore.options import build_options
from fastscore.results.dialogue_sums import LABEL_TABLE, can_label
from fastscore.results.runs import Run
from fastscore.suites.base import Suite
from fastscore.suites.summary import ALL

MOST_GROUPS = 100
BETWEEN = " / "


def summarise_run(run: Run, by: Sequence[str] = (), cluster: str | None = None) -> pl.DataFrame:
    """Summarise a run by one label column, or by each combination of several.

    Parameters
    ----------
    run
        A complete run.
    by
        Columns of its table ``dialogues`` that name things. Rows in which one of them is null are
        in no group. Empty for the groups of the run's own summary.
    cluster
        A column of ``dialogues`` whose values are the units of the intervals, in place of the
        dialogue. Dialogues without a value are units of their own.

    Returns
    -------
    pl.DataFrame
        In the schema of the summary; ``group`` is the columns' names, ``value`` their values.
        Each value's rows are those of the suite's own summary of these dialogues alone.

    Raises
    ------
    UsageError
        No such column, one without a value, or more than `MOST_GROUPS` values.
    """
    columns = list(dict.fromkeys(by))
    summary = _summarise_groups(run, columns, cluster)
    if columns and summary.is_empty():
        raise UsageError(
            f"{run.path}: no dialogue has a {BETWEEN.join(columns)}.",
            "Choose another column; `fastscore summary RUN` shows groups.",
        )
    return summary


def _summarise_groups(run: Run, columns: Sequence[str], cluster: str | None) -> pl.DataFrame:
    own = run.summary
    if cluster is None and not columns:
        return own
    is_own = len(columns) == 1 and columns[0] in set(own["group"]) - {ALL}
    if cluster is None and is_own:
        return own.filter(pl.col("group") == columns[0])
    for column in (*([] if is_own else columns), *([cluster] if cluster else [])):
        require_label(run, column)
    if not columns or is_own:
        summary = summarise_tables(run, cluster)
        return summary.filter(pl.col("group") == columns[0]) if is_own else summary
    parts = [
        summarise_tables(run, cluster, level)
        .filter(pl.col("group") == ALL)
        .with_columns(
            pl.lit(BETWEEN.join(columns)).alias("group"),
            pl.lit(BETWEEN.join(str(value) for value in level.values())).alias("value"),
        )
        for level in _levels(run, columns)
    ]
    return pl.concat(parts) if parts else own.clear()


def summarise_tables(
    run: Run, cluster: str | None = None, level: Mapping[str, Any] = MappingProxyType({})
) -> pl.DataFrame:
    """Summarise a run's tables, or the rows of the dialogues that have these labels."""
    suite = run.suite
    options = build_options(suite.options, run.manifest.options)
    tables, unit = run.lazy_tables, None
    if cluster:
        unit = f"{cluster}:unit"
        tables = _with_units(run, suite, cluster, unit)
    if level:
        tables = _tables_of(tables, suite, level)
    return suite.summary(tables, options, cluster=unit)


def require_label(run: Run, column: str) -> None:
    """Refuse a column that table ``dialogues`` lacks, or that cannot name groups or units."""
    schema = run.scan(LABEL_TABLE).collect_schema()
    known = [name for name, dtype in schema.items() if can_label(dtype)]
    if column not in known:
        groups = set(run.summary["group"])
        # counts are labels too, but seldom meant
        likely = [name for name in known if name in groups or not schema[name].is_integer()]
        raise UsageError(
            f"{run.path}: table {LABEL_TABLE!r} has no labels {column!r}.",
            did_you_mean(column, likely),
        )


def _levels(run: Run, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the combinations of labels that dialogues have."""
    levels = run.scan(LABEL_TABLE).select(columns).drop_nulls().unique().sort(columns).collect()
    if levels.height > MOST_GROUPS:
        raise UsageError(
            f"{run.path}: {BETWEEN.join(columns)} has {levels.height:,} values, expected at most "
            f"{MOST_GROUPS}."
        )
    return levels.to_dicts()


def _with_units(run: Run, suite: Suite, cluster: str, unit: str) -> dict[str, pl.LazyFrame]:
    """Give every table a column with the unit of each row; a dialogue without one is its own."""
    keys_of = {table.name: list(table.dialogue_key) for table in suite.tables}
    own = pl.concat_str(keys_of[LABEL_TABLE], separator=":", ignore_nulls=True)
    unit_of_row = pl.coalesce(pl.col(cluster).cast(pl.String), own)
    dialogues = run.scan(LABEL_TABLE).with_columns(unit_of_row.alias(unit))
    tables = {LABEL_TABLE: dialogues}
    for name, keys in keys_of.items():
        if name != LABEL_TABLE:
            units = dialogues.select(*keys, unit).unique(keys)
            tables[name] = run.scan(name).join(units, on=keys, how="left", nulls_equal=True)
    return tables


def _tables_of(
    tables: Mapping[str, pl.LazyFrame], suite: Suite, level: Mapping[str, Any]
) -> dict[str, pl.LazyFrame]:
    """Keep the rows of the dialogues that have these labels."""
    chosen = tables[LABEL_TABLE].filter(
        *(pl.col(column).eq(pl.lit(value)) for column, value in level.items())
    )
    keys = {table.name: table.dialogue_key for table in suite.tables}
    return {
        name: chosen
        if name == LABEL_TABLE
        else table.join(chosen, on=keys[name], how="semi", nulls_equal=True)
        for name, table in tables.items()
    }
