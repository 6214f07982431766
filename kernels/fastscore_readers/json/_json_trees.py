"""One walk over JSON values that notes every value in them, in the order of the text.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte

from fastscore_readers.json._jsonl_scan import scan_scalar
from fastscore_readers.json.tokens import ABSENT, ARRAY, ESCAPED, OBJECT, STRING
from fastscore_readers.text_bytes import QUOTE, first_word, scan_string, skip_space

PARENT, START, END, KEY = range(4)
"""What a row of ``nodes`` holds; a key's number is -1 for elements and roots."""

KEY_START, KEY_END = range(2)
"""What a row of ``keys`` holds: where each distinct key first stands."""

_COMMA, _COLON = 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_NO_ROOM = -2


@inlined
def _hash(data: int, start: int, end: int, stop: int) -> Any:
    mixed = np.uint64(end - start)
    while start < end:
        word = first_word(data, start, min(end - start, 8), stop)
        mixed = (mixed ^ word) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
        start += 8
    return mixed


@inlined
def _number_key(data: int, start: int, end: int, stop: int, keys: Any, table: Any) -> int:
    """Find the number of the key ``data[start:end]``; ``-1 - place`` in ``table`` if it is new."""
    mask = table.size - 1
    place = np.int64(_hash(data, start, end, stop) & np.uint64(mask))
    length = end - start
    while table[place] >= 0:
        key: Any = table[place]
        other = keys[KEY_START, key]
        if keys[KEY_END, key] - other == length:
            at = 0
            while at < length and load_byte(data, other + at) == load_byte(data, start + at):
                at += 1
            if at == length:
                return int(key)
        place = (place + 1) & mask
    return int(-1 - place)


@inlined
def _walk(
    data: int,
    index: int,
    stop: int,
    count: int,
    nodes: Any,
    tags: Any,
    keys: Any,
    table: Any,
    n_keys: Any,
) -> int:
    """Note a value and all below it from node ``count`` on: the count then, -1, or `_NO_ROOM`."""
    container = -1
    key = -1
    while True:
        # here a value starts at index
        if index >= stop:
            return -1
        if count == tags.size:
            return _NO_ROOM
        node = count
        count += 1
        nodes[PARENT, node], nodes[START, node] = container, index
        nodes[KEY, node] = key
        byte = load_byte(data, index)
        entered = False
        if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            tags[node] = OBJECT if byte == _OPEN_OBJECT else ARRAY
            index = skip_space(data, index + 1, stop)
            closing = _CLOSE_OBJECT if byte == _OPEN_OBJECT else _CLOSE_ARRAY
            if index < stop and load_byte(data, index) == closing:
                index += 1
                nodes[END, node] = index
            else:
                container = node
                entered = True
        else:
            index, tag = scan_scalar(data, index, stop)
            if index < 0:
                return -1
            inside = 1 if tag == STRING or tag == ESCAPED else 0
            tags[node] = tag
            nodes[START, node] += inside
            nodes[END, node] = index - inside
        while not entered:
            # here a value has ended
            index = skip_space(data, index, stop)
            if container < 0:
                return count if index >= stop else -1
            if index >= stop:
                return -1
            byte = load_byte(data, index)
            if byte == _COMMA:
                index = skip_space(data, index + 1, stop)
                break
            if byte != (_CLOSE_OBJECT if tags[container] == OBJECT else _CLOSE_ARRAY):
                return -1
            index += 1
            nodes[END, container] = index
            container = nodes[PARENT, container]
        key = -1
        if tags[container] == OBJECT:
            if index >= stop or load_byte(data, index) != QUOTE:
                return -1
            key_start = index + 1
            key_end, _ = scan_string(data, key_start, stop)
            if key_end < 0:
                return -1
            key = _number_key(data, key_start, key_end, stop, keys, table)
            if key < 0:
                if 2 * n_keys[0] >= table.size:
                    return _NO_ROOM
                place, key = -1 - key, n_keys[0]
                n_keys[0] += 1
                table[place] = key
                keys[KEY_START, key], keys[KEY_END, key] = key_start, key_end
            index = skip_space(data, key_end + 1, stop)
            if index >= stop or load_byte(data, index) != _COLON:
                return -1
            index = skip_space(data, index + 1, stop)


@kernel(
    "uint8[:], int64[:], int64[:], int64, out(int64[:, :]), out(uint8[:]), "
    "out(int64[:]), out(int64[:, :]), out(int64[:]), out(int64[:])",
    returns="int64",
    fastmath=False,
)
def walk_trees(
    data: Any,
    starts: Any,
    ends: Any,
    row: int,
    nodes: Any,
    tags: Any,
    offsets: Any,
    keys: Any,
    table: Any,
    n_keys: Any,
) -> int:
    """Walk the values from ``row`` on; return the first one for which there was no more room.

    ``nodes`` (4, capacity) and ``tags`` (capacity,) take the nodes, and ``offsets`` (n + 1,) where
    each value's begin. ``table`` (a power of two,) has the numbers of the ``n_keys`` (1,) distinct
    keys by hash, -1 elsewhere, and ``keys`` (2, table.size) where they stand. What is no JSON value
    is one node, which is absent.
    """
    base = address_of(data)
    while row < starts.size:
        first = offsets[row]
        index = skip_space(base, starts[row], ends[row])
        count = _walk(base, index, ends[row], first, nodes, tags, keys, table, n_keys)
        if count == _NO_ROOM or first == tags.size:
            break
        if count < 0:
            tags[first] = ABSENT
            nodes[PARENT, first] = nodes[KEY, first] = -1
            nodes[START, first] = nodes[END, first] = index
            count = first + 1
        offsets[row + 1] = count
        row += 1
    return row


@kernel("uint8[:], out(int64[:, :]), int64, out(int64[:])", fastmath=False)
def place_keys(data: Any, keys: Any, n_keys: int, table: Any) -> None:
    """Enter the first ``n_keys`` keys into an empty table."""
    base = address_of(data)
    for key in range(n_keys):
        start, end = keys[KEY_START, key], keys[KEY_END, key]
        table[-1 - _number_key(base, start, end, end, keys, table)] = key
