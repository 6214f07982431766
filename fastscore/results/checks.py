"""Checks of a run for continuous integration: bounds, nulls, rejects, and drops against a run."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from fastscore.errors import RunError, UsageError, did_you_mean, listed
from fastscore.options import read_toml
from fastscore.results.compare import Comparison, compare
from fastscore.results.compare.differences import Selection
from fastscore.results.dialogue_sums import dialogue_keys
from fastscore.results.groups import summarise_defined
from fastscore.results.metric_text import counted, interval_text, number_text, p_text
from fastscore.results.runs import Run
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import LEAST_UNITS, Estimate
from fastscore.statistics.significance import holm, t_below
from fastscore.suites.declarations import LABEL_TABLE, Metric
from fastscore.suites.summary import ALL, overall_rows
from fastscore.terminal import plain
from fastscore.terminal.grids import Column, Grid
from fastscore.wording import SCORE_AGAIN, both, parameter, worded

Outcome = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """What a run must keep to.

    Parameters
    ----------
    minimum, maximum
        Bounds of means by metric, inclusive.
    nulls
        The largest share of null rows by metric.
    rejects
        The largest share of rejected lines; None for any.
    drops
        By metric, how much worse the mean may be than in the other run.
    missing
        How many dialogues of the other run may be missing: an int counts them, a float is a share.
        If None, missing dialogues are undecided.
    fail_undecided
        Whether what is undecided fails.
    """

    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)
    nulls: Mapping[str, float] = field(default_factory=dict)
    rejects: float | None = None
    drops: Mapping[str, float] = field(default_factory=dict)
    missing: int | float | None = None
    fail_undecided: bool = False

    @property
    def of_metrics(self) -> tuple[Mapping[str, float], ...]:
        """Those that are given by metric."""
        return self.minimum, self.maximum, self.nulls, self.drops

    @property
    def need_another_run(self) -> bool:
        """Whether a limit is about another run."""
        return bool(self.drops) or self.missing is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: what was asked, what was found, and how that came out.

    Parameters
    ----------
    name, limit, found, detail
        Texts for readers.
    outcome
        ``undecided`` if the data and the limits do not decide between the two others.
    numbers
        What was found, unrounded, by name.
    """

    name: str
    found: str
    limit: str
    outcome: Outcome
    detail: str = ""
    numbers: Mapping[str, float | None] = field(default_factory=dict)


def check(
    run: Run,
    limits: CheckLimits,
    against: Run | None = None,
    *,
    pair_by: str | None = None,
    cluster: str | None = None,
    different_signatures: bool = False,
) -> list[Check]:
    """Check a run.

    A drop is the difference that `compare` computes of the pairs of dialogues, with its interval.
    It fails if a one-sided t test finds it above its limit, at a level of 5 % over all drop limits
    (Holm). It passes if the whole 95 % interval is within the limit. Otherwise it is undecided.

    Parameters
    ----------
    run
        The run that is checked.
    limits
        What it must keep to.
    against
        The run to compare it with.
    pair_by, cluster
        As in `compare`.
    different_signatures
        Whether runs that were made in different ways are compared.

    Raises
    ------
    UsageError
        Nothing to check, an unknown metric, limits of another run without one, or runs that do
        not compare.
    RunError
        Files of a run are no longer what was committed.
    """
    if not any(limits.of_metrics) and limits.rejects is None and limits.missing is None:
        raise UsageError(
            "There is nothing to check.",
            "Name limits, such as "
            + both("--min METRIC=0.8", 'minimum={"METRIC": 0.8}')
            + f" or, beside {parameter('against', 'RUN')}, "
            + both("--max-drop METRIC=0.01; or a --config.", 'max_drop={"METRIC": 0.01}.'),
        )
    if limits.need_another_run and against is None:
        raise UsageError(
            "A drop is from another run, and so are missing dialogues.",
            f"Name that with {parameter('against', 'RUN')}.",
        )
    _refuse_damage(run)
    for id in (id for metrics in limits.of_metrics for id in metrics):
        run.suite.metric(id)
    declared = run.suite.metric_by_id
    for id in limits.drops:
        if declared[id].better == "neither":
            raise UsageError(f"{id} has no direction, so that it cannot drop.")
    found = _of_one_run(run, limits)
    if against is not None and limits.need_another_run:
        _refuse_damage(against)
        notes: Sequence[str] = ()
        if limits.drops:
            compared = compare(
                against,
                run,
                metrics=list(limits.drops),
                pair_by=pair_by,
                cluster=cluster,
                allow_different_signatures=different_signatures,
            )
            found += _drops(compared, declared, limits.drops)
            notes = compared.notes
        found.append(_missing(run, against, declared, limits, pair_by, notes))
    if not limits.fail_undecided:
        return found
    return [replace(one, outcome="failed") if one.outcome == "undecided" else one for one in found]


