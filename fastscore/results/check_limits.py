"""Limits that a run is checked against: from flags, and the table ``check`` of a TOML file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fastscore.errors import UsageError, nearest
from fastscore.results.checks import CheckLimits
from fastscore.toml_files import read_toml

_EXPECTED = {dict: "a table of metrics", str: "a text", bool: "true or false"}
TABLES = ("min", "max", "max_null", "max_drop")
TEXTS = ("against", "pair_by", "cluster")
KEYS = (*TABLES, *TEXTS, "max_rejects", "max_missing", "fail_undecided")


def read_table(path: Path) -> Mapping[str, Any]:
    """Read the table ``check`` of a TOML file, empty where it has none.

    Raises
    ------
    UsageError
        No TOML, an unknown key, or a value of another kind.
    """
    content = read_toml(path)
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


def read_limits(
    suite: str,
    given: Mapping[str, Any],
    *,
    minimum: Sequence[str],
    maximum: Sequence[str],
    nulls: Sequence[str],
    drops: Sequence[str],
    rejects: str | None,
    missing: str | None,
    fail_undecided: bool,
) -> CheckLimits:
    """Read the limits of a suite's metrics; flags win over the table.

    Parameters
    ----------
    suite
        The run's suite: a metric may stand after its name and a full stop.
    given
        The table `read_table` returns.
    minimum, maximum, nulls, drops
        Flags, ``METRIC=VALUE`` each.
    rejects
        The largest share of rejected lines.
    missing
        The largest share or number of dialogues of the other run that may be missing.
    fail_undecided
        Whether what is undecided fails.

    Raises
    ------
    UsageError
        What is no number, or no share where one is expected.
    """
    rejected = rejects if rejects is not None else given.get("max_rejects")
    lost = missing if missing is not None else given.get("max_missing")
    return CheckLimits(
        minimum=_values("--min", suite, given.get("min", {}), minimum),
        maximum=_values("--max", suite, given.get("max", {}), maximum),
        nulls=_values("--max-null", suite, given.get("max_null", {}), nulls, _share),
        rejects=None if rejected is None else _share("--max-rejects", str(rejected)),
        drops=_values("--max-drop", suite, given.get("max_drop", {}), drops),
        missing=None if lost is None else _share_or_number("--max-missing", str(lost)),
        fail_undecided=fail_undecided or given.get("fail_undecided", False),
    )


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


def _share_or_number(flag: str, text: str) -> int | float:
    """Read a whole number as one, anything else as a share."""
    try:
        number = int(text)
    except ValueError:
        return _share(flag, text)
    if number < 0:
        raise UsageError(f"{flag}: {text!r} is below 0.", "Write a number such as 2, or 5%.")
    return number


def _number(flag: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError as error:
        raise UsageError(f"{flag}: {text!r} is no number.") from error
    if value != value:
        raise UsageError(f"{flag}: {text!r} is no number.")
    return value / 100 if text.endswith("%") else value
