"""What the command line prints of a run, and of the runs in a folder."""

import dataclasses
import json
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fastscore.errors import FastscoreError, InputError, UsageError, counted
from fastscore.logs.integrity.rejects import describe_reject
from fastscore.results.judged_runs import JUDGEMENTS
from fastscore.results.metric_text import NONE, write_data
from fastscore.results.runs import (
    Run,
    label_of_systems,
    labels_with_values,
    notes_on_rows,
    open_run,
    summarise_run,
)
from fastscore.results.summary_table import (
    choose_metrics,
    groups_grid,
    rows_of_parts,
    summary_records,
    unit_name,
    whole_grid,
)
from fastscore.run.commit import CUT_TEXTS, PARTS_PER_FOLDER, RECEIPTS, REJECTS, Address, Place
from fastscore.run.manifest import MANIFEST_NAME
from fastscore.settings.options import build_options, option_values
from fastscore.suites.base import Suite, headline_metrics
from fastscore.suites.summary import overall_rows
from fastscore.suites.sums import BETWEEN
from fastscore.terminal import plain, result_console, write, write_line, write_note
from fastscore.terminal.grids import Column, Format, Grid, column_of, fit_grid, show_grids

if TYPE_CHECKING:
    from rich.console import Console


LABELS_SHOWN = 8
MICRO = "micro: a ratio of sums over all rows. Long dialogues weigh more than in mean."


def show_outcome(path: Path, *, as_json: bool) -> None:
    """Show a run's summary, where its tables lie and what to type next."""
    run = open_run(path)
    if as_json:
        write(run.summary_json)
        for note in run.notes:
            write_note(note)
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
    repeats: str | None = None,
    format: Format = "table",
) -> None:
    """Show the summary of a run: over all of it and by its first label, or by those named."""
    suite = run.suite
    summary = summarise_run(run, by, cluster)
    unit = unit_name(suite, cluster)
    ids = choose_metrics(suite, summary, metrics, everything=everything)
    records = summary_records(suite, summary, ids)
    if format == "json":  # the rows of summary.json, whatever the groups and the unit
        records = summary.filter(pl.col("metric").is_in(metrics)) if metrics else summary
    content: dict[str, Any] = {"signature": run.signature, "summary": records}
    uneven: list[str] = []
    if repeats:
        from fastscore.results.repeats import passes_grid, run_passes  # late: seldom asked for

        if len(by) > 1:
            raise UsageError(
                f"pass^k is of the values of one label, not of {', '.join(by)}.",
                "Name one column in by, or leave out repeats.",
            )
        label = next(iter(by), None)
        content["pass_k"], uneven = run_passes(
            run, repeats, task=cluster, by=label, metrics=metrics
        )
    if write_data(content, format):
        return
    declared = suite.metric_by_id
    chosen = [declared[id] for id in ids if id in declared]
    more = notes_on_rows(run, chosen)
    if by:
        grids = [groups_grid(suite, summary, ids, unit=unit)]
    else:
        overall = overall_rows(summary)
        rows = [overall[id] for id in ids if id in overall]
        whole = whole_grid(suite, rows, everything=everything, unit=unit)
        grids = [whole, *_cases(suite, run)]
        shown, others = _first_groups(suite, summary, ids, unit)
        grids += shown
        more += others
    more += uneven
    if repeats:
        # a pair of repeats is the task: the column that tells them apart is no part of its name
        tasks = (one for one in suite.design.clustered_by(cluster).unit if one != repeats)
        grids.append(passes_grid(content["pass_k"], BETWEEN.join(tasks)))
    for note in run.notes if format == "table" else ():
        write_line(note)  # unbroken: it may hold what to type
    show_grids(grids, format, _counted(run))
    blocks = [block for grid in grids[:1] for block in fit_grid(grid, result_console().width)]
    if any(column.header == "micro" for block in blocks for column in block.columns):
        more.append(MICRO)
    for line in more if format == "table" else ():
        result_console().print(line)


