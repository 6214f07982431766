"""The plain-Python oracle of exact sums, by its docstring."""

from collections.abc import Sequence
from fractions import Fraction


def rounded(value: float, bits: int) -> int:
    """Round halves to even, in multiples of ``2**-bits``."""
    return round(Fraction(value) * Fraction(2) ** bits)


def exact_sums(
    values: Sequence[float | None], groups: Sequence[int], n_groups: int, bits: int
) -> tuple[list[int], list[int], list[int]]:
    """Return by group the number of values, their sum and that of their squares."""
    counts, totals, squares = ([0] * n_groups for _ in range(3))
    for value, group in zip(values, groups, strict=True):
        if value is not None:
            counts[group] += 1
            totals[group] += rounded(value, bits)
            squares[group] += rounded(value, bits) ** 2
    return counts, totals, squares
