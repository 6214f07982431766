"""What every dialogue adds to the means of a run's metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from fastscore.errors import RunError, UsageError, did_you_mean
from fastscore.results.runs import Run
from fastscore.suites.declarations import LABEL_TABLE, Metric
from fastscore.suites.sums import choose_grids, fixed_point
from fastscore.wording import parameter

KEY = "dialogue"
LABEL = "label"
CLUSTER = "cluster"
REPEAT = "repeat"
_PLACE = ("file", "line")


@dataclass(frozen=True, slots=True)
class DialogueSums:
    """The metrics of one table, summed by dialogue.

    Parameters
    ----------
    values
        ``label``, ``dialogue``, ``cluster`` and ``repeat``, with the sums of `sum_defined`.
    nulls
        ``label``, ``metric``, ``reason`` and ``n``: how many rows lack a value and why.
    fixed
        By metric, in how many rows its definition gives the value, whatever the dialogue
        (`Metric.fixed_where`). These rows are left out.
    """

    values: pl.DataFrame
    nulls: pl.DataFrame
    fixed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The dialogues of a run that are several rows of table ``dialogues``.

    Parameters
    ----------
    dialogues
        Their ids, ascending; one that is repeated at several labels is listed for each.
    mixed
        The columns of the summary's groups in which such rows differ; for each the first
        dialogue, the least and the largest of its values.
    """

    dialogues: tuple[str, ...]
    mixed: Mapping[str, tuple[str, str, str]]


def sum_by_dialogue(
    run: Run,
    metrics: Sequence[Metric],
    *,
    key: str = KEY,
    by: str | None = None,
    cluster: str | None = None,
    repeats: str | None = None,
) -> DialogueSums:
    """Sum metrics of one table by dialogue, and by label, cluster and repeat if they are named.

    Parameters
    ----------
    run
        A complete run.
    metrics
        Metrics of one table.
    key
        The column that names a dialogue: of that table or of ``dialogues``. Rows without a
        dialogue id count by their file and line.
    by, repeats
        A label column of that table or of ``dialogues``, and one that tells repeated runs apart;
        None leaves ``label`` or ``repeat`` null.
    cluster
        The column whose values are the units of inference; the dialogue if None.

    Raises
    ------
    UsageError
        No table has the column, or a dialogue has several values of it.
    RunError
        The table lacks a metric's column.
    """
    rows = _keyed(run, metrics[0].table, key, {LABEL: by, CLUSTER: cluster, REPEAT: repeats})
    if cluster is None:
        rows = rows.with_columns(pl.col(KEY).alias(CLUSTER))
    present = rows.collect_schema().names()
    absent = [metric.id for metric in metrics if metric.id not in present]
    if absent:
        raise RunError(
            f"{run.path}: table {metrics[0].table!r} has no column {absent[0]!r}. Version "
            f"{run.manifest.suite_version} of the suite wrote it.",
            "Score its logs again.",
        )
    nulls = (
        rows.filter(pl.col("null_reasons").list.len() > 0)
        .select(LABEL, "null_reasons")
        .explode("null_reasons")
        .unnest("null_reasons")
        .group_by(LABEL, "metric", pl.col("reason").cast(pl.String))
        .agg(pl.len().cast(pl.Int64).alias("n"))
        .filter(pl.col("metric").is_in([metric.id for metric in metrics]))
    )
    # an older run may lack a column by which values are fixed
    known = [
        replace(metric, fixed_where=tuple(one for one in metric.fixed_where if one[0] in present))
        for metric in metrics
    ]
    sums = sum_defined(rows, known, (LABEL, KEY, CLUSTER, REPEAT))
    values, listed = pl.collect_all([sums, nulls], engine="streaming")
    n_fixed = {metric.id: int(values[f"{metric.id}:left_out"].sum()) for metric in metrics}
    return DialogueSums(values, listed, {id: n for id, n in n_fixed.items() if n})


def sum_defined(rows: pl.LazyFrame, metrics: Sequence[Metric], by: Sequence[str]) -> pl.LazyFrame:
    """Sum metrics by these columns, over the rows in which their definition leaves the value open.

    Parameters
    ----------
    rows
        A table with the metrics.
    metrics
        Metrics of one table.
    by
        The columns by which rows are added up.

    Returns
    -------
    pl.LazyFrame
        The columns `by`, by which rows are ordered, and for every metric ``<id>:sum`` (exact,
        rounded once), ``<id>:n``, ``<id>:at_minimum`` and ``<id>:at_maximum`` (values at the ends
        of its range), ``<id>:fixed`` (rows whose value is fixed) and ``<id>:left_out`` (values
        among them).
    """
    grids = choose_grids(rows, metrics)
    sums = [
        sum_.alias(f"{metric.id}:{name}")
        for metric in metrics
        for name, sum_ in _sums_of(metric, grids[metric.id]).items()
    ]
    return rows.group_by(by).agg(sums).sort(by)


def _sums_of(metric: Metric, bits: int) -> dict[str, pl.Expr]:
    fixed, value = _is_fixed(metric), defined_value(metric)
    exact = pl.when(~fixed).then(fixed_point(metric.id, bits))
    ends = {"at_minimum": metric.minimum, "at_maximum": metric.maximum}
    counts = {
        "n": value.count(),
        **{name: pl.lit(0) if end is None else value.eq(end).sum() for name, end in ends.items()},
        "fixed": fixed.sum(),
        "left_out": (fixed & pl.col(metric.id).is_not_null()).sum(),
    }
    return {
        "sum": exact.sum().cast(pl.Float64) * 2.0**-bits,
        **{name: number.cast(pl.Int64) for name, number in counts.items()},
    }


