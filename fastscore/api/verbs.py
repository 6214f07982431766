"""The commands of the command line as functions of the same name."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.api.arguments import SuiteName
from fastscore.api.examples import Example, write_example
from fastscore.errors import UsageError, names_arguments
from fastscore.logs.inputs.layout import layout_names, layout_text
from fastscore.results.checks import Check, read_limits
from fastscore.results.checks import check as check_run
from fastscore.results.comparison import Comparison, document_grids
from fastscore.results.metric_text import find_metrics, metric_range
from fastscore.results.repeats import run_passes
from fastscore.results.report.write import write_report
from fastscore.results.runs import Run, as_run, summarise_run
from fastscore.results.show import list_runs, summary_grid
from fastscore.run.commit import place_of
from fastscore.settings.options import check_arguments
from fastscore.terminal.grids import Markup, markup

StrPath = str | os.PathLike[str]


@names_arguments
def example(suite: SuiteName, output: StrPath) -> Example:
    """Write a small example log of a suite into a folder, with its licence and other files.

    Returns
    -------
    Example
        `score` takes its ``logs``. Its ``command(run)`` scores them in a shell.

    Examples
    --------
    >>> example = fastscore.example("memory_finance", "traces")
    >>> fastscore.score(example.logs, "memory_finance")
    """
    if not isinstance(suite, str):
        raise UsageError(
            f"The suite is of type {type(suite).__name__}, expected its name.",
            'The suite comes first: fastscore.example("score_dialogue", folder).',
        )
    return write_example(suite, Path(output))


@names_arguments
def summary(
    run: Run | StrPath, *, by: str | Sequence[str] = (), cluster: str | None = None
) -> pl.DataFrame:
    """Return the summary of a run, one row for each group and metric.

    Its columns are ``mean``, the 95 % confidence interval ``ci_low`` and ``ci_high``, ``n`` and
    others. `pass_k` returns the estimates of ``fastscore summary --repeats``.

    Parameters
    ----------
    run
        A run, or its directory.
    by
        Labels of dialogues, whose values are the groups. Default: the suite's labels.
    cluster
        The column whose values are the units of intervals. Default: the suite's.

    Examples
    --------
    >>> fastscore.summary("run", by="miner_uid", cluster="dialogue_uid")
    """
    return summarise_run(as_run(run), by, cluster)


@names_arguments
def table(
    shown: Run | Comparison | StrPath,
    format: Markup = "latex",
    *,
    by: str | Sequence[str] = (),
    cluster: str | None = None,
    metrics: Sequence[str] = (),
) -> str:
    """Return a summary or a comparison as tables of a document, as ``--format latex`` prints them.

    Parameters
    ----------
    shown
        A run, its directory, or what `compare` returned.
    format
        ``latex``, with the package booktabs, or ``markdown``.
    by, cluster
        Of a run: a column for each group, and the units of the intervals.
    metrics
        Only these metrics. P-values of a comparison stay corrected over all that it compared.

    Examples
    --------
    >>> Path("table.tex").write_text(fastscore.table("run", by="miner_uid"))
    """
    check_arguments(table, locals())
    if isinstance(shown, Comparison):
        if by or cluster:
            raise UsageError(
                "by and cluster are of a run, and a comparison is given.", "Pass them to compare."
            )
        return markup(document_grids(shown, metrics), format)
    return markup([summary_grid(as_run(shown), by, cluster, metrics)], format)


@names_arguments
def pass_k(
    run: Run | StrPath,
    repeats: str | None = None,
    *,
    task: str | None = None,
    by: str | None = None,
    metrics: Sequence[str] = (),
) -> pl.DataFrame:
    """Return pass^k: how often k independent repeats of a task all pass.

    Of a task with n repeats, c of which pass, C(c, k) / C(n, k) estimates it without bias.

    Parameters
    ----------
    run
        A run, or its directory.
    repeats
        The column that tells repeats of a task apart, such as the trial. Default: the suite's.
    task
        Columns of the tasks, separated by commas: also units. Default: the suite's pairs and units.
    by
        A label column whose values are estimated by themselves.
    metrics
        Only these. Default: all whose values are 0 and 1, one for each task and repeat.

    Returns
    -------
    pl.DataFrame
        One row for each metric, value of `by` and k, with ``pass_k``, ``low`` and ``high``. k ends
        at the smallest number of repeats that a task has.

    Raises
    ------
    UsageError
        The column is unknown, no column is named, or no metric has several repeats of a task.

    Examples
    --------
    >>> @fastscore.suite(
    ...     columns={"task": str, "trial": int, "reward": float},
    ...     dialogue=("task", "trial"),
    ...     metrics={"passed": {"range": (0, 1), "better": "higher"}},
    ... )
    ... def tasks(rows: pl.LazyFrame) -> pl.LazyFrame:
    ...     '''Whether a task is solved.'''
    ...     return rows.group_by("dialogue_row").agg(passed=pl.col("reward").max() >= 1)
    >>> rewards = [{"task": "a", "trial": k, "reward": float(k > 0)} for k in range(4)]
    >>> found = fastscore.pass_k(fastscore.score(rewards, tasks), "trial", task="task")
    >>> found["pass_k"].to_list()
    [0.75, 0.5, 0.25, 0.0]
    """
    return run_passes(as_run(run), repeats, task=task, by=by, metrics=metrics)[0]


@names_arguments
def check(
    run: Run | StrPath,
    *,
    minimum: Mapping[str, float] | None = None,
    maximum: Mapping[str, float] | None = None,
    max_null: Mapping[str, float] | None = None,
    max_rejects: float | None = None,
    against: Run | StrPath | None = None,
    max_drop: Mapping[str, float] | None = None,
    no_worse: Mapping[str, float] | None = None,
    equal_within: Mapping[str, float] | None = None,
    max_missing: float | None = None,
    pair_by: str | None = None,
    unpaired: bool = False,
    cluster: str | None = None,
    fail_undecided: bool = False,
    allow_different_signatures: bool = False,
) -> list[Check]:
    """Check whether a run keeps to limits.

    Parameters
    ----------
    run
        A run, or its directory.
    minimum, maximum
        The smallest and the largest mean by metric: ``{"cas": 0.4}``.
    max_null
        The largest share of null rows by metric.
    max_rejects
        The largest share of rejected lines.
    against
        The run to compare with.
    max_drop
        By metric, how much worse than in that run the mean may be, by a test.
    no_worse, equal_within
        By metric, the margin within which the mean must be shown to be no worse, or equal.
    max_missing
        Maximum number of dialogues of that run that are missing or null: a share, or a count.
    pair_by, unpaired, cluster, allow_different_signatures
        As in `compare`.
    fail_undecided
        Whether an undecided check fails.

    Returns
    -------
    list of Check
        One for each limit, with its ``outcome``: ``"passed"``, ``"failed"`` or ``"undecided"``.

    Raises
    ------
    UsageError
        Nothing to check, an unknown metric, or runs that do not compare.

    Examples
    --------
    >>> fastscore.check("run", minimum={"average_U_best_early": 0.1})[0].outcome
    'passed'
    """
    check_arguments(check, locals())
    opened = as_run(run)
    differences = {"max_drop": max_drop, "no_worse": no_worse, "equal_within": equal_within}
    by_metric = {"min": minimum, "max": maximum, "max_null": max_null, **differences}
    given = {name: dict(limits) for name, limits in by_metric.items() if limits}
    bounds = {"max_rejects": max_rejects, "max_missing": max_missing}
    limits = read_limits(
        opened.manifest.suite, {**given, **bounds, "fail_undecided": fail_undecided}
    )
    return check_run(
        opened,
        limits,
        None if against is None else as_run(against),
        pair_by=pair_by,
        unpaired=unpaired,
        cluster=cluster,
        different_signatures=allow_different_signatures,
    )


@names_arguments
def report(
    *runs: Run | StrPath,
    output: StrPath = "report.html",
    pair_by: str | None = None,
    unpaired: bool = False,
    cluster: str | None = None,
    texts: bool = True,
) -> Path:
    """Write one self-contained page about a run, or about several of a suite side by side.

    This needs the extra `plots`.

    Parameters
    ----------
    *runs
        Runs or run directories. The others are compared with the first.
    output
        The HTML file, a name that ends in ``.html``.
    pair_by, unpaired, cluster
        As in `compare`.
    texts
        False leaves texts of the logs out of the page.

    Returns
    -------
    Path
        The file. If it lacks the texts of dialogues, there is a `LogsWarning`.

    Examples
    --------
    >>> fastscore.report("run", output="report.html")
    """
    design: dict[str, Any] = {"pair_by": pair_by, "unpaired": unpaired, "cluster": cluster}
    return write_report(runs, output, texts=texts, **design)


@names_arguments
def metrics(*names: str) -> pl.DataFrame:
    """List the metrics of all installed suites, or those that are named, one row for each metric.

    Parameters
    ----------
    names
        Suites and metrics, as in ``metrics("group_travel")`` and ``metrics("M5")``.

    Raises
    ------
    UsageError
        A name that is neither a suite nor a metric.

    Examples
    --------
    >>> fastscore.metrics("M5").select("name", "range", "formula")
    """
    for name in names:
        if not isinstance(name, str):
            raise UsageError(
                f"A name is of type {type(name).__name__}; expected suites and metrics.",
                'For example: fastscore.metrics("group_travel").',
            )
    rows = [
        {
            "suite": suite.name,
            "metric": one.id,
            "name": one.name,
            "table": one.table,
            "headline": one.role == "headline",
            "better": one.scale.better,
            "range": metric_range(one),
            "formula": one.formula.text,
            "null_rule": one.null_rule,
            "source": one.source,
            "papers": "\n".join(suite.papers),
        }
        for suite in find_metrics(names)
        for one in suite.metrics
    ]
    return pl.DataFrame(rows)


@names_arguments
def layouts() -> dict[str, str]:
    """Return the layouts of other tools' logs by name, each as its TOML file.

    Examples
    --------
    >>> "openai" in fastscore.layouts()
    True
    """
    return {name: layout_text((name,), as_file=True) for name in layout_names()}


@names_arguments
def runs(folder: StrPath = ".") -> pl.DataFrame:
    """List the runs in a folder and below: suite, options, rows, headline metrics and age.

    Examples
    --------
    >>> fastscore.runs(".").select("run", "suite", "rows")
    """
    return list_runs(place_of(folder))
