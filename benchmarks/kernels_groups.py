"""Set, group and vector kernels beside Python, numpy, scipy and polars."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from fastscore_kernels import (
    cosine_pairs,
    first_recovery,
    gini_ragged,
    idf_cosine_csr,
    intersection_size_csr,
    jaccard_csr,
    max_cosine_ragged,
    mean_pair_cosine_groups,
    mt19937_pairs,
    segment_first_argmax,
    set_difference_csr,
)

from benchmarks.harness import SEED, Case, main
from fastscore import sets

Ragged = tuple[Any, Any]


def _close(outputs: dict[str, Any]) -> None:
    first, *others = outputs.values()
    for other in others:
        np.testing.assert_allclose(np.asarray(first), np.asarray(other), rtol=1e-6, atol=1e-6)


def _same_members(outputs: dict[str, Any]) -> None:
    (values, offsets), plain, lists = outputs.values()
    rows = [values[start:stop].tolist() for start, stop in pairwise(offsets)]
    assert rows == plain == [sorted(row) for row in lists.to_list()]


def _sets(rng: np.random.Generator, rows: int) -> tuple[list[Any], Any, Any]:
    members = [
        np.unique(np.minimum(rng.zipf(1.3, size), 20_000) - 1).astype(np.int32)
        for size in rng.integers(2, 24, rows)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in members])])
    return members, np.concatenate(members), offsets


def set_cases(rng: np.random.Generator, rows: int) -> Iterator[Case]:
    """Compare overlaps of sorted sets."""
    members_a, values_a, offsets_a = _sets(rng, rows)
    members_b, values_b, offsets_b = _sets(rng, rows)
    a, b = (values_a, offsets_a), (values_b, offsets_b)
    sets_a, sets_b = ([frozenset(row.tolist()) for row in m] for m in (members_a, members_b))
    kind = pl.List(pl.Int32)
    frame = pl.DataFrame(
        {"a": pl.Series(members_a, dtype=kind), "b": pl.Series(members_b, dtype=kind)}
    )
    common = pl.col("a").list.set_intersection("b").list.len()
    union = pl.col("a").list.set_union("b").list.len()
    yield Case(
        "Jaccard",
        rows,
        {
            "fastscore": lambda: jaccard_csr(a, b, threads=1),
            "Python sets ready": lambda: [
                len(x & y) / len(x | y) for x, y in zip(sets_a, sets_b, strict=True)
            ],
            "polars list.set_*": lambda: frame.select(common / union).to_series(),
        },
        ("Python sets ready", 20.0),
        _close,
    )
    yield Case(
        "common members",
        rows,
        {
            "fastscore": lambda: intersection_size_csr(a, b, threads=1),
            "Python sets ready": lambda: [len(x & y) for x, y in zip(sets_a, sets_b, strict=True)],
            "polars list.set_*": lambda: frame.select(common).to_series(),
        },
        None,
        _close,
    )
    missing = pl.col("a").list.set_difference("b")
    yield Case(
        "set difference",
        rows,
        {
            "fastscore": lambda: set_difference_csr(a, b, threads=1),
            "Python sets ready": lambda: [
                sorted(x - y) for x, y in zip(sets_a, sets_b, strict=True)
            ],
            "polars list.set_*": lambda: frame.select(missing).to_series(),
        },
        None,
        _same_members,
    )
    yield _weighted_case(a, b, sets_a, sets_b)


def list_cases(rng: np.random.Generator, rows: int) -> Iterator[Case]:
    """Compare functions of columns of lists with polars' own."""
    numbers = [[member.tolist() for member in _sets(rng, rows)[0]] for _ in "ab"]
    texts = [[[f"item {number}" for number in row] for row in column] for column in numbers]
    common = pl.col("a").list.set_intersection("b").list.len()
    union = pl.col("a").list.set_union("b").list.len()
    for kind, (a, b) in (("numbers", numbers), ("strings", texts)):
        frame = pl.DataFrame({"a": a, "b": b})
        yield Case(
            f"Jaccard, lists of {kind}",
            rows,
            {
                "fastscore": partial(frame.select, sets.jaccard("a", "b")),
                "polars list.set_*": partial(frame.select, common / union),
            },
            ("polars list.set_*", 1.5),
            _close,
        )


def _weighted_case(
    a: Ragged, b: Ragged, sets_a: Sequence[frozenset[int]], sets_b: Sequence[frozenset[int]]
) -> Case:
    from scipy import sparse
    from sklearn.preprocessing import normalize

    rows = len(sets_a)
    idf = np.log(1 + rows / (1 + np.bincount(a[0], minlength=20_000)))
    squares = (idf**2).tolist()

    def rowwise() -> Any:
        left, right = (
            normalize(sparse.csr_matrix((idf[values], values, offsets), shape=(rows, idf.size)))
            for values, offsets in (a, b)
        )
        return np.asarray(left.multiply(right).sum(axis=1)).ravel()

    def plain() -> list[float]:
        out = []
        for x, y in zip(sets_a, sets_b, strict=True):
            norms = sum(squares[v] for v in x) * sum(squares[v] for v in y)
            out.append(sum(squares[v] for v in x & y) / norms**0.5)
        return out

    return Case(
        "IDF cosine",
        rows,
        {
            "fastscore": lambda: idf_cosine_csr(a, b, idf, threads=1),
            "scipy row-wise": rowwise,
            "Python sets ready": plain,
        },
        ("scipy row-wise", 3.0),
        _close,
    )


