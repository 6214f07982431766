"""Writing a report: one HTML file that needs nothing from elsewhere and lets nothing in."""

import base64
import hashlib
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from fastscore.errors import FastscoreError, InputError, UsageError
from fastscore.logs.score_input import LogsWarning
from fastscore.paths import PAGE_MARK, check_output
from fastscore.results.compare import (
    check_signatures,
    choose_metrics,
    compare_runs,
    pairs_in_common,
)
from fastscore.results.comparison import Comparison, headline, verdict_notes
from fastscore.results.dialogues import Dialogues
from fastscore.results.differences import Inference
from fastscore.results.findings import list_findings
from fastscore.results.groups import label_columns
from fastscore.results.headlines import Headlines, read_headlines
from fastscore.results.metric_text import counted
from fastscore.results.report.metrics import (
    Charts,
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
from fastscore.suites.base import CommittedRun, Dialogue, Suite
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric
from fastscore.suites.showing import Mark, marked_parts
from fastscore.suites.summary import ALL, overall_rows
from fastscore.version import __version__

REJECTS_SHOWN = 200


def make_content(
    runs: Sequence[Run],
    headlines: Sequence[Headlines],
    design: Mapping[str, Any],
    texts: bool = True,
) -> Values:
    """Gather everything that the page of one run or several shows."""
    suite = common_suite(runs)
    for run in runs[1:]:
        if run.manifest.suite != suite.name:
            raise UsageError(
                f"{runs[0].path} is a run of {suite.name}, {run.path} one of "
                f"{run.manifest.suite}: a report is about one suite."
            )
    # a run is called by its folder's name, or by its whole path where two share one
    short = [run.path.resolve().name for run in runs]
    shown = [
        Shown.of(name if short.count(name) == 1 else str(run.path), run, of_run)
        for name, run, of_run in zip(short, runs, headlines, strict=True)
    ]
    charts = Charts()
    comparisons, notes = _comparisons(shown, design)
    return {
        "suite": suite,
        "runs": [_about(one) for one in shown],
        "findings": _findings(shown, comparisons, design),
        "unit": headlines[0].unit,
        "notes": notes,
        "metrics": metrics_of(suite, shown, comparisons, charts),
        "sections": [
            section for one in shown for section in _sections(suite, one, charts, len(shown) > 1)
        ],
        "dialogues": {one.name: dialogues_of(suite, one, texts) for one in shown},
        "turns_shown": TURNS_SHOWN,
        "nulls": [_nulls(one) for one in shown],
        "rejects": [_rejects(one, texts) for one in shown],
        "null_reasons": NULL_REASONS,
    }


def _about(one: Shown) -> Values:
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
    shown: Sequence[Shown], design: Mapping[str, Any]
) -> tuple[dict[str, Comparison], list[str]]:
    """Compare every further run with the first, all of them as one family of tests."""
    if len(shown) == 1:
        return {}, []
    first, others, notes = shown[0], list(shown[1:]), []
    how = Inference.of(
        first.run.suite.design,
        pair_by=design.get("pair_by"),
        cluster=design.get("cluster"),
        paired=not design.get("unpaired"),
        contrasts="first",
    )
    for one in shown[1:]:
        try:
            pairs_in_common(first.run, one.run, how)
        except FastscoreError as error:
            notes.append(f"{one.name} is not compared with {first.name}: {error.message}")
            others.remove(one)
    if not others:
        return {}, notes
    compared = [first, *others]
    runs = [one.run for one in compared]
    found = compare_runs(
        runs,
        choose_metrics(runs),
        how,
        names=[one.name for one in compared],
        allow_different_signatures=True,
    )
    comparisons = {}
    for one in others:
        rows = found.differences.filter(pl.col("b") == one.name)
        differing = check_signatures([first.run, one.run], allow=True)
        if differing:  # no side is the better one if they were scored differently
            rows = rows.with_columns(verdict=pl.lit("", dtype=pl.String))
        comparisons[one.name] = replace(found, differences=rows, differing=tuple(differing))
    return comparisons, [*notes, *found.notes, *verdict_notes(found)]


def _compared(comparison: Comparison) -> str:
    if not comparison.differing or comparison.differences.is_empty():
        return headline(comparison)
    row = comparison.differences.row(0, named=True)
    return (
        f"{row['b']} and {row['a']} have different signatures, so no side is called better: "
        f"{'; '.join(comparison.differing)}."
    )


def _findings(
    shown: Sequence[Shown], comparisons: Mapping[str, Comparison], design: Mapping[str, Any]
) -> list[Values]:
    found = [
        {"kind": "compared", "text": _compared(comparison), "metric": "", "run": ""}
        for comparison in comparisons.values()
    ]
    for one in shown:
        name = one.name if len(shown) > 1 else ""
        findings = list_findings(one.run, one.headlines, design)
        found += [asdict(finding) | {"run": name} for finding in findings]
    return found


def _sections(suite: Suite, one: Shown, charts: Charts, several: bool) -> list[Values]:
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
            "listings": section.listings,
        }
        for section in suite.sections(seen, options)
    ]