def summary_grid(
    run: Run, by: str | Sequence[str] = (), cluster: str | None = None, metrics: Sequence[str] = ()
) -> Grid:
    """Lay out the summary of a run as one table: of all of it, or a column for each group."""
    summary = summarise_run(run, by, cluster)
    ids = choose_metrics(run.suite, summary, metrics, everything=False)
    unit = unit_name(run.suite, cluster)
    if by:
        return groups_grid(run.suite, summary, ids, unit=unit)
    overall = overall_rows(summary)
    rows = rows_of_parts(run, [overall[id] for id in ids if id in overall], cluster)
    return whole_grid(run.suite, rows, everything=False, unit=unit)


def _first_groups(
    suite: Suite, summary: pl.DataFrame, ids: Sequence[str], unit: str
) -> tuple[list[Grid], list[str]]:
    """Lay out the first label that tells rows apart, and say which others there are."""
    labels = labels_with_values(summary)
    several = list(labels)
    if not several:
        return [], []
    first = several[0]
    rows = summary.filter(pl.col("group") == first)
    values = rows["value"].unique(maintain_order=True).head(LABELS_SHOWN)
    measured = set(rows.filter(pl.col("mean").is_not_null())["metric"])
    shown = rows.filter(pl.col("value").is_in(values.implode()))
    present = [id for id in ids if id in measured]
    grid = groups_grid(suite, shown, present, unit=unit)
    notes = []
    if labels[first] > LABELS_SHOWN:
        more = labels[first] - LABELS_SHOWN
        notes.append(f"{more:,} more values of {first}: summary by {first} shows them")
    if several[1:]:
        others = ", ".join(f"{group} ({labels[group]:,})" for group in several[1:])
        notes.append(f"also by {others}")
    return [grid], notes


def _cases(suite: Suite, run: Run) -> list[Grid]:
    """Lay out what the suite says that it left aside."""
    if suite.cases is None:
        return []
    counts = suite.cases(run.lazy_tables)
    columns = (
        Column(cells.name, tuple(map(str, cells)), right=cells.dtype.is_numeric())
        for cells in counts.iter_columns()
    )
    return [Grid("cases", tuple(columns))]


