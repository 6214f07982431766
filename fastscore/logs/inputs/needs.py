"""The columns of a suite, which of them all metrics need, and where they should stand."""

from collections.abc import Iterator
from dataclasses import dataclass

from fastscore.logs.inputs.column_map import EACH
from fastscore.suites.declarations import ALL_METRICS, Column, Source


@dataclass(frozen=True, slots=True)
class Need:
    """A column and where it should stand.

    Parameters
    ----------
    name
        Its name.
    holder
        The column whose array's objects hold it, None where rows do.
    column
        Its declaration.
    """

    name: str
    holder: Column | None
    column: Column

    @property
    def place(self) -> str:
        """Its name with the array that holds it."""
        return f"{self.holder.name}{EACH}{self.name}" if self.holder else self.name


def all_columns(source: Source) -> Iterator[Need]:
    """Yield the columns of a source, arrays before what they hold."""
    for column in source.columns:
        yield Need(column.name, None, column)
        for item in column.items:
            yield Need(item.name, column, item)


def arrays_of(source: Source) -> tuple[Column, ...]:
    """Return the columns that hold arrays of objects."""
    return tuple(column for column in source.columns if column.items)


def needs_of(source: Source) -> tuple[Need, ...]:
    """Return what all metrics of a suite need, arrays before what they hold."""
    return tuple(need for need in all_columns(source) if need.column.needed_by == ALL_METRICS)


def list_asked_for(source: Source) -> tuple[Need, ...]:
    """Return what else the user said the place of."""
    return tuple(
        need
        for need in all_columns(source)
        if need.column.path
        and not source.asked_for.isdisjoint((need.name, need.place))
        and need.column.needed_by != ALL_METRICS
    )
