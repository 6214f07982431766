"""``fastscore summary``: what came out of a run."""

from pathlib import Path

import click

from fastscore.errors import EXIT_CHECK_FAILED


@click.command("summary", epilog="Example: fastscore summary run --json")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option(
    "--verify", is_flag=True, help="Read every output and compare it with what was committed."
)
@click.pass_context
def command(ctx: click.Context, run: Path, as_json: bool, verify: bool) -> None:
    """Show the summary of RUN, a run directory."""
    from fastscore.results.runs import open_run
    from fastscore.results.show import show_outcome

    if verify:
        damaged = open_run(run).damaged()
        for path in damaged:
            click.echo(f"{run / path}: not what was committed.", err=True)
        if damaged:
            ctx.exit(EXIT_CHECK_FAILED)
    show_outcome(run, as_json=as_json)
