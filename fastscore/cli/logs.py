"""Verbs for before a run: ``inspect``, ``layouts``, ``metrics`` and ``example``."""

from pathlib import Path

import click

from fastscore.api.examples import example_names, write_example
from fastscore.files import free_names
from fastscore.terminal import write_line, write_wrapped


@click.command("inspect", epilog="Examples: fastscore inspect logs; fastscore inspect logs --json")
@click.argument("logs", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
@click.option(
    "--as-layout",
    metavar="SUITE",
    help="Print the proposed layout of a suite as TOML, to keep, edit and score with --layout.",
)
def inspect_command(logs: tuple[str, ...], as_json: bool, as_layout: str | None) -> None:
    """Show what LOGS contain, which suites can read them, and what to type.

    LOGS are files, folders or globs; - is standard input. Each suite's own reader tries the first
    200 rows of each file, as they are or with the flags that are shown. A command is shown only if
    it would score something. The tables have each key with its types, nulls and an example.
    """
    import orjson

    from fastscore.api.reading import commands, inspect, layout_of, show_inspection
    from fastscore.logs.samples.inspection import as_json as plain_values
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


@click.command("layouts", epilog="Example: fastscore layouts langfuse")
@click.argument("name", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the layouts as JSON.")
@click.option("--toml", "as_toml", is_flag=True, help="Print the files, to keep and edit.")
def layouts_command(name: tuple[str, ...], as_json: bool, as_toml: bool) -> None:
    """List layouts, each with an example of a document (all without NAME).

    Score such logs with --layout NAME, or with the file of a layout of your own.
    """
    from fastscore.logs.inputs.layout import layout_text, layouts_json

    write_line(layouts_json(name) if as_json else layout_text(name, as_file=as_toml))


@click.command("metrics", epilog="Examples: fastscore metrics score_dialogue; fastscore metrics M5")
@click.argument("names", metavar="[SUITE] [METRIC]", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the declarations as JSON.")
def metrics_command(names: tuple[str, ...], as_json: bool) -> None:
    """Print the metrics of SUITE, or METRIC in every suite that has it. Default: all names.

    Each metric is printed with its formula, symbols, range, example, null rule and source.
    """
    from fastscore.results.metric_text import (
        find_metrics,
        metric_names,
        metrics_json,
        metrics_text,
    )

    suites = find_metrics(names)
    if as_json:
        write_line(metrics_json(suites))
    else:
        more = "\n\n`fastscore metrics SUITE` prints formula, range, null rule and source."
        shown, end = (metrics_text, "") if names else (metric_names, more)
        write_wrapped("\n\n".join(map(shown, suites)) + end, 11)


@click.command("example", epilog="Example: fastscore example score_dialogue -o example")
@click.argument("suite", type=click.Choice(example_names()))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="A folder.",
)
def example_command(suite: str, output: Path) -> None:
    """Write a small example log of SUITE, with its licence and the command that scores it."""
    example = write_example(suite, output)
    for name, size in example.files:
        write_line(f"{output / name}  {size:,} bytes")
    run = next(free_names("run"))
    write_line(f"\nScore it:\n  {example.command(run)}")
    write_line(f"\n{example.finds}\n  {example.finding(run)}")
