"""What a run says at first sight, in sentences that its data bear out.

Group differences that an omnibus test shows, baselines that the run does not beat, the headline
metrics with their intervals over the rows in which they are defined, nulls and rejects.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from fastscore.errors import listed
from fastscore.results.groups import UNIT, Part
from fastscore.results.headlines import (
    Headlines,
    baseline_text,
    part_estimate,
)
from fastscore.results.metric_text import (
    counted,
    decimals_for,
    estimate_text,
    number_text,
    reading_of,
)
from fastscore.results.runs import Run
from fastscore.results.summary_table import main_reason
from fastscore.statistics import ALPHA
from fastscore.statistics.clustered import (
    LEAST_UNITS,
    Clusters,
    Estimate,
    clustered_difference,
    t_p_value,
)
from fastscore.statistics.resampling import omnibus_test, permutation_test
from fastscore.statistics.samples import Values
from fastscore.statistics.significance import holm
from fastscore.suites.declarations import Metric
from fastscore.suites.summary import overall_rows
from fastscore.terminal import plain

MOST_PAIRED = 60
"""The most groups whose pairs are compared."""
FIRST_DRAWS, PROMISING = 199, 0.1
"""A first look at the omnibus test: only a p up to this is worth all permutations."""


@dataclass(frozen=True, slots=True)
class GroupTest:
    """A metric by a label, as arrays over units.

    Parameters
    ----------
    metric, where, label
        What is tested: the metric, over which of its rows, and by which label.
    names
        The label's values with at least three units, ascending.
    groups
        int64 (n,): the place in `names` of each unit.
    units
        int64 (n,): the number of each unit. Units may be in several groups.
    sums, counts
        float64 (n,): the sum of each unit's values and their number, above 0.
    shares_units
        Whether a unit is in several groups.
    """

    metric: Metric
    where: str
    label: str
    names: tuple[str, ...]
    groups: npt.NDArray[np.int64]
    units: npt.NDArray[np.int64]
    sums: Values
    counts: Values
    shares_units: bool


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A test that is significant after correction.

    Parameters
    ----------
    test
        What was tested.
    p
        The omnibus test's p-value, corrected over all tests.
    low, high
        The names of the groups of the clearest pair; None if no pair is significant by itself.
    means
        Their means.
    difference
        The difference of the two means.
    pair_p
        Its p-value, corrected over all pairs.
    """

    test: GroupTest
    p: float
    low: str | None = None
    high: str | None = None
    means: tuple[float, float] | None = None
    difference: Estimate | None = None
    pair_p: float | None = None


def group_tests(parts: Sequence[Part], labels: Sequence[str]) -> list[GroupTest]:
    """Return what can be tested: parts with two groups or more of at least three units."""
    found = []
    for part in parts:
        for label in labels:
            rows = (
                part.units.drop_nulls(label)
                .group_by(UNIT, label, maintain_order=True)
                .agg(pl.col("sum", "n").sum())
            )
            rows = rows.filter(pl.len().over(label) >= LEAST_UNITS).sort(label, UNIT)
            names = rows[label].unique(maintain_order=True)
            if names.len() < 2:
                continue
            found.append(
                GroupTest(
                    metric=part.metric,
                    where=part.where,
                    label=label,
                    names=tuple(names),
                    groups=rows[label].rle_id().to_numpy().astype(np.int64),
                    units=rows[UNIT].rank("dense").to_numpy().astype(np.int64),
                    sums=rows["sum"].to_numpy(),
                    counts=rows["n"].cast(pl.Float64).to_numpy(),
                    shares_units=rows[UNIT].n_unique() < rows.height,
                )
            )
    return found


def group_differences(tests: Sequence[GroupTest], *, seed: int = 0) -> list[GroupDifference]:
    """Return the tests that are significant after Holm's correction, the largest effects first.

    Parameters
    ----------
    tests
        One family of tests. Its level is `ALPHA`, and so is that of the pairs of each.
    seed
        Seed of the permutations.
    """
    corrected = holm([_omnibus_p(test, seed) for test in tests])
    found = [
        _clearest_pair(test, p)
        for test, p in zip(tests, corrected, strict=True)
        if p is not None and p < ALPHA
    ]
    return sorted(found, key=lambda one: (one.difference is None, -_explained(one.test)))


