"""Options that benchmarks of whole processes share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]


def whole_process_options(quick: Mapping[str, int]) -> Callable[[Command], Command]:
    """Add ``--workers``, ``--weights``, ``--scratch``, ``--output`` and ``--quick`` to a command.

    Parameters
    ----------
    quick
        The sizes that ``--quick`` defaults to, by parameter.
    """

    def default_to_quick(ctx: click.Context, parameter: click.Parameter, is_quick: bool) -> None:
        if is_quick:
            ctx.default_map = dict(quick)

    sizes = ", ".join(f"{name} {size:,}" for name, size in quick.items())
    options = (
        click.option("--workers", type=int, show_default="all cores", help="fastscore's."),
        click.option(
            "--weights",
            type=click.Path(path_type=Path, exists=True),
            show_default="downloaded",
            help="The default model's sentence-transformers folder.",
        ),
        click.option(
            "--scratch",
            type=click.Path(path_type=Path),
            show_default="the system's",
            help="Where to keep logs and runs while measuring.",
        ),
        click.option(
            "--output", type=click.Path(path_type=Path), help="A JSON file for every figure."
        ),
        click.option(
            "--quick",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=default_to_quick,
            help=f"Default to small sizes: {sizes}.",
        ),
    )

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add
