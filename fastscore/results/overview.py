"""What came out, on ten lines or as a small table of a notebook."""

from collections.abc import Mapping, Sequence
from html import escape

import polars as pl

from fastscore.results.number_text import counted
from fastscore.results.summary_table import choose_metrics, whole_grid
from fastscore.suites.base import Suite
from fastscore.terminal.grids import Grid

LINES = 10
WIDTH = 100


def overview(
    title: str, suite: Suite, summary: pl.DataFrame, counts: Mapping[str, int], signature: str
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
    counts
        The number of rows by table, and of rejects.
    signature
        The line that pins the numbers.
    """
    cells = _cells(_grid(suite, summary))
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
    title: str, suite: Suite, summary: pl.DataFrame, counts: Mapping[str, int], signature: str
) -> str:
    """Return the same as HTML, every metric in a row of a table; arguments as `overview`."""
    header, *rows = _cells(_grid(suite, summary))
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<p><strong>{escape(title)}</strong><br>{escape(_counts(counts))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"<details><summary>signature</summary><code>{escape(signature)}</code></details>"
    )


def _grid(suite: Suite, summary: pl.DataFrame) -> Grid:
    ids = choose_metrics(suite, summary, (), everything=False)
    return whole_grid(suite, summary, ids, everything=False)


def _cells(grid: Grid) -> list[Sequence[str]]:
    """Return a grid's header and rows, without the headings between."""
    rows = zip(*(column.cells for column in grid.columns), strict=True)
    kept = [row for number, row in enumerate(rows) if number not in grid.headings]
    return [tuple(column.header for column in grid.columns), *kept]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"
