"""Which rows count together: the combinations of labels that dialogues have, called strata.

Rows are added up once, by stratum; the few sums of strata are then added up by each label's values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import number_hashes, number_texts
from fastscore_kernels.sums import ExactSums
from fastscore_machine.arrays import Longs

from fastscore.suites.ragged import first_of_each, number_keys
from fastscore.suites.table_batches import Rows, batches_of, collected

Hashes = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int32]

_HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Group:
    """The values of a label, and which strata have them.

    Parameters
    ----------
    values
        The distinct values, ascending; the one value None where all strata count together.
    order : int64 (n_labelled,)
        The strata that have a value, those of one value side by side in the order of `values`.
    starts : int64 (n_values,)
        Where in `order` the strata of each value begin.
    """

    values: Sequence[str | None]
    order: Longs
    starts: Longs

    def add_counts(self, of_strata: Longs) -> Longs:
        """Add up the counts of each value's strata, which are the last axis."""
        return np.add.reduceat(of_strata[..., self.order], self.starts, axis=-1)

    def add_sums(self, of_strata: ExactSums) -> ExactSums:
        """Add up the sums of each value's strata."""
        sums = ExactSums(len(self.values), of_strata.bits)
        sums.limbs = np.add.reduceat(of_strata.limbs[self.order], self.starts)
        least, largest = of_strata.extremes[self.order].T
        sums.extremes[:, 0] = np.minimum.reduceat(least, self.starts)
        sums.extremes[:, 1] = np.maximum.reduceat(largest, self.starts)
        return sums


class _Combinations:
    """The combinations of labels met so far, numbered by first appearance.

    Parameters
    ----------
    labels
        The label columns.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.places: dict[str, dict[str | None, int]] = {name: {} for name in labels}
        self._numbers: dict[tuple[int, ...], int] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._numbers)

    def of_rows(self, rows: pl.DataFrame) -> Numbers:
        """Return the number of each row's combination."""
        combined = np.zeros(rows.height, np.int64)
        codes = []
        for name, places in self.places.items():
            texts = rows[name].cast(pl.String)
            numbers, firsts = number_texts(texts)
            found = [places.setdefault(text, len(places)) for text in texts[firsts].to_list()]
            codes.append(np.array(found, np.int64)[numbers])
            # numbered anew at each label: the products stay small
            combined = number_keys(combined * len(places) + codes[-1])
        firsts = first_of_each(combined)
        combinations = zip(*(of_label[firsts].tolist() for of_label in codes), strict=True)
        known = self._numbers
        found = [known.setdefault(each, len(known)) for each in combinations]
        return np.array(found, np.int32)[combined]

    def groups(self, used: Longs) -> dict[str, Group]:
        """Return by label the values of the combinations that are used, which are the strata."""
        table = np.array(list(self._numbers), np.int64)[used]
        groups: dict[str, Group] = {}
        for (name, places), codes in zip(self.places.items(), table.T, strict=True):
            texts = list(places)
            of_strata = [texts[code] for code in codes.tolist()]
            values = sorted({text for text in of_strata if text is not None})
            ranks: dict[str | None, int] = {value: rank for rank, value in enumerate(values)}
            # after the values: strata without one, and the one of no known dialogue
            ranked = np.array([ranks.get(text, len(values)) for text in (*of_strata, None)])
            order = np.argsort(ranked, kind="stable")
            bounds = np.searchsorted(ranked[order], np.arange(len(values) + 1))
            if values:
                groups[name] = Group(values, order[: bounds[-1]], bounds[:-1])
        return groups


@dataclass(frozen=True, slots=True)
class _Dialogues:
    """Each dialogue's stratum.

    Parameters
    ----------
    key
        The columns that name a dialogue together.
    hashes, numbers
        Hashes of the dialogues' keys, ascending and distinct; their strata.
    seed
        What the keys were hashed with.
    others
        The stratum of rows of no known dialogue.
    """

    key: Sequence[str]
    hashes: Hashes
    numbers: Numbers
    seed: int
    others: int

    def of_rows(self, rows: pl.DataFrame) -> Longs:
        """Return the stratum of each row's dialogue."""
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
        strata = np.where(self.hashes[places] == of_runs, self.numbers[places], self.others)
        return np.repeat(strata.astype(np.int64), np.diff(starts, append=rows.height))


