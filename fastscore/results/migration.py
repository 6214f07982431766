"""Old scores beside new: what a public script wrote against a run, number by number."""

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.errors import InputError, UsageError, listed
from fastscore.files import unpack
from fastscore.results.runs import Run
from fastscore.settings.options import build_options
from fastscore.suites.registry import load_suite
from fastscore.terminal import result_console
from fastscore.terminal.grids import Column, Grid, print_grid

Ids = Mapping[str, Sequence[str]]
"""The ids of a suite's metrics by table."""

_NAMES_OF_ROW = ("log", "dialogue", "label")
_ROW = (*_NAMES_OF_ROW, "place")
_SCHEMA: dict[str, pl.DataType] = {
    **dict.fromkeys((*_NAMES_OF_ROW, "table", "place", "metric"), pl.String()),
    "value": pl.Float64(),
    "decimals": pl.Int64(),
}
"""One row an old number: the log's name without folders (null where the file does not say), the
dialogue's id, what tells apart those of one id, the table and place of ours with the same,
and how many decimals were written."""

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

_DIFFERS_BY = {
    "PAS": "--profile published, --states, --states-from, --personas",
    "BVS": "--profile published, --states, --states-from",
    "ORA": "--profile published, --states-from",
    "DEI": "--profile published, --level",
    "CRRS": "--profile published",
    "judge_score_1_5": "--lexicon",
    "lexical_similarity": "no option, but other texts or steps spelt 1.0",
    "semantic_cosine_raw": "--embedder, --precision, --dim",
    "semantic_similarity": "--semantic, --embedder, --dim, --baseline-pairs, --baseline-seed",
    **dict.fromkeys(
        ("U_step", "U_best", "average_U_best_early"),
        "--lex-weight, --pppl-weight, other texts or steps spelt 1.0",
    ),
    "semantic_baseline_b": "--embedder, --dim, --baseline-pairs, --baseline-seed",
}
"""By metric the options by which it may differ, in words."""
_OTHERS_DIFFER_BY = "--profile, --catalogue, --extract, --match, --window"


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
        return not self.metrics.select(pl.sum_horizontal("differs", "only_old").sum()).item()


def check_migration(run: Run, old: Sequence[Path], *, tolerance: float = 0.0) -> Migration:
    """Pair score files of a public script, or folders of them, with a run over the same logs.

    Differences up to `tolerance` count as none.
    """
    suite = run.manifest.suite
    if suite not in _FILES:
        raise UsageError(f"No score files of a public script are known for {suite}.")
    files = [file for path in old for file in _files(path, suite)]
    if not files:
        raise InputError(
            f"No score file of {suite} in {listed([*map(str, old)], 3)} or a folder below: looked "
            f"for {', '.join(_FILES[suite])}.",
            "Name the folder that the public script wrote to, or the files.",
        )
    theirs = pl.concat([_read(suite, file) for file in files]).unique(maintain_order=True)
    if theirs.is_empty():
        raise InputError(
            f"No score of {suite} is in {listed([*map(str, files)], 3)}.",
            f"Expected {', '.join(_FILES[suite])}.",
        )
    decimals = pl.col("decimals").max().over("metric").cast(pl.Float64)
    rounding = 0.5 * 10.0**-decimals * (1 + 1e-9) + 1e-15
    joined = _joined(theirs.with_columns(rounding=rounding), run)
    difference = (pl.col("value") - pl.col("ours")).abs()
    old_null, own_null = pl.col("value").is_null(), pl.col("ours").is_null()
    conditions = {
        "only_old": pl.col("found").is_null(),
        "equal": (old_null & own_null) | (difference == 0),
        "null_there": old_null,
        "null_here": own_null,
        "rounding": difference <= pl.col("rounding"),
        "tolerated": difference <= tolerance,
        "differs": pl.lit(True),
    }
    # the first condition that holds
    kind = pl.coalesce(pl.when(holds).then(pl.lit(name)) for name, holds in conditions.items())
    judged = joined.with_columns(difference.alias("difference"), kind.alias("kind"))
    counts = judged.group_by("metric", maintain_order=True).agg(
        *((pl.col("kind") == name).sum().cast(pl.Int64).alias(name) for name in _KINDS),
        pl.col("difference").max().alias("largest"),
    )
    explained = pl.col("metric").replace_strict(_DIFFERS_BY, default=_OTHERS_DIFFER_BY)
    options = pl.when(pl.col("differs") > 0).then(explained).otherwise(pl.lit(""))
    worst = judged.filter(pl.col("kind") == "differs").sort("difference", descending=True)
    return Migration(
        counts.with_columns(options=options),
        worst.head(10).select(*_ROW, "metric", "value", "ours", "difference"),
        _unmatched(judged.filter(pl.col("kind") == "only_old"), run),
    )


