"""``fastscore score``: one command a suite, its flags made from the suite's declared options."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_type_hints

import click

from fastscore.cli.config_file import configured_columns, read_config
from fastscore.cli.headings import HeadedCommand, HeadedOption
from fastscore.errors import UsageError
from fastscore.examples import example_names, example_options
from fastscore.logs.inputs.choice import Choice
from fastscore.logs.inputs.column_map import ColumnMap, parse_map
from fastscore.logs.inputs.files import FORMAT_NAMES, Format
from fastscore.logs.inputs.layout import layout_map, layout_names
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MEMORY_SHARE, Limits
from fastscore.options import environment_name, flag_name, plain_type
from fastscore.processors import available_processors
from fastscore.run.config import (
    DEFAULT_EMBEDDER,
    DEFAULT_MAX_REJECTS,
    NO_EMBEDDER,
    RunConfig,
)
from fastscore.run.engines.engine import ENGINES, LOCAL
from fastscore.suites.base import Suite
from fastscore.suites.declarations import CHANGES_SCORE, WRITES_MORE
from fastscore.suites.registry import load_suite, suite_names
from fastscore.vectors.precisions import EXACT, PRECISIONS
from fastscore.vectors.trust import TRUST_VARIABLE

MIB = 1024 * 1024

WHERE_THINGS_ARE = "Where things are"
WHAT_IS_SCORED = "What is scored, and what is refused"
HOW_IT_RUNS = "How it runs"
HEADINGS = (CHANGES_SCORE, WHERE_THINGS_ARE, WHAT_IS_SCORED, WRITES_MORE, HOW_IT_RUNS)
"""The headings of a suite's ``--help``; those that a suite declares besides follow the first."""


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
            *_suite_options(suite),
            *_run_options(suite),
        ],
        callback=_callback(suite),
        short_help=suite.title,
        help=f"{suite.title}\n\nEvery option can also be given by its environment variable or in a "
        "TOML file (--config): keys as the long flags with underscores, at the top or in a table "
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


def _option(*flags: str, **declared: Any) -> click.Option:
    """Declare an option that also listens to its environment variable."""
    long_flag = next(flag for flag in flags if flag.startswith("--")).split("/")[0]
    return HeadedOption(
        flags,
        envvar=environment_name(long_flag.removeprefix("--").replace("-", "_")),
        show_envvar=True,
        show_default=declared.get("default") is not None,
        **declared,
    )


def _trust_store(ctx: click.Context, parameter: click.Parameter, is_trusted: bool) -> None:
    """Have this process, and the workers that it starts, trust stores."""
    if is_trusted:
        os.environ[TRUST_VARIABLE] = "1"


def _run_options(suite: Suite) -> list[click.Option]:
    return [
        _option(
            "-o",
            "--output",
            heading=WHERE_THINGS_ARE,
            type=click.Path(path_type=Path),
            help="The run directory.",
        ),
        _option(
            "--embedder",
            heading=CHANGES_SCORE,
            default=DEFAULT_EMBEDDER,
            help=f"The model recipe; '{NO_EMBEDDER}' turns the semantic part off.",
        ),
        _option(
            "--precision",
            heading=CHANGES_SCORE,
            default=EXACT,
            type=click.Choice(PRECISIONS),
            help="The precision in which the model runs; what is not fp32 states its accuracy.",
        ),
        _option(
            "--dim",
            heading=CHANGES_SCORE,
            type=int,
            help="Truncate vectors to this width.  [default: the model's width]",
        ),
        _option(
            "--store",
            heading=WHERE_THINGS_ARE,
            type=click.Path(path_type=Path),
            help="The folder of vector stores.  [default: in the cache]",
        ),
        _option(
            "--trust-store",
            heading=WHERE_THINGS_ARE,
            is_flag=True,
            callback=_trust_store,
            expose_value=False,
            help="Read a vector store that is another user's, or that others can write to.",
        ),
        _option(
            "--workers",
            heading=HOW_IT_RUNS,
            type=click.IntRange(min=1),
            default=available_processors(),
            help="Shards that are scored at once; as many as there are processors unless told.",
        ),
        _option(
            "--engine",
            heading=HOW_IT_RUNS,
            default=LOCAL,
            type=click.Choice(tuple(ENGINES)),
            help="Who does the work: this process, or workers of Dask or Ray.",
        ),
        _option(
            "--address",
            heading=HOW_IT_RUNS,
            help="The engine's scheduler.  [default: workers of our own on this machine]",
        ),
        _option(
            "--shard-size",
            heading=HOW_IT_RUNS,
            type=click.IntRange(min=1),
            help=f"The most MiB of input in a shard.  [default: {suite.source.shard_bytes // MIB}]",
        ),
        _option(
            "--max-memory",
            heading=HOW_IT_RUNS,
            type=click.IntRange(min=256),
            help="The most MiB of memory that reading and scoring may take; shards are scored one "
            f"by one where several would take more.  [default: {MEMORY_SHARE:.0%} of the machine]",
        ),
        _option(
            "--max-unpacked",
            heading=HOW_IT_RUNS,
            type=click.IntRange(min=1),
            default=DEFAULT_LIMITS.unpacked,
            help="The most MiB that one compressed file may unpack to.",
        ),
        _option(
            "--max-ratio",
            heading=HOW_IT_RUNS,
            type=click.FloatRange(min=1.0),
            default=DEFAULT_LIMITS.ratio,
            help="How many times larger a compressed file may become, beyond 64 MiB.",
        ),
        _option(
            "--format",
            heading=WHERE_THINGS_ARE,
            type=click.Choice(tuple(FORMAT_NAMES)),
            help="The format of - (standard input; JSON Lines unless told), and of named files "
            "whose suffix names none.",
        ),
        _option(
            "--limit",
            heading=WHAT_IS_SCORED,
            type=click.IntRange(min=1),
            help="Score so many dialogues, from the start.",
        ),
        _option(
            "--sample",
            heading=WHAT_IS_SCORED,
            type=click.IntRange(min=1),
            help="Score so many dialogues, chosen by the hash of their names: the same ones in any "
            "order of the log.",
        ),
        _option("--seed", heading=WHAT_IS_SCORED, type=int, help="Which sample; 0 unless told."),
        _option(
            "--max-rejects",
            heading=WHAT_IS_SCORED,
            type=click.FloatRange(0.0, 1.0),
            default=DEFAULT_MAX_REJECTS,
            help="The share of rejected lines above which the exit code is 3.",
        ),
        _option(
            "--layout",
            heading=WHERE_THINGS_ARE,
            metavar="NAME|FILE",
            help=f"Where columns stand in logs of a known layout: {', '.join(layout_names())}, or "
            "a TOML file.",
        ),
        _option(
            "--column",
            "columns",
            heading=WHERE_THINGS_ARE,
            multiple=True,
            metavar="NAME=PATH",
            help="Where a column stands: text=content, text=meta.text, text=turns[].content.",
        ),
        _option(
            "--value",
            "values",
            heading=WHERE_THINGS_ARE,
            multiple=True,
            metavar="COLUMN:FROM=TO",
            help="What a word means: speaker:user=USER.",
        ),
        _option(
            "--strict",
            heading=WHAT_IS_SCORED,
            is_flag=True,
            help="Exit with 3 where a metric is null in every row for want of its column.",
        ),
        _option(
            "--overwrite",
            heading=HOW_IT_RUNS,
            is_flag=True,
            help="Replace the run that stands in -o.",
        ),
        _option(
            "--dry-run",
            heading=HOW_IT_RUNS,
            is_flag=True,
            help="Show what would be done; write nothing.",
        ),
        HeadedOption(
            ["--config"],
            heading=WHERE_THINGS_ARE,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            is_eager=True,
            expose_value=False,
            callback=read_config,
            envvar="FASTSCORE_CONFIG",
            show_envvar=True,
            help="A TOML file of options; flags and environment win over it.",
        ),
        _option(
            "-q", "--quiet", heading=HOW_IT_RUNS, is_flag=True, help="Print nothing but errors."
        ),
        _option(
            "--json",
            "as_json",
            heading=HOW_IT_RUNS,
            is_flag=True,
            help="Print the summary as JSON.",
        ),
    ]


