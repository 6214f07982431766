"""Keys of objects that mostly have the same keys, in the same order.

Beside the wanted keys, an object's node remembers how its latest keys were written, up to their
values. Bytes that were a key before are the same key again: they are compared, not read.
"""

from typing import Any

import numpy as np
from fastscore_machine.byte_blocks import BLOCK, equal_blocks
from fastscore_machine.compiling import always_inlined, inlined
from fastscore_machine.memory import address_of, load_byte, load_word, store_word

from fastscore_readers.json._jsonl_values import unescape
from fastscore_readers.text_bytes import QUOTE, first_word, scan_string, skip_blanks

MOST_RECENT = 32
"""How many written keys a node remembers."""

_TRIES = 6
_COLON = 0x3A
_AT, _LENGTH, _KEY, _KEY_BYTES = range(0, 32, 8)
_COUNT = MOST_RECENT * _KEY_BYTES
NODE_BYTES = _COUNT + _KEY_BYTES
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def find_key(
    data: int, start: int, end: int, stop: int, names: int, offsets: int, words: int, n_keys: int
) -> int:
    """Index of the wanted key whose bytes are data[start:end], or -1."""
    length = end - start
    word = first_word(data, start, length, stop)
    for key in range(n_keys):
        if load_word(words, 8 * key) != word:
            continue
        name = np.int64(load_word(offsets, 8 * key))
        if np.int64(load_word(offsets, 8 * key + 8)) - name != length:
            continue
        same = True
        for position in range(8, length):
            if load_byte(names, name + position) != load_byte(data, start + position):
                same = False
                break
        if same:
            return key
    return -1


@inlined
def find_escaped_key(
    data: int, start: int, end: int, names: int, offsets: int, words: int, n_keys: int
) -> int:
    """Like `find_key` for a key that is written with escapes."""
    plain = np.empty(end - start, np.uint8)
    base = address_of(plain)
    length = unescape(data, start, end, base, 0)
    if length < 0:
        return -1
    key = find_key(base, 0, length, plain.size, names, offsets, words, n_keys)
    # naming the array here keeps it alive until its address is used no more
    return key if plain.size >= length else -1


@inlined
def recent_keys(n_nodes: int) -> Any:
    """Room for what nodes remember: nothing yet. The last row counts a node's keys."""
    return np.zeros(n_nodes * (MOST_RECENT + 1) * 3, np.int64)


@always_inlined
def member_key(
    data: int,
    index: int,
    stop: int,
    first: int,
    n_keys: int,
    names: int,
    offsets: int,
    words: int,
    recent: int,
    turn: int,
) -> tuple[int, int, int]:
    """Walk a member's key.

    Returns the position of its value or ``-1 - fault``, which of the wanted keys it is or -1, and
    the ``turn`` of the object's next key, from 0 on.
    """
    count: Any = np.int64(load_word(recent, _COUNT))
    if index + BLOCK <= stop:
        for _ in range(min(_TRIES, count)):
            turn = turn if turn < count else 0
            known = recent + _KEY_BYTES * turn
            length: Any = np.int64(load_word(known, _LENGTH))
            same = equal_blocks(data + index, data + np.int64(load_word(known, _AT)))
            # the lowest bit that is not set is that of the first byte that differs
            if ~same & (_ALL >> np.uint64(BLOCK - length)) == np.uint64(0):
                key: Any = np.int64(load_word(known, _KEY)) - 1
                return skip_blanks(data, index + length, stop), key, turn + 1
            turn += 1
    if index >= stop or load_byte(data, index) != QUOTE:
        return -1 - index, -1, turn
    name = index + 1
    name_end, escaped = scan_string(data, name, stop)
    if name_end < 0:
        return name_end, -1, turn
    value = skip_blanks(data, name_end + 1, stop)
    if value >= stop or load_byte(data, value) != _COLON:
        return -1 - value, -1, turn
    value = skip_blanks(data, value + 1, stop)
    offsets, words = offsets + 8 * first, words + 8 * first
    if escaped:
        key = find_escaped_key(data, name, name_end, names, offsets, words, n_keys)
    else:
        key = find_key(data, name, name_end, stop, names, offsets, words, n_keys)
    if value - index <= BLOCK and index + BLOCK <= stop:
        turn = count
        if count < MOST_RECENT:
            store_word(recent, _COUNT, np.uint64(count + 1))
        else:
            turn = MOST_RECENT - 1
        latest = recent + _KEY_BYTES * turn
        store_word(latest, _AT, np.uint64(index))
        store_word(latest, _LENGTH, np.uint64(value - index))
        # none is -1, and words are not negative
        store_word(latest, _KEY, np.uint64(key + 1))
        turn += 1
    return value, key, turn
