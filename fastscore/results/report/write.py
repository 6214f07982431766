"""Writing a report: one HTML file that needs nothing from elsewhere and lets nothing in."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from fastscore.errors import FastscoreError, UsageError
from fastscore.results.compare import Comparison, compare
from fastscore.results.compare.show import headline
from fastscore.results.dialogues import Dialogues
from fastscore.results.findings import list_findings
from fastscore.results.headlines import Headlines, read_headlines
from fastscore.results.number_text import counted
from fastscore.results.report.charts import Charts, shortened
from fastscore.results.report.dialogues import dialogues_of
from fastscore.results.report.metrics import Shown, metrics_of
from fastscore.results.report.values import Named, Values, listing_of
from fastscore.results.runs import Run, as_runs, common_suite
from fastscore.run.commit import commit_bytes
from fastscore.suites.base import CommittedRun, Suite
from fastscore.suites.declarations import NULL_REASONS
from fastscore.suites.summary import ALL
from fastscore.version import __version__

REJECTS_SHOWN = 200
SAMPLES = 1_000
_DESIGNS: tuple[dict[str, Any], ...] = (
    {},
    {"pair_by": "dialogue"},
    {"pair_by": "dialogue", "unpaired": True},
)
"""Pairs by id; else by the mean of all that share an id; else independent samples."""


def make_content(runs: Sequence[Run], headlines: Sequence[Headlines]) -> Values:
    """Gather everything that the page of one run or several shows.

    Parameters
    ----------
    runs
        Runs of one suite.
    headlines
        Their headline metrics.

    Raises
    ------
    UsageError
        Runs of different suites.
    """
    suite = common_suite(runs)
    for run in runs[1:]:
        if run.manifest.suite != suite.name:
            raise UsageError(
                f"{runs[0].path} is a run of {suite.name}, {run.path} one of "
                f"{run.manifest.suite}: a report is about one suite."
            )
    named = [Named(name, run) for name, run in zip(_names_of(runs), runs, strict=True)]
    charts = Charts()
    comparisons, notes = _comparisons(named, headlines[0].cluster)
    shown = {one.name: dialogues_of(suite, one) for one in named}
    read = [Shown.of(suite, *both) for both in zip(named, headlines, strict=True)]
    return {
        "suite": suite,
        "runs": [_about(one) for one in named],
        "findings": _findings(named, headlines, comparisons),
        "unit": headlines[0].unit,
        "notes": notes,
        "metrics": metrics_of(suite, read, comparisons, charts),
        "sections": [
            section for one in named for section in _sections(suite, one, charts, len(named) > 1)
        ],
        "dialogues": shown,
        "nulls": [_nulls(one) for one in named],
        "rejects": [_rejects(one) for one in named],
        "null_reasons": NULL_REASONS,
    }


def _names_of(runs: Sequence[Run]) -> list[str]:
    """Call each run by its folder's name, or by its whole path where two share one."""
    short = [run.path.resolve().name for run in runs]
    return [
        name if short.count(name) == 1 else str(run.path)
        for name, run in zip(short, runs, strict=True)
    ]


def _about(one: Named) -> Values:
    manifest = one.run.manifest
    tables = [counted(about["rows"], name) for name, about in reversed(manifest.tables.items())]
    return {
        "name": one.name,
        "path": str(one.run.path),
        "signature": one.run.signature,
        "counts": ", ".join(tables),
        "inputs": manifest.inputs[:REJECTS_SHOWN],
        "n_inputs": len(manifest.inputs),
        "options": manifest.options,
        "environment": manifest.environment,
    }


