"""Verbs that show what there is: logs, layouts, metrics and examples; runs and their numbers."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from fastscore.api.examples import example_names, write_example
from fastscore.cli.parameters import PATH, cluster_option, design_options, format_option, option
from fastscore.errors import EXIT_CHECK_FAILED
from fastscore.files import free_names
from fastscore.terminal import result_console, write, write_line, write_note, write_wrapped


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

    LOGS are files, folders, globs or addresses, also packed; - is standard input. Each suite's own
    reader tries the first 200 rows of each file, as they are or with the flags that are shown. A
    command is shown only if it would score something. Metrics that would be null are named with
    the missing column. Nothing is written, embedded or sent.

    The tables have keys with types, nulls and an example: 20 of a log that can be read. The exit
    code is 0 even if no suite can read the logs, and 3 if a file does not exist. To check every
    line of a log, score it with --max-rejects 0 --strict.
    """
    import orjson

    from fastscore.api.reading import commands, inspect, layout_of, show_inspection
    from fastscore.logs.samples.inspection import as_json as plain_values
    from fastscore.suites.registry import load_suite, suite_names

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


@click.command(
    "layouts",
    epilog="Examples: fastscore layouts langfuse; fastscore layouts openai --toml > mine.toml",
)
@click.argument("name", nargs=-1)
@click.option("--toml", "as_toml", is_flag=True, help="Print the files, to keep and edit.")
def layouts_command(name: tuple[str, ...], as_toml: bool) -> None:
    """List layouts, each with an example of a document (all without NAME).

    Score such logs with --layout NAME, or with the file of a layout of your own. `fastscore inspect
    LOGS` finds the layout that fits, and writes a file with --as-layout.
    """
    from fastscore.logs.inputs.layout import layout_text

    write_line(layout_text(name, as_file=as_toml))


@click.command(
    "metrics",
    epilog="Examples: fastscore metrics score_dialogue; fastscore metrics score_dialogue U_best; "
    "fastscore metrics M5",
)
@click.argument("names", metavar="[SUITE] [METRIC]", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print the declarations as JSON.")
def metrics_command(names: tuple[str, ...], as_json: bool) -> None:
    """Print the metrics of SUITE, or METRIC in every suite that has it. Default: all names.

    Each metric is printed with its formula, symbols, range, direction, reading, a worked example,
    the reasons of nulls, and the section of its source. The head of a suite has the sources to
    cite, and what is known of the agreement with people.
    """
    from fastscore.results.metric_text import find_metrics, metric_names, metrics_json, metrics_text

    suites = find_metrics(names)
    if as_json:
        write_line(metrics_json(suites))
    else:
        more = "\n\n`fastscore metrics SUITE` prints formula, range, null rule and source."
        shown, end = (metrics_text, "") if names else (metric_names, more)
        write_wrapped("\n\n".join(map(shown, suites)) + end, 11)


@click.command("example", epilog="Example: fastscore example score_dialogue -o example")
@click.argument("suite", metavar="SUITE", type=click.Choice(example_names()))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="A folder.",
)
def example_command(suite: str, output: Path) -> None:
    """Write a small example log of SUITE, with its licence and the command that scores it.

    Files go to the folder of -o: logs/ with 0.1 to 2 MB, LICENSE.md with the sources, and what the
    suite also needs, such as a catalogue. Nothing is downloaded. Texts are real or derived, answers
    and labels partly generated, so do not cite the scores. `fastscore metrics` lists suites.
    """
    example = write_example(suite, output)
    for name, size in example.files:
        write_line(f"{output / name}  {size:,} bytes")
    run = next(free_names("run"))
    write_line(f"\nScore it:\n  {example.command(run)}")
    write_line(f"\n{example.finds}\n  {example.finding(run)}")


@click.command(
    "summary",
    epilog="Examples: fastscore summary run; fastscore summary run --by model --format markdown",
)
@click.argument("run", type=PATH)
@option("--by", metavar="COLUMN[,COLUMN]", help="Labels of dialogues: a column for each value.")
@cluster_option()
@option("--metric", "metrics", multiple=True, help="Only this metric. Repeatable.")
@option("--all", "everything", is_flag=True, help="Parts and counts too, with deviation and range.")
@option(
    "--repeats",
    metavar="COLUMN",
    help="Column that tells repeated runs apart, such as the trial: adds pass^k of metrics that "
    "are 0 or 1. Tasks are the values of --cluster.",
)
@format_option(
    "csv and json contain every statistic, unrounded. Means leave out rows whose value a "
    "definition fixes, except mean_all_rows."
)
@option("--verify", is_flag=True, help="Read every output and compare it with what was committed.")
@click.pass_context
def summary_command(
    ctx: click.Context, /, run: Path, by: str | None, verify: bool, **how: Any
) -> None:
    """Show the summary of RUN, a run directory.

    One row a metric: its name, whether more (↑) or less (↓) is better, and its mean with a 95 %
    confidence interval, then the numbers of values, dialogues and nulls. The suite declares the
    units of the intervals, and fewer than three have none. The means by the first label that tells
    dialogues apart follow. The table is as wide as the terminal, or COLUMNS. Columns that do not
    fit are dropped in the order long ids, sd, range, micro, short ids, n, reading, n of units.
    Groups continue in a further block. More than eight are rows, and of one metric more than three.
    """
    from fastscore.results.runs import open_run
    from fastscore.results.show import show_summary

    opened = open_run(run)
    if verify:
        damaged = opened.damaged()
        for path in damaged:
            write_note(f"{opened.path / path}: not what was committed.")
        if damaged:
            ctx.exit(EXIT_CHECK_FAILED)
    show_summary(opened, by=[name.strip() for name in by.split(",")] if by else (), **how)


