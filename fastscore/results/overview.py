"""What came out, on ten lines or as a small table of a notebook."""

from collections.abc import Mapping, Sequence
from html import escape

import polars as pl

from fastscore.results.defined_rows import Part, defined_parts
from fastscore.results.dialogue_sums import LABEL_TABLE
from fastscore.results.number_text import counted, estimate_text
from fastscore.results.summary_table import (
    DIALOGUES,
    INTERVAL_HEADER,
    choose_metrics,
    whole_grid,
)
from fastscore.suites.base import Suite
from fastscore.suites.families import headline_metrics

LINES = 10
WIDTH = 100


def overview(
    title: str,
    suite: Suite,
    summary: pl.DataFrame,
    tables: Mapping[str, pl.LazyFrame],
    counts: Mapping[str, int],
    signature: str,
) -> str:
    """Say what came out on at most `LINES` lines of at most `WIDTH` characters.

    Parameters
    ----------
    title
        What is told of.
    suite
        What scored it.
    summary
        Its summary.
    tables
        Its tables by name: read if a definition fixes the value of a metric in some rows, or has
        several scales. Such a metric is shown over the other rows, or by scale.
    counts
        The number of rows by table, and of rejects.
    signature
        The line that pins the numbers.
    """
    cells = _cells(suite, summary, tables)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in cells
    ]
    left = LINES - 3
    more = [f"and {counted(len(rows) - left + 1, 'metrics')} more in .summary"]
    shown = rows if len(rows) <= left else [*rows[: left - 1], *more]
    lines = [title, _counts(counts), *(f"  {row}" for row in shown), f"signature: {signature}"]
    return "\n".join(_cut(line.rstrip()) for line in lines)


def overview_html(
    title: str,
    suite: Suite,
    summary: pl.DataFrame,
    tables: Mapping[str, pl.LazyFrame],
    counts: Mapping[str, int],
    signature: str,
) -> str:
    """Return the same as HTML, every metric in a row of a table; arguments as `overview`."""
    header, *rows = _cells(suite, summary, tables)
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<p><strong>{escape(title)}</strong><br>{escape(_counts(counts))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<details><summary>signature</summary><code>{escape(signature)}</code></details>"
    )


def _cells(
    suite: Suite, summary: pl.DataFrame, tables: Mapping[str, pl.LazyFrame]
) -> list[Sequence[str]]:
    """Return a header and rows, headline metrics first."""
    ids = choose_metrics(suite, summary, (), everything=False)
    headline = [metric.id for metric in headline_metrics(suite.metrics)]
    ids.sort(key=lambda id: headline.index(id) if id in headline else len(headline))
    grid = whole_grid(suite, summary, ids, everything=False)
    rows = zip(*(column.cells for column in grid.columns), strict=True)
    kept = [row for number, row in enumerate(rows) if number not in grid.headings]
    header = tuple(column.header for column in grid.columns)
    parts = _split_parts(suite, summary, tables, ids)
    return [
        header,
        *(
            line
            for row in kept
            for line in ([_of_part(header, row, part) for part in parts.get(row[0], ())] or [row])
        ),
    ]


def _split_parts(
    suite: Suite, summary: pl.DataFrame, tables: Mapping[str, pl.LazyFrame], ids: Sequence[str]
) -> dict[str, list[Part]]:
    """Return the parts of metrics that do not have all rows in one."""
    metrics = [one for one in suite.metrics if one.id in ids and (one.fixed_where or one.scale_by)]
    if not metrics:
        return {}
    columns = tables[LABEL_TABLE].collect_schema().names()
    labels = [name for name in summary["group"].unique(maintain_order=True) if name in columns]
    parts: dict[str, list[Part]] = {}
    for part in defined_parts(suite, tables, metrics, labels=labels):
        if part.where:
            parts.setdefault(part.metric.id, []).append(part)
    return parts


def _of_part(header: Sequence[str], row: Sequence[str], part: Part) -> Sequence[str]:
    """Write the row of a part: its name says which rows it is of."""
    estimate = part.estimate
    own = {
        "id": row[0],
        "metric": f"{part.metric.name} ({part.where})",
        "": row[header.index("")],
        INTERVAL_HEADER: estimate_text(estimate),
        "n": f"{int(part.units['n'].sum()):,}",
        DIALOGUES: f"{estimate.n_units:,}",
    }
    return tuple(own.get(name, "") for name in header)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