def _omnibus_p(test: GroupTest, seed: int) -> float | None:
    """Return the p of a short permutation test, or of a long one if the short one is promising.

    A p above the threshold stays as it is, so errors are no more frequent than with the long one.
    """
    how: dict[str, Any] = {"blocks": test.units if test.shares_units else None, "seed": seed}
    arguments = test.sums, test.counts, test.groups
    p = omnibus_test(*arguments, **how, draws=FIRST_DRAWS)
    if p is None or p > PROMISING:
        return p
    return omnibus_test(*arguments, **{**how, "seed": seed + 1})


def _clearest_pair(test: GroupTest, p: float) -> GroupDifference:
    """Find the largest difference among the pairs that are significant after correction."""
    if len(test.names) > MOST_PAIRED:
        return GroupDifference(test, p)
    shared = test.shares_units
    bounds: dict[str, Any] = {"minimum": test.metric.minimum, "maximum": test.metric.maximum}
    pairs, p_values = [], []
    for pair in combinations(range(len(test.names)), 2):
        a, b = _sides(test, *pair)
        estimate = clustered_difference(a, b, shared=shared, **bounds)
        pairs.append((pair, a, b, estimate))
        p_values.append(
            t_p_value(estimate)
            if estimate.standard_error
            else permutation_test(a, b, shared=shared).p_value
        )
    clear = [
        (abs(tested[-1].value), tested, pair_p)
        for tested, pair_p in zip(pairs, holm(p_values), strict=True)
        if pair_p is not None and pair_p < ALPHA and tested[-1].value
    ]
    if not clear:
        return GroupDifference(test, p)
    _, ((low, high), a, b, estimate), pair_p = max(clear, key=lambda one: one[0])
    if estimate.value is not None and estimate.value < 0:
        low, high, a, b = high, low, b, a
        estimate = clustered_difference(a, b, shared=shared, **bounds)
    names, means = (test.names[low], test.names[high]), (a.mean, b.mean)
    return GroupDifference(test, p, *names, means, estimate, pair_p)


def _sides(test: GroupTest, first: int, second: int) -> tuple[Clusters, Clusters]:
    """Return two groups; if units are in several, position i of both is one unit."""
    chosen = [np.flatnonzero(test.groups == group) for group in (first, second)]
    if not test.shares_units:
        a, b = (Clusters(test.sums[rows], test.counts[rows]) for rows in chosen)
        return a, b
    units = np.unique(test.units[np.concatenate(chosen)])
    sides = []
    for rows in chosen:
        sums, counts = np.zeros((2, units.size))
        places = np.searchsorted(units, test.units[rows])
        sums[places], counts[places] = test.sums[rows], test.counts[rows]
        sides.append(Clusters(sums, counts))
    return sides[0], sides[1]


def _explained(test: GroupTest) -> float:
    """Return the share of the units' variation that lies between the groups."""
    means = test.sums / test.counts
    spread = ((means - means.mean()) ** 2).sum()
    sizes = np.bincount(test.groups)
    between = (sizes * (np.bincount(test.groups, means) / sizes - means.mean()) ** 2).sum()
    return float(between / spread) if spread > 0 else 0.0