def show_migration(found: Migration) -> None:
    """Print how many numbers agree, those that differ most, and what would explain them."""
    console = result_console()
    counted = found.metrics.select(pl.col(*_KINDS).sum()).row(0, named=True)
    kinds = [f"{n:,} {_KINDS[kind]}" for kind, n in counted.items() if n or kind in _ALWAYS_NAMED]
    verdict = f"{sum(counted.values()):,} old numbers: {', '.join(kinds)}"
    console.print(verdict, soft_wrap=True, highlight=False)
    never = [name for name in ("tolerated", "null_there") if not counted[name]]
    shown = found.metrics.drop("options", *never)
    print_grid(console, _grid("old scores beside the run's", shown))
    if found.worst.height:
        print_grid(console, _grid("the largest differences", found.worst))
    differing = found.metrics.filter(pl.col("differs") > 0).select("metric", "options")
    explained = (f"{one} differs: {by} would explain it" for one, by in differing.iter_rows())
    for line in (*found.unmatched, *explained):
        console.print(line, soft_wrap=True)


_ALWAYS_NAMED = ("equal", "differs")


def _grid(title: str, frame: pl.DataFrame) -> Grid:
    def column(cells: pl.Series) -> Column:
        form = "{:.6g}" if cells.dtype.is_float() else "{}"
        return Column(
            cells.name.replace("_", " "),
            tuple("-" if cell is None else form.format(cell) for cell in cells),
            right=cells.dtype.is_numeric(),
            drop={"tolerated": -2, "null_there": -3, "largest": -1}.get(cells.name),
            wraps=cells.name in ("metric", "dialogue"),
        )

    has_values = (cells for cells in frame.iter_columns() if cells.null_count() < len(cells))
    return Grid(title, tuple(map(column, has_values)))


def _files(path: Path, suite: str) -> list[Path]:
    if not path.exists():
        raise InputError(f"{path}: there is no such file or folder.")
    if path.is_file():
        return [path]
    found: list[Path] = []
    for pattern in _FILES[suite]:
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
        return _numbers_of(_READERS[suite](str(path), content, metrics))
    except (
        ValueError, KeyError, TypeError, AttributeError, OSError, RecursionError
    ) as error:  # fmt: skip
        raise InputError(
            f"{path}: not a score file of {suite} ({type(error).__name__}: {error}).",
            f"Expected {', '.join(_FILES[suite])}.",
        ) from error


class _Written(float):
    """A number that remembers how many decimals it was written with."""

    decimals: int

    def __new__(cls, text: str) -> "_Written":
        number = super().__new__(cls, text)
        found = re.search(r"\.(\d+)$", text)
        number.decimals = len(found[1]) if found else 17 if "e" in text.lower() else 0
        return number


def _numbers_of(rows: Iterable[tuple[Any, ...]]) -> pl.DataFrame:
    written = [
        (*place, None if value is None else float(value), getattr(value, "decimals", 0))
        for *place, value in rows
    ]
    return pl.DataFrame(written, schema=_SCHEMA, orient="row")


def _score_dialogue(name: str, content: bytes, metrics: Ids) -> Iterator[tuple[Any, ...]]:
    """Yield the numbers of a ``*-score.json`` of score_dialogue.py."""
    document = json.loads(content, parse_float=_Written)
    log = document.get("log_file")
    if isinstance(log, str):
        log = log.rpartition("/")[2]
    named = log, document.get("dialogue_uid"), None
    for utterance in document["utterances"]:
        place = str(utterance["utterance_number"])
        yield *named, "utterances", place, "U_best", utterance["U_best"]
        for step in utterance.get("steps", ()):
            for number in _present(step, metrics["steps"]):
                yield *named, "steps", f"{place}/{step['step']}", *number
    for number in document["dialogue_summary"].items():
        yield *named, "dialogues", "", *number


def _memory_finance(name: str, content: bytes, metrics: Ids) -> Iterator[tuple[Any, ...]]:
    """Yield what MemFinRobot wrote: a summary with its dialogues, or the numbers of turns."""
    if not name.endswith(".json"):
        for row in _lines(content):
            for number in _present(row, _TURN_NUMBERS):
                yield None, row["dialog_id"], None, "turns", str(row["turn_pair_id"]), *number
        return
    for group, written in json.loads(content, parse_float=_Written)["metrics"].items():
        for dialogue, values in written["by_dialog"].items():
            for number in values.items():
                yield None, dialogue, None, "dialogues", "", *number
        for part in ("micro", "macro", "counts"):
            for number in written[part].items():
                yield None, None, None, "summary", f"{group} {part}", *number


_TURN_NUMBERS = (
    *(f"eligible_m{number}" for number in range(1, 6) if number != 2),
    "constraint_contradiction",
    "risk_tag_hits",
    "judge_score_1_5",
)
"""The columns of memory_finance's turn rows that are numbers, or true or false; M2 has no turns."""


