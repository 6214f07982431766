"""The plain meaning of the kernels over bags of values."""

import math
from collections import Counter
from collections.abc import Sequence


def distinct_counts(bag: Sequence[int]) -> list[tuple[int, int]]:
    """Return the distinct values of a bag in ascending order, each with its count."""
    return sorted(Counter(bag).items())


def idf_cosine_counted(a: Sequence[int], b: Sequence[int], idf: Sequence[float]) -> float:
    """Return the cosine of the vectors that have count times idf for every value."""
    left = {value: count * idf[value] for value, count in Counter(a).items()}
    right = {value: count * idf[value] for value, count in Counter(b).items()}
    dot = sum(weight * right.get(value, 0.0) for value, weight in left.items())
    norms = [math.sqrt(sum(weight**2 for weight in side.values())) for side in (left, right)]
    return dot / (norms[0] * norms[1]) if all(norms) else 0.0
