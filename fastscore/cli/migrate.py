"""``fastscore migrate``: moving from a public script."""

from pathlib import Path

import click

from fastscore.cli.command_types import SuggestingGroup
from fastscore.errors import EXIT_CHECK_FAILED


@click.group("migrate", cls=SuggestingGroup, epilog="Example: fastscore migrate check run old/")
def command() -> None:
    """Move from a public script to fastscore without having to believe it."""


@command.command(
    "check",
    short_help="Compare a run with the scores that a public script wrote.",
    epilog="Example: fastscore migrate check run scores/ --tolerance 1e-6",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("old_scores", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Maximum difference that is ignored.",
)
@click.pass_context
def check(ctx: click.Context, run: Path, old_scores: tuple[Path, ...], tolerance: float) -> None:
    """Compare RUN with OLD_SCORES, files or folders that a public script wrote of the same logs.

    Read are score_dialogue's *-score.json, memory_finance's metrics_summary*.json and
    turn_eval*.jsonl, preference_shift's results.jsonl and guest_simulation's
    all_conversations_metrics.csv. Numbers are equal, differ by the old file's rounding,
    or differ. Then the option that explains it is named, and the exit code is 1.
    """
    from fastscore.results.migration import agreement_grids, check_migration, explained, verdict
    from fastscore.results.runs import open_run
    from fastscore.terminal import result_console
    from fastscore.terminal.grids import print_grid

    found = check_migration(open_run(run), old_scores, tolerance=tolerance)
    console = result_console()
    console.print(verdict(found), soft_wrap=True, highlight=False)
    for grid in agreement_grids(found):
        print_grid(console, grid)
    for line in explained(found):
        console.print(line, soft_wrap=True)
    if not found.agrees:
        ctx.exit(EXIT_CHECK_FAILED)
