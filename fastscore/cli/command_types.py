"""Kinds of commands: with options under headings, and groups that suggest the nearest name."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from fastscore.errors import UsageError, did_you_mean

HEADING = "Options"
"""The heading of options where a command names no headings."""


class HeadedOption(click.Option):
    """An option that declares its heading in ``--help``; others stand under the last one."""

    def __init__(self, *arguments: Any, heading: str, **declared: Any) -> None:
        super().__init__(*arguments, **declared)
        self.heading = heading


class HeadedCommand(click.Command):
    """A command whose ``--help`` puts options under their headings.

    Parameters
    ----------
    headings
        The headings in the order in which they are shown; others follow as they are declared.
    """

    def __init__(self, *arguments: Any, headings: Sequence[str] = (), **declared: Any) -> None:
        super().__init__(*arguments, **declared)
        self.headings = tuple(headings)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section a heading."""
        for heading, options in options_by_heading(self, ctx).items():
            records = [option.get_help_record(ctx) for option in options]
            with formatter.section(heading):
                formatter.write_dl([record for record in records if record])


def options_by_heading(
    command: click.Command, ctx: click.Context
) -> Mapping[str, Sequence[click.Option]]:
    """Return the options that a command's ``--help`` shows by their headings, in its order."""
    headings = getattr(command, "headings", ()) or (HEADING,)
    found: dict[str, list[click.Option]] = {heading: [] for heading in headings}
    for parameter in command.get_params(ctx):
        if isinstance(parameter, click.Option) and not parameter.hidden:
            found.setdefault(getattr(parameter, "heading", headings[-1]), []).append(parameter)
    return {heading: options for heading, options in found.items() if options}


class SuggestingGroup(click.Group):
    """A group that suggests the nearest of its commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named, or say which was probably meant."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UsageError(
                f"No such command {name!r} of `{ctx.command_path}`.",
                did_you_mean(name, self.list_commands(ctx)),
            )
        return super().resolve_command(ctx, args)
