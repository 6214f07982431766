"""Writing a report: one HTML file that needs nothing from elsewhere and lets nothing in."""

import base64
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date
from itertools import takewhile
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from fastscore.errors import (
    FastscoreError,
    InputError,
    RunError,
    UsageError,
    counted,
    listed,
    warn_caller,
)
from fastscore.files import PAGE_MARK, check_output
from fastscore.logs.score_input import LogsWarning
from fastscore.results.compare import (
    check_signatures,
    choose_metrics,
    compare_runs,
    pairs_of_runs,
    require_one_suite,
)
from fastscore.results.comparison import Comparison, headline, verdict_notes
from fastscore.results.differences import Inference
from fastscore.results.explaining import Dialogues
from fastscore.results.findings import Headlines, estimate_of, list_findings, read_headlines
from fastscore.results.metric_text import (
    bands_text,
    estimate_text,
    interval_text,
    metric_range,
    value_text,
)
from fastscore.results.report.metrics import (
    Charts,
    Values,
    cell_of,
    columns_of,
    metrics_of,
    shortened,
)
from fastscore.results.runs import Run, as_runs, common_suite, label_columns, open_run
from fastscore.results.summary_table import ARROWS, main_reason
from fastscore.run.commit import Place, commit_bytes
from fastscore.run.manifest import MANIFEST_NAME
from fastscore.settings.options import check_arguments
from fastscore.suites.base import CommittedRun, Dialogue, Suite, headline_metrics
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric
from fastscore.suites.showing import Mark, Section, marked_parts
from fastscore.suites.summary import overall_rows
from fastscore.version import __version__

REJECTS_SHOWN = 200
SYSTEMS_NAMED = 3
_NAME_SHOWN = 50
"""Characters of a run's name in its report's: file systems take 255 bytes."""


def make_content(headlines: Sequence[Headlines], how: Inference, texts: bool = True) -> Values:
    """Gather everything that the page of one run or several shows."""
    runs = [one.run for one in headlines]
    require_one_suite(runs)
    suite = common_suite(runs)
    # a run is called by its folder's name, or by its whole path where two share one
    short = [run.path.resolve().name for run in runs]
    shown = [
        replace(one, name=name) if short.count(name) == 1 else one
        for name, one in zip(short, headlines, strict=True)
    ]
    charts = Charts()
    comparisons, found = _comparisons(shown, how)
    notes = [*_notes_on_logs(shown, texts), *found]
    metrics = metrics_of(suite, shown, comparisons, charts)
    sections = _sections(suite, shown)
    contents = [(f"section-{n}", title) for n, title in enumerate(sections, start=1)]
    several = len(shown) > 1
    names = [one.name for one in shown]
    heading = listed(names, SYSTEMS_NAMED) if several else systems_of(shown[0])
    return {
        "title": f"{heading}: {suite.name}, {date_of(runs[0])}",
        "heading": heading,
        "contents": [
            *(_CONTENTS[:1] + [("runs", "Runs")] * several + _CONTENTS[1:3]),
            *contents,
            *_CONTENTS[3:],
        ],
        "suite": suite,
        "runs": shown,
        "findings": _findings(shown, comparisons, how),
        "notes": notes,
        "chart": _runs_chart(shown, metrics, charts) if several else None,
        "metrics": metrics,
        "sections": sections,
        "charts": charts,
        "dialogues": {one.name: dialogues_of(suite, one, texts) for one in shown},
        "turns_shown": TURNS_SHOWN,
        "columns_listed": COLUMNS_LISTED,
        "inputs_shown": REJECTS_SHOWN,
        "rejects": [_rejects(one, texts) for one in shown],
        "null_reasons": NULL_REASONS,
    }


_CONTENTS = [
    (name.lower(), name)
    for name in ("Findings", "Overview", "Metrics", "Dialogues", "Nulls", "Rejects", "About")
]


_QUOTED = re.compile(r"""(?<=[ (])(['"])(?:\\.|(?!\1).)*\1(?=[ ,)])""")
"""A word of a log in a note, as `repr` writes it."""
_TYPED = re.compile(r"[;:] type --.*", re.DOTALL)
"""The options that a note says to type, in which words of a log are written for a shell."""


