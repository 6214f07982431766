"""``fastscore inspect``: what logs hold, and the command that scores them."""

import click

from fastscore.terminal import write_line


@click.command("inspect", epilog="Examples: fastscore inspect logs; fastscore inspect logs --json")
@click.argument("logs", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option(
    "--as-layout",
    metavar="SUITE",
    help="Print the proposed layout of a suite as TOML, to keep, edit and score with --layout.",
)
def command(logs: tuple[str, ...], as_json: bool, as_layout: str | None) -> None:
    """Show what LOGS contain, which suites can read them, and what to type.

    LOGS are files, folders or globs; - is standard input. Each suite's own reader tries the first
    200 rows of each file, as they are or with the flags that are shown. A command is shown only if
    it would score something. The tables have each key with its types, nulls and an example.
    """
    import orjson

    from fastscore.api.reading import inspect
    from fastscore.logs.inputs.inspection import as_json as plain_values
    from fastscore.results.show_inspection import commands, layout_of, show_inspection
    from fastscore.suites.registry import load_suite, suite_names
    from fastscore.terminal import result_console

    suites = {name: load_suite(name) for name in suite_names()}
    found = inspect(*logs)
    if as_layout is not None:
        write_line(layout_of(found, as_layout).rstrip())
        return
    if as_json:
        values = plain_values(found, commands(found, suites))
        write_line(orjson.dumps(values, option=orjson.OPT_INDENT_2).decode())
        return
    show_inspection(result_console(), found, suites)
