"""Every kernel beside an equivalent library function: rapidfuzz, polars-ds, scipy, Python.

Usage: python -m benchmarks.kernels texts|groups [--scale 1] [--repetitions 7] [--only NAME]
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import click
import numpy as np
import polars as pl
from fastscore_kernels import (
    cosine_pairs,
    gini_ragged,
    idf_cosine_csr,
    intersection_size_csr,
    jaccard_csr,
    max_cosine_ragged,
    mean_pair_cosine_groups,
    mt19937_pairs,
    segment_first_argmax,
    set_difference_csr,
    text_hash128,
)

from benchmarks.harness import SEED, Case, command
from fastscore import sets, text

SENTENCE = (
    "i would like to book a table for two people at the restaurant near central station tonight "
    "please can you tell me what time it opens and if there is parking available thank you very "
    "much that sounds good"
)
ENGLISH = SENTENCE.split()
CHINESE = (
    "我想预订一张今晚七点两个人的餐桌请问附近有停车场吗谢谢你好的没问题帮我查一下电影票价格多少"
)
WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?")

Columns = tuple[list[str], list[str]]


def _utterances(rng: random.Random, rows: int, low: int, high: int) -> list[str]:
    return [" ".join(rng.choices(ENGLISH, k=rng.randint(low, high))) for _ in range(rows)]


def _letters(rng: random.Random, words: list[str], size: int, rows: int) -> list[str]:
    return [" ".join(rng.choices(words, k=size // 3))[:size] for _ in range(rows)]


def _edited(rng: random.Random, text: str, edits: int) -> str:
    """Insert, delete or replace characters at random places."""
    symbols = list(text)
    for _ in range(edits):
        place = rng.randrange(len(symbols))
        symbols[place : place + rng.randint(0, 1)] = rng.choice(["", "e", "t"])
    return "".join(symbols)


def _same(outputs: dict[str, Any]) -> None:
    first, *others = outputs.values()
    for other in others:
        np.testing.assert_array_equal(np.asarray(first), np.asarray(other))


def _nearly(outputs: dict[str, Any]) -> None:
    first, *others = outputs.values()
    for other in others:
        np.testing.assert_allclose(np.asarray(first), np.asarray(other), rtol=1e-12)


def distances(name: str, columns: Columns, target: tuple[str, float] | None) -> Case:
    """Compare edit distances of two columns."""
    import polars_ds
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    a, b = columns
    series_a, series_b = pl.Series("a", a), pl.Series("b", b)
    frame = pl.DataFrame([series_a, series_b])
    settings: dict[str, Any] = {"scorer": Levenshtein.distance, "workers": 1, "dtype": np.int32}
    return Case(
        f"Levenshtein, {name}",
        len(a),
        {
            "fastscore": lambda: frame.select(text.levenshtein("a", "b")).to_series(),
            "cpdist, lists ready": lambda: cpdist(a, b, **settings),
            "cpdist from polars": lambda: cpdist(
                series_a.to_list(), series_b.to_list(), **settings
            ),
            "polars-ds": lambda: frame.select(polars_ds.str_leven("a", "b")).to_series(),
        },
        target,
        _same,
    )


def similarities(columns: Columns) -> Case:
    """Compare normalised edit distances of two columns."""
    import polars_ds
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    frame = pl.DataFrame(dict(zip("ab", columns, strict=True)))
    settings: dict[str, Any] = {"scorer": Levenshtein.normalized_similarity, "workers": 1}
    return Case(
        "Levenshtein similarity",
        frame.height,
        {
            "fastscore": lambda: frame.select(text.levenshtein_similarity("a", "b")).to_series(),
            "cpdist from polars": lambda: cpdist(
                frame["a"].to_list(), frame["b"].to_list(), dtype=np.float64, **settings
            ),
            "polars-ds": lambda: frame.select(
                polars_ds.str_leven("a", "b", return_sim=True)
            ).to_series(),
        },
        ("best", 2.0),
        _nearly,
    )


def overlaps(columns: Columns, n: int) -> Case:
    """Compare Jaccard indices of the character n-grams of two columns."""
    import polars_ds

    frame = pl.DataFrame(dict(zip("ab", columns, strict=True)))
    return Case(
        f"n-gram overlap, {n} characters",
        frame.height,
        {
            "fastscore": lambda: frame.select(text.ngram_overlap("a", "b", n=n)).to_series(),
            "polars-ds": lambda: frame.select(polars_ds.str_jaccard("a", "b", n)).to_series(),
        },
        ("polars-ds", 1.0),
        _nearly,
    )


def copied_shares(a: list[str], b: list[str]) -> list[float]:
    """Compute copy ratios of orders 3 and 4 with Python sets."""
    out = []
    for system, user in zip(a, b, strict=True):
        ours, theirs = WORD.findall(system.lower()), WORD.findall(user.lower())
        best = 0.0
        for n in (3, 4):
            grams = set(zip(*(ours[at:] for at in range(n)), strict=False))
            if grams:
                others = set(zip(*(theirs[at:] for at in range(n)), strict=False))
                best = max(best, len(grams & others) / len(grams))
        out.append(best)
    return out


def _long_texts(rng: random.Random, rows: int) -> Iterator[Case]:
    long = tuple(_utterances(rng, rows // 20, 60, 90) for _ in "ab")
    yield distances("ASCII 300-450", (long[0], long[1]), ("cpdist, lists ready", 1.0))
    for size, divisor in ((1_000, 200), (10_000, 10_000)):
        letters = _letters(rng, ENGLISH, size, rows // divisor + 2)
        unlike = _letters(rng, ENGLISH, size, len(letters))
        yield distances(f"ASCII {size:,}", (letters, unlike), ("cpdist, lists ready", 1.0))
        alike = [_edited(rng, text, size // 50) for text in letters]
        name = f"ASCII {size:,}, a fiftieth edited"
        yield distances(name, (letters, alike), ("cpdist, lists ready", 1.0))


def _copied(rng: random.Random, rows: int) -> Case:
    system = _utterances(rng, rows // 2, 3, 28)
    user = [
        " ".join([*text.split()[: rng.randint(0, 10)], *rng.choices(ENGLISH, k=rng.randint(2, 18))])
        for text in system
    ]
    frame = pl.DataFrame({"system": system, "user": user})
    return Case(
        "copy ratio, orders 3 and 4",
        len(system),
        {
            "fastscore": lambda: frame.select(text.copy_ratio("system", "user")).to_series(),
            "Python sets, lists ready": lambda: copied_shares(system, user),
        },
        ("Python sets, lists ready", 15.0),
        _same,
    )


def text_cases(scale: float) -> Iterator[Case]:
    """Return the cases of texts."""
    rng = random.Random(SEED)
    rows = int(40_000 * scale)
    a = _utterances(rng, rows, 15, 15)
    yield distances(
        "ASCII 70-80 unrelated",
        (a, _utterances(rng, rows, 16, 16)),
        ("cpdist from polars", 2.0),
    )
    b = _utterances(rng, rows, 15, 16)
    yield similarities((a, b))
    yield from (overlaps((a, b), n) for n in (2, 3, 5))
    continued = [
        f"{text[: rng.randint(0, len(text))]}{' '.join(rng.choices(ENGLISH, k=8))}" for text in a
    ]
    yield distances("ASCII 70-80 shared prefix", (a, continued), ("cpdist from polars", 2.0))
    short = tuple([text[:30] for text in _utterances(rng, rows, 4, 6)] for _ in "ab")
    yield distances("ASCII short", (short[0], short[1]), ("best", 1.2))
    chinese = tuple(
        ["".join(rng.choices(CHINESE, k=rng.randint(8, 60))) for _ in range(rows)] for _ in "ab"
    )
    yield distances("CJK 8-60", (chinese[0], chinese[1]), ("cpdist, lists ready", 1.0))
    truths = _utterances(rng, rows // 13 + 1, 5, 18)
    predictions = _utterances(rng, rows, 3, 18)
    yield distances(
        "one truth, 13 predictions",
        (predictions, [truths[at // 13] for at in range(rows)]),
        ("cpdist, lists ready", 2.0),
    )
    emoji = tuple(
        [f"{text[:30]} 😀{text[30:40]}" for text in _utterances(rng, rows, 4, 9)] for _ in "ab"
    )
    yield distances("emoji 30-40", (emoji[0], emoji[1]), None)
    yield from _long_texts(rng, rows)

    part = [rng.randrange(rows // 4) for _ in range(rows)]
    distinct = tuple(_utterances(rng, rows // 4, 18, 30) for _ in "ab")
    repeated = tuple([column[at] for at in sorted(part)] for column in distinct)
    yield distances("ASCII 90-150, pairs repeated", (repeated[0], repeated[1]), None)

    yield _copied(rng, rows)
    texts = pl.Series(a)
    yield Case(
        "text hash",
        rows,
        {
            "fastscore, 128 bits": lambda: text_hash128(texts, threads=1),
            "polars hash, 64 bits, unstable": lambda: texts.hash(),
        },
    )


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


def set_group_vector_cases(scale: float) -> Iterator[Case]:
    """Return the cases of sets, groups and vectors."""
    rng = np.random.default_rng(SEED)
    yield from set_cases(rng, int(100_000 * scale))
    yield from list_cases(rng, int(100_000 * scale))
    yield from group_cases(rng, int(50_000 * scale))
    yield from vector_cases(rng, scale)


main = click.Group("kernels")
main.add_command(command(text_cases, "texts"))
main.add_command(command(set_group_vector_cases, "groups"))


if __name__ == "__main__":
    main()
