"""The options of ``fastscore score``: those of every run, and those that a suite declares."""

import dataclasses
import os
from pathlib import Path
from typing import Any, get_type_hints

import click

from fastscore.cli.config_file import read_config
from fastscore.cli.headings import HeadedOption
from fastscore.logs.inputs.files import FORMAT_NAMES
from fastscore.logs.inputs.layout import layout_names
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MEMORY_SHARE
from fastscore.options import (
    CHANGES_SCORE,
    WRITES_MORE,
    allowed_values,
    environment_name,
    flag_name,
    value_type,
)
from fastscore.processors import available_processors
from fastscore.run.config import DEFAULT_EMBEDDER, DEFAULT_MAX_REJECTS, NO_EMBEDDER
from fastscore.run.engines.engine import ENGINES, LOCAL
from fastscore.suites.base import Suite
from fastscore.vectors.description import TRUST_VARIABLE
from fastscore.vectors.precisions import EXACT, PRECISIONS

MIB = 1024 * 1024

WHERE_THINGS_ARE = "Where things are"
WHAT_IS_SCORED = "What is scored, and what is refused"
HOW_IT_RUNS = "How it runs"
HEADINGS = (CHANGES_SCORE, WHERE_THINGS_ARE, WHAT_IS_SCORED, WRITES_MORE, HOW_IT_RUNS)
"""The headings of a suite's ``--help``; those that a suite declares besides follow the first."""


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


_CHANGING = (
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
)

_PLACES = (
    _option(
        "-o",
        "--output",
        heading=WHERE_THINGS_ARE,
        type=click.Path(path_type=Path),
        help="The run directory.",
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
        "--format",
        heading=WHERE_THINGS_ARE,
        type=click.Choice(tuple(FORMAT_NAMES)),
        help="The format of - (standard input; JSON Lines unless told), and of named files "
        "whose suffix names none.",
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
)

_SCORED = (
    _option(
        "--metrics",
        heading=WHAT_IS_SCORED,
        multiple=True,
        metavar="FILE|NAME",
        help="Metrics of your own: a Python file, or the name of an installed one. Repeatable.",
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
        help="Score a sample of so many dialogues, chosen by the hash of their ids: the same ones "
        "in any order of the log.",
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
        "--strict",
        heading=WHAT_IS_SCORED,
        is_flag=True,
        help="Exit with 3 where a metric is null in every row for want of its column.",
    ),
)

_WORKERS = (
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
)

_RUNNING = (
    _option(
        "--max-memory",
        heading=HOW_IT_RUNS,
        type=click.IntRange(min=256),
        help="The most MiB of memory that the process may take in any stage; one that takes more "
        "is ended with exit code 4, and the same command goes on with more. Each process of an "
        "engine's workers keeps to it in every task.  "
        f"[default: {MEMORY_SHARE:.0%} of the machine]",
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
    _option("-q", "--quiet", heading=HOW_IT_RUNS, is_flag=True, help="Print nothing but errors."),
    _option(
        "--json",
        "as_json",
        heading=HOW_IT_RUNS,
        is_flag=True,
        help="Print the summary as JSON.",
    ),
)


def run_options(suite: Suite) -> list[click.Option]:
    """Return the options of every run; a shard's default size is the suite's."""
    shard_size = _option(
        "--shard-size",
        heading=HOW_IT_RUNS,
        type=click.IntRange(min=1),
        help=f"The most MiB of input in a shard.  [default: {suite.source.shard_bytes // MIB}]",
    )
    return [*_CHANGING, *_PLACES, *_SCORED, *_WORKERS, shard_size, *_RUNNING]


def suite_options(suite: Suite) -> list[click.Option]:
    """Return the options that a suite declares, one a field."""
    types = get_type_hints(suite.options)
    options = []
    for field in dataclasses.fields(suite.options):
        rules = field.metadata
        unit = f" ({rules['unit']})" if rules["unit"] else ""
        flag = flag_name(field.name)
        kind, choices = value_type(types[field.name]), allowed_values(types[field.name])
        is_flag = kind is bool
        options.append(
            _option(
                f"{flag}/{flag_name('no_' + field.name)}" if is_flag else flag,
                field.name,
                type=click.Choice(choices) if choices else kind,
                heading=rules["heading"],
                default=field.default,
                help=rules["help"] + unit,
            )
        )
    return options
