"""The compiled walk over cells of tool calls; `tool_calls` has the rules.

Loops are spelled out, as `any` over a generator does not compile.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, Mask
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import (
    BLOCK,
    TRIGRAM_BYTES,
    TRIGRAMS,
    aligned,
    mark_trigrams,
    prefetch_text,
)
from fastscore_jit.compiling import always_inlined, kernel
from fastscore_jit.memory import View, Views, load_byte, subview
from fastscore_jit.views import same_bytes

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


def choose_trigrams(keys: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Choose the byte trigrams by which keys are looked for: few, and rare in other words.

    Returns
    -------
    tuple
        The trigrams as `mark_trigrams` takes them, and where in each key the one stands by which it
        is found, int64 (keys,).
    """
    trigrams: list[bytes] = []
    left = set(keys)

    def rank(trigram: bytes) -> tuple[bool, int]:
        # where two words of a key meet is found in few other words
        return trigram[1:2] == b"_", sum(trigram in key for key in left)

    while left:
        there_are = {key[at : at + TRIGRAM_BYTES] for key in left for at in range(len(key) - 2)}
        if not there_are or len(trigrams) == TRIGRAMS:
            raise ValueError(f"keys hold {sorted(left)!r}; expected longer ones, or more alike")
        trigrams.append(max(sorted(there_are), key=rank))
        left -= {key for key in left if trigrams[-1] in key}
    places = [next(key.index(trigram) for trigram in trigrams if trigram in key) for key in keys]
    table = np.frombuffer(b"".join(trigrams * TRIGRAMS)[: TRIGRAMS * TRIGRAM_BYTES], np.uint8)
    return aligned(np.repeat(table, BLOCK)), np.array(places, np.int64)


@always_inlined
def _mark_trigrams_from(cell: View, at: int, trigrams: Any) -> Any:
    """Mark where a trigram begins from ``at`` on: the first of 64 places, and the marks."""
    base = cell.length + 1 - BLOCK - TRIGRAM_BYTES
    if at <= base:
        return at, mark_trigrams(cell, at, trigrams, 0)
    if base >= 0:
        passed = np.uint64(at - base)
        return base, (mark_trigrams(cell, base, trigrams, 0) >> passed) << passed
    # a short cell: what stands after it may not be there
    marks = np.uint64(0)
    for place in range(at, cell.length + 1 - TRIGRAM_BYTES):
        for trigram in range(0, trigrams.size, BLOCK * TRIGRAM_BYTES):
            alike = True
            for byte in range(TRIGRAM_BYTES):
                alike &= load_byte(cell, place + byte) == trigrams[trigram + BLOCK * byte]
            if alike:
                marks |= np.uint64(1) << np.uint64(place - at)
    return at, marks


@always_inlined
def _find_key(cell: View, place: int, names: Any, offsets: Any, trigram_places: Any) -> Any:
    """Find the key whose trigram stands at a place: its number, -1 without one, and its bytes."""
    for key in range(offsets.size - 1):
        begin = place - trigram_places[key]
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
def _contains(text: View, word: View) -> bool:
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
        if _contains(name, subview(words, offsets[word], offsets[word + 1] - offsets[word])):
            found |= bits[word]
    if name.length == giver.size and same_bytes(name, 0, giver, 0, giver.size):
        found |= GIVES
    return found


@always_inlined
def _write_bits(bits: Any, flags: Any, row: int) -> None:
    for kind in range(flags.shape[1]):
        flags[row, kind] = (bits >> np.uint64(kind)) & np.uint64(1) != 0


class ParsedCells(NamedTuple):
    """What was parsed of cells, a row each: as `tool_calls.ToolCells` has it."""

    uses: Mask
    attributes: Int64Array
    lists: Int64Array
    broken: Mask
    has_items: Mask


@kernel(
    "Views(int64[:], int64[:]), "
    "(uint8[:], int64[:], uint8[:], int64[:], (uint8[:], int64[:], uint64[:], uint8[:]), "
    "uint8[:], int64), "
    "int64, DistinctTexts(out(int64[:, :]), out(int64[:])), out(uint64[:]), int64, "
    "ParsedCells(out(bool[:, :]), out(int64[:, :]), out(int64[:]), out(bool[:]), out(bool[:]))",
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
    parsed: ParsedCells,
) -> Any:
    """Read cells from a row on; return the row before which ``values`` are full, and their count.

    ``wanted`` is what `tool_calls` makes of a format; ``value_bits`` (capacity,) gets what each
    value is as the name of a tool.
    """
    addresses, lengths = cells
    places, table = values
    uses, attributes, lists, broken, has_items = parsed
    names, name_offsets, trigrams, trigram_places, tools, marker, reach = wanted
    mark = subview(marker, 0, marker.size)
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
        while at <= stop - TRIGRAM_BYTES:
            base, marks = _mark_trigrams_from(cell, at, trigrams)
            at = base + BLOCK
            while marks != 0:
                place = base + trailing_zeros(marks)
                marks &= marks - np.uint64(1)
                key, begin, end = _find_key(cell, place, names, name_offsets, trigram_places)
                value = _value_after(cell, end) if key >= 0 else -1
                if value < 0:
                    continue
                if key == LIST_END:
                    cut = cut and not awaits_end
                    awaits_end = False
                elif key == LIST:
                    if value < stop and load_byte(cell, value) == _OPEN:
                        low = max(0, begin - reach)
                        awaits_end = _contains(subview(cell, low, begin - low), mark)
                        if awaits_end:
                            marked = cut = True
                            chosen = value
                        elif not marked and chosen < 0 and (used & TRACKS) != 0:
                            chosen = value
                else:
                    if count == places.shape[1]:
                        return row, count
                    first, last = scalar(cell, value, stop)
                    text = subview(cell, first, last - first)
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
