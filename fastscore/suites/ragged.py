"""Rows of varying length as flat arrays: values, and offsets at which each row begins."""

import numpy as np
import numpy.typing as npt
from fastscore_kernels import number_hashes
from fastscore_kernels import ragged as kernels
from fastscore_machine.arrays import Indices, Reals

Ragged = tuple[npt.NDArray[np.int64], Indices]


def offsets_of(sizes: npt.NDArray[np.integer]) -> Indices:
    """Return where rows of these sizes begin and end."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def group_rows(owners: Indices, n_owners: int) -> Ragged:
    """Return the rows of each owner, in order."""
    order, offsets = kernels.group_rows(owners, n_owners)
    return order, offsets


def first_of_each(keys: Indices) -> Indices:
    """Return the rows in which each key stands first, ascending."""
    firsts: Indices = number_hashes(keys.astype(np.uint64))[1]
    return firsts


def last_of_each(keys: Indices) -> Indices:
    """Return the last rows of runs of equal keys, ascending."""
    return np.flatnonzero(np.diff(keys, append=keys[-1:] - 1))


def number_keys(keys: Indices) -> Indices:
    """Return the number of each key, equal ones having one, by first appearance."""
    numbers: Indices = number_hashes(keys.astype(np.uint64))[0]
    return numbers


def take(rows_of: Ragged, rows: Indices) -> Ragged:
    """Return some of the rows, repeated or left out as wanted; a negative one is empty."""
    values, offsets = rows_of
    sizes = np.where(rows >= 0, np.diff(np.append(offsets, offsets[-1]))[rows], 0)
    return take_ranges(values, offsets[np.maximum(rows, 0)], sizes)


def take_ranges(values: npt.NDArray[np.int64], starts: Indices, sizes: Indices) -> Ragged:
    """Return ranges of values, each a row."""
    taken, offsets = kernels.take_ranges(values, starts, sizes)
    return taken, offsets


def sum_by(owners: Indices, values: Reals, n_owners: int) -> Reals:
    """Add values by owner from the least up, so that their order does not matter."""
    order = np.lexsort((values, owners))
    sums = np.bincount(owners[order], weights=values[order], minlength=n_owners)
    # without any value the result is of integers
    return sums.astype(np.float64)
