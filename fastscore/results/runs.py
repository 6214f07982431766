"""Runs: a directory, whose files are compared with their hashes first, or scores in memory.

Below them: summaries of a run by other labels or units, estimates over the rows that are defined.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import polars as pl

from fastscore.errors import FastscoreError, RunError, UsageError, did_you_mean
from fastscore.files import ANNOTATIONS, EXPERIMENT, kind_of
from fastscore.files import JUDGEMENTS as JUDGED
from fastscore.logs.inputs.frames import FRAME_NAME
from fastscore.logs.score_input import ScoreInput
from fastscore.results.judged_runs import JUDGEMENTS, read_judged
from fastscore.run.commit import (
    CUT_TEXTS,
    RECEIPTS,
    REJECTS,
    SUMMARY_JSON,
    SUMMARY_PARQUET,
    Address,
    Committed,
    Place,
    Receipt,
    as_json,
    hash_of_outputs,
    is_intact,
    load_receipt,
    part_name,
    place_of,
    receipt_path,
)
from fastscore.run.manifest import Manifest, read_manifest
from fastscore.run.scoring import CUT_SCHEMA
from fastscore.settings.extras import explained, require
from fastscore.settings.options import available_processors, build_options, check_arguments
from fastscore.suites.base import Suite
from fastscore.suites.declarations import LABEL_TABLE, REJECTS_TABLE, Metric
from fastscore.suites.registry import load_suite
from fastscore.suites.summary import ALL, SUMMARY_SCHEMA, summarise
from fastscore.suites.sums import (
    BETWEEN,
    Part,
    estimate,
    joined_values,
    require_labels,
    sum_metrics,
)

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from pyarrow import Table as ArrowTable

    from fastscore.run.remote.runs import RunCopy
    from fastscore.vectors.embedder import FunctionEmbedder

Content = TypeVar("Content")
Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


class UnknownTableError(UsageError, KeyError):
    """A table that a run does not have; a `KeyError` too, as of any mapping."""


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of a run that wrote no directory."""

    frames: Mapping[str, pl.DataFrame]  # the tables by name, with `rejects` and `cut_texts`
    summary: pl.DataFrame  # one row a group and metric
    source: ScoreInput | None  # what was scored


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Run:
    """A complete run as `fastscore.Run` is, without the verbs that show it."""

    path: Place
    manifest: Manifest
    verify: bool = True
    scores: Scores | None = None
    frame: ScoreInput | None = field(default=None, repr=False)
    copy: "RunCopy | None" = None
    embedder: "FunctionEmbedder | None" = field(default=None, repr=False)
    _verified: set[str] = field(default_factory=set, repr=False)
    _committed_files: dict[str, Committed] = field(default_factory=dict, repr=False)

    def to_pandas(self, table: str = "dialogues") -> "PandasFrame":
        """Return a table as a pandas frame. This needs pandas and pyarrow."""
        require("arrow", "A frame of pandas")
        with explained("A frame of pandas"):
            return self.scan(table).collect().to_pandas()

    def to_arrow(self, table: str = "dialogues") -> "ArrowTable":
        """Return a table as an Arrow table. This needs pyarrow."""
        require("arrow", "An Arrow table")
        return self.scan(table).collect().to_arrow()

    @property
    def folder(self) -> Path:
        """The folder of the run's files; files of an object store are there once they are read."""
        return self.copy.folder if self.copy is not None else Path(str(self.path))

    @property
    def notes(self) -> tuple[str, ...]:
        """Metrics that are null in every row, with the columns that they lack, and other notes."""
        return (*self.manifest.lacking, *self.manifest.notes)

    @property
    def signature(self) -> str:
        """The line that pins the run's numbers."""
        return self.manifest.signature

    @property
    def suite(self) -> Suite:
        """The run's suite, with the metrics that were scored beside its own."""
        return common_suite([self])

    @property
    def options(self) -> Any:
        """The options that the run was scored with."""
        return build_options(load_suite(self.manifest.suite).options, self.manifest.options)

    @property
    def summary(self) -> pl.DataFrame:
        """The summary, one row a group and metric.

        One of an older release that lacks columns is made again from the tables.
        """
        if self.scores is not None:
            return self.scores.summary
        summary = self._read_beside_parts(SUMMARY_PARQUET, partial(pl.read_parquet, glob=False))
        if set(SUMMARY_SCHEMA) <= set(summary.columns):
            return summary
        self.require_declared()
        return summarise(self.suite, self.lazy_tables, self.options)

    @property
    def summary_json(self) -> str:
        """The text of ``summary.json``: the signature, and the summary as objects."""
        if self.scores is not None:
            return as_json({"signature": self.signature, "summary": self.summary.to_dicts()})
        return self._read_beside_parts(SUMMARY_JSON, partial(Path.read_text, encoding="utf-8"))

    @property
    def rejects(self) -> pl.DataFrame:
        """The rejected rows with place and reason, in input order."""
        rejects = self._scan(REJECTS)
        self._require(REJECTS, rejects, REJECTS_TABLE)
        return rejects.collect()

    @property
    def first_reject(self) -> dict[str, Any]:
        """The first rejected row of a run that has some."""
        return self._scan(REJECTS).head(1).collect().row(0, named=True)

    @property
    def cut_texts(self) -> pl.DataFrame:
        """The texts of which the embedder's model took the beginning only.

        One row each: its id, its tokens, how many the model takes (``limit``) and how it begins.
        Empty without an embedder.
        """
        if self.manifest.embedder is None:
            return pl.DataFrame(schema=CUT_SCHEMA)
        # of several shards that have a text each lists it
        texts = self._scan(CUT_TEXTS).unique(["id_high", "id_low"], maintain_order=True)
        return texts.collect()

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Every table by name, such as ``tables["dialogues"]``, read when it is asked for.

        Rows are in input order. Printed, it names the tables.
        """
        return _Tables(tuple(self.manifest.tables), lambda name: self.scan(name).collect())

    @property
    def lazy_tables(self) -> Mapping[str, pl.LazyFrame]:
        """Every table by name, as `scan` scans it."""
        return _Tables(tuple(self.manifest.tables), self.scan)

    def scan(self, name: str) -> pl.LazyFrame:
        """Scan one table lazily, rows in input order."""
        if name not in self.manifest.tables:
            raise UnknownTableError(
                f"{self.path} has no table {name!r}.", did_you_mean(name, self.manifest.tables)
            )
        return self._scan(name)

    def require_declared(self) -> None:
        """Refuse a run whose tables lack what this version's suite declares."""
        for table in self.suite.tables:
            if table.name in self.manifest.tables:
                self._require(table.name, self.scan(table.name), table.schema)
        self._require(REJECTS, self._scan(REJECTS), REJECTS_TABLE)

    def _require(self, folder: str, frame: pl.LazyFrame, declared: Iterable[str]) -> None:
        lacking = [name for name in declared if name not in frame.collect_schema()]
        if lacking:
            version = "|".join(self.signature.split("|")[:2])
            raise RunError(
                f"{self.path / folder}: no column {', '.join(map(repr, lacking))}: another version "
                f"of fastscore wrote the run ({version}).",
                "Score its logs again, into another folder, or set overwrite.",
            )

    def damaged(self) -> list[str]:
        """Return the files whose content is no longer what was committed, sorted."""
        if self.scores is not None:
            return []
        receipts, damaged = self._receipts()
        committed = [Committed(**output) for output in self.manifest.outputs]
        committed += (output for receipt in receipts for output in receipt.outputs)
        check = partial(is_intact, self.folder) if self.copy is None else self.copy.is_intact
        return sorted([*damaged, *(output.path for output in committed if not check(output))])

    def _receipts(self) -> tuple[list[Receipt], list[str]]:
        """Return the receipts that can be read, and the damaged files or folder of receipts."""
        folder = self.folder / RECEIPTS
        paths = [receipt_path(folder, "score", index) for index in range(self.manifest.shards)]
        found = {path: load_receipt(path) for path in paths}
        receipts = [receipt for receipt in found.values() if receipt is not None]
        damaged = [
            path.relative_to(self.folder).as_posix()
            for path, receipt in found.items()
            if receipt is None
        ]
        # the manifest was made of all of them, each in its place
        if not damaged and hash_of_outputs(receipts) != self.manifest.parts_hash:
            damaged = [RECEIPTS]
        return receipts, damaged

    def _scan(self, folder: str) -> pl.LazyFrame:
        if self.scores is not None:
            return self.scores.frames[folder].lazy()
        shards = range(self.manifest.shards)
        if not self.verify and self.copy is None:
            found = [self.folder / folder / part_name(index) for index in shards]
            return pl.scan_parquet(found, glob=False)
        if not self._committed_files:
            receipts, damaged = self._receipts()
            if damaged:
                raise _damaged(self.path / damaged[0])
            outputs = (output for receipt in receipts for output in receipt.outputs)
            self._committed_files.update((output.path, output) for output in outputs)
        parts = [name for name in self._committed_files if name.startswith(f"{folder}/")]
        if len(parts) != len(shards):
            raise _damaged(self.path / folder)
        if folder not in self._verified:
            # hashing releases the interpreter lock
            with ThreadPoolExecutor(available_processors()) as pool:
                list(pool.map(self._verify_committed, parts, map(self._committed_files.get, parts)))
            self._verified.add(folder)
        return pl.scan_parquet([self.folder / part for part in parts], glob=False)

    def _read_beside_parts(self, name: str, read: Callable[[Path], Content]) -> Content:
        committed = [Committed(**output) for output in self.manifest.outputs]
        stated = next((output for output in committed if output.path == name), None)
        if self.verify or self.copy is not None:
            self._verify_committed(name, stated)
        try:
            return read(self.folder / name)
        except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
            raise RunError(
                f"{self.path / name}: missing or damaged ({error}).",
                "Score it again with its options.",
            ) from error

    def _verify_committed(self, name: str, stated: Committed | None) -> None:
        if stated is not None and self.copy is not None:
            self.copy.fetch(stated)
        elif stated is None or not is_intact(self.folder, stated):
            raise _damaged(self.path / name)


