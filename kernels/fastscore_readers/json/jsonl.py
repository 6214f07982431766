r"""JSON Lines as columns: where every wanted value stands, and what is wrong with which line.

A line is read as ``json.loads(line.strip())`` reads it: NaN and Infinity are numbers, the last of
equal keys wins, control characters in strings are faults. Lines end as Python's text files end
them (``\n``, ``\r\n`` or ``\r``) and must be strict UTF-8. Two limits are this module's own:
values nested deeper than `MAX_DEPTH`, and integers of any length are integers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.compiling import first_use
from fastscore_machine.validation import read_only

from fastscore_readers.json._jsonl_scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    FALSE,
    FLOAT,
    INTEGER,
    MAX_DEPTH,
    NOT_JSON,
    NOT_OBJECT,
    NOT_UTF8,
    NULL,
    OBJECT,
    STRING,
    TOO_DEEP,
    TRUE,
    count_ends,
    note_starts,
    scan_lines,
)

__all__ = [
    "ABSENT",
    "ARRAY",
    "ESCAPED",
    "FALSE",
    "FLOAT",
    "INTEGER",
    "MAX_DEPTH",
    "NOT_JSON",
    "NOT_OBJECT",
    "NOT_UTF8",
    "NULL",
    "OBJECT",
    "STRING",
    "TOO_DEEP",
    "TRUE",
    "JsonlScan",
    "compile_kernels",
    "count_line_ends",
    "line_starts",
    "scan_jsonl",
]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JsonlScan:
    """What `scan_jsonl` found in a buffer of n valid rows and m faulty lines, for k keys.

    Parameters
    ----------
    data
        The buffer that was scanned, uint8.
    line, start, end
        Number of each row's line and its bytes in the buffer (line end excluded), int64 (n,).
    tags
        Type of each wanted value (`ABSENT` ... `OBJECT`), uint8 (k, n).
    value_start, value_end
        Bytes of each wanted value, a string's inside its quotes, int64 (k, n); meaningless where
        the tag is `ABSENT`.
    fault_line, fault_start, fault_end
        Number and bytes of each faulty line, int64 (m,).
    fault_status
        What is wrong with it (`NOT_JSON`, `NOT_OBJECT`, `NOT_UTF8` or `TOO_DEEP`), int64 (m,).
    fault_position
        The byte in the buffer at which it is wrong, int64 (m,).
    n_lines, n_blank
        All lines, and those of white space alone.
    next_line
        The number of the line that would follow.
    """

    data: Bytes
    line: Longs
    start: Longs
    end: Longs
    tags: Bytes
    value_start: Longs
    value_end: Longs
    fault_line: Longs
    fault_start: Longs
    fault_end: Longs
    fault_status: Longs
    fault_position: Longs
    n_lines: int
    n_blank: int
    next_line: int


def key_table(keys: Sequence[bytes]) -> tuple[Bytes, Longs, npt.NDArray[np.uint64]]:
    """Flatten keys to their bytes, offsets and first eight bytes as words."""
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys must be distinct, found {list(keys)!r}")
    names = np.frombuffer(b"".join(keys), np.uint8)
    offsets = np.concatenate(([0], np.cumsum([len(key) for key in keys])))
    words = np.array([int.from_bytes(key[:8], "little") for key in keys], np.uint64)
    return names, read_only(offsets.astype(np.int64)), read_only(words)


def scan_jsonl(
    data: Bytes,
    keys: Sequence[bytes],
    *,
    restarts: Sequence[tuple[int, int]] | Longs = (),
    n_ends: int | None = None,
    array_key: bytes | None = None,
) -> JsonlScan:
    """Scan a buffer of JSON Lines in one pass.

    Parameters
    ----------
    data
        The bytes, uint8, C-contiguous; read-only is fine.
    keys
        The top-level keys whose values are wanted, as UTF-8.
    restarts
        Ascending ``(position, line)`` pairs, or int64 (r, 2): the line that starts at ``position``
        has the number ``line``. Without one for position 0 the first line is 1.
    n_ends
        The number of line ends in ``data``, when `count_line_ends` has told it already.
    array_key
        The key whose value a line is that is an array; without one such a line is a fault.

    Returns
    -------
    JsonlScan
        The rows, the wanted values' types and places, and the faulty lines.
    """
    if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
        raise ValueError(
            f"data must be a contiguous vector of uint8, found {data.dtype} of shape {data.shape}"
        )
    compile_kernels()
    data = read_only(data)
    names, offsets, words = key_table(keys)
    positions, numbers = _restart_table(data, restarts)
    capacity = 1 + (int(count_ends(data)) if n_ends is None else n_ends)
    lines = np.empty((3, capacity), np.int64)
    tags = np.zeros((len(keys), capacity), np.uint8)
    starts = np.empty((len(keys), capacity), np.int64)
    ends = np.empty((len(keys), capacity), np.int64)
    faults = np.empty((5, capacity), np.int64)
    counts = np.zeros(6, np.int64)
    scan_lines(
        data,
        positions,
        numbers,
        names,
        offsets,
        words,
        -1 if array_key is None else keys.index(array_key),
        lines,
        tags,
        starts,
        ends,
        faults,
        counts,
    )
    if counts[5]:
        raise ValueError(f"n_ends is {n_ends}, but the data hold more line ends")
    n, m, n_lines, n_blank, next_line = (int(count) for count in counts[:5])
    return JsonlScan(
        data=data,
        line=lines[0, :n],
        start=lines[1, :n],
        end=lines[2, :n],
        tags=tags[:, :n],
        value_start=starts[:, :n],
        value_end=ends[:, :n],
        fault_line=faults[0, :m],
        fault_start=faults[1, :m],
        fault_end=faults[2, :m],
        fault_status=faults[3, :m],
        fault_position=faults[4, :m],
        n_lines=n_lines,
        n_blank=n_blank,
        next_line=next_line,
    )


def _restart_table(data: Bytes, restarts: Sequence[tuple[int, int]] | Longs) -> tuple[Longs, Longs]:
    """Part restarts into positions and numbers, and close them with the data's end."""
    table = np.asarray(restarts, np.int64).reshape(-1, 2)
    return read_only(np.append(table[:, 0], data.size)), read_only(np.append(table[:, 1], 0))


