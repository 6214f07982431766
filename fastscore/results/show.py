"""Showing a run to a person, or to a program as JSON: on stdout, where results belong."""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from fastscore.errors import RunError
from fastscore.results.runs import Run, open_run
from fastscore.run.layout import REJECTS, SUMMARY_JSON

LABELS_SHOWN = 10
PIPED_WIDTH = 160
ALL = "all"


def show_outcome(path: Path, *, as_json: bool) -> None:
    """Show a run's summary, where its tables lie and what to type next."""
    run = open_run(path)
    if as_json:
        sys.stdout.write(_summary_json(path))
        return
    console = result_console()
    console.print(f"{run.manifest.suite}: {_counted(run)}")
    show_groups(console, run.summary)
    _show_files(console, run)


def _summary_json(path: Path) -> str:
    try:
        return (path / SUMMARY_JSON).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(
            f"{path / SUMMARY_JSON}: missing or damaged ({error}).",
            "Run its `fastscore score` command again.",
        ) from error


def result_console() -> Console:
    """Return a console on stdout that takes no text of a log for markup."""
    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return _Console(width=width, highlight=False, markup=False)


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Leave a closed pipe to the command line: it is no failed check."""
        raise BrokenPipeError


def show_groups(console: Console, summary: pl.DataFrame) -> None:
    """Print every statistic of the whole run, then the means of every kind of group."""
    console.print(_statistics(summary.filter(pl.col("group") == ALL)))
    for group in summary["group"].unique(maintain_order=True):
        rows = summary.filter(pl.col("group") == group)
        labels = rows["value"].n_unique()
        if group == ALL or labels < 2:
            continue
        console.print(_means(group, rows))
        if labels > LABELS_SHOWN:
            console.print(f"... and {labels - LABELS_SHOWN:,} more, in summary.parquet")


def show_plan(plan: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a run would do."""
    if as_json:
        print(json.dumps(plan, indent=2))
        return
    for name, value in plan.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        print(f"{name.replace('_', ' '):<14} {shown}")


def _statistics(rows: pl.DataFrame) -> RichTable:
    table = RichTable(box=SIMPLE_HEAD)
    table.add_column("metric")
    for name in ("mean", "sd", "min", "max", "n", "null"):
        table.add_column(name, justify="right")
    numbers = rows.select("metric", "mean", "sd", "minimum", "maximum", "n", "n_null")
    for metric, *statistics, n, n_null in numbers.iter_rows():
        table.add_row(metric, *map(number_text, statistics), f"{n:,}", f"{n_null:,}")
    return table


def _means(group: str, rows: pl.DataFrame) -> RichTable:
    measured = rows.filter(pl.col("mean").is_not_null())
    means = measured.pivot("metric", index="value", values="mean").head(LABELS_SHOWN)
    table = RichTable(title=f"means by {group}", title_justify="left", box=SIMPLE_HEAD)
    for name in (group, *means.columns[1:]):
        table.add_column(name, justify="left" if name == group else "right", overflow="fold")
    for value, *numbers in means.iter_rows():
        table.add_row(value, *map(number_text, numbers))
    return table


def number_text(value: float | None) -> str:
    """Write a number to four decimals, a dash for none."""
    return "-" if value is None else f"{value:.4f}"


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
    code = (
        f"import fastscore; print(fastscore.open_run({json.dumps(str(run.path))})"
        f".table({json.dumps(first)}).head().collect())"
    )
    console.print(
        f"next       fastscore summary {shlex.quote(str(run.path))}\n"
        f"           fastscore metrics {run.manifest.suite}\n"
        f"           python -c {shlex.quote(code)}",
        soft_wrap=True,
    )
