"""``fastscore compare``: how two runs, or the levels of one, differ."""

from pathlib import Path
from typing import Literal

import click

from fastscore.cli.command_types import HeadedCommand, HeadedOption
from fastscore.statistics import SAMPLES
from fastscore.terminal.grids import FORMATS, Format

ALPHA = 0.05

COMPARED, JUDGED, HOW = "What is compared", "A judge's scores", "How it is compared and shown"


@click.command(
    "compare",
    cls=HeadedCommand,
    headings=(COMPARED, JUDGED, HOW),
    epilog="Examples: fastscore compare base new; fastscore compare run --by experiment_level; "
    "fastscore compare run --by experiment_level --format latex",
)
@click.argument("runs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--by",
    cls=HeadedOption,
    heading=COMPARED,
    metavar="COLUMN",
    help="A label column. With one run, its levels.",
)
@click.option(
    "--level",
    "levels",
    cls=HeadedOption,
    heading=COMPARED,
    multiple=True,
    metavar="VALUE",
    help="Only this value of --by. Repeatable.",
)
@click.option(
    "--table",
    "tables",
    cls=HeadedOption,
    heading=COMPARED,
    multiple=True,
    help="Only metrics of this table. Repeatable.",
)
@click.option(
    "--metric",
    "metrics",
    cls=HeadedOption,
    heading=COMPARED,
    multiple=True,
    help="Only this metric. Repeatable.",
)
@click.option(
    "--pair-by",
    cls=HeadedOption,
    heading=COMPARED,
    metavar="COLUMN",
    help="Column whose equal values are a pair, or a regular expression with one group that finds "
    "the pair's name in the dialogue id. Default: dialogue id.",
)
@click.option(
    "--unpaired",
    cls=HeadedOption,
    heading=COMPARED,
    is_flag=True,
    help="Compare all dialogues as independent samples, also those with equal ids.",
)
@click.option(
    "--cluster",
    cls=HeadedOption,
    heading=HOW,
    metavar="COLUMN",
    help="Unit of inference, such as miner or user. Default: what is paired.",
)
@click.option(
    "--repeats",
    cls=HeadedOption,
    heading=HOW,
    metavar="COLUMN",
    help="Column that tells repeated runs apart: intervals then hold for new repeats too.",
)
@click.option(
    "--test",
    type=click.Choice(["auto", "t", "permutation"]),
    default="auto",
    show_default=True,
    help="auto: exact permutations if there are at most 10,000, else t.",
)
@click.option(
    "--allow-different-signatures",
    is_flag=True,
    help="Compare numbers that were made in different ways.",
)
@click.option(
    "--published-statistics",
    is_flag=True,
    help="Add the statistics of the public guest_simulation code: Student, Welch, Mann-Whitney.",
)
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=ALPHA,
    show_default=True,
    help="Two-sided level of significance. Default: 0.05.",
)
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=SAMPLES,
    show_default=True,
    help="Bootstrap samples for intervals of places.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Seed of all random draws.",
)
@click.option(
    "--judge",
    "judges",
    cls=HeadedOption,
    heading=JUDGED,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A judge's scores, a row a dialogue, compared as metrics. With two runs given twice.",
)
@click.option(
    "--judge-column",
    "judge_columns",
    cls=HeadedOption,
    heading=JUDGED,
    multiple=True,
    help="Another column of that file that holds scores. Repeatable.",
)
@click.option(
    "--judge-range",
    type=(float, float),
    default=(1, 5),
    show_default=True,
    cls=HeadedOption,
    heading=JUDGED,
    help="The smallest and largest possible score. Others are refused and counted.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="csv and json contain every statistic, unrounded.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    runs: tuple[Path, ...],
    by: str | None,
    levels: tuple[str, ...],
    tables: tuple[str, ...],
    metrics: tuple[str, ...],
    pair_by: str | None,
    unpaired: bool,
    cluster: str | None,
    repeats: str | None,
    test: Literal["auto", "t", "permutation"],
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
    """Compare runs dialogue by dialogue, or the levels of one run.

    For every metric: means, their difference with its 95 % confidence interval, p-value, Holm's
    correction and effect size, all of the same estimate with the dialogue as unit. Three runs or
    levels and more are ranked. Runs with different signatures are refused.
    """
    from fastscore.results.compare import compare
    from fastscore.results.compare.show import show_comparison

    comparison = compare(
        *runs,
        by=by,
        levels=levels,
        tables=tables,
        metrics=metrics,
        pair_by=pair_by,
        unpaired=unpaired,
        cluster=cluster,
        repeats=repeats,
        test=test,
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
