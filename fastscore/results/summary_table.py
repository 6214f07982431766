"""A summary as tables for people and as data for programs: a row a metric, a column a group."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.errors import UsageError, counted, did_you_mean
from fastscore.results.metric_text import (
    NONE,
    REASONS,
    Record,
    decimals_for,
    interval_text,
    number_text,
    reading_of,
    under_headings,
)
from fastscore.results.runs import defined_parts
from fastscore.statistics.clustered import LEAST_UNITS
from fastscore.suites.base import Suite, headline_metrics
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric
from fastscore.suites.summary import overall_rows
from fastscore.suites.sums import BETWEEN, Part
from fastscore.terminal.grids import Column, Grid, column_of, html_table

if TYPE_CHECKING:
    from fastscore.results.runs import Run

ARROWS = {"higher": "↑", "lower": "↓", "neither": " "}
MOST_COLUMNS, MOST_OF_ONE_METRIC = 8, 3
INTERVAL_HEADER = "mean [95 % CI]"
DIALOGUES = "dialogues"
"""What units are called that are a dialogue each."""


def unit_name(suite: Suite, cluster: str | None = None) -> str:
    """Return what the units of intervals are called: those of the design, or of other columns."""
    unit = BETWEEN.join(suite.design.clustered_by(cluster).unit)
    return DIALOGUES if unit == "dialogue" else unit


def choose_metrics(
    suite: Suite, summary: pl.DataFrame, ids: Sequence[str], *, everything: bool
) -> list[str]:
    """Choose what to show: what is named, or all but parts, those of dialogues first."""
    present = summary["metric"].unique(maintain_order=True).to_list()
    for metric in ids:
        if metric not in present:
            raise UsageError(
                f"The summary has no metric {metric!r}.", did_you_mean(metric, present)
            )
    declared = suite.metric_by_id
    if not ids:
        ids = [
            id for id in present if everything or (id in declared and declared[id].role != "part")
        ]
    tables = [table.name for table in reversed(suite.tables)]
    return sorted(ids, key=lambda id: tables.index(_table_of(suite, id)))


def whole_grid(suite: Suite, rows: Sequence[Record], *, everything: bool, unit: str) -> Grid:
    """Lay out rows of the summary of the whole run; `unit` names the units of the intervals.

    A row that is ``where`` not all rows of a metric are says so beside its id.
    """
    records, headings = _by_table(suite, rows)
    declared = suite.metric_by_id
    column = partial(column_of, records)
    columns = name_columns(records, declared, headings, drop=-4)
    columns.append(column(INTERVAL_HEADER, partial(_mean, unit=unit)))
    if any(record.get("micro") is not None for record in records):
        columns.append(column("micro", partial(_number, name="micro"), drop=0))
    if everything:
        for place, name in enumerate(("sd", "minimum", "maximum")):
            columns.append(column(name, partial(_number, name=name), drop=place - 3))

    def reading(record: Record) -> str:
        metric = declared.get(record["metric"])
        ends = record["mean"], record["ci_low"], record["ci_high"]
        return (metric and reading_of(*ends, metric.scale.bands)) or ""

    if any(declared[row["metric"]].scale.bands for row in rows if row["metric"] in declared):
        columns.append(column("reading", reading, right=False, drop=3))
    if any(row["n"] != row["n_units"] for row in rows):
        columns.append(column("n", lambda record: f"{record['n']:,}", drop=2))
    columns.append(column(_header(unit), lambda record: f"{record['n_units']:,}", drop=4))
    if any(row["n_null"] for row in rows):
        columns.append(column("null", _nulls, right=False))
    return Grid("", tuple(columns), frozenset(headings))


def groups_grid(suite: Suite, groups: pl.DataFrame, ids: Sequence[str], *, unit: str) -> Grid:
    """Lay out the means of metrics side by side for every value of a label.

    More than `MOST_COLUMNS` values are rows, with a column for each metric. Of one metric more than
    `MOST_OF_ONE_METRIC` are.
    """
    name = groups["group"][0]
    by_value: dict[Any, dict[str, Record]] = {}
    for record in groups.iter_rows(named=True):
        by_value.setdefault(record["value"], {})[record["metric"]] = record
    rows, headings = _by_table(suite, [{"metric": id} for id in ids])
    decimals = {
        id: decimals_for(records.get(id, {}).get("mean") for records in by_value.values())
        for id in ids
    }
    cells_by_value = {
        str(value): tuple(
            _group_cell(records.get(row["metric"], {}), decimals[row["metric"]])
            if row
            else _size(records, ids, suite, headings[place])
            for place, row in enumerate(rows)
        )
        for value, records in by_value.items()
    }
    if len(by_value) > (MOST_COLUMNS if len(ids) > 1 else MOST_OF_ONE_METRIC):
        columns = [Column(name, tuple(cells_by_value), right=False)]
        for place, cells in enumerate(zip(*cells_by_value.values(), strict=True)):
            metric = suite.metric_by_id.get(rows[place].get("metric", ""))
            arrow = ARROWS[metric.scale.better] if metric else ""
            header = headings.get(place) or f"{rows[place]['metric']} {arrow}".rstrip()
            columns.append(Column(header, cells, group=True))
        headings = {}
    else:
        columns = name_columns(rows, suite.metric_by_id, headings, drop=-4)
        columns += [Column(*each, group=True) for each in cells_by_value.items()]
    about = f"{INTERVAL_HEADER} with {LEAST_UNITS} or more units ({unit}), (n) if values are null"
    return Grid(f"by {name}: {about}", tuple(columns), frozenset(headings))


def summary_records(suite: Suite, summary: pl.DataFrame, ids: Sequence[str]) -> pl.DataFrame:
    """Return the rows of a summary with each metric's name, direction and unit beside its id."""
    metric, first = pl.col("metric"), ("suite", "group", "value", "metric")
    place = metric.replace_strict({id: place for place, id in enumerate(ids)})
    better = {one.id: one.scale.better for one in suite.metrics}
    unit = {one.id: one.scale.unit for one in suite.metrics}
    return (
        summary.filter(metric.is_in(ids))
        .sort("group", "value", place, maintain_order=True)
        .select(
            *first,
            metric.replace({one.id: one.name for one in suite.metrics}).alias("name"),
            metric.replace_strict(better, default="neither").alias("better"),
            metric.replace_strict(unit, default="1").alias("unit"),
            pl.exclude(*first),
        )
    )