def show_plan(plan: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a run would do."""
    if as_json:
        write_line(json.dumps(plan, indent=2))
        return
    for name, value in plan.items():
        if name == "scored_shards" and not value:
            continue  # of a run that is continued
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
    rejects = run.manifest.counts.get("rejects", 0)
    # a shell takes no braces around one name
    named = f"{{{','.join((first, *others))}}}" if others else first
    parts = "*.parquet" if run.manifest.shards <= PARTS_PER_FOLDER else "**/*.parquet"
    console.print(f"tables     {run.path}/{named}/{parts}", soft_wrap=True)
    if rejects:
        console.print(
            f"rejects    {run.path / REJECTS}/{parts} (file, line, reason)", soft_wrap=True
        )
        described = describe_reject(run.first_reject)
        console.print(f"           {plain(described)}", soft_wrap=True)
    if run.manifest.counts.get(CUT_TEXTS, 0):
        console.print(f"cut texts  {run.path / CUT_TEXTS}/{parts} (text, tokens, limit)")
    console.print(f"signature  {run.signature}", soft_wrap=True)
    shown = "rejects" if rejects else f'tables["{first}"].head()'
    path = json.dumps(str(run.path), ensure_ascii=False)
    code = f"import fastscore; print(fastscore.open_run({path}).{shown})"
    place = shlex.quote(str(run.path))
    label = label_of_systems(run)
    following = [
        *([f"fastscore compare {place} --by {shlex.quote(label)}"] if label else []),
        f"fastscore report {place} -o report.html",
        f"fastscore metrics {run.manifest.suite}",
        f"python -c {shlex.quote(code)}",
    ]
    console.print("next       " + "\n           ".join(following), soft_wrap=True)


SCHEMA = {
    "run": pl.String(),
    "suite": pl.String(),
    "options": pl.String(),
    "rows": pl.Int64(),
    "headline": pl.List(pl.Struct({"metric": pl.String(), "mean": pl.Float64()})),
    "finished": pl.Datetime("us", "UTC"),
    "problem": pl.String(),
}
"""A row for each run. ``options`` are those that are not defaults, ``rows`` counts dialogues.
``problem`` is null unless the run is not complete or is damaged: then the rest may be null."""

_MEANS_SHOWN = 3
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))


def list_runs(folder: Place) -> pl.DataFrame:
    """List the runs in a folder and below, the latest first, in `SCHEMA`."""
    if isinstance(folder, Address):
        raise UsageError(
            f"{folder} is an address, and runs are listed in folders.",
            f"Name a run: fastscore summary {folder}/RUN.",
        )
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder.", "Name a folder with runs in it.")
    rows = []
    for place, folders, files in os.walk(folder):
        if MANIFEST_NAME in files and (RECEIPTS in folders or JUDGEMENTS in files):
            folders.clear()
            manifest = Path(place, MANIFEST_NAME)
            rows.append(_row(Path(place), manifest.stat().st_mtime))
    return pl.DataFrame(rows, SCHEMA).sort(
        "finished", "run", descending=[True, False], nulls_last=True
    )


def _row(path: Path, seconds: float) -> dict[str, object]:
    row: dict[str, object] = {"run": str(path), "finished": datetime.fromtimestamp(seconds, UTC)}
    try:
        run = open_run(str(path))
        whole = overall_rows(run.summary)
        return row | {
            "suite": run.manifest.suite,
            "options": _options(run),
            "rows": run.manifest.tables["dialogues"]["rows"],
            "headline": [
                {"metric": one.id, "mean": whole[one.id]["mean"]}
                for one in headline_metrics(run.suite.metrics)
                if one.id in whole and whole[one.id]["mean"] is not None
            ],
        }
    except FastscoreError as error:
        return row | {"problem": error.message}


def _options(run: Run) -> str:
    """Write the options that are not the defaults of the run's profile."""
    declared, given = run.suite.options, run.manifest.options
    decides = {
        field.name: given[field.name]
        for field in dataclasses.fields(declared)
        if field.metadata["required"] or field.name == "profile"
    }
    defaults = option_values(build_options(declared, decides))
    shown = {name: value for name, value in given.items() if value != defaults[name]}
    shown |= {name: value for name, value in decides.items() if value != "default"}
    return ", ".join(f"{name}={value}" for name, value in shown.items())


def runs_grid(runs: pl.DataFrame, folder: Place) -> Grid:
    """Return a table of the runs in a folder, for people."""
    column = partial(column_of, runs.to_dicts())
    columns = (
        column("run", lambda row: os.path.relpath(row["run"], str(folder)), right=False),
        column("suite", lambda row: row["suite"] or NONE, right=False),
        column("rows", lambda row: NONE if row["rows"] is None else f"{row['rows']:,}"),
        column("age", _age, right=False),
        column("headline metrics", _headline_text, right=False, wraps=True),
        column("options", lambda row: row["options"] or NONE, right=False, drop=0),
    )
    return Grid("", columns)


def _age(row: Mapping[str, Any]) -> str:
    """Write how long ago a run was complete, in the largest unit."""
    if row["finished"] is None:
        return NONE
    seconds = time.time() - row["finished"].timestamp()
    size, name = next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])
    return f"{max(0, int(seconds / size))} {name}"


def _headline_text(row: Mapping[str, Any]) -> str:
    """Write the means, or why the run cannot be read."""
    means = [f"{one['metric']} {one['mean']:.3f}" for one in row["headline"] or ()]
    more = f"and {len(means) - _MEANS_SHOWN} more" if len(means) > _MEANS_SHOWN else ""
    return row["problem"] or ", ".join([*means[:_MEANS_SHOWN], *filter(None, [more])]) or NONE