def _comparisons(
    named: Sequence[Named], cluster: str | None
) -> tuple[dict[str, Comparison], list[str]]:
    """Compare every further run with the first: by pairs, else as independent samples."""
    found: dict[str, Comparison] = {}
    notes = []
    first = named[0]
    for one in named[1:]:
        for place, how in enumerate(_DESIGNS):
            try:
                comparison = compare(
                    first.run,
                    one.run,
                    allow_different_signatures=True,
                    samples=SAMPLES,
                    cluster=cluster,
                    **how,
                )
            except FastscoreError as error:
                if place == len(_DESIGNS) - 1:
                    notes.append(f"{one.name} is not compared with {first.name}: {error.message}")
                continue
            found[one.name] = comparison
            notes += comparison.notes
            break
    return found, notes


def _findings(
    named: Sequence[Named], headlines: Sequence[Headlines], comparisons: Mapping[str, Comparison]
) -> list[Values]:
    found = [
        {"kind": "compared", "text": headline(comparison), "metric": "", "run": ""}
        for comparison in comparisons.values()
    ]
    several = len(named) > 1
    for one, of_run in zip(named, headlines, strict=True):
        found += [
            {
                "kind": finding.kind,
                "text": finding.text,
                "metric": finding.metric,
                "run": one.name if several else "",
            }
            for finding in list_findings(one.run, of_run)
        ]
    return found


def _sections(suite: Suite, one: Named, charts: Charts, several: bool) -> list[Values]:
    if suite.sections is None:
        return []
    options = Dialogues(one.run).options
    seen = CommittedRun(name=one.name, signature=one.run.signature, tables=one.run.lazy_tables)
    return [
        {
            "title": f"{section.title}: {one.name}" if several else section.title,
            "text": section.text,
            "charts": [
                {"title": chart.title, "svg": charts.chart(chart), "paper": False}
                for chart in section.charts
            ]
            + [
                {
                    "title": f"{drawing.title}. {drawing.caption}",
                    "svg": charts.placed(drawing.svg, drawing.title),
                    "paper": True,
                }
                for drawing in section.drawings
            ],
            "listings": [listing_of(listing) for listing in section.listings],
        }
        for section in suite.sections(seen, options)
    ]


def _nulls(one: Named) -> Values:
    rows = one.run.summary.filter(pl.col("group") == ALL, pl.col("n_null") > 0)
    return {"run": one.name, "rows": rows.to_dicts()}


def _rejects(one: Named) -> Values:
    rejects = one.run.rejects
    by_reason = rejects.group_by("reason").agg(n=pl.col("count").sum())
    return {
        "run": one.name,
        "n": int(by_reason["n"].sum()),
        "reasons": by_reason.sort("n", "reason", descending=[True, False]).rows(),
        "rows": rejects.head(REJECTS_SHOWN).to_dicts(),
    }


_PACKAGE = "fastscore.results.report"


def write_report(
    runs: Sequence[Run | str | PathLike[str]],
    output: str | PathLike[str],
    *,
    cluster: str | None = None,
    headlines: Sequence[Headlines] = (),
) -> Path:
    """Write a report on one run, or on several of a suite side by side.

    Parameters
    ----------
    runs
        Complete runs; the first is what the others are compared with.
    output
        The HTML file, replaced where there is one.
    cluster
        The column that names the units of intervals and tests in the findings, such as a user.
        Default: the dialogue.
    headlines
        The headline metrics of the runs, if they were read before; then `cluster` is theirs.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UsageError
        No run, or runs of different suites.
    RunError
        A run is damaged, or another version of fastscore wrote it.
    """
    if not runs:
        raise UsageError("No run is named.", "Name one or more run directories.")
    opened = as_runs(runs)
    for run in opened:
        run.require_declared()
    path = Path(output)
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", "Name a file, such as report.html.")
    read = headlines or [read_headlines(run, cluster=cluster) for run in opened]
    commit_bytes(path, render(opened, read).encode())
    return path


def render(runs: Sequence[Run], headlines: Sequence[Headlines]) -> str:
    """Return the page's HTML."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shortened"] = shortened
    style, script = (
        environment.loader.get_source(environment, name)[0]  # type: ignore[union-attr]
        for name in ("report.css", "report.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html").render(
        **make_content(runs, headlines),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        version=__version__,
    )
