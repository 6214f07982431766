"""One walk over JSON values that notes every value in them, in the order of the text.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

from fastscore_kernels._jit import inlined, kernel
from fastscore_kernels._jsonl_bytes import (
    NEWLINE,
    QUOTE,
    RETURN,
    SPACE,
    TAB,
    address_of,
    load_byte,
    scan_string,
)
from fastscore_kernels._jsonl_scan import ABSENT, ARRAY, ESCAPED, OBJECT, STRING, scan_scalar

PARENT, START, END, KEY_START, KEY_END = range(5)
"""What a row of ``nodes`` holds; a key's bytes are -1 and -1 for elements and roots."""

_COMMA, _COLON = 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
_NO_ROOM = -2


@inlined
def _skip_space(data: int, index: int, stop: int) -> int:
    """First position from ``index`` on that holds no white space of JSON."""
    while index < stop:
        byte = load_byte(data, index)
        if byte != SPACE and byte != NEWLINE and byte != RETURN and byte != TAB:
            break
        index += 1
    return index


@inlined
def _walk(
    data: int, index: int, stop: int, count: int, nodes: Any, tags: Any, key_tags: Any
) -> int:
    """Note a value and all below it from node ``count`` on: the count then, -1, or `_NO_ROOM`."""
    container = -1
    key_start = key_end = -1
    key_tag = ABSENT
    while True:
        # here a value starts at index
        if index >= stop:
            return -1
        if count == tags.size:
            return _NO_ROOM
        node = count
        count += 1
        nodes[PARENT, node], nodes[START, node] = container, index
        nodes[KEY_START, node], nodes[KEY_END, node] = key_start, key_end
        key_tags[node] = key_tag
        byte = load_byte(data, index)
        entered = False
        if byte == _OPEN_OBJECT or byte == _OPEN_ARRAY:
            tags[node] = OBJECT if byte == _OPEN_OBJECT else ARRAY
            index = _skip_space(data, index + 1, stop)
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
            index = _skip_space(data, index, stop)
            if container < 0:
                return count if index >= stop else -1
            if index >= stop:
                return -1
            byte = load_byte(data, index)
            if byte == _COMMA:
                index = _skip_space(data, index + 1, stop)
                break
            if byte != (_CLOSE_OBJECT if tags[container] == OBJECT else _CLOSE_ARRAY):
                return -1
            index += 1
            nodes[END, container] = index
            container = nodes[PARENT, container]
        key_start = key_end = -1
        key_tag = ABSENT
        if tags[container] == OBJECT:
            if index >= stop or load_byte(data, index) != QUOTE:
                return -1
            key_start = index + 1
            key_end, escaped = scan_string(data, key_start, stop)
            if key_end < 0:
                return -1
            key_tag = ESCAPED if escaped else STRING
            index = _skip_space(data, key_end + 1, stop)
            if index >= stop or load_byte(data, index) != _COLON:
                return -1
            index = _skip_space(data, index + 1, stop)


@kernel(fastmath=False)
def walk_trees(
    data: Any,
    starts: Any,
    ends: Any,
    row: int,
    nodes: Any,
    tags: Any,
    key_tags: Any,
    offsets: Any,
) -> int:
    """Walk the values from ``row`` on; return the first one for which there was no more room.

    ``nodes`` (5, capacity), ``tags`` and ``key_tags`` (capacity,) take the nodes, and ``offsets``
    (n + 1,) where each value's begin. What is no JSON value is one node, which is absent.
    """
    base = address_of(data)
    while row < starts.size:
        first = offsets[row]
        index = _skip_space(base, starts[row], ends[row])
        count = _walk(base, index, ends[row], first, nodes, tags, key_tags)
        if count == _NO_ROOM or first == tags.size:
            break
        if count < 0:
            tags[first] = key_tags[first] = ABSENT
            nodes[PARENT, first] = nodes[KEY_START, first] = nodes[KEY_END, first] = -1
            nodes[START, first] = nodes[END, first] = index
            count = first + 1
        offsets[row + 1] = count
        row += 1
    return row
