"""Columns of texts that stand in the bytes of cells."""

import numpy as np
import polars as pl
from fastscore_jit.arrays import Indices, UInt8Array
from fastscore_jit.arrow import StringColumn
from fastscore_readers.json import located_values


def texts_between(data: UInt8Array, start: Indices, end: Indices) -> pl.Series:
    """Make a String column of ranges of bytes, without copying them."""
    import pyarrow as pa

    views = np.zeros((len(start), 4), np.int32)
    if len(start):
        located_values.views(data, start, end, 0, views)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pl.Series("", pa.Array.from_buffers(pa.string_view(), len(start), buffers))


def column_of(texts: StringColumn) -> pl.Series:
    """Make a String column of texts, without copying them."""
    return texts_between(texts.data, texts.offsets[:-1], texts.offsets[1:])