def _notes_on_logs(shown: Sequence[Headlines], texts: bool) -> list[str]:
    """Return the notes of the runs; without texts, the words of the logs are left out of them."""
    notes, n_words = [], 0
    for one in shown:
        for note in one.run.manifest.notes:
            wordless, n = ("", 0) if texts else _QUOTED.subn("…", note)
            notes.append(f"{one.name}: {_TYPED.sub('', wordless) if n else note}")
            n_words += n
    return [*notes, "Each … is a word that is left out, as asked for"] if n_words else notes


def systems_of(headlines: Headlines) -> str:
    """Name what a run compares: the values of its first label, or else the run."""
    run = headlines.run
    for label in headlines.labels[:1]:
        values = run.scan(LABEL_TABLE).select(pl.col(label).unique().sort()).collect()[label]
        names = values.drop_nulls().cast(pl.String).to_list()
        return f"{label} {listed(names, SYSTEMS_NAMED)}" if names else run.path.name
    return run.path.name


def date_of(run: Run) -> str:
    """Return the day on which a run was complete; of scores in memory today."""
    file = run.folder / MANIFEST_NAME
    day = date.fromtimestamp(file.stat().st_mtime) if run.scores is None and file.exists() else None
    return (day or date.today()).isoformat()


def _runs_chart(
    shown: Sequence[Headlines], metrics: Sequence[Values], charts: Charts
) -> Markup | None:
    """Draw the headline metrics that have one mean in each run."""
    panels = []
    for one in metrics:
        sides = [side["parts"] for side in one["sides"]]
        if one["metric"].role == "headline" and all(len(parts) == 1 for parts in sides):
            panels.append((one["metric"], [(*parts[0]["ends"], parts[0]["n"]) for parts in sides]))
    return charts.of_runs([one.name for one in shown], panels)


def _comparisons(
    shown: Sequence[Headlines], how: Inference
) -> tuple[dict[str, Comparison], list[str]]:
    """Compare every further run with the first, all of them as one family of tests."""
    if len(shown) == 1:
        return {}, []
    first, others, notes = shown[0], list(shown[1:]), list[str]()
    for one in shown[1:]:
        try:
            if how.paired:
                pairs_of_runs(first.run, one.run, how)
        except FastscoreError as error:
            notes.append(
                f"{one.name} is not compared with {first.name}: {error.message.rstrip('.')}"
            )
            others.remove(one)
    if not others:
        return {}, notes
    compared = [first, *others]
    runs = [one.run for one in compared]
    found = compare_runs(
        runs,
        choose_metrics(runs),
        replace(how, contrasts="first"),
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
    shown: Sequence[Headlines], comparisons: Mapping[str, Comparison], how: Inference
) -> list[Values]:
    """List what was found except means, which are in the overview; once what holds for all."""
    found = [
        {"kind": "compared", "text": text, "metric": "", "run": ""}
        for text in map(_compared, comparisons.values())
    ]
    by_run = [[asdict(one) for one in list_findings(each, how)] for each in shown]
    for each, findings in zip(shown, by_run, strict=True):
        for finding in findings:
            is_shared = all(finding in others for others in by_run)
            if finding["kind"] != "mean" and not (is_shared and each is not shown[0]):
                found.append(finding | {"run": "" if is_shared else each.name})
    return found


def _sections(suite: Suite, shown: Sequence[Headlines]) -> dict[str, list[tuple[str, Section]]]:
    """Return the suite's own sections by title, one for each run."""
    found: dict[str, list[tuple[str, Section]]] = {}
    if suite.sections is None:
        return found
    for one in shown:
        seen = CommittedRun(name=one.name, signature=one.run.signature, tables=one.run.lazy_tables)
        for section in suite.sections(seen, one.run.options):
            found.setdefault(section.title, []).append((one.name, section))
    return found


def _rejects(one: Headlines, texts: bool) -> Values:
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
    check_arguments(write_report, locals())
    if not runs:
        raise UsageError("No run is named.", "Name one or more run directories.")
    opened = as_runs(runs)
    path = Path(output)
    _check_suffix(path)
    check_output(path, "a report", begins=PAGE_MARK)
    design = opened[0].suite.design
    how = Inference.of(design, pair_by=pair_by, cluster=cluster, unpaired=unpaired)
    read = headlines or [read_headlines(run, cluster=cluster) for run in opened]
    content = make_content(read, how, texts)
    commit_bytes(path, render_page("report.html", content).encode())
    return path


