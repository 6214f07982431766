"""Comparing runs, or the levels of one: each difference with its own interval and test.

A mean is that over a metric's rows, as the summary has it. The difference, its interval, p-value
and effect size are all of that mean, with the dialogue (or ``--cluster``) as the unit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import comb
from os import PathLike
from typing import Any

import polars as pl

from fastscore.errors import UsageError, counted, did_you_mean
from fastscore.results.agreement import judge_runs
from fastscore.results.compare.differences import (
    TESTS,
    Inference,
    Selection,
    Side,
    Test,
    check_judges,
    check_repeated_dialogues,
    check_signatures,
    choose_design,
    choose_metrics,
    describe_side,
    differences,
    published_differences,
    require_one_suite,
)
from fastscore.results.compare.ranking import (
    DIFFERENCES_SCHEMA,
    LEAST_SYSTEMS,
    PUBLISHED_SCHEMA,
    RANKING_SCHEMA,
    SIDES_SCHEMA,
    Comparison,
    rank_systems,
)
from fastscore.results.dialogue_sums import (
    CLUSTER,
    KEY,
    LABEL,
    REPEAT,
    DialogueSums,
    sum_by_dialogue,
)
from fastscore.results.repeats import (
    PASS_SCHEMA,
    REPEATS_SCHEMA,
    describe_passes,
    describe_repeats,
)
from fastscore.results.runs import Run, as_runs
from fastscore.statistics import ALPHA, SAMPLES
from fastscore.statistics.resampling import SEED
from fastscore.statistics.significance import holm
from fastscore.suites.base import families
from fastscore.suites.declarations import Metric
from fastscore.wording import parameter

_SAME = 1e-12


def decide(
    rows: pl.DataFrame, metrics: Sequence[Metric], alpha: float
) -> tuple[pl.DataFrame, list[str]]:
    """Correct p-values and conclude which differences are significant.

    Parameters
    ----------
    rows
        Differences with ``p``, ``low`` and ``high``.
    metrics
        The metrics that were compared.
    alpha
        The level of significance.

    Returns
    -------
    tuple
        The rows with ``family``, ``family_size``, ``p_holm``, ``significant`` and ``verdict``, and
        notes. A family's tests are those of its distinct metrics in all groups and pairs of
        sides. A copy of another metric is no test of the family: if its own p differs, it is
        multiplied by the family's size (Bonferroni).
    """
    rows = _correct(rows, metrics)
    direction = pl.when(pl.col("difference") > 0).then(pl.lit("higher")).otherwise(pl.lit("lower"))
    good = pl.col("metric").replace_strict({metric.id: metric.better for metric in metrics})
    significant = pl.col("p_holm") < alpha
    excludes = (pl.col("low") > 0) | (pl.col("high") < 0)
    rows = rows.with_columns(
        significant=significant,
        verdict=pl.when((significant & excludes).fill_null(False).not_())
        .then(pl.lit(""))
        .when(good == "neither")
        .then(direction)
        .when(good == direction)
        .then(pl.lit("better"))
        .otherwise(pl.lit("worse")),
    )
    return rows.select(*DIFFERENCES_SCHEMA), _too_small(rows, alpha)


def _correct(rows: pl.DataFrame, metrics: Sequence[Metric]) -> pl.DataFrame:
    """Add each row's family, the family's size and the corrected p."""
    tested = families(metrics)
    rows = rows.drop("family", "family_size", "p_holm", "significant", "verdict").with_columns(
        family=pl.col("metric").replace_strict({id: name for id, (name, _) in tested.items()}),
        _test=pl.col("metric").replace_strict({id: test for id, (_, test) in tested.items()}),
    )
    place = ["group", "a", "b", "_test"]
    originals = rows.filter(pl.col("metric") == pl.col("_test")).select(*place, "family", _p="p")
    corrected = [
        part.with_columns(
            pl.Series("p_holm", holm(part["_p"].to_list()), pl.Float64),
            family_size=pl.lit(part["_p"].count(), pl.Int64),
        ).drop("family")
        for part in originals.partition_by("family", maintain_order=True)
    ]
    empty = originals.clear().select(*place, "_p", p_holm="_p", family_size=pl.lit(0, pl.Int64))
    rows = rows.join(
        pl.concat([empty, *corrected]),
        on=place,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    is_copy = (pl.col("p") - pl.col("_p")).abs() > _SAME
    own = pl.col("p") * pl.max_horizontal("family_size", 1)
    return rows.with_columns(
        p_holm=pl.when(pl.col("p").is_null())
        .then(None)
        .when(is_copy.fill_null(True))
        .then(pl.min_horizontal(own, 1.0))
        .otherwise("p_holm")
    )


def _too_small(rows: pl.DataFrame, alpha: float) -> list[str]:
    """Note families in which no p could have been small enough, by the number of units."""
    notes = []
    for family in rows.partition_by("family", maintain_order=True):
        exact = family.filter(pl.col("test") == "exact permutation").drop_nulls("p")
        if exact.is_empty() or exact.height < family["p"].count():
            continue
        size = int(family["family_size"].max() or 1)  # type: ignore[arg-type]
        least = min(map(_least_p, exact.iter_rows(named=True)))
        if least * size >= alpha:
            notes.append(
                f"{family['family'][0]} metrics: {counted(int(exact['n_units'].max()), 'units')} "  # type: ignore[arg-type]
                f"cannot give a corrected p below {alpha:g}: the smallest p is {least:.2g}, times "
                f"{counted(size, 'tests')}. Column detectable has the smallest difference that "
                "would have been seen"
            )
    return notes


def _least_p(row: dict[str, object]) -> float:
    """Return the smallest p that an exact test of so many units can have."""
    n_units, n_a, n_b = int(row["n_units"]), int(row["n_a"]), int(row["n_b"])  # type: ignore[call-overload]
    if row["design"] == "paired":
        return float(2.0 ** (1 - n_units))
    return (2 if n_a == n_b else 1) / comb(n_a + n_b, n_a)


MOST_LEVELS = 100


def compare(
    *runs: Run | str | PathLike[str],
    by: str | None = None,
    levels: Sequence[str] = (),
    tables: Sequence[str] = (),
    metrics: Sequence[str] = (),
    pair_by: str | None = None,
    unpaired: bool = False,
    cluster: str | None = None,
    repeats: str | None = None,
    test: Test = "auto",
    allow_different_signatures: bool = False,
    published_statistics: bool = False,
    alpha: float = ALPHA,
    samples: int = SAMPLES,
    seed: int = SEED,
    judge: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    judge_columns: Sequence[str] = (),
    judge_scale: tuple[float, float] = (1.0, 5.0),
) -> Comparison:
    """Compare runs of a suite with each other, or the levels of one run.

    Parameters
    ----------
    runs
        Two runs or more: dialogues of one id are pairs. Of one run, the levels are compared, as
        pairs if most dialogue ids are found at both levels.
    by
        A label column: with several runs each of its values is compared by itself; with one run
        its values are the levels.
    levels
        Only these values of `by`, in this order; all in ascending order by default.
    tables, metrics
        Only the metrics of these tables, only these metrics; default: all.
    pair_by
        The column that names what is paired, ``dialogue`` by default, or a regular expression with
        one group, which finds the name within the dialogue id. If a column is given, the mean over
        all rows of one value counts, and a note tells how many values have several rows.
    unpaired
        Compare all dialogues of both sides as independent samples, also those with equal ids. A
        `cluster` that both sides share still has one error for both.
    cluster
        The column whose values are the units of inference. Default: what is paired.
    repeats
        The column that tells repeated runs (seeds) apart: intervals are then for new repeats too,
        and metrics that are 0 or 1 have pass^k.
    test
        ``t``, ``permutation`` (of signs for pairs, else of labels, by cluster), or ``auto``: exact
        permutations if there are at most 10,000 of them, else t. With `repeats` t alone.
    allow_different_signatures
        Compare numbers that were made in different ways.
    published_statistics
        Return the statistics of the public guest_simulation code beside the others.
    alpha
        The two-sided level of significance, above 0 and below 1. Intervals are of 95 %.
    samples, seed
        The number of bootstrap samples of places, and the seed of all draws.
    judge
        A file with a judge's scores for each run, a row a dialogue: they are compared as metrics of
        a table ``judge`` of their own.
    judge_columns, judge_scale
        Names of more columns of those files with scores; the smallest and largest score.

    Returns
    -------
    Comparison
        The differences, the sides, and a ranking of three systems or more.

    Raises
    ------
    UsageError
        An alpha out of its range, runs of different suites, signatures or judges, nothing to
        compare or to pair, an id of several conversations, a judge's file that judges none of a
        run's dialogues, or an unknown name.
    InputError
        A judge's file cannot be read.
    RunError
        A run is not complete, or its tables lack a metric.

    Examples
    --------
    >>> found = fastscore.compare("run", by="miner_uid", metrics=["average_U_best_early"])
    >>> found.differences.select("a", "b", "difference", "p_holm").head(3)
    """
    opened = _opened(runs, alpha, test)
    if repeats is not None and test == "permutation":
        raise UsageError(
            "Permutations of dialogues leave out the variance between repeats, so their p-values "
            "are too small for new repeats.",
            "Use test t with repeats.",
        )
    files = (judge,) if isinstance(judge, str | PathLike) else tuple(judge)
    judged = judge_runs(opened, files, judge_columns, judge_scale) if files else []
    judge_metrics = judged[0].judge_metrics if judged else ()
    selection = Selection.of(by, levels, pair_by, cluster, repeats, n_runs=len(opened))
    differing = check_signatures(opened, allow=allow_different_signatures)
    notes = [f"signatures differ: {difference}" for difference in differing]
    notes += check_judges(judged, allow=allow_different_signatures)
    opened = [*judged] or opened
    chosen = choose_metrics(opened, tables, metrics, judge_metrics)
    for run in opened:
        notes += check_repeated_dialogues(run, selection, may_mix=pair_by is not None)
    how = Inference(
        test=test,
        alpha=alpha,
        seed=seed,
        samples=samples,
        has_repeats=repeats is not None,
        by_definition=_defined_by_level(opened, chosen, selection, notes),
    )
    found, few = _Rows(), dict[str, list[str | None]]()
    names = list(dict.fromkeys(metric.table for metric in chosen))
    for table in names:
        of_table = [metric for metric in chosen if metric.table == table]
        levelled = [_levels_of(run, of_table, selection, notes) for run in opened]
        if len(opened) == 1 and len(levelled[0]) < 2:
            few[table] = list(levelled[0])
            continue
        groups = _groups(opened, levelled, selection, notes)
        if unpaired and cluster is None:
            groups = [list(map(_independent, sides, range(len(sides)))) for sides in groups]
        _add_differences(found, groups, of_table, how, selection, notes, unpaired=unpaired)
        _add_sides(found, groups, of_table, how, notes, published=published_statistics)
    notes += _refuse_few_levels(few, selection, is_all=len(few) == len(names))
    decided, more = decide(pl.DataFrame(found.differences, DIFFERENCES_SCHEMA), chosen, alpha)
    return Comparison(
        suite=opened[0].manifest.suite,
        sides=pl.DataFrame(found.sides, SIDES_SCHEMA),
        differences=decided,
        ranking=_ranking(found, decided, how),
        notes=tuple(dict.fromkeys([*notes, *more])),
        differing=tuple(differing),
        unit=cluster or selection.key,
        alpha=alpha,
        metrics=tuple(chosen),
        published=pl.DataFrame(found.published, PUBLISHED_SCHEMA),
        repeats=pl.DataFrame(found.repeats, REPEATS_SCHEMA),
        pass_k=pl.DataFrame(found.pass_k, PASS_SCHEMA),
    )


def _defined_by_level(
    runs: Sequence[Run], metrics: Sequence[Metric], selection: Selection, notes: list[str]
) -> frozenset[str]:
    """Return the metrics that differ between the levels by definition: no test is made of them."""
    if len(runs) > 1 or selection.by is None:
        return frozenset()
    found = [metric.id for metric in metrics if metric.scale_by == selection.by]
    if found:
        notes.append(
            f"{', '.join(found)}: not tested, because the definition depends on {selection.by}"
        )
    return frozenset(found)


def _opened(runs: Sequence[Run | str | PathLike[str]], alpha: float, test: str) -> list[Run]:
    """Open the runs; refuse settings that no comparison can have, and runs of several suites."""
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"Alpha is {alpha}, expected a number above 0 and below 1.")
    if test not in TESTS:
        raise UsageError(f"The test is {test!r}, expected one of {', '.join(TESTS)}.")
    if not runs:
        raise UsageError("No run is given.", "Name two runs, or one and a column to compare by.")
    opened = as_runs(runs)
    require_one_suite(opened)
    return opened


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a comparison's tables, as they are found, and the sides of every table."""

    differences: list[dict[str, Any]] = field(default_factory=list)
    sides: list[dict[str, Any]] = field(default_factory=list)
    published: list[dict[str, Any]] = field(default_factory=list)
    repeats: list[dict[str, Any]] = field(default_factory=list)
    pass_k: list[dict[str, Any]] = field(default_factory=list)
    groups: list[tuple[Sequence[Metric], Sequence[Side]]] = field(default_factory=list)


