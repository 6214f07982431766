"""``fastscore doctor``: what is in place and what is not."""

import click

from fastscore.errors import EXIT_CHECK_FAILED
from fastscore.terminal import write_line


@click.command("doctor", epilog="Example: fastscore doctor --warm")
@click.option("--warm", is_flag=True, help="Compile every kernel now, so that no run has to.")
@click.pass_context
def command(ctx: click.Context, warm: bool) -> None:
    """Say what is installed, exported, compiled and writable."""
    from fastscore.results.health import examine

    fine = True
    for finding in examine(warm=warm):
        fine = fine and finding.fine
        write_line(f"{'ok' if finding.fine else '!!'}  {finding.topic:<22} {finding.text}")
    if not fine:
        ctx.exit(EXIT_CHECK_FAILED)