@click.command("runs", epilog="Example: fastscore runs . -o runs.html")
@click.argument("folder", type=PATH, default=Path())
@option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write an HTML page: chart and table of the runs of each suite, with links to reports. "
    "The reports are written beside the page, in PAGE-reports.",
)
@option("--json", "as_json", is_flag=True, help="Print the runs as JSON.")
def runs_command(folder: Path, output: Path | None, as_json: bool) -> None:
    """List the runs in FOLDER and below, the latest first. Default: the working directory.

    A line for each run: suite, dialogues, age, means of three headline metrics, and the options
    that are not defaults. --json has all means.
    """
    from fastscore.logs.score_input import LogsWarning
    from fastscore.results.report.write import write_index
    from fastscore.results.show import list_runs, runs_grid
    from fastscore.run.commit import as_json as write_json
    from fastscore.run.commit import place_of
    from fastscore.terminal.grids import print_grid

    place = place_of(folder)
    found = list_runs(place)
    if output is not None:
        with _noted(LogsWarning):
            page = write_index(found, place, output)
        write_line(page)
    elif as_json:
        write_line(write_json(found.to_dicts()).rstrip())
    elif found.is_empty():
        write_line(f"No run in {place}.")
    else:
        print_grid(result_console(), runs_grid(found, place))


@click.command(
    "explain",
    epilog="Examples: fastscore explain run dialogue-17 U_best; "
    "fastscore explain run --worst average_U_best_early",
)
@click.argument("run", type=PATH)
@click.argument("dialogue", required=False)
@click.argument("metric", required=False)
@option("--worst", metavar="METRIC", help="The dialogue with the worst mean of a metric.")
@option("--best", metavar="METRIC", help="The one with the best.")
@option("--random", is_flag=True, help="A dialogue at random.")
@option("--seed", type=click.IntRange(min=0), help="Seed of --random. Default: 0.")
@option("--json", "as_json", is_flag=True, help="Print all evidence as JSON.")
def explain_command(
    run: Path, dialogue: str | None, metric: str | None, as_json: bool, **choice: Any
) -> None:
    """Show how METRIC of DIALOGUE in RUN was computed. Default: every metric of dialogues.

    DIALOGUE is its name, or a part of it that no other has. It is read again from its log and
    scored by itself, and its numbers must equal the run's. Shown are numerator and denominator,
    the formula with the values in it, and the evidence: [matched] characters, concepts, places,
    turns. The log must be where it was. To list the worst rows of a run, sort a table in Python:
    open_run(RUN).tables["utterances"].sort("U_best").
    """
    from fastscore.results.explaining import explain, print_explanations

    is_chosen = any(choice[how] for how in ("worst", "best", "random"))
    if is_chosen and dialogue is not None and metric is None:
        dialogue, metric = None, dialogue
    found = explain(run, dialogue, metric, **choice)
    if as_json:
        write(found.json)
    else:
        print_explanations(result_console(), found)


@click.command("report", epilog="Example: fastscore report base new -o report.html")
@click.argument("runs", nargs=-1, required=True, type=PATH)
@option(
    "-o",
    "--output",
    type=PATH,
    default=Path("report.html"),
    help="The HTML file, a name that ends in .html.",
)
@design_options()
@option("--no-texts", is_flag=True, help="Leave texts of the logs out of the page.")
def report_command(runs: tuple[Path, ...], output: Path, no_texts: bool, **design: Any) -> None:
    """Write a page about RUNS: one run, or several of a suite side by side.

    This needs the extra plots: pip install 'fastscore-dialogue[plots]'. The first of several runs
    is the base. Prints the findings about one run in ten lines, and where the page is.

    One file that needs nothing from elsewhere: findings, every metric with its distribution and
    groups, nulls, rejects, and the best, worst and median dialogues turn by turn. The
    page works offline. REPORT#dialogue=NAME opens a dialogue.
    """
    from fastscore.logs.score_input import LogsWarning
    from fastscore.results.differences import Inference
    from fastscore.results.findings import findings_lines, list_findings, read_headlines
    from fastscore.results.report.write import write_report
    from fastscore.results.runs import open_run

    opened = [open_run(run) for run in runs]
    headlines = [read_headlines(run, cluster=design["cluster"]) for run in opened]
    with _noted(LogsWarning):
        path = write_report(opened, output, texts=not no_texts, headlines=headlines, **design)
    if len(opened) == 1:
        width, how = min(80, result_console().width), Inference.of(opened[0].suite.design, **design)
        for line in findings_lines(list_findings(headlines[0], how), width=width):
            write_line(line)
    write_line(path)


@contextmanager
def _noted(category: type[Warning]) -> Iterator[None]:
    """Write warnings as notes after the body, each once."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", category)
        yield
    for message in dict.fromkeys(str(each.message) for each in found):
        write_note(f"Note: {message}")