@dataclass(frozen=True, slots=True)
class _Tables(Mapping[str, Frame]):
    """Tables by name, each opened when it is asked for."""

    names: tuple[str, ...]
    open: Callable[[str], Frame]

    def __getitem__(self, name: str) -> Frame:
        return self.open(name)

    if not TYPE_CHECKING:  # a checker refuses a table as an attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Say how a table is asked for."""
            is_own = name[0] == "_" or name in self.__slots__  # as a copy that is not filled yet
            advice = f" Type run.tables[{name!r}]." if not is_own and name in self.names else ""
            raise AttributeError(f"Tables have no attribute {name!r}.{advice}", name=name, obj=self)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"tables: {', '.join(self.names)}"


def common_suite(runs: Sequence[Run]) -> Suite:
    """Return the suite of runs, with the own metrics that all of them have."""
    first, *others = (run.manifest.own_metrics for run in runs)
    ids = [{one["metric"]["id"] for one in declared} for declared in others]
    kept = [one for one in first if all(one["metric"]["id"] in found for found in ids)]
    name = runs[0].manifest.suite
    suite = load_suite(name).under(*(run.options for run in runs))
    if not kept:
        return suite
    from fastscore.suites.own_metrics import OwnMetric, with_metrics  # late: few runs have any

    return with_metrics(suite, [OwnMetric.from_json(name, one) for one in kept])


