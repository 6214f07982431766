"""``fastscore score``: one command a suite, its flags made from the suite's declared options."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastscore.cli.config_file import configured_columns
from fastscore.cli.headings import HeadedCommand
from fastscore.cli.score_options import HEADINGS, MIB, run_options, suite_options
from fastscore.errors import UsageError
from fastscore.examples import example_names, example_options
from fastscore.logs.inputs.choice import Choice
from fastscore.logs.inputs.column_map import ColumnMap, parse_map
from fastscore.logs.inputs.layout import layout_map
from fastscore.logs.integrity.limits import Limits
from fastscore.run.config import NO_EMBEDDER, RunConfig
from fastscore.suites.base import Suite
from fastscore.suites.registry import load_suite, suite_names

if TYPE_CHECKING:
    from fastscore.suites.own_metrics import OwnMetric


class _Suites(click.Group):
    """A group whose commands are the installed suites."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(suite_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return _suite_command(load_suite(cmd_name))


@click.command(
    "score",
    cls=_Suites,
    epilog="`fastscore score SUITE --help` lists a suite's options.",
)
def command() -> None:
    """Score logs into a run directory.

    \b
    fastscore score score_dialogue logs/ -o run
    fastscore score score_dialogue 'logs/*.jsonl.zst' -o letters --lex-weight 1
    fastscore score score_dialogue logs/ -o run --dry-run

    INPUT is a file, a folder, a glob or - (standard input): JSON Lines, JSON, CSV or Parquet as the
    suite reads them, plain, .gz or .zst. Running the same command again finishes an interrupted
    run.
    """


def _suite_command(suite: Suite) -> click.Command:
    return HeadedCommand(
        suite.name,
        headings=_headings(suite),
        params=[
            click.Argument(["inputs"], nargs=-1, metavar="INPUT..."),
            *suite_options(suite),
            *run_options(suite),
        ],
        callback=_callback(suite),
        short_help=suite.title,
        help=f"{suite.title}\n\nEvery option also has an environment variable, and a key in a TOML "
        "file (--config): the long flag with underscores. Keys are at the top or in a table "
        f"[{suite.name}].",
        epilog="Example: " + _example(suite.name),
    )


def _headings(suite: Suite) -> tuple[str, ...]:
    own = (field.metadata["heading"] for field in dataclasses.fields(suite.options))
    first, *others = HEADINGS
    return (first, *dict.fromkeys(name for name in own if name not in HEADINGS), *others)


def _example(suite: str) -> str:
    """Return a command that works as it stands, where the suite has an example."""
    if suite not in example_names():
        return f"fastscore score {suite} 'logs/*.jsonl.zst' -o run"
    options = " ".join(example_options(suite, Path("example")))
    written = f"fastscore example {suite} -o example"
    return f"{written}; fastscore score {suite} example/logs -o run {options}".rstrip()


def _column_map(
    suite: str, layout: str | None, columns: Sequence[str], values: Sequence[str]
) -> ColumnMap:
    """Put together where columns stand: flags win over the file, both over the layout."""
    return layout_map(layout, suite) | configured_columns() | parse_map(columns, values)


def _callback(suite: Suite) -> Any:
    def run_suite(
        inputs: tuple[str, ...],
        output: Path | None,
        dry_run: bool,
        quiet: bool,
        as_json: bool,
        **given: Any,
    ) -> int:
        from fastscore.run.drive import execute
        from fastscore.run.progress import reporter

        if not inputs:
            raise UsageError("No INPUT is named.", "Name a file, a folder or a glob; - is stdin.")
        if output is None and not dry_run:
            raise UsageError("No run directory is named.", "Name one with -o RUN.")
        config = _run_config(suite, inputs, output or Path(), given)
        progress = reporter(quiet=quiet)
        if dry_run:
            from fastscore.results.show import show_plan
            from fastscore.run.preview import preview

            show_plan(preview(config, progress), as_json=as_json)
            return 0
        outcome = execute(config, progress)
        if outcome.is_scored and (as_json or not quiet):
            from fastscore.results.show import show_outcome

            show_outcome(config.output, as_json=as_json)
        if outcome.refusal is not None:
            raise outcome.refusal
        return 0

    return run_suite


def _own_metrics(given: Sequence[str], suite: Suite) -> "tuple[OwnMetric, ...]":
    if not given:
        return ()
    from fastscore.suites.own_metrics import load_metrics  # late: few runs have any

    return load_metrics(given, suite.name)


def _run_config(
    suite: Suite, inputs: tuple[str, ...], output: Path, given: dict[str, Any]
) -> RunConfig:
    """Make a request of what flags, environment and file give; takes it out of ``given``."""
    take = given.pop
    options = {field.name: take(field.name) for field in dataclasses.fields(suite.options)}
    embedder, shard_size = take("embedder"), take("shard_size")
    return RunConfig(
        suite=suite.name,
        inputs=inputs,
        output=output,
        options=options,
        embedder=None if embedder == NO_EMBEDDER else embedder,
        shard_bytes=None if shard_size is None else shard_size * MIB,
        columns=_column_map(suite.name, take("layout"), take("columns"), take("values")),
        metrics=_own_metrics(take("metrics"), suite),
        choice=Choice(take("limit"), take("sample"), take("seed")),
        limits=Limits(take("max_memory"), take("max_unpacked"), take("max_ratio")),
        **given,
    )