def _preference_shift(name: str, content: bytes, metrics: Ids) -> Iterator[tuple[Any, ...]]:
    """Yield from a ``results.jsonl`` the numbers of each conversation that have our names."""
    for row in _lines(content):
        model = row.get("model") or row.get("model_name")
        for metric, value in _present(row, metrics["dialogues"]):
            if isinstance(value, int | float | None):
                yield None, row.get("session_id"), model, "dialogues", "", metric, value


def _guest_simulation(name: str, content: bytes, metrics: Ids) -> Iterator[tuple[Any, ...]]:
    """Yield an ``all_conversations_metrics.csv``; its folder ``exp<k>`` names the level."""
    found = re.search(r"exp(\d+)", name)
    level = found and found[1]
    for row in csv.DictReader(io.StringIO(content.decode("utf-8-sig"))):
        for metric, text in _present(row, metrics["dialogues"]):
            if text:
                yield None, row["conversation_id"], level, "dialogues", "", metric, _Written(text)


_FILES = {
    "score_dialogue": ("*-score.json", "*.expected.json", "*.json"),
    "memory_finance": ("metrics_summary*.json", "turn_eval*.jsonl", "turn_eval*.jsonl.gz"),
    "preference_shift": ("results.jsonl",),
    "guest_simulation": ("all_conversations_metrics.csv",),
}
_READERS: Mapping[str, Callable[[str, bytes, Ids], Iterator[tuple[Any, ...]]]] = {
    "score_dialogue": _score_dialogue,
    "memory_finance": _memory_finance,
    "preference_shift": _preference_shift,
    "guest_simulation": _guest_simulation,
}
"""What reads a suite's published scores: from a file's name, its content and our metrics."""


def _lines(content: bytes) -> Iterator[dict[str, Any]]:
    return (json.loads(line, parse_float=_Written) for line in content.splitlines() if line.strip())


def _present(row: Mapping[str, Any], metrics: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield those of some metrics that a row has."""
    return ((metric, row[metric]) for metric in metrics if metric in row)


def _joined(theirs: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Put the run's numbers beside the old ones; a name that the old file lacks is no condition."""
    parts = []
    for (table,), rows in theirs.group_by("table", maintain_order=True):
        ours = (
            _summary_numbers(run) if table == "summary" else _numbers_of_run(run, str(table), rows)
        )
        on = ["metric", "place", *(name for name in _NAMES_OF_ROW if not rows[name].has_nulls())]
        ours = ours.select(*on, "ours", found=True).unique().join(rows, on=on, how="semi")
        several = ours.filter(ours.select(on).is_duplicated())
        if several.height:
            row = ", ".join(f"{name} {several[name][0]!r}" for name in on if name != "metric")
            raise InputError(
                f"The old scores have one row for several rows of {run.path}: {row}.",
                "Name the files of one condition at a time, by folders that say which (exp<k>)."
                if run.manifest.suite != "score_dialogue"
                else "The script takes a file for one dialogue: score a file for each dialogue.",
            )
        parts.append(rows.join(ours, on=on, how="left", maintain_order="left"))
    return pl.concat(parts)


def _summary_numbers(run: Run) -> pl.DataFrame:
    """Read the run's summary as the public script would have written it."""
    suite = run.suite
    options = build_options(suite.options, dict(run.manifest.options) | {"legacy_files": True})
    tables = {table.name: run.scan(table.name) for table in suite.tables}
    assert suite.legacy_files is not None
    files = suite.legacy_files(tables, (), options)
    (name,) = (name for name in files if name.endswith(".json"))
    numbers = _numbers_of(_memory_finance(name, files[name], {}))
    return numbers.filter(table="summary").rename({"value": "ours"})


def _numbers_of_run(run: Run, table: str, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the metrics of a table that old rows have, one row a number."""
    frame = run.scan(table)
    columns = frame.collect_schema()
    names = _names_of_dialogues(run)
    places, labels = (
        [pl.col(name).cast(pl.String) for name in known if name in columns]
        for known in (("utterance_index", "step", "turn_pair_id"), ("experiment_level", "model"))
    )
    present = [metric for metric in rows["metric"].unique() if metric in columns]
    return (
        frame.select(pl.exclude("log", "id"))
        .join(names, on="dialogue", how="left")
        .select(
            "log",
            pl.col("id").alias("dialogue"),
            (labels[0] if labels else pl.lit(None, pl.String)).alias("label"),
            (pl.concat_str(places, separator="/") if places else pl.lit("")).alias("place"),
            *(pl.col(metric).cast(pl.Float64) for metric in present),
        )
        .unpivot(present, index=_ROW, variable_name="metric", value_name="ours")
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
