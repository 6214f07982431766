"""The runs in a folder: a table of them, and a page with links to their reports."""

import dataclasses
import html
import os
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import polars as pl

from fastscore.errors import FastscoreError, InputError
from fastscore.options import build_options, option_values
from fastscore.results.report.write import write_report
from fastscore.results.runs import Run, open_run
from fastscore.run.commit import RECEIPTS, commit_bytes
from fastscore.run.manifest import MANIFEST_NAME
from fastscore.suites.families import headline_metrics
from fastscore.suites.summary import ALL
from fastscore.terminal.grids import Column, Grid

SCHEMA = {
    "run": pl.String(),
    "suite": pl.String(),
    "options": pl.String(),
    "rows": pl.Int64(),
    "headline": pl.List(pl.Struct({"metric": pl.String(), "mean": pl.Float64()})),
    "finished": pl.Datetime("us"),
    "problem": pl.String(),
}
"""A row for each run. ``options`` are those that are not defaults, ``rows`` counts dialogues.
``problem`` is null unless the run is not complete or is damaged: then the rest may be null."""

HEADERS = ("run", "suite", "rows", "age", "headline metrics", "options")
_UNITS = ((86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds"))
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;"
    "max-width:70rem;padding:0 1rem}div{overflow-x:auto}table{border-collapse:collapse}"
    "th,td{padding:.3rem .8rem;border-bottom:1px solid #8886;text-align:left;vertical-align:top}"
)


def list_runs(folder: Path) -> pl.DataFrame:
    """List the runs in a folder and below, the latest first, in the schema `SCHEMA`.

    Raises
    ------
    InputError
        There is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder.", "Name a folder with runs in it.")
    rows = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        if MANIFEST_NAME in files and RECEIPTS in folders:
            folders.clear()
            rows.append(_row(Path(place)))
    return pl.DataFrame(rows, SCHEMA).sort("finished", "run", descending=[True, False])


def _row(path: Path) -> dict[str, object]:
    changed = datetime.fromtimestamp((path / MANIFEST_NAME).stat().st_mtime)
    row: dict[str, object] = {"run": str(path), "finished": changed}
    try:
        run = open_run(path)
        return row | {
            "suite": run.manifest.suite,
            "options": _options(run),
            "rows": run.manifest.tables["dialogues"]["rows"],
            "headline": _headline(run),
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


def _headline(run: Run) -> list[dict[str, object]]:
    ids = [metric.id for metric in headline_metrics(run.suite.metrics)]
    whole = run.summary.filter(pl.col("group") == ALL, pl.col("metric").is_in(ids))
    means = dict(whole.select("metric", "mean").iter_rows())
    return [{"metric": id, "mean": means[id]} for id in ids if means.get(id) is not None]


def runs_grid(runs: pl.DataFrame, folder: Path) -> Grid:
    """Return a table of the runs in a folder, for people."""
    cells = [_cells(row, folder) for row in runs.iter_rows(named=True)]
    return Grid(
        "",
        tuple(
            Column(
                header,
                tuple(row[place] for row in cells),
                right=header == "rows",
                wraps=header == "headline metrics",
                drop=0 if header == "options" else None,
            )
            for place, header in enumerate(HEADERS)
        ),
    )


def _cells(row: dict[str, object], folder: Path) -> Sequence[str]:
    headline, rows = row["headline"], row["rows"]
    shown = [f"{one['metric']} {one['mean']:.3f}" for one in headline or ()]  # type: ignore[attr-defined]
    finished = row["finished"]
    assert isinstance(finished, datetime)
    return (
        os.path.relpath(str(row["run"]), folder),
        str(row["suite"] or "-"),
        "-" if rows is None else f"{rows:,}",
        age_text(time.time() - finished.timestamp()),
        str(row["problem"] or ", ".join(shown) or "-"),
        str(row["options"] or "-"),
    )


def age_text(seconds: float) -> str:
    """Write an age in its largest unit."""
    size, name = next((unit for unit in _UNITS if seconds >= 2 * unit[0]), _UNITS[-1])
    return f"{max(0, int(seconds / size))} {name}"


def write_index(runs: pl.DataFrame, folder: Path, page: Path) -> Path:
    """Write a page that lists runs, and beside it a report of each run that can be read."""
    reports = page.with_name(f"{page.stem}-reports")
    reports.mkdir(parents=True, exist_ok=True)
    rows = []
    for number, row in enumerate(runs.iter_rows(named=True)):
        first, *others = (html.escape(cell) for cell in _cells(row, folder))
        if row["problem"] is None:
            report = reports / f"{number:03}-{Path(row['run']).name}.html"
            write_report([row["run"]], report)
            first = f'<a href="{html.escape(f"{reports.name}/{report.name}")}">{first}</a>'
        rows.append("".join(f"<td>{cell}</td>" for cell in (first, *others)))
    head = "".join(f"<th>{html.escape(header)}</th>" for header in HEADERS)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Runs</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        f"<h1>Runs</h1><div><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        "</html>\n"
    )
    commit_bytes(page, text.encode())
    return page
