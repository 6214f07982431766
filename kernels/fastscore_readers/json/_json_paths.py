"""One walk over nested JSON values that notes every wanted value on its way.

Comparisons are spelled out: `in` over a tuple compiles to slower code.
"""

# ruff: noqa: SIM109

from typing import Any

import numpy as np
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import address_of, load_byte

from fastscore_readers.json._json_keys import NODE_BYTES, member_key, recent_keys
from fastscore_readers.json._json_skips import skip_container, skip_scalar
from fastscore_readers.json._jsonl_scan import scan_container, scan_scalar
from fastscore_readers.json.tokens import ABSENT, ARRAY, ESCAPED, MAX_DEPTH, OBJECT, STRING
from fastscore_readers.text_bytes import skip_blanks

GRAIN, FIRST_KEY, N_KEYS, ELEMENT, BELOW, LEVELS, BASE = range(7)
"""What a row of ``nodes`` holds: the node's grain, its first key and their number, the node of its
elements or -1, the node behind those below it, how many wanted containers lie on its path, and
where its values begin in the flat arrays."""
CAPACITY, OWNERS = range(2)
"""What a row of ``grains`` holds: room for how many values, and where their owners begin."""

_COMMA = 0x2C
_OPEN_OBJECT, _CLOSE_OBJECT, _OPEN_ARRAY, _CLOSE_ARRAY = 0x7B, 0x7D, 0x5B, 0x5D
# no fault can be at such a place
_FULL = -(1 << 62)


@inlined
def _forget(
    node: int, slot: int, nodes: Any, grains: Any, counts: Any, tags: Any, owners: Any
) -> None:
    """Drop what stands at a node and below it: of equal keys the last counts."""
    grain = nodes[node, GRAIN]
    for below in range(node, nodes[node, BELOW]):
        if nodes[below, GRAIN] == grain:
            tags[nodes[below, BASE] + slot] = ABSENT
        element = nodes[below, ELEMENT]
        if element < 0:
            continue
        # owners ascend, and those above have been dropped already
        of_array, inner = nodes[below, GRAIN], nodes[element, GRAIN]
        least = slot if of_array == grain else counts[of_array]
        first = grains[inner, OWNERS]
        while counts[inner] > 0 and owners[first + counts[inner] - 1] >= least:
            counts[inner] -= 1
            for member in range(element, nodes[element, BELOW]):
                if nodes[member, GRAIN] == inner:
                    tags[nodes[member, BASE] + counts[inner]] = ABSENT