def _table_of(suite: Suite, id: str) -> str:
    metric = suite.metric_by_id.get(id)
    return LABEL_TABLE if metric is None else metric.table


def _by_table(suite: Suite, rows: Sequence[Record]) -> tuple[list[Record], dict[int, str]]:
    """Put rows under the names of their tables, the tables in the order in which they come."""

    def name(row: Record) -> str:
        return f"of {_table_of(suite, row['metric'])}"

    names = list(dict.fromkeys(map(name, rows)))
    return under_headings(sorted(rows, key=lambda row: names.index(name(row))), name)


def name_columns(
    rows: Sequence[Record],
    declared: Mapping[str, Metric],
    headings: Mapping[int, str] = MappingProxyType({}),
    *,
    drop: int,
) -> list[Column]:
    """Lay out the names of rows' metrics, and headings; `drop` is the rank of ids that are long."""
    metrics = [declared.get(row.get("metric", "")) for row in rows]
    ids = [", ".join(filter(None, (row.get("metric"), row.get("where")))) for row in rows]
    names = tuple(
        metric.name if metric else headings.get(place, id)
        for place, (id, metric) in enumerate(zip(ids, metrics, strict=True))
    )
    arrows = tuple(ARROWS[metric.scale.better] if metric else " " for metric in metrics)
    # letters say something beside a name, long ids repeat it
    short = max(map(len, ids), default=0) <= 5
    has_ids = any(metric and metric.name != id for id, metric in zip(ids, metrics, strict=True))
    return [
        *([Column("id", tuple(ids), right=False, drop=1 if short else drop)] if has_ids else []),
        Column("metric", names, right=False, wraps=True),
        Column("", arrows, right=False),
    ]


def _header(unit: str) -> str:
    return "units" if BETWEEN in unit else unit


def _mean(record: Record, unit: str) -> str:
    """Write a mean and its interval, or why it has none."""
    text = _with_interval(record, decimals_for([record["mean"]]))
    is_too_few = record["n"] and record["interval_reason"] == "too_few_units"
    return f"{text} [< {LEAST_UNITS} {_header(unit)}]" if is_too_few else text


def _with_interval(record: Record, decimals: int) -> str:
    text = interval_text(record["mean"], record["ci_low"], record["ci_high"], decimals)
    reason = record["interval_reason"]
    return f"{text} [{REASONS[reason]}]" if reason == "zero_variance" else text


def _group_cell(record: Record, decimals: int) -> str:
    if not record:
        return NONE
    text = _with_interval(record, max(1, decimals - 1))
    if not record.get("n_null"):
        return text
    return f"{text} ({record['n']:,})" if record["n"] else main_reason(record)


def _number(record: Record, name: str) -> str:
    return number_text(record[name], decimals_for([record["mean"]]))


def _nulls(record: Record) -> str:
    if record["n_null"] is None:
        return ""
    return f"{record['n_null']:,} {main_reason(record)}" if record["n_null"] else NONE


