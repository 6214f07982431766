"""The summary of a run by tasks: parts are measured, then added up, and their sums merged.

Sums are files below the run's working folder: an engine sees their names.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from fastscore.run.commit import WORK, Receipt, names_of_parts, part_name
from fastscore.run.context import RunContext
from fastscore.run.engines.engine import Done, Engine
from fastscore.run.progress import StageProgress
from fastscore.run.tasks import GROUPS_PER_WORKER, SHARDS_PER_GROUP, commit_output
from fastscore.suites.base import Suite
from fastscore.suites.summary import (
    Added,
    Sizes,
    add_up_parts,
    joint_sizes,
    measure_parts,
    summarise,
)

DIALOGUES_PER_GROUP = 1 << 17


@dataclass(frozen=True, slots=True)
class Parts:
    """Committed parts of each table, named relative to the run, that one task adds up."""

    index: int
    tables: Mapping[str, tuple[str, ...]]

    def scan(self, run: Path) -> dict[str, pl.LazyFrame]:
        """Scan the parts of each table of a run."""
        return {
            table: pl.scan_parquet([run / name for name in names], glob=False)
            for table, names in self.tables.items()
        }


def parts_to_add_up(suite: Suite, receipts: Sequence[Receipt], workers: int) -> list[Parts]:
    """Split the parts of all shards into groups that one task adds up, in their order.

    A task holds the sums of each dialogue: a group has about `DIALOGUES_PER_GROUP` of them.
    """
    size = max(1, min(SHARDS_PER_GROUP, len(receipts) // (GROUPS_PER_WORKER * workers)))
    groups: list[list[Receipt]] = []
    dialogues = 0
    for receipt in receipts:
        more = receipt.counts.get("rows:dialogues", 0)
        if not groups or len(groups[-1]) == size or dialogues + more > DIALOGUES_PER_GROUP:
            groups.append([])
            dialogues = 0
        groups[-1].append(receipt)
        dialogues += more
    return [Parts(index, parts_of(suite, group)) for index, group in enumerate(groups)]


def parts_of(suite: Suite, receipts: Sequence[Receipt]) -> dict[str, tuple[str, ...]]:
    """Return the names of the parts of each table, as receipts state them."""
    return {table.name: tuple(names_of_parts(receipts, table.name)) for table in suite.tables}


def measure_tables(context: RunContext, parts: Parts) -> Sizes:
    """Measure what grids depend on, of some parts."""
    loaded = context.load()
    return measure_parts(loaded.suite, parts.scan(context.run), loaded.options)


def add_up_tables(context: RunContext, sizes: Sizes, parts: Parts) -> Receipt:
    """Add up some parts on the grids of tables of these sizes, and commit the sums."""
    loaded = context.load()
    added = add_up_parts(loaded.suite, parts.scan(context.run), loaded.options, sizes)
    outputs = []
    for number, of_tables in enumerate(added):
        for table, sums in of_tables.items():
            for name, frame in (("sums", sums.sums), ("reasons", sums.reasons)):
                folder = context.run / _sums_folder(number, table, name)
                path = folder / part_name(parts.index)
                outputs.append(commit_output(context, path, frame.collect(), {}))
    # the sums are read by the run that asked for them: no receipt is kept
    return Receipt(stage="summary", index=parts.index, fingerprint="", outputs=tuple(outputs))


def _sums_folder(number: int, table: str, name: str) -> str:
    """Return where the sums of a table are until the summary is made, relative to the run.

    `number` counts how often the suite's summary adds up metrics.
    """
    return f"{WORK}/summary/{number}/{table}/{name}"


def _added_tables(run: Path, sizes: Sizes, receipts: Sequence[Receipt]) -> list[dict[str, Added]]:
    """Return what the tables of a run add up to, by the receipts of `add_up_tables`."""

    def scan(folder: str) -> pl.LazyFrame:
        parts = [run / name for name in names_of_parts(receipts, folder)]
        return pl.scan_parquet(parts, glob=False)

    return [
        {
            table: Added(
                scan(_sums_folder(number, table, "sums")),
                scan(_sums_folder(number, table, "reasons")),
                size,
            )
            for table, size in of_tables.items()
        }
        for number, of_tables in enumerate(sizes)
    ]


def summary_by_tasks(
    engine: Engine,
    context: RunContext,
    groups: Sequence[Parts],
    tables: Mapping[str, pl.LazyFrame],
    progress: StageProgress,
) -> pl.DataFrame:
    """Have an engine's workers measure and add up parts; finish the summary from their sums.

    `tables` are those of all parts: what a suite does not add up by parts is computed from them.
    """

    def advanced(task: Callable[[Parts], Done]) -> Iterator[Done]:
        for done in engine.map(task, groups, lost=progress.lost):
            progress.advance({})
            yield done

    sizes = joint_sizes([*advanced(partial(measure_tables, context))])
    receipts = [*advanced(partial(add_up_tables, context, sizes))]
    added = _added_tables(context.run, sizes, receipts)
    loaded = context.load()
    return summarise(loaded.suite, tables, loaded.options, added=added)
