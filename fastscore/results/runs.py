"""Opening a run directory and reading what it committed."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fastscore.errors import RunError, UsageError, nearest
from fastscore.run.commit import Committed
from fastscore.run.layout import RECEIPTS, REJECTS, SUMMARY_PARQUET, part_name
from fastscore.run.manifest import Manifest, read_manifest
from fastscore.run.receipts import is_intact, load_receipt, receipt_path


@dataclass(frozen=True, slots=True)
class Run:
    """A complete run.

    Parameters
    ----------
    path
        The run directory.
    manifest
        Its manifest.
    """

    path: Path
    manifest: Manifest

    @property
    def signature(self) -> str:
        """The line that pins the run's numbers."""
        return self.manifest.signature

    @property
    def summary(self) -> pl.DataFrame:
        """The summary, one row a group and metric."""
        try:
            return pl.read_parquet(self.path / SUMMARY_PARQUET, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(
                f"{self.path / SUMMARY_PARQUET}: missing or damaged ({error}).",
                "Run its `fastscore score` command again.",
            ) from error

    @property
    def rejects(self) -> pl.LazyFrame:
        """The rejected rows, in input order."""
        return self._scan(REJECTS)

    @property
    def tables(self) -> dict[str, pl.LazyFrame]:
        """Every table by name, scanned lazily, rows in input order."""
        return {name: self._scan(name) for name in self.manifest.tables}

    def table(self, name: str) -> pl.LazyFrame:
        """Scan one table.

        Raises
        ------
        UsageError
            The run has no table of this name.
        """
        if name not in self.manifest.tables:
            raise UsageError(
                f"{self.path} has no table {name!r}.", nearest(name, self.manifest.tables)
            )
        return self._scan(name)

    def damaged(self) -> list[str]:
        """Return the files whose content is no longer what was committed, sorted."""
        committed = [Committed(**output) for output in self.manifest.outputs]
        damaged = []
        for index in range(self.manifest.shards):
            path = receipt_path(self.path / RECEIPTS, "score", index)
            receipt = load_receipt(path)
            if receipt is None:
                damaged.append(path.relative_to(self.path).as_posix())
            else:
                committed += receipt.outputs
        damaged += [output.path for output in committed if not is_intact(self.path, output)]
        return sorted(damaged)

    def _scan(self, folder: str) -> pl.LazyFrame:
        parts = [part_name(index) for index in range(self.manifest.shards)]
        return pl.scan_parquet([self.path / folder / part for part in parts], glob=False)


def open_run(path: str | Path) -> Run:
    """Open a complete run.

    Parameters
    ----------
    path
        A run directory.

    Raises
    ------
    UsageError
        The folder holds no run.
    RunError
        The run is not complete.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    if manifest is None:
        raise UsageError(
            f"{folder}: no run there (no manifest.json).",
            "Make one with `fastscore score SUITE INPUT... -o RUN`.",
        )
    if manifest.status != "complete":
        raise RunError(
            f"{folder}: the run is not complete.", "Run its `fastscore score` command again."
        )
    return Run(folder, manifest)
