"""Showing a run to a person, or to a program as JSON: on stdout, where results belong."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.results.defined_rows import summarise_defined
from fastscore.results.headlines import baseline_grid, baseline_records, read_headlines
from fastscore.results.number_text import counted, write_csv
from fastscore.results.runs import Run, open_run
from fastscore.results.summary_table import (
    DIALOGUES,
    choose_metrics,
    groups_grid,
    summary_records,
    whole_grid,
)
from fastscore.run.commit import CUT_TEXTS, REJECTS
from fastscore.suites.base import Suite
from fastscore.suites.summary import ALL
from fastscore.terminal import result_console, write, write_line, write_note
from fastscore.terminal.grids import Column, Format, Grid, latex, markdown, print_grid

if TYPE_CHECKING:
    from rich.console import Console

LABELS_SHOWN = 8


def show_outcome(path: Path, *, as_json: bool) -> None:
    """Show a run's summary, where its tables lie and what to type next."""
    run = open_run(path)
    if as_json:
        write(run.summary_json)
    for note in (*run.manifest.lacking, *run.manifest.notes):
        (write_note if as_json else write_line)(note)
    if as_json:
        return
    show_summary(run)
    _show_files(result_console(), run)


def show_summary(
    run: Run,
    *,
    by: Sequence[str] = (),
    cluster: str | None = None,
    metrics: Sequence[str] = (),
    everything: bool = False,
    average: str = "macro",
    baselines: bool = False,
    format: Format = "table",
) -> None:
    """Show the summary of a run: over all of it and by its first label, or by those named.

    Parameters
    ----------
    run
        A complete run.
    by
        Label columns of its dialogues; groups are the combinations of their values.
    cluster
        A column of its dialogues: the unit of the intervals in place of the dialogue.
    metrics
        Only these; without, all but parts.
    everything
        Parts and counts too, with deviations and ends of the range.
    average
        ``macro`` (means over rows) or ``micro`` (ratios of sums), of groups in a table.
    baselines
        Add the scores of trivial agents on the same log.
    format
        ``csv`` and ``json`` have every statistic unrounded, over all rows. The other formats leave
        out rows in which a definition gives the value.
    """
    if format == "json" and not (by or cluster or metrics or baselines):
        write(run.summary_json)
        return
    suite = run.suite
    summary = run.summarise(by=by, cluster=cluster)
    unit = cluster or DIALOGUES
    ids = choose_metrics(suite, summary, metrics, everything=everything)
    if format in ("csv", "json"):
        records = summary_records(suite, summary, ids)
        content = {"signature": run.signature, "summary": records.to_dicts()}
        if baselines:
            content["baselines"] = baseline_records(read_headlines(run, cluster=cluster))
        write(
            write_csv(records)
            if format == "csv"
            else json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        )
        return
    summary, more = summarise_defined(suite, run.lazy_tables, summary, ids, cluster=cluster)
    grids = [groups_grid(suite, summary, ids, average=average, unit=unit)] if by else []
    if not by:
        whole = whole_grid(suite, summary, ids, everything=everything, unit=unit)
        grids = [whole, *_cases(suite, run)]
        shown, others = _first_groups(suite, summary, ids, average, unit)
        grids += shown
        more += others
    if baselines:
        headlines = read_headlines(run, cluster=cluster)
        more += [f"No trivial baselines: {headlines.lacking}"] if headlines.lacking else []
        grids += [baseline_grid(headlines)] if headlines.baselines else []
    if format == "table":
        console = result_console()
        console.print(_counted(run))
        for grid in grids:
            console.print()
            print_grid(console, grid)
        for line in more:
            console.print(line)
    else:
        lay_out = markdown if format == "markdown" else latex
        write("\n".join(map(lay_out, grids)))


def _first_groups(
    suite: Suite, summary: pl.DataFrame, ids: Sequence[str], average: str, unit: str
) -> tuple[list[Grid], list[str]]:
    """Lay out the first label that tells rows apart, and say which others there are."""
    labels = {
        group: summary.filter(pl.col("group") == group)["value"].n_unique()
        for group in summary["group"].unique(maintain_order=True)
        if group != ALL
    }
    several = [group for group, n in labels.items() if n > 1]
    if not several:
        return [], []
    first = several[0]
    rows = summary.filter(pl.col("group") == first)
    values = rows["value"].unique(maintain_order=True).head(LABELS_SHOWN)
    measured = set(rows.filter(pl.col("mean").is_not_null())["metric"])
    shown = rows.filter(pl.col("value").is_in(values.implode()))
    present = [id for id in ids if id in measured]
    grid = groups_grid(suite, shown, present, average=average, unit=unit)
    notes = []
    if labels[first] > LABELS_SHOWN:
        notes.append(f"{labels[first] - LABELS_SHOWN:,} more values of {first}: --by {first}")
    if several[1:]:
        others = ", ".join(f"{group} ({labels[group]:,})" for group in several[1:])
        notes.append(f"also --by {others}")
    return [grid], notes


def _cases(suite: Suite, run: Run) -> list[Grid]:
    """Lay out what the suite says that it left aside."""
    if suite.cases is None:
        return []
    counts = suite.cases(run.lazy_tables)
    columns = [
        Column(
            name, tuple(str(cell) for cell in counts[name]), right=counts[name].dtype.is_numeric()
        )
        for name in counts.columns
    ]
    return [Grid("cases", tuple(columns))]


def show_plan(plan: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a run would do."""
    if as_json:
        write_line(json.dumps(plan, indent=2))
        return
    for name, value in plan.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        write_line(f"{name.replace('_', ' '):<14} {shown}")


def _counted(run: Run) -> str:
    counts = run.manifest.counts
    tables = ", ".join(
        counted(about["rows"], name) for name, about in reversed(run.manifest.tables.items())
    )
    lines = counted(counts.get("lines", 0), "lines")
    files = counted(len(run.manifest.inputs), "files")
    rejects = counted(counts.get("rejects", 0), "rejects")
    cut = counted(counts[CUT_TEXTS], "texts") if CUT_TEXTS in counts else ""
    more = f", {cut} cut at the model's limit" if cut else ""
    return f"{run.manifest.suite}: {tables}; from {lines} of {files}, {rejects}{more}"


def _show_files(console: "Console", run: Run) -> None:
    first, *others = run.manifest.tables
    # a shell takes no braces around one name
    named = f"{{{','.join((first, *others))}}}" if others else first
    console.print(f"tables     {run.path}/{named}/*.parquet")
    if run.manifest.counts.get("rejects", 0):
        console.print(f"rejects    {run.path / REJECTS}/*.parquet (file, line, reason)")
    if run.manifest.counts.get(CUT_TEXTS, 0):
        console.print(f"cut texts  {run.path / CUT_TEXTS}/*.parquet (text, tokens, limit)")
    console.print(f"signature  {run.signature}", soft_wrap=True)
    code = (
        f"import fastscore; print(fastscore.open_run({json.dumps(str(run.path))})"
        f".tables[{json.dumps(first)}].head())"
    )
    console.print(
        f"next       fastscore summary {shlex.quote(str(run.path))}\n"
        f"           fastscore metrics {run.manifest.suite}\n"
        f"           python -c {shlex.quote(code)}",
        soft_wrap=True,
    )