def _check_suffix(page: Path) -> None:
    """Refuse names that no browser opens as a page, such as a PDF or a folder."""
    if page.suffix.lower() not in (".html", ".htm"):
        raise UsageError(
            f"output is {str(page)!r}, expected a file that ends in .html.",
            f"For example: {page.stem.strip('.') or 'report'}.html.",
        )


def write_index(runs: pl.DataFrame, folder: Place, page: Path) -> Path:
    """Write a page about the runs that `list_runs` found, and beside it a report of each."""
    reports = page.with_name(f"{page.stem}-reports")
    _check_suffix(page)
    check_output(page, "a page of runs", begins=PAGE_MARK)
    check_output(reports, "reports of runs", ("*.html",))
    reports.mkdir(parents=True, exist_ok=True)
    numbered = runs.with_row_index("number").with_columns(pl.col("suite").fill_null("Not readable"))
    charts = Charts()
    suites = [
        _indexed(rows, folder, reports, charts)
        for rows in numbered.partition_by("suite", maintain_order=True)
    ]
    content = {
        "title": f"Runs in {folder}",
        "folder": str(folder),
        "n": runs.height,
        "date": runs["finished"].dt.date().max(),
        "contents": [(f"suite-{n}", one["name"]) for n, one in enumerate(suites, start=1)],
        "suites": suites,
    }
    commit_bytes(page, render_page("runs.html", content).encode())
    return page


def _indexed(runs: pl.DataFrame, folder: Place, reports: Path, charts: Charts) -> Values:
    """Write a report of each run of a suite that can be read; show them in a chart and a matrix."""
    opened = [
        None if problem else open_run(run) for run, problem in runs.select("run", "problem").rows()
    ]
    summaries = [{} if run is None else overall_rows(run.summary) for run in opened]
    measured = {id for whole in summaries for id, row in whole.items() if row["mean"] is not None}
    readable_runs = [run for run in opened if run is not None]
    declared = common_suite(readable_runs).metrics if readable_runs else ()
    metrics = [one for one in headline_metrics(declared) if one.id in measured]
    names = [os.path.relpath(run, str(folder)) for run in runs["run"]]
    rows, means = [], []
    for about, name, run, whole in zip(
        runs.iter_rows(named=True), names, opened, summaries, strict=True
    ):
        report = reports / f"{about['number']:03}-{Path(about['run']).name[:_NAME_SHOWN]}.html"
        problem = about["problem"]
        try:
            if run is not None:
                write_report([run], report)
        except RunError as error:  # the other runs have their pages
            problem = str(error)
        of_run = [whole.get(one.id, _NO_MEAN) for one in metrics]
        means.append([(one["mean"], one["ci_low"], one["ci_high"], one["n"]) for one in of_run])
        page = "" if problem else quote(f"{reports.name}/{report.name}")
        more = {"name": name, "report": page, "means": means[-1], "problem": problem}
        rows.append(about | more)
    panels = list(zip(metrics, zip(*means, strict=True), strict=True))
    chart = charts.of_runs(names, panels) if len(names) > 1 else None
    return {"name": runs["suite"][0], "metrics": metrics, "rows": rows, "chart": chart}


_NO_MEAN = {"mean": None, "ci_low": None, "ci_high": None, "n": 0}


def render_page(template: str, content: Mapping[str, Any]) -> str:
    """Return a page's HTML; it has a ``title`` and ``contents``, pairs of an anchor and a name."""
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "arrow": lambda metric: ARROWS[metric.scale.better].strip(),
        "counted": counted,
        "date": date_of,
        "interval": lambda mean: interval_text(mean[0], mean[1], mean[2], 3),
        "readable": readable,
        "in_lines": lambda text: text.replace(" [", "\n["),
        "cell": cell_of,
        "number": value_text,
        "columns": columns_of,
        "reason": main_reason,
        "estimate": lambda row: estimate_text(estimate_of(row)),
        "range": metric_range,
        "bands": bands_text,
        "marked": marked,
    }
    script = environment.get_template("page.js").render()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        **content, script=Markup(script), script_hash=f"sha256-{digest}", version=__version__
    )


def readable(name: str, prefix: str = "") -> str:
    """Write a dialogue's name for people: without its escapes, and cut only if it is very long."""
    return shortened(" · ".join(map(unquote, name.split("/"))), LONGEST_NAME, unquote(prefix))


LONGEST_NAME = 72
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


