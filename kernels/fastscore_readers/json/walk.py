"""One walk over the index of a block, which notes the values of a shape in every line.

Comparisons are spelled out: `in` over a tuple compiles to slower code.

A `Shape` describes the wanted values: ``None`` the value itself, a mapping its members by key, a
list of one shape its elements. An object or array with a shape is wanted itself, too.
"""
# ruff: noqa: SIM109

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array
from fastscore_jit.declaring import always_inlined, inlined
from fastscore_jit.memory import byte_at, item_at, put_item, signed

from fastscore_readers.json.tokens import (
    ARRAY,
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    NEWLINE,
    OBJECT,
    OPEN_ARRAY,
    OPEN_OBJECT,
    POSITION,
    QUOTE,
    RETURN,
    STRING,
    TO_CLOSING,
    Index,
    Keys,
    ends_line,
    find_key,
    key_table,
    scan_scalar,
    starts_member,
    token_at,
    unescape,
    walk_container,
)

SIZE, BEGIN, ROOTS, NUMBER, RESTART, N_LINES, N_BLANK, N_NOTES, N_ROWS, N_SUSPECTS = range(10)
"""Items of `state`: the block's size and its beginning in the data; allowed roots; the number of
the next line; the next restart; the numbers of lines, blank lines and notes so far; the numbers of
rows and suspected lines of this block."""
OBJECTS, CONTAINERS, VALUES = range(3)
"""Allowed roots of lines: objects, objects and arrays, or any value."""

LINE, START, END = range(3)
"""Items of rows and suspected lines: the line's number, start and end in the block."""

_KIND_BITS, _END_BITS = np.uint64(4), np.uint64(34)
_KINDS, _PLACES = np.uint64(15), np.uint64((1 << 30) - 1)
_NOTHING = np.uint64(0)
MOST_BYTES = 1 << 30
"""Blocks must be shorter than this."""
_ESCAPED_BIT = 31


class Plan(NamedTuple):
    """A shape as tables: places in preorder, the first for the values of lines."""

    # all keys of the shape
    keys: Keys
    n_keys: int
    # int32 (places * keys,): the place of a member, by its object's place and its key; -1 if it is
    # not wanted
    children: npt.NDArray[np.int32]
    has_members: npt.NDArray[np.int8]  # int8 (places,): whether any member is wanted
    # int32 (places,): the place of the elements, -1 if they are not wanted
    elements: npt.NDArray[np.int32]
    # slots per line, if the shape is an object of plain members; 0 if notes are in text order
    n_slots: int


class Notes(NamedTuple):
    """Noted values, in the order of the text, or in slots: a row per line, a column per place."""

    # uint64: the kind and the bytes of each value, without the quotes of strings: see `note_of`. An
    # empty slot is 0.
    value: npt.NDArray[np.uint64]
    # int32: the place of each value in the plan; -1 if a later equal key replaces it. Unused with
    # slots.
    place: npt.NDArray[np.int32]
    # int32: the note of its object or array, -1 for a line. Unused with slots.
    parent: npt.NDArray[np.int32]


class Lines(NamedTuple):
    """Lines of a block, by `LINE`, `START` and `END`."""

    # int64 (3 * capacity,): noted lines, and lines that may be invalid JSON, three numbers each
    rows: Int64Array
    suspects: Int64Array
    # int64: pairs of a byte position and the line number from there on; the last is after all data
    restarts: Int64Array


class Scratch(NamedTuple):
    """Working memory of the walk."""

    stack: npt.NDArray[np.uint8]  # uint8 (MAX_DEPTH,): open brackets of a container that is skipped
    key: npt.NDArray[np.uint8]  # uint8: an unescaped key; as long as the block and 64 bytes more
    latest: npt.NDArray[np.int32]  # int32 (places,): the latest note of each place, -1 without any


@always_inlined
def packed(kind: Any, start: Any, end: Any) -> Any:
    """Return a value's kind and bytes as one word, which `note_of` unpacks."""
    return np.uint64(end) << _END_BITS | np.uint64(start) << _KIND_BITS | np.uint64(kind)


@always_inlined
def note_of(value: Any) -> tuple[Any, Any, Any]:
    """Return the kind of a noted value, and its bytes."""
    start = signed((value >> _KIND_BITS) & _PLACES)
    return signed(value & _KINDS), start, signed(value >> _END_BITS)


@always_inlined
def kind_of(value: Any) -> Any:
    """Return the kind of a noted value."""
    return signed(value & _KINDS)


@inlined
def _forget(notes: Notes, first: Any, after: Any) -> None:
    """Discard a value and everything inside it, as the last of equal keys counts."""
    put_item(notes.place, first, -1)
    for note in range(first + 1, after):
        if item_at(notes.parent, note) < first:
            break
        put_item(notes.place, note, -1)


