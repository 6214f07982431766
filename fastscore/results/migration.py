"""Old scores beside new: what a public script wrote against a run, number by number."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fastscore.errors import InputError, UsageError, listed
from fastscore.files import unpack
from fastscore.results.runs import Run
from fastscore.settings.options import build_options
from fastscore.suites import published_scores as published
from fastscore.suites.registry import load_suite
from fastscore.terminal.grids import Column, Grid

_NAMES_OF_ROW = ("log", "dialogue", "label")
_ROW = (*_NAMES_OF_ROW, "place")
_PLACES = ("utterance_index", "step", "turn_pair_id")
_LABELS = ("experiment_level", "model")
_NAMES = {
    "score_dialogue": ("*-score.json", "*.expected.json", "*.json"),
    "memory_finance": ("metrics_summary*.json", "turn_eval*.jsonl", "turn_eval*.jsonl.gz"),
    "preference_shift": ("results.jsonl",),
    "guest_simulation": ("all_conversations_metrics.csv",),
}

_KINDS = {
    "equal": "equal",
    "rounding": "equal to the decimals written",
    "tolerated": "within the tolerance",
    "differs": "differ",
    "null_here": "null here",
    "null_there": "null there alone",
    "only_old": "without a row in the run",
}
"""How an old number compares with the run's, and the words for it."""


@dataclass(frozen=True, slots=True)
class Migration:
    """How many old numbers of a metric are of each kind of `_KINDS`, and the ten that differ most.

    ``metrics`` has the ``largest`` difference, too, and ``options`` that would explain it.
    ``unmatched`` names the logs and dialogues of the old scores that the run lacks.
    """

    metrics: pl.DataFrame
    worst: pl.DataFrame
    unmatched: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every number is found and equal, rounded or within the tolerance."""
        return not self.metrics.select(pl.col("differs", "only_old").sum()).sum_horizontal()[0]


def check_migration(run: Run, old: Sequence[Path], *, tolerance: float = 0.0) -> Migration:
    """Pair score files of a public script, or folders of them, with a run over the same logs.

    Differences up to `tolerance` count as none.
    """
    suite = run.manifest.suite
    if suite not in _NAMES:
        raise UsageError(f"No score files of a public script are known for {suite}.")
    files = [file for path in old for file in _files(path, suite)]
    if not files:
        raise InputError(
            f"No score file of {suite} in {listed([*map(str, old)], 3)} or a folder below: looked "
            f"for {', '.join(_NAMES[suite])}.",
            "Name the folder that the public script wrote to, or the files.",
        )
    theirs = pl.concat([_read(suite, file) for file in files]).unique(maintain_order=True)
    joined = _joined(theirs, run)
    difference = (pl.col("value") - pl.col("ours")).abs()
    rounding = 0.5 * 10.0 ** -pl.col("most_decimals").cast(pl.Float64) * (1 + 1e-9) + 1e-15
    old_null, own_null = pl.col("value").is_null(), pl.col("ours").is_null()
    conditions = {
        "only_old": pl.col("found").is_null(),
        "equal": (old_null & own_null) | (difference == 0),
        "null_there": old_null,
        "null_here": own_null,
        "rounding": difference <= rounding,
        "tolerated": difference <= tolerance,
        "differs": pl.lit(True),
    }
    # the first condition that holds
    kind = pl.coalesce(pl.when(holds).then(pl.lit(name)) for name, holds in conditions.items())
    judged = joined.with_columns(difference.alias("difference"), kind.alias("kind"))
    metrics = judged.group_by("metric", maintain_order=True).agg(
        *((pl.col("kind") == name).sum().cast(pl.Int64).alias(name) for name in _KINDS),
        pl.col("difference").max().alias("largest"),
    )
    explained = [
        published.DIFFERS_BY.get(metric, published.DIFFERS_BY[""]) if differs else ""
        for metric, differs in metrics.select("metric", "differs").iter_rows()
    ]
    worst = judged.filter(pl.col("kind") == "differs").sort("difference", descending=True)
    return Migration(
        metrics.with_columns(pl.Series("options", explained, dtype=pl.String)),
        worst.head(10).select(*_ROW, "metric", "value", "ours", "difference"),
        _unmatched(judged.filter(pl.col("kind") == "only_old"), run),
    )


def agreement_grids(found: Migration) -> list[Grid]:
    """Lay out how many numbers of each metric agree, and those that differ most."""
    never = [name for name in ("tolerated", "null_there") if not found.metrics[name].sum()]
    shown = found.metrics.drop("options", *never)
    grids = [_grid("old scores beside the run's", shown)]
    if found.worst.height:
        grids.append(_grid("the largest differences", found.worst))
    return grids


def verdict(found: Migration) -> str:
    """Say in a line how many numbers agree."""
    counted = found.metrics.select(pl.col(*_KINDS).sum()).row(0, named=True)
    listed = [
        f"{n:,} {_KINDS[kind]}" for kind, n in counted.items() if n or kind in ("equal", "differs")
    ]
    return f"{sum(counted.values()):,} old numbers: {', '.join(listed)}"


def differing_options(found: Migration) -> list[str]:
    """Name what the run lacks, and the options that would explain what differs, a line each."""
    differing = found.metrics.filter(pl.col("differs") > 0)
    return [
        *found.unmatched,
        *(
            f"{metric} differs: {options} would explain it"
            for metric, options in differing.select("metric", "options").iter_rows()
        ),
    ]


def _grid(title: str, frame: pl.DataFrame) -> Grid:
    columns = []
    for column in frame.iter_columns():
        if column.null_count() == len(column):
            continue
        form = "{:.6g}" if column.dtype.is_float() else "{}"
        columns.append(
            Column(
                column.name.replace("_", " "),
                tuple("-" if cell is None else form.format(cell) for cell in column),
                right=column.dtype.is_numeric(),
                drop={"tolerated": -2, "null_there": -3, "largest": -1}.get(column.name),
                wraps=column.name in ("metric", "dialogue"),
            )
        )
    return Grid(title, tuple(columns))


def _files(path: Path, suite: str) -> list[Path]:
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder.")
    if path.is_file():
        return [path]
    found: list[Path] = []
    for pattern in _NAMES[suite]:
        # of score_dialogue's names the first that is there counts: others are wider
        if not found or suite != "score_dialogue":
            found += sorted(path.rglob(pattern))
    return found


def _read(suite: str, path: Path) -> pl.DataFrame:
    content = path.read_bytes()
    try:
        if path.suffix == ".gz":
            content = unpack(content, path.suffix)
        metrics: dict[str, list[str]] = defaultdict(list)
        for one in load_suite(suite).metrics:
            metrics[one.table].append(one.id)
        return published.READERS[suite](str(path), content, metrics)
    except (
        ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError
    ) as error:  # fmt: skip
        raise InputError(
            f"{path}: not a score file of {suite} ({type(error).__name__}: {error}).",
            f"Expected {', '.join(_NAMES[suite])}.",
        ) from error


def _joined(theirs: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Put the run's numbers beside the old ones; a name that the old file lacks is no condition."""
    most = theirs.group_by("metric").agg(pl.col("decimals").max().alias("most_decimals"))
    theirs = theirs.join(most, on="metric", maintain_order="left")
    suite = run.manifest.suite
    parts = []
    for (table,), rows in theirs.group_by("table", maintain_order=True):
        ours = _long(run, str(table), rows["metric"].unique().to_list())
        on = ["metric", "place", *(name for name in _NAMES_OF_ROW if not rows[name].has_nulls())]
        ours = ours.select(*on, "ours", "found").unique().join(rows, on=on, how="semi")
        several = ours.filter(ours.select(on).is_duplicated())
        if several.height:
            row = ", ".join(f"{name} {several[name][0]!r}" for name in on if name != "metric")
            raise InputError(
                f"The old scores have one row for several rows of {run.path}: {row}.",
                "Name the files of one condition at a time, by folders that say which (exp<k>)."
                if suite != "score_dialogue"
                else "The script takes a file for one dialogue: score a file for each dialogue.",
            )
        parts.append(
            rows.join(ours, on=on, how="left", maintain_order="left").select(
                *published.SCHEMA, "most_decimals", "ours", "found"
            )
        )
    return pl.concat(parts)


