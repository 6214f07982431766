"""From a run directory to a folder with tables, figures and a page."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import polars as pl

from fastscore.errors import UsageError
from fastscore.suites.preference_shift.analysis.concept_weights import read_weights
from fastscore.suites.preference_shift.analysis.construct import segment_similarities
from fastscore.suites.preference_shift.analysis.figures import draw_figures
from fastscore.suites.preference_shift.analysis.figures.style import MODELS_SHOWN, Drawn
from fastscore.suites.preference_shift.analysis.judge import describe_rejects, read_judged
from fastscore.suites.preference_shift.analysis.page import make_page
from fastscore.suites.preference_shift.analysis.scored import Scored, read_scored
from fastscore.suites.preference_shift.analysis.tables import Tables, make_tables
from fastscore.statistics.bootstrap import SAMPLES, SEED
from fastscore.results.runs import Run, open_run
from fastscore.run.commit import commit_bytes, commit_table

PAGE = "analysis.html"
TABLES_FOLDER, FIGURES_FOLDER = "tables", "figures"
JUDGE_SCALE = (1.0, 5.0)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis made.

    Parameters
    ----------
    page
        The page's path.
    tables
        Every table.
    figures
        The names of the figures that there was something to draw for.
    notes
        What is missing and why, a sentence each.
    """

    page: Path
    tables: Tables
    figures: tuple[str, ...]
    notes: tuple[str, ...]


def analyse(
    run: str | Path,
    output: str | Path | None = None,
    *,
    judge: str | Path | None = None,
    judge_columns: Sequence[str] = (),
    judge_scale: tuple[float, float] = JUDGE_SCALE,
    samples: int = SAMPLES,
    seed: int = SEED,
) -> Analysis:
    """Analyse a run of preference_shift.

    Parameters
    ----------
    run
        A complete run directory.
    output
        The folder to write to; ``RUN-analysis`` beside the run without one. Files of an earlier
        analysis in it are replaced, others are left alone.
    judge
        A file with a judge's scores, as in `read_judged`; those of the log count too.
    judge_columns
        Names of columns of that file that hold scores, beside the rubric's.
    judge_scale
        The smallest and largest score of the rubric; others are refused and listed.
    samples, seed
        Of every bootstrap by dialogue.

    Returns
    -------
    Analysis
        The page's path, the tables, and what is missing.

    Raises
    ------
    UsageError
        The run is of another suite, or the scale is empty.
    InputError
        The judge's file is not there or cannot be read.
    RunError
        The run is not complete, or the folder cannot be written.
    """
    opened = open_run(run)
    folder = Path(output) if output is not None else Path(f"{opened.path}-analysis")
    if not judge_scale[0] < judge_scale[1]:
        raise UsageError(f"--judge-range is {judge_scale}, expected a smaller and a larger number.")
    scored = read_scored(opened)
    judged = read_judged(scored, None if judge is None else Path(judge), judge_scale, judge_columns)
    cosines, missing = _segment_cosines(opened, scored)
    tables = make_tables(scored, judged, cosines, samples=samples, seed=seed)
    figures = draw_figures(scored, judged, tables, samples=samples, seed=seed)
    notes = tuple(note for note in (missing, describe_rejects(judged), _left_out(scored)) if note)
    facts = _facts(opened, scored, samples, seed)
    page = make_page("Adaptation to preference shifts", facts, notes, tables, figures)
    _write(folder, page, tables, figures, scored.signature)
    return Analysis(folder / PAGE, tables, tuple(figure.name for figure in figures), notes)


def _segment_cosines(run: Run, scored: Scored) -> tuple[pl.DataFrame | None, str]:
    weights, missing = read_weights(scored)
    if weights is None:
        return None, f"{missing} CR is not compared within and across segments."
    return segment_similarities(run.table("turns"), weights, scored.conversations), ""


def _left_out(scored: Scored) -> str:
    left_out = scored.models[MODELS_SHOWN:]
    if not left_out:
        return ""
    return (
        f"Figures show the first {MODELS_SHOWN} of {len(scored.models)} models by name; the tables "
        f"have all. Left out: {', '.join(left_out)}."
    )


def _facts(run: Run, scored: Scored, samples: int, seed: int) -> list[str]:
    models = ", ".join(scored.models) or "none named"
    return [
        f"{scored.conversations.height:,} conversations, {scored.turns.height:,} turns and "
        f"{scored.shifts.height:,} shifts; models: {escape(models)}. Scores come from grounded "
        "concept overlap in a closed set of items; a judge is a check on them, not the truth.",
        f"Intervals: 95 %, {samples:,} resamples of whole dialogues, seed {seed}. Run: "
        f"<code>{escape(run.path.name)}</code>, <code>{escape(run.signature)}</code>",
    ]


def _write(
    folder: Path, page: str, tables: Tables, figures: Sequence[Drawn], signature: str
) -> None:
    """Write tables and figures first, so that a page is never newer than what it links to."""
    drawn = {f"{figure.name}.svg": figure.svg for figure in figures}
    for path in (folder / FIGURES_FOLDER).glob("*.svg"):
        if path.name not in drawn:  # of an earlier analysis that had something to draw
            path.unlink()
    for name, svg in drawn.items():
        header = '<?xml version="1.0" encoding="utf-8"?>\n'
        commit_bytes(folder / FIGURES_FOLDER / name, (header + svg).encode())
    for name, table in tables.by_name().items():
        commit_table(
            folder / TABLES_FOLDER / f"{name}.parquet", table, {"fastscore.signature": signature}
        )
        commit_bytes(folder / TABLES_FOLDER / f"{name}.csv", table.write_csv().encode())
    commit_bytes(folder / PAGE, page.encode())
