"""``fastscore example``: a small example log of a suite."""

from pathlib import Path

import click

from fastscore.examples import example_names, write_example
from fastscore.terminal import write_line


@click.command("example", epilog="Example: fastscore example score_dialogue -o example")
@click.argument("suite", type=click.Choice(example_names()))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="A folder.",
)
def command(suite: str, output: Path) -> None:
    """Write a small example log of SUITE, with its licence and the command that scores it."""
    example = write_example(suite, output)
    for name, size in example.files:
        write_line(f"{output / name}  {size:,} bytes")
    write_line(f"\nScore it:\n  {example.command('run')}\n  fastscore summary run")
