r"""JSON Lines as columns: where every wanted value stands, and what is wrong with which line.

A line is read as ``json.loads(line.strip())`` reads it: NaN and Infinity are numbers, the last of
equal keys wins, control characters in strings are faults. Lines end as Python's text files end
them (``\n``, ``\r\n`` or ``\r``) and must be strict UTF-8. Two limits are this module's own:
values nested deeper than `MAX_DEPTH`, and integers of any length are integers.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.validation import as_vector

from fastscore_readers.fill import PLACES, allocate_columns
from fastscore_readers.json.blocks import FOREVER, Walker, block_ends
from fastscore_readers.json.shapes import plan_of_keys
from fastscore_readers.json.walk import CONTAINERS, N_BLANK, N_LINES, NUMBER, OBJECTS
from fastscore_readers.line_scan import LineScan, scan_of

MOST_VIEWED = 1 << 31
"""What data are shorter than that string views reach."""


def scan_jsonl(
    data: UInt8Array,
    keys: Sequence[bytes],
    *,
    restarts: Sequence[tuple[int, int]] | Int64Array = (),
    array_key: bytes | None = None,
    fill: Mapping[bytes, int] | None = None,
) -> LineScan:
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
    array_key
        The key whose value a line is that is an array; without one such a line is a fault.
    fill
        The keys whose values are wanted as Arrow columns rather than by their places, and of which
        kind: `fill.TEXT`, for example. The data are shorter than 2 GiB then.

    Returns
    -------
    LineScan
        The rows, the wanted values' types and places, and the faulty lines.
    """
    data = as_vector("data", data, np.uint8)
    if fill and data.size >= MOST_VIEWED:
        raise ValueError(f"string views reach 2 GiB of data, found {data.size} bytes")
    plan = plan_of_keys(tuple(keys))
    table = np.append(np.asarray(restarts, np.int64).reshape(-1), FOREVER)
    roots, arrays = (OBJECTS, 0) if array_key is None else (CONTAINERS, 1 + keys.index(array_key))
    walker = Walker(plan, roots, table, arrays=arrays)
    columns = allocate_columns([(fill or {}).get(key, PLACES) for key in keys])
    columns = walker.walk(data, block_ends(data), columns)
    again = partial(scan_jsonl, data, keys, restarts=restarts, array_key=array_key)
    found = np.frombuffer(walker.faults, np.int64).reshape(-1, 5)
    faults = np.concatenate([found.T, np.zeros((1, len(found)), np.int64)])
    counts = walker.state[[N_LINES, N_BLANK, NUMBER]].tolist()
    return scan_of(data, columns, faults, 0, counts, again)
