"""The compiled walk over cells of tool calls; `tool_calls` has the rules.

Loops are spelled out, as `any` over a generator does not compile.
"""

# ruff: noqa: SIM110

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_kernels.ranges import hashed, range_place
from fastscore_machine.arrays import Longs, Mask
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, RUN_BYTES, RUNS, aligned, prefetch_text, run_marks
from fastscore_machine.compiling import always_inlined, kernel
from fastscore_machine.memory import address_of, load_byte, same_bytes

from fastscore.suites.guest_simulation.nearly_python._item_lists import (
    after_spaces,
    is_separator,
    is_word,
    list_has_items,
    scalar,
    skip_quotes,
)

TOOL, LIST, LIST_END, FIRST_ATTRIBUTE = range(4)
"""What keys are of, by their number."""
TRACKS, GIVES = np.uint64(1) << np.uint64(62), np.uint64(1) << np.uint64(63)
"""Bits of tools besides those of their kinds: that they track a list, and give attributes."""

_OPEN = ord("[")
# rows lie far apart, and only a loop that goes on within one is foreseen by the processor
_ROWS_AHEAD, _BYTES_AHEAD = 4, 1024


def key_runs(keys: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Choose the runs of bytes by which keys are looked for: few, and rare in other words.

    Returns
    -------
    tuple
        The runs as `run_marks` takes them, and where in each key the one stands by which it is
        found, int64 (keys,).
    """
    runs: list[bytes] = []
    left = set(keys)

    def worth(run: bytes) -> tuple[bool, int]:
        # where two words of a key meet is found in few other words
        return run[1:2] == b"_", sum(run in key for key in left)

    while left:
        there_are = {key[at : at + RUN_BYTES] for key in left for at in range(len(key) - 2)}
        if not there_are or len(runs) == RUNS:
            raise ValueError(f"keys hold {sorted(left)!r}; expected longer ones, or more alike")
        runs.append(max(sorted(there_are), key=worth))
        left -= {key for key in left if runs[-1] in key}
    places = [next(key.index(run) for run in runs if run in key) for key in keys]
    table = np.frombuffer(b"".join(runs * RUNS)[: RUNS * RUN_BYTES], np.uint8)
    return aligned(np.repeat(table, BLOCK)), np.array(places, np.int64)


@always_inlined
def _marks(at: int, start: int, stop: int, runs: Any) -> Any:
    """Mark where a run begins from ``at`` on: the first of 64 places, and the marks."""
    if at + BLOCK + RUN_BYTES <= stop + 1:
        return at, run_marks(at, address_of(runs))
    base = stop + 1 - BLOCK - RUN_BYTES
    if base >= start:
        passed = np.uint64(at - base)
        return base, (run_marks(base, address_of(runs)) >> passed) << passed
    # a short cell: what stands after it may not be there
    marks = np.uint64(0)
    for place in range(at, stop + 1 - RUN_BYTES):
        for run in range(0, runs.size, BLOCK * RUN_BYTES):
            alike = True
            for byte in range(RUN_BYTES):
                alike &= load_byte(0, place + byte) == runs[run + BLOCK * byte]
            if alike:
                marks |= np.uint64(1) << np.uint64(place - at)
    return at, marks


@always_inlined
def _key_at(place: int, start: int, stop: int, names: int, offsets: Any, run_places: Any) -> Any:
    """Find the key whose run stands at a place: its number, -1 without one, and its bytes."""
    for key in range(offsets.size - 1):
        begin = place - run_places[key]
        length = offsets[key + 1] - offsets[key]
        if (
            begin >= start
            and begin + length <= stop
            and load_byte(0, begin) == load_byte(names, offsets[key])
            and same_bytes(begin, names + offsets[key], length)
            and (begin == start or not is_word(load_byte(0, begin - 1)))
        ):
            return key, begin, begin + length
    return -1, place, place


@always_inlined
def _value_behind(at: int, stop: int) -> int:
    """Find where the value of a key that ends at a place begins, -1 where the key has none."""
    at = after_spaces(0, skip_quotes(0, at, stop), stop)
    if at >= stop or not is_separator(load_byte(0, at)):
        return -1
    return after_spaces(0, at + 1, stop)


@always_inlined
def _has(begin: int, end: int, word: int, length: int) -> bool:
    """Tell whether a word stands anywhere between two places."""
    for place in range(begin, end - length + 1):
        if same_bytes(place, word, length):
            return True
    return False


@always_inlined
def _tool_bits(begin: int, end: int, words: Any, offsets: Any, bits: Any, giver: Any) -> Any:
    """Return the bits of a tool's name."""
    found = np.uint64(0)
    for word in range(offsets.size - 1):
        first = address_of(words) + offsets[word]
        if _has(begin, end, first, offsets[word + 1] - offsets[word]):
            found |= bits[word]
    if end - begin == giver.size and same_bytes(begin, address_of(giver), giver.size):
        found |= GIVES
    return found


@always_inlined
def _number(begin: int, end: int, stop: int, values: Any, table: Any, count: int) -> Any:
    """Return the number of a value; a new one has the next, and is listed."""
    listed, width = address_of(values), 8 * values.shape[1]
    mixed = hashed(0, stop, begin, end)
    known = listed, listed + width, listed + 2 * width
    place = range_place(0, begin, end, mixed, address_of(table), table.size - 1, *known)
    if table[place] < 0:
        table[place] = count
        values[0, count], values[1, count], values[2, count] = begin, end, np.int64(mixed)
    return table[place]


class Values(NamedTuple):
    """Distinct simple values, by number.

    Parameters
    ----------
    places : int64 (3, capacity)
        Where each begins and ends, by address, and its hash.
    bits : uint64 (capacity,)
        What each is as the name of a tool.
    table : int64
        Numbers by their hashes, twice as many as there is room for, a power of two; -1 is free.
    """

    places: Longs
    bits: npt.NDArray[np.uint64]
    table: Longs


class Said(NamedTuple):
    """What cells say, a row each: as `tool_calls.ToolCells` has it."""

    uses: Mask
    attributes: Longs
    lists: Longs
    broken: Mask
    has_items: Mask


@kernel(
    "int64[:], int64[:], "
    "(uint8[:], int64[:], uint8[:], int64[:], (uint8[:], int64[:], uint64[:], uint8[:]), "
    "uint8[:], int64), "
    "int64, Values(out(int64[:, :]), out(uint64[:]), out(int64[:])), int64, "
    "Said(out(bool[:, :]), out(int64[:, :]), out(int64[:]), out(bool[:]), out(bool[:]))",
    returns="int64, int64",
    fastmath=False,
    allocates=False,
)
def walk_cells(
    addresses: Any,
    lengths: Any,
    wanted: Any,
    first_row: int,
    values: Values,
    count: int,
    said: Said,
) -> Any:
    """Read cells from a row on; return the row before which ``values`` are full, and their count.

    ``wanted`` is what `tool_calls` makes of a format.
    """
    places, value_bits, table = values
    uses, attributes, lists, broken, has_items = said
    names, name_offsets, runs, run_places, tools, marker, reach = wanted
    words, word_offsets, word_bits, giver = tools
    keys = address_of(names)
    mark, mark_size = address_of(marker), marker.size
    for row in range(first_row, lengths.size):
        start, stop = addresses[row], addresses[row] + lengths[row]
        used = np.uint64(0)
        given = 0
        chosen = -1
        marked = awaits_end = cut = False
        attributes[row, :] = -1
        ahead = min(row + _ROWS_AHEAD, lengths.size - 1)
        prefetch_text(addresses[ahead], min(lengths[ahead], _BYTES_AHEAD))
        at = start
        while at <= stop - RUN_BYTES:
            base, marks = _marks(at, start, stop, runs)
            at = base + BLOCK
            while marks != 0:
                place = base + trailing_zeros(marks)
                marks &= marks - np.uint64(1)
                key, begin, end = _key_at(place, start, stop, keys, name_offsets, run_places)
                value = _value_behind(end, stop) if key >= 0 else -1
                if value < 0:
                    continue
                if key == LIST_END:
                    cut = cut and not awaits_end
                    awaits_end = False
                elif key == LIST:
                    if value < stop and load_byte(0, value) == _OPEN:
                        low = max(start, begin - reach)
                        awaits_end = _has(low, begin, mark, mark_size)
                        if awaits_end:
                            marked = cut = True
                            chosen = value
                        elif not marked and chosen < 0 and (used & TRACKS) != 0:
                            chosen = value
                else:
                    if count == places.shape[1]:
                        return row, count
                    first, last = scalar(0, value, stop)
                    number = _number(first, last, stop, places, table, count)
                    if number == count:
                        count += 1
                        value_bits[number] = _tool_bits(
                            first, last, words, word_offsets, word_bits, giver
                        )
                    if key == TOOL:
                        bits = value_bits[number]
                        if (bits & GIVES) != 0 and (used & GIVES) == 0:
                            attributes[row, :] = -1
                            given = 0
                        used |= bits
                    elif (given >> key) & 1 == 0:
                        given |= 1 << key
                        if last > first:
                            attributes[row, key - FIRST_ATTRIBUTE] = number
        for kind in range(uses.shape[1]):
            uses[row, kind] = (used >> np.uint64(kind)) & np.uint64(1) != 0
        broken[row] = cut
        lists[row] = -1 if chosen < 0 or cut else chosen - start
        has_items[row] = cut or (lists[row] >= 0 and list_has_items(0, chosen, stop))
    return lengths.size, count