def _add_differences(
    found: _Rows,
    groups: Sequence[Sequence[Side]],
    metrics: Sequence[Metric],
    how: Inference,
    selection: Selection,
    notes: list[str],
    *,
    unpaired: bool,
) -> None:
    """Compare the systems of each group with each other."""
    independent: list[str] = []
    for sides in groups:
        for a, b in combinations(sides, 2):
            paired, more = choose_design(a, b, selection, unpaired=unpaired)
            (notes if paired else independent).extend(more)
            found.differences.extend(differences(a, b, metrics, how, paired=paired))
    if independent:
        n_others = len(independent) - 1
        verb = "is" if n_others == 1 else "are"
        others = f". So {verb} {counted(n_others, 'more pairs')}" if n_others else ""
        notes.append(independent[0] + others)


def _add_sides(
    found: _Rows,
    groups: Sequence[Sequence[Side]],
    metrics: Sequence[Metric],
    how: Inference,
    notes: list[str],
    *,
    published: bool,
) -> None:
    """Describe each side once, those of one group and metric beside each other."""
    for sides in groups:
        described = [describe_side(side, metrics) for side in sides]
        found.sides.extend(row for of_metric in zip(*described, strict=True) for row in of_metric)
        found.groups.append((metrics, sides))
        if published:
            for a, b in combinations(sides, 2):
                found.published.extend(published_differences(a, b, metrics))
        if how.has_repeats:
            values = {side.name: side.sums.values for side in sides}
            for name, rows in values.items():
                found.repeats.extend(describe_repeats(sides[0].group, name, rows, metrics))
            passes, more = describe_passes(sides[0].group, values, metrics)
            found.pass_k.extend(passes)
            notes.extend(more)