def _damaged(path: Place) -> RunError:
    return RunError(
        f"{path}: missing, or not what was committed.",
        "Score it again with the same options: what is damaged is scored again.",
    )


_NO_RUN = {
    JUDGED: "Type the command of `fastscore judge` again: no answer is asked for twice.",
    ANNOTATIONS: "`fastscore score` takes them, and its output is a run.",
    EXPERIMENT: "Its run is the folder scores in it.",
}
"""Folders of other commands, and what to do in place of opening them as a run."""


def _no_run(folder: Path, kind: str) -> FastscoreError:
    if kind != JUDGED:
        return UsageError(f"{folder} is no run: it holds {kind}.", _NO_RUN[kind])
    return RunError(f"{folder}: the judge wrote no scores yet.", _NO_RUN[kind])


def open_run(path: str | PathLike[str], *, verify: bool = True) -> Run:
    """Open a complete run; see `fastscore.open_run`, whose runs also have verbs."""
    if not isinstance(path, str | PathLike):
        raise UsageError(f"The run is of type {type(path).__name__}; expected a run directory.")
    folder = place_of(path)
    if isinstance(folder, Address):
        from fastscore.run.remote.runs import open_copy  # late: few runs are in a store

        copy = open_copy(folder.url)
        return Run(folder, copy.manifest, verify, copy=copy)
    if (folder / JUDGEMENTS).is_file():
        about, frames, summary = read_judged(folder)
        return Run(folder, about, scores=Scores(frames, summary, None))
    if (folder / "pairs.jsonl").is_file():
        raise UsageError(
            f"{folder}: verdicts of a judge on pairs, not a run.",
            f"`fastscore rank {folder / 'pairs.jsonl'}` ranks the systems.",
        )
    if (kind := kind_of(folder)) in _NO_RUN:
        raise _no_run(folder, str(kind))
    manifest = None if folder.is_file() else read_manifest(folder)
    if manifest is None and (folder / RECEIPTS).is_dir():
        raise RunError(
            f"{folder}: the run's manifest.json is lost.",
            "Score it again with its options: it is made anew from the receipts.",
        )
    if manifest is None:
        raise UsageError(
            f"{folder}: no run there (no manifest.json).",
            "Make one with `fastscore score SUITE INPUT... -o RUN`.",
        )
    if manifest.status != "complete":
        raise RunError(f"{folder}: the run is not complete.", "Score it again with its options.")
    return Run(folder, manifest, verify)