def defined_value(metric: Metric) -> pl.Expr:
    """Return a metric's column, null where its definition fixes the value."""
    return pl.when(~_is_fixed(metric)).then(pl.col(metric.id))


def _is_fixed(metric: Metric) -> pl.Expr:
    return pl.any_horizontal(
        pl.lit(False),
        *(pl.col(column).eq(value).fill_null(False) for column, value in metric.fixed_where),
    )


def dialogue_keys(
    run: Run, *, table: str = LABEL_TABLE, key: str = KEY, pattern: str | None = None
) -> pl.Series:
    """Return the names of a run's dialogues, each once, ascending.

    Parameters
    ----------
    run
        A complete run.
    table
        A table that has a row of every dialogue.
    key
        As in `sum_by_dialogue`.
    pattern
        A regular expression with one group, which finds the name within the key. Dialogues that it
        does not match are left out.
    """
    name = pl.col(KEY) if pattern is None else pl.col(KEY).str.extract(pattern, 1)
    rows = _keyed(run, table, key, {}).select(name).drop_nulls()
    return rows.unique().sort(KEY).collect(engine="streaming")[KEY]


def repeated_dialogues(
    run: Run, *, key: str = KEY, by: str | None = None, levels: Sequence[str] = ()
) -> Repeats:
    """Find the dialogues that are several rows of table ``dialogues``.

    Parameters
    ----------
    run
        A complete run.
    key, by
        As in `sum_by_dialogue`; rows of different labels are never one dialogue's. Where the
        table has no such key, nothing is found.
    levels
        Only these labels; all without.
    """
    columns = run.scan(LABEL_TABLE).collect_schema().names()
    if key not in columns:
        return Repeats((), {})
    groups = label_columns(run, run.summary)
    rows = _keyed(run, LABEL_TABLE, key, {LABEL: by if by in columns else None}).drop_nulls(KEY)
    if by in columns:
        rows = rows.drop_nulls(LABEL)
    if levels:
        rows = rows.filter(pl.col(LABEL).cast(pl.String).is_in(levels))
    repeated = (
        rows.group_by(KEY, LABEL)
        .agg(
            pl.len().alias("_rows"),
            pl.col(groups).min().name.suffix(":least"),
            pl.col(groups).max().name.suffix(":largest"),
        )
        .filter(pl.col("_rows") > 1)
        .sort(KEY, LABEL)
        .collect(engine="streaming")
    )
    mixed: dict[str, tuple[str, str, str]] = {}
    for name in groups:
        differing = repeated.filter(pl.col(f"{name}:least") < pl.col(f"{name}:largest"))
        if differing.height:
            first = differing.select(KEY, f"{name}:least", f"{name}:largest").row(0)
            mixed[name] = (str(first[0]), str(first[1]), str(first[2]))
    return Repeats(tuple(repeated[KEY]), mixed)


def label_columns(run: Run, summary: pl.DataFrame) -> list[str]:
    """Return the columns of table ``dialogues`` that group a summary of a run."""
    columns = run.scan(LABEL_TABLE).collect_schema().names()
    return [name for name in summary["group"].unique(maintain_order=True) if name in columns]


def _keyed(run: Run, table: str, key: str, named: Mapping[str, str | None]) -> pl.LazyFrame:
    """Put ``dialogue`` (the key) and the named columns on every row."""
    rows = _with_column(run, table, run.scan(table), key)
    keyed = rows.with_columns(pl.col(key).cast(pl.String).alias("_key"))
    if set(_PLACE) <= set(rows.collect_schema().names()):
        keyed = keyed.with_columns(pl.col("_key").fill_null(pl.format("{}:{}", *_PLACE)))
    for name, column in named.items():
        if column is not None:
            keyed = _with_column(run, table, keyed, column)
        values = pl.lit(None, dtype=pl.String) if column is None else pl.col(column)
        keyed = keyed.with_columns(values.alias(f"_{name}"))
    return keyed.with_columns(
        pl.col("_key").alias(KEY), *(pl.col(f"_{name}").alias(name) for name in named)
    )


def _with_column(run: Run, table: str, rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    """Fetch a column from ``dialogues`` where a table lacks it."""
    dtype = rows.collect_schema().get(column)
    if dtype is not None and can_label(dtype):
        return rows
    labels = run.scan(LABEL_TABLE)
    known = [name for name, dtype in labels.collect_schema().items() if can_label(dtype)]
    if column not in known:
        raise UsageError(
            f"{run.path}: no table has labels {column!r}.", did_you_mean(column, known)
        )
    found = labels.select(KEY, column).drop_nulls(KEY).unique()
    several = found.filter(pl.col(KEY).is_duplicated()).select(pl.col(KEY).min()).collect().item()
    if several is not None:
        raise UsageError(
            f"{run.path}: dialogue {several!r} has several values of {column!r}, so rows of table "
            f"{table!r} have none.",
            f"Compare the metrics of table {LABEL_TABLE!r} alone: "
            f"{parameter('tables', LABEL_TABLE)}.",
        )
    return rows.join(found, on=KEY, how="left")


def can_label(dtype: pl.DataType) -> bool:
    """Return whether values of a type can be labels."""
    return not (dtype.is_nested() or dtype.is_float())