def _ranking(found: _Rows, decided: pl.DataFrame, how: Inference) -> pl.DataFrame:
    """Rank the systems of each group that has three or more."""
    rows: list[dict[str, Any]] = []
    for metrics, sides in found.groups:
        if len(sides) < LEAST_SYSTEMS:
            continue
        of_group = decided.filter(pl.col("group").eq_missing(pl.lit(sides[0].group)))
        tested = {
            (metric, a, b): verdict != ""
            for metric, a, b, verdict in of_group.select("metric", "a", "b", "verdict").rows()
        }
        ranked = [metric for metric in metrics if metric.id not in how.by_definition]
        rows.extend(rank_systems(sides, ranked, tested, how))
    return pl.DataFrame(rows, RANKING_SCHEMA)


def _levels_of(
    run: Run, metrics: Sequence[Metric], selection: Selection, notes: list[str]
) -> dict[str | None, DialogueSums]:
    """Sum a table by dialogue for each level, in the order of the levels."""
    found = sum_by_dialogue(
        run,
        metrics,
        key=selection.key,
        by=selection.by,
        cluster=selection.cluster,
        repeats=selection.repeats,
    )
    notes.extend(
        f"{run.path}: {metric.id}: {counted(found.fixed[metric.id], 'rows')} left out, in which "
        f"its definition gives the value ({_conditions(metric)})"
        for metric in metrics
        if metric.id in found.fixed
    )
    values = _named(run, found.values, metrics[0].table, selection, notes)
    nulls = found.nulls.with_columns(pl.col(LABEL).cast(pl.String))
    levels = values[LABEL].unique(maintain_order=True).to_list()
    if levels and selection.levels:
        for level in selection.levels:
            if level not in levels:
                advice = did_you_mean(level, levels)
                raise UsageError(f"{run.path}: no {selection.by} is {level!r}.", advice)
        levels = list(selection.levels)
    if len(levels) > MOST_LEVELS:
        raise UsageError(
            f"{run.path}: {selection.by!r} has {len(levels):,} values, expected at most "
            f"{MOST_LEVELS}.",
            f"Choose some with {parameter('levels')}.",
        )
    return {
        level: DialogueSums(
            values.filter(pl.col(LABEL).eq_missing(level)),
            nulls.filter(pl.col(LABEL).eq_missing(level)),
        )
        for level in levels
    }


