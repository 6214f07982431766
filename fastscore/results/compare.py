"""Comparing two runs, or the levels of one: differences, intervals, effect sizes and tests.

A mean is that over a metric's rows, as the summary prints it. Its interval comes from resampling
whole dialogues; tests and effect sizes take one value a dialogue, the mean of its rows, because
rows of one dialogue are not independent. Differences are those of the second side from the first.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from os import PathLike, fspath
from typing import Any

import polars as pl

from fastscore.errors import UsageError, counted, nearest
from fastscore.results.comparable import (
    Selection,
    check_judges,
    check_pairs,
    check_repeated_dialogues,
    check_signatures,
    choose_metrics,
    require_one_suite,
)
from fastscore.results.comparison import ALPHA, DIFFERENCES_SCHEMA, SIDES_SCHEMA, Comparison
from fastscore.results.dialogue_sums import (
    KEY,
    LABEL,
    DialogueSums,
    sum_by_dialogue,
)
from fastscore.results.differences import (
    Resampling,
    Side,
    describe_side,
    independent_differences,
    paired_differences,
)
from fastscore.results.judged_runs import JudgedRun, judge_runs
from fastscore.results.runs import Run, open_run
from fastscore.statistics.bootstrap import SAMPLES, SEED
from fastscore.statistics.significance import holm
from fastscore.suites.declarations import Metric

MOST_LEVELS = 20


def compare(
    a: Run | str | PathLike[str],
    b: Run | str | PathLike[str] | None = None,
    *,
    by: str | None = None,
    levels: Sequence[str] = (),
    tables: Sequence[str] = (),
    metrics: Sequence[str] = (),
    pair_by: str | None = None,
    unpaired: bool = False,
    allow_different_signatures: bool = False,
    published_statistics: bool = False,
    alpha: float = ALPHA,
    samples: int = SAMPLES,
    seed: int = SEED,
    judge: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    judge_columns: Sequence[str] = (),
    judge_scale: tuple[float, float] = (1.0, 5.0),
) -> Comparison:
    """Compare two runs of a suite, or the levels of one run.

    Parameters
    ----------
    a, b
        Two runs: dialogues of one id are pairs. Without `b` the levels of `a` are compared, each
        with each, as independent samples, and as pairs where a dialogue id stands at both levels.
    by
        A label column: with two runs each of its values is compared by itself; with one run its
        values are the levels.
    levels
        Only these values of `by`, in this order; without, all in ascending order.
    tables, metrics
        Only the metrics of these tables, only these metrics; all without.
    pair_by
        The column that names what is paired and resampled. Without, that is ``dialogue``, and
        an id that stands for conversations of different labels is refused; where it is named,
        the mean of all rows of one value counts, and a note says how many have several.
    unpaired
        Compare as independent samples only.
    allow_different_signatures
        Compare numbers that were made in different ways.
    published_statistics
        Independent samples by Student's t instead of Welch's, and variances over n in Cohen's d
        and the normal interval, as the public guest_simulation code has them.
    alpha
        The two-sided level of significance, above 0 and below 1: a corrected p-value below it is
        significant. Intervals are of 95 % all the same.
    samples, seed
        How many bootstrap samples, and the seed of their draws.
    judge
        A file with a judge's scores for each run, a row a dialogue: they are compared as metrics of
        a table ``judge`` of their own.
    judge_columns, judge_scale
        Names of more columns of those files that hold scores; the smallest and largest score.

    Raises
    ------
    UsageError
        An alpha out of its range, runs of different suites, signatures or judges, nothing to
        compare or to pair, an id that stands for different conversations, a judge's file that
        judges none of a run's dialogues, or an unknown name.
    InputError
        A judge's file cannot be read.
    RunError
        A run is not complete, or its tables lack a metric.
    """
    if not 0.0 < alpha < 1.0:
        raise UsageError(f"Alpha is {alpha}, expected a number above 0 and below 1.")
    first = _opened(a)
    second = None if b is None else _opened(b)
    runs = [first] if second is None else [first, second]
    require_one_suite(runs)
    files = (judge,) if isinstance(judge, str | PathLike) else tuple(judge)
    judged = judge_runs(runs, files, judge_columns, judge_scale) if files else []
    runs = [*judged] or runs
    judge_metrics = judged[0].judge_metrics if judged else ()
    chosen = choose_metrics(runs, tables, metrics, judge_metrics)
    selection = _selected(by, levels, pair_by, has_two=second is not None)
    notes = _differing(first, second, judged, allow=allow_different_signatures)
    for run in runs:
        notes += check_repeated_dialogues(run, selection, may_mix=pair_by is not None)
    described, rows = _compare_tables(
        runs,
        chosen,
        selection,
        Resampling(samples, seed),
        notes,
        unpaired=unpaired,
        published=published_statistics,
    )
    return Comparison(
        suite=first.manifest.suite,
        sides=pl.DataFrame(described, schema=SIDES_SCHEMA, orient="row"),
        differences=_corrected(rows, alpha),
        notes=tuple(dict.fromkeys(notes)),
        published_statistics=published_statistics,
        alpha=alpha,
        judge_metrics=judge_metrics,
    )


def _selected(
    by: str | None, levels: Sequence[str], pair_by: str | None, *, has_two: bool
) -> Selection:
    """Say which rows are compared; refuse levels of no column, and a run without any."""
    if levels and by is None:
        raise UsageError("Levels are values of a column.", "Name the column with --by.")
    if not has_two and by is None:
        raise UsageError("One run has nothing to be compared with.", "Name levels with --by.")
    return Selection(key=pair_by or KEY, by=by, levels=tuple(levels))


def _differing(
    first: Run, second: Run | None, judged: Sequence[JudgedRun], *, allow: bool
) -> list[str]:
    """Say in what ways runs were scored and judged otherwise; refuse that unless it is allowed."""
    notes = [] if second is None else check_signatures(first, second, allow=allow)
    return notes + check_judges(judged, allow=allow)


def _compare_tables(
    runs: Sequence[Run],
    metrics: Sequence[Metric],
    selection: Selection,
    resampling: Resampling,
    notes: list[str],
    *,
    unpaired: bool,
    published: bool,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of `SIDES_SCHEMA` and of `DIFFERENCES_SCHEMA`, and add to the notes."""
    has_two = len(runs) == 2
    described: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for of_table in _by_table(metrics):
        ids = [metric.id for metric in of_table]
        levelled = [_levels_of(run, of_table, selection, notes) for run in runs]
        pairs = (
            _run_pairs(runs, levelled, notes)
            if has_two
            else _level_pairs(levelled[0], selection.by)
        )
        described += _describe(pairs, ids, published=published)
        if not unpaired:
            notes += check_pairs(pairs, by=selection.by, must_pair=has_two)
            for pair in pairs:
                rows += paired_differences(*pair, ids, resampling)
        if unpaired or not has_two:
            for pair in pairs:
                rows += independent_differences(*pair, ids, resampling, published=published)
    return described, rows


