"""The figures of an analysis, as SVG."""

from fastscore.suites.judged import Judged
from fastscore.suites.preference_shift.analysis.figures.models import (
    ablation_bars,
    distributions,
    judge_figure,
    radar,
    weight_maps,
)
from fastscore.suites.preference_shift.analysis.figures.style import MODELS_SHOWN, Drawn, settings
from fastscore.suites.preference_shift.analysis.figures.turns import (
    around_shifts_figure,
    construct_figure,
    recovery_figure,
    timelines,
)
from fastscore.suites.preference_shift.analysis.scored import Scored, of_models
from fastscore.suites.preference_shift.analysis.tables import Tables


def draw_figures(scored: Scored, judged: Judged, tables: Tables) -> list[Drawn]:
    """Draw every figure that the run has something for, the first models by name in each."""
    models = scored.models[:MODELS_SHOWN]
    shown = of_models(scored, models)
    with settings():
        figures = (
            distributions(shown, models),
            radar(shown, models),
            timelines(shown, models),
            around_shifts_figure(shown, models),
            recovery_figure(shown, tables.window_sweep, models),
            ablation_bars(tables.ablations, models),
            weight_maps(tables.weight_grid, models),
            construct_figure(tables.construct_validity),
            judge_figure(scored, judged, tables.convergent_validity, models),
        )
    return [figure for figure in figures if figure is not None]
