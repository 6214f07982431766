"""Checks of a run for continuous integration: bounds, nulls, rejects, and drops against a run."""

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from fastscore.errors import RunError, UsageError, counted, did_you_mean, listed
from fastscore.results.compare import choose_metrics, compare_runs, pairs_of_runs
from fastscore.results.comparison import Comparison, beside, design_text
from fastscore.results.differences import Inference, missing_dialogues
from fastscore.results.metric_text import interval_text, number_text, p_text
from fastscore.results.runs import Run, defined_parts
from fastscore.settings.options import CHECK_TABLE, read_configuration
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import LEAST_UNITS
from fastscore.statistics.curves import GRID
from fastscore.suites.registry import suite_names
from fastscore.suites.summary import overall_rows
from fastscore.suites.sums import shown_name
from fastscore.terminal import plain
from fastscore.terminal.grids import Column, Grid

Outcome = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckLimits:
    """What a run must keep to, by the names of `fastscore.check`.

    An int of ``max_missing`` counts dialogues, a float is a share. If None, missing ones are
    undecided.
    """

    minimum: Mapping[str, float] = field(default_factory=dict)
    maximum: Mapping[str, float] = field(default_factory=dict)
    max_null: Mapping[str, float] = field(default_factory=dict)
    max_rejects: float | None = None
    max_drop: Mapping[str, float] = field(default_factory=dict)
    no_worse: Mapping[str, float] = field(default_factory=dict)
    equal_within: Mapping[str, float] = field(default_factory=dict)
    max_missing: int | float | None = None
    fail_undecided: bool = False

    @property
    def of_differences(self) -> list[str]:
        """The metrics with a limit that is about differences from another run, each once."""
        return [*dict.fromkeys((*self.max_drop, *self.no_worse, *self.equal_within))]


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what was asked, what was found, and how that came out, in texts for readers."""

    name: str
    found: str
    limit: str
    outcome: Outcome  # undecided if the data and the limits do not decide
    detail: str = ""
    numbers: Mapping[str, float | None] = field(default_factory=dict)  # what was found, unrounded


def check(
    run: Run,
    limits: CheckLimits,
    against: Run | None = None,
    *,
    pair_by: str | None = None,
    unpaired: bool = False,
    cluster: str | None = None,
    different_signatures: bool = False,
) -> list[Check]:
    """Check a run."""
    metrics = [*limits.minimum, *limits.maximum, *limits.max_null, *limits.of_differences]
    needs_another = bool(limits.of_differences) or limits.max_missing is not None
    if not metrics and limits.max_rejects is None and not needs_another:
        raise UsageError(
            "There is nothing to check.",
            'Name limits, such as minimum={"METRIC": 0.8} or, beside against=RUN, '
            'max_drop={"METRIC": 0.01}.',
        )
    if needs_another and against is None:
        raise UsageError(
            "Drops and missing dialogues need another run to compare with.",
            "Name it in against.",
        )
    _refuse_damage(run)
    how = Inference.of(run.suite.design, pair_by=pair_by, cluster=cluster, unpaired=unpaired)
    for id in metrics:
        has_no_direction = run.suite.metric(id).scale.better == "neither"
        if has_no_direction and (id in limits.max_drop or id in limits.no_worse):
            raise UsageError(f"{id} has no direction, so that it cannot drop.")
    found = [*_bounds(run, limits), *_nulls_and_rejects(run, limits)]
    if against is not None and needs_another:
        _refuse_damage(against)
        notes: Sequence[str] = ()
        if limits.of_differences:

            def compared_within(margins: Mapping[str, float]) -> Comparison:
                return compare_runs(
                    [against, run],
                    choose_metrics([against, run], limits.of_differences),
                    replace(how, limits=limits.max_drop, margins=margins),
                    allow_different_signatures=different_signatures,
                )

            # a comparison has one margin of a metric, and each kind may have its own
            compared = equal = compared_within(limits.no_worse or limits.equal_within)
            if limits.no_worse and limits.equal_within:
                equal = compared_within(limits.equal_within)
            if compared.differences.is_empty():
                raise UsageError(f"No dialogue can be compared: {'; '.join(compared.notes)}.")
            found += _drops(compared)
            found += _margins(compared, limits.no_worse, "p_no_worse", "no worse within")
            found += _margins(equal, limits.equal_within, "p_equal", "equal within")
            found += _incomplete(compared, limits.max_missing)
            notes = compared.notes
        if not unpaired:
            found.append(_missing(run, against, limits, how, notes))
    if not limits.fail_undecided:
        return found
    return [replace(one, outcome="failed") if one.outcome == "undecided" else one for one in found]


def _bounds(run: Run, limits: CheckLimits) -> Iterator[Check]:
    """Check bounds of the summary's means, of metrics with several scales one by one."""
    whole = overall_rows(run.summary)
    bounded = [run.suite.metric(id) for id in {**limits.minimum, **limits.maximum}]
    scaled = [metric for metric in bounded if metric.scale.by]
    means = {one.id: {one.id: whole.get(one.id, {}).get("mean")} for one in bounded}
    means |= {metric.id: {} for metric in scaled}
    for part in defined_parts(run, scaled):
        name = f"{part.metric.id} ({part.where})" if part.where else part.metric.id
        means[part.metric.id][name] = part.estimate.value
    for word, sign, bounds in (("least", 1, limits.minimum), ("most", -1, limits.maximum)):
        for id, limit in bounds.items():
            # decimals leave dust: a mean of .1, .2 and .6 is .3
            reach = GRID * max(1.0, abs(limit))
            for name, mean in (means[id] or {id: None}).items():
                value = "no value" if mean is None else f"{mean:.6g}"
                kept = mean is not None and sign * (limit - mean) <= reach
                yield _decided(f"{name} at {word}", value, f"{limit:g}", kept, mean=mean)


