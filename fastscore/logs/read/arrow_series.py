"""Columns of polars that are made of buffers as Arrow has them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from fastscore_jit.arrays import Int64Array, Mask, UInt8Array
from fastscore_readers.json import located_values


@dataclass(frozen=True, slots=True)
class _Exported:
    """An array by its C interface alone: polars asks nothing else of it."""

    array: pa.Array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


def buffer_series(kind: pa.DataType, valid: Mask, *buffers: npt.NDArray[np.generic]) -> pl.Series:
    """Make a column of Arrow buffers, null where not valid, without copying."""
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    array = pa.Array.from_buffers(
        kind, valid.size, [bitmap, *(pa.py_buffer(buffer) for buffer in buffers)]
    )
    return pl.Series(_Exported(array))


def texts_at(data: UInt8Array, starts: Int64Array, ends: Int64Array, valid: Mask) -> pl.Series:
    """Make a column of the UTF-8 at some ranges, null where not valid, without copying."""
    views = np.zeros((valid.size, 4), np.int32)
    located_values.views(data, np.where(valid, starts, -1), ends, 0, views)
    return buffer_series(pa.string_view(), valid, views, data)