def _of_one_run(run: Run, limits: CheckLimits) -> list[Check]:
    """Check bounds, nulls and rejects.

    A bound is of the mean over the rows in which the definition leaves the value open, as the
    printed summary has it. If these rows are on several scales, it is of the mean over all rows.
    """
    summary = run.summary.filter(pl.col("group") == ALL)
    whole = overall_rows(summary)
    bounded = list({**limits.minimum, **limits.maximum})
    open_rows, _ = summarise_defined(run.suite, run.lazy_tables, summary, bounded)
    defined = overall_rows(open_rows.drop_nulls("mean"))
    means = whole | defined
    found: list[Check] = []
    for word, bounds in (("at least", limits.minimum), ("at most", limits.maximum)):
        for id, limit in bounds.items():
            mean = means[id]["mean"] if id in means else None
            value = "no value" if mean is None else f"{mean:.6g}"
            kept = mean is not None and (mean >= limit if word == "at least" else mean <= limit)
            found.append(_decided(f"{id} {word}", value, f"{limit:g}", kept))
    for id, limit in limits.nulls.items():
        n, n_null = (whole[id]["n"], whole[id]["n_null"]) if id in whole else (0, 0)
        share = n_null / (n + n_null) if n + n_null else None
        value = "no row" if share is None else _percent(share)
        kept = share is not None and share <= limit
        found.append(_decided(f"{id} null at most", value, _percent(limit), kept))
    if limits.rejects is not None:
        lines, rejects = (run.manifest.counts.get(name, 0) for name in ("lines", "rejects"))
        share = rejects / max(1, lines)
        kept, detail = share <= limits.rejects, f"{rejects:,} of {lines:,} lines"
        shares = _percent(share), _percent(limits.rejects)
        found.append(_decided("rejects at most", *shares, kept, detail))
    return found


def _decided(name: str, found: str, limit: str, kept: bool, detail: str = "") -> Check:
    outcome: Outcome = "passed" if kept else "failed"
    return Check(name=name, found=found, limit=limit, outcome=outcome, detail=detail)


def _refuse_damage(run: Run) -> None:
    """Raise `RunError` where files of a run are no longer what was committed."""
    damaged = run.damaged()
    if damaged:
        raise RunError(
            f"{run.path}: not what was committed: {listed(damaged, 1)}.",
            f"{SCORE_AGAIN}.",
        )