def _by_table(metrics: Sequence[Metric]) -> Iterator[list[Metric]]:
    for table in dict.fromkeys(metric.table for metric in metrics):
        yield [metric for metric in metrics if metric.table == table]


def _opened(run: Run | str | PathLike[str]) -> Run:
    return run if isinstance(run, Run) else open_run(fspath(run))


def _levels_of(
    run: Run, metrics: Sequence[Metric], selection: Selection, notes: list[str]
) -> dict[str | None, DialogueSums]:
    """Sum a table by dialogue for each level, in the order of the levels."""
    found = sum_by_dialogue(run, metrics, key=selection.key, by=selection.by)
    table, values = metrics[0].table, found.values
    if selection.by is not None:
        unlabelled = values[LABEL].null_count()
        if unlabelled:
            notes.append(
                f"{run.path}: no {selection.by} in {counted(unlabelled, 'dialogues')} of {table}"
            )
        values = values.drop_nulls(LABEL)
    unnamed = values[KEY].null_count()
    if unnamed:
        notes.append(f"{run.path}: rows of {table} without {selection.key} are left out")
    values = values.drop_nulls(KEY).with_columns(pl.col(LABEL).cast(pl.String))
    nulls = found.nulls.with_columns(pl.col(LABEL).cast(pl.String))
    levels = values[LABEL].unique(maintain_order=True).to_list()
    for level in selection.levels:
        if level not in levels:
            raise UsageError(f"{run.path}: no {selection.by} is {level!r}.", nearest(level, levels))
    levels = list(selection.levels) or levels
    if len(levels) > MOST_LEVELS:
        raise UsageError(
            f"{run.path}: {selection.by!r} has {len(levels):,} values, expected at most "
            f"{MOST_LEVELS}.",
            "Choose some with --level.",
        )
    return {
        level: DialogueSums(
            values.filter(pl.col(LABEL).eq_missing(level)),
            nulls.filter(pl.col(LABEL).eq_missing(level)),
        )
        for level in levels
    }


def _level_pairs(
    levels: Mapping[str | None, DialogueSums], by: str | None
) -> list[tuple[Side, Side]]:
    if len(levels) < 2:
        found = ", ".join(repr(level) for level in levels) or "none"
        raise UsageError(f"Levels of {by!r}: {found}; expected two or more to compare.")
    return list(combinations([Side(None, str(name), sums) for name, sums in levels.items()], 2))


def _run_pairs(
    runs: Sequence[Run], levelled: Sequence[Mapping[str | None, DialogueSums]], notes: list[str]
) -> list[tuple[Side, Side]]:
    """Match the two runs, within each level that both have."""
    first, second = levelled
    for level in first.keys() ^ second.keys():
        holder = runs[0] if level in first else runs[1]
        notes.append(f"only {holder.path} has level {level!r}")
    names = [str(run.path) for run in runs]
    return [
        (Side(level, names[0], first[level]), Side(level, names[1], second[level]))
        for level in first
        if level in second
    ]


def _describe(
    pairs: Sequence[tuple[Side, Side]], metrics: Sequence[str], *, published: bool
) -> list[dict[str, Any]]:
    """Describe every side once, those of one group and metric beside each other."""
    sides = dict.fromkeys(side for pair in pairs for side in pair)
    groups = list(dict.fromkeys(side.group for side in sides))
    rows = [row for side in sides for row in describe_side(side, metrics, published=published)]
    return sorted(rows, key=lambda row: (groups.index(row["group"]), metrics.index(row["metric"])))


def _corrected(rows: Sequence[Mapping[str, Any]], alpha: float) -> pl.DataFrame:
    """Correct the p-values of each design and kind of test, over all its rows."""
    frame = (
        pl.DataFrame(rows, schema=DIFFERENCES_SCHEMA, orient="row")
        .sort("design", maintain_order=True)
        .with_columns(pl.col("effect").abs().alias("effect_unsigned"), alpha=alpha)
    )
    parts = [
        part.with_columns(
            pl.Series(f"{test}_p_holm", holm(part[f"{test}_p"].to_list()), pl.Float64)
            for test in ("t", "rank")
        )
        for part in frame.partition_by("design", maintain_order=True)
    ]
    return pl.concat([frame.clear(), *parts]).with_columns(
        (pl.col(f"{test}_p_holm") < alpha).alias(f"{test}_significant") for test in ("t", "rank")
    )
