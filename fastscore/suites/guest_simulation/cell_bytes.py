"""Places and texts in the bytes of cells."""

import numpy as np
import numpy.typing as npt
import polars as pl
from fastscore_kernels import located_values

from fastscore.suites.columns import Indices

Bytes = npt.NDArray[np.uint8]


def _table(members: bytes) -> npt.NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(members)] = True
    return table


WHITE_SPACE = _table(b" \t\n\r\v\f")
BLANKS_AND_QUOTES = _table(b' \t\r\n"')


def after(skipped: npt.NDArray[np.bool_], data: Bytes, at: Indices, stop: Indices) -> Indices:
    """Move each place behind the bytes to skip that it stands at, at most to where it stops."""
    at = at.copy()
    moving = np.flatnonzero(at < stop)
    while len(moving):
        moving = moving[skipped[data[at[moving]]]]
        at[moving] += 1
        moving = moving[at[moving] < stop[moving]]
    return at


def texts_between(data: Bytes, start: Indices, end: Indices) -> pl.Series:
    """Make a String column of ranges of bytes, without copying them."""
    import pyarrow as pa

    views = np.zeros((len(start), 4), np.int32)
    if len(start):
        located_values.views(data, start, end, 0, views)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pl.Series("", pa.Array.from_buffers(pa.string_view(), len(start), buffers))