def dialogues_of(suite: Suite, one: Headlines, texts: bool = True) -> Values:
    """Choose dialogues to list and, with texts, to show: worst, median and best of each metric."""
    dialogues = Dialogues(one.run)
    # those of which whole dialogues have values
    whole = overall_rows(one.run.summary.filter(pl.col("n") > 0))
    metrics = [
        metric
        for metric in suite.metrics
        if metric.table == LABEL_TABLE and metric.role != "part" and metric.id in whole
    ]
    scored = one.run.scan(LABEL_TABLE)
    labels = label_columns(one.run)[:2]
    values = (
        dialogues.names.alias("name")
        .to_frame()
        .hstack(scored.select(*labels, *(metric.id for metric in metrics)).collect())
        .with_row_index("row")
    )
    picks, by_metric = _picks(values, metrics if texts else [])
    shown, note = _shown(suite, dialogues, values, picks)
    if not texts:
        note = "Texts of dialogues are left out, as asked for."
    return {
        "metrics": metrics,
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


Picks = dict[int, dict[str, list[str]]]
"""The rows of dialogues that are shown, with the metrics of which each is the worst, the best..."""


def _picks(values: pl.DataFrame, metrics: Sequence[Metric]) -> tuple[Picks, dict[str, Values]]:
    """Choose the rows that are shown, with why, and name them by metric."""
    picks: Picks = {}
    by_metric: dict[str, Values] = {}
    for metric in metrics:
        ordered = values.select("row", "name", metric.id).drop_nulls(metric.id)
        ordered = ordered.sort(
            metric.id, "name", descending=[metric.scale.better == "lower", False]
        )
        if ordered.is_empty():
            continue
        by_metric[metric.id] = {}
        for word, place in _places(ordered[metric.id], metric).items():
            row, name, value = ordered.row(place)
            if row in picks or len(picks) < DIALOGUES_SHOWN:
                picks.setdefault(row, {}).setdefault(word, []).append(metric.name)
                by_metric[metric.id][word] = {"name": name, "value": value}
    return picks, by_metric


def _places(ordered: pl.Series, metric: Metric) -> dict[str, int]:
    """Name places in ordered values: the ends and the middle; ties at an end are called so."""
    first, last = ordered[0], ordered[-1]
    if first == last:
        return {"one of equal ones" if ordered.len() > 1 else "the only one": 0}
    low, high = ("smallest", "largest") if metric.scale.better == "neither" else ("worst", "best")
    ends = {0: (low, (ordered == first).sum()), ordered.len() - 1: (high, (ordered == last).sum())}
    words = {
        place: word if ties == 1 else f"one of the {ties:,} {word}"
        for place, (word, ties) in ends.items()
    }
    return {words[0]: 0, "median": ordered.len() // 2, words[ordered.len() - 1]: ordered.len() - 1}


def _listed(values: pl.DataFrame, metrics: Sequence[Metric], picks: Picks) -> pl.DataFrame:
    """Keep all dialogues, or those that are shown and the worst by the first metric."""
    if values.height <= DIALOGUES_LISTED or not metrics:
        return values.head(DIALOGUES_LISTED)
    first = metrics[0]
    worst = values.sort(
        first.id, "name", descending=[first.scale.better == "lower", False], nulls_last=True
    ).head(DIALOGUES_LISTED - len(picks))
    rows = set(worst["row"]) | set(picks)
    return values.filter(pl.col("row").is_in(list(rows)))


def _shown(
    suite: Suite, dialogues: Dialogues, values: pl.DataFrame, picks: Picks
) -> tuple[list[Values], str]:
    """Read the chosen dialogues: from the tables, and from the logs where the texts are there."""
    if suite.show is None or not picks:
        return [], ""
    rows, found, note = sorted(picks), list[Dialogue](), ""
    if suite.texts_in_logs:
        try:
            found = dialogues.read(rows)
        except (InputError, UsageError, OSError) as error:
            note = f"The texts of dialogues are not shown. {error}"
            warn_caller(note, LogsWarning)
    found = found or [Dialogue(tables=tables) for tables in dialogues.tables(rows)]
    shown = [
        {
            "picked": "; ".join(f"{word}: {', '.join(of)}" for word, of in picks[row].items()),
            "file": dialogue.tables[LABEL_TABLE]["file"][0],
            "scores": values.row(row, named=True),
            "view": suite.show(dialogue),
        }
        for row, dialogue in zip(rows, found, strict=True)
    ]
    return shown, note
