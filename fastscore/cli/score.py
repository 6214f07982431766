"""``fastscore score``: one command a suite, its flags made from the suite's declared options."""

import copy
import dataclasses
import os
import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import click

from fastscore.cli.parameters import PATH, HeadedCommand, HeadedOption, with_words
from fastscore.errors import UsageError, did_you_mean
from fastscore.examples import example_names, example_options
from fastscore.logs.inputs.column_map import (
    CHAT_OPTIONS,
    NO_MAP,
    ColumnMap,
    chat_options,
    column_map,
    parse_map,
)
from fastscore.logs.inputs.files import FORMAT_NAMES
from fastscore.logs.inputs.layout import layout_map, layout_names
from fastscore.logs.integrity.limits import DEFAULT_LIMITS, MEMORY_SHARE, Limits
from fastscore.logs.read.chosen import Choice
from fastscore.options import (
    CHANGES_SCORE,
    WRITES_MORE,
    allowed_values,
    available_processors,
    environment_name,
    flag_name,
    read_toml,
    value_type,
)
from fastscore.run.context import DEFAULT_EMBEDDER, DEFAULT_MAX_REJECTS, NO_EMBEDDER, RunConfig
from fastscore.run.engines.engine import ENGINES, LOCAL
from fastscore.suites.base import Suite
from fastscore.suites.registry import load_suite, suite_names
from fastscore.vectors.description import TRUST_VARIABLE
from fastscore.vectors.devices import CPU, DEVICES
from fastscore.vectors.precisions import EXACT, PRECISIONS

if TYPE_CHECKING:
    from fastscore.suites.own_metrics import OwnMetric

MAP_TABLES = ("columns", "values")
CONFIGURED = "fastscore.columns"
MIB = 1024 * 1024

WHERE_THINGS_ARE = "Where things are"
WHAT_IS_SCORED = "What is scored, and what is refused"
HOW_IT_RUNS = "How it runs"
HEADINGS = (CHANGES_SCORE, WHERE_THINGS_ARE, WHAT_IS_SCORED, WRITES_MORE, HOW_IT_RUNS)
"""The headings of a suite's ``--help``; those that a suite declares besides follow the first."""


def read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take a TOML file's values for defaults: click's callback of ``--config``."""
    if path is None:
        return
    content = read_toml(path)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    known_tables = (*suite_names(), *MAP_TABLES)
    for name in tables:
        if name not in known_tables:
            raise UsageError(f"{path}: unknown table [{name}].", did_you_mean(name, known_tables))
    values = {name: value for name, value in content.items() if name not in tables}
    own = tables.get(str(ctx.info_name), {})
    values |= {name: value for name, value in own.items() if name not in MAP_TABLES}
    for mapped in (tables, own):
        ctx.meta[CONFIGURED] = ctx.meta.get(CONFIGURED, NO_MAP) | _configured_map(path, mapped)
    known = {_config_key(option): option for option in ctx.command.params if option.expose_value}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{path}: unknown key {name!r}.", did_you_mean(name, known))
        _check_config_value(path, name, value, known[name])
    ctx.default_map = {str(known[name].name): value for name, value in values.items()}


def configured_columns() -> ColumnMap:
    """Return the column map of the file that this command was given."""
    configured: ColumnMap = click.get_current_context().meta.get(CONFIGURED, NO_MAP)
    return configured


def _configured_map(path: Path, tables: Mapping[str, Any]) -> ColumnMap:
    """Read the tables of columns and of values."""
    try:
        return column_map(*(tables.get(name) for name in MAP_TABLES))
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from error


def _config_key(parameter: click.Parameter) -> str:
    """Return a parameter's key in a configuration file: its long flag with underscores."""
    long_flags = [flag for flag in parameter.opts if flag.startswith("--")]
    return (long_flags or [str(parameter.name)])[0].removeprefix("--").replace("-", "_")


def _check_config_value(path: Path, name: str, value: object, parameter: click.Parameter) -> None:
    """Refuse a value that click would bend into the parameter's type."""
    kinds: tuple[type, ...] = (str,)
    if parameter.nargs == -1 or (isinstance(parameter, click.Option) and parameter.multiple):
        kinds = (list,)
    elif isinstance(parameter, click.Option) and parameter.is_flag:
        kinds = (bool,)
    elif isinstance(parameter.type, click.types.IntParamType):
        kinds = (int,)
    elif isinstance(parameter.type, click.types.FloatParamType):
        kinds = (int, float)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise UsageError(f"{path}: {name} is {value!r}, expected {expected}.")


