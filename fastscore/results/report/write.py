"""Writing a report: one HTML file that needs nothing from elsewhere and lets nothing in."""

import base64
import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from fastscore.errors import FastscoreError, InputError, UsageError
from fastscore.logs.score_input import LogsWarning
from fastscore.results.compare import Comparison, compare
from fastscore.results.compare.show import headline
from fastscore.results.dialogues import Dialogues
from fastscore.results.findings import list_findings
from fastscore.results.headlines import Headlines, read_headlines
from fastscore.results.metric_text import counted
from fastscore.results.report.metrics import (
    Charts,
    Named,
    Shown,
    Values,
    cell_of,
    listing_of,
    metrics_of,
    shortened,
    value_text,
)
from fastscore.results.runs import Run, as_runs, common_suite
from fastscore.run.commit import commit_bytes
from fastscore.suites.base import CommittedRun, Suite
from fastscore.suites.declarations import NULL_REASONS, Metric
from fastscore.suites.showing import Dialogue, DialogueView, Mark, marked_parts
from fastscore.suites.summary import ALL, LABEL_TABLE, overall_rows
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
            found[one.name] = _judged(comparison)
            notes += comparison.notes
            break
    return found, notes


def _judged(comparison: Comparison) -> Comparison:
    """Leave verdicts out if the runs were scored differently: no side is the better one then."""
    if not comparison.differing:
        return comparison
    nothing = pl.lit(None, dtype=comparison.differences.schema["verdict"])
    return replace(comparison, differences=comparison.differences.with_columns(verdict=nothing))


def _compared(comparison: Comparison) -> str:
    if not comparison.differing or comparison.differences.is_empty():
        return headline(comparison)
    row = comparison.differences.row(0, named=True)
    return (
        f"{row['b']} and {row['a']} have different signatures, so no side is called better: "
        f"{'; '.join(comparison.differing)}."
    )


