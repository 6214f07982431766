"""Summaries of a run by other labels or units, and estimates over the rows that are defined."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fastscore.errors import UsageError
from fastscore.results.runs import Run
from fastscore.settings.options import check_arguments
from fastscore.suites.declarations import LABEL_TABLE, Metric
from fastscore.suites.estimates import Part, estimate_metrics
from fastscore.suites.summary import ALL, summarise
from fastscore.suites.sums import BETWEEN, joined_values, require_labels

MOST_GROUPS = 100


def summarise_run(
    run: Run, by: str | Sequence[str] = (), cluster: str | None = None
) -> pl.DataFrame:
    """Summarise a run by one label column, or by each combination of several (`Run.summarise`).

    Rows in which one of them is null are in no group.
    """
    check_arguments(summarise_run, locals())
    named = [name.strip() for name in by.split(",")] if isinstance(by, str) else by
    columns = list(dict.fromkeys(named))
    own = run.summary
    groups = set(own["group"])
    is_own = len(columns) == 1 and columns[0] in groups - {ALL}
    asked = (*(() if is_own else columns), *((cluster,) if cluster else ()))
    require_labels(run.scan(LABEL_TABLE), asked, str(run.path), groups)
    if not columns or is_own:
        summary = (
            summarise(run.suite, run.lazy_tables, run.options, cluster=cluster) if cluster else own
        )
        return summary.filter(group=columns[0]) if is_own else summary
    order = _levels(run, columns)
    found = summarise(run.suite, run.lazy_tables, run.options, by=columns, cluster=cluster)
    place = pl.col("value").replace_strict(order, return_dtype=pl.Int64)
    return found.filter(pl.col("group") != ALL).sort(place, maintain_order=True)


def _levels(run: Run, columns: Sequence[str]) -> dict[str, int]:
    """Return the combinations of labels that dialogues have, as they are written, in order."""
    levels = run.scan(LABEL_TABLE).select(columns).drop_nulls().unique().sort(columns).collect()
    name = BETWEEN.join(columns)
    if levels.is_empty():
        raise UsageError(
            f"{run.path}: no dialogue has a {name}.",
            "Choose another column; `fastscore summary RUN` shows groups.",
        )
    if levels.height > MOST_GROUPS:
        raise UsageError(
            f"{run.path}: {name} has {levels.height:,} values, expected at most {MOST_GROUPS}."
        )
    written = levels.select(joined_values(columns)).to_series()
    return {value: place for place, value in enumerate(written)}


def label_columns(run: Run) -> list[str]:
    """Return the columns of table ``dialogues`` that group the summary of a run."""
    columns = run.scan(LABEL_TABLE).collect_schema().names()
    return [name for name in run.summary["group"].unique(maintain_order=True) if name in columns]


def notes_on_rows(run: Run, metrics: Sequence[Metric]) -> list[str]:
    """Say over which rows metrics are shown; nothing of those that are shown over all."""
    found: dict[str, list[str]] = {}
    for part in defined_parts(run, [one for one in metrics if one.fixed_where or one.scale.by]):
        found.setdefault(part.metric.id, []).append(part.where)
    notes, over = [], dict[str, list[str]]()
    for id, wheres in found.items():
        if len(wheres) > 1:
            by = run.suite.metric(id).scale.by
            notes.append(f"{id}: its definition depends on {by}, so rows are not pooled")
        elif wheres[0]:
            over.setdefault(wheres[0], []).append(id)
    return notes + [
        f"{', '.join(ids)}: the mean is over {where}. In the other rows the definition gives the "
        "value."
        for where, ids in over.items()
    ]


def defined_parts(
    run: Run,
    metrics: Sequence[Metric],
    cluster: str | None = None,
    tables: Mapping[str, pl.LazyFrame] | None = None,
) -> list[Part]:
    """Estimate metrics of a run by `estimate_metrics`, or of tables in the place of its own."""
    tables = run.lazy_tables if tables is None else tables
    how: dict[str, Any] = {"options": run.options, "labels": label_columns(run), "cluster": cluster}
    return estimate_metrics(run.suite, tables, metrics, **how) if metrics else []