def _option(*flags: str, **declared: Any) -> click.Option:
    """Declare an option that also listens to its environment variable."""
    long_flag = next(flag for flag in flags if flag.startswith("--")).split("/")[0]
    variable = environment_name(long_flag.removeprefix("--").replace("-", "_"))
    return HeadedOption(flags, envvar=variable, **declared)


def _trust_store(ctx: click.Context, parameter: click.Parameter, is_trusted: bool) -> None:
    """Have this process, and the workers that it starts, trust stores."""
    if is_trusted:
        os.environ[TRUST_VARIABLE] = "1"


_changes = partial(_option, heading=CHANGES_SCORE)
_where = partial(_option, heading=WHERE_THINGS_ARE)
_scored = partial(_option, heading=WHAT_IS_SCORED)
_runs = partial(_option, heading=HOW_IT_RUNS)

_CHANGING = (
    _changes(
        "--embedder",
        default=DEFAULT_EMBEDDER,
        help="Embedding model: a name of `fastscore models list`, a recipe file or a folder. "
        f"'{NO_EMBEDDER}' uses none.",
    ),
    _changes(
        "--precision",
        default=EXACT,
        type=click.Choice(PRECISIONS),
        help="Number format of the model. The signature contains the accuracy of bf16.",
    ),
    _changes(
        "--device",
        default=CPU,
        type=click.Choice(list(DEVICES)),
        help="Where the model runs. 'cuda' is an NVIDIA GPU and needs the extra cuda.",
    ),
    _changes(
        "--dim",
        type=int,
        help="Truncate vectors to this width.  [default: the model's width]",
    ),
)

_PLACES = (
    _where(
        "-o",
        "--output",
        type=PATH,
        help="The run directory, or an address such as s3://bucket/run.",
    ),
    _where(
        "--store",
        type=PATH,
        help="The folder of vector stores.  [default: in the cache]",
    ),
    _where(
        "--trust-store",
        is_flag=True,
        callback=_trust_store,
        expose_value=False,
        help="Read a vector store that is another user's, or that others can write to.",
    ),
    _where(
        "--format",
        type=click.Choice(tuple(FORMAT_NAMES)),
        help="Format of standard input (-) and of files without a known suffix. For standard "
        "input the default is jsonl.",
    ),
    _where(
        "--layout",
        metavar="NAME|FILE",
        help=f"Layout of the logs: a TOML file or one of {', '.join(layout_names())}.",
    ),
    _where(
        "--column",
        "columns",
        multiple=True,
        metavar="NAME=PATH",
        help="Read column NAME from PATH: text=content, text=turns[].content. Repeatable.",
    ),
    _where(
        "--value",
        "values",
        multiple=True,
        metavar="COLUMN:FROM=TO",
        help="Replace a value of the log, such as speaker:user=USER. Repeatable.",
    ),
    _where(
        "--alternate",
        type=click.Choice(("user", "assistant")),
        help="Turns without a speaker take turns, and this one begins.",
    ),
    _where(
        "--sort-by",
        metavar="KEY",
        help="Sort the turns of each dialogue by KEY: a time, or a number.",
    ),
    _where(
        "--dialogue",
        metavar="KEY",
        help="KEY names the dialogue. Documents with the same name are joined.",
    ),
    _where(
        "--without",
        metavar="TAGS",
        help="Leave out of texts what tags enclose, such as think. Separated by commas.",
    ),
    HeadedOption(
        ["--config"],
        heading=WHERE_THINGS_ARE,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        is_eager=True,
        expose_value=False,
        callback=read_config,
        envvar="FASTSCORE_CONFIG",
        help="TOML file with options. Flags and environment variables win over it.",
    ),
)

_SCORED = (
    _scored(
        "--metrics",
        multiple=True,
        metavar="FILE|NAME",
        help="Metrics of your own: a Python file, or the name of an installed one. Repeatable.",
    ),
    _scored(
        "--limit",
        type=click.IntRange(min=1),
        help="Score only the first N dialogues.",
    ),
    _scored(
        "--sample",
        type=click.IntRange(min=1),
        help="Score a random sample of N dialogues. It does not depend on the order of the log.",
    ),
    _scored("--seed", type=int, help="Seed of --sample. Default: 0."),
    _scored(
        "--max-rejects",
        type=click.FloatRange(0.0, 1.0),
        default=DEFAULT_MAX_REJECTS,
        help="Maximum share of rejected lines. Above it the exit code is 3.",
    ),
    _scored(
        "--strict",
        is_flag=True,
        help="Exit with code 3 if a metric is null in every row because its column is missing.",
    ),
)

