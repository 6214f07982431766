"""Comparing runs, or the levels of one: which dialogues are compared with which.

`fastscore.results.differences` computes, `fastscore.results.comparison` declares and shows.
`check`, `report` and findings choose among the numbers of one comparison.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import polars as pl

from fastscore.errors import RunError, UsageError, counted, did_you_mean, names_arguments
from fastscore.logs.inputs.layout import layout_map, layout_names
from fastscore.results.agreement import JUDGE_TABLE, JudgedRun, judge_runs
from fastscore.results.comparison import Comparison
from fastscore.results.differences import (
    Inference,
    Rows,
    Side,
    add_sides,
    concluded,
    count_pairs,
    require_pairs,
)
from fastscore.results.metric_text import fixed_rows
from fastscore.results.runs import Run, as_runs, common_suite, label_of_systems
from fastscore.run.progress import OnProgress, Reporter, SilentReporter, chosen_reporter
from fastscore.run.signature import deciding_differences
from fastscore.settings.options import check_arguments
from fastscore.statistics import ALPHA
from fastscore.statistics.curves import Test
from fastscore.suites.declarations import LABEL_TABLE, Metric
from fastscore.suites.sums import (
    BETWEEN,
    Sums,
    dialogue_places,
    likely_labels,
    require_labels,
    sum_metrics,
)

MOST_LEVELS = 100


@names_arguments
def compare(
    *runs: Run | str | PathLike[str] | Mapping[str, Run | str | PathLike[str]],
    by: str | None = None,
    levels: Sequence[str | int] = (),
    metrics: Sequence[str] = (),
    pair_by: str | None = None,
    unpaired: bool = False,
    cluster: str | None = None,
    complete: bool = False,
    repeats: str | None = None,
    margin: float | None = None,
    plan: float | None = None,
    test: Test = "auto",
    allow_different_signatures: bool = False,
    published_statistics: bool = False,
    alpha: float = ALPHA,
    judge: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    judge_columns: Sequence[str] = (),
    judge_scale: tuple[float, float] | None = None,
    progress: bool | OnProgress = False,
) -> Comparison:
    """Compare runs of a suite with each other, or the levels of one run.

    Parameters
    ----------
    runs
        Two runs or more, or a dict of them by name, or one run and a column whose levels are
        compared. Dialogues that the suite's design calls a pair are paired. Levels of which fewer
        than half of the pairs have a partner are independent samples.
    by
        A label column. With several runs, each of its values is compared by itself. With one run,
        its values are the levels.
    levels
        Only these values of `by`, in this order. Default: all, in ascending order.
    metrics
        Only these metrics. Default: all.
    pair_by
        The columns, separated by commas, whose equal values are a pair, or a regular expression
        with one group, which finds the pair's name within the dialogue id. Default: the suite's.
    unpaired
        Compare all dialogues of both sides as independent samples. A `cluster` that both sides
        share still has one error for both.
    cluster
        The columns, separated by commas, whose values are the units of inference. Default: the
        suite's.
    complete
        Count only the pairs that all sides have, so that all differences have one sample.
    repeats
        The column that tells repeated runs (seeds) apart: intervals are then for new repeats too,
        and metrics that are 0 or 1 have pass^k.
    margin
        The largest difference that does not matter, in the metrics' unit: tests of "no worse" and
        "equal within the margin" are added.
    plan
        A true difference to plan for, in the metrics' unit: adds how many units, and how many
        repeats, would show it in 80 % of cases at the corrected level.
    test
        ``t``, or ``auto``: exact permutations (of signs for pairs, else of labels, by cluster) if
        there are at most 10,000 of them, else t. Proportions have exact tests. With `repeats` t
        alone.
    allow_different_signatures
        Compare numbers that were made in different ways.
    published_statistics
        Return the statistics of the public guest_simulation code beside the others.
    alpha
        The two-sided level of significance, above 0 and below 1. Intervals of differences have the
        level ``1 - alpha``.
    judge
        A file with a judge's scores for each run, a row a dialogue: they are compared as metrics of
        a table ``judge`` of their own.
    judge_columns, judge_scale
        Names of more columns of these files with scores, and the smallest and largest score.
        Default: the scale in the ``summary.json`` of a judge's folder, else 1 to 5.
    progress
        True shows on stderr how many differences are tested. A callable is called with
        ``"compare"``, the differences that are tested, and all of a table and a group.

    Returns
    -------
    Comparison
        The differences, the sides, and a ranking of three systems or more.

    Raises
    ------
    UsageError
        An argument cannot be used, or a name is unknown. Runs have different suites, signatures or
        judges. There is nothing to compare or to pair. A judge's file has none of a run's
        dialogues.
    InputError
        A judge's file cannot be read.
    RunError
        A run is not complete, or its tables lack a metric.

    Examples
    --------
    >>> found = fastscore.compare("run", by="miner_uid", metrics=["average_U_best_early"])
    >>> found.differences.select("a", "b", "difference", "p_holm").head(3)
    """
    check_arguments(compare, locals())
    if not runs:
        raise UsageError("No run is given.", "Name two runs, or one and a column to compare by.")
    names: list[str] = []
    given: Iterable[Any] = runs
    if len(runs) == 1 and isinstance(runs[0], Mapping) and runs[0]:
        names, given = [str(name) for name in runs[0]], runs[0].values()
    opened = as_runs(given, names)
    require_one_suite(opened)
    files = (judge,) if isinstance(judge, str | PathLike) else tuple(judge)
    judged = judge_runs(opened, files, judge_columns, judge_scale) if files else []
    notes = check_judges(judged, allow=allow_different_signatures)
    how = Inference.of(
        opened[0].suite.design,
        by,
        # as labels are compared: as text
        [str(level).lower() if isinstance(level, bool) else str(level) for level in levels],
        pair_by,
        cluster,
        repeats,
        unpaired,
        complete=complete,
        test=test,
        alpha=alpha,
        margin=margin,
        plan=plan,
        published=published_statistics,
    )
    return compare_runs(
        [*judged] or opened,
        choose_metrics(opened, metrics, judged[0].judge_metrics if judged else ()),
        how,
        notes=notes,
        allow_different_signatures=allow_different_signatures,
        names=names,
        reporter=chosen_reporter(progress),
    )


def compare_runs(
    runs: Sequence[Run],
    metrics: Sequence[Metric],
    how: Inference,
    *,
    notes: Sequence[str] = (),
    allow_different_signatures: bool = False,
    names: Sequence[str] = (),
    reporter: Reporter | None = None,
) -> Comparison:
    """Compare opened runs in one design: what `compare`, `check` and `report` have in common."""
    if len(runs) == 1 and how.by is None:
        labels = likely_labels(runs[0].scan(LABEL_TABLE))
        label = label_of_systems(runs[0])
        likely = f", such as {label}" if label else ""
        raise UsageError(
            "Only one run given.",
            f"Add a second run, or set by to a column with groups of this run{likely}: "
            f"{', '.join(labels)}.",
        )
    differing = check_signatures(runs, allow=allow_different_signatures)
    told = [*notes, *(f"signatures differ: {difference}" for difference in differing)]
    names, first = names or [str(run.path) for run in runs], runs[0]
    told += [
        f"{name} is the same run as {names[0]}, or a copy of it"
        for name, run in zip(names[1:], runs[1:], strict=True)
        if run.scores is first.scores and run.manifest.parts_hash == first.manifest.parts_hash
    ]
    found, few = defaultdict[str, Rows](list), dict[str, list[str]]()
    tables = list(dict.fromkeys(metric.table for metric in metrics))
    for table in tables:
        of_table = [metric for metric in metrics if metric.table == table]
        of_runs = [_summed(run, of_table, how, told) for run in runs]
        for sums in zip(*of_runs, strict=True):
            groups = _groups(runs, names, sums, how, told)
            if len(runs) == 1 and len(groups[0]) < 2:
                few[table] = [side.name for side in groups[0]]
                continue
            ids = {metric.id for metric in sums[0].metrics}
            chosen = [metric for metric in of_table if metric.id in ids]
            for sides in groups:
                add_sides(found, sides, chosen, how, told, reporter or SilentReporter())
    told = list(dict.fromkeys(told))
    places = {metric.id: (tables.index(metric.table), k) for k, metric in enumerate(metrics)}
    # metrics of merged dialogues come after the others of their table
    for name in ("differences", "sides", "omnibus"):
        _put_in_order(found[name], places)
    if len(few) == len(tables):
        of_any = dict.fromkeys(repr(level) for levels in few.values() for level in levels)
        has = f"only {', '.join(of_any)}" if of_any else "no values"
        left_out = " ".join(f"{note}." for note in told if note.endswith("left out"))
        raise UsageError(
            f"Column {how.by!r} gives {has} to compare; expected two or more.", left_out
        )
    told += [
        f"table {table} is left out: it has {counted(len(levels), 'levels')} of {how.by}"
        for table, levels in few.items()
    ]
    return concluded(found, metrics, how, runs[0].manifest.suite, told, differing)


def _put_in_order(rows: Rows, places: Mapping[str, tuple[int, int]]) -> None:
    """Sort by table, sides as they came, and the order of the metrics."""

    def sides(row: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(row.get(name) for name in ("group", "a", "b"))

    came = {one: place for place, one in enumerate(dict.fromkeys(map(sides, rows)))}
    in_table = {id: place for id, (_, place) in places.items()}
    rows.sort(key=lambda row: (places[row["metric"]][0], came[sides(row)], in_table[row["metric"]]))


def _summed(run: Run, metrics: Sequence[Metric], how: Inference, notes: list[str]) -> list[Sums]:
    """Sum a table by dialogue, metrics of merged dialogues by themselves."""
    table = metrics[0].table
    tables: Mapping[str, pl.LazyFrame] = run.lazy_tables
    present = run.scan(table).collect_schema().names()
    absent = [metric.id for metric in metrics if metric.id not in present]
    if absent:
        raise RunError(
            f"{run.path}: table {table!r} has no column {absent[0]!r}. Version "
            f"{run.manifest.suite_version} of the suite wrote it.",
            "Score its logs again.",
        )
    labels = () if how.by is None else (how.by,)
    if table == JUDGE_TABLE:  # a judge's scores are of dialogues, with their labels beside them
        tables = {LABEL_TABLE: run.scan(table)}
        metrics = [replace(metric, table=LABEL_TABLE) for metric in metrics]
    asked = (*how.design.columns, *labels)
    require_labels(tables[LABEL_TABLE], asked, str(run.path), run.suite.design.groups)
    found = sum_metrics(
        run.suite, tables, metrics, options=run.options, design=how.design, labels=labels
    )
    return [_placed(run, sums, how, notes) for sums in found]


def _placed(run: Run, sums: Sums, how: Inference, notes: list[str]) -> Sums:
    """Keep the dialogues that the design has a place for."""
    for metric in sums.metrics:
        left_out = int(sums.frame[f"{metric.id}:left_out"].sum())
        if left_out:
            notes.append(
                f"{run.path}: {metric.id}: {counted(left_out, 'rows')} left out, in which "
                f"its definition gives the value ({fixed_rows(metric)})"
            )
    for columns, n in sums.lacking.items():
        note = (
            f"{run.path}: {counted(n, 'dialogues')} without {BETWEEN.join(columns)}: each is a "
            "unit of its own, and a pair with the dialogue of its name"
        )
        notes.append(note)
    for column, name in ((how.by and f"label:{how.by}", how.by), ("repeat", how.design.repeat)):
        if not name or not column:
            continue
        lacking = sums.frame.filter(pl.col(column).is_null())["id"].n_unique()
        if lacking:
            notes.append(f"{run.path}: {counted(lacking, 'dialogues')} without {name} left out")
            sums = sums.where(pl.col(column).is_not_null())
    return replace(sums, frame=_matched(run, sums.frame, how, notes))


def _matched(run: Run, dialogues: pl.DataFrame, how: Inference, notes: list[str]) -> pl.DataFrame:
    """Name the pairs by what a pattern finds in their dialogue ids, if there is one."""
    if how.pattern is None:
        return dialogues
    pair = pl.col("pair").str.extract(how.pattern, 1)
    is_unit = how.design.unit == how.design.pair
    named = dialogues.with_columns(pair=pair, **({"unit": pair} if is_unit else {}))
    unmatched = named["pair"].null_count()
    if unmatched == named.height and named.height:
        raise UsageError(
            f"{run.path}: the pattern {how.pattern!r} matches no dialogue id, such as "
            f"{dialogues['pair'][0]!r}.",
            "Its one group must match what paired dialogues have in common.",
        )
    if unmatched:
        notes.append(
            f"{run.path}: {counted(unmatched, 'dialogues')} left out, whose id does not match "
            f"{how.pattern!r}"
        )
    return named.drop_nulls("pair")


def _groups(
    runs: Sequence[Run],
    names: Sequence[str],
    sums: Sequence[Sums],
    how: Inference,
    notes: list[str],
) -> list[list[Side]]:
    """Return the sides that are compared with each other, group by group."""
    if how.by is None:
        return [[Side(None, name, one) for name, one in zip(names, sums, strict=True)]]
    label = pl.col(f"label:{how.by}")
    levels_of = [_levels(run, one, how) for run, one in zip(runs, sums, strict=True)]
    if len(runs) == 1:
        return [[Side(None, level, sums[0].where(label == level)) for level in levels_of[0]]]
    groups = []
    for level in dict.fromkeys(level for levels in levels_of for level in levels):
        having = [place for place, levels in enumerate(levels_of) if level in levels]
        notes += [
            f"{name} has no level {level!r}" for k, name in enumerate(names) if k not in having
        ]
        if len(having) >= 2:
            groups.append([Side(level, names[k], sums[k].where(label == level)) for k in having])
    return groups


def _levels(run: Run, sums: Sums, how: Inference) -> list[str]:
    has_rows = sums.frame.filter(pl.col("rows") > 0)
    levels: list[str] = has_rows[f"label:{how.by}"].unique().sort().to_list()
    for level in how.levels:
        if levels and level not in levels:
            advice = did_you_mean(level, levels)
            raise UsageError(f"{run.path}: no {how.by} is {level!r}.", advice)
    if levels and how.levels:
        levels = list(how.levels)
    if len(levels) > MOST_LEVELS:
        raise UsageError(
            f"{run.path}: {how.by!r} has {len(levels):,} values, expected at most {MOST_LEVELS}.",
            "Choose some with levels.",
        )
    return levels


def pairs_of_runs(base: Run, run: Run, how: Inference) -> tuple[pl.DataFrame, list[str]]:
    """Count the dialogues of each pair in two runs (`count_pairs`), and note what has no pair.

    Two runs that have no pair in common are refused.
    """
    notes: list[str] = []
    frames = [
        _matched(one, dialogue_places(one.scan(LABEL_TABLE), how.design, ()), how, notes)
        for one in (base, run)
    ]
    pairs = count_pairs(frames)
    require_pairs(pairs, how, str(base.path), str(run.path))
    return pairs, notes


def choose_metrics(
    runs: Sequence[Run], ids: Sequence[str] = (), judged: Sequence[Metric] = ()
) -> list[Metric]:
    """Choose the metrics that are named, else a judge's and those that a run summarises."""
    require_one_suite(runs)
    declared = (*common_suite(runs).metrics, *judged)
    known = [metric.id for metric in declared]
    for id in ids:
        if id not in known:
            message = f"Suite {runs[0].manifest.suite!r} has no metric {id!r} to compare."
            raise UsageError(message, did_you_mean(id, known))
    if ids:
        return [metric for metric in declared if metric.id in ids]
    summarised = {name for run in runs for name in run.summary["metric"]}
    summarised.update(metric.id for metric in judged)
    return [metric for metric in declared if metric.id in summarised]


