"""``fastscore agreement``: the scores of several judges or people compared."""

from pathlib import Path

import click

from fastscore.terminal.grids import FORMATS, Format


@click.command(
    "agreement",
    epilog="Example: fastscore agreement judgements/judgements.jsonl people.csv",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--judge-column",
    "columns",
    multiple=True,
    help="Another column that holds scores. Repeatable.",
)
@click.option(
    "--judge-range",
    "scale",
    type=(float, float),
    default=(1, 5),
    show_default=True,
    help="The smallest and largest possible score. Others are left out and counted.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="csv and json hold every value, unrounded.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def command(
    files: tuple[Path, ...],
    columns: tuple[str, ...],
    scale: tuple[float, float],
    format: Format,
    as_json: bool,
) -> None:
    """Compare the scores that several judges or people gave to the same dialogues.

    FILES are judges' files and people's, a row a dialogue and rater: JSON, JSON Lines, CSV or
    Parquet. Each pair of raters gets Cohen's kappa with quadratic weights, all raters together
    Krippendorff's alpha with ordinal and with interval distance. The 95 % confidence intervals
    come from a jackknife over dialogues and need at least eight of them.
    """
    from fastscore.results.agreement import agreement, show_agreement

    found = agreement(*files, columns=columns, scale=scale)
    show_agreement(found, format="json" if as_json else format)
