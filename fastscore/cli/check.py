"""``fastscore check``: whether a run keeps to limits, for continuous integration."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fastscore.errors import EXIT_CHECK_FAILED
from fastscore.terminal import write_line

if TYPE_CHECKING:
    from fastscore.results.checks import Check


@click.command(
    "check",
    epilog="Example: fastscore check run --min cross_coherence=0.2 --max-null cross_coherence=20% "
    "--against base --max-drop cross_coherence=0.01",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--min", "minimum", multiple=True, metavar="METRIC=VALUE", help="Least mean. Repeatable."
)
@click.option(
    "--max", "maximum", multiple=True, metavar="METRIC=VALUE", help="Largest mean. Repeatable."
)
@click.option(
    "--max-null",
    "nulls",
    multiple=True,
    metavar="METRIC=SHARE",
    help="Largest share of null rows, as 0.05 or 5%. Repeatable.",
)
@click.option("--max-rejects", metavar="SHARE", help="Largest share of rejected lines.")
@click.option(
    "--against", type=click.Path(path_type=Path), metavar="RUN2", help="The run to compare with."
)
@click.option(
    "--max-drop",
    "drops",
    multiple=True,
    metavar="METRIC=VALUE",
    help="How much worse than in RUN2 the mean may be, by a test. Repeatable.",
)
@click.option(
    "--max-missing",
    metavar="SHARE|COUNT",
    help="How many dialogues of RUN2 may be missing in RUN, as 5%, 0.05 or 2.",
)
@click.option(
    "--pair-by",
    metavar="COLUMN",
    help="The column whose equal values are a pair, or a pattern.  [default: the dialogue's id]",
)
@click.option(
    "--cluster",
    metavar="COLUMN",
    help="The column whose values are the units of --max-drop.  [default: what is paired]",
)
@click.option("--fail-undecided", is_flag=True, help="Fail if a check is undecided.")
@click.option(
    "--allow-different-signatures",
    is_flag=True,
    help="Compare numbers that were made in different ways.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    envvar="FASTSCORE_CONFIG",
    show_envvar=True,
    help="A TOML file whose table [check] holds limits. Flags win.",
)
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a JUnit file.",
)
@click.option(
    "--format",
    "format",
    type=click.Choice(["table", "github", "json"]),
    default="table",
    show_default=True,
)
@click.pass_context
def command(
    ctx: click.Context,
    run: Path,
    minimum: tuple[str, ...],
    maximum: tuple[str, ...],
    nulls: tuple[str, ...],
    max_rejects: str | None,
    against: Path | None,
    drops: tuple[str, ...],
    max_missing: str | None,
    pair_by: str | None,
    cluster: str | None,
    fail_undecided: bool,
    allow_different_signatures: bool,
    config: Path | None,
    junit_file: Path | None,
    format: str,
) -> None:
    """Check whether RUN keeps to limits: exit 0 if it does, 1 if a check fails.

    A check is undecided if data and limits do not decide. This exits with 0, except with
    --fail-undecided. If a run is not complete, or its files are not what was committed, the exit
    code is 4.
    """
    from fastscore.results.checks import check, junit, read_limits, read_table
    from fastscore.results.runs import open_run
    from fastscore.run.commit import commit_bytes

    given = {} if config is None else read_table(config)
    other = against if against is not None else given.get("against")
    opened = open_run(run)
    limits = read_limits(
        opened.manifest.suite,
        given,
        minimum=minimum,
        maximum=maximum,
        nulls=nulls,
        drops=drops,
        rejects=max_rejects,
        missing=max_missing,
        fail_undecided=fail_undecided,
    )
    found = check(
        opened,
        limits,
        None if other is None else open_run(other),
        pair_by=pair_by or given.get("pair_by"),
        cluster=cluster or given.get("cluster"),
        different_signatures=allow_different_signatures,
    )
    if junit_file is not None:
        commit_bytes(junit_file, junit(found, opened))
    _show(found, format)
    if any(one.outcome == "failed" for one in found):
        ctx.exit(EXIT_CHECK_FAILED)


def _show(found: Sequence["Check"], format: str) -> None:
    import dataclasses
    import json

    from fastscore.results.checks import checks_grid, github_lines
    from fastscore.terminal import result_console
    from fastscore.terminal.grids import print_grid, print_notes

    if format == "json":
        write_line(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
    elif format == "github":
        for line in github_lines(found):
            write_line(line)
    else:
        console = result_console()
        print_grid(console, checks_grid(found))
        print_notes(console, [f"{one.name}: {one.detail}" for one in found if one.detail])
