"""Scores that stay in memory."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from fastscore.results.summary_table import overview, overview_html
from fastscore.suites.base import Suite
from fastscore.suites.own_metrics import OwnMetric
from fastscore.suites.registry import load_suite


@dataclass(frozen=True, slots=True, repr=False)
class Scores:
    """Scores in memory.

    Parameters
    ----------
    suite
        The suite's name.
    tables
        One frame a table of the suite, rows in input order.
    summary
        One row a group and metric.
    rejects
        Rows that could not be used, each with its place and reason.
    signature
        The line that pins the numbers.
    cut_texts
        Texts of which the embedder's model took the beginning only, as in `Run.cut_texts`.
    notes
        Metrics that are null in every row with the columns that they lack, and columns that are
        null in some.
    own_metrics
        Metrics beside the suite's own.
    """

    suite: str
    tables: Mapping[str, pl.DataFrame]
    summary: pl.DataFrame
    rejects: pl.DataFrame
    signature: str
    cut_texts: pl.DataFrame
    notes: tuple[str, ...] = ()
    own_metrics: tuple[OwnMetric, ...] = ()

    def __repr__(self) -> str:
        return overview(*self._overview_facts(), self.signature)

    def _repr_html_(self) -> str:
        """Show what came out as a small table, in a notebook."""
        return overview_html(*self._overview_facts(), self.signature)

    def _overview_facts(
        self,
    ) -> tuple[str, Suite, pl.DataFrame, Mapping[str, pl.LazyFrame], dict[str, int]]:
        tables = {name: table.lazy() for name, table in self.tables.items()}
        title = f"Scores of {self.suite}"
        return title, load_suite(self.suite, self.own_metrics), self.summary, tables, self._counts()

    def _counts(self) -> dict[str, int]:
        counts = {name: table.height for name, table in self.tables.items()}
        return {**counts, "rejects": int(self.rejects["count"].sum())}
