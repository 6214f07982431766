"""``fastscore completion``: the completion script of a shell."""

import click
from click.shell_completion import get_completion_class

from fastscore.terminal import write_line

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog='Example: eval "$(fastscore completion bash)"',
)
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script that completes fastscore's words in SHELL."""
    from fastscore.cli import cli

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    write_line(completion(cli, {}, "fastscore", "_FASTSCORE_COMPLETE").source())