def as_run(run: Run | str | PathLike[str]) -> Run:
    """Return a run, opened if it is named by its directory."""
    if isinstance(run, Run):
        return run
    if isinstance(run, str | PathLike):
        return open_run(fspath(run))
    raise UsageError(
        f"The run is of type {type(run).__name__}; expected a run or its directory.",
        "Runs come first, each as an argument of its own.",
    )


def as_runs(runs: Iterable[Run | str | PathLike[str]], names: Sequence[str] = ()) -> list[Run]:
    """Return runs, opened. Scores in memory have the names that are given, or else numbers."""
    found = [as_run(run) for run in runs]
    used: Counter[Place] = Counter()
    for place, run in enumerate(found):
        used[run.path] += 1
        if run.scores is None:
            continue
        name = names[place] if names else ""
        if not name and str(run.path) == FRAME_NAME and len(found) > 1:
            name = f"run {place + 1}"
        elif not name and used[run.path] > 1:
            name = f"{run.path} ({used[run.path]})"
        if name:
            found[place] = replace(run, path=Path(name))
    return found


MOST_GROUPS = 100


def summarise_run(
    run: Run, by: str | Sequence[str] = (), cluster: str | None = None
) -> pl.DataFrame:
    """Summarise a run by one label column, or by each combination of several (`fastscore.summary`).

    Rows in which one of them is null are in no group.
    """
    check_arguments(summarise_run, locals())
    named = [name.strip() for name in by.split(",")] if isinstance(by, str) else by
    columns = list(dict.fromkeys(named))
    own = run.summary
    groups = set(own["group"])
    is_own = len(columns) == 1 and columns[0] in groups - {ALL}
    units = run.suite.design.clustered_by(cluster).unit if cluster else ()
    asked = (*(() if is_own else columns), *units)
    require_labels(run.scan(LABEL_TABLE), asked, str(run.path), groups)
    if not columns or is_own:
        summary = (
            summarise(run.suite, run.lazy_tables, run.options, cluster=cluster) if cluster else own
        )
        return summary.filter(group=columns[0]) if is_own else summary
    order = _levels(run, columns)
    found = summarise(run.suite, run.lazy_tables, run.options, by=columns, cluster=cluster)
    place = pl.col("value").replace_strict(order, return_dtype=pl.Int64)
    return found.filter(pl.col("group") != ALL).sort(place, maintain_order=True)