def _conditions(metric: Metric) -> str:
    return " or ".join(f"{column} = {str(value).lower()}" for column, value in metric.fixed_where)


def _named(
    run: Run, values: pl.DataFrame, table: str, selection: Selection, notes: list[str]
) -> pl.DataFrame:
    """Keep the rows that have a label, a name, a cluster and a repeat; note how many have none."""
    for column, name in (
        (LABEL, selection.by),
        (KEY, selection.key),
        (CLUSTER, selection.cluster),
        (REPEAT, selection.repeats),
    ):
        if name is None:
            continue
        lacking = values[column].null_count()
        if lacking:
            notes.append(
                f"{run.path}: {counted(lacking, 'dialogues')} of {table} without {name} left out"
            )
        values = values.drop_nulls(column)
    values = values.with_columns(pl.col(LABEL, CLUSTER, REPEAT).cast(pl.String))
    if selection.pattern is None:
        return values
    named = values.with_columns(pl.col(KEY).str.extract(selection.pattern, 1))
    unmatched = named[KEY].null_count()
    if unmatched == named.height and named.height:
        raise UsageError(
            f"{run.path}: the pattern {selection.pattern!r} matches no dialogue id, such as "
            f"{values[KEY][0]!r}.",
            "Its one group must match what paired dialogues have in common.",
        )
    if unmatched:
        notes.append(
            f"{run.path}: {counted(unmatched, 'dialogues')} of {table} left out, whose id does not "
            f"match {selection.pattern!r}"
        )
    named = named.drop_nulls(KEY)
    return named if selection.cluster else named.with_columns(pl.col(KEY).alias(CLUSTER))


