"""``fastscore report``: a page about one run, or several side by side."""

import warnings
from pathlib import Path

import click

from fastscore.terminal import result_console, write_line, write_note


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
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="Unit of the confidence intervals and tests: a column of table dialogues, such as the "
    "user. Default: the dialogue.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no findings, the file's name alone.")
def command(runs: tuple[Path, ...], output: Path, cluster: str | None, quiet: bool) -> None:
    """Write a page about RUNS: one run, or several of a suite side by side.

    Prints the findings about one run in ten lines, and where the page is.

    One file that needs nothing from elsewhere: findings, every metric with its distribution and
    groups, nulls, rejects, and the best, worst and median dialogues turn by turn. The
    page works offline. REPORT#dialogue=NAME opens a dialogue.
    """
    from fastscore.logs.read.scan import LogsWarning
    from fastscore.results.findings import findings_lines, list_findings
    from fastscore.results.headlines import read_headlines
    from fastscore.results.report.write import write_report
    from fastscore.results.runs import open_run

    opened = [open_run(run) for run in runs]
    headlines = [read_headlines(run, cluster=cluster) for run in opened]
    with warnings.catch_warnings(record=True) as missing:
        warnings.simplefilter("always", LogsWarning)
        path = write_report(opened, output, headlines=headlines)
    if len(opened) == 1 and not quiet:
        width = min(80, result_console().width)
        for line in findings_lines(list_findings(opened[0], headlines[0]), width=width):
            write_line(line)
    for each in missing:
        write_note(f"Note: {each.message}")
    write_line(path)