def _suite_options(suite: Suite) -> list[click.Option]:
    types = get_type_hints(suite.options)
    options = []
    for field in dataclasses.fields(suite.options):
        rules = field.metadata
        unit = f" ({rules['unit']})" if rules["unit"] else ""
        flag = flag_name(field.name)
        kind = plain_type(types[field.name])
        is_flag = kind is bool
        options.append(
            _option(
                f"{flag}/{flag_name('no_' + field.name)}" if is_flag else flag,
                field.name,
                type=click.Choice(rules["choices"]) if rules["choices"] else kind,
                heading=rules["heading"],
                default=field.default,
                help=rules["help"] + unit,
            )
        )
    return options


def _column_map(
    suite: str, layout: str | None, columns: Sequence[str], values: Sequence[str]
) -> ColumnMap:
    """Put together where columns stand: flags win over the file, both over the layout."""
    return layout_map(layout, suite) | configured_columns() | parse_map(columns, values)


def _callback(suite: Suite) -> Any:
    def run_suite(
        inputs: tuple[str, ...],
        output: Path | None,
        embedder: str,
        precision: str,
        dim: int | None,
        store: Path | None,
        workers: int,
        engine: str,
        address: str | None,
        shard_size: int | None,
        max_memory: int | None,
        max_unpacked: int,
        max_ratio: float,
        format: Format | None,
        limit: int | None,
        sample: int | None,
        seed: int | None,
        max_rejects: float,
        layout: str | None,
        columns: tuple[str, ...],
        values: tuple[str, ...],
        strict: bool,
        overwrite: bool,
        dry_run: bool,
        quiet: bool,
        as_json: bool,
        **options: Any,
    ) -> int:
        from fastscore.run.drive import execute, preview
        from fastscore.run.progress import reporter

        if not inputs:
            raise UsageError("No INPUT is named.", "Name a file, a folder or a glob; - is stdin.")
        if output is None and not dry_run:
            raise UsageError("No run directory is named.", "Name one with -o RUN.")
        config = RunConfig(
            suite=suite.name,
            inputs=inputs,
            output=output or Path(),
            options=options,
            embedder=None if embedder == NO_EMBEDDER else embedder,
            precision=precision,
            dim=dim,
            store=store,
            workers=workers,
            engine=engine,
            address=address,
            shard_bytes=None if shard_size is None else shard_size * MIB,
            max_rejects=max_rejects,
            overwrite=overwrite,
            columns=_column_map(suite.name, layout, columns, values),
            strict=strict,
            format=format,
            choice=Choice(limit, sample, seed),
            limits=Limits(max_memory, max_unpacked, max_ratio),
        )
        progress = reporter(quiet=quiet)
        if dry_run:
            from fastscore.results.show import show_plan

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
