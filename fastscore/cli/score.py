"""``fastscore score``: one command a suite, its flags made from the suite's declared options."""

import dataclasses
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

from fastscore.api.examples import example_names, example_options
from fastscore.cli.parameters import PATH, HeadedCommand, HeadedOption, option, prepared, several
from fastscore.errors import UsageError, did_you_mean
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, column_map, parse_map
from fastscore.logs.inputs.layout import layout_names
from fastscore.run.request import HOW_IT_RUNS, SETTINGS, WHAT_IS_SCORED, WHERE_THINGS_ARE, Request
from fastscore.settings.options import (
    CHANGES_SCORE,
    MAP_TABLES,
    TRUST_VARIABLE,
    WRITES_MORE,
    allowed_values,
    available_processors,
    describe_number,
    environment_name,
    flag_name,
    read_configuration,
    settings_of,
    takes_paths,
    types_of,
    value_type,
)
from fastscore.suites.base import Suite
from fastscore.suites.declarations import ALL_METRICS
from fastscore.suites.registry import load_suite, suite_names

Command = TypeVar("Command", bound=Callable[..., Any])

CONFIGURED = "fastscore.columns"
MIB = 1024 * 1024

HEADINGS = (CHANGES_SCORE, WHERE_THINGS_ARE, WHAT_IS_SCORED, WRITES_MORE, HOW_IT_RUNS)
"""The headings of a suite's ``--help``; those that a suite declares besides follow the first."""


def read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take a TOML file's values for defaults: click's callback of ``--config``."""
    if path is None:
        return
    tables, values = read_configuration(path, suite_names())
    own = tables.get(str(ctx.info_name), {})
    values |= {name: value for name, value in own.items() if name not in MAP_TABLES}
    try:
        for given in (tables, own):
            mapped = column_map(*(given.get(name) for name in MAP_TABLES))
            ctx.meta[CONFIGURED] = ctx.meta.get(CONFIGURED, NO_MAP) | mapped
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", error.hint) from error
    known = {_key(each.opts): each for each in ctx.command.params if each.expose_value}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{path}: unknown key {name!r}.", did_you_mean(name, known))
        _check_config_value(path, name, value, known[name])
    ctx.default_map = {str(known[name].name): value for name, value in values.items()}


def _key(flags: Sequence[str]) -> str:
    """Return a parameter's key in a configuration file: its long flag with underscores."""
    long_flag = next((flag for flag in flags if flag.startswith("--")), flags[0])
    return long_flag.partition("/")[0].removeprefix("--").replace("-", "_")


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
    return HeadedOption(flags, envvar=environment_name(_key(flags)), **declared)


_how = partial(_option, heading=HOW_IT_RUNS)


def _trust_store(ctx: click.Context, parameter: click.Parameter, is_trusted: bool) -> None:
    """Have this process, and the workers that it starts, trust stores."""
    if is_trusted:
        os.environ[TRUST_VARIABLE] = "1"


def run_options(suite: Suite) -> list[click.Option]:
    """Return the options of every run: those of its request, and what the command line adds."""
    shard_size = _how(
        "--shard-size",
        type=click.IntRange(min=1),
        help=f"Maximum MiB of input in a shard.  [default: {suite.source.shard_bytes // MIB}]",
    )
    added = {**_ADDED, "address": (shard_size,)}
    options = []
    for each in SETTINGS:
        flags, declared = declared_setting(each)
        declared["hidden"] = suite.texts is None and each.name in _OF_VECTORS
        options += [HeadedOption(flags, **declared), *added.get(each.name, ())]
    return options


