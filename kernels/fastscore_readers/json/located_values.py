"""Located JSON values as column values: integers, doubles, texts, Arrow string views, changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.validation import read_only

from fastscore_readers.json._jsonl_values import (
    EXACT,
    INEXACT,
    OVERFLOW,
    mark_changes,
    parse_floats,
    parse_integers,
    unescape_strings,
)
from fastscore_readers.json._string_views import plain_bytes, plain_string_views, string_views
from fastscore_readers.json.tokens import ABSENT

__all__ = [
    "EXACT",
    "INEXACT",
    "OVERFLOW",
    "PlainViews",
    "changes",
    "floats",
    "integers",
    "plain_views",
    "unescaped",
    "views",
]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_COPIED_PART = 4
"""Strings are copied where they are less than one such part of the data."""


def integers(data: Bytes, starts: Longs, ends: Longs) -> tuple[Longs, Bytes]:
    """Parse byte ranges as decimal integers.

    Returns
    -------
    tuple of arrays
        Values, int64 (n,), and states, uint8 (n,): `EXACT`, `OVERFLOW` for digits that do not fit
        int64, `INEXACT` for anything but ``-?[0-9]+``; the value is 0 unless exact.
    """
    values, states = np.empty(starts.size, np.int64), np.empty(starts.size, np.uint8)
    parse_integers(*_ranges(data, starts, ends), values, states)
    return values, states


def floats(data: Bytes, starts: Longs, ends: Longs) -> tuple[npt.NDArray[np.float64], Bytes]:
    """Parse byte ranges that hold JSON numbers as doubles.

    Returns
    -------
    tuple of arrays
        Values, float64 (n,), and states, uint8 (n,): `EXACT` where the value is the nearest
        double, `INEXACT` where the caller must parse the text (more than 18 digits, a mantissa
        above 2^53, a power of ten beyond 22, NaN, Infinity); the value is 0 there.
    """
    values, states = np.empty(starts.size, np.float64), np.empty(starts.size, np.uint8)
    parse_floats(*_ranges(data, starts, ends), values, states)
    return values, states


def unescaped(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Unescape byte ranges that hold the insides of valid JSON strings.

    Returns
    -------
    tuple of arrays
        UTF-8 bytes, uint8, and the ranges of the texts in them, int64 (n,) each; the end is -1
        where a string holds half of a surrogate pair, which UTF-8 cannot.
    """
    data, starts, ends = _ranges(data, starts, ends)
    out = np.empty(int((ends - starts).sum()), np.uint8)
    out_starts, out_ends = np.empty(starts.size, np.int64), np.empty(starts.size, np.int64)
    used = unescape_strings(data, starts, ends, out, out_starts, out_ends)
    return out[:used], out_starts, out_ends


def views(data: Bytes, starts: Longs, ends: Longs, buffer: int, out: npt.NDArray[np.int32]) -> None:
    """Write Arrow string views of byte ranges into ``out``, int32 (n, 4).

    Parameters
    ----------
    data
        The bytes, shorter than 2 GiB.
    starts, ends
        The ranges, int64 (n,), none of which ends before it begins; a row with a negative start
        is left as it is.
    buffer
        The index of ``data`` among the array's data buffers.
    out
        The views; zero where there is none.
    """
    if data.size >= 1 << 31:
        raise ValueError(f"a string view reaches 2 GiB of data, found {data.size} bytes")
    if out.shape != (starts.size, 4):
        raise ValueError(f"out has shape {out.shape}; expected ({starts.size}, 4)")
    if ((ends < starts) & (starts >= 0)).any():
        raise ValueError("a range ends before it begins")
    string_views(*_ranges(data, starts, ends), buffer, out)