@inlined
def _key_at(data: Any, tokens: Any, token: Any, keys: Keys, buffer: Any) -> Any:
    """Return the number of the key at a token, -1 if it is not wanted."""
    at = token_at(tokens, token) + 1
    closing = signed(item_at(tokens, token + 1))
    end = closing & POSITION
    if closing >> _ESCAPED_BIT == 0:
        return find_key(data, at, end - at, keys)
    length = unescape(data, at, end, buffer, 0)
    return find_key(buffer, 0, length, keys) if length >= 0 else -1


@always_inlined
def _member_place(
    data: Any, tokens: Any, token: Any, plan: Plan, notes: Notes, scratch: Scratch, object_: Any
) -> Any:
    """Return the place of the member whose key is at a token, -1 if it is not wanted."""
    parent, count = object_
    key = _key_at(data, tokens, token, plan.keys, scratch.key)
    if key < 0:
        return -1
    if plan.n_slots != 0:
        return 1 + key
    above = signed(item_at(notes.place, parent))
    place = signed(item_at(plan.children, above * plan.n_keys + key))
    if place >= 0:
        before = signed(item_at(scratch.latest, place))
        if before > parent:
            _forget(notes, before, count)
        put_item(scratch.latest, place, count)
    return place


@always_inlined
def _walk_value(
    data: Any, tokens: Any, token: Any, plan: Plan, notes: Notes, scratch: Scratch, count: Any
) -> tuple[Any, Any]:
    """Walk a line's value from a token on; return the next token, or -1, and the count of notes."""
    place, parent, depth = signed(0), signed(-1), 0
    first, in_slots = count, plan.n_slots > 0
    if in_slots:
        for slot in range(plan.n_slots):
            put_item(notes.value, first + slot, _NOTHING)
        count += plan.n_slots
    while True:
        # here a value begins; place is its place in the plan, or -1
        at = token_at(tokens, token)
        byte = byte_at(data, at)
        entered = False
        if byte == QUOTE:
            closing = signed(item_at(tokens, token + 1))
            token += 2
            kind = STRING + (closing >> _ESCAPED_BIT)
            value = packed(kind, at + 1, closing & POSITION)
        elif byte == OPEN_OBJECT or byte == OPEN_ARRAY:
            kind = OBJECT if byte == OPEN_OBJECT else ARRAY
            if place >= 0 and (
                item_at(plan.has_members, place) != 0
                if byte == OPEN_OBJECT
                else item_at(plan.elements, place) >= 0
            ):
                token += 1
                after = token_at(tokens, token)
                entered = byte_at(data, after) != byte + TO_CLOSING
                value = packed(kind, at, 0 if entered else after + 1)
                token += 0 if entered else 1
            else:
                token = walk_container(data, tokens, token, depth, scratch.stack)
                if token < 0:
                    return -1, count
                value = packed(kind, at, token_at(tokens, token - 1) + 1)
        else:
            end, kind = scan_scalar(data, at)
            if end < 0:
                return -1, count
            token += 1
            value = packed(kind, at, end)
        if place >= 0:
            note = first + place if in_slots else count
            put_item(notes.value, note, value)
            if not in_slots:
                put_item(notes.place, note, place)
                put_item(notes.parent, note, parent)
                count += 1
            if entered:
                parent = signed(note)
                depth += 1
        while not entered:
            # here a value has ended
            if depth == 0:
                return token, count
            at = token_at(tokens, token)
            byte = byte_at(data, at)
            token += 1
            if byte == COMMA:
                break
            if byte != (
                CLOSE_OBJECT if kind_of(item_at(notes.value, parent)) == OBJECT else CLOSE_ARRAY
            ):
                return -1, count
            closed = item_at(notes.value, parent) | np.uint64(at + 1) << _END_BITS
            put_item(notes.value, parent, closed)
            depth -= 1
            if depth == 0:
                return token, count
            parent = signed(item_at(notes.parent, parent))
        if kind_of(item_at(notes.value, parent)) == OBJECT:
            if not starts_member(data, tokens, token):
                return -1, count
            place = _member_place(data, tokens, token, plan, notes, scratch, (parent, count))
            token += 3
        else:
            place = signed(item_at(plan.elements, signed(item_at(notes.place, parent))))


@always_inlined
def _is_allowed_root(byte: Any, roots: Any) -> Any:
    return byte == OPEN_OBJECT or roots == VALUES or (roots == CONTAINERS and byte == OPEN_ARRAY)


