"""Runs with a judge's scores beside their dialogues, as one more table of metrics."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from os import PathLike, fspath
from pathlib import Path

import polars as pl

from fastscore.errors import UsageError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read.rows import read_shard
from fastscore.results.dialogue_sums import KEY, LABEL_TABLE, can_label
from fastscore.results.runs import Run
from fastscore.suites.declarations import NULL_REASONS, NULL_REASONS_DTYPE, Metric, Source
from fastscore.suites.judged import Judged, collect_judged, describe_rejects, judge_source


def read_judgements(file: str | Path, source: Source) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a judge's file.

    Parameters
    ----------
    file
        JSON Lines, JSON, CSV or Parquet, plain or compressed.
    source
        Its columns.

    Returns
    -------
    tuple of pl.DataFrame
        The rows, and the rejects in the schema of `REJECT_SCHEMA`.

    Raises
    ------
    InputError
        The file is not there or cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="fastscore-") as scratch:
        files = resolve_inputs([file], source.formats)
        plan = plan_shards(files, source, scratch=Path(scratch))
        parts = [read_shard(shard, source) for shard in plan.shards]
    rows = pl.concat([part.frame for part in parts])
    return rows, pl.concat([part.rejects for part in parts])


JUDGE_TABLE = "judge"
_PREFIX = f"{JUDGE_TABLE}."
_IDENTITY: dict[str, pl.DataType] = {
    "file": pl.String(),
    "line": pl.Int64(),
    KEY: pl.String(),
    "model": pl.String(),
}


@dataclass(frozen=True, slots=True, repr=False)
class JudgedRun(Run):
    """A run with a table ``judge``: its dialogues with the scores that a judge gave them.

    Parameters
    ----------
    judged
        A row a dialogue, in the order of table ``dialogues``: its labels, a column a metric and
        ``null_reasons``.
    judge_metrics
        The scores, as metrics of that table.
    judges
        By whom they are, where the file says so.
    notes
        What of the file was refused.
    """

    judged: pl.DataFrame = field(default_factory=pl.DataFrame)
    judge_metrics: tuple[Metric, ...] = ()
    judges: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def scan(self, name: str) -> pl.LazyFrame:
        """Scan one table; ``judge`` too."""
        return self.judged.lazy() if name == JUDGE_TABLE else Run.scan(self, name)


def judge_runs(
    runs: Sequence[Run],
    files: Sequence[str | PathLike[str]],
    columns: Sequence[str] = (),
    scale: tuple[float, float] = (1.0, 5.0),
) -> list[JudgedRun]:
    """Join judges' files to runs.

    Parameters
    ----------
    runs, files
        Complete runs, and a judge's file for each.
    columns
        Names of columns with scores, beside the rubric's.
    scale
        The smallest and largest score; others are refused.

    Returns
    -------
    list of JudgedRun
        The runs, each with the scores that any of the files has; those that a run's own file
        lacks are null: ``missing_input``, or ``bad_input`` where one was refused.

    Raises
    ------
    UsageError
        Not a file a run, an empty scale, or a file that judges no dialogue of its run.
    InputError
        A file is not there or cannot be read.
    """
    if len(files) != len(runs):
        raise UsageError(
            f"{len(files)} judge's files for {len(runs)} runs, expected one for each run.",
            "Give --judge once for each run, in their order; the same file twice if it has both.",
        )
    if not scale[0] < scale[1]:
        raise UsageError(f"--judge-range is {scale}, expected a smaller and a larger number.")
    found = [
        _joined(run, fspath(file), columns, scale) for run, file in zip(runs, files, strict=True)
    ]
    names = list(dict.fromkeys(name for _, judged in found for name in judged.names))
    metrics = tuple(_metric(name, scale) for name in names)
    return [
        _with_table(run, rows, judged, metrics)
        for run, (rows, judged) in zip(runs, found, strict=True)
    ]


def _joined(
    run: Run, file: str, columns: Sequence[str], scale: tuple[float, float]
) -> tuple[pl.DataFrame, Judged]:
    """Return the run's dialogues with their labels, and what a file says of them."""
    dialogues = run.scan(LABEL_TABLE)
    labels = [name for name, dtype in dialogues.collect_schema().items() if can_label(dtype)]
    rows = dialogues.select(labels).collect(engine="streaming")
    place = pl.format("{}:{}", "file", "line") if "line" in labels else pl.col("file")
    conversations = rows.with_row_index("conversation").select(
        "conversation",
        *(
            (pl.col(name) if name in labels else pl.lit(None)).cast(dtype).alias(name)
            for name, dtype in _IDENTITY.items()
        ),
        pl.lit(None, dtype=pl.String).alias("judge"),
    )
    conversations = conversations.with_columns(pl.col(KEY).fill_null(place))
    judged = collect_judged(
        conversations, read_judgements(Path(file), judge_source(columns)), scale, columns
    )
    if judged.scores.is_empty():
        rejected = describe_rejects(judged)
        raise UsageError(
            f"{file}: it has no score of a dialogue of {run.path}. {rejected}".rstrip(),
            "A row names its dialogue as the run does, for one "
            f"{conversations[KEY].first()!r}; --judge-column names columns with scores.",
        )
    return rows, judged


def _metric(name: str, scale: tuple[float, float]) -> Metric:
    return Metric(
        id=f"{_PREFIX}{name}",
        name=f"judge: {name}",
        table=JUDGE_TABLE,
        formula="the judge's score of the dialogue, the mean over its repeats",
        minimum=scale[0],
        maximum=scale[1],
        better="neither",
        null_rule="missing_input without a score, bad_input where it was refused",
        source="the judge's file",
        headline=True,
    )


def _with_table(
    run: Run, rows: pl.DataFrame, judged: Judged, metrics: tuple[Metric, ...]
) -> JudgedRun:
    numbers = pl.select(conversation=pl.int_range(rows.height, dtype=pl.UInt32))
    columns: list[pl.Series] = []
    reasons: list[pl.Expr] = []
    for metric in metrics:
        is_it = pl.col("judge") == metric.id.removeprefix(_PREFIX)
        scores = numbers.join(
            judged.scores.filter(is_it), on="conversation", how="left", maintain_order="left"
        )["score"].alias(metric.id)
        refused = numbers["conversation"].is_in(
            judged.refused.filter(is_it)["conversation"].implode()
        )
        columns.append(scores)
        reasons.append(pl.when(scores.is_null()).then(_reason(metric.id, refused)))
    table = rows.with_columns(columns).with_columns(
        null_reasons=pl.concat_list(reasons).list.drop_nulls().cast(NULL_REASONS_DTYPE)
    )
    refusals = describe_rejects(judged).removesuffix(".")
    return JudgedRun(
        **{each.name: getattr(run, each.name) for each in fields(Run)},
        judged=table,
        judge_metrics=metrics,
        judges=judged.judges,
        notes=(f"{run.path}: {refusals}",) if refusals else (),
    )


def _reason(metric: str, refused: pl.Series) -> pl.Expr:
    bad, missing = (
        pl.lit(reason, pl.Enum(NULL_REASONS)) for reason in ("bad_input", "missing_input")
    )
    reason = pl.when(refused).then(bad).otherwise(missing)
    return pl.struct(pl.lit(metric).alias("metric"), reason.alias("reason"))
