"""Two sides of a comparison, metric by metric: means, and their difference with interval and test.

A side is summed by dialogue, label, cluster and repeat. The mean is that over rows, as a summary
has it. The interval, the test and the effect size are of the same mean, over clusters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import polars as pl

from fastscore.errors import UsageError, counted, did_you_mean
from fastscore.results.agreement import JudgedRun
from fastscore.results.dialogue_sums import CLUSTER, KEY, REPEAT, DialogueSums, repeated_dialogues
from fastscore.results.runs import Run, common_suite
from fastscore.signature import deciding_differences
from fastscore.statistics import SAMPLES, significance
from fastscore.statistics.clustered import (
    Clusters,
    Estimate,
    clustered_difference,
    clustered_mean,
    hedges_g,
    least_detectable,
    repeated_difference,
    t_p_value,
)
from fastscore.statistics.resampling import MOST_EXACT, permutation_test, rearrangements
from fastscore.suites.declarations import LABEL_TABLE, NULL_REASONS, Metric
from fastscore.wording import command_text, parameter, worded

Test = Literal["auto", "t", "permutation"]
TESTS: tuple[Test, ...] = ("auto", "t", "permutation")


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The dialogues of one side by one table.

    Parameters
    ----------
    group
        The group to which both sides belong, or None.
    name
        The side's name.
    sums
        Its dialogues.
    """

    group: str | None
    name: str
    sums: DialogueSums


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """How differences are tested.

    Parameters
    ----------
    test
        ``t``, ``permutation``, or ``auto``: exact permutations if there are at most 10,000, else t.
    alpha
        The two-sided level of significance.
    seed
        Seed of drawn permutations and bootstrap samples.
    samples
        The number of bootstrap samples.
    has_repeats
        Whether a column tells repeated runs apart.
    by_definition
        The metrics whose definition depends on the levels that are compared: they have no p.
    """

    test: Test = "auto"
    alpha: float = 0.05
    seed: int = 0
    samples: int = SAMPLES
    has_repeats: bool = False
    by_definition: frozenset[str] = frozenset()


