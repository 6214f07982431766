"""Which rows count together: the combinations of labels that dialogues have, called cells.

Rows are added up once, by cell; the few sums of cells are then added up by each label's values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import number_hashes, number_texts
from fastscore_kernels.sums import ExactSums
from fastscore_machine.arrays import Longs

from fastscore.suites.ragged import number_keys

Hashes = npt.NDArray[np.uint64]

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Group:
    """The values of a label, and which cells have them.

    Parameters
    ----------
    values
        The distinct values, ascending; the one value None where all cells count together.
    order : int64 (n_labelled,)
        The cells that have a value, those of one value side by side in the order of `values`.
    starts : int64 (n_values,)
        Where in `order` the cells of each value begin.
    """

    values: Sequence[str | None]
    order: Longs
    starts: Longs

    def add_counts(self, of_cells: Longs) -> Longs:
        """Add up the counts of each value's cells, which are the last axis."""
        return np.add.reduceat(of_cells[..., self.order], self.starts, axis=-1)

    def add_sums(self, of_cells: ExactSums) -> ExactSums:
        """Add up the sums of each value's cells."""
        sums = ExactSums(len(self.values), of_cells.bits)
        sums.limbs = np.add.reduceat(of_cells.limbs[self.order], self.starts)
        least, largest = of_cells.extremes[self.order].T
        sums.extremes[:, 0] = np.minimum.reduceat(least, self.starts)
        sums.extremes[:, 1] = np.maximum.reduceat(largest, self.starts)
        return sums


@dataclass(frozen=True, slots=True)
class LabelCells:
    """The cells, and each dialogue's.

    Parameters
    ----------
    n_cells
        How many there are. The last is of rows of no known dialogue, and has no label.
    groups
        By name the labels that some dialogue has; without any all rows are of one cell.
    key
        The columns that name a dialogue together.
    hashes, numbers
        Hashes of the dialogues' keys, ascending and distinct; their cells.
    seed
        What the keys were hashed with.
    """

    n_cells: int
    groups: Mapping[str, Group]
    key: Sequence[str]
    hashes: Hashes
    numbers: Longs
    seed: int

    @classmethod
    def of_dialogues(
        cls, dialogues: pl.DataFrame, key: Sequence[str], labels: Sequence[str]
    ) -> "LabelCells":
        """Give the combinations of labels numbers; of the rows of one key the first counts."""
        labels = [name for name in labels if dialogues[name].null_count() < dialogues.height]
        if not labels:
            return cls(1, {}, key, np.zeros(0, np.uint64), np.zeros(0, np.int64), 0)
        hashes, firsts, seed = _hash_distinct(dialogues.select(key))
        encoded = {column.name: _encode(column) for column in dialogues.select(labels)[firsts]}
        numbers = np.zeros(firsts.size, np.int64)
        for values, codes in encoded.values():
            # numbered anew at each label: the products stay below the square of the rows
            numbers = number_keys(numbers * (len(values) + 1) + codes)
        n_cells = int(numbers.max()) + 2
        groups: dict[str, Group] = {}
        for name, (values, codes) in encoded.items():
            of_cells = np.full(n_cells, len(values))
            of_cells[numbers] = codes
            order = np.argsort(of_cells, kind="stable")
            bounds = np.searchsorted(of_cells[order], np.arange(len(values) + 1))
            if values:
                groups[name] = Group(values, order[: bounds[-1]], bounds[:-1])
        ascending = np.argsort(hashes)
        return cls(n_cells, groups, key, hashes[ascending], numbers[ascending], seed)

    @property
    def whole(self) -> Group:
        """All cells together."""
        return Group((None,), np.arange(self.n_cells), np.zeros(1, np.int64))

    def of_rows(self, rows: pl.DataFrame) -> Longs:
        """Return the cell of each row."""
        if not self.groups:
            return np.zeros(rows.height, np.int64)
        columns = _hash_columns(rows.select(self.key), self.seed)
        begins = np.ones(rows.height, np.bool_)
        begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        starts = np.flatnonzero(begins)
        of_runs = _combine([column[starts] for column in columns])
        # sought in ascending order, each is found near the one before; one beyond all but the last
        # hash is compared with the last
        order = np.argsort(of_runs)
        places = np.empty(of_runs.size, np.int64)
        places[order] = np.searchsorted(self.hashes[:-1], of_runs[order])
        cells = np.where(self.hashes[places] == of_runs, self.numbers[places], self.n_cells - 1)
        return np.repeat(cells, np.diff(starts, append=rows.height))


def _encode(labels: pl.Series) -> tuple[list[str], Longs]:
    """Return the distinct values, ascending, and each row's place among them or, null, after."""
    texts = labels.cast(pl.String)
    numbers, firsts = number_texts(texts)
    found = texts[firsts].to_list()
    values = sorted(value for value in found if value is not None)
    places = {value: place for place, value in enumerate(values)}
    return values, np.array([places.get(value, len(values)) for value in found])[numbers]


def _hash_columns(keys: pl.DataFrame, seed: int) -> list[Hashes]:
    return [column.to_numpy() for column in keys.select(pl.all().hash(seed))]


def _combine(columns: Sequence[Hashes]) -> Hashes:
    """Return one hash for each row of hashes."""
    hashes = columns[0]
    for column in columns[1:]:
        hashes = hashes * _HASH_FACTOR + column
    return hashes


def _hash_distinct(keys: pl.DataFrame) -> tuple[Hashes, Longs, int]:
    """Return a hash for each distinct key, none of two, the row it is first in, and the seed."""
    seed = 0
    while True:
        hashes = _combine(_hash_columns(keys, seed))
        numbers, firsts = number_hashes(hashes)
        if firsts.size == keys.height or keys[firsts[numbers]].equals(keys):
            return hashes[firsts], firsts, seed
        seed += 1