_OF_VECTORS = ("embedder", "precision", "device", "dim", "store")
"""Settings that ``--help`` lists only if the suite compares texts by vectors."""
_ADDED: Mapping[str, tuple[click.Option, ...]] = {
    "store": (
        _option(
            "--trust-store",
            heading=WHERE_THINGS_ARE,
            is_flag=True,
            callback=_trust_store,
            expose_value=False,
            help="Read a vector store that is another user's, or that others can write to.",
        ),
    ),
    "without": (
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
    ),
    "overwrite": (
        _how("--dry-run", is_flag=True, help="Show the planned work and write nothing."),
        _how("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
        _how("--json", "as_json", is_flag=True, help="Print the summary as JSON."),
    ),
}
"""Options of the command line alone, by the setting that they follow."""


def declared_setting(setting: "dataclasses.Field[Any]") -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the flags of a field of a request, and what else declares its option."""
    rules, kind = setting.metadata, value_type(setting.type)
    flags = rules["flags"] or (flag_name(setting.name),)
    default = available_processors() if setting.name == "workers" else setting.default
    declared = {
        "heading": rules["heading"],
        "help": rules["help"].format(layouts=", ".join(layout_names())),
        "metavar": rules["metavar"],
    }
    if rules["environment"]:
        declared["envvar"] = environment_name(_key(flags))
    if kind is bool:
        declared["is_flag"] = True
    elif kind in (Mapping, Sequence):
        declared["multiple"] = True
    else:
        declared["type"] = _click_type(setting.type, rules)
        if kind in (int, float):
            declared["expected"] = describe_number(kind, rules)
    if default is dataclasses.MISSING:
        declared["required"] = True
    elif default not in (None, "", ()) and kind is not bool:
        declared["default"] = default
    return (*flags, setting.name), declared


def settings_options(request: Any, **instead: Mapping[str, Any]) -> Callable[[Command], Command]:
    """Give a command the options of a request's fields, some declared otherwise."""
    every = ((each.name, *declared_setting(each)) for each in settings_of(request))
    return several(
        *(option(*flags, **{**given, **instead.get(name, {})}) for name, flags, given in every)
    )


def _click_type(hint: Any, rules: Mapping[str, Any]) -> Any:
    if choices := allowed_values(hint):
        return click.Choice(choices)
    if takes_paths(hint) or hint in (Path, Path | None):
        return PATH
    kind, bounds = value_type(hint), (rules["minimum"], rules["maximum"])
    if bounds != (None, None):
        # the largest integers are no news to a reader of the help
        return click.IntRange(bounds[0]) if kind is int else click.FloatRange(*bounds)
    return kind if kind in (int, float) else str


def suite_options(suite: Suite) -> list[click.Option]:
    """Return the options that a suite declares, one a field."""
    declared: Any = suite.options
    types = types_of(declared)
    options = []
    for field in dataclasses.fields(suite.options):
        rules = field.metadata
        flag = flag_name(field.name)
        kind, choices = value_type(types[field.name]), allowed_values(types[field.name])
        is_flag = kind is bool
        expected = describe_number(kind, rules) if kind in (int, float) else ""
        text, bracket, default = rules["help"].partition("  [")
        if expected not in ("", "a number"):
            text += f" Accepts {expected}."
        elif rules["unit"]:
            text += f" ({rules['unit']})"
        options.append(
            _option(
                f"{flag}/{flag_name('no_' + field.name)}" if is_flag else flag,
                field.name,
                type=click.Choice(choices) if choices else kind,
                heading=rules["heading"],
                default=field.default,
                help=text + bracket + default,
                expected=expected,
            )
        )
    return options


class _Suites(click.Group):
    """A group whose commands are the installed suites."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(suite_names())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        looks_like_logs = re.search(r"[./*?]", cmd_name) or os.path.exists(cmd_name)
        if cmd_name not in suite_names() and looks_like_logs:
            own = "A suite of your own is scored in Python: fastscore.score(LOGS, SUITE)."
            reads = f"`fastscore inspect {shlex.quote(cmd_name)}` says which suites read them."
            raise UsageError(
                f"No suite is named before {cmd_name!r}.",
                own if cmd_name.endswith(".py") else reads,
            )
        return prepared(_suite_command(load_suite(cmd_name)))


@click.command(
    "score",
    cls=_Suites,
    epilog="`fastscore score SUITE --help` lists all options, such as --workers and --max-memory.",
)
def score_command() -> None:
    """Score logs into a run directory.

    \b
    fastscore score score_dialogue logs/ -o run
    fastscore score score_dialogue 'logs/*.jsonl.zst' -o letters --lex-weight 1
    fastscore score score_dialogue logs/ -o run --dry-run
    fastscore summary run

    INPUT is a file, a folder, a glob or - (standard input): JSON Lines, JSON, CSV or Parquet as the
    suite reads them, plain, .gz or .zst. `fastscore inspect INPUT` prints the command for a log.
    Running the same command again finishes an interrupted run, and shows a complete one. For a part
    of a log use --limit or --sample, or filter it:

    \b
    jq -c 'select(.miner_uid == "1")' log.jsonl > one_miner.jsonl
    fastscore score score_dialogue one_miner.jsonl -o one

    Exit codes: 0 scored, 2 usage or a missing model, 3 input refused or too many rejects, 4
    incomplete (disk, memory), 130 interrupted. After 4 and 130 type the command again.
    """


def _suite_command(suite: Suite) -> click.Command:
    own = (field.metadata["heading"] for field in dataclasses.fields(suite.options))
    first, *others = HEADINGS
    return HeadedCommand(
        suite.name,
        headings=(first, *dict.fromkeys(name for name in own if name not in HEADINGS), *others),
        params=[
            click.Argument(["inputs"], nargs=-1, metavar="INPUT..."),
            *suite_options(suite),
            *run_options(suite),
        ],
        callback=partial(_score, suite),
        short_help=suite.title,
        help=f"{suite.title}\n\n{_in_and_out(suite)}\n\nEvery option also has an environment "
        "variable, and a key in a TOML file (--config): the long flag with underscores. Keys are "
        f"at the top or in a table [{suite.name}].",
        epilog="Example: " + _example(suite.name),
    )


def _in_and_out(suite: Suite) -> str:
    """Return what a suite reads and writes, for its help."""
    source = suite.source
    needed = [column for column in source.columns if column.needed.by == ALL_METRICS]
    fields = [column.name for column in needed]
    fields += [
        f"{column.name}[].{item.name}"
        for column in needed
        for item in column.items
        if item.needed.by == ALL_METRICS
    ]
    tables = ", ".join(table.name for table in suite.tables)
    return (
        f"Reads {', '.join(source.formats)}, also .gz or .zst. Required: {', '.join(fields)}. "
        "Other names: --column. `fastscore inspect LOG` prints the command for a log.\n\n"
        f"Writes Parquet tables ({tables}), rejects and a summary into RUN. Read them with "
        f"`fastscore summary RUN`, and `fastscore metrics {suite.name}` for formulas. Exit codes: "
        "0 scored, 2 usage, 3 input refused or too many rejects, 4 incomplete: type the command "
        "again."
    )


def _example(suite: str) -> str:
    """Return a command that works unchanged, if the suite has an example."""
    if suite not in example_names():
        return f"fastscore score {suite} 'logs/*.jsonl.zst' -o run"
    options = " ".join(example_options(suite, Path("example")))
    written = f"fastscore example {suite} -o example"
    return f"{written}; fastscore score {suite} example/logs -o run {options}".rstrip()


def _score(
    suite: Suite, inputs: tuple[str, ...], dry_run: bool, quiet: bool, as_json: bool, **given: Any
) -> int:
    from fastscore.api.advice import fitting_suite_named
    from fastscore.run.drive import execute, preview
    from fastscore.run.progress import reporter

    if not inputs:
        raise UsageError("No INPUT is named.", "Name a file, a folder or a glob; - is stdin.")
    if given["output"] is None and not dry_run:
        raise UsageError("No run directory is named.", "Name one with -o RUN.")
    options = {each.name: given.pop(each.name) for each in dataclasses.fields(suite.options)}
    shard_size = given.pop("shard_size")
    # flags win over the file
    configured: ColumnMap = click.get_current_context().meta.get(CONFIGURED, NO_MAP)
    request = Request(
        suite=suite.name,
        options=options,
        inputs=inputs,
        shard_bytes=None if shard_size is None else shard_size * MIB,
        **given | typed_map(given, configured),
    )
    progress = reporter(quiet=quiet)
    if dry_run:
        from fastscore.results.show import show_plan

        with fitting_suite_named(request):
            plan = preview(request, progress)
        show_plan(plan, as_json=as_json)
        return 0
    with fitting_suite_named(request):
        outcome = execute(request, progress)
    if outcome.is_scored and (as_json or not quiet):
        from fastscore.results.show import show_outcome

        show_outcome(request.folder, as_json=as_json)
    if outcome.refusal is not None:
        raise outcome.refusal
    return 0


def typed_map(given: Mapping[str, Any], configured: ColumnMap = NO_MAP) -> dict[str, Any]:
    """Return the columns and the values that flags name, as a request has them."""
    mapped = configured | parse_map(given["columns"], given["values"])
    words: dict[str, dict[str, str]] = {}
    for column, found, meant in mapped.values:
        words.setdefault(column, {})[found] = meant
    return {"columns": dict(mapped.columns), "values": words}
