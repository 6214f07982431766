"""What lines of JSON name, without validating them all: for telling apart what they belong to."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.validation import read_only

from fastscore_readers.json._jsonl_names import keep_values, note_names
from fastscore_readers.json._jsonl_runs import scan_runs
from fastscore_readers.json.tokens import ABSENT

__all__ = ["NamedLines", "named_lines", "named_runs"]

# other characters may be escaped in ways that are not looked for
_PLAIN_KEY = re.compile(rb"[ !#-.0-\[\]-~]+")

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


def key_table(keys: Sequence[bytes]) -> tuple[Bytes, Longs, npt.NDArray[np.uint64]]:
    """Flatten keys to their bytes, offsets and first eight bytes as words."""
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys must be distinct, found {list(keys)!r}")
    names = np.frombuffer(b"".join(keys), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(key) for key in keys])))
    words = np.array([int.from_bytes(key[:8], "little") for key in keys], np.uint64)
    return names, read_only(offsets.astype(np.int64)), read_only(words)


@dataclass(frozen=True, slots=True)
class NamedLines:
    """n lines, or runs of them, with the values that they give k keys.

    Parameters
    ----------
    data
        The values side by side, uint8: nothing of the buffer that they were found in.
    line, start, last
        Number and start of each run's first line, and the start of its last one, int64 (n,).
    tags
        Types of the values in the run's first line, as in `JsonlScan`, uint8 (k, n).
    value_start, value_end
        Their bytes in ``data``, a string's without its quotes, int64 (k, n).
    """

    data: Bytes
    line: Longs
    start: Longs
    last: Longs
    tags: Bytes
    value_start: Longs
    value_end: Longs


def named_runs(data: Bytes, keys: Sequence[bytes], *, line: int = 1, n_ends: int) -> NamedLines:
    """Find runs of neighbouring lines that give the wanted keys the same values.

    A line whose end is that of the line before, from the first wanted key on, is read no further:
    if it is valid, it belongs to the run; if not, it may count as of the run. Runs that stand
    side by side may have equal values.

    Parameters
    ----------
    data
        JSON Lines, uint8.
    keys
        The wanted top-level keys, as UTF-8.
    line
        The number of the first line.
    n_ends
        How many line ends the data hold, at least.

    Returns
    -------
    NamedLines
        The runs, in order. Blank lines and lines that are no objects belong to none.

    Raises
    ------
    ValueError
        Keys are not distinct, or there are more line ends.
    """
    return _named(scan_runs, data, keys, line, n_ends)


def named_lines(data: Bytes, keys: Sequence[bytes], *, line: int = 1, n_ends: int) -> NamedLines:
    """Find the values that every line gives the wanted keys.

    Parameters
    ----------
    data, keys, line, n_ends
        As in `named_runs`; keys are printable ASCII without quotes and slashes, and not empty.

    Returns
    -------
    NamedLines
        Every line that is a valid object, in order, and some that are objects with faults, whose
        values mean nothing.

    Raises
    ------
    ValueError
        Keys are not distinct or of other characters, or there are more line ends.
    """
    odd = [key for key in keys if not _PLAIN_KEY.fullmatch(key)]
    if odd:
        raise ValueError(f"keys must be ASCII without quotes or slashes, found {odd!r}")
    return _named(note_names, data, keys, line, n_ends)


def _named(
    find: Callable[..., int], data: Bytes, keys: Sequence[bytes], line: int, n_ends: int
) -> NamedLines:
    data = read_only(data)
    capacity = 1 + n_ends
    lines = np.empty((3, capacity), np.int64)
    tags = np.zeros((len(keys), capacity), np.uint8)
    starts, ends = np.empty((2, len(keys), capacity), np.int64)
    n = find(data, line, *key_table(keys), lines, tags, starts, ends)
    if n < 0:
        raise ValueError(f"n_ends is {n_ends}, but the data hold more line ends")
    lengths = (ends - starts)[:, :n].sum(where=tags[:, :n] != ABSENT)
    values = np.empty(int(lengths), np.uint8)
    keep_values(data, n, tags, starts, ends, values)
    line_of, start, last = lines[:, :n]
    return NamedLines(values, line_of, start, last, tags[:, :n], starts[:, :n], ends[:, :n])
