"""One walk over nested JSON values that notes every wanted value on its way.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np

from fastscore_kernels._jit import inlined, kernel
from fastscore_kernels._jsonl_bytes import QUOTE, address_of, load_byte, scan_string, skip_blanks
from fastscore_kernels._jsonl_scan import (
    ABSENT,
    ARRAY,
    ESCAPED,
    MAX_DEPTH,
    OBJECT,
    STRING,
    find_escaped_key,
    find_key,
    scan_container,
    scan_scalar,
)

GRAIN, FIRST_KEY, N_KEYS, ELEMENT, BELOW, LEVELS = range(6)
"""What a row of ``nodes`` holds: the node's grain, its first key and their number, the node of its
elements or -1, the node behind those below it, and how many wanted containers lie on its path."""

_COMMA, _COLON = 0x2C, 0x3A
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
# no fault can be at such a place
_FULL = -(1 << 62)


@inlined
def _forget(
    node: int, slot: int, nodes: Any, grain: int, before: Any, counts: Any, tags: Any
) -> None:
    """Drop what an earlier one of equal keys gave: of these the last counts."""
    for below in range(node, nodes[node, BELOW]):
        if nodes[below, GRAIN] == grain:
            tags[below, slot] = ABSENT
        else:
            counts[nodes[below, GRAIN]] = before[nodes[below, GRAIN]]


@inlined
def _member(
    data: int,
    index: int,
    stop: int,
    first: int,
    n_keys: int,
    names: int,
    offsets: int,
    words: int,
    nodes_of_keys: Any,
) -> tuple[int, int]:
    """Walk a member's key: (position of its value or ``-1 - fault``, its node or -1)."""
    if index >= stop or load_byte(data, index) != QUOTE:
        return -1 - index, -1
    name = index + 1
    name_end, escaped = scan_string(data, name, stop)
    if name_end < 0:
        return name_end, -1
    index = skip_blanks(data, name_end + 1, stop)
    if index >= stop or load_byte(data, index) != _COLON:
        return -1 - index, -1
    offsets, words = offsets + 8 * first, words + 8 * first
    if escaped:
        key = find_escaped_key(data, name, name_end, names, offsets, words, n_keys)
    else:
        key = find_key(data, name, name_end, stop, names, offsets, words, n_keys)
    node: Any = nodes_of_keys[first + key] if key >= 0 else np.int64(-1)
    return skip_blanks(data, index + 1, stop), node