def _nulls_and_rejects(run: Run, limits: CheckLimits) -> Iterator[Check]:
    """Check shares of null rows and of rejected lines."""
    whole = overall_rows(run.summary)
    for id, limit in limits.max_null.items():
        n, n_fixed, n_null = (whole.get(id, {}).get(name, 0) for name in ("n", "n_fixed", "n_null"))
        n_rows = n + n_fixed + n_null
        share = n_null / n_rows if n_rows else None
        value = "no row" if share is None else _percent(share)
        kept, numbers = share is not None and share <= limit, {"n_null": n_null, "n_rows": n_rows}
        yield _decided(f"{id} null at most", value, _percent(limit), kept, **numbers)
    if limits.max_rejects is not None:
        rejects, lines = run.manifest.lost_lines
        share = rejects / max(1, lines)
        kept, detail = share <= limits.max_rejects, f"{rejects:,} of {lines:,} lines"
        shares = _percent(share), _percent(limits.max_rejects)
        yield _decided("rejects at most", *shares, kept, detail, n_rejects=rejects, n_lines=lines)


def _decided(
    name: str, found: str, limit: str, kept: bool, detail: str = "", **numbers: float | None
) -> Check:
    return Check(name, found, limit, "passed" if kept else "failed", detail, numbers)


def _refuse_damage(run: Run) -> None:
    """Raise `RunError` where files of a run are no longer what was committed."""
    damaged = run.damaged()
    if damaged:
        raise RunError(
            f"{run.path}: not what was committed: {listed(damaged, 1)}.",
            "Score it again with its options.",
        )


def _drops(compared: Comparison) -> Iterator[Check]:
    """Check drops, and say beside each how many dialogues it leaves out."""
    rows = {row["metric"]: row for row in compared.differences.iter_rows(named=True)}
    n_tests = compared.drops["p"].count()
    for drop in compared.drops.iter_rows(named=True):
        row = rows[drop["metric"]]
        # the pairs of the base that have a value there, or its dialogues
        n_base = row["n_base"]
        kind = "pairs" if row["design"] == "paired" else "dialogues"
        details = [
            _verdict(drop, n_tests),
            f"{drop['n_a']:,} of {counted(n_base, kind)} compared",
            counted(drop["n_units"], "units") if drop["n_units"] != drop["n_a"] else "",
            f"was {number_text(drop['mean_a'])}, is {number_text(drop['mean_b'])}",
            row["lacking"],
            design_text(row),
        ]
        value = interval_text(drop["drop"], drop["low"], drop["high"])
        numbers = {name: drop[name] for name in ("drop", "low", "high", "p", "p_holm")}
        numbers |= {"n_compared": drop["n_a"], "n_against": n_base, "n_units": drop["n_units"]}
        yield Check(
            f"{row['metric']} drop at most",
            "no value" if drop["drop"] is None else value,
            f"{drop['limit']:g}",
            drop["outcome"],
            "; ".join(filter(None, details)),
            numbers,
        )


