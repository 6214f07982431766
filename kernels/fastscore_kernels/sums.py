"""Exact sums of doubles and of their squares by group, the same for any order of rows.

Each value is rounded to a multiple of ``2**-bits``, and whole numbers are added.
"""

from typing import Any

import numpy as np
from fastscore_machine.arrays import Longs, Reals
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.validation import read_only

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_LARGEST = 2.0**62
_LIMBS = 8

COUNT, SUM_LOW, SUM_HIGH = 0, 1, 2
SQUARES = 3
"""Columns of `ExactSums.limbs`; four limbs of the squares, lowest first, from `SQUARES` on."""


class ExactSums:
    """Sums by group, to which rows are added batch by batch.

    Parameters
    ----------
    n_groups
        The number of groups.
    bits
        Values are rounded to multiples of ``2**-bits``, halves to even.

    Attributes
    ----------
    limbs : int64 (n_groups, 8)
        By group the number of values, and 32-bit limbs of the sums of the rounded values and of
        their squares; the highest limb of a sum carries its sign.
    extremes : float64 (n_groups, 2)
        By group the least and the largest value; infinities where there is none.
    """

    def __init__(self, n_groups: int, bits: int) -> None:
        self.bits = bits
        self.limbs: Longs = np.zeros((n_groups, _LIMBS), np.int64)
        self.extremes: Reals = np.empty((n_groups, 2))
        self.extremes[:] = np.inf, -np.inf

    def add(self, values: Reals, groups: Longs) -> None:
        """Add rows.

        Parameters
        ----------
        values : float64 (n,)
            NaN where a row has no value; magnitudes of at most ``2**(62 - bits)``.
        groups : int64 (n,)
            Each row's group, in [0, n_groups).

        Raises
        ------
        ValueError
            Vectors that do not match; a value or a group out of range.
        """
        if values.dtype != np.float64 or groups.dtype != np.int64 or values.shape != groups.shape:
            raise ValueError(
                f"values and groups must be vectors of float64 and int64 of one length, found "
                f"{values.dtype} {values.shape} and {groups.dtype} {groups.shape}"
            )
        values, groups = np.ascontiguousarray(values), np.ascontiguousarray(groups)
        if groups.size and not 0 <= groups.min() <= groups.max() < len(self.limbs):
            raise ValueError(f"groups must lie in [0, {len(self.limbs)})")
        fitted = _add(
            read_only(values), read_only(groups), 2.0**self.bits, self.limbs, self.extremes
        )
        if not fitted:
            raise ValueError(f"a value lies beyond 2**{62 - self.bits} in magnitude")

    def totals(self) -> list[int]:
        """Return by group the sum of the rounded values, in multiples of ``2**-bits``."""
        return [(high << 32) + low for low, high in self.limbs[:, SUM_LOW:SQUARES].tolist()]

    def squares(self) -> list[int]:
        """Return by group the sum of their squares, in multiples of ``2**(-2 * bits)``."""
        return [
            (((((d << 32) + c) << 32) + b) << 32) + a
            for a, b, c, d in self.limbs[:, SQUARES : SQUARES + 4].tolist()
        ]


@inlined
def _add_square(magnitude: Any, limbs: Any) -> None:
    """Add the square of a whole number below 2**63 to four limbs."""
    low, high = magnitude & _MASK, magnitude >> _HALF
    lowest, middle, highest = low * low, low * high, high * high
    # the middle product counts twice, from bit 32 on
    limbs[SQUARES] += np.int64(lowest & _MASK)
    limbs[SQUARES + 1] += np.int64(lowest >> _HALF) + np.int64((middle & _MASK) << np.uint64(1))
    limbs[SQUARES + 2] += np.int64(highest & _MASK) + np.int64((middle >> _HALF) << np.uint64(1))
    limbs[SQUARES + 3] += np.int64(highest >> _HALF)


@inlined
def _carry(limbs: Any) -> None:
    """Bring the lower limbs of a group below 2**32."""
    limbs[SUM_HIGH] += limbs[SUM_LOW] >> 32
    limbs[SUM_LOW] &= 0xFFFFFFFF
    for limb in range(SQUARES, SQUARES + 3):
        limbs[limb + 1] += limbs[limb] >> 32
        limbs[limb] &= 0xFFFFFFFF


@kernel(
    "float64[:], int64[:], float64, out(int64[:, :]), out(float64[:, :])",
    returns="bool",
    fastmath=False,
)
def _add(values: Any, groups: Any, scale: Any, limbs: Any, extremes: Any) -> Any:
    """Add rows; tell whether every value could be represented."""
    fitted = True
    for row in range(values.size):
        value = values[row]
        if value != value:
            continue
        group = groups[row]
        magnitude = np.rint(abs(value) * scale)
        if not magnitude <= _LARGEST:
            fitted = False
            continue
        whole = np.int64(magnitude)
        signed = whole if value >= 0.0 else -whole
        limbs[group, COUNT] += 1
        limbs[group, SUM_LOW] += signed & 0xFFFFFFFF
        limbs[group, SUM_HIGH] += signed >> 32
        _add_square(np.uint64(whole), limbs[group])
        extremes[group, 0] = min(extremes[group, 0], value)
        extremes[group, 1] = max(extremes[group, 1], value)
    for group in range(limbs.shape[0]):
        _carry(limbs[group])
    return fitted
