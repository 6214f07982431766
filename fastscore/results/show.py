"""Showing a run to a person, or to a program as JSON: on stdout, where results belong."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table as RichTable

from fastscore.results.runs import Run, open_run
from fastscore.run.layout import REJECTS, SUMMARY_JSON

LABELS_SHOWN = 10
ALL = "all"


def show_outcome(path: Path, *, as_json: bool) -> None:
    """Show a run's summary, where its tables lie and what to type next."""
    run = open_run(path)
    if as_json:
        sys.stdout.write((path / SUMMARY_JSON).read_text(encoding="utf-8"))
        return
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    console.print(f"[bold]{run.manifest.suite}[/bold]  {_counted(run)}")
    show_groups(console, run.summary)
    _show_files(console, run)


def show_groups(console: Console, summary: pl.DataFrame) -> None:
    """Print one table for the whole run and one for every kind of group."""
    for group in summary["group"].unique(maintain_order=True):
        rows = summary.filter(pl.col("group") == group)
        console.print(_group_table(group, rows))
        hidden = rows["value"].n_unique() - LABELS_SHOWN
        if group != ALL and hidden > 0:
            console.print(f"... and {hidden} more, in summary.parquet")


def show_plan(plan: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a run would do."""
    if as_json:
        print(json.dumps(plan, indent=2))
        return
    for name, value in plan.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        print(f"{name.replace('_', ' '):<14} {shown}")


def _group_table(group: str, rows: pl.DataFrame) -> RichTable:
    table = RichTable(title=None if group == ALL else f"by {group}", title_justify="left")
    if group != ALL:
        table.add_column(group)
        shown = rows["value"].unique(maintain_order=True).head(LABELS_SHOWN)
        rows = rows.filter(pl.col("value").is_in(shown.implode()))
    table.add_column("metric")
    for name in ("mean", "sd", "min", "max", "n", "null"):
        table.add_column(name, justify="right")
    numbers = rows.select("value", "metric", "mean", "sd", "minimum", "maximum", "n", "n_null")
    for value, metric, *statistics, n, n_null in numbers.iter_rows():
        label = [] if group == ALL else [value]
        cells = ["-" if number is None else f"{number:.4f}" for number in statistics]
        table.add_row(*label, metric, *cells, f"{n:,}", f"{n_null:,}")
    return table


def _counted(run: Run) -> str:
    counts = run.manifest.counts
    tables = ", ".join(f"{about['rows']:,} {name}" for name, about in run.manifest.tables.items())
    read = f"{counts.get('lines', 0):,} lines of {len(run.manifest.inputs):,} files"
    return f"{tables}; from {read}, {counts.get('rejects', 0):,} rejects"


def _show_files(console: Console, run: Run) -> None:
    first = next(iter(run.manifest.tables))
    console.print(f"tables     {run.path}/{{{','.join(run.manifest.tables)}}}/*.parquet")
    if run.manifest.counts.get("rejects", 0):
        console.print(f"rejects    {run.path / REJECTS}/*.parquet (file, line, reason)")
    console.print(f"signature  {run.signature}", soft_wrap=True)
    console.print(
        f"next       fastscore summary {run.path}\n"
        f"           fastscore metrics {run.manifest.suite}\n"
        f'           python -c "import fastscore; '
        f"print(fastscore.open_run('{run.path}').table('{first}').head().collect())\"",
        soft_wrap=True,
    )