def _refuse_few_levels(
    few: Mapping[str, Sequence[str | None]], selection: Selection, *, is_all: bool
) -> list[str]:
    """Note the tables with fewer than two levels; refuse a comparison if all have."""
    found = dict.fromkeys(repr(level) for levels in few.values() for level in levels)
    if is_all:
        raise UsageError(
            f"Levels of {selection.by!r}: {', '.join(found) or 'none'}; expected two or more to "
            "compare."
        )
    return [
        f"table {table} is left out: it has {counted(len(levels), 'levels')} of {selection.by}"
        for table, levels in few.items()
    ]


def _independent(side: Side, place: int) -> Side:
    """Return a side whose dialogues and units are no other side's, whatever their ids."""
    own = pl.format("{}/{}", pl.lit(place), pl.col(KEY, CLUSTER).cast(pl.String)).name.keep()
    return replace(side, sums=replace(side.sums, values=side.sums.values.with_columns(own)))


def _groups(
    runs: Sequence[Run],
    levelled: Sequence[Mapping[str | None, DialogueSums]],
    selection: Selection,
    notes: list[str],
) -> list[list[Side]]:
    """Return the systems that are compared with each other, group by group."""
    if len(runs) == 1:
        return [[Side(None, str(name), sums) for name, sums in levelled[0].items()]]
    names = [str(run.path) for run in runs]
    groups = []
    for level in dict.fromkeys(level for of_run in levelled for level in of_run):
        having = [place for place, of_run in enumerate(levelled) if level in of_run]
        lacking = [name for place, name in enumerate(names) if place not in having]
        notes.extend(f"{name} has no level {level!r}" for name in lacking)
        if len(having) >= 2:
            groups.append([Side(level, names[place], levelled[place][level]) for place in having])
    return groups
