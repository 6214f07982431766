"""Types of arrays, by their items."""

import numpy as np
import numpy.typing as npt

UInt8Array = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]
"""Positions in another array."""
Mask = npt.NDArray[np.bool_]
Float64Array = npt.NDArray[np.float64]
UInt64Array = npt.NDArray[np.uint64]
Vectors = npt.NDArray[np.float32]
