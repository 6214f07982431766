"""``fastscore summary``: what came out of a run."""

from pathlib import Path

import click

from fastscore.errors import EXIT_CHECK_FAILED
from fastscore.terminal import write_note
from fastscore.terminal.grids import FORMATS, Format


@click.command(
    "summary",
    epilog="Examples: fastscore summary run; fastscore summary run --by model --format markdown",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--by", metavar="COLUMN[,COLUMN]", help="Labels of dialogues: a column for each value."
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="Unit of the confidence intervals: a column of table dialogues, such as the user. "
    "Default: the dialogue.",
)
@click.option("--metric", "metrics", multiple=True, help="Only this metric. Repeatable.")
@click.option(
    "--all", "everything", is_flag=True, help="Parts and counts too, with deviation and range."
)
@click.option(
    "--average",
    type=click.Choice(["macro", "micro"]),
    default="macro",
    show_default=True,
    help="Of groups: means over rows, or ratios of sums.",
)
@click.option(
    "--baselines",
    is_flag=True,
    help="Add what trivial agents score on the same log, such as one that always refuses.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="csv and json contain every statistic, unrounded, over all rows. The others leave out "
    "rows whose value a definition fixes.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option(
    "--verify", is_flag=True, help="Read every output and compare it with what was committed."
)
@click.pass_context
def command(
    ctx: click.Context,
    run: Path,
    by: str | None,
    cluster: str | None,
    metrics: tuple[str, ...],
    everything: bool,
    average: str,
    baselines: bool,
    format: Format,
    as_json: bool,
    verify: bool,
) -> None:
    """Show the summary of RUN, a run directory.

    One row a metric: its name, whether more (↑) or less (↓) is better, and its mean with a 95 %
    confidence interval, then the numbers of values, dialogues and nulls. Dialogues are the units
    of the intervals, and fewer than three have none. The means by the first label that tells
    dialogues apart follow. The table is as wide as the terminal, or COLUMNS. Columns that do not
    fit are dropped in the order long ids, sd, range, micro, short ids, n, reading, n of units.
    Groups continue in a further block.
    """
    from fastscore.results.runs import open_run
    from fastscore.results.show import show_summary

    opened = open_run(run)
    if verify:
        damaged = opened.damaged()
        for path in damaged:
            write_note(f"{run / path}: not what was committed.")
        if damaged:
            ctx.exit(EXIT_CHECK_FAILED)
    show_summary(
        opened,
        by=[name.strip() for name in by.split(",")] if by else (),
        cluster=cluster,
        metrics=metrics,
        everything=everything,
        average=average,
        baselines=baselines,
        format="json" if as_json else format,
    )
