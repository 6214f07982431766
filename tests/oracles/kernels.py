"""Plain-Python oracles: each kernel's definition, written for reading and never for speed."""

import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MASK = (1 << 64) - 1
WORD = re.compile(r"[A-Za-z0-9]+(?:'[A-Za-z0-9]+)?")


def levenshtein(a: str, b: str) -> int:
    """Fill Wagner and Fischer's table row by row."""
    above = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        row = [i]
        for j, right in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (left != right)))
        above = row
    return above[-1]


def levenshtein_similarity(a: str, b: str) -> float:
    longest = max(len(a), len(b))
    return max(0.0, 1.0 - levenshtein(a, b) / longest) if longest else 0.0


def words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def copy_ratio(system: str, user: str, orders: Iterable[int]) -> float:
    ours, theirs = words(system), words(user)
    best = 0.0
    for n in orders:
        grams = {tuple(ours[i : i + n]) for i in range(len(ours) - n + 1)}
        if grams:
            others = {tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1)}
            best = max(best, len(grams & others) / len(grams))
    return best


def character_ngrams(text: str, n: int) -> set[str]:
    if 0 < len(text) < n:
        return {text}
    return {text[i : i + n] for i in range(len(text) - n + 1)}


def jaccard(a: set[Any], b: set[Any], both_empty: float) -> float:
    return len(a & b) / len(a | b) if a | b else both_empty


def idf(sets: Sequence[set[Any]]) -> dict[Any, float]:
    members = {member for each in sets for member in each}
    having = {member: sum(member in each for each in sets) for member in members}
    return {v: math.log((1 + len(sets)) / (1 + n)) + 1 for v, n in having.items()}


def weighted_cosine(a: set[Any], b: set[Any], weights: Mapping[Any, float]) -> float:
    def squares(members: set[Any]) -> float:
        return math.fsum(weights.get(member, 0.0) ** 2 for member in members)

    norms = squares(a) * squares(b)
    return squares(a & b) / math.sqrt(norms) if norms else 0.0


def gini(values: Sequence[float], minimum_mean: float = 1e-12) -> float:
    n = len(values)
    if n == 0 or not all(map(math.isfinite, values)):
        return math.nan
    mean = math.fsum(values) / n
    if n == 1 or mean <= minimum_mean:
        return 0.0
    return math.fsum(abs(x - y) for x in values for y in values) / (2 * n * n * mean)


def first_argmax(values: Sequence[float]) -> int:
    best = -1
    for at, value in enumerate(values):
        if not math.isnan(value) and (best < 0 or value > values[best]):
            best = at
    return best


def index_pairs(n: int, pairs: int, seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    drawn = []
    for _ in range(pairs):
        i, j = rng.randrange(n), rng.randrange(n)
        drawn.append([i, (j + 1) % n if i == j else j])
    return drawn


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def mean_pair_cosine(vectors: Sequence[Sequence[float]], pairs: int, seed: int) -> float:
    if len(vectors) < 2:
        return 0.0
    drawn = index_pairs(len(vectors), pairs, seed)
    return math.fsum(dot(vectors[i], vectors[j]) for i, j in drawn) / pairs


def _rotate(word: int, count: int) -> int:
    return ((word << count) | (word >> (64 - count))) & MASK


def _finish(word: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        word = ((word ^ (word >> 33)) * factor) & MASK
    return word ^ (word >> 33)


def murmur3_x64_128(data: bytes) -> list[int]:
    """MurmurHash3_x64_128, seed 0, as its author's reference describes it."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        k1 = int.from_bytes(data[at : at + 8], "little")
        k2 = int.from_bytes(data[at + 8 : at + 16], "little")
        h1 ^= (_rotate((k1 * c1) & MASK, 31) * c2) & MASK
        h1 = ((_rotate(h1, 27) + h2) * 5 + 0x52DCE729) & MASK
        h2 ^= (_rotate((k2 * c2) & MASK, 33) * c1) & MASK
        h2 = ((_rotate(h2, 31) + h1) * 5 + 0x38495AB5) & MASK
    tail = data[whole:]
    h2 ^= (_rotate((int.from_bytes(tail[8:], "little") * c2) & MASK, 33) * c1) & MASK
    h1 ^= (_rotate((int.from_bytes(tail[:8], "little") * c1) & MASK, 31) * c2) & MASK
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & MASK
    h2 = (h2 + h1) & MASK
    h1, h2 = _finish(h1), _finish(h2)
    h1 = (h1 + h2) & MASK
    return [h1, (h2 + h1) & MASK]


def group_rows(owners: Sequence[int], n_owners: int) -> list[list[int]]:
    return [[row for row, of in enumerate(owners) if of == owner] for owner in range(n_owners)]


def ragged(rows: Iterable[Iterable[Any]]) -> tuple[list[Any], list[int]]:
    """Concatenate rows; return all values and the offsets of the rows."""
    values: list[Any] = []
    offsets = [0]
    for row in rows:
        values.extend(row)
        offsets.append(len(values))
    return values, offsets


def naive_keyword_groups(texts: list[str], groups: list[list[str]]) -> list[set[int]]:
    """For each text the groups of which it has any keyword."""
    return [
        {number for number, words in enumerate(groups) if any(word in text for word in words)}
        for text in texts
    ]


def naive_numbers(values: Sequence[object]) -> tuple[list[int], list[int]]:
    """Each value's number by first appearance, and the first row of each number."""
    distinct = list(dict.fromkeys(values))
    return [distinct.index(value) for value in values], [values.index(value) for value in distinct]


def distinct_counts(bag: Sequence[int]) -> list[tuple[int, int]]:
    return sorted(Counter(bag).items())


def idf_cosine(a: Iterable[int], b: Iterable[int], idf: Sequence[float]) -> float:
    """Return the cosine of the vectors that have count times idf for every value."""
    left, right = Counter(a), Counter(b)

    def dot(x: Counter[int], y: Counter[int]) -> float:
        return math.fsum(x[value] * y[value] * idf[value] ** 2 for value in x.keys() & y.keys())

    norms = dot(left, left) * dot(right, right)
    return dot(left, right) / math.sqrt(norms) if norms else 0.0


def distinct(ids: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Return the sorted distinct ids, where each first occurs, and which one each id is."""
    ordered = sorted(set(ids))
    return ordered, [ids.index(one) for one in ordered], [ordered.index(one) for one in ids]


def find(wanted: list[tuple[int, int]], among: list[tuple[int, int]]) -> list[int]:
    return [among.index(one) if one in among else -1 for one in wanted]


def checksum(row: bytes) -> int:
    """Add each word times its place's first factor, its upper half times the second, mod 2^64."""
    padded = row + bytes(-len(row) % 8)
    total = 0
    for place in range(len(padded) // 8):
        word = int.from_bytes(padded[8 * place : 8 * place + 8], "little")
        whole, upper = murmur3_x64_128(str(place).encode())
        total += word * (whole | 1) + (word >> 32) * (upper | 1)
    return total & MASK