@inlined
def _walk(
    data: int,
    index: int,
    stop: int,
    validated: bool,
    slot: int,
    nodes: Any,
    grains: Any,
    names: int,
    offsets: int,
    words: int,
    nodes_of_keys: Any,
    recent: int,
    objects: int,
    frames: Any,
    tags: Any,
    starts: Any,
    ends: Any,
    owners: Any,
    counts: Any,
) -> int:
    """Walk one value, the root's: position behind it, ``-1 - fault``, or `_FULL`."""
    n_grains = grains.shape[0]
    depth = 0
    node: Any = np.int64(0)
    # the container that the value at index stands in
    parent, parent_slot, in_object, turn = 0, slot, False, 0
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
            at = nodes[node, BASE] + slot
            tags[at] = OBJECT if opens_object else ARRAY
            starts[at] = index
            index = skip_blanks(data, index + 1, stop)
            closing = _CLOSE_OBJECT if opens_object else _CLOSE_ARRAY
            if index < stop and load_byte(data, index) == closing:
                index += 1
                ends[at] = index
            else:
                frames[depth, 0], frames[depth, 1] = parent, parent_slot
                frames[depth, 2], frames[depth, 3] = in_object, turn
                parent, parent_slot, in_object, turn = node, slot, opens_object, 0
                depth += 1
                entered = True
        else:
            start = index
            if opens_object or opens_array:
                tag = OBJECT if opens_object else ARRAY
                if validated:
                    index, by_number = skip_container(data, index, stop)
                    counts[n_grains + 1] |= by_number
                else:
                    index = scan_container(data, index, stop, depth, objects)
            elif validated:
                index, tag, by_number = skip_scalar(data, index, stop)
                counts[n_grains + 1] |= by_number
            else:
                index, tag = scan_scalar(data, index, stop)
            if index < 0:
                return index
            if node >= 0:
                inside = 1 if tag == STRING or tag == ESCAPED else 0
                at = nodes[node, BASE] + slot
                tags[at] = tag
                # a string that is not closed after all has no closing quote to leave out
                starts[at], ends[at] = start + inside, max(index - inside, start + inside)
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
            if byte != (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY):
                return -1 - index
            index += 1
            depth -= 1
            ends[nodes[parent, BASE] + parent_slot] = index
            parent, parent_slot = frames[depth, 0], frames[depth, 1]
            in_object, turn = frames[depth, 2] != 0, frames[depth, 3]
        if in_object:
            first, n_keys = nodes[parent, FIRST_KEY], nodes[parent, N_KEYS]
            of_node = recent + NODE_BYTES * parent
            index, key, turn = member_key(
                data, index, stop, first, n_keys, names, offsets, words, of_node, turn
            )
            if index < 0:
                return index
            slot = parent_slot
            node = nodes_of_keys[first + key] if key >= 0 else np.int64(-1)
            if node >= 0 and tags[nodes[node, BASE] + slot] != ABSENT:
                _forget(node, slot, nodes, grains, counts, tags, owners)
        else:
            node = nodes[parent, ELEMENT]
            grain = nodes[node, GRAIN]
            slot = counts[grain]
            if slot == grains[grain, CAPACITY]:
                counts[n_grains] = grain
                return _FULL
            counts[grain] = slot + 1
            owners[grains[grain, OWNERS] + slot] = parent_slot


@kernel(
    "uint8[:], int64[:], int64[:], bool, int64, int64[:, :], int64[:, :], uint8[:], "
    "int64[:], uint64[:], int64[:], out(uint8[:]), out(int64[:]), out(int64[:]), "
    "out(int64[:]), out(int64[:]), out(bool[:])",
    returns="int64",
    fastmath=False,
)
def walk_values(
    data: Any,
    value_starts: Any,
    value_ends: Any,
    validated: bool,
    row: int,
    nodes: Any,
    grains: Any,
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
    r"""Walk the values from ``row`` on; return the first one for which there was no more room.

    ``nodes`` are the wanted places in preorder and ``grains`` their grains; ``tags``, ``starts``
    and ``ends`` take the values of one node behind those of another, ``owners`` those of grains.
    ``counts`` are the values of each grain, the grain without room, and whether a string was seen
    that is written with ``\u``, of which only ``validated`` values tell; ``faulty`` marks values
    that are no JSON: nothing below them is noted. ``tags`` are `ABSENT` where there is no value
    yet, and stay so where there is none.
    """
    stack = np.zeros(MAX_DEPTH, np.uint8)
    deepest = 0
    for node in range(nodes.shape[0]):
        deepest = max(deepest, nodes[node, LEVELS])
    frames = np.empty((deepest + 1, 4), np.int64)
    recent = recent_keys(nodes.shape[0])
    base, objects, recent_bytes = address_of(data), address_of(stack), address_of(recent)
    name_bytes, name_offsets, name_words = address_of(names), address_of(offsets), address_of(words)
    while row < value_starts.size:
        counts[0] = row + 1
        owners[row] = row
        stop = value_ends[row]
        index = skip_blanks(base, value_starts[row], stop)
        if index < stop:
            after = _walk(
                base,
                index,
                stop,
                validated,
                row,
                nodes,
                grains,
                name_bytes,
                name_offsets,
                name_words,
                nodes_of_keys,
                recent_bytes,
                objects,
                frames,
                tags,
                starts,
                ends,
                owners,
                counts,
            )
            if after < 0 or skip_blanks(base, after, stop) < stop:
                _forget(0, row, nodes, grains, counts, tags, owners)
                if after == _FULL:
                    break
                faulty[row] = True
        row += 1
    # naming the arrays here keeps them alive until their addresses are used no more
    return int(row + stack.size - MAX_DEPTH + 0 * recent.size)