def _findings(
    named: Sequence[Named], headlines: Sequence[Headlines], comparisons: Mapping[str, Comparison]
) -> list[Values]:
    found = [
        {"kind": "compared", "text": _compared(comparison), "metric": "", "run": ""}
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


LONGEST_TEXT = 4_000


def marked(text: str, marks: Sequence[Mark]) -> Markup:
    """Return a text as markup in which nothing but the marks is markup.

    Parameters
    ----------
    text
        A text of a log; what is beyond `LONGEST_TEXT` characters is left out and counted.
    marks
        Places in it, ascending and apart from each other.
    """
    marked = Markup('<mark class="{}" title="{}">{}</mark>')
    parts = [
        escape(piece)
        if mark is None
        else marked.format("good" if mark.good else "bad", mark.label, piece)
        for piece, mark in marked_parts(text, marks, 0, min(len(text), LONGEST_TEXT))
    ]
    if len(text) > LONGEST_TEXT:
        left_out = Markup('<span class="cut"> … {:,} more characters</span>')
        parts.append(left_out.format(len(text) - LONGEST_TEXT))
    return Markup("").join(parts)


DIALOGUES_LISTED = 300
DIALOGUES_SHOWN = 48
COLUMNS_LISTED = 8
TURNS_SHOWN = 120


def dialogues_of(suite: Suite, one: Named) -> Values:
    """Choose dialogues to list and to show: the worst, median and best of each metric."""
    dialogues = Dialogues(one.run)
    metrics = _whole_metrics(suite, one)
    groups = [name for name in one.run.summary["group"].unique(maintain_order=True) if name != ALL]
    scored = one.run.scan(LABEL_TABLE)
    present = scored.collect_schema()
    labels = [name for name in groups if name in present][:2]
    values = (
        scored.select(*labels, *(metric.id for metric in metrics))
        .collect(engine="streaming")
        .with_columns(dialogues.names["name"])
        .with_row_index("row")
    )
    picks, by_metric = _picks(values, metrics)
    listed = _listed(values, metrics, picks)
    return {
        "columns": metrics[:COLUMNS_LISTED],
        "labels": labels,
        "rows": [
            {
                "name": row["name"],
                "shown": row["row"] in picks,
                "labels": [cell_of(row[label]) for label in labels],
                "values": [
                    {
                        "value": row[metric.id],
                        "text": value_text(row[metric.id]),
                    }
                    for metric in metrics[:COLUMNS_LISTED]
                ],
            }
            for row in listed.iter_rows(named=True)
        ],
        "n": values.height,
        "prefix": _common_start(values["name"]),
        "by_metric": by_metric,
        **_shown(suite, dialogues, metrics, values, picks),
    }


def _common_start(names: pl.Series) -> str:
    """Return how all names begin, whole words of it."""
    pairs = zip(str(names.min()), str(names.max()), strict=False)
    start = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return re.sub(r"[^\W_]*$", "", start) if len(names) > 1 else ""


def _whole_metrics(suite: Suite, one: Named) -> list[Metric]:
    """Return the metrics of which whole dialogues have values."""
    whole = overall_rows(one.run.summary.filter(pl.col("n") > 0))
    return [
        metric
        for metric in suite.metrics
        if metric.table == LABEL_TABLE and not metric.is_secondary and metric.id in whole
    ]


def _picks(
    values: pl.DataFrame, metrics: Sequence[Metric]
) -> tuple[dict[int, list[tuple[str, str]]], dict[str, Values]]:
    """Choose the rows that are shown, with why, and name them by metric."""
    picks: dict[int, list[tuple[str, str]]] = {}
    by_metric: dict[str, Values] = {}
    for metric in metrics:
        ordered = values.select("row", "name", metric.id).drop_nulls(metric.id)
        ordered = ordered.sort(metric.id, "name", descending=[metric.better == "lower", False])
        if ordered.is_empty():
            continue
        by_metric[metric.id] = {}
        for word, place in _places(ordered[metric.id], metric).items():
            row = int(ordered["row"][place])
            if row not in picks and len(picks) >= DIALOGUES_SHOWN:
                continue
            picks.setdefault(row, []).append((word, metric.name))
            by_metric[metric.id][word] = {
                "name": ordered["name"][place],
                "value": value_text(ordered[metric.id][place]),
            }
    return picks, by_metric


def _places(ordered: pl.Series, metric: Metric) -> dict[str, int]:
    """Name places in ordered values: the ends and the middle; ties at an end are called so."""
    first, last = ordered[0], ordered[-1]
    if first == last:
        return {"one of equal ones" if ordered.len() > 1 else "the only one": 0}
    low, high = ("smallest", "largest") if metric.better == "neither" else ("worst", "best")
    ends = {0: (low, (ordered == first).sum()), ordered.len() - 1: (high, (ordered == last).sum())}
    words = {
        place: word if ties == 1 else f"one of the {ties:,} {word}"
        for place, (word, ties) in ends.items()
    }
    return {words[0]: 0, "median": ordered.len() // 2, words[ordered.len() - 1]: ordered.len() - 1}


def _listed(
    values: pl.DataFrame, metrics: Sequence[Metric], picks: Mapping[int, list[tuple[str, str]]]
) -> pl.DataFrame:
    """Keep all dialogues, or those that are shown and the worst by the first metric."""
    if values.height <= DIALOGUES_LISTED or not metrics:
        return values.head(DIALOGUES_LISTED)
    first = metrics[0]
    worst = values.sort(
        first.id, "name", descending=[first.better == "lower", False], nulls_last=True
    ).head(DIALOGUES_LISTED - len(picks))
    rows = set(worst["row"]) | set(picks)
    return values.filter(pl.col("row").is_in(list(rows)))


def _shown(
    suite: Suite,
    dialogues: Dialogues,
    metrics: Sequence[Metric],
    values: pl.DataFrame,
    picks: Mapping[int, list[tuple[str, str]]],
) -> Values:
    if suite.show is None or not picks:
        return {"shown": [], "note": ""}
    rows = sorted(picks)
    found, note = _read(suite, dialogues, rows)
    shown = []
    for row, dialogue in zip(rows, found, strict=True):
        view = suite.show(dialogue)
        scores = values.row(row, named=True)
        shown.append(
            {
                "name": scores["name"],
                "picked": _why(picks[row]),
                "file": dialogue.tables[LABEL_TABLE]["file"][0],
                "scores": [(metric, value_text(scores[metric.id])) for metric in metrics],
                **_view(view),
            }
        )
    return {"shown": shown, "note": note}


def _why(picked: Sequence[tuple[str, str]]) -> str:
    """Say for which metrics a dialogue is shown, the worst, median and best ones together."""
    words = dict.fromkeys(word for word, _ in picked)
    return "; ".join(
        f"{word}: {', '.join(name for one, name in picked if one == word)}" for word in words
    )


def _read(suite: Suite, dialogues: Dialogues, rows: Sequence[int]) -> tuple[list[Dialogue], str]:
    """Read the chosen dialogues: from the tables, and from the logs where the texts are there."""
    if suite.texts_in_logs:
        try:
            return dialogues.read(rows), ""
        except (InputError, UsageError, OSError) as error:
            note = f"The texts of dialogues are not shown. {error}"
            warnings.warn(note, LogsWarning, stacklevel=2)
            return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], note
    return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], ""


def _view(view: DialogueView) -> Values:
    """Write a dialogue's turns, at most `TURNS_SHOWN`."""
    return {
        "turns": [
            {
                "speaker": turn.speaker,
                "place": turn.place,
                "text": marked(turn.text, turn.marks),
                "scores": [(name, value_text(value)) for name, value in turn.scores.items()],
                "notes": turn.notes,
            }
            for turn in view.turns[:TURNS_SHOWN]
        ],
        "more_turns": max(0, len(view.turns) - TURNS_SHOWN),
        "listings": [listing_of(listing) for listing in view.listings],
    }
