"""The analysis of a run of preference_shift: ablations, sensitivity, validity, figures, one page.

Everything is computed from the committed tables; nothing is scored again. The same run and judge's
file give the same files, byte for byte.
"""

from html import escape

import polars as pl

from fastscore.suites.base import AnalysisContents, AnalysisSettings, CommittedRun
from fastscore.suites.judged import collect_judged, describe_rejects
from fastscore.suites.preference_shift.analysis.construct import segment_similarities
from fastscore.suites.preference_shift.analysis.convergent import untestable
from fastscore.suites.preference_shift.analysis.figures import draw_figures
from fastscore.suites.preference_shift.analysis.figures.style import MODELS_SHOWN
from fastscore.suites.preference_shift.analysis.page import make_page
from fastscore.suites.preference_shift.analysis.scored import UNIT, Scored, make_scored
from fastscore.suites.preference_shift.analysis.tables import (
    make_tables,
    read_weights,
    top_concepts,
)
from fastscore.suites.preference_shift.options import PreferenceShift

TITLE = "Adaptation to preference shifts"


def analyse_run(
    run: CommittedRun,
    judgements: tuple[pl.DataFrame, pl.DataFrame] | None,
    options: PreferenceShift,
    settings: AnalysisSettings,
) -> AnalysisContents:
    """Analyse a run of preference_shift.

    Parameters
    ----------
    run
        A complete run.
    judgements
        Rows and rejects of a judge's file, as in `collect_judged`; scores of the log count too.
    options
        The options that the run was scored with.
    settings
        Scale and columns of the judge, and the column that names the units.

    Returns
    -------
    AnalysisContents
        Page, tables, figures, and what is missing.
    """
    scored = make_scored(run.tables, options, run.signature, settings.unit)
    judged = collect_judged(
        scored.conversations, judgements, settings.judge_scale, settings.judge_columns
    )
    cosines, missing = _segment_cosines(run, scored)
    frequent = top_concepts(run.tables["turns"])
    tables = make_tables(scored, judged, cosines, frequent)
    figures = draw_figures(scored, judged, tables)
    too_few = untestable(tables.convergent_validity)
    found = (missing, describe_rejects(judged), _left_out(scored), too_few)
    notes = tuple(note for note in found if note)
    page = make_page(TITLE, _facts(run, scored), notes, tables, figures)
    drawn = {figure.name: figure.svg for figure in figures}
    captions = {figure.name: (figure.title, figure.caption) for figure in figures}
    return AnalysisContents(
        page=page, tables=tables.by_name(), figures=drawn, notes=notes, captions=captions
    )


def _segment_cosines(run: CommittedRun, scored: Scored) -> tuple[pl.DataFrame | None, str]:
    weights, missing = read_weights(scored)
    if weights is None:
        return None, f"{missing} CR is not compared within and across segments."
    return segment_similarities(run.tables["turns"], weights, scored.conversations), ""


def _left_out(scored: Scored) -> str:
    left_out = scored.models[MODELS_SHOWN:]
    if not left_out:
        return ""
    return (
        f"Figures show the first {MODELS_SHOWN} of {len(scored.models)} models by name; the tables "
        f"have all. Left out: {', '.join(left_out)}."
    )


def _facts(run: CommittedRun, scored: Scored) -> list[str]:
    models = ", ".join(scored.models) or "none named"
    units = scored.conversations["cluster"].n_unique()
    return [
        f"{scored.conversations.height:,} conversations, {scored.turns.height:,} turns and "
        f"{scored.shifts.height:,} shifts; models: {escape(models)}. Scores come from grounded "
        "concept overlap in a closed set of items; a judge is a check on them, not the truth.",
        f"The unit of intervals and tests is {_unit(scored)}: {units:,} units. Intervals have "
        "95 %. Tests are two-sided, and Holm's procedure corrects the headline tests of each table "
        "and group. A result is significant if its corrected p is below 0.05 and its interval "
        "excludes 0.",
        f"Run: <code>{escape(run.name)}</code>, <code>{escape(run.signature)}</code>",
    ]


def _unit(scored: Scored) -> str:
    if scored.unit == UNIT:
        return "the dialogue, with the answers of all models to it"
    return f"the value of column <code>{escape(scored.unit)}</code>"
