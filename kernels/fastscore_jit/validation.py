"""Checks of array arguments. Errors state the value found, the expected one and the fix."""

from typing import Any

import numpy as np
import numpy.typing as npt


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view, so that each kernel is compiled for one type only."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_vector(name: str, values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a one-dimensional contiguous read-only array of ``dtype``.

    Integers may be widened, or narrowed if every value fits. Floats are never converted to
    integers.
    """
    array = np.asarray(values)
    wanted = np.dtype(dtype)
    if array.ndim != 1:
        raise ValueError(f"`{name}` has {array.ndim} dimensions; expected 1")
    if array.dtype != wanted:
        safe = array.size == 0 or np.can_cast(array.dtype, wanted, casting="safe")
        if not safe and array.dtype.kind in "iu" and wanted.kind in "iu":
            limits = np.iinfo(wanted)
            safe = int(array.min()) >= limits.min and int(array.max()) <= limits.max
        if not safe:
            raise TypeError(f"`{name}` has dtype {array.dtype}; expected {wanted}: cast it first")
    return read_only(np.ascontiguousarray(array, dtype=wanted))


def as_offsets(name: str, offsets: npt.ArrayLike, length: int) -> npt.NDArray[np.int64]:
    """Return int64 offsets that start at 0 or later, never decrease and end within ``length``."""
    array: npt.NDArray[np.int64] = as_vector(name, offsets, np.int64)
    if array.size == 0:
        raise ValueError(f"`{name}` is empty; expected one more offset than there are groups")
    if array[0] < 0 or array[-1] > length:
        raise ValueError(
            f"`{name}` runs from {array[0]} to {array[-1]}; expected to stay within 0 and {length}"
        )
    falls = np.flatnonzero(array[1:] < array[:-1])
    if falls.size:
        at = int(falls[0]) + 1
        raise ValueError(
            f"`{name}` falls from {array[at - 1]} to {array[at]} at position {at}; "
            "expected offsets that never fall"
        )
    return array


def as_rows(
    name: str, rows: npt.ArrayLike, length: int, *, least: int = 0
) -> npt.NDArray[np.int64]:
    """Return int64 row numbers, each from ``least`` to ``length - 1``."""
    array: npt.NDArray[np.int64] = as_vector(name, rows, np.int64)
    if array.size and (array.min() < least or array.max() >= length):
        at = int(np.flatnonzero((array < least) | (array >= length))[0])
        raise IndexError(
            f"`{name}` holds {array[at]} at position {at}; expected row numbers from {least} to "
            f"{length - 1}"
        )
    return array


def same_length(name_a: str, length_a: int, name_b: str, length_b: int) -> None:
    """Refuse two columns of different length."""
    if length_a != length_b:
        raise ValueError(
            f"`{name_a}` has {length_a} rows and `{name_b}` has {length_b}; expected as many"
        )


def as_ranges(
    name_a: str, starts: npt.ArrayLike, name_b: str, ends: npt.ArrayLike, length: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return int64 starts and ends of ranges within ``length``."""
    first: npt.NDArray[np.int64] = as_vector(name_a, starts, np.int64)
    last: npt.NDArray[np.int64] = as_vector(name_b, ends, np.int64)
    same_length(name_a, first.size, name_b, last.size)
    bad = np.flatnonzero((first < 0) | (last < first) | (last > length))
    if bad.size:
        raise ValueError(
            f"`{name_a}` and `{name_b}` hold {first[bad[0]]} and {last[bad[0]]} at position "
            f"{bad[0]}; expected ranges within 0 and {length}"
        )
    return first, last