@inlined
def _line_end(data: Any, tokens: Any, token: Any) -> Any:
    """Return the first line end from a token on."""
    while not ends_line(byte_at(data, token_at(tokens, token))):
        token += 1
    return token


@inlined
def enter(lines: Any, index: Any, number: Any, start: Any, end: Any) -> None:
    """Record a line by `LINE`, `START` and `END`."""
    put_item(lines, 3 * index + LINE, number)
    put_item(lines, 3 * index + START, start)
    put_item(lines, 3 * index + END, end)


PLAN = "Plan(Keys(uint64[:], uint8[:]), int64, int32[:], int8[:], int32[:], int64)"
NOTES = "Notes(out(uint64[:]), out(int32[:]), out(int32[:]))"
LINES = "Lines(out(int64[:]), out(int64[:]), int64[:])"
SCRATCH = "Scratch(out(uint8[:]), out(uint8[:]), out(int32[:]))"


@inlined
def walk_lines(
    data: Any, index: Index, plan: Plan, notes: Notes, lines: Lines, scratch: Scratch, state: Any
) -> None:
    """Walk the lines of a block: note the wanted values of good lines, list the others.

    Notes are written after the first `N_NOTES`. A line is suspected if its tokens are invalid JSON,
    its root is none of `ROOTS`, or it has a bad byte. Suspected lines have no notes.
    """
    tokens, bad, _ = index
    size, roots, number, restart = state[SIZE], state[ROOTS], state[NUMBER], state[RESTART]
    token = start = n_bad = row = suspect = blank = total = 0
    count = state[N_NOTES]
    while start < size:
        while state[BEGIN] + start >= item_at(lines.restarts, 2 * restart):
            number = item_at(lines.restarts, 2 * restart + 1)
            restart += 1
        first, noted = token, count
        byte = byte_at(data, token_at(tokens, token))
        is_blank = ends_line(byte)
        if is_blank:
            blank += 1
        elif _is_allowed_root(byte, roots):
            token, count = _walk_value(data, tokens, token, plan, notes, scratch, count)
            if token >= 0 and not ends_line(byte_at(data, token_at(tokens, token))):
                token = -1
        else:
            token = -1
        end = token_at(tokens, token if token >= 0 else first)
        if token < 0 or signed(item_at(bad, n_bad)) <= end:
            # an unterminated string continues the walk into other lines
            token = _line_end(data, tokens, first)
            end = token_at(tokens, token)
            if is_blank:
                blank -= 1
            enter(lines.suspects, suspect, number, start, end)
            suspect += 1
            count = noted
            for place in range(scratch.latest.size):
                put_item(scratch.latest, place, -1)
        elif not is_blank:
            enter(lines.rows, row, number, start, end)
            row += 1
        start = end + 1
        token += 1
        if byte_at(data, end) == RETURN and byte_at(data, start) == NEWLINE and start < size:
            start += 1
            token += 1
        while signed(item_at(bad, n_bad)) < start:
            n_bad += 1
        number += 1
        total += 1
    state[NUMBER], state[RESTART] = number, restart
    state[N_LINES] += total
    state[N_BLANK] += blank
    state[N_ROWS], state[N_SUSPECTS], state[N_NOTES] = row, suspect, count


Shape: TypeAlias = "Mapping[str, Shape] | Sequence[Shape] | None"


def plan_of(shape: Shape) -> Plan:
    """Return the tables of a shape."""
    names: dict[bytes, int] = {}
    # by place: the places of its members by key, and the place of its elements
    members: list[dict[int, int]] = []
    elements: list[int] = []

    def add(shape: Shape) -> int:
        place = len(members)
        members.append({})
        elements.append(-1)
        if isinstance(shape, Mapping):
            for name, below in shape.items():
                key = names.setdefault(name.encode(), len(names))
                members[place][key] = add(below)
        elif shape is not None:
            (below,) = shape
            elements[place] = add(below)
        return place

    add(shape)
    children = np.full((len(members), max(1, len(names))), -1, np.int32)
    for place, inside in enumerate(members):
        children[place, list(inside)] = list(inside.values())
    return Plan(
        key_table(list(names)),
        children.shape[1],
        children.reshape(-1),
        np.array([bool(inside) for inside in members], np.int8),
        np.array(elements, np.int32),
        0,
    )


@lru_cache(maxsize=64)
def plan_of_keys(keys: tuple[bytes, ...]) -> Plan:
    """Return the tables of an object whose members are wanted without shapes, in slots."""
    if len(set(keys)) != len(keys):
        raise ValueError(f"keys must be distinct, found {list(keys)!r}")
    plan = plan_of({key.decode(): None for key in keys})
    return plan._replace(n_slots=1 + len(keys))