def main_reason(record: Record) -> str:
    """Name the reason of most nulls, and that there are others."""
    counts = {reason: record[f"n_{reason}"] or 0 for reason in NULL_REASONS}
    most = max(counts, key=counts.__getitem__)
    others = sum(1 for n in counts.values() if n) > 1
    return f"{most}{' ...' * others}" if counts[most] else "switched off"


def _size(records: Mapping[str, Record], ids: Sequence[str], suite: Suite, heading: str) -> str:
    """Count the rows of a table, and the units that they belong to if those are fewer."""
    of_table = (id for id in ids if id in records and heading == f"of {_table_of(suite, id)}")
    found = [records[id] for id in of_table]
    counts = ("n", "n_fixed", "n_null")
    n_rows = max((sum(one[name] or 0 for name in counts) for one in found), default=0)
    if not n_rows:
        return ""
    clustered = any(one["n"] != one["n_units"] for one in found)
    n_units = max(one["n_units"] or 0 for one in found)
    return f"n {n_rows:,} in {n_units:,}" if clustered else f"n {n_rows:,}"


LINES = 10
WIDTH = 100


def overview(run: "Run") -> str:
    """Say what came out of a run on at most `LINES` lines of at most `WIDTH` characters."""
    header, *rows = _cells(run)
    left = LINES - 4
    n_more = len(rows) - left + 1 if len(rows) > left else 0
    shown = _aligned([header, *(rows[: left - 1] if n_more else rows)], WIDTH - 2)
    if n_more:
        shown.append(f"and {counted(n_more, 'metrics')} more in .summary")
    lines = [_title(run), _counts(run), *(f"  {row}" for row in shown)]
    lines.append(f"signature: {run.signature}")
    lines = [line.rstrip() for line in lines]
    return "\n".join(line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines)


def _aligned(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Align columns, without the full names and then the last ones where all are too wide."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    kept = list(range(len(columns)))
    for dropped in (1, *reversed(range(4, len(columns)))):
        if sum(widths[each] + 2 for each in kept) - 2 > width:
            kept.remove(dropped)
    return ["  ".join(row[each].ljust(widths[each]) for each in kept) for row in rows]


def overview_html(run: "Run") -> str:
    """Return the same as HTML, every metric in a row of a table."""
    from html import escape

    header, *rows = _cells(run)
    return (
        f"<p><strong>{escape(_title(run))}</strong><br>{escape(_counts(run))}</p>"
        f"{html_table(header, rows)}"
        f"<details><summary>signature</summary><code>{escape(run.signature)}</code></details>"
    )


def _cells(run: "Run") -> list[Sequence[str]]:
    """Return a header and rows, headline metrics first, each part of a metric by itself."""
    suite, records = run.suite, overall_rows(run.summary)
    ids = choose_metrics(suite, run.summary, (), everything=False)
    headline = [metric.id for metric in headline_metrics(suite.metrics)]
    ids.sort(key=lambda id: headline.index(id) if id in headline else len(headline))
    rows = rows_of_parts(run, [records[id] for id in ids])
    grid = whole_grid(suite, rows, everything=False, unit=unit_name(suite))
    kept = [row for number, row in enumerate(grid.rows) if number not in grid.headings]
    return [tuple(column.header for column in grid.columns), *kept]


def rows_of_parts(
    run: "Run", rows: Sequence[Mapping[str, Any]], cluster: str | None = None
) -> list[Mapping[str, Any]]:
    """Replace the row of a metric whose definition depends on a label by a row for each part."""
    ids = [row["metric"] for row in rows]
    metrics = [
        one for one in run.suite.metrics if one.id in ids and (one.fixed_where or one.scale.by)
    ]
    parts: dict[str, list[Mapping[str, Any]]] = {}
    for part in defined_parts(run, metrics, cluster):
        if part.where:
            parts.setdefault(part.metric.id, []).append(_part_record(part))
    return [each for row in rows for each in parts.get(row["metric"], [row])]


def _part_record(part: Part) -> dict[str, Any]:
    found = part.estimate
    return {
        "metric": part.metric.id,
        "where": part.where,
        "mean": found.value,
        "ci_low": found.low,
        "ci_high": found.high,
        "interval_reason": found.reason,
        "n": part.n,
        "n_units": found.n_units,
        "n_null": None,  # nulls are of all rows of a metric
        "micro": None,
    }


def _title(run: "Run") -> str:
    name = "Scores" if run.scores is not None else f"Run {run.path}"
    return f"{name} of {run.manifest.suite}"


def _counts(run: "Run") -> str:
    counts = {name: table["rows"] for name, table in run.manifest.tables.items()}
    counts["rejects"] = run.manifest.counts.get("rejects", 0)
    if run.notes:
        counts["notes"] = len(run.notes)
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())
