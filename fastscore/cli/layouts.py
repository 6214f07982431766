"""``fastscore layouts``: the logs of other tools that are read by name."""

import click

from fastscore.logs.inputs.layout import layout_text, layouts_json
from fastscore.terminal import write_line


@click.command("layouts", epilog="Example: fastscore layouts langfuse")
@click.argument("name", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the layouts as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the files, to keep and edit.")
def command(name: tuple[str, ...], as_json: bool, as_toml: bool) -> None:
    """List layouts, each with an example of a document (all without NAME).

    Score such logs with --layout NAME, or with the file of a layout of your own.
    """
    write_line(layouts_json(name) if as_json else layout_text(name, as_file=as_toml))
