"""Distinct values by number, and rows of varying length as flat arrays with offsets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_kernels import number_hashes, number_texts, take_ranges

Ragged = tuple[npt.NDArray[np.int64], Indices]

_MOST = 1 << 63


def factorize(values: pl.Series) -> tuple[Indices, pl.Series]:
    """Give the distinct texts of a column numbers, by first appearance."""
    codes, firsts = number_texts(values)
    return codes, values[firsts]


def factorize_rows(columns: Sequence[Indices]) -> tuple[Indices, Indices]:
    """Give distinct rows of numbers that are not negative numbers, by first appearance."""
    numbers, most = columns[0], int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if most * size > _MOST:
            numbers, firsts = number_hashes(numbers.astype(np.uint64))
            most = len(firsts)
        numbers, most = numbers * size + column, most * size
    codes, firsts = number_hashes(numbers.astype(np.uint64))
    return codes, firsts


def row_numbers(frame: pl.DataFrame, columns: Sequence[str]) -> Indices:
    """Give distinct rows of some columns numbers, by first appearance; int64 (n,)."""
    rows = frame.select(columns)
    distinct = rows.unique(maintain_order=True).with_columns(pl.int_range(pl.len()).alias(":row"))
    found = rows.join(distinct, on=columns, nulls_equal=True, how="left", maintain_order="left")
    numbers: Indices = found[":row"].to_numpy()
    return numbers


def offsets_of(sizes: npt.NDArray[np.integer]) -> Indices:
    """Return where rows of these sizes begin and end."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def group_offsets(rows: Indices, size: int) -> Indices:
    """Return the offsets of the runs of ascending row numbers below ``size``, int64 (size + 1,)."""
    return offsets_of(np.bincount(rows, minlength=size))


def counts_of(rows: Indices, size: int) -> Indices:
    """Count each row number below ``size``, int64 (size,)."""
    return np.bincount(rows, minlength=size).astype(np.int64, copy=False)


def place_in_group(group: npt.NDArray[Any]) -> Indices:
    """Return for each row its place, from 0, in the run of equal values around it."""
    begins = np.zeros(len(group), np.int64)
    begins[1:] = np.where(group[1:] != group[:-1], np.arange(1, len(group)), 0)
    places: Indices = np.arange(len(group)) - np.maximum.accumulate(begins)
    return places


def first_of_each(keys: Indices) -> Indices:
    """Return the first row of each key, ascending."""
    firsts: Indices = number_hashes(keys.astype(np.uint64))[1]
    return firsts


def take(rows_of: Ragged, rows: Indices) -> Ragged:
    """Return some of the rows, repeated or left out as wanted; a negative one is empty."""
    values, offsets = rows_of
    sizes = np.where(rows >= 0, np.diff(np.append(offsets, offsets[-1]))[rows], 0)
    taken, bounds = take_ranges(values, offsets[np.maximum(rows, 0)], sizes)
    return taken, bounds
