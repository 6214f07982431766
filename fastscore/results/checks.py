"""Checks of a run for continuous integration: bounds, nulls, rejects, and drops against a run."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import polars as pl

from fastscore.errors import RunError, UsageError, nearest
from fastscore.results.compare import Comparison, compare
from fastscore.results.number_text import interval_text, number_text
from fastscore.results.runs import Run
from fastscore.suites.declarations import Metric
from fastscore.suites.registry import load_suite
from fastscore.suites.summary import ALL
from fastscore.terminal import plain
from fastscore.terminal.grids import Column, Grid

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
    fail_undecided
        Whether a drop that the interval does not decide fails.
    """

    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)
    nulls: Mapping[str, float] = field(default_factory=dict)
    rejects: float | None = None
    drops: Mapping[str, float] = field(default_factory=dict)
    fail_undecided: bool = False

    @property
    def of_metrics(self) -> tuple[Mapping[str, float], ...]:
        """Those that are given by metric."""
        return self.minimum, self.maximum, self.nulls, self.drops


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check: what was asked, what was found, and how that came out."""

    name: str
    found: str
    limit: str
    outcome: Outcome
    detail: str = ""


def check(
    run: Run,
    limits: CheckLimits,
    against: Run | None = None,
    *,
    pair_by: str | None = None,
    different_signatures: bool = False,
) -> list[Check]:
    """Check a run.

    A drop is judged by the 95 % bootstrap interval of the paired difference of means, whole
    dialogues drawn again: ``worse`` where all of it is beyond what is allowed, ``not worse`` where
    none of it is, else ``undecided``, which passes unless it is to fail.

    Raises
    ------
    UsageError
        Nothing to check, an unknown metric, drops without a run to compare with, or runs that do
        not compare.
    RunError
        Files of a run are no longer what was committed.
    """
    if not any(limits.of_metrics) and limits.rejects is None:
        raise UsageError(
            "There is nothing to check.",
            "Name limits, such as --min METRIC=0.8 or, beside --against RUN, --max-drop "
            "METRIC=0.01; or a --config.",
        )
    if limits.drops and against is None:
        raise UsageError("A drop is from another run.", "Name that with --against RUN.")
    _refuse_damage(run)
    if against is not None:
        _refuse_damage(against)
    declared = _declared(run.manifest.suite, limits)
    whole = {
        row["metric"]: row
        for row in run.summary.filter(pl.col("group") == ALL).iter_rows(named=True)
    }
    found = [_bound(id, whole.get(id), "at least", limit) for id, limit in limits.minimum.items()]
    found += [_bound(id, whole.get(id), "at most", limit) for id, limit in limits.maximum.items()]
    found += [_nulls(id, whole.get(id), limit) for id, limit in limits.nulls.items()]
    if limits.rejects is not None:
        found.append(_rejects(run, limits.rejects))
    if against is not None and limits.drops:
        compared = compare(
            against,
            run,
            metrics=list(limits.drops),
            pair_by=pair_by,
            allow_different_signatures=different_signatures,
        )
        found += _drops(compared, declared, limits)
    return found


def _refuse_damage(run: Run) -> None:
    """Raise `RunError` where files of a run are no longer what was committed."""
    damaged = run.damaged()
    if damaged:
        raise RunError(
            f"{run.path}: not what was committed: {damaged[0]}"
            f"{f' and {len(damaged) - 1:,} more' if damaged[1:] else ''}.",
            "Run its `fastscore score` command again.",
        )


def _declared(suite_name: str, limits: CheckLimits) -> dict[str, Metric]:
    """Return a suite's metrics by name; refuse limits of a metric that is none of them."""
    suite = load_suite(suite_name)
    declared = {metric.id: metric for metric in suite.metrics}
    for metrics in limits.of_metrics:
        for id in metrics:
            if id not in declared:
                raise UsageError(
                    f"Suite {suite.name!r} has no metric {id!r}.", nearest(id, declared)
                )
    return declared