def _drops(
    compared: Comparison, declared: Mapping[str, Metric], limits: Mapping[str, float]
) -> list[Check]:
    """Check drops, with p-values corrected over all of them."""
    rows = {row["metric"]: row for row in compared.differences.iter_rows(named=True)}
    if not rows:
        raise UsageError(f"No dialogue can be compared: {'; '.join(compared.notes)}.")
    sides = compared.sides.filter(pl.col("side") == pl.col("side").first())
    there = {row["metric"]: row["n_dialogues"] for row in sides.iter_rows(named=True)}
    drops = [drop_of(rows[id], declared[id].better) for id in limits]
    p_values = [p_above(*both) for both in zip(drops, limits.values(), strict=True)]
    found = []
    tested = zip(limits.items(), drops, p_values, holm(p_values), strict=True)
    for (id, allowed), drop, p, corrected in tested:
        row = rows[id]
        outcome: Outcome = "undecided"
        if drop.value is None or (corrected is not None and corrected < ALPHA):
            outcome = "failed"
        elif drop.standard_error is not None:  # the whole interval is within the limit
            end = drop.value if drop.high is None else drop.high
            outcome = "passed" if end <= allowed else "undecided"
        details = [
            _verdict(drop, outcome, corrected, sum(p is not None for p in p_values)),
            f"{row['n_a']:,} of {counted(there[id], 'dialogues')} compared",
            f"was {number_text(row['mean_a'])}, is {number_text(row['mean_b'])}",
        ]
        if drop.n_units != row["n_a"]:
            details.insert(2, f"{counted(drop.n_units, 'values')} of {compared.unit}")
        value = interval_text(drop.value, drop.low, drop.high)
        found.append(
            Check(
                name=f"{id} drop at most",
                found="no value" if drop.value is None else value,
                limit=f"{allowed:g}",
                outcome=outcome,
                detail="; ".join(details),
                numbers={
                    "drop": drop.value,
                    "low": drop.low,
                    "high": drop.high,
                    "p": p,
                    "p_holm": corrected,
                    "n_compared": row["n_a"],
                    "n_against": there[id],
                    "n_units": drop.n_units,
                },
            )
        )
    return found


def _verdict(drop: Estimate, outcome: Outcome, corrected: float | None, n_tests: int) -> str:
    if drop.value is None:
        return "no dialogue has a value in both runs"
    if corrected is None:
        return f"undecided, an interval needs {LEAST_UNITS} units"
    if outcome == "passed":
        return "not worse"
    family = f" over {n_tests} limits" if n_tests > 1 else ""
    verdict = "worse" if outcome == "failed" else "undecided"
    return f"{verdict}, p = {p_text(corrected)}{family}"


def drop_of(row: Mapping[str, Any], better: str) -> Estimate:
    """Return how much worse a mean is: a difference of a comparison, positive if worse."""
    value, low, high = row["difference"], row["low"], row["high"]
    if better == "higher":
        value, low, high = (None if end is None else 0.0 - end for end in (value, high, low))
    error, degrees = row["standard_error"], row["degrees_of_freedom"]
    return Estimate(value, low, high, error, degrees, row["n_units"])


def p_above(drop: Estimate, allowed: float) -> float | None:
    """Return the one-sided p of a true drop of at most `allowed`; None for too few units."""
    if drop.value is None or drop.standard_error is None:
        return None
    if drop.standard_error == 0.0:  # all units dropped alike: a sign test is left
        return 2.0**-drop.n_units if drop.value > allowed else 1.0
    assert drop.degrees_of_freedom is not None
    return t_below(drop.degrees_of_freedom, (allowed - drop.value) / drop.standard_error)