def labels_with_values(summary: pl.DataFrame) -> dict[str, int]:
    """Count the values of each label that tells rows apart."""
    counts = summary.group_by("group", maintain_order=True).agg(pl.col("value").n_unique())
    return dict(counts.filter(pl.col("group") != ALL, pl.col("value") > 1).iter_rows())


def label_of_systems(run: Run) -> str | None:
    """Return the first label whose values can be compared: no part of a pair, nor too many."""
    pair = run.suite.design.pair
    labels = labels_with_values(run.summary).items()
    return next((label for label, n in labels if label not in pair and n <= MOST_GROUPS), None)


def _levels(run: Run, columns: Sequence[str]) -> dict[str, int]:
    """Return the combinations of labels that dialogues have, as they are written, in order."""
    levels = run.scan(LABEL_TABLE).select(columns).drop_nulls().unique().sort(columns).collect()
    name = BETWEEN.join(columns)
    if levels.is_empty():
        raise UsageError(
            f"{run.path}: no dialogue has a value of {name}.",
            "Choose another column; `fastscore summary RUN` shows groups.",
        )
    if levels.height > MOST_GROUPS:
        raise UsageError(
            f"{run.path}: {name} has {levels.height:,} values, expected at most {MOST_GROUPS}."
        )
    written = levels.select(joined_values(columns)).to_series()
    return {value: place for place, value in enumerate(written)}


def label_columns(run: Run) -> list[str]:
    """Return the columns of table ``dialogues`` that group the summary of a run."""
    columns = run.scan(LABEL_TABLE).collect_schema().names()
    return [name for name in run.summary["group"].unique(maintain_order=True) if name in columns]


def notes_on_rows(run: Run, metrics: Sequence[Metric]) -> list[str]:
    """Say over which rows metrics are shown; nothing of those that are shown over all."""
    found: dict[str, list[str]] = {}
    for part in defined_parts(run, [one for one in metrics if one.fixed_where or one.scale.by]):
        found.setdefault(part.metric.id, []).append(part.where)
    notes, over = [], dict[str, list[str]]()
    for id, wheres in found.items():
        if len(wheres) > 1:
            by = run.suite.metric(id).scale.by
            notes.append(f"{id}: its definition depends on {by}, so rows are not pooled")
        elif wheres[0]:
            over.setdefault(wheres[0], []).append(id)
    return notes + [
        f"{', '.join(ids)}: the mean is over rows with {where}. In the other rows the definition "
        "gives the value."
        for where, ids in over.items()
    ]


def defined_parts(
    run: Run,
    metrics: Sequence[Metric],
    cluster: str | None = None,
    tables: Mapping[str, pl.LazyFrame] | None = None,
) -> list[Part]:
    """Estimate the parts of metrics, in their order: of a run, or of tables in place of its own."""
    if not metrics:
        return []
    suite = run.suite
    sums = sum_metrics(
        suite,
        run.lazy_tables if tables is None else tables,
        metrics,
        options=run.options,
        design=suite.design.clustered_by(cluster),
        labels=label_columns(run),
    )
    places = {metric.id: place for place, metric in enumerate(metrics)}
    parts = (part for one in sums for part in estimate(one))
    return sorted(parts, key=lambda part: places[part.metric.id])