Kind = Literal["groups", "baseline", "mean", "null", "rejects", "none"]
GROUP_DIFFERENCES = 6
NAMED = 3
MANY_NULLS = 0.2
MANY_AT_END = 0.5
SMALLEST_P = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A sentence about a run.

    Parameters
    ----------
    kind
        What it is about.
    text
        The sentence.
    metric
        The id of its metric, empty where it has none.
    """

    kind: Kind
    text: str
    metric: str = ""


def list_findings(run: Run, headlines: Headlines) -> list[Finding]:
    """Return findings about headline metrics that were read already.

    First what differs between groups, the largest effects first, then trivial agents that the run
    does not beat, the means, what is null, what was rejected.
    """
    whole = overall_rows(headlines.summary)
    return [
        *_groups(headlines),
        *_unbeaten(headlines),
        *(
            Finding(kind="mean", text=f"{_named(metric)}{text}.", metric=metric.id)
            for metric in headlines.metrics
            if (text := _means(headlines, metric, whole[metric.id]))
        ),
        *_nulls(headlines, whole),
        *_rejects(run),
    ]


def findings_lines(findings: Sequence[Finding], *, width: int = 80, lines: int = 10) -> list[str]:
    """Return findings in so many lines of text, whole sentences, the first of each kind.

    The kinds take turns, so that none crowds out another.
    """
    by_kind: dict[str, list[list[str]]] = {}
    for finding in findings:
        wrapped = textwrap.wrap(
            plain(finding.text), width, initial_indent="- ", subsequent_indent="  "
        )
        by_kind.setdefault(finding.kind, []).append(wrapped)
    chosen: list[tuple[int, int, list[str]]] = []
    left = lines
    for place in range(max(map(len, by_kind.values()), default=0)):
        for kind, texts in enumerate(by_kind.values()):
            if place < len(texts) and len(texts[place]) <= left:
                left -= len(texts[place])
                chosen.append((kind, place, texts[place]))
    return [line for _, _, text in sorted(chosen) for line in text]


def _means(headlines: Headlines, metric: Metric, record: Mapping[str, Any]) -> str:
    """Write the mean of each part with its interval, units, reading and baselines."""
    texts = []
    parts = headlines.of(metric.id)
    for part in parts:
        estimate = part_estimate(part, record)
        band = reading_of(estimate.value, estimate.low, estimate.high, metric.bands)
        facts = [
            estimate_text(estimate),
            f"{band} by its source" if band else "",
            counted(estimate.n_units, headlines.unit),
            _reason_text(estimate),
            _at_end(part),
        ]
        shown = ", ".join(fact for fact in facts if fact)
        baselines = baseline_text(headlines.baselines_of(part))
        where = f"{', in' if len(parts) == 1 else ''} {part.where}: " if part.where else ": "
        texts.append(f"{where}{shown}{f' ({baselines})' if baselines else ''}")
    return texts[0] if len(texts) == 1 else ":" + ";".join(texts) if texts else ""


def _reason_text(estimate: Estimate) -> str:
    if estimate.reason == "too_few_units":
        return f"no interval below {LEAST_UNITS}"
    return "all equal" if estimate.reason == "zero_variance" else ""


def _at_end(part: Part) -> str:
    """Say how many values lie at an end of the range, if it is at least half of them."""
    n = int(part.units["n"].sum())
    ends = (("at_minimum", part.metric.minimum), ("at_maximum", part.metric.maximum))
    for column, end in ends:
        at_end = int(part.units[column].sum())
        if end is not None and n >= LEAST_UNITS and at_end >= MANY_AT_END * n:
            return f"{'all' if at_end == n else f'{at_end:,} of {n:,}'} at {end:g}"
    return ""


def _unbeaten(headlines: Headlines) -> list[Finding]:
    """Name the metrics in which the run is not clearly better than a trivial agent."""
    unbeaten: dict[str, list[str]] = {}
    for part in headlines.parts:
        for one in headlines.baselines_of(part):
            if not is_better(part.metric, one.difference):
                own, other = (number_text(mean, 3) for mean in (one.own, one.value))
                is_split = len(headlines.of(part.metric.id)) > 1
                named = f"{part.metric.id} in {part.where}" if is_split else part.metric.id
                unbeaten.setdefault(one.agent, []).append(f"{named} ({own} against {other})")
    found = [
        Finding(
            kind="baseline",
            text=f"Not clearly better than an agent that is {agent}, on the same log: "
            f"{listed(metrics, NAMED)}.",
        )
        for agent, metrics in unbeaten.items()
    ]
    if headlines.lacking:
        found.append(Finding(kind="baseline", text=f"No trivial baselines: {headlines.lacking}"))
    return found


def is_better(metric: Metric, difference: Estimate) -> bool:
    """Tell whether the interval of a difference lies on the better side of 0."""
    if metric.better == "neither" or difference.low is None or difference.high is None:
        return True
    return difference.low > 0 if metric.better == "higher" else difference.high < 0


def _groups(headlines: Headlines) -> list[Finding]:
    """Name the metrics that differ between groups by an omnibus test, and their clearest pair."""
    tests = group_tests(headlines.parts, headlines.labels)
    if not tests:
        return _untested(headlines)
    differences = group_differences(tests)
    family = f"Holm over {counted(len(tests), 'tests')}"
    if not differences:
        labels = ", ".join(dict.fromkeys(test.label for test in tests))
        text = f"No headline metric clearly differs by {labels} ({family}, {ALPHA:g})."
        return [Finding(kind="groups", text=text)]
    found = [
        Finding(kind="groups", text=_difference_text(one, family), metric=one.test.metric.id)
        for one in differences[:GROUP_DIFFERENCES]
    ]
    others: dict[str, list[str]] = {}
    for one in differences[GROUP_DIFFERENCES:]:
        others.setdefault(one.test.label, []).append(one.test.metric.id)
    more = [f"by {label} ({len(ids):,}): {', '.join(ids)}" for label, ids in others.items()]
    if more:
        found.append(Finding(kind="groups", text=f"Others that differ {'; '.join(more)}."))
    return found


def _p(p: float) -> str:
    return f"p = {p:.4f}" if p >= SMALLEST_P else f"p < {SMALLEST_P:.4f}"


def _untested(headlines: Headlines) -> list[Finding]:
    """Say that groups are too small to be compared, if there are any."""
    labels = [
        label
        for label in headlines.labels
        if any(part.units[label].drop_nulls().n_unique() > 1 for part in headlines.parts)
    ]
    if not labels:
        return []
    text = (
        f"Not tested for differences by {', '.join(labels)}: fewer than two groups have "
        f"{LEAST_UNITS} {headlines.unit}."
    )
    return [Finding(kind="groups", text=text)]


def _difference_text(one: GroupDifference, family: str) -> str:
    test = one.test
    where = f", in {test.where}," if test.where else ""
    message = f"{_named(test.metric)}{where} differs by {test.label} ({_p(one.p)}, {family})"
    if one.difference is None or one.means is None or one.pair_p is None:
        return f"{message}; no pair of its {len(test.names):,} groups is clear by itself."
    decimals = max(1, decimals_for(one.means) - 1)
    low, high = (number_text(mean, decimals) for mean in one.means)
    n_pairs = len(test.names) * (len(test.names) - 1) // 2
    corrected = f", Holm over {n_pairs} pairs" if n_pairs > 1 else ""
    return (
        f"{message}: {one.high} has {high}, {one.low} {low}, difference "
        f"{estimate_text(one.difference)} ({_p(one.pair_p)}{corrected})."
    )


def _nulls(headlines: Headlines, whole: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    metrics = headlines.metrics
    everywhere = [metric for metric in metrics if not whole[metric.id]["n"]]
    found = []
    if everywhere:
        reasons = sorted({main_reason(whole[metric.id]) for metric in everywhere})
        names = ", ".join(metric.id for metric in everywhere)
        found.append(Finding(kind="null", text=f"Null everywhere ({', '.join(reasons)}): {names}."))
    for metric in metrics:
        record = whole[metric.id]
        rows = record["n"] + record["n_null"]
        # nulls outside the rows in which it is defined are no news
        by_definition = any(part.where for part in headlines.of(metric.id))
        if metric in everywhere or (by_definition and main_reason(record) == "not_applicable"):
            continue
        if record["n_null"] > MANY_NULLS * rows:
            found.append(
                Finding(
                    kind="null",
                    text=f"{_named(metric)} is null in {record['n_null']:,} of {rows:,} "
                    f"{metric.table} ({main_reason(record)}).",
                    metric=metric.id,
                )
            )
    return found


def _rejects(run: Run) -> list[Finding]:
    n_rejects = run.manifest.counts.get("rejects", 0)
    if not n_rejects:
        return [Finding(kind="none", text="No line was rejected.")]
    by_reason = run.rejects.group_by("reason").agg(n=pl.col("count").sum())
    reason, n = by_reason.sort("n", "reason", descending=[True, False]).row(0)
    text = f"{counted(n_rejects, 'rejects')}, most for {reason} ({n:,})."
    return [Finding(kind="rejects", text=text)]


def _named(metric: Metric) -> str:
    return f"{metric.name} ({metric.id})"
