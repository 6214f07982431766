"""From a run directory to a folder with tables, figures and a page, by its suite's analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import UsageError, counted, listed, names_arguments
from fastscore.files import ANALYSIS, check_output
from fastscore.results.agreement import (
    read_judgements,
    read_ratings,
    require_columns,
    scale_of,
    scores_in,
)
from fastscore.results.differences import Inference
from fastscore.results.findings import list_findings, read_headlines
from fastscore.results.metric_text import write_csv
from fastscore.results.report.metrics import Charts
from fastscore.results.report.write import date_of, render_page, systems_of
from fastscore.results.runs import Run, as_run
from fastscore.run.commit import commit_bytes, commit_table
from fastscore.settings.extras import explained
from fastscore.settings.options import build_options, check_arguments
from fastscore.suites.base import AnalysisContents, AnalysisSettings, CommittedRun
from fastscore.suites.declarations import LABEL_TABLE
from fastscore.suites.judged import judge_source
from fastscore.suites.sums import require_labels

PAGE = "analysis.html"
TABLES_FOLDER, FIGURES_FOLDER = "tables", "figures"


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis made.

    Parameters
    ----------
    page
        The page's path.
    tables
        Every table by name.
    figures
        The names of the figures.
    notes
        What is missing and why, a sentence each.

    Examples
    --------
    >>> sorted(analysis.tables)[:2]
    >>> analysis.notes
    """

    page: Path
    tables: Mapping[str, pl.DataFrame]
    figures: tuple[str, ...]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        found = {"tables": self.tables, "figures": self.figures, "notes": self.notes}
        return f"Analysis {self.page}: " + ", ".join(
            counted(len(each), name) for name, each in found.items()
        )


@names_arguments
def analyse(
    run: Run | str | Path,
    output: str | Path | None = None,
    *,
    judge: str | Path | None = None,
    judge_columns: Sequence[str] = (),
    judge_scale: tuple[float, float] | None = None,
    cluster: str | None = None,
) -> Analysis:
    """Analyse a run of a suite that has an analysis of its own.

    Parameters
    ----------
    run
        A run, or its directory.
    output
        The folder to write to. Default: ``RUN-analysis`` beside the run,
        of scores in memory beside the logs. Files of an earlier
        analysis in it are replaced. A folder that holds anything else is refused.
    judge
        A file with a judge's scores, one row for each dialogue. Scores in the log count too.
    judge_columns
        Names of columns of that file with scores, beside the rubric's.
    judge_scale
        The smallest and largest score of the rubric. Others are refused and listed. Default: the
        scale in the ``summary.json`` of the judge's folder, else 1 to 5.
    cluster
        The column of table ``dialogues`` whose values are the units of intervals and tests. Rows
        without a value are units of their own. Default: the unit of the suite's design.

    Returns
    -------
    Analysis
        The page's path, the tables, and what is missing.

    Raises
    ------
    UsageError
        The run's suite has no analysis, the scale is empty, or the table has no such column.
    RunConflictError
        The folder holds something else than an analysis.
    InputError
        The judge's file is not there or cannot be read.
    RunError
        The run is not complete, or the folder cannot be written.

    Examples
    --------
    >>> example = fastscore.example("preference_shift", "shifts")
    >>> options = fastscore.PreferenceShift(catalogue="shifts/catalogue.jsonl", segments="metadata")
    >>> shifts = fastscore.score(example.logs, options, embedder=None, output="shift-run")
    >>> analysis = fastscore.analyse(shifts, "analysis")
    >>> analysis.page.name
    'analysis.html'
    """
    check_arguments(analyse, locals())
    opened = as_run(run)
    suite = opened.suite
    with explained("The analysis"):
        suite_analysis = suite.analyse
    if suite_analysis is None:
        raise UsageError(
            f"{opened.path} is a run of {suite.name}, which has no analysis of its own.",
            "`fastscore compare` compares runs of every suite.",
        )
    folder = Path(output) if output is not None else Path(f"{opened.path}-analysis")
    judge = scores_in(judge)
    scale = scale_of([judge], judge_scale)
    check_output(folder, ANALYSIS, (PAGE, FIGURES_FOLDER, TABLES_FOLDER))
    units = suite.design.clustered_by(cluster).unit
    require_labels(opened.scan(LABEL_TABLE), units, str(opened.path))
    if len(units) > 1:
        raise UsageError(f"cluster names {listed(units)}; expected one column for an analysis.")
    settings = AnalysisSettings(
        judge_columns=tuple(judge_columns), judge_scale=scale, unit=units[0]
    )
    judgements = None
    if judge is None and judge_columns:
        raise UsageError(
            f"judge_columns names {', '.join(judge_columns)}, but there is no judge's file.",
            "Name the file with judge.",
        )
    if judge is not None:
        require_columns([judge], judge_columns)
        read_ratings([judge], judge_columns, scale)  # refuses a file without any score
        judgements = read_judgements(judge, judge_source(settings.judge_columns))
    committed = CommittedRun(
        name=opened.path.name, signature=opened.signature, tables=opened.lazy_tables
    )
    options = build_options(suite.options, opened.manifest.options)
    with explained("The analysis"):
        found = suite_analysis(committed, judgements, options, settings)
    _write(folder, found, opened.signature)
    page = render_page("analysis.html", _content(opened, found, cluster))
    commit_bytes(folder / PAGE, page.encode())
    figures = tuple(drawing.name for drawing in found.drawings)
    return Analysis(folder / PAGE, found.tables, figures, found.notes)


def _content(run: Run, found: AnalysisContents, cluster: str | None) -> dict[str, Any]:
    """Gather what the page shows: first what tells groups apart, as `report` finds it."""
    headlines = read_headlines(run, cluster=cluster)
    systems = systems_of(headlines)
    groups = [
        one.text
        for one in list_findings(headlines, Inference.of(run.suite.design, cluster=cluster))
        if one.kind == "groups"
    ]
    return {
        "title": f"{found.title}: {systems}, {date_of(run)}",
        "systems": systems,
        "run": run,
        "found": found,
        "contents": [
            ("findings", "Findings"),
            *((f"section-{n}", one.title) for n, one in enumerate(found.sections, start=1)),
            ("signature", "Signature"),
        ],
        "findings": [
            *({"kind": "groups", "text": text, "metric": "", "run": ""} for text in groups),
            *({"kind": "scores", "text": text, "metric": "", "run": ""} for text in found.findings),
        ],
        "charts": Charts(),
    }


def _write(folder: Path, found: AnalysisContents, signature: str) -> None:
    """Write tables and figures first, so that a page is never newer than what it links to."""
    drawn = {f"{drawing.name}.svg": drawing.svg for drawing in found.drawings}
    for path in (folder / FIGURES_FOLDER).glob("*.svg"):
        if path.name not in drawn:  # of an earlier analysis that had something to draw
            path.unlink()
    for name, svg in drawn.items():
        header = '<?xml version="1.0" encoding="utf-8"?>\n'
        commit_bytes(folder / FIGURES_FOLDER / name, (header + svg).encode())
    for name, table in found.tables.items():
        commit_table(
            folder / TABLES_FOLDER / f"{name}.parquet", table, {"fastscore.signature": signature}
        )
        commit_bytes(folder / TABLES_FOLDER / f"{name}.csv", write_csv(table).encode())
