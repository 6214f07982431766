"""Numbers for the distinct texts of a column, or rows, so that each is worked on once."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices
from fastscore_jit.arrow import TextRows, join_rows
from fastscore_kernels import number_hashes, number_texts

_MOST = 1 << 63


def distinct(values: pl.Series) -> tuple[Indices, pl.Series]:
    """Give the distinct texts of a column numbers, by first appearance.

    Returns
    -------
    tuple
        Each row's number, int64 (n,), and the distinct texts; a null is a text of its own.
    """
    codes, firsts = number_texts(values)
    return codes, values[firsts]


def distinct_of_columns(columns: Sequence[TextRows]) -> tuple[list[Indices], pl.Series]:
    """Give the distinct texts of some columns numbers, by first appearance.

    Returns
    -------
    tuple
        For each column each row's number, int64 (n,); and the distinct texts of all, which should
        be few: they are copied one by one. A null is a text of its own.
    """
    rows = join_rows(columns)
    codes, firsts = number_texts(rows)
    ends = np.cumsum([len(column) for column in columns])
    return np.split(codes, ends[:-1]), pl.Series(rows.take(firsts).to_list(), dtype=pl.String)


def distinct_numbers(numbers: Indices) -> tuple[Indices, Indices]:
    """Return what `np.unique` does of many numbers of which few are distinct.

    Returns
    -------
    tuple
        The distinct numbers, ascending, and the place of each row's among them, int64 (n,).
    """
    codes, firsts = number_hashes(numbers.view(np.uint64))
    found = numbers[firsts]
    order = np.argsort(found)
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return found[order], places[codes]


def distinct_rows(columns: Sequence[Indices]) -> tuple[Indices, Indices]:
    """Give distinct rows of numbers that are not negative numbers, by first appearance.

    Parameters
    ----------
    columns
        At least one, int64 (n,) each; the most numbers of two neighbours multiply to an int64.

    Returns
    -------
    tuple
        Each row's number, int64 (n,), and the first row of each number, ascending.
    """
    numbers, most = columns[0], int(columns[0].max(initial=0)) + 1
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if most * size > _MOST:
            numbers, firsts = number_hashes(numbers.astype(np.uint64))
            most = len(firsts)
        numbers, most = numbers * size + column, most * size
    codes, firsts = number_hashes(numbers.astype(np.uint64))
    return codes, firsts
