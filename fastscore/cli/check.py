"""``fastscore check``: whether a run keeps to limits, for continuous integration."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastscore.errors import EXIT_CHECK_FAILED, UsageError, nearest
from fastscore.terminal import write_line

if TYPE_CHECKING:
    from fastscore.results.checks import Check

_EXPECTED = {dict: "a table of metrics", str: "a text", bool: "true or false"}
TABLES = ("min", "max", "max_null", "max_drop")
TEXTS = ("against", "pair_by")
KEYS = (*TABLES, *TEXTS, "max_rejects", "fail_undecided")


@click.command(
    "check",
    epilog="Example: fastscore check run --min cas=0.4 --max-null cas=20% --against base "
    "--max-drop cas=0.01",
)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--min", "minimum", multiple=True, metavar="METRIC=VALUE", help="Least mean; repeatable."
)
@click.option(
    "--max", "maximum", multiple=True, metavar="METRIC=VALUE", help="Largest mean; repeatable."
)
@click.option(
    "--max-null",
    "nulls",
    multiple=True,
    metavar="METRIC=SHARE",
    help="Largest share of null rows, as 0.05 or 5%; repeatable.",
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
    help="How much worse than in RUN2 the mean may be, by its interval; repeatable.",
)
@click.option(
    "--pair-by",
    metavar="COLUMN",
    help="The column whose equal values are a pair for --max-drop; else the dialogue's id.",
)
@click.option("--fail-undecided", is_flag=True, help="Fail where an interval does not decide.")
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
    help="A TOML file whose table [check] holds limits; flags win.",
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
    pair_by: str | None,
    fail_undecided: bool,
    allow_different_signatures: bool,
    config: Path | None,
    junit_file: Path | None,
    format: str,
) -> None:
    """Check whether RUN keeps to limits: exit 0 where it does, 1 where it does not.

    A run that is not complete, or whose files are not what was committed, ends with 4.
    """
    from fastscore.results.checks import CheckLimits, check, junit
    from fastscore.results.runs import open_run
    from fastscore.run.commit import commit_bytes

    given = {} if config is None else _configured(config)
    rejects = max_rejects if max_rejects is not None else given.get("max_rejects")
    other = against if against is not None else given.get("against")
    opened = open_run(run)
    limits = CheckLimits(
        minimum=_values("--min", opened.manifest.suite, given.get("min", {}), minimum),
        maximum=_values("--max", opened.manifest.suite, given.get("max", {}), maximum),
        nulls=_values(
            "--max-null", opened.manifest.suite, given.get("max_null", {}), nulls, _share
        ),
        rejects=None if rejects is None else _share("--max-rejects", str(rejects)),
        drops=_values("--max-drop", opened.manifest.suite, given.get("max_drop", {}), drops),
        fail_undecided=fail_undecided or given.get("fail_undecided", False),
    )
    found = check(
        opened,
        limits,
        None if other is None else open_run(other),
        pair_by=pair_by or given.get("pair_by"),
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
    from fastscore.terminal.grids import print_grid

    if format == "json":
        write_line(json.dumps([dataclasses.asdict(one) for one in found], indent=2))
    elif format == "github":
        for line in github_lines(found):
            write_line(line)
    else:
        print_grid(result_console(), checks_grid(found))


def _configured(path: Path) -> Mapping[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file ({error}).") from error
    table = content.get("check", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: check is {table!r}, expected a table.")
    for name, value in table.items():
        if name not in KEYS:
            raise UsageError(f"{path}: table check has no key {name!r}.", nearest(name, KEYS))
        kinds = {**dict.fromkeys(TABLES, dict), **dict.fromkeys(TEXTS, str), "fail_undecided": bool}
        if not isinstance(value, kinds.get(name, object)):
            raise UsageError(
                f"{path}: check.{name} is {value!r}, expected {_EXPECTED[kinds[name]]}."
            )
    return table


def _values(
    flag: str,
    suite: str,
    given: Mapping[str, Any],
    named: Sequence[str],
    read: Callable[[str, str], float] | None = None,
) -> dict[str, float]:
    """Read limits by metric; a metric may stand after its suite's name and a full stop."""
    pairs = {metric: str(value) for metric, value in _dotted(given)}
    for pair in named:
        metric, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{flag} is {pair!r}, expected METRIC=VALUE.")
        pairs[metric] = value
    values = {metric: (read or _number)(flag, value) for metric, value in pairs.items()}
    return {metric.removeprefix(f"{suite}."): value for metric, value in values.items()}


def _dotted(given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Write ``suite.metric``, which TOML reads as a table in a table, as one name again."""
    for name, value in given.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{metric}", limit) for metric, limit in value.items())
        else:
            yield name, value


def _share(flag: str, text: str) -> float:
    value = _number(flag, text)
    if not 0.0 <= value <= 1.0:
        raise UsageError(f"{flag}: {text!r} is no share.", "Write 5 percent as 0.05 or 5%.")
    return value


def _number(flag: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError as error:
        raise UsageError(f"{flag}: {text!r} is no number.") from error
    if value != value:
        raise UsageError(f"{flag}: {text!r} is no number.")
    return value / 100 if text.endswith("%") else value