def _verdict(drop: Mapping[str, Any], n_tests: int) -> str:
    if drop["drop"] is None:
        return "no dialogue has a value in both runs"
    if drop["p_holm"] is None:
        return f"undecided, an interval needs {LEAST_UNITS} units"
    if drop["outcome"] == "passed":
        return "not worse"
    family = f" over {n_tests} limits" if n_tests > 1 else ""
    verdict = "worse" if drop["outcome"] == "failed" else "undecided"
    return f"{verdict}, p = {p_text(drop['p_holm'])}{family}"


def _margins(
    compared: Comparison, margins: Mapping[str, float], p: str, word: str
) -> Iterator[Check]:
    """Check that means are shown to be within margins: by the corrected one-sided tests."""
    rows = {row["metric"]: row for row in compared.differences.iter_rows(named=True)}
    for id, margin in margins.items():
        row = rows[id]
        value = interval_text(row["difference"], row["low"], row["high"])
        shown = "no test" if row[p] is None else f"p = {p_text(row[p])}{beside(row)}"
        kept = row[p] is not None and row[p] < ALPHA
        numbers = {name: row[name] for name in ("difference", "low", "high", p)}
        numbers |= {"n_compared": row["n_a"], "n_against": row["n_base"]}
        yield _decided(f"{id} {word}", value, f"{margin:g}", kept, shown, **numbers)


def _incomplete(compared: Comparison, limit: int | float | None) -> Iterator[Check]:
    """Check how many pairs have no value here only, or fewer of its parts."""
    for row in compared.differences.iter_rows(named=True):
        n_base, numbers = row["n_base"], {"n_null": row["null_b"]}
        numbers["n_incomplete"] = row["partial_b"] or 0
        n = sum(numbers.values())
        if limit is not None and n and n_base:
            name, allowed = f"{row['metric']} null or incomplete here only at most", _allowed(limit)
            kept, numbers["n_against"] = _is_allowed(n, n_base, limit), n_base
            yield _decided(name, _share(n, n_base), allowed, kept, row["lacking"], **numbers)


def _missing(
    run: Run, against: Run, limits: CheckLimits, how: Inference, notes: Sequence[str]
) -> Check:
    """Check how many dialogues of the other run are missing in this one, in every pair."""
    pairs, more = pairs_of_runs(against, run, how)
    n_lost, limit = missing_dialogues(pairs, "a", "b"), limits.max_missing
    n_there, n_here = pairs.select(pl.col("a", "b").sum()).row(0)
    within = not n_lost if limit is None else _is_allowed(n_lost, n_there, limit)
    outcome: Outcome = "passed" if within else "undecided" if limit is None else "failed"
    lacking = pairs.filter(pl.col("a") > pl.col("b"))["pair"]
    example = [f"such as {shown_name(pair)!r}" for pair in lacking.head(1)]
    details = [*dict.fromkeys([*example, *notes, *more])]
    if outcome == "undecided":
        details.append("max_missing sets how many may be missing")
    return Check(
        "missing dialogues" + ("" if limit is None else " at most"),
        _share(n_lost, n_there),
        "" if limit is None else _allowed(limit),
        outcome,
        "; ".join(details),
        {"n_missing": n_lost, "n_against": n_there, "n_run": n_here},
    )


def _share(n: int, of: int) -> str:
    return f"{n:,} of {of:,} ({_percent(n / max(1, of))})"


def _is_allowed(n: int, of: int, limit: int | float) -> bool:
    """Tell whether so many are within a limit: an int counts them, a float is a share."""
    return n <= limit if isinstance(limit, int) else n / max(1, of) <= limit


def _allowed(limit: int | float) -> str:
    return str(limit) if isinstance(limit, int) else _percent(limit)


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


