"""Comparing two runs, or the levels of one: differences, intervals, effect sizes and tests.

A mean is that over a metric's rows, as the summary prints it. Its interval comes from resampling
whole dialogues; tests and effect sizes take one value a dialogue, the mean of its rows, because
rows of one dialogue are not independent. Differences are those of the second side from the first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike, fspath
from typing import Any

import polars as pl

from fastscore.errors import UsageError, counted, nearest
from fastscore.results.dialogue_sums import (
    KEY,
    LABEL,
    LABEL_TABLE,
    DialogueSums,
    repeated_dialogues,
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
from fastscore.suites.declarations import NULL_REASONS, Metric
from fastscore.suites.registry import load_suite

MOST_LEVELS = 20
ALPHA = 0.05

SIDES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "side": pl.String(),
    "metric": pl.String(),
    "n": pl.Int64(),
    "n_null": pl.Int64(),
    **{f"n_{reason}": pl.Int64() for reason in NULL_REASONS},
    "mean": pl.Float64(),
    "n_dialogues": pl.Int64(),
    "dialogue_mean": pl.Float64(),
    "t_low": pl.Float64(),
    "t_high": pl.Float64(),
    "normal_low": pl.Float64(),
    "normal_high": pl.Float64(),
}
"""One row a group, side and metric: rows with and without a value and their mean; dialogues with a
value, the mean of their means and its 95 % intervals (t, and 1.96 standard errors)."""

DIFFERENCES_SCHEMA: dict[str, pl.DataType] = {
    "group": pl.String(),
    "a": pl.String(),
    "b": pl.String(),
    "metric": pl.String(),
    "design": pl.Enum(["paired", "independent"]),
    "n_a": pl.Int64(),
    "n_b": pl.Int64(),
    "mean_a": pl.Float64(),
    "mean_b": pl.Float64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "effect": pl.Float64(),
    "effect_unsigned": pl.Float64(),
    "alpha": pl.Float64(),
    "t": pl.Float64(),
    "degrees_of_freedom": pl.Float64(),
    "t_p": pl.Float64(),
    "t_p_holm": pl.Float64(),
    "t_significant": pl.Boolean(),
    "rank": pl.Float64(),
    "rank_p": pl.Float64(),
    "rank_p_holm": pl.Float64(),
    "rank_significant": pl.Boolean(),
    "reason": pl.String(),
}
"""One row a group, pair of sides, metric and design. ``n_a`` and ``n_b`` count dialogues with a
value (in the paired design the pairs, twice); ``low`` and ``high`` bound the difference of means.
``effect`` is Cohen's d_z of pairs or d of independent samples, ``effect_unsigned`` the same without
its sign; ``t`` is the paired or Welch's test (published statistics: Student's), ``rank`` Wilcoxon's
signed ranks or Mann and Whitney's U; ``_holm`` corrects over all rows of one design, and is
``_significant`` below ``alpha``. ``reason`` says why a number is null."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` found.

    Parameters
    ----------
    suite
        The suite of the runs.
    sides
        In `SIDES_SCHEMA`.
    differences
        In `DIFFERENCES_SCHEMA`.
    notes
        What a reader must know: other signatures, dialogues of several rows, and those without a
        partner or a label.
    published_statistics
        Whether independent samples went by Student's t and variances over n.
    alpha
        The level below which a corrected p-value is significant.
    judge_metrics
        The judge's scores among the metrics.
    """

    suite: str
    sides: pl.DataFrame
    differences: pl.DataFrame
    notes: tuple[str, ...]
    published_statistics: bool = False
    alpha: float = ALPHA
    judge_metrics: tuple[Metric, ...] = ()

    def __repr__(self) -> str:
        from fastscore.results.show_comparison import headline

        return f"Comparison of {self.suite}: {headline(self)}"

    def _repr_html_(self) -> str:
        """Show the differences as a small table, in a notebook."""
        from fastscore.results.show_comparison import comparison_html

        return comparison_html(self)


@dataclass(frozen=True, slots=True)
class _Selection:
    """Which column names dialogues, which their levels, and which of these count."""

    key: str
    by: str | None
    levels: tuple[str, ...]


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
    _of_one_suite(runs)
    files = (judge,) if isinstance(judge, str | PathLike) else tuple(judge)
    judged = judge_runs(runs, files, judge_columns, judge_scale) if files else []
    runs = [*judged] or runs
    judge_metrics = judged[0].judge_metrics if judged else ()
    chosen = _choose_metrics(runs, tables, metrics, judge_metrics)
    selection = _Selection(key=pair_by or KEY, by=by, levels=tuple(levels))
    resampling = Resampling(samples, seed)
    if levels and by is None:
        raise UsageError("Levels are values of a column.", "Name the column with --by.")
    if b is None and by is None:
        raise UsageError("One run has nothing to be compared with.", "Name levels with --by.")
    notes = (
        []
        if second is None
        else _differing_signatures(first, second, allow=allow_different_signatures)
    )
    notes += _differing_judges(judged, allow=allow_different_signatures)
    for run in runs:
        notes += _several_rows(run, selection, may_mix=pair_by is not None)
    described: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for table in dict.fromkeys(metric.table for metric in chosen):
        of_table = [metric for metric in chosen if metric.table == table]
        ids = [metric.id for metric in of_table]
        levelled = [_levels_of(run, of_table, selection, notes) for run in runs]
        pairs = _run_pairs(runs, levelled, notes) if b else _level_pairs(levelled[0], by)
        described += _describe(pairs, ids, published=published_statistics)
        if not unpaired:
            notes += _without_partner(pairs, by=by, must_pair=b is not None)
        for one, other in pairs:
            if not unpaired:
                rows += paired_differences(one, other, ids, resampling)
            if unpaired or b is None:
                rows += independent_differences(
                    one, other, ids, resampling, published=published_statistics
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


def _opened(run: Run | str | PathLike[str]) -> Run:
    return run if isinstance(run, Run) else open_run(fspath(run))


def _choose_metrics(
    runs: Sequence[Run], tables: Sequence[str], ids: Sequence[str], judged: Sequence[Metric]
) -> list[Metric]:
    """Choose the metrics that are named, else a judge's and those that a run summarises."""
    suite = runs[0].manifest.suite
    declared = (*load_suite(suite).metrics, *judged)
    for kind, names, known in (
        ("table", tables, [metric.table for metric in declared]),
        ("metric", ids, [metric.id for metric in declared]),
    ):
        for name in names:
            if name not in known:
                message = f"Suite {suite!r} has no {kind} {name!r} with numbers."
                raise UsageError(message, nearest(name, set(known)))
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