def _summary_numbers(run: Run) -> pl.DataFrame:
    """Read the run's summary as the public script would have written it."""
    suite = run.suite
    options = build_options(suite.options, dict(run.manifest.options) | {"legacy_files": True})
    tables = {table.name: run.scan(table.name) for table in suite.tables}
    assert suite.legacy_files is not None
    files = suite.legacy_files(tables, (), options)
    (name,) = (name for name in files if name.endswith(".json"))
    return (
        published.memory_finance_scores(name, files[name], {})
        .filter(pl.col("table") == "summary")
        .select(*_ROW, "metric", ours="value", found=True)
    )


def _long(run: Run, table: str, metrics: Sequence[str]) -> pl.DataFrame:
    if table == "summary":
        return _summary_numbers(run)
    frame = run.scan(table)
    columns = frame.collect_schema()
    names = _names_of_dialogues(run)
    frame = frame.select(pl.exclude("log", "id")).join(names, on="dialogue", how="left")
    places, labels = (
        [pl.col(name).cast(pl.String) for name in names if name in columns]
        for names in (_PLACES, _LABELS)
    )
    none = pl.lit(None, dtype=pl.String)
    present = [metric for metric in metrics if metric in columns]
    return (
        frame.select(
            "log",
            pl.col("id").alias("dialogue"),
            (labels[0] if labels else none).alias("label"),
            (pl.concat_str(places, separator="/") if places else pl.lit("")).alias("place"),
            *(pl.col(metric).cast(pl.Float64) for metric in present),
        )
        .unpivot(present, index=_ROW, variable_name="metric", value_name="ours")
        .with_columns(found=True)
        .collect()
    )


def _names_of_dialogues(run: Run) -> pl.LazyFrame:
    """Return each dialogue's log, and its id as the log, and so an old score, spells it."""
    dialogues = run.scan("dialogues")
    source = run.suite.source
    ids = [*source.dialogue_key, *(source.row_id.columns if source.row_id else ())]
    own = next((name for name in ids if name in dialogues.collect_schema()), "dialogue")
    return dialogues.select(
        "dialogue",
        log=pl.col("file").str.split("/").list.last(),
        id=pl.coalesce(pl.col(own).cast(pl.String), "dialogue"),
    )


def _unmatched(rows: pl.DataFrame, run: Run) -> tuple[str, ...]:
    """Say which logs and dialogues of old scores without a row the run lacks."""
    if rows.is_empty():
        return ()
    ours = _names_of_dialogues(run).collect()
    lines = []
    for name, own in (("log", ours["log"]), ("dialogue", ours["id"])):
        theirs = rows[name].drop_nulls().unique(maintain_order=True)
        lacking = theirs.filter(~theirs.is_in(own.implode()))
        if len(lacking):
            lacks, has = ([*map(repr, one)] for one in (lacking, own.unique(maintain_order=True)))
            lines.append(
                f"the old scores name the {name} {listed(lacks, 3)}, which the run lacks: it has "
                f"{listed(has, 3)}"
            )
    return tuple(lines)
