"""``fastscore metrics``: what each number means."""

import click

from fastscore.results.metric_cards import metrics_json, metrics_text
from fastscore.suites.registry import load_suite, suite_names
from fastscore.terminal import write_line


@click.command("metrics", epilog="Example: fastscore metrics score_dialogue")
@click.argument("suite", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the declarations as JSON.")
def command(suite: tuple[str, ...], as_json: bool) -> None:
    """List the metrics of SUITE (of every installed suite without one).

    Each with its formula, range, direction, null rule and source.
    """
    suites = [load_suite(name) for name in suite or suite_names()]
    if as_json:
        write_line(metrics_json(suites))
    else:
        write_line("\n\n".join(metrics_text(suite) for suite in suites))
