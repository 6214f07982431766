"""``--config FILE``: options in TOML, checked as flags are, and where columns stand."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fastscore.errors import UsageError, nearest
from fastscore.logs.inputs.column_map import NO_MAP, ColumnMap, column_map
from fastscore.suites.registry import suite_names
from fastscore.toml_files import read_toml

MAP_TABLES = ("columns", "values")
CONFIGURED = "fastscore.columns"


def read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Take a TOML file's values for defaults: click's callback of ``--config``."""
    if path is None:
        return
    content = read_toml(path)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    known_tables = (*suite_names(), *MAP_TABLES)
    for name in tables:
        if name not in known_tables:
            raise UsageError(f"{path}: unknown table [{name}].", nearest(name, known_tables))
    values = {name: value for name, value in content.items() if name not in tables}
    own = tables.get(str(ctx.info_name), {})
    values |= {name: value for name, value in own.items() if name not in MAP_TABLES}
    for mapped in (tables, own):
        ctx.meta[CONFIGURED] = ctx.meta.get(CONFIGURED, NO_MAP) | _configured_map(path, mapped)
    known = {_config_key(option): option for option in ctx.command.params if option.expose_value}
    for name, value in values.items():
        if name not in known:
            raise UsageError(f"{path}: unknown key {name!r}.", nearest(name, known))
        _check_config_value(path, name, value, known[name])
    ctx.default_map = {str(known[name].name): value for name, value in values.items()}


def configured_columns() -> ColumnMap:
    """Return where columns stand by the file that this command was given."""
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
