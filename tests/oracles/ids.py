"""Plain-Python oracles of ids and of rows in files."""

from tests.oracles.kernels import murmur3_x64_128

MASK = (1 << 64) - 1


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
