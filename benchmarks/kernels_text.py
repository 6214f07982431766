"""Text kernels beside rapidfuzz, polars-ds and plain Python sets."""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from fastscore_kernels import text_hash128

from benchmarks.harness import SEED, Case, main
from fastscore import text

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


def _edited(rng: random.Random, said: str, edits: int) -> str:
    """Insert, delete or replace characters at random places."""
    symbols = list(said)
    for _ in range(edits):
        place = rng.randrange(len(symbols))
        symbols[place : place + rng.randint(0, 1)] = rng.choice(["", "e", "t"])
    return "".join(symbols)


def _same(outputs: dict[str, Any]) -> None:
    first, *others = outputs.values()
    for other in others:
        np.testing.assert_array_equal(np.asarray(first), np.asarray(other))


def _close(outputs: dict[str, Any]) -> None:
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
        _close,
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
        _close,
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
        alike = [_edited(rng, said, size // 50) for said in letters]
        name = f"ASCII {size:,}, a fiftieth edited"
        yield distances(name, (letters, alike), ("cpdist, lists ready", 1.0))


def _copied(rng: random.Random, rows: int) -> Case:
    system = _utterances(rng, rows // 2, 3, 28)
    user = [
        " ".join([*said.split()[: rng.randint(0, 10)], *rng.choices(ENGLISH, k=rng.randint(2, 18))])
        for said in system
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


def cases(scale: float) -> Iterator[Case]:
    """Make the cases."""
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
        f"{said[: rng.randint(0, len(said))]}{' '.join(rng.choices(ENGLISH, k=8))}" for said in a
    ]
    yield distances("ASCII 70-80 shared prefix", (a, continued), ("cpdist from polars", 2.0))
    short = tuple([said[:30] for said in _utterances(rng, rows, 4, 6)] for _ in "ab")
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
        [f"{said[:30]} 😀{said[30:40]}" for said in _utterances(rng, rows, 4, 9)] for _ in "ab"
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


if __name__ == "__main__":
    main(cases)
