"""Eight bytes of an array as one word."""

from typing import Any

import numpy as np

from fastscore_kernels._jit import always_inlined


@always_inlined
def load8(data: Any, at: int) -> Any:
    """Read eight bytes, the first in the lowest bits; the loop becomes a single load."""
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[at + place]) << np.uint64(8 * place)
    return word
