"""The compiled walk over cells of tool calls; `tool_calls` has the rules.

Loops are spelled out, as `any` over a generator does not compile.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_machine.arrays import Longs, Mask
from fastscore_machine.bits import trailing_zeros
from fastscore_machine.byte_blocks import BLOCK, RUN_BYTES, RUNS, aligned, prefetch_text, run_marks
from fastscore_machine.compiling import always_inlined, kernel
from fastscore_machine.memory import View, Views, load_byte, part_of
from fastscore_machine.views import same_bytes

from fastscore.suites.guest_simulation.nearly_python._item_lists import (
    after_spaces,
    is_separator,
    is_word,
    list_has_items,
    scalar,
    skip_quotes,
)
from fastscore.suites.guest_simulation.nearly_python.distinct_texts import (
    DistinctTexts,
    text_number,
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
def _marks(cell: View, at: int, runs: Any) -> Any:
    """Mark where a run begins from ``at`` on: the first of 64 places, and the marks."""
    base = cell.length + 1 - BLOCK - RUN_BYTES
    if at <= base:
        return at, run_marks(cell, at, runs, 0)
    if base >= 0:
        passed = np.uint64(at - base)
        return base, (run_marks(cell, base, runs, 0) >> passed) << passed
    # a short cell: what stands after it may not be there
    marks = np.uint64(0)
    for place in range(at, cell.length + 1 - RUN_BYTES):
        for run in range(0, runs.size, BLOCK * RUN_BYTES):
            alike = True
            for byte in range(RUN_BYTES):
                alike &= load_byte(cell, place + byte) == runs[run + BLOCK * byte]
            if alike:
                marks |= np.uint64(1) << np.uint64(place - at)
    return at, marks


@always_inlined
def _key_at(cell: View, place: int, names: Any, offsets: Any, run_places: Any) -> Any:
    """Find the key whose run stands at a place: its number, -1 without one, and its bytes."""
    for key in range(offsets.size - 1):
        begin = place - run_places[key]
        length = offsets[key + 1] - offsets[key]
        if (
            begin >= 0
            and begin + length <= cell.length
            and load_byte(cell, begin) == load_byte(names, offsets[key])
            and same_bytes(cell, begin, names, offsets[key], length)
            and (begin == 0 or not is_word(load_byte(cell, begin - 1)))
        ):
            return key, begin, begin + length
    return -1, place, place


@always_inlined
def _value_after(cell: View, at: int) -> int:
    """Find where the value of a key that ends at a place begins, -1 where the key has none."""
    at = after_spaces(cell, skip_quotes(cell, at, cell.length), cell.length)
    if at >= cell.length or not is_separator(load_byte(cell, at)):
        return -1
    return after_spaces(cell, at + 1, cell.length)


@always_inlined
def _has(text: View, word: View) -> bool:
    """Tell whether a word stands anywhere in a text."""
    for place in range(text.length - word.length + 1):
        if same_bytes(text, place, word, 0, word.length):
            return True
    return False


@always_inlined
def _tool_bits(name: View, tools: Any) -> Any:
    """Return the bits of a tool's name."""
    words, offsets, bits, giver = tools
    found = np.uint64(0)
    for word in range(offsets.size - 1):
        if _has(name, part_of(words, offsets[word], offsets[word + 1] - offsets[word])):
            found |= bits[word]
    if name.length == giver.size and same_bytes(name, 0, giver, 0, giver.size):
        found |= GIVES
    return found


@always_inlined
def _write_bits(bits: Any, flags: Any, row: int) -> None:
    for kind in range(flags.shape[1]):
        flags[row, kind] = (bits >> np.uint64(kind)) & np.uint64(1) != 0


class Said(NamedTuple):
    """What cells say, a row each: as `tool_calls.ToolCells` has it."""

    uses: Mask
    attributes: Longs
    lists: Longs
    broken: Mask
    has_items: Mask


@kernel(
    "Views(int64[:], int64[:]), "
    "(uint8[:], int64[:], uint8[:], int64[:], (uint8[:], int64[:], uint64[:], uint8[:]), "
    "uint8[:], int64), "
    "int64, DistinctTexts(out(int64[:, :]), out(int64[:])), out(uint64[:]), int64, "
    "Said(out(bool[:, :]), out(int64[:, :]), out(int64[:]), out(bool[:]), out(bool[:]))",
    returns="int64, int64",
    fastmath=False,
    allocates=False,
)
def walk_cells(
    cells: Views,
    wanted: Any,
    first_row: int,
    values: DistinctTexts,
    value_bits: Any,
    count: int,
    said: Said,
) -> Any:
    """Read cells from a row on; return the row before which ``values`` are full, and their count.

    ``wanted`` is what `tool_calls` makes of a format; ``value_bits`` (capacity,) gets what each
    value is as the name of a tool.
    """
    addresses, lengths = cells
    places, table = values
    uses, attributes, lists, broken, has_items = said
    names, name_offsets, runs, run_places, tools, marker, reach = wanted
    mark = part_of(marker, 0, marker.size)
    for row in range(first_row, lengths.size):
        cell, stop = View(addresses[row], lengths[row]), lengths[row]
        used = np.uint64(0)
        given = 0
        chosen = -1
        marked = awaits_end = cut = False
        attributes[row, :] = -1
        ahead = min(row + _ROWS_AHEAD, lengths.size - 1)
        prefetch_text(View(addresses[ahead], min(lengths[ahead], _BYTES_AHEAD)))
        at = 0
        while at <= stop - RUN_BYTES:
            base, marks = _marks(cell, at, runs)
            at = base + BLOCK
            while marks != 0:
                place = base + trailing_zeros(marks)
                marks &= marks - np.uint64(1)
                key, begin, end = _key_at(cell, place, names, name_offsets, run_places)
                value = _value_after(cell, end) if key >= 0 else -1
                if value < 0:
                    continue
                if key == LIST_END:
                    cut = cut and not awaits_end
                    awaits_end = False
                elif key == LIST:
                    if value < stop and load_byte(cell, value) == _OPEN:
                        low = max(0, begin - reach)
                        awaits_end = _has(part_of(cell, low, begin - low), mark)
                        if awaits_end:
                            marked = cut = True
                            chosen = value
                        elif not marked and chosen < 0 and (used & TRACKS) != 0:
                            chosen = value
                else:
                    if count == places.shape[1]:
                        return row, count
                    first, last = scalar(cell, value, stop)
                    text = part_of(cell, first, last - first)
                    number = text_number(text, places, table, count)
                    if number == count:
                        count += 1
                        value_bits[number] = _tool_bits(text, tools)
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
        _write_bits(used, uses, row)
        broken[row] = cut
        lists[row] = -1 if chosen < 0 or cut else chosen
        has_items[row] = cut or (lists[row] >= 0 and list_has_items(cell, chosen, stop))
    return lengths.size, count