@dataclass(frozen=True, slots=True)
class PlainViews:
    """Arrow string views of values that are strings without escapes.

    Parameters
    ----------
    views : int32 (n, 4)
        Zero for all other values.
    buffer : uint8
        The views' buffer 0.
    is_string : bool (n,)
        Which values are strings, with escapes or without.
    n_escaped
        How many of them have escapes.
    n_others
        How many values are neither string nor null nor absent.
    """

    views: npt.NDArray[np.int32]
    buffer: Bytes
    is_string: npt.NDArray[np.bool_]
    n_escaped: int
    n_others: int


def plain_views(data: Bytes, columns: Sequence[tuple[Bytes, Longs, Longs]]) -> list[PlainViews]:
    """Make Arrow string views of located values that are strings without escapes.

    Strings that are a small part of the data are copied side by side: whoever reads them next
    finds them in the cache, and the data can go.

    Parameters
    ----------
    data
        The bytes, shorter than 2 GiB.
    columns
        Of as many rows each: the values' types, uint8 (n,), and their starts and ends, int64
        (n,). Columns that are given together cost less than one by one.
    """
    if data.size >= 1 << 31:
        raise ValueError(f"a string view reaches 2 GiB of data, found {data.size} bytes")
    located = []
    for tags, starts, ends in columns:
        if tags.shape != starts.shape or tags.shape != columns[0][0].shape:
            raise ValueError(
                f"tags have shape {tags.shape}, starts {starts.shape}; expected one (n,) everywhere"
            )
        data, starts, ends = _ranges(data, starts, ends)
        tags = read_only(np.ascontiguousarray(tags, np.uint8))
        located.append((tags, np.ascontiguousarray(starts), np.ascontiguousarray(ends)))
    n_rows = columns[0][0].size if columns else 0
    counts = np.zeros((len(located), 3), np.int64)
    made = [_room(data, *column) for column in located]
    addresses = np.array(
        [
            [array.ctypes.data if array.size else 0 for array in (*column, *rooms)]
            for column, rooms in zip(located, made, strict=True)
        ],
        np.int64,
    ).reshape(-1, 6)
    plain_string_views(data, n_rows, read_only(addresses), counts)
    return [
        PlainViews(views, copies if copies.size else data, marks, n_escaped, n_others)
        for (copies, views, marks), (n_escaped, n_others, _) in zip(
            made, counts.tolist(), strict=True
        )
    ]


def _room(
    data: Bytes, tags: Bytes, starts: Longs, ends: Longs
) -> tuple[Bytes, npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
    """Return room for a column's copied strings, none if they are not copied, views and marks."""
    n_bytes = plain_bytes(tags, starts, ends)
    # and for the rest of a last word
    size = n_bytes + 8 if n_bytes <= data.size // _COPIED_PART else 0
    return (
        np.empty(size, np.uint8),
        np.zeros((tags.size, 4), np.int32),
        np.empty(tags.size, np.bool_),
    )


def _ranges(data: Bytes, starts: Longs, ends: Longs) -> tuple[Bytes, Longs, Longs]:
    """Check bytes and ranges of them, and view them as the kernels take them."""
    if starts.shape != ends.shape or starts.ndim != 1:
        raise ValueError(f"starts have shape {starts.shape}, ends {ends.shape}; expected one (n,)")
    return (
        read_only(data),
        read_only(starts.astype(np.int64, copy=False)),
        read_only(ends.astype(np.int64, copy=False)),
    )


def changes(data: Bytes, tags: Bytes, starts: Longs, ends: Longs) -> npt.NDArray[np.bool_]:
    """Mark the rows whose value is written otherwise than that of the row before.

    Parameters
    ----------
    data : uint8 (bytes,)
        `JsonlScan.data`.
    tags : uint8 (n,)
        The values' types.
    starts, ends : int64 (n,)
        Their bytes.

    Returns
    -------
    bool (n,)
        False for the first row. Absent values are alike.
    """
    changed = np.zeros(tags.size, np.bool_)
    absent = tags == ABSENT
    mark_changes(
        read_only(data),
        read_only(np.ascontiguousarray(tags)),
        read_only(np.where(absent, 0, starts)),
        read_only(np.where(absent, 0, ends)),
        changed,
    )
    return changed