def _named_value(part: str, value: str | None, run: Run) -> str:
    """Return the value of a part of a run's signature; a layout by its name, if it has one."""
    suite, wanted = run.manifest.suite, f"layout={value}"
    names = layout_names() if part == "layout" and value else ()
    found = (name for name in names if wanted in layout_map(name, suite).signed)
    return next(found, value or "not set")


def check_signatures(runs: Sequence[Run], *, allow: bool) -> list[str]:
    """Return what differs between signatures; refuse that unless it is allowed."""
    a = runs[0]
    differing = [
        f"{each.name} is {_named_value(each.name, each.first, a)} in {a.path} and "
        f"{_named_value(each.name, each.second, b)} in {b.path}"
        for b in runs[1:]
        for each in deciding_differences(a.signature, b.signature)
    ]
    if differing and not allow:
        raise UsageError(
            "The runs have different signatures: " + "; ".join(differing) + ".",
            "Score all alike, or set allow_different_signatures to compare them all the same.",
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
                "Have all judged alike, or set allow_different_signatures "
                "to compare them all the same.",
            )
        notes.append(f"judges differ: {', '.join(judges)}")
    return notes


def require_one_suite(runs: Sequence[Run]) -> None:
    """Refuse runs of different suites."""
    a = runs[0]
    for b in runs[1:]:
        if a.manifest.suite != b.manifest.suite:
            raise UsageError(
                f"{a.path} is a run of {a.manifest.suite}, {b.path} one of {b.manifest.suite}. "
                "Numbers of different suites cannot be compared."
            )