def _nulls(one: Shown) -> Values:
    rows = one.run.summary.filter(pl.col("group") == ALL, pl.col("n_null") > 0)
    return {"run": one.name, "rows": rows.to_dicts()}


def _rejects(one: Shown, texts: bool) -> Values:
    rejects = one.run.rejects
    if not texts:
        rejects = rejects.with_columns(found=pl.lit(""), raw=pl.lit(""))
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
    pair_by: str | None = None,
    unpaired: bool = False,
    cluster: str | None = None,
    texts: bool = True,
    headlines: Sequence[Headlines] = (),
) -> Path:
    """Write a report on one run, or on several of a suite side by side."""
    if not runs:
        raise UsageError("No run is named.", "Name one or more run directories.")
    opened = as_runs(runs)
    for run in opened:
        run.require_declared()
    path = Path(output)
    check_output(path, "a report", begins=PAGE_MARK)
    read = headlines or [read_headlines(run, cluster=cluster) for run in opened]
    design = {"pair_by": pair_by, "unpaired": unpaired, "cluster": cluster}
    commit_bytes(path, render(opened, read, design, texts).encode())
    return path


def render(
    runs: Sequence[Run],
    headlines: Sequence[Headlines],
    design: Mapping[str, Any],
    texts: bool = True,
) -> str:
    """Return the page's HTML."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "shortened": shortened,
        "cell": cell_of,
        "number": value_text,
        "listing": listing_of,
        "marked": marked,
    }
    style, script = (
        environment.loader.get_source(environment, name)[0]  # type: ignore[union-attr]
        for name in ("report.css", "report.js")
    )
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html").render(
        **make_content(runs, headlines, design, texts),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        version=__version__,
    )


LONGEST_TEXT = 4_000


def marked(text: str, marks: Sequence[Mark]) -> Markup:
    """Return a text as markup in which nothing but the marks is markup."""
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


def dialogues_of(suite: Suite, one: Shown, texts: bool = True) -> Values:
    """Choose dialogues to list and to show: the worst, median and best of each metric.

    Without texts, none is shown.
    """
    dialogues = Dialogues(one.run)
    # those of which whole dialogues have values
    whole = overall_rows(one.run.summary.filter(pl.col("n") > 0))
    metrics = [
        metric
        for metric in suite.metrics
        if metric.table == LABEL_TABLE and not metric.is_secondary and metric.id in whole
    ]
    scored = one.run.scan(LABEL_TABLE)
    labels = label_columns(one.run, one.run.summary)[:2]
    values = (
        scored.select(*labels, *(metric.id for metric in metrics))
        .collect(engine="streaming")
        .with_columns(dialogues.names.alias("name"))
        .with_row_index("row")
    )
    picks, by_metric = _picks(values, metrics if texts else [])
    shown, note = _shown(suite, dialogues, values, picks)
    if not texts:
        note = "Texts of dialogues are left out, as asked for."
    return {
        "metrics": metrics,
        "columns": metrics[:COLUMNS_LISTED],
        "labels": labels,
        "rows": _listed(values, metrics, picks).to_dicts(),
        "n": values.height,
        "prefix": _common_start(values["name"]),
        "picks": picks,
        "by_metric": by_metric,
        "shown": shown,
        "note": note,
    }


def _common_start(names: pl.Series) -> str:
    """Return how all names begin, whole words of it."""
    pairs = zip(str(names.min()), str(names.max()), strict=False)
    start = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return re.sub(r"[^\W_]*$", "", start) if len(names) > 1 else ""


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
            row, name, value = ordered.row(place)
            if row in picks or len(picks) < DIALOGUES_SHOWN:
                picks.setdefault(row, []).append((word, metric.name))
                by_metric[metric.id][word] = {"name": name, "value": value}
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
    values: pl.DataFrame,
    picks: Mapping[int, list[tuple[str, str]]],
) -> tuple[list[Values], str]:
    if suite.show is None or not picks:
        return [], ""
    rows = sorted(picks)
    found, note = _read(suite, dialogues, rows)
    shown = [
        {
            "picked": _why(picks[row]),
            "file": dialogue.tables[LABEL_TABLE]["file"][0],
            "scores": values.row(row, named=True),
            "view": suite.show(dialogue),
        }
        for row, dialogue in zip(rows, found, strict=True)
    ]
    return shown, note


def _why(picked: Sequence[tuple[str, str]]) -> str:
    """Say for which metrics a dialogue is shown, the worst, median and best ones together."""
    words = dict.fromkeys(word for word, _ in picked)
    return "; ".join(
        f"{word}: {', '.join(name for one, name in picked if one == word)}" for word in words
    )


def _read(suite: Suite, dialogues: Dialogues, rows: Sequence[int]) -> tuple[list[Dialogue], str]:
    """Read the chosen dialogues: from the tables, and from the logs where the texts are there."""
    note = ""
    if suite.texts_in_logs:
        try:
            return dialogues.read(rows), note
        except (InputError, UsageError, OSError) as error:
            note = f"The texts of dialogues are not shown. {error}"
            warnings.warn(note, LogsWarning, stacklevel=2)
    return [Dialogue(tables=tables) for tables in dialogues.tables(rows)], note