def count_line_ends(data: Bytes) -> int:
    r"""Count the line ends in a buffer: ``\n``, ``\r\n`` and ``\r``."""
    compile_kernels()
    return int(count_ends(read_only(data)))


def line_starts(data: Bytes, *, after_return: bool = False) -> Longs:
    r"""Find where lines begin in one of several buffers that follow each other.

    Parameters
    ----------
    data
        The bytes, uint8.
    after_return
        Whether the buffer before ended with ``\r``, which may be half of a line end.

    Returns
    -------
    ndarray
        The position behind each line end, ascending, int64: ``data.size`` behind a ``\n`` at the
        very end, but nothing behind a ``\r`` there; of the buffer before's last ``\r`` 0 or 1.
    """
    compile_kernels()
    data = read_only(data)
    starts = np.empty(1 + int(count_ends(data)), np.int64)
    return starts[: note_starts(data, after_return, starts)]


def compile_kernels() -> None:
    """Compile this module's kernels, or load them from the cache."""
    first_use(__name__, _compile)


def _compile() -> None:
    data = read_only(np.frombuffer(b'{"a":1}', np.uint8))
    count_ends(data)
    note_starts(data, False, np.empty(1, np.int64))
    found = np.empty((1, 1), np.int64)
    scan_lines(
        data,
        read_only(np.array([data.size])),
        read_only(np.zeros(1, np.int64)),
        *key_table((b"a",)),
        -1,
        np.empty((3, 1), np.int64),
        np.zeros((1, 1), np.uint8),
        found,
        found,
        np.empty((5, 1), np.int64),
        np.zeros(6, np.int64),
    )
