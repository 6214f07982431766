"""Groups of commands that say which of them a wrong name probably meant."""

import click

from fastscore.errors import UsageError, nearest


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
                nearest(name, self.list_commands(ctx)),
            )
        return super().resolve_command(ctx, args)
