"""Literals of Python as JSON, as far as JSON has words for them.

A list, a tuple or a dictionary of texts, numbers, ``True``, ``False``, ``None`` and such, with keys
that are texts, is written as JSON; what ``json.loads`` makes of it equals the literal, tuples being
lists. Everything else is left to Python, and so are forms that hardly anything writes: texts with
prefixes, in three quotes, in several parts, or with rare escapes, underscores in numbers, signs
before brackets, comments, and more than 64 levels.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.validation import as_offsets, as_vector

from fastscore_readers.python_literals._python_literals import write_json

__all__ = ["WrittenLiterals", "literals_to_json"]


@dataclass(frozen=True, slots=True)
class WrittenLiterals:
    """Literals as JSON.

    Attributes
    ----------
    data : uint8 (bytes,)
        UTF-8.
    offsets : int64 (n + 1,)
        Literal ``i`` is ``data[offsets[i]:offsets[i + 1]]``; empty where it is not written.
    written : bool (n,)
        Which literals are.
    """

    data: Bytes
    offsets: Longs
    written: npt.NDArray[np.bool_]


def literals_to_json(data: npt.ArrayLike, offsets: npt.ArrayLike) -> WrittenLiterals:
    """Write literals as JSON.

    Parameters
    ----------
    data : uint8 (bytes,)
        UTF-8.
    offsets : int64 (n + 1,)
        Text ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    """
    flat = as_vector("data", data, np.uint8)
    bounds = as_offsets("offsets", offsets, flat.size)
    starts, ends = bounds[:-1], bounds[1:]
    out = np.empty(2 * int(bounds[-1] - bounds[0]), np.uint8)
    places, written = np.zeros(bounds.size, np.int64), np.zeros(starts.size, np.bool_)
    write_json(flat, starts, ends, out, places, written)
    return WrittenLiterals(out[: places[-1]], places, written)
