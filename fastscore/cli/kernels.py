"""``fastscore kernels``: what runs compute with, compiled ahead."""

from pathlib import Path

import click

from fastscore.cli.command_types import SuggestingGroup
from fastscore.terminal import write_line, write_note


@click.group("kernels", cls=SuggestingGroup)
def command() -> None:
    """Compile kernels ahead, and list them.

    A kernel is compiled once for a level of processors. A run compiles missing kernels itself.
    This command does it ahead.
    """


@command.command("compile", epilog="Example: fastscore kernels compile score_dialogue")
@click.argument("suite", nargs=-1)
@click.option(
    "--ship",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Copy what is compiled to a folder, from which a wheel takes it.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def compile_command(suite: tuple[str, ...], ship: Path | None, quiet: bool) -> None:
    """Compile the kernels of SUITE (of every installed suite without one)."""
    from fastscore.run.kernels import compile_kernels, ship_kernels
    from fastscore.run.progress import reporter

    kernels = compile_kernels(suite, reporter(quiet=quiet))
    if ship is not None:
        ship_kernels(kernels, ship)
    if not quiet:
        write_note(f"{len(kernels)} kernels are compiled")


@command.command("list", epilog="Example: fastscore kernels list group_travel")
@click.argument("suite", nargs=-1)
def list_command(suite: tuple[str, ...]) -> None:
    """List the kernels of SUITE (of every installed suite without one) and where they are."""
    from fastscore.run.kernels import listed_kernels

    for name, place in listed_kernels(suite):
        write_line(f"{name:<60} {place or 'not compiled'}")