_WORKERS = (
    _runs(
        "--workers",
        type=click.IntRange(min=1),
        default=available_processors(),
        help="Number of shards scored at once. Default: the number of processors.",
    ),
    _runs(
        "--engine",
        default=LOCAL,
        type=click.Choice(tuple(ENGINES)),
        help="Where tasks run: in this process, or on workers of Dask or Ray.",
    ),
    _runs(
        "--address",
        help="Address of the engine's scheduler.  [default: workers on this machine]",
    ),
)

_RUNNING = (
    _runs(
        "--max-memory",
        type=click.IntRange(min=256),
        help="Maximum memory of the process in MiB. Above it the run exits with code 4. The "
        "same command continues it. With an engine: of each worker process.  "
        f"[default: {MEMORY_SHARE:.0%} of the machine]",
    ),
    _runs(
        "--max-unpacked",
        type=click.IntRange(min=1),
        default=DEFAULT_LIMITS.unpacked,
        help="Maximum unpacked size of one compressed file in MiB.",
    ),
    _runs(
        "--max-ratio",
        type=click.FloatRange(min=1.0),
        default=DEFAULT_LIMITS.ratio,
        help="Maximum ratio of unpacked and compressed size, beyond 64 MiB.",
    ),
    _runs(
        "--overwrite",
        is_flag=True,
        help="Replace an existing run in -o.",
    ),
    _runs(
        "--dry-run",
        is_flag=True,
        help="Show the planned work and write nothing.",
    ),
    _runs("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    _runs(
        "--json",
        "as_json",
        is_flag=True,
        help="Print the summary as JSON.",
    ),
)


def run_options(suite: Suite) -> list[click.Option]:
    """Return the options of every run; a shard's default size is the suite's."""
    shard_size = _runs(
        "--shard-size",
        type=click.IntRange(min=1),
        help=f"Maximum MiB of input in a shard.  [default: {suite.source.shard_bytes // MIB}]",
    )
    options = [*_CHANGING, *_PLACES, *_SCORED, *_WORKERS, shard_size, *_RUNNING]
    return options if suite.texts is not None else list(map(_hidden_for_vectors, options))


def _hidden_for_vectors(option: click.Option) -> click.Option:
    """Return an option that `--help` does not list if only vectors use it."""
    if option.name not in ("embedder", "precision", "device", "dim", "store"):
        return option
    hidden = copy.copy(option)
    hidden.hidden = True
    return hidden


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


class _Suites(click.Group):
    """A group whose commands are the installed suites."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(suite_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in suite_names() and os.path.exists(cmd_name):
            raise UsageError(
                f"The suite comes before the logs {cmd_name}.",
                f"`fastscore inspect {shlex.quote(cmd_name)}` says which suites read them.",
            )
        return with_words(_suite_command(load_suite(cmd_name)))


@click.command(
    "score",
    cls=_Suites,
    epilog="`fastscore score SUITE --help` lists a suite's options.",
)
def score_command() -> None:
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
    """Return a command that works unchanged, if the suite has an example."""
    if suite not in example_names():
        return f"fastscore score {suite} 'logs/*.jsonl.zst' -o run"
    options = " ".join(example_options(suite, Path("example")))
    written = f"fastscore example {suite} -o example"
    return f"{written}; fastscore score {suite} example/logs -o run {options}".rstrip()


def _callback(suite: Suite) -> Any:
    def run_suite(
        inputs: tuple[str, ...],
        output: Path | None,
        dry_run: bool,
        quiet: bool,
        as_json: bool,
        **given: Any,
    ) -> int:
        from fastscore.api.reading import fitting_suite_named
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
            from fastscore.run.drive import preview

            with fitting_suite_named(config):
                plan = preview(config, progress)
            show_plan(plan, as_json=as_json)
            return 0
        with fitting_suite_named(config):
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
    # flags win over the file, both over the layout
    columns = layout_map(take("layout"), suite.name) | configured_columns()
    columns |= parse_map(take("columns"), take("values"))
    columns |= chat_options(**{name: take(name) for name in CHAT_OPTIONS})
    return RunConfig(
        suite=suite.name,
        inputs=inputs,
        output=output,
        options=options,
        embedder=None if embedder == NO_EMBEDDER else embedder,
        shard_bytes=None if shard_size is None else shard_size * MIB,
        columns=columns,
        metrics=_own_metrics(take("metrics"), suite),
        choice=Choice(take("limit"), take("sample"), take("seed")),
        limits=Limits(take("max_memory"), take("max_unpacked"), take("max_ratio")),
        **given,
    )