@dataclass(frozen=True, slots=True)
class Strata:
    """The strata, and which rows are of each.

    Parameters
    ----------
    n_strata
        How many there are. The last is of rows of no known dialogue, and has no label.
    groups
        By name the labels that some dialogue has; without any all rows are of one stratum.
    of_rows
        Returns the stratum of each row, int64 (n_rows,).
    """

    n_strata: int
    groups: Mapping[str, Group]
    of_rows: Callable[[pl.DataFrame], Longs]

    @classmethod
    def of_labels(cls, rows: Rows, labels: Sequence[str]) -> "Strata":
        """Give the combinations of labels numbers where rows carry them: nothing is kept of one."""
        labels = _given(rows, labels)
        if not labels:
            return cls(1, {}, _all_alike)
        combinations = _Combinations(labels)
        for batch in batches_of(rows.select(labels)):
            combinations.of_rows(batch)
        groups = combinations.groups(np.arange(combinations.count))
        return cls(
            combinations.count + 1,
            groups,
            lambda batch: combinations.of_rows(batch).astype(np.int64),
        )

    @classmethod
    def of_dialogues(cls, dialogues: Rows, key: Sequence[str], labels: Sequence[str]) -> "Strata":
        """Give the combinations of labels numbers; of the rows of one key the first counts.

        Read a batch at a time: of a dialogue a hash and a number are kept.
        """
        labels = _given(dialogues, labels)
        if not labels:
            return cls(1, {}, _all_alike)
        combinations = _Combinations(labels)
        hashes, firsts, strata, seed = _read_distinct(dialogues, key, combinations)
        numbers = strata[firsts]
        used = np.flatnonzero(np.bincount(numbers, minlength=combinations.count))
        if used.size < combinations.count:
            # some are of later rows of a key alone
            numbers = np.searchsorted(used, numbers).astype(np.int32)
        of_dialogues = _Dialogues(key, hashes, numbers, seed, used.size)
        return cls(used.size + 1, combinations.groups(used), of_dialogues.of_rows)

    @property
    def whole(self) -> Group:
        """All strata together."""
        return Group((None,), np.arange(self.n_strata), np.zeros(1, np.int64))


def _given(rows: Rows, labels: Sequence[str]) -> Sequence[str]:
    """Return the labels that some row has."""
    if not labels:
        return ()
    found = collected(rows.select(pl.col(labels).is_not_null().any()))
    return [name for name in labels if found[name].item()]


def _all_alike(rows: pl.DataFrame) -> Longs:
    return np.zeros(rows.height, np.int64)


def _hash_columns(keys: pl.DataFrame, seed: int) -> list[Hashes]:
    return [column.to_numpy() for column in keys.select(pl.all().hash(seed))]


def _combine(columns: Sequence[Hashes]) -> Hashes:
    """Return one hash for each row of hashes."""
    hashes = columns[0]
    for column in columns[1:]:
        hashes = hashes * _HASH_FACTOR + column
    return hashes


def _read_distinct(
    dialogues: Rows, key: Sequence[str], combinations: _Combinations
) -> tuple[Hashes, Longs, Numbers, int]:
    """Return the hashes of keys, ascending, their first rows, each row's stratum, and the seed."""
    asked = dialogues.select(*dict.fromkeys((*key, *combinations.places)))
    seed = 0
    while True:
        read = [
            (
                _combine(_hash_columns(batch.select(key), seed)),
                combinations.of_rows(batch).astype(np.int32),
            )
            for batch in batches_of(asked)
        ]
        hashes = np.concatenate([of_batch for of_batch, _ in read])
        strata = np.concatenate([of_batch for _, of_batch in read])
        del read
        firsts = np.argsort(hashes)
        ascending = hashes[firsts]
        repeats = ascending[1:] == ascending[:-1]
        if not repeats.any():
            return ascending, firsts, strata, seed
        if _are_of_one_key(dialogues.select(key), hashes, ascending[1:][repeats]):
            begins = np.concatenate(([True], ~repeats))
            return ascending[begins], np.argsort(hashes, kind="stable")[begins], strata, seed
        seed += 1


def _are_of_one_key(keys: Rows, hashes: Hashes, repeated: Hashes) -> bool:
    """Tell whether of each repeated hash all keys are alike."""
    is_repeated = np.isin(hashes, repeated)
    kept, begin = [], 0
    for batch in batches_of(keys):
        kept.append(batch.filter(pl.Series(is_repeated[begin : begin + batch.height])))
        begin += batch.height
    found = pl.concat(kept)
    numbers, firsts = number_hashes(hashes[is_repeated])
    return bool(found[firsts[numbers]].equals(found))
