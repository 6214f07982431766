"""Opening a run directory and reading what it committed, each file compared with its hash first."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fastscore.errors import RunError, UsageError, nearest
from fastscore.paths import check_path
from fastscore.processors import available_processors
from fastscore.run.commit import (
    CUT_TEXTS,
    RECEIPTS,
    REJECTS,
    SUMMARY_JSON,
    SUMMARY_PARQUET,
    Committed,
    part_name,
)
from fastscore.run.compared_texts import CUT_SCHEMA
from fastscore.run.manifest import Manifest, read_manifest
from fastscore.run.receipts import (
    Receipt,
    hash_of_outputs,
    is_intact,
    load_receipt,
    receipt_path,
)
from fastscore.suites.base import Suite
from fastscore.suites.declarations import REJECTS_TABLE
from fastscore.suites.registry import load_suite

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A complete run.

    Parameters
    ----------
    path
        The run directory.
    manifest
        Its manifest.
    verify
        Whether what is read is compared first with the hash that was committed: a table's parts
        when the table is first asked for.
    """

    path: Path
    manifest: Manifest
    verify: bool = True
    _verified: set[str] = field(default_factory=set, repr=False, compare=False)
    _committed_files: dict[str, Committed] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        from fastscore.results.summary_table import overview

        return overview(*self._overview_facts(), self.signature)

    def _repr_html_(self) -> str:
        """Show what came out as a small table, in a notebook."""
        from fastscore.results.summary_table import overview_html

        return overview_html(*self._overview_facts(), self.signature)

    def _overview_facts(
        self,
    ) -> tuple[str, Suite, pl.DataFrame, Mapping[str, pl.LazyFrame], dict[str, int]]:
        counts = {name: table["rows"] for name, table in self.manifest.tables.items()}
        counts["rejects"] = self.manifest.counts.get("rejects", 0)
        title = f"Run {self.path} of {self.manifest.suite}"
        return title, self.suite, self.summary, self.tables, counts

    def plot(self, metric: str, *, by: str | None = None) -> "Figure":
        """Draw the distribution of a metric, or its means by labels (`plots.plot_metric`)."""
        from fastscore.results.plots import plot_metric

        return plot_metric(self, metric, by=by)

    @property
    def signature(self) -> str:
        """The line that pins the run's numbers."""
        return self.manifest.signature

    @property
    def suite(self) -> Suite:
        """The run's suite, with the metrics that were scored beside its own."""
        return common_suite([self])

    @property
    def summary(self) -> pl.DataFrame:
        """The summary, one row a group and metric.

        An earlier release may have written other intervals: the tables are then summarised again.

        Raises
        ------
        RunError
            It is missing or not what was committed.
        """
        from fastscore.results.groups import summarise_tables
        from fastscore.suites.summary import SUMMARY_SCHEMA

        self._verify_beside_parts(SUMMARY_PARQUET)
        try:
            summary = pl.read_parquet(self.path / SUMMARY_PARQUET, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(
                f"{self.path / SUMMARY_PARQUET}: missing or damaged ({error}).",
                "Run its `fastscore score` command again.",
            ) from error
        return summary if set(SUMMARY_SCHEMA) <= set(summary.columns) else summarise_tables(self)

    def summarise(self, *, by: Sequence[str] = (), cluster: str | None = None) -> pl.DataFrame:
        """Return the summary with other groups or other units of its intervals.

        Parameters
        ----------
        by
            Label columns of the table ``dialogues``: their combinations are the groups, in place
            of those of the run's own summary.
        cluster
            A column of the table ``dialogues``, for example the user: rows with the same value
            are one unit of the intervals, in place of the dialogue.

        Raises
        ------
        UsageError
            No such column, or too many groups.
        """
        from fastscore.results.groups import summarise_run

        return summarise_run(self, by, cluster)

    @property
    def summary_json(self) -> str:
        """The text of ``summary.json``: the signature, and the summary as objects.

        Raises
        ------
        RunError
            It is missing or not what was committed.
        """
        self._verify_beside_parts(SUMMARY_JSON)
        try:
            return (self.path / SUMMARY_JSON).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RunError(
                f"{self.path / SUMMARY_JSON}: missing or damaged ({error}).",
                "Run its `fastscore score` command again.",
            ) from error

    @property
    def rejects(self) -> pl.LazyFrame:
        """The rejected rows, in input order.

        Raises
        ------
        RunError
            They are not what was committed, or another version of fastscore wrote them.
        """
        rejects = self._scan(REJECTS)
        self._require(REJECTS, rejects, REJECTS_TABLE)
        return rejects

    @property
    def cut_texts(self) -> pl.LazyFrame:
        """The texts of which the embedder's model took the beginning only.

        One row each: its id, its tokens, how many the model takes (``limit``) and how it begins.
        Empty without an embedder.
        """
        if self.manifest.embedder is None:
            return pl.LazyFrame(schema=CUT_SCHEMA)
        # of several shards that have a text each lists it
        return self._scan(CUT_TEXTS).unique(["id_high", "id_low"], maintain_order=True)

    @property
    def tables(self) -> Mapping[str, pl.LazyFrame]:
        """Every table by name, scanned lazily, rows in input order."""
        return _Tables(tuple(self.manifest.tables), self.table)

    def table(self, name: str) -> pl.LazyFrame:
        """Scan one table.

        Raises
        ------
        UsageError
            The run has no table of this name.
        RunError
            A part is missing or not what was committed.
        """
        if name not in self.manifest.tables:
            raise UsageError(
                f"{self.path} has no table {name!r}.", nearest(name, self.manifest.tables)
            )
        return self._scan(name)

    def require_declared(self) -> None:
        """Refuse a run whose tables lack what this version's suite declares.

        Raises
        ------
        RunError
            Another version of fastscore wrote it.
        """
        for table in self.suite.tables:
            if table.name in self.manifest.tables:
                self._require(table.name, self.table(table.name), table.schema)
        self._require(REJECTS, self._scan(REJECTS), REJECTS_TABLE)

    def _require(self, folder: str, frame: pl.LazyFrame, declared: Iterable[str]) -> None:
        lacking = [name for name in declared if name not in frame.collect_schema()]
        if lacking:
            version = "|".join(self.signature.split("|")[:2])
            raise RunError(
                f"{self.path / folder}: no column {', '.join(map(repr, lacking))}: another version "
                f"of fastscore wrote the run ({version}).",
                "Score its logs again, into another folder or with --overwrite.",
            )

    def damaged(self) -> list[str]:
        """Return the files whose content is no longer what was committed, sorted."""
        committed = [Committed(**output) for output in self.manifest.outputs]
        receipts = {path: load_receipt(path) for path in self._receipt_paths()}
        whole = [receipt for receipt in receipts.values() if receipt is not None]
        damaged = [
            path.relative_to(self.path).as_posix()
            for path, receipt in receipts.items()
            if receipt is None
        ]
        if not damaged and not self._are_ours(whole):
            damaged.append(RECEIPTS)
        committed += (output for receipt in whole for output in receipt.outputs)
        damaged += [output.path for output in committed if not is_intact(self.path, output)]
        return sorted(damaged)

    def _scan(self, folder: str) -> pl.LazyFrame:
        parts = [part_name(index) for index in range(self.manifest.shards)]
        if self.verify and folder not in self._verified:
            self._read_receipts()
            # hashing releases the interpreter lock
            with ThreadPoolExecutor(available_processors()) as pool:
                list(pool.map(self._verify_part, (f"{folder}/{part}" for part in parts)))
            self._verified.add(folder)
        return pl.scan_parquet([self.path / folder / part for part in parts], glob=False)

    def _read_receipts(self) -> None:
        """Take in what was committed of all tables, once."""
        if self._committed_files:
            return
        receipts = []
        for path in self._receipt_paths():
            receipt = load_receipt(path)
            if receipt is None:
                raise _damaged(path)
            receipts.append(receipt)
        if not self._are_ours(receipts):
            raise _damaged(self.path / RECEIPTS)
        self._committed_files.update(
            {output.path: output for receipt in receipts for output in receipt.outputs}
        )

    def _receipt_paths(self) -> list[Path]:
        folder = self.path / RECEIPTS
        return [receipt_path(folder, "score", index) for index in range(self.manifest.shards)]

    def _are_ours(self, receipts: Iterable[Receipt]) -> bool:
        """Tell whether receipts are those that the manifest was made of, each in its place."""
        stated = self.manifest.parts_hash
        return not stated or hash_of_outputs(receipts) == stated

    def _verify_part(self, name: str) -> None:
        stated = self._committed_files.get(name)
        if stated is None or not is_intact(self.path, stated):
            raise _damaged(self.path / name)

    def _verify_beside_parts(self, name: str) -> None:
        committed = [Committed(**output) for output in self.manifest.outputs]
        stated = next((output for output in committed if output.path == name), None)
        if self.verify and (stated is None or not is_intact(self.path, stated)):
            raise _damaged(self.path / name)


@dataclass(frozen=True, slots=True)
class _Tables(Mapping[str, pl.LazyFrame]):
    """Tables by name, each opened when it is asked for."""

    names: tuple[str, ...]
    scan: Callable[[str], pl.LazyFrame]

    def __getitem__(self, name: str) -> pl.LazyFrame:
        if name not in self.names:
            raise KeyError(name)
        return self.scan(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def common_suite(runs: Sequence[Run]) -> Suite:
    """Return the suite of runs, with the own metrics that all of them have."""
    first, *others = (run.manifest.own_metrics for run in runs)
    ids = [{one["metric"]["id"] for one in declared} for declared in others]
    kept = [one for one in first if all(one["metric"]["id"] in found for found in ids)]
    name = runs[0].manifest.suite
    if not kept:
        return load_suite(name)
    from fastscore.suites.own_metrics import OwnMetric  # late: few runs have any

    return load_suite(name, [OwnMetric.from_json(name, one) for one in kept])


def _damaged(path: Path) -> RunError:
    return RunError(
        f"{path}: missing, or not what was committed.",
        "Run the same `fastscore score` command again: what is damaged is scored again.",
    )


def open_run(path: str | Path, *, verify: bool = True) -> Run:
    """Open a complete run.

    Parameters
    ----------
    path
        A run directory.
    verify
        Whether each file is compared with the hash that was committed before it is first read.

    Raises
    ------
    UsageError
        The folder holds no run.
    RunError
        The run is not complete, or its manifest is damaged.
    """
    check_path(path)
    folder = Path(path)
    manifest = read_manifest(folder)
    if manifest is None and (folder / RECEIPTS).is_dir():
        raise RunError(
            f"{folder}: the run's manifest.json is lost.",
            "Run its `fastscore score` command again: it is made anew from the receipts.",
        )
    if manifest is None:
        raise UsageError(
            f"{folder}: no run there (no manifest.json).",
            "Make one with `fastscore score SUITE INPUT... -o RUN`.",
        )
    if manifest.status != "complete":
        raise RunError(
            f"{folder}: the run is not complete.", "Run its `fastscore score` command again."
        )
    return Run(folder, manifest, verify)
