"""Which of sixty-four bytes belong to which sets, as the bits of words, several sets at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fastscore_jit import llvm, plain
from fastscore_jit.compiling import instruction
from fastscore_jit.objects import has_feature

BLOCK = 64
_CASE = 0x20

# wider vectors than the processor's own are taken apart badly
_WIDTH = BLOCK if has_feature("avx512bw") else 16


def _split_members(members: frozenset[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Split a set into bytes that belong to it with and without the lower-case bit, and ranges."""
    paired = [
        byte
        for byte in members
        if byte & _CASE
        and byte ^ _CASE in members
        and not {byte - 1, byte + 1, byte - 33, byte - 31} & members
    ]
    alone = sorted(members - set(paired) - {byte ^ _CASE for byte in paired})
    ranges: list[tuple[int, int]] = []
    for byte in alone:
        if ranges and ranges[-1][1] == byte:
            ranges[-1] = (ranges[-1][0], byte + 1)
        else:
            ranges.append((byte, byte + 1))
    return paired, ranges


def _compare_members(builder: Any, block: Any, sets: Sequence[frozenset[int]]) -> list[Any]:
    """Compare the bytes of a vector with sets: a vector of booleans for each."""
    kind = block.type

    def of(value: int) -> Any:
        return llvm.constant(kind, value - 256 if value > 127 else value)

    folded = builder.or_(block, of(_CASE))
    found = []
    for members in sets:
        paired, ranges = _split_members(members)
        parts = [builder.icmp_unsigned("==", folded, of(byte)) for byte in paired]
        for begin, end in ranges:
            if end == 256:
                parts.append(builder.icmp_unsigned(">=", block, of(begin)))
            elif begin == 0:
                parts.append(builder.icmp_unsigned("<", block, of(end)))
            elif end == begin + 1:
                parts.append(builder.icmp_unsigned("==", block, of(begin)))
            else:
                offset = builder.sub(block, of(begin))
                parts.append(builder.icmp_unsigned("<", offset, of(end - begin)))
        joined = parts[0]
        for part in parts[1:]:
            joined = builder.or_(joined, part)
        found.append(joined)
    return found


def byte_marks(*sets: Iterable[int]) -> Callable[[int], Any]:
    """Declare an instruction that marks which of the 64 bytes at an address belong to some sets.

    Parameters
    ----------
    sets
        Bytes, each set not empty.

    Returns
    -------
    callable
        Takes an address and returns a word, or a tuple of one for each set, the first byte in the
        lowest bit.
    """
    wanted = [frozenset(members) for members in sets]

    def without_compiling(address: int) -> Any:
        words = [plain.marked_bytes(address, members) for members in wanted]
        return tuple(words) if len(words) > 1 else words[0]

    @instruction(f"int64 -> {', '.join(['uint64'] * len(wanted))}", plain=without_compiling)
    def marks(builder: Any, address: Any) -> Any:
        kind = llvm.vector(8, _WIDTH)
        words: list[Any] = [llvm.integer(0)] * len(wanted)
        for begin in range(0, BLOCK, _WIDTH):
            block = llvm.load(builder, builder.add(address, llvm.integer(begin)), kind)
            for place, is_member in enumerate(_compare_members(builder, block, wanted)):
                bits = builder.bitcast(is_member, llvm.number(_WIDTH))
                if _WIDTH < BLOCK:
                    wide = builder.zext(bits, llvm.number(64))
                    bits = builder.shl(wide, llvm.integer(begin))
                words[place] = builder.or_(words[place], bits)
        return words if len(words) > 1 else words[0]

    return marks
