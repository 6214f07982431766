"""Arrow string views of strings where they lie in a buffer."""

# ruff: noqa: SIM109

from typing import Any

import numpy as np

from fastscore_kernels._jit import inlined, kernel
from fastscore_kernels._jsonl_bytes import address_of, first_word
from fastscore_kernels._jsonl_scan import ESCAPED, NULL, STRING


@inlined
def _write_view(base: Any, size: Any, start: Any, length: Any, buffer: Any, view: Any) -> None:
    """Write the Arrow string view of some bytes, which lie in buffer ``buffer``."""
    view[0] = length
    first = first_word(base, start, min(length, 8), size)
    view[1] = np.int32(np.int64(first))
    if length > 12:
        view[2] = buffer
        view[3] = start
    else:
        view[2] = np.int32(np.int64(first >> np.uint64(32)))
        if length > 8:
            view[3] = np.int32(np.int64(first_word(base, start + 8, length - 8, size)))


@kernel(fastmath=False)
def string_views(data: Any, starts: Any, ends: Any, buffer: int, views: Any) -> None:
    """Write Arrow string views (n, 4) of byte ranges of ``data``, which is buffer ``buffer``.

    A negative start leaves the row's view as it is.
    """
    base = address_of(data)
    for row in range(starts.size):
        if starts[row] >= 0:
            length = ends[row] - starts[row]
            _write_view(base, data.size, starts[row], length, buffer, views[row])


@kernel(fastmath=False)
def plain_string_views(
    data: Any, tags: Any, starts: Any, ends: Any, views: Any, is_string: Any
) -> Any:
    """Write the views of strings without escapes, and mark all strings.

    Returns how many strings have escapes, and how many values are neither string nor null.
    """
    base = address_of(data)
    escaped, others = 0, 0
    for row in range(tags.size):
        tag = tags[row]
        is_string[row] = tag == STRING or tag == ESCAPED
        if tag == STRING:
            length = ends[row] - starts[row]
            _write_view(base, data.size, starts[row], length, 0, views[row])
        elif tag == ESCAPED:
            escaped += 1
        elif tag > NULL:
            others += 1
    return escaped, others