def _read_number(flag: str, text: str, kind: str) -> int | float:
    """Read a number of a kind, of a count a whole number as one and anything else as a share."""
    try:
        if kind == "count" and not {*text} & {*".%eE"}:
            count = int(text)
            if count < 0:
                raise UsageError(
                    f"{flag}: {text!r} is below 0.", "Write a number such as 2, or 5%."
                )
            return count
        number = float(text.removesuffix("%"))
    except ValueError as error:
        raise UsageError(f"{flag}: {text!r} is not a number.") from error
    if not math.isfinite(number):
        raise UsageError(f"{flag}: {text!r} is no finite number.")
    number = number / 100 if text.endswith("%") else number
    if kind in ("share", "count") and not 0.0 <= number <= 1.0:
        raise UsageError(f"{flag}: {text!r} is not a share.", "Write 5 percent as 0.05 or 5%.")
    if kind == "margin" and number <= 0.0:
        raise UsageError(f"{flag}: {text!r} is not a margin.", "Write a number above 0.")
    return number


_BY_METRIC = {
    "minimum": ("min", "number"),
    "maximum": ("max", "number"),
    "max_null": ("max_null", "share"),
    "max_drop": ("max_drop", "number"),
    "no_worse": ("no_worse", "margin"),
    "equal_within": ("equal_within", "margin"),
}
"""The limits by metric: the key of each in a table, and the kind of its numbers."""
_EXPECTED = {dict: "a table of metrics", str: "a text", bool: "true or false"}
_KINDS: dict[str, type] = {
    **dict.fromkeys((key for key, _ in _BY_METRIC.values()), dict),
    **dict.fromkeys(("against", "pair_by", "cluster"), str),
    **dict.fromkeys(("max_rejects", "max_missing"), object),
    **dict.fromkeys(("fail_undecided", "unpaired"), bool),
}
"""The keys of a table of limits, each with the type of its value."""


def read_table(path: Path) -> Mapping[str, Any]:
    """Read the table ``check`` of a configuration file, empty where it has none."""
    tables, values = read_configuration(path, suite_names())
    if CHECK_TABLE in values:
        raise UsageError(f"{path}: check is {values[CHECK_TABLE]!r}, expected a table.")
    table: dict[str, Any] = tables.get(CHECK_TABLE, {})
    for name, value in table.items():
        if name not in _KINDS:
            advice = did_you_mean(name, _KINDS)
            raise UsageError(f"{path}: table check has no key {name!r}.", advice)
        if not isinstance(value, _KINDS[name]):
            raise UsageError(
                f"{path}: check.{name} is {value!r}, expected {_EXPECTED[_KINDS[name]]}."
            )
    return table


def read_limits(suite: str, given: Mapping[str, Any], **flags: Any) -> CheckLimits:
    """Read the limits of a suite's metrics; flags, named as `CheckLimits`, win over the table."""
    read: dict[str, Any] = {}
    for name, (key, kind) in _BY_METRIC.items():
        texts = _texts_of(suite, name, given.get(key, {}), flags.get(name, ()))
        read[name] = {
            metric.removeprefix(f"{suite}."): _read_number(name, text, kind)
            for metric, text in texts.items()
        }
    for name, kind in (("max_rejects", "share"), ("max_missing", "count")):
        value = given.get(name) if flags.get(name) is None else flags[name]
        read[name] = None if value is None else _read_number(name, str(value), kind)
    fail_undecided = flags.get("fail_undecided") or given.get("fail_undecided", False)
    return CheckLimits(**read, fail_undecided=fail_undecided)


def _texts_of(
    suite: str, flag: str, given: Mapping[str, Any], named: Sequence[str]
) -> dict[str, str]:
    """Return limits as texts by metric. The suite's name and a full stop may precede a metric."""
    texts: dict[str, str] = {}
    for metric, value in given.items():
        if not isinstance(metric, str):
            raise UsageError(f"{flag} names metric {metric!r}, expected a text.")
        # TOML reads suite.metric as a table in a table
        inner = value if isinstance(value, dict) else {}
        texts |= {f"{metric}.{name}": str(limit) for name, limit in inner.items()} or {
            metric: str(value)
        }
    for pair in named:
        metric, equals, text = pair.partition("=")
        if not equals:
            is_value = pair.replace(".", "", 1).removesuffix("%").isdigit()
            known = f"`fastscore metrics {suite}` lists metrics."
            raise UsageError(
                f"{flag} is {pair!r}, expected METRIC=VALUE.",
                known if is_value else f"For example: {pair}=0.1.",
            )
        texts[metric] = text
    return texts
