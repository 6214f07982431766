"""A run for users, who can look at it and plot it: what `open_run` and `score` return."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, NoReturn

import polars as pl

from fastscore.errors import UsageError, did_you_mean, names_arguments
from fastscore.results import runs
from fastscore.settings.extras import explained
from fastscore.settings.options import check_arguments

if TYPE_CHECKING:
    from pandas import DataFrame as PandasFrame
    from pyarrow import Table as ArrowTable

    from fastscore.api.arguments import TableName
    from fastscore.results.plots import Picture

_INTERNAL = {
    "copy",
    "damaged",
    "embedder",
    "first_reject",
    "folder",
    "frame",
    "lazy_tables",
    "require_declared",
    "scores",
    "summary_json",
    "verify",
}


class _Listed(type):
    """Lists what is for users in completions of the class too."""

    def __dir__(cls) -> list[str]:
        return [name for name in type.__dir__(cls) if name[0] != "_" and name not in _INTERNAL]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Run(runs.Run, metaclass=_Listed):
    """A complete run: a run directory, or scores in memory.

    Parameters
    ----------
    path
        The run directory, or its address in an object store. In memory: what was scored.
    manifest
        The run's manifest.
    verify
        Whether each file is compared with its committed hash before it is first read.
    scores
        The scores in memory. None for a run directory.
    frame
        Of a run directory: the frame or rows that were scored, in the process that did.
    copy
        Of a run in an object store: its files that were fetched to the cache.
    embedder
        The function that embedded the texts, in the process that scored with one.

    Examples
    --------
    >>> run = fastscore.open_run("run")
    >>> run.scan("steps").select("U_step").mean().collect()
    >>> fastscore.summary(run, by="miner_uid").select("value", "metric", "mean").head(3)
    """

    def __dir__(self) -> list[str]:
        return dir(type(self))

    def __repr__(self) -> str:
        from fastscore.results.summary_table import overview

        return overview(self)

    def _repr_html_(self) -> str:
        """Show what came out as a small table, in a notebook."""
        from fastscore.results.summary_table import overview_html

        return overview_html(self)

    @names_arguments
    def plot(self, metric: str | None = None, *, by: str | None = None) -> "Picture":
        """Draw the histogram of a metric, or its means by a label with intervals.

        This needs the extra `plots`.

        Parameters
        ----------
        metric
            The metric's id, of any table.
        by
            A label of dialogues, such as ``"miner_uid"``: a mean for each of its values.

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it, and ``savefig("figure.pdf")`` writes it.
        """
        check_arguments(Run.plot, locals())
        if metric is None:
            known = [each.id for each in self.suite.metrics if each.role == "headline"]
            raise UsageError(
                "No metric is named.",
                f"For example: run.plot({known[0]!r}). Headline metrics: {', '.join(known)}."
                if known
                else 'For example: run.plot("METRIC"). run.summary lists the metrics.',
            )
        with explained("A picture"):
            from fastscore.results.plots import plot_metric

        return plot_metric(self, metric, by=by)

    if not TYPE_CHECKING:  # a checker refuses a misspelt name

        def __getattr__(self, name: str) -> NoReturn:
            """Say where a table or a function of a run is, or what may be meant."""
            import fastscore

            found = f"A run has no attribute {name!r}."
            known = dir(type(self))
            if name[0] != "_" and name not in (*_INTERNAL, *known):
                if name in self.tables:
                    found += f" Type run.tables[{name!r}]."
                elif name in fastscore.__all__:
                    found += f" Type fastscore.{name}(run, ...)."
                else:
                    found += f" {did_you_mean(name, known)}"
            raise AttributeError(found, name=name, obj=self)

    if TYPE_CHECKING:  # a checker knows the names of the package's own tables

        @property
        def tables(self) -> Mapping[TableName, pl.DataFrame]: ...  # type: ignore[override]  # noqa: D102

        def scan(self, name: TableName) -> pl.LazyFrame: ...  # type: ignore[override]  # noqa: D102

        def to_pandas(self, table: TableName = "dialogues") -> PandasFrame: ...  # type: ignore[override]  # noqa: D102

        def to_arrow(self, table: TableName = "dialogues") -> ArrowTable: ...  # type: ignore[override]  # noqa: D102


@names_arguments
def open_run(path: str | PathLike[str], *, verify: bool = True) -> Run:
    """Open a complete run.

    Parameters
    ----------
    path
        A run directory, or an address such as ``s3://bucket/run``.
    verify
        If True, each file is compared with its committed hash before it is first read.

    Raises
    ------
    UsageError
        The folder or address contains no run.
    RunError
        The run is not complete, or its manifest is damaged.

    Examples
    --------
    >>> fastscore.open_run("run").tables["dialogues"].columns
    """
    found = runs.open_run(path, verify=verify)
    return Run(**{each.name: getattr(found, each.name) for each in fields(found)})
