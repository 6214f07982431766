"""The types of arrays, by what stands in them."""

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int64]
"""Positions in another array."""
Mask = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Vectors = npt.NDArray[np.float32]
