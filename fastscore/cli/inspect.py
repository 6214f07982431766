"""``fastscore inspect``: what logs hold, and the command that scores them."""

import click

from fastscore.terminal import write_line


@click.command("inspect", epilog="Examples: fastscore inspect logs; fastscore inspect logs --json")
@click.argument("logs", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(logs: tuple[str, ...], as_json: bool) -> None:
    """Say what LOGS hold, which suites fit, and what to type.

    LOGS are files, folders or globs. Of each file the first rows are looked at: every key with its
    types, the share of nulls and an example; which suites can read it, as it is or with --column,
    --value and --layout; and which metrics would be null for want of a column.
    """
    import orjson

    from fastscore.api.reading import inspect
    from fastscore.logs.inputs.inspection import as_json as plain_values
    from fastscore.results.show_inspection import commands, show_inspection
    from fastscore.suites.registry import load_suite, suite_names
    from fastscore.terminal import result_console

    suites = {name: load_suite(name) for name in suite_names()}
    found = inspect(*logs)
    if as_json:
        values = plain_values(found, commands(found, suites))
        write_line(orjson.dumps(values, option=orjson.OPT_INDENT_2).decode())
        return
    show_inspection(result_console(), found, suites)
