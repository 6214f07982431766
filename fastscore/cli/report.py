"""``fastscore report``: a page about one run, or several side by side."""

from pathlib import Path

import click


@click.command("report", epilog="Example: fastscore report base new -o report.html")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The HTML file.",
)
def command(runs: tuple[Path, ...], output: Path) -> None:
    """Write a page about RUNS: one run, or several of a suite side by side.

    One file that needs nothing from elsewhere: findings, every metric with its distribution and
    groups, nulls, rejects, and the best, worst and median dialogues turn by turn. Opened from disk;
    REPORT#dialogue=NAME leads to a dialogue.
    """
    from fastscore.results.report.write import write_report

    click.echo(write_report(runs, output))