def _gini_case(values: Any, offsets: Any) -> Case:
    groups = len(offsets) - 1
    bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))

    def per_group() -> Any:
        out = np.empty(groups)
        for group, (start, stop) in enumerate(bounds):
            x = np.sort(values[start:stop])
            n = x.size
            out[group] = ((2 * np.arange(1, n + 1) - n - 1) * x).sum() / (n * x.sum())
        return out

    return Case(
        "ragged Gini",
        groups,
        {
            "fastscore": lambda: gini_ragged(values, offsets, threads=1),
            "numpy per group": per_group,
        },
        ("numpy per group", 10.0),
        _close,
    )


def group_cases(rng: np.random.Generator, groups: int) -> Iterator[Case]:
    """Compare reductions over ragged groups."""
    sizes = rng.integers(2, 40, groups)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    values = rng.gamma(2, 1, offsets[-1])
    yield _gini_case(values, offsets)
    met = rng.random(offsets[-1]) < 0.2
    groups_of = rng.integers(0, groups, groups)
    starts = rng.integers(0, sizes[groups_of])
    tests, first = met.tolist(), offsets[groups_of] + starts
    spans = list(zip(first.tolist(), offsets[groups_of + 1].tolist(), strict=True))

    def scanned() -> list[int]:
        out = []
        for begin, end in spans:
            try:
                out.append(tests.index(True, begin, min(end, begin + 5)) - begin)
            except ValueError:
                out.append(-1)
        return out

    yield Case(
        "first recovery within 5 turns",
        groups,
        {
            "fastscore": lambda: first_recovery(met, offsets, groups_of, starts, 5, threads=1),
            "Python list.index": scanned,
        },
        None,
        _close,
    )
    frame = pl.DataFrame({"group": np.repeat(np.arange(groups), sizes), "value": values})
    argmax = pl.col("value").arg_max()
    yield Case(
        "first argmax",
        groups,
        {
            "fastscore": lambda: segment_first_argmax(values, offsets, threads=1),
            "polars group_by": lambda: frame.group_by("group", maintain_order=True).agg(argmax)[
                "value"
            ],
        },
        None,
        _close,
    )


def _sampled_means(matrix: Any, rows: Any, offsets: Any, pairs: int) -> list[float]:
    """Compute the sampled means group by group with Python's generator and numpy."""
    import random

    out = []
    for start, stop in pairwise(offsets):
        generator, size = random.Random(0), int(stop - start)
        drawn: Counter[tuple[int, int]] = Counter()
        for _ in range(pairs):
            i, j = generator.randrange(size), generator.randrange(size)
            drawn[i, (j + 1) % size if i == j else j] += 1
        first, second = np.array(list(drawn), np.int64).T
        members = matrix[rows[start:stop]]
        dots = np.einsum("ij,ij->i", members[first], members[second])
        out.append(float(dots @ np.fromiter(drawn.values(), float) / pairs))
    return out


def _pair_case(matrix: Any, a: Any, b: Any) -> Case:
    return Case(
        f"pair cosine, {matrix.shape[1]} columns",
        len(a),
        {
            "fastscore": lambda: cosine_pairs(matrix, a, b, threads=1),
            "numpy einsum on gathered rows": lambda: np.einsum("ij,ij->i", matrix[a], matrix[b]),
        },
        ("numpy einsum on gathered rows", 1.5),
        _close,
    )


def vector_cases(rng: np.random.Generator, scale: float) -> Iterator[Case]:
    """Compare cosines over a vector view."""
    texts, dim, pairs = int(20_000 * scale), 384, int(100_000 * scale)
    matrix = rng.normal(size=(texts, dim)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    a, b = rng.integers(0, texts, (2, pairs))
    yield _pair_case(matrix, a, b)
    yield _pair_case(np.ascontiguousarray(matrix[:, :64]), a, b)
    asked = pairs // 20
    offsets = np.arange(0, 20 * asked + 1, 20)

    def gathered() -> Any:
        dots = np.einsum(
            "ij,ikj->ik", matrix[a[:asked]], matrix[b[: 20 * asked]].reshape(asked, 20, dim)
        )
        return dots.max(axis=1)

    yield Case(
        "nearest of 20 candidates",
        asked,
        {
            "fastscore": lambda: max_cosine_ragged(
                matrix, a[:asked], np.arange(asked), b[: 20 * asked], offsets, threads=1
            )[0],
            "numpy einsum on gathered rows": gathered,
        },
        None,
        _close,
    )
    sizes = rng.integers(8, 40, 40)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    members = a[: bounds[-1]]
    yield Case(
        "baseline of 20,000 pairs a dialogue",
        sizes.size,
        {
            "fastscore": lambda: mean_pair_cosine_groups(
                matrix, members, bounds, 20_000, 0, threads=1
            ),
            "Python generator, numpy dots": lambda: _sampled_means(matrix, members, bounds, 20_000),
        },
        None,
        _close,
    )
    yield Case(
        "Mersenne Twister pairs",
        20_000,
        {
            "fastscore": lambda: mt19937_pairs(138, 20_000, 0),
            "random.Random": lambda: _python_pairs(138, 20_000),
        },
        None,
        _close,
    )


def _python_pairs(n: int, pairs: int) -> list[tuple[int, int]]:
    import random

    draw = random.Random(0).randrange
    out = []
    for _ in range(pairs):
        i, j = draw(n), draw(n)
        out.append((i, (j + 1) % n if i == j else j))
    return out


def cases(scale: float) -> Iterator[Case]:
    """Make the cases."""
    rng = np.random.default_rng(SEED)
    yield from set_cases(rng, int(100_000 * scale))
    yield from list_cases(rng, int(100_000 * scale))
    yield from group_cases(rng, int(50_000 * scale))
    yield from vector_cases(rng, scale)


if __name__ == "__main__":
    main(cases)
