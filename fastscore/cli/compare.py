"""``fastscore compare``: how two runs, or the levels of one, differ."""

from pathlib import Path

import click

from fastscore.cli.headings import HeadedCommand, HeadedOption
from fastscore.terminal.grids import FORMATS, Format

SAMPLES = 2_000
ALPHA = 0.05

COMPARED, JUDGED, HOW = "What is compared", "A judge's scores", "How it is compared and shown"


@click.command(
    "compare",
    cls=HeadedCommand,
    headings=(COMPARED, JUDGED, HOW),
    epilog="Examples: fastscore compare base new; fastscore compare run --by experiment_level",
)
@click.argument("run_a", type=click.Path(path_type=Path))
@click.argument("run_b", type=click.Path(path_type=Path), required=False)
@click.option(
    "--by",
    cls=HeadedOption,
    heading=COMPARED,
    metavar="COLUMN",
    help="A label column; with one run, its levels.",
)
@click.option(
    "--level",
    "levels",
    cls=HeadedOption,
    heading=COMPARED,
    multiple=True,
    metavar="VALUE",
    help="Only this value of --by; repeatable.",
)
@click.option(
    "--table",
    "tables",
    cls=HeadedOption,
    heading=COMPARED,
    multiple=True,
    help="Only metrics of this table; repeatable.",
)
@click.option(
    "--metric",
    "metrics",
    cls=HeadedOption,
    heading=COMPARED,
    multiple=True,
    help="Only this metric; repeatable.",
)
@click.option(
    "--pair-by",
    cls=HeadedOption,
    heading=COMPARED,
    metavar="COLUMN",
    help="The column whose equal values are a pair; else the dialogue's id.",
)
@click.option(
    "--unpaired",
    cls=HeadedOption,
    heading=COMPARED,
    is_flag=True,
    help="Compare as independent samples only.",
)
@click.option(
    "--allow-different-signatures",
    is_flag=True,
    help="Compare numbers that were made in different ways.",
)
@click.option(
    "--published-statistics",
    is_flag=True,
    help="Student's t and variances over n, as the public guest_simulation code has them.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=ALPHA,
    show_default=True,
    help="Level of significance, two-sided: a p below it is marked.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=SAMPLES,
    show_default=True,
    help="Bootstrap samples.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the samples."
)
@click.option(
    "--judge",
    "judges",
    cls=HeadedOption,
    heading=JUDGED,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A judge's scores, a row a dialogue, compared as metrics; with two runs given twice.",
)
@click.option(
    "--judge-column",
    "judge_columns",
    cls=HeadedOption,
    heading=JUDGED,
    multiple=True,
    help="Another column of that file that holds scores; repeatable.",
)
@click.option(
    "--judge-range",
    type=(float, float),
    default=(1, 5),
    show_default=True,
    cls=HeadedOption,
    heading=JUDGED,
    help="The smallest and largest possible score; others are refused and counted.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="csv and json hold every statistic, unrounded.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    run_a: Path,
    run_b: Path | None,
    by: str | None,
    levels: tuple[str, ...],
    tables: tuple[str, ...],
    metrics: tuple[str, ...],
    pair_by: str | None,
    unpaired: bool,
    allow_different_signatures: bool,
    published_statistics: bool,
    alpha: float,
    samples: int,
    seed: int,
    judges: tuple[Path, ...],
    judge_columns: tuple[str, ...],
    judge_range: tuple[float, float],
    format: Format,
    as_json: bool,
) -> None:
    """Compare RUN_B with RUN_A, dialogue by dialogue, or the levels of RUN_A alone.

    For every metric: means, their difference with a bootstrap interval over whole dialogues, effect
    size, paired t and Wilcoxon (independent samples: Welch and Mann-Whitney), with Holm's
    correction over all that is shown. Numbers of different signatures are refused. What does not
    fit the width is dropped in the order long ids, effect without sign, n, means, effect, rank
    test, ids, nulls, verdict; the difference, its interval and its corrected p never are.
    """
    from fastscore.results.compare import compare
    from fastscore.results.show_comparison import show_comparison

    comparison = compare(
        run_a,
        run_b,
        by=by,
        levels=levels,
        tables=tables,
        metrics=metrics,
        pair_by=pair_by,
        unpaired=unpaired,
        allow_different_signatures=allow_different_signatures,
        published_statistics=published_statistics,
        alpha=alpha,
        samples=samples,
        seed=seed,
        judge=judges,
        judge_columns=judge_columns,
        judge_scale=judge_range,
    )
    show_comparison(comparison, format="json" if as_json else format)
