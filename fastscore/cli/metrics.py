"""``fastscore metrics``: what each number means."""

import click

from fastscore.results.metric_cards import find_metrics, metrics_json, metrics_text
from fastscore.terminal import write_line


@click.command("metrics", epilog="Examples: fastscore metrics score_dialogue; fastscore metrics M5")
@click.argument("names", metavar="[SUITE] [METRIC]", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the declarations as JSON.")
def command(names: tuple[str, ...], as_json: bool) -> None:
    """List the metrics of SUITE, or METRIC in every suite that has it.

    Each metric is printed with its formula, symbols, range, example, null rule and source.
    """
    suites = find_metrics(names)
    if as_json:
        write_line(metrics_json(suites))
    else:
        write_line("\n\n".join(metrics_text(suite) for suite in suites))