@inlined
def _walk(
    data: int,
    index: int,
    stop: int,
    slot: int,
    nodes: Any,
    names: int,
    offsets: int,
    words: int,
    nodes_of_keys: Any,
    objects: int,
    frames: Any,
    before: Any,
    tags: Any,
    starts: Any,
    ends: Any,
    owners: Any,
    counts: Any,
) -> int:
    """Walk one value, the root's: position behind it, ``-1 - fault``, or `_FULL`."""
    depth = 0
    node: Any = np.int64(0)
    while True:
        # here a value starts at index; node says which one is wanted, or -1
        if index >= stop:
            return -1 - stop
        byte = load_byte(data, index)
        opens_object, opens_array = byte == _OPEN_OBJECT, byte == _OPEN_ARRAY
        entered = False
        if node >= 0 and (
            (opens_object and nodes[node, N_KEYS] > 0)
            or (opens_array and nodes[node, ELEMENT] >= 0)
        ):
            tags[node, slot] = OBJECT if opens_object else ARRAY
            starts[node, slot] = index
            index = skip_blanks(data, index + 1, stop)
            closing = _CLOSE_OBJECT if opens_object else _CLOSE_ARRAY
            if index < stop and load_byte(data, index) == closing:
                index += 1
                ends[node, slot] = index
            else:
                frames[depth, 0], frames[depth, 1], frames[depth, 2] = node, slot, opens_object
                for of_grain in range(counts.size):
                    before[depth, of_grain] = counts[of_grain]
                depth += 1
                entered = True
        else:
            start = index
            if opens_object or opens_array:
                tag = OBJECT if opens_object else ARRAY
                index = scan_container(data, index, stop, depth, objects)
            else:
                index, tag = scan_scalar(data, index, stop)
            if index < 0:
                return index
            if node >= 0:
                inside = 1 if tag == STRING or tag == ESCAPED else 0
                tags[node, slot] = tag
                starts[node, slot], ends[node, slot] = start + inside, index - inside
        while not entered:
            # here a value has ended
            if depth == 0:
                return index
            index = skip_blanks(data, index, stop)
            if index >= stop:
                return -1 - stop
            byte = load_byte(data, index)
            if byte == _COMMA:
                index = skip_blanks(data, index + 1, stop)
                break
            if byte != (_CLOSE_OBJECT if frames[depth - 1, 2] else _CLOSE_ARRAY):
                return -1 - index
            index += 1
            depth -= 1
            ends[frames[depth, 0], frames[depth, 1]] = index
        parent, slot = frames[depth - 1, 0], frames[depth - 1, 1]
        if frames[depth - 1, 2]:
            index, node = _member(
                data,
                index,
                stop,
                nodes[parent, FIRST_KEY],
                nodes[parent, N_KEYS],
                names,
                offsets,
                words,
                nodes_of_keys,
            )
            if index < 0:
                return index
            if node >= 0 and tags[node, slot] != ABSENT:
                grain = nodes[node, GRAIN]
                _forget(node, slot, nodes, grain, before[depth - 1], counts, tags)
        else:
            node = nodes[parent, ELEMENT]
            grain = nodes[node, GRAIN]
            if counts[grain] == owners.shape[1]:
                return _FULL
            owner, slot = slot, counts[grain]
            counts[grain] += 1
            owners[grain, slot] = owner
            for member in range(node, nodes[node, BELOW]):
                if nodes[member, GRAIN] == grain:
                    tags[member, slot] = ABSENT


@kernel(fastmath=False)
def walk_values(
    data: Any,
    value_starts: Any,
    value_ends: Any,
    row: int,
    nodes: Any,
    names: Any,
    offsets: Any,
    words: Any,
    nodes_of_keys: Any,
    tags: Any,
    starts: Any,
    ends: Any,
    owners: Any,
    counts: Any,
    faulty: Any,
) -> int:
    """Walk the values from ``row`` on; return the first one for which there was no more room.

    ``nodes`` (n, N_FIELDS) are the wanted places in preorder, grain by grain; ``tags``, ``starts``
    and ``ends`` (n, capacity) take their values, ``owners`` (grains, capacity) and ``counts`` the
    values of each grain; ``faulty`` marks values that are no JSON: nothing below them is noted.
    """
    stack = np.zeros(MAX_DEPTH, np.uint8)
    levels = nodes[:, LEVELS].max() + 1
    frames = np.empty((levels, 3), np.int64)
    before = np.empty((levels, counts.size), np.int64)
    counts_of_row = np.empty(counts.size, np.int64)
    base, objects = address_of(data), address_of(stack)
    name_bytes, name_offsets, name_words = address_of(names), address_of(offsets), address_of(words)
    while row < value_starts.size:
        counts_of_row[:] = counts
        counts[0] = row + 1
        owners[0, row] = row
        for node in range(nodes.shape[0]):
            if nodes[node, GRAIN] == 0:
                tags[node, row] = ABSENT
        stop = value_ends[row]
        index = skip_blanks(base, value_starts[row], stop)
        if index < stop:
            after = _walk(
                base,
                index,
                stop,
                row,
                nodes,
                name_bytes,
                name_offsets,
                name_words,
                nodes_of_keys,
                objects,
                frames,
                before,
                tags,
                starts,
                ends,
                owners,
                counts,
            )
            if after == _FULL:
                counts[:] = counts_of_row
                break
            if after < 0 or skip_blanks(base, after, stop) < stop:
                faulty[row] = True
                counts[1:] = counts_of_row[1:]
                for node in range(nodes.shape[0]):
                    if nodes[node, GRAIN] == 0:
                        tags[node, row] = ABSENT
        row += 1
    # naming the array here keeps it alive until its address is used no more
    return int(row + stack.size - MAX_DEPTH)