def describe_side(side: Side, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
    """Count each metric's values and nulls on a side, with the mean over rows and its interval."""
    for metric in metrics:
        rows = _rows_with_values(side.sums.values, metric)
        clusters = _clusters(_sums(rows, metric, CLUSTER))
        found = clustered_mean(
            clusters.sums, clusters.counts, minimum=metric.minimum, maximum=metric.maximum
        )
        of_metric = side.sums.nulls.filter(metric=metric.id)
        null_rows = dict(of_metric.select("reason", "n").iter_rows())
        nulls = {f"n_{reason}": null_rows.get(reason, 0) for reason in NULL_REASONS}
        yield {
            "group": side.group,
            "side": side.name,
            "metric": metric.id,
            "n": int(rows[f"{metric.id}:n"].sum()),
            "n_null": sum(nulls.values()),
            **nulls,
            "n_dialogues": rows[KEY].n_unique(),
            "mean": found.value,
            **asdict(found),
        }


def differences(
    a: Side, b: Side, metrics: Sequence[Metric], how: Inference, *, paired: bool
) -> Iterator[dict[str, Any]]:
    """Compare two sides, metric by metric.

    Parameters
    ----------
    a, b
        The sides; differences are those of `b` from `a`.
    metrics
        Metrics of one table.
    how
        The test and its level.
    paired
        Whether only dialogues with a value on both sides count. If the sides share clusters, these
        have one error for both, paired or not.
    """
    for metric in metrics:
        first, second = (_rows_with_values(side.sums.values, metric) for side in (a, b))
        if paired:
            first, second = (
                rows.filter(pl.col(KEY).is_in(other[KEY].implode()))
                for rows, other in ((first, second), (second, first))
            )
        sides, shared = align_clusters(first, second, metric)
        yield {
            "group": a.group,
            "a": a.name,
            "b": b.name,
            "metric": metric.id,
            "design": "paired" if paired else "independent",
            "n_a": first[KEY].n_unique(),
            "n_b": second[KEY].n_unique(),
            "alpha": how.alpha,
            **_tested(sides, (first, second), metric, how, shared=shared, paired=paired),
        }


def align_clusters(
    first: pl.DataFrame, second: pl.DataFrame, metric: Metric
) -> tuple[tuple[Clusters, Clusters], bool]:
    """Return both sides by cluster, and whether they share clusters, position by position then."""
    sums = [_sums(rows, metric, CLUSTER) for rows in (first, second)]
    both = sums[0].join(sums[1], on=CLUSTER, how="full", coalesce=True, suffix="/b").sort(CLUSTER)
    both = both.with_columns(pl.exclude(CLUSTER).fill_null(0))
    a, b = _clusters(both), _clusters(both.select(sum="sum/b", n="n/b"))
    shared = bool(((a.counts > 0) & (b.counts > 0)).any())
    if not shared:
        a, b = (
            Clusters(side.sums[side.counts > 0], side.counts[side.counts > 0]) for side in (a, b)
        )
    return (a, b), shared


def published_differences(a: Side, b: Side, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
    """Compute the statistics of the public guest_simulation code, one value a dialogue."""
    for metric in metrics:
        values = []
        row: dict[str, Any] = {"group": a.group, "a": a.name, "b": b.name, "metric": metric.id}
        for name, side in (("a", a), ("b", b)):
            dialogues = _sums(_rows_with_values(side.sums.values, metric), metric, KEY)
            values.append((dialogues["sum"] / dialogues["n"]).to_numpy())
            columns = (f"mean_{name}", f"normal_low_{name}", f"normal_high_{name}")
            row |= zip(columns, significance.published_interval(values[-1]), strict=True)
            row[f"n_{name}"] = dialogues.height
        x, y = values
        for name, test in (("student", significance.student_t), ("welch", significance.welch_t)):
            found = test(y, x)
            row |= {f"{name}_t": found.statistic, f"{name}_p": found.p_value}
        ranks = significance.mann_whitney_u(y, x)
        yield row | {
            "cohens_d": significance.cohens_d(y, x),
            "mann_whitney_u": ranks.statistic,
            "mann_whitney_p": ranks.p_value,
        }


def _tested(
    sides: tuple[Clusters, Clusters],
    rows: tuple[pl.DataFrame, pl.DataFrame],
    metric: Metric,
    how: Inference,
    *,
    shared: bool,
    paired: bool,
) -> dict[str, Any]:
    """Return the numbers of a difference: means, interval, p-value, effect size, power."""
    a, b = sides
    least, most = metric.minimum, metric.maximum
    found = clustered_difference(a, b, shared=shared, minimum=least, maximum=most)
    if how.has_repeats and found.reason is None:
        cells = [_cells(each, metric) for each in rows]
        found = repeated_difference(cells[0], cells[1], minimum=least, maximum=most)
    defined = metric.id in how.by_definition
    test, p = (None, None) if defined else test_difference(found, a, b, shared=shared, how=how)
    effect = None if found.reason else hedges_g(a, b, paired=paired)
    g, g_low, g_high = effect or (None, None, None)
    return {
        **asdict(found),
        "mean_a": a.mean if a.counts.sum() else None,
        "mean_b": b.mean if b.counts.sum() else None,
        "difference": found.value,
        "test": test,
        "p": p,
        "effect": g,
        "effect_low": g_low,
        "effect_high": g_high,
        "detectable": least_detectable(found, alpha=how.alpha),
        "reason": found.reason or ("by_definition" if defined else None),
    }


def test_difference(
    found: Estimate, a: Clusters, b: Clusters, *, shared: bool, how: Inference
) -> tuple[str | None, float | None]:
    """Return the name of the test that serves, and its p."""
    if found.reason is not None:
        return None, None
    few = rearrangements(a, b, shared=shared) <= MOST_EXACT and not how.has_repeats
    by_t = how.test == "t" or (how.test == "auto" and not few)
    if by_t and found.standard_error:
        return "t", t_p_value(found)
    permuted = permutation_test(a, b, shared=shared, seed=how.seed)
    return ("exact permutation" if permuted.is_exact else "permutation"), permuted.p_value


def _rows_with_values(values: pl.DataFrame, metric: Metric) -> pl.DataFrame:
    return values.filter(pl.col(f"{metric.id}:n") > 0)


def _sums(rows: pl.DataFrame, metric: Metric, *by: str) -> pl.DataFrame:
    """Return by these columns, in their order, the sum of a metric's values and their number."""
    sum_, n = pl.col(f"{metric.id}:sum").sum(), pl.col(f"{metric.id}:n").sum()
    return rows.group_by(by).agg(sum=sum_, n=n.cast(pl.Float64)).sort(by)


def _clusters(sums: pl.DataFrame) -> Clusters:
    return Clusters(sums["sum"].to_numpy(), sums["n"].to_numpy())


def _cells(rows: pl.DataFrame, metric: Metric) -> Mapping[str, Any]:
    """Return sums and counts by cluster and repeat."""
    cells = _sums(rows.drop_nulls(REPEAT), metric, CLUSTER, REPEAT)
    names = {"sums": "sum", "counts": "n", "clusters": CLUSTER, "repeats": REPEAT}
    return {name: cells[column].to_numpy() for name, column in names.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which columns name what is paired, the levels, the units and the repeats.

    Parameters
    ----------
    key
        The column that names what is paired.
    by, levels
        The column of the levels, and the levels that count; all if empty.
    cluster, repeats
        The columns of the units and of the repeats; None for none.
    pattern
        A regular expression whose one group finds what is paired in the dialogue id.
    """

    key: str
    by: str | None
    levels: tuple[str, ...]
    cluster: str | None = None
    repeats: str | None = None
    pattern: str | None = None

    @classmethod
    def of(
        cls,
        by: str | None,
        levels: Sequence[str],
        pair_by: str | None,
        cluster: str | None,
        repeats: str | None,
        *,
        n_runs: int,
    ) -> "Selection":
        """Take the columns as they were asked for.

        Raises
        ------
        UsageError
            Levels of no column, one run without a column to compare by, or a pattern that is no
            regular expression with one group.
        """
        if levels and by is None:
            raise UsageError(
                "Levels are values of a column.", f"Name the column with {parameter('by')}."
            )
        if n_runs == 1 and by is None:
            raise UsageError(
                "Only one run given.",
                "Add a second run, or compare groups of this run with "
                f"{parameter('by', 'COLUMN')}.",
            )
        pattern = None
        if pair_by is not None and "(" in pair_by:
            pattern = pair_by
            try:
                groups = re.compile(pattern).groups
            except re.error as error:
                raise UsageError(
                    f"{parameter('pair_by')} {pattern!r} is no regular expression: {error}."
                ) from error
            if groups != 1:
                raise UsageError(
                    f"{parameter('pair_by')} {pattern!r} has {groups} groups, expected one.",
                    "Write other parentheses as (?:...).",
                )
        return cls(
            key=KEY if pattern or pair_by is None else pair_by,
            by=by,
            levels=tuple(levels),
            cluster=cluster,
            repeats=repeats,
            pattern=pattern,
        )


def choose_metrics(
    runs: Sequence[Run], tables: Sequence[str], ids: Sequence[str], judged: Sequence[Metric]
) -> list[Metric]:
    """Choose the metrics that are named, else a judge's and those that a run summarises."""
    suite = runs[0].manifest.suite
    declared = (*common_suite(runs).metrics, *judged)
    for kind, names, known in (
        ("table", tables, [metric.table for metric in declared]),
        ("metric", ids, [metric.id for metric in declared]),
    ):
        for name in names:
            if name not in known:
                message = f"Suite {suite!r} has no {kind} {name!r} with numbers."
                raise UsageError(message, did_you_mean(name, set(known)))
    summarised = {name for run in runs for name in run.summary["metric"]}
    summarised.update(metric.id for metric in judged)
    chosen = [
        metric
        for metric in declared
        if (not tables or metric.table in tables)
        and (metric.id in ids if ids else metric.id in summarised)
    ]
    if not chosen:
        raise UsageError(f"Tables {', '.join(tables)} have none of these metrics.")
    return chosen


def require_one_suite(runs: Sequence[Run]) -> None:
    """Refuse runs of different suites."""
    a = runs[0]
    for b in runs[1:]:
        if a.manifest.suite != b.manifest.suite:
            raise UsageError(
                f"{a.path} is a run of {a.manifest.suite}, {b.path} one of {b.manifest.suite}. "
                "Numbers of different suites cannot be compared."
            )


def check_signatures(runs: Sequence[Run], *, allow: bool) -> list[str]:
    """Return what differs between signatures; refuse that unless it is allowed."""
    a = runs[0]
    differing = [
        f"{each.name} is {each.first or 'not there'} in {a.path} and "
        f"{each.second or 'not there'} in {b.path}"
        for b in runs[1:]
        for each in deciding_differences(a.signature, b.signature)
    ]
    if differing and not allow:
        raise UsageError(
            "The runs have different signatures: " + "; ".join(differing) + ".",
            "Score all alike, or compare them all the same with "
            f"{parameter('allow_different_signatures', True)}.",
        )
    return differing


def check_judges(runs: Sequence[JudgedRun], *, allow: bool) -> list[str]:
    """Say what judges' files refuse, and who judged where that is not one and the same."""
    notes = [note for run in runs for note in run.notes]
    judges = dict.fromkeys(judge for run in runs for judge in run.judges)
    if len(judges) > 1:
        if not allow:
            raise UsageError(
                f"Several judges' scores: {', '.join(judges)}.",
                "Have all judged alike, or compare them all the same with "
                f"{parameter('allow_different_signatures', True)}.",
            )
        notes.append(f"judges differ: {', '.join(judges)}")
    return notes


def check_repeated_dialogues(run: Run, selection: Selection, *, may_mix: bool) -> list[str]:
    """Say how many dialogues have several rows; refuse to mix conversations unless it is asked."""
    found = repeated_dialogues(run, key=selection.key, by=selection.by, levels=selection.levels)
    if not found.dialogues:
        return []
    if found.mixed and not may_mix:
        label, (dialogue, least, largest) = next(iter(found.mixed.items()))
        apart = (
            f"Compare each {label} by itself ({command_text('compare')} with "
            f"{parameter('by')} {label})"
            if selection.by is None
            else f"Name a column that tells them apart with {parameter('pair_by')}, such as file"
        )
        raise UsageError(
            f"{run.path}: dialogue {dialogue!r} stands for several conversations: {label} is "
            f"{least!r} in one and {largest!r} in another.",
            f"{apart}, or ask for the mean of all that share an id with "
            f"{parameter('pair_by')} {KEY}.",
        )
    return [
        f"{run.path}: {counted(len(found.dialogues), 'values')} of {selection.key} (such as "
        f"{found.dialogues[0]!r}) with several rows of {LABEL_TABLE} each, counted once by the "
        "mean of these rows"
    ]


def choose_design(
    a: Side, b: Side, selection: Selection, *, unpaired: bool
) -> tuple[bool, list[str]]:
    """Return whether two sides are compared by pairs, and what a reader must know of it.

    Two runs are. Two levels of one run are if at least half of the dialogues of the smaller side
    have a partner.

    Raises
    ------
    UsageError
        Two runs that have no dialogue in common.
    """
    if unpaired:
        return False, []
    keys = [side.sums.values[KEY].unique() for side in (a, b)]
    n_paired = int(keys[0].is_in(keys[1].implode()).sum())
    are_levels = selection.by is not None and a.group is None
    if are_levels and 2 * n_paired < min(map(len, keys)):
        return False, [
            f"{a.name} and {b.name} are independent samples: {n_paired:,} of "
            f"{counted(min(map(len, keys)), 'dialogues')} have a partner ({a.name} has "
            f"{_example(a)}, {b.name} {_example(b)}). {worded(parameter('pair_by'))} names a "
            "column that they share"
        ]
    if not n_paired:
        raise UsageError(
            f"No dialogue of {a.name} (such as {_example(a)}) is in {b.name} "
            f"(such as {_example(b)}).",
            f"Name the column that both share with {parameter('pair_by')}, or compare "
            f"independent samples with {parameter('unpaired', True)}.",
        )
    notes = []
    for side, of_side, other in ((a, keys[0], b), (b, keys[1], a)):
        alone = len(of_side) - n_paired
        where = f"{selection.by} {side.name}" if are_levels else side.name
        group = "" if side.group is None else f" with {selection.by} {side.group}"
        at = f" at {other.name}" if are_levels else ""
        if alone:
            notes.append(f"{counted(alone, 'dialogues')} of {where}{group} without a partner{at}")
    return True, notes


def _example(side: Side) -> str:
    return repr(side.sums.values[KEY].first())