def _of_one_suite(runs: Sequence[Run]) -> None:
    a, b = runs[0], runs[-1]
    if a.manifest.suite != b.manifest.suite:
        raise UsageError(
            f"{a.path} is a run of {a.manifest.suite}, {b.path} one of {b.manifest.suite}; "
            "numbers of different suites do not compare."
        )


def _differing_signatures(a: Run, b: Run, *, allow: bool) -> list[str]:
    """Say what differs between two signatures; refuse that unless it is allowed."""
    first, second = (
        dict(part.partition("=")[::2] for part in run.signature.split("|")) for run in (a, b)
    )
    differing = [
        f"{name} is {first.get(name, 'not there')} in {a.path} and "
        f"{second.get(name, 'not there')} in {b.path}"
        for name in dict.fromkeys([*first, *second])
        if first.get(name) != second.get(name)
    ]
    if differing and not allow:
        raise UsageError(
            "The runs have different signatures: " + "; ".join(differing) + ".",
            "Score both alike, or compare them all the same with --allow-different-signatures.",
        )
    return [f"signatures differ: {difference}" for difference in differing]


def _differing_judges(runs: Sequence[JudgedRun], *, allow: bool) -> list[str]:
    """Say what judges' files refuse, and who judged where that is not one and the same."""
    notes = [note for run in runs for note in run.notes]
    judges = dict.fromkeys(judge for run in runs for judge in run.judges)
    if len(judges) > 1:
        if not allow:
            raise UsageError(
                f"Several judges' scores: {', '.join(judges)}.",
                "Have all judged alike, or compare them all the same with "
                "--allow-different-signatures.",
            )
        notes.append(f"judges differ: {', '.join(judges)}")
    return notes


def _several_rows(run: Run, selection: _Selection, *, may_mix: bool) -> list[str]:
    """Say how many dialogues have several rows; refuse to mix conversations unless it is asked."""
    found = repeated_dialogues(run, key=selection.key, by=selection.by, levels=selection.levels)
    if not found.dialogues:
        return []
    if found.mixed and not may_mix:
        label, (dialogue, least, largest) = next(iter(found.mixed.items()))
        apart = (
            f"Compare each {label} by itself (`fastscore compare` with --by {label})"
            if selection.by is None
            else "Name a column that tells them apart with --pair-by, such as file"
        )
        raise UsageError(
            f"{run.path}: dialogue {dialogue!r} stands for several conversations: {label} is "
            f"{least!r} in one and {largest!r} in another.",
            f"{apart}, or ask for the mean of all that share an id with --pair-by {KEY}.",
        )
    return [
        f"{run.path}: {counted(len(found.dialogues), 'values')} of {selection.key} (such as "
        f"{found.dialogues[0]!r}) with several rows of {LABEL_TABLE} each, counted once by the "
        "mean of these rows"
    ]


def _levels_of(
    run: Run, metrics: Sequence[Metric], selection: _Selection, notes: list[str]
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


def _without_partner(
    pairs: Sequence[tuple[Side, Side]], *, by: str | None, must_pair: bool
) -> list[str]:
    """Say how many dialogues are not paired; refuse sides that share none if they must."""
    partners = [a.sums.values[KEY].is_in(b.sums.values[KEY].implode()).sum() for a, b in pairs]
    if not must_pair and not any(partners):
        one, other = pairs[0]
        return [
            f"no dialogue stands at two values of {by} ({one.name} has {_example(one)}, "
            f"{other.name} {_example(other)}), so that all are independent samples; --pair-by "
            "names a column that they share"
        ]
    notes = []
    for (a, b), paired in zip(pairs, partners, strict=True):
        if must_pair and not paired:
            raise UsageError(
                f"No dialogue of {a.name} (such as {_example(a)}) is in {b.name} "
                f"(such as {_example(b)}).",
                "Name the column that both share with --pair-by, or compare independent samples "
                "with --unpaired.",
            )
        for side, other in ((a, b), (b, a)):
            alone = int(side.sums.values.height - paired)
            if alone and must_pair:
                group = "" if side.group is None else f" with {by} {side.group}"
                notes.append(
                    f"{counted(alone, 'dialogues')} of {side.name}{group} without a partner"
                )
            elif alone:
                alone_here = f"{counted(alone, 'dialogues')} of {by} {side.name}"
                notes.append(f"{alone_here} without a partner at {other.name}")
    return notes


def _example(side: Side) -> str:
    return repr(side.sums.values[KEY].first())


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
