"""Verbs that compare: ``compare``, ``check``, ``analyse``, ``agreement`` and ``migrate``."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from fastscore.cli.parameters import (
    PATH,
    HeadedCommand,
    SuggestingGroup,
    cluster_option,
    design_options,
    format_option,
    option,
    ranged,
    scores_options,
)
from fastscore.errors import EXIT_CHECK_FAILED, UsageError
from fastscore.statistics import ALPHA
from fastscore.terminal import result_console, write_line, write_note
from fastscore.terminal.grids import Format

COMPARED, JUDGED, HOW = "What is compared", "A judge's scores", "How it is compared and shown"
_compared = partial(option, heading=COMPARED)
_how = partial(option, heading=HOW)
LIMITS = "Limits"
_limit = partial(option, heading=LIMITS)
_by_metric = partial(_limit, multiple=True, metavar="METRIC=VALUE")
_different_signatures = partial(
    option,
    "--allow-different-signatures",
    is_flag=True,
    help="Compare numbers that were made in different ways.",
)


@click.command(
    "compare",
    cls=HeadedCommand,
    headings=(COMPARED, JUDGED, HOW),
    epilog="Examples: fastscore compare base new; fastscore compare run --by experiment_level; "
    "fastscore compare run --by experiment_level --format latex",
)
@click.argument("runs", type=PATH, nargs=-1, required=True)
@_compared("--by", metavar="COLUMN", help="A label column. With one run, its levels.")
@_compared(
    "--level", "levels", multiple=True, metavar="VALUE", help="Only this value of --by. Repeatable."
)
@_compared("--metric", "metrics", multiple=True, help="Only this metric. Repeatable.")
@design_options(heading=HOW)
@_how("--complete", is_flag=True, help="Count only pairs that all runs or levels have.")
@_how(
    "--repeats",
    metavar="COLUMN",
    help="Column that tells repeated runs apart: intervals then hold for new repeats too, and "
    "metrics that are 0 or 1 have pass^k.",
)
@_how(
    "--margin",
    type=ranged("margin"),
    metavar="M",
    help="Also test for a drop of less than M (no worse) and for equality within M.",
)
@_how(
    "--plan",
    type=ranged("plan"),
    metavar="D",
    help="Also give the number of units, or repeats, that show a true difference of D.",
)
@option(
    "--test",
    type=click.Choice(["auto", "t"]),
    default="auto",
    help="auto: exact permutations if there are at most 10,000, else t.",
)
@_different_signatures()
@option(
    "--published-statistics",
    is_flag=True,
    help="Add the statistics of the public guest_simulation code: Student, Welch, Mann-Whitney.",
)
@option(
    "--alpha",
    type=ranged("alpha"),
    default=ALPHA,
    help="Two-sided level of significance. Intervals have the level 1 - alpha.",
)
@option(
    "--judge",
    heading=JUDGED,
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="A judge's scores, a row a dialogue, or the folder of `fastscore judge`, compared as "
    "metrics. With two runs given twice.",
)
@scores_options(heading=JUDGED)
@_how(
    "--all",
    "everything",
    is_flag=True,
    help="All differences. Default: of over 100, the 20 strongest.",
)
@format_option("csv and json contain every statistic, unrounded.")
def compare_command(runs: tuple[Path, ...], everything: bool, format: Format, **how: Any) -> None:
    """Compare runs dialogue by dialogue, or the levels of one run.

    For every metric: means, their difference with its confidence interval, p-value, Holm's
    correction and effect size, all of the same estimate. The suite's design says what a pair and
    the unit is. Three runs or levels and more are ranked. Runs with different signatures are
    refused, and so are runs without common dialogues, except with --unpaired.

    The first run is the base. A difference is second minus first, and the verdict is about the
    second: better, worse, or - for undecided. Higher is better after ↑. Nothing is scored again.
    The exit code is 0 if the comparison was made, 2 if it was refused, 3 if a --judge file cannot
    be read, and 4 if a run is damaged or its object store does not answer.
    """
    from fastscore.results.compare import compare
    from fastscore.results.comparison import show_comparison

    show_comparison(compare(*runs, **how, progress=True), everything=everything, format=format)


@click.command(
    "check",
    cls=HeadedCommand,
    headings=(LIMITS, HOW),
    epilog="Examples: fastscore check run --min average_U_best_early=0.2 --max-rejects 0.1%; "
    "fastscore check run --against base --max-drop average_U_best_early=0.01",
)
@click.argument("run", type=PATH)
@_by_metric("--min", "minimum", help="Least mean. Repeatable.")
@_by_metric("--max", "maximum", help="Largest mean. Repeatable.")
@_by_metric(
    "--max-null",
    metavar="METRIC=SHARE",
    help="Largest share of null rows, as 0.05 or 5%. Repeatable.",
)
@_limit("--max-rejects", metavar="SHARE", help="Largest share of rejected lines.")
@_limit("--against", type=PATH, metavar="RUN2", help="The run to compare with.")
@_by_metric(
    "--max-drop", help="How much worse than in RUN2 the mean may be, by a test. Repeatable."
)
@_by_metric(
    "--no-worse",
    metavar="METRIC=MARGIN",
    help="The mean must be shown to be no worse than in RUN2 by the margin. Repeatable.",
)
@_by_metric(
    "--equal-within",
    metavar="METRIC=MARGIN",
    help="The mean must be shown to equal RUN2's within the margin. Repeatable.",
)
@_limit(
    "--max-missing",
    metavar="SHARE|COUNT",
    help="How many dialogues of RUN2 may be missing or null in RUN, as 5%, 0.05 or 2.",
)
@design_options(heading=HOW)
@_limit("--fail-undecided", is_flag=True, help="Fail if a check is undecided.")
@_different_signatures(heading=HOW)
@_limit(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="FASTSCORE_CONFIG",
    help="A TOML file whose table [check] holds limits. Flags win.",
)
@_how(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a JUnit file.",
)
@format_option("github prints annotations of a workflow.", ("table", "github", "json"))
@click.pass_context
def check_command(
    ctx: click.Context,
    /,
    run: Path,
    against: Path | None,
    pair_by: str | None,
    unpaired: bool,
    cluster: str | None,
    allow_different_signatures: bool,
    config: Path | None,
    junit_file: Path | None,
    format: str,
    **flags: Any,
) -> None:
    """Check whether RUN keeps to limits: exit 0 if it does, 1 if a check fails.

    A check is undecided if data and limits do not decide. This exits with 0, except with
    --fail-undecided. If a run is not complete, or its files are not what was committed, the exit
    code is 4. A wrong option or a missing run has 2.

    Limits of means have the unit of the metric: 2% is 0.02. --min and --max look at the mean
    alone. Limits of a difference are tested, over the dialogues that both runs have, or over all
    with --unpaired.
    """
    import dataclasses
    import json

    from fastscore.files import check_output
    from fastscore.results.checks import (
        check,
        checks_grid,
        github_lines,
        junit,
        read_limits,
        read_table,
    )
    from fastscore.results.runs import open_run
    from fastscore.run.commit import commit_bytes
    from fastscore.terminal.grids import print_grid, print_notes

    given = {} if config is None else read_table(config)
    if not given and not any(flags.values()):
        raise UsageError(
            "There is nothing to check.",
            "Name limits: --min METRIC=0.8, or --against RUN2 --max-drop METRIC=0.01.",
        )
    other = against if against is not None else given.get("against")
    opened = open_run(run)
    found = check(
        opened,
        read_limits(opened.manifest.suite, given, **flags),
        None if other is None else open_run(other),
        # flags win: --unpaired leaves out the pairs of the file
        pair_by=pair_by or (None if unpaired else given.get("pair_by")),
        unpaired=unpaired or given.get("unpaired", False),
        cluster=cluster or given.get("cluster"),
        different_signatures=allow_different_signatures,
    )
    if junit_file is not None:
        check_output(junit_file, "a file of JUnit", begins="<testsuite")
        commit_bytes(junit_file, junit(found, opened))
    if format == "json":
        write_line(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
    elif format == "github":
        for line in github_lines(found):
            write_line(line)
    else:
        console = result_console()
        print_grid(console, checks_grid(found))
        print_notes(console, [f"{one.name}: {one.detail}" for one in found if one.detail])
    if any(one.outcome == "failed" for one in found):
        ctx.exit(EXIT_CHECK_FAILED)


@click.command("analyse", epilog="Example: fastscore analyse run --judge judge.jsonl")
@click.argument("run", type=PATH)
@option(
    "-o",
    "--output",
    type=PATH,
    help="Folder for page, tables and figures. Not a run.  [default: RUN-analysis]",
)
@option(
    "--judge",
    type=PATH,
    help="A judge's scores: JSON, JSON Lines, CSV or Parquet, a row a dialogue. Or the folder of "
    "`fastscore judge`.",
)
@scores_options()
@cluster_option(
    help="Unit of intervals and tests, such as the user: one column of table dialogues. Default: "
    "the suite's."
)
def analyse_command(run: Path, output: Path | None, **how: Any) -> None:
    """Analyse RUN, a run of preference_shift, from its tables: nothing is scored again.

    This needs the extra plots: pip install 'fastscore-dialogue[plots]'. No other bundled suite has
    an analysis. `fastscore compare` compares runs of every suite.
    """
    from fastscore.results.analyse import analyse

    made = analyse(run, output, **how)
    for note in made.notes:
        write_note(f"Note: {note}")
    write_line(made.page)


@click.command(
    "agreement", epilog="Example: fastscore agreement judgements/judgements.jsonl people.csv"
)
@click.argument("files", nargs=-1, required=True, type=PATH)
@scores_options("columns", "scale")
@format_option("csv and json hold every value, unrounded.")
def agreement_command(files: tuple[Path, ...], format: Format, **how: Any) -> None:
    """Compare the scores that several judges or people gave to the same dialogues.

    FILES are judges' files and people's: JSON, JSON Lines, CSV or Parquet. A row is a dialogue and
    rater, with the columns dialogue, rater and one for each dimension: proactiveness, coherence,
    personalization, overall. Name other dimensions with --judge-column. Verdicts on pairs are
    compared too. Each pair of raters gets Cohen's kappa with
    quadratic weights. All raters together get Krippendorff's alpha with ordinal and with interval
    distance, percent agreement, Fleiss' kappa, and Gwet's AC1 and AC2. The 95 % confidence
    intervals leave out one dialogue at a time and need at least eight, except of the percent
    agreement.
    """
    from fastscore.results.agreement import agreement, show_agreement

    show_agreement(agreement(*files, **how), format=format)


@click.command(
    "rank", epilog="Example: fastscore rank judgements/ab/pairs.jsonl judgements/bc/pairs.jsonl"
)
@click.argument("files", nargs=-1, required=True, type=PATH)
@option(
    "--judge-column",
    "columns",
    multiple=True,
    metavar="NAME",
    help="A further column with verdicts. Repeatable.",
)
@format_option("csv and json hold every value, unrounded, and the differences of two systems.")
def rank_command(files: tuple[Path, ...], columns: tuple[str, ...], format: Format) -> None:
    """Rank systems that were judged in pairs, by the strengths of Bradley and Terry.

    FILES are pairs.jsonl of fastscore judge --against, or people's verdicts: a row a pair and
    rater, with dialogue, model_a, model_b, and A, B or tie by dimension. The 95 % confidence
    intervals leave out one dialogue at a time.

    A strength is a log-odds: if x has 1 more than y, x wins e / (1 + e) = 73 % of their pairs
    without ties. "Apart from next" is yes if the difference from the next system is significant.
    """
    from fastscore.results.pair_ranking import rank, show_pair_ranking

    show_pair_ranking(rank(*files, columns=columns), format=format)


@click.group("migrate", cls=SuggestingGroup, epilog="Example: fastscore migrate check run old/")
def migrate_command() -> None:
    """Move from a public script to fastscore: compare the scores of both on the same logs."""


@migrate_command.command(
    "check",
    short_help="Compare a run with the scores that a public script wrote.",
    epilog="Example: fastscore migrate check run scores/ --tolerance 1e-4",
)
@click.argument("run", type=PATH)
@click.argument("old_scores", nargs=-1, required=True, type=PATH)
@option(
    "--tolerance",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Maximum difference that is ignored.",
)
@click.pass_context
def migrate_check(
    ctx: click.Context, run: Path, old_scores: tuple[Path, ...], tolerance: float
) -> None:
    """Compare RUN with OLD_SCORES, files or folders that a public script wrote of the same logs.

    Read are score_dialogue's *-score.json, memory_finance's metrics_summary*.json and
    turn_eval*.jsonl, preference_shift's results.jsonl and guest_simulation's
    all_conversations_metrics.csv. Numbers are equal, differ by the old file's rounding,
    or differ. Then the option that explains it is named, and the exit code is 1.

    Score RUN with the options of the script: for score_dialogue its --lex-weight and, if that is
    below 1, --embedder mxbai-embed-large-v1 --dim 64 --baseline-pairs 100.
    """
    from fastscore.results.migration import check_migration, show_migration
    from fastscore.results.runs import open_run

    found = check_migration(open_run(run), old_scores, tolerance=tolerance)
    show_migration(found)
    if not found.agrees:
        ctx.exit(EXIT_CHECK_FAILED)