def _missing(
    run: Run,
    against: Run,
    declared: Mapping[str, Metric],
    limits: CheckLimits,
    pair_by: str | None,
    notes: Sequence[str],
) -> Check:
    """Check how many dialogues of the other run are missing in this one."""
    selection = Selection.of(None, (), pair_by, None, None, n_runs=2)
    table = LABEL_TABLE
    if selection.key not in run.scan(table).collect_schema() and limits.drops:
        table = declared[next(iter(limits.drops))].table
    here, there = (
        dialogue_keys(one, table=table, key=selection.key, pattern=selection.pattern)
        for one in (run, against)
    )
    lost = there.filter(~there.is_in(here.implode()))
    share, limit = len(lost) / max(1, len(there)), limits.missing
    within = not len(lost)
    if limit is not None:
        within = len(lost) <= limit if isinstance(limit, int) else share <= limit
    outcome: Outcome = "passed" if within else "undecided" if limit is None else "failed"
    details = [f"such as {lost[0]!r}"] if len(lost) else []
    details += notes
    if outcome == "undecided":
        details.append(worded(f"{parameter('max_missing')} sets how many may be missing"))
    allowed = "" if limit is None else str(limit) if isinstance(limit, int) else _percent(limit)
    return Check(
        name="missing dialogues" + (" at most" if allowed else ""),
        found=f"{len(lost):,} of {len(there):,} ({_percent(share)})",
        limit=allowed,
        outcome=outcome,
        detail="; ".join(details),
        numbers={"n_missing": len(lost), "n_against": len(there), "n_run": len(here)},
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def checks_grid(found: Sequence[Check]) -> Grid:
    """Lay out checks as a table."""
    compared = (
        f"{one.numbers['n_compared']} of {one.numbers['n_against']}"
        if "n_compared" in one.numbers
        else ""
        for one in found
    )
    return Grid(
        "",
        (
            Column("check", tuple(one.name for one in found), right=False, wraps=True),
            Column("limit", tuple(one.limit for one in found)),
            Column("found", tuple(one.found for one in found)),
            Column("outcome", tuple(one.outcome for one in found), right=False),
            Column("compared", tuple(compared)),
        ),
    )


def _texts(one: Check) -> tuple[str, str]:
    """Write what was asked and what was found."""
    detail = f" ({one.detail})" if one.detail else ""
    return f"{one.name} {one.limit}".rstrip(), f"found {one.found}{detail}"


def github_lines(found: Sequence[Check]) -> list[str]:
    """Write what failed and what is undecided as GitHub's workflow commands."""
    lines = []
    for one in found:
        if one.outcome != "passed":
            level = "error" if one.outcome == "failed" else "warning"
            message = plain(": ".join(_texts(one))).replace("%", "%25")
            lines.append(f"::{level} title=fastscore check::{message}")
    return lines


def junit(found: Sequence[Check], run: Run) -> bytes:
    """Write checks as a JUnit report: a case each, undecided ones skipped."""
    suite = ElementTree.Element(
        "testsuite",
        name=f"fastscore check {plain(str(run.path))}",
        tests=str(len(found)),
        failures=str(sum(one.outcome == "failed" for one in found)),
        skipped=str(sum(one.outcome == "undecided" for one in found)),
    )
    for one in found:
        asked, message = _texts(one)
        case = ElementTree.SubElement(suite, "testcase", classname=run.manifest.suite, name=asked)
        if one.outcome != "passed":
            kind = "failure" if one.outcome == "failed" else "skipped"
            ElementTree.SubElement(case, kind, message=plain(message))
    ElementTree.indent(suite)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


_EXPECTED = {dict: "a table of metrics", str: "a text", bool: "true or false"}
_KINDS: dict[str, type] = {
    **dict.fromkeys(("min", "max", "max_null", "max_drop"), dict),
    **dict.fromkeys(("against", "pair_by", "cluster"), str),
    **dict.fromkeys(("max_rejects", "max_missing"), object),
    "fail_undecided": bool,
}
"""The keys of a table of limits, each with the type of its value."""


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
        if name not in _KINDS:
            advice = did_you_mean(name, _KINDS)
            raise UsageError(f"{path}: table check has no key {name!r}.", advice)
        if not isinstance(value, _KINDS[name]):
            raise UsageError(
                f"{path}: check.{name} is {value!r}, expected {_EXPECTED[_KINDS[name]]}."
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
        The run's suite: its name and a full stop may precede a metric.
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
        minimum=_values(parameter("minimum"), suite, given.get("min", {}), minimum),
        maximum=_values(parameter("maximum"), suite, given.get("max", {}), maximum),
        nulls=_values(parameter("max_null"), suite, given.get("max_null", {}), nulls, _share),
        rejects=None if rejected is None else _share(parameter("max_rejects"), str(rejected)),
        drops=_values(parameter("max_drop"), suite, given.get("max_drop", {}), drops),
        missing=None if lost is None else _share_or_number(parameter("max_missing"), str(lost)),
        fail_undecided=fail_undecided or given.get("fail_undecided", False),
    )


def _values(
    flag: str,
    suite: str,
    given: Mapping[str, Any],
    named: Sequence[str],
    read: Callable[[str, str], float] | None = None,
) -> dict[str, float]:
    """Read limits by metric. The suite's name and a full stop may precede a metric."""
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