def _bound(id: str, row: Mapping[str, Any] | None, word: str, limit: float) -> Check:
    mean = None if row is None else row["mean"]
    kept = mean is not None and (mean >= limit if word == "at least" else mean <= limit)
    return Check(
        name=f"{id} {word}",
        found="no value" if mean is None else f"{mean:.6g}",
        limit=f"{limit:g}",
        outcome="passed" if kept else "failed",
    )


def _nulls(id: str, row: Mapping[str, Any] | None, limit: float) -> Check:
    rows = 0 if row is None else row["n"] + row["n_null"]
    share = None if row is None or not rows else row["n_null"] / rows
    return Check(
        name=f"{id} null at most",
        found="no row" if share is None else _percent(share),
        limit=_percent(limit),
        outcome="passed" if share is not None and share <= limit else "failed",
    )


def _rejects(run: Run, limit: float) -> Check:
    counts = run.manifest.counts
    share = counts.get("rejects", 0) / max(1, counts.get("lines", 0))
    return Check(
        name="rejects at most",
        found=_percent(share),
        limit=_percent(limit),
        outcome="passed" if share <= limit else "failed",
        detail=f"{counts.get('rejects', 0):,} of {counts.get('lines', 0):,} lines",
    )


def _drops(
    compared: Comparison, declared: Mapping[str, Metric], limits: CheckLimits
) -> list[Check]:
    rows = {row["metric"]: row for row in compared.differences.iter_rows(named=True)}
    return [
        _drop(declared[id], rows.get(id), allowed, fail_undecided=limits.fail_undecided)
        for id, allowed in limits.drops.items()
    ]


def _drop(
    metric: Metric, row: Mapping[str, Any] | None, allowed: float, *, fail_undecided: bool
) -> Check:
    name = f"{metric.id} drop at most"
    if metric.better == "neither":
        raise UsageError(f"{metric.id} has no direction, so that it cannot drop.")
    if row is None or row["low"] is None:
        return Check(
            name=name,
            found="no interval",
            limit=f"{allowed:g}",
            outcome="failed",
            detail="" if row is None else str(row["reason"] or ""),
        )
    ends = (-row["difference"], -row["high"], -row["low"])
    if metric.better == "lower":
        ends = (row["difference"], row["low"], row["high"])
    drop, low, high = (end + 0.0 for end in ends)
    verdict = "worse" if low > allowed else "not worse" if high <= allowed else "undecided"
    outcome: Outcome = "failed" if verdict == "worse" else "passed"
    if verdict == "undecided":
        outcome = "failed" if fail_undecided else "undecided"
    return Check(
        name=name,
        found=interval_text(drop, low, high),
        limit=f"{allowed:g}",
        outcome=outcome,
        detail=f"{verdict}, {row['n_a']:,} pairs, was {number_text(row['mean_a'])}, is "
        f"{number_text(row['mean_b'])}",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"


def checks_grid(found: Sequence[Check]) -> Grid:
    """Lay out checks as a table."""
    return Grid(
        "",
        (
            Column("check", tuple(one.name for one in found), right=False, wraps=True),
            Column("limit", tuple(one.limit for one in found)),
            Column("found", tuple(one.found for one in found)),
            Column("outcome", tuple(one.outcome for one in found), right=False),
            Column("", tuple(one.detail for one in found), right=False, drop=-1),
        ),
    )


def github_lines(found: Sequence[Check]) -> list[str]:
    """Write what failed and what is undecided as GitHub's workflow commands."""
    lines = []
    for one in found:
        if one.outcome == "passed":
            continue
        level = "error" if one.outcome == "failed" else "warning"
        detail = f" ({one.detail})" if one.detail else ""
        said = plain(f"{one.name} {one.limit}: found {one.found}{detail}")
        lines.append(f"::{level} title=fastscore check::{said.replace('%', '%25')}")
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
        case = ElementTree.SubElement(
            suite, "testcase", classname=run.manifest.suite, name=f"{one.name} {one.limit}"
        )
        message = plain(f"found {one.found}{f' ({one.detail})' if one.detail else ''}")
        if one.outcome != "passed":
            kind = "failure" if one.outcome == "failed" else "skipped"
            ElementTree.SubElement(case, kind, message=message)
    ElementTree.indent(suite)
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))
