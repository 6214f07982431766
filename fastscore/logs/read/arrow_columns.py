"""Arrow buffers as columns, without copying."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from fastscore_machine.arrays import Bytes, Longs, Mask
from fastscore_readers.json.located_values import views


@dataclass(frozen=True, slots=True)
class _Exported:
    """An array by its C interface alone: polars asks nothing else of it."""

    array: pa.Array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


def column_of(kind: pa.DataType, valid: Mask, *buffers: npt.NDArray[np.generic]) -> pl.Series:
    """Make a column of Arrow buffers, null where not valid."""
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little"))
    array = pa.Array.from_buffers(
        kind, valid.size, [bitmap, *(pa.py_buffer(buffer) for buffer in buffers)]
    )
    return pl.Series(_Exported(array))


def byte_texts(data: Bytes, starts: Longs, ends: Longs) -> pl.Series:
    """Make a column of byte ranges, which hold UTF-8; null where they start below 0."""
    found = np.zeros((starts.size, 4), np.int32)
    views(data, starts, ends, 0, found)
    return column_of(pa.string_view(), starts >= 0, found, data)
