r"""JSON Lines as columns, and wanted places in nested JSON values, in one walk over each block.

A line is read as ``json.loads(line.strip())`` reads it: NaN and Infinity are numbers, the last of
equal keys wins, control characters in strings are faults. Lines end as in Python's text files
(``\n``, ``\r\n`` or ``\r``) and must be strict UTF-8. There are two differences: values nest at
most `MAX_DEPTH` deep, and integers may have any length.

A block is copied to memory with room for spaces and line ends after it. Its notes become columns
before the next block is read. One call continues until Python must decide something. Python
validates the lines that the index suspects. A valid line among them (with other white space around
it, or after a cut character) is mended, and the block is walked again.

For nested values each text is a line of the walk. Line ends within a text become tabs, which JSON
treats alike: white space between values, invalid in strings.

The faults of suspected lines and their positions are found by Python's rules, in Python.
"""

import re
import threading
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from fastscore_jit.arrays import Int64Array, UInt8Array
from fastscore_jit.bits import trailing_zeros
from fastscore_jit.byte_blocks import byte_marks
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import (
    BLOCK,
    block_at,
    byte_at,
    item_at,
    put_block,
    put_byte,
    put_item,
    signed,
)
from fastscore_jit.validation import as_vector, same_length

from fastscore_readers.fill import (
    COLUMNS,
    FAULT,
    PLACES,
    ROWS,
    Columns,
    LineScan,
    allocate_columns,
    fill_rows,
    scan_of,
    with_capacity,
)
from fastscore_readers.json.line_ends import count_line_ends, last_end
from fastscore_readers.json.tokens import (
    ARRAY,
    BYTES_AFTER,
    INDEX,
    MAX_DEPTH,
    NEWLINE,
    SPACE,
    TAB,
    Index,
    Keys,  # noqa: F401 `PLAN` has keys
    allocate_index,
    ends_line,
    index_block,
)
from fastscore_readers.json.walk import (
    BEGIN,
    CONTAINERS,
    LINE,
    LINES,
    MOST_BYTES,
    N_BLANK,
    N_LINES,
    N_NOTES,
    N_ROWS,
    N_SUSPECTS,
    NOTES,
    NUMBER,
    OBJECTS,
    PLAN,
    ROOTS,
    SCRATCH,
    SIZE,
    VALUES,
    Lines,
    Notes,
    Plan,
    Scratch,
    Shape,
    kind_of,
    note_of,
    plan_of,
    plan_of_keys,
    walk_lines,
)

NOT_JSON, NOT_OBJECT, NOT_UTF8, TOO_DEEP = range(1, 5)

_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_LITERAL = re.compile(rb"true|false|null|NaN|-?Infinity")
_BLANKS = re.compile(rb"[ \t]*")
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}


class _FaultError(Exception):
    """Status and position of a fault."""


def fault_of(line: bytes, *, arrays: bool = False, values: bool = False) -> tuple[int, int] | None:
    """Return the fault of a line without its end, and the byte position; None if valid or blank.

    The line may be an array, or any value, around which only the white space of JSON is allowed.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return NOT_UTF8, error.start
    # other white space may have several bytes
    start = _blanks_end(line, 0) if values else len(line) - len(text.lstrip().encode())
    if start == len(line):
        return None
    try:
        end = _value_end(line, start)
    except _FaultError as fault:
        return fault.args[0], fault.args[1]
    end = _blanks_end(line, end)
    rest = line[end:].decode() if values else line[end:].decode().lstrip()
    if rest:
        return NOT_JSON, len(line) - len(rest.encode())
    first = line[start : start + 1]
    if first == b"{" or values or (arrays and first == b"["):
        return None
    return NOT_OBJECT, start


def spaces_for_white(line: bytes) -> bytes:
    """Return a line with the white space around it replaced by spaces."""
    inside = line.decode().strip().encode()
    before = len(line) - len(line.decode().lstrip().encode())
    return b" " * before + inside + b" " * (len(line) - before - len(inside))


def _value_end(line: bytes, at: int) -> int:
    """Return the position after the value that begins at a position."""
    opened: list[int] = []
    while True:
        # here a value begins
        first = line[at] if at < len(line) else -1
        entered = False
        if first in _CLOSING:
            if len(opened) == MAX_DEPTH:
                raise _FaultError(TOO_DEEP, at)
            at = _blanks_end(line, at + 1)
            entered = line[at : at + 1] != bytes([_CLOSING[first]])
            if entered:
                opened.append(first)
            else:
                at += 1
        else:
            at = _scalar_end(line, at)
        while not entered:
            # here a value has ended
            if not opened:
                return at
            at = _blanks_end(line, at)
            if line[at : at + 1] == b",":
                at = _blanks_end(line, at + 1)
                break
            if line[at : at + 1] != bytes([_CLOSING[opened.pop()]]):
                raise _FaultError(NOT_JSON, at)
            at += 1
        if opened[-1] == ord("{"):
            at = _blanks_end(line, _string_end(line, at))
            if line[at : at + 1] != b":":
                raise _FaultError(NOT_JSON, at)
            at = _blanks_end(line, at + 1)


def _blanks_end(line: bytes, at: int) -> int:
    found = _BLANKS.match(line, at)
    return found.end() if found else at


def _string_end(line: bytes, at: int) -> int:
    found = _STRING.match(line, at)
    if found is None:
        raise _FaultError(NOT_JSON, at)
    if line[found.end() : found.end() + 1] != b'"':
        raise _FaultError(NOT_JSON, found.end())
    return found.end() + 1


def _scalar_end(line: bytes, at: int) -> int:
    if line[at : at + 1] == b'"':
        return _string_end(line, at)
    found = _LITERAL.match(line, at) or _NUMBER.match(line, at)
    if found is None:
        raise _FaultError(NOT_JSON, at + (line[at : at + 1] == b"-"))
    return found.end()


NEXT, STAGE, EXPECTED, FITS, ONCE, ARRAYS, BEFORE = range(10, 17)
"""Items of `state` after those of `walk`: the next block and its stage; its number of invalid
lines, or `UNJUDGED`; the maximum block size for the memory, and one other size, allowed once; the
slot of lines that are arrays, 0 for none; from `BEFORE` on, the counts before the block was
walked."""
N_COUNTED = N_NOTES + 1 - NUMBER
STATE_ITEMS = BEFORE + N_COUNTED
UNJUDGED = -1
FRESH, IN_PLACE, WALKED = range(3)
"""Stages of a block: not read; copied to memory; walked."""


class Walk(NamedTuple):
    """Inputs and outputs of `walk_lines`."""

    plan: Plan
    notes: Notes
    lines: Lines
    scratch: Scratch


@inlined
def _copy(data: Any, source: Any, begin: Any, size: Any) -> None:
    """Copy a block to memory with room after it."""
    at = signed(0)
    while at + BLOCK <= size:
        put_block(data, at, source, begin + at)
        at += BLOCK
    while at < size:
        put_item(data, at, item_at(source, begin + at))
        at += 1


@inlined
def _close(data: Any, size: Any) -> None:
    """Write the spaces and line ends after a block that `index_block` and its walk expect."""
    put_byte(data, size, NEWLINE)
    at = size + 1
    while at % BYTES_AFTER != 0:
        put_byte(data, at, SPACE)
        at += 1
    for after in range(BYTES_AFTER):
        put_byte(data, at + after, NEWLINE)


@inlined
def _put_arrays(values: Any, n_rows: Any, width: Any, slot: Any) -> None:
    """Put lines that are arrays into their slot."""
    for row in range(n_rows):
        value = item_at(values, row * width)
        if kind_of(value) == ARRAY:
            put_item(values, row * width + slot, value)


@kernel(
    f"uint8[:], int64[:], out(uint8[:]), {INDEX}, Walk({PLAN}, {NOTES}, {LINES}, {SCRATCH}), "
    f"{COLUMNS}, out(int64[:])",
    fastmath=False,
    allocates=False,
)
def walk_blocks(
    source: Any, ends: Any, data: Any, index: Index, walk: Walk, columns: Columns, state: Any
) -> None:
    """Walk blocks that end at ``ends``, until memory is missing or lines are suspected.

    The block's stage gives the reason. If it is ``FRESH``, the block does not fit into ``data``.
    Otherwise the number of suspected lines is not `EXPECTED`, or the columns have no room for its
    rows.
    """
    plan, notes, lines, scratch = walk
    in_slots, block = plan.n_slots > 0, state[NEXT]
    while block < ends.size:
        if state[STAGE] == FRESH:
            begin = item_at(ends, block - 1) if block > 0 else signed(0)
            size = item_at(ends, block) - begin
            if size > state[FITS] and size != state[ONCE]:
                break
            _copy(data, source, begin, size)
            state[SIZE], state[BEGIN], state[ONCE] = size, begin, 0
            state[STAGE] = IN_PLACE
        if state[STAGE] == IN_PLACE:
            _close(data, state[SIZE])
            if in_slots:
                state[N_NOTES] = 0
            for item in range(N_COUNTED):
                state[BEFORE + item] = state[NUMBER + item]
            index_block(data, index, state)
            walk_lines(data, index, plan, notes, lines, scratch, state)
            state[STAGE] = WALKED
        if state[N_SUSPECTS] != max(state[EXPECTED], 0):
            break
        if in_slots:
            if columns.used[ROWS] + state[N_ROWS] > columns.lines.shape[1]:
                break
            if state[ARRAYS] != 0:
                _put_arrays(notes.value, state[N_ROWS], plan.n_slots, state[ARRAYS])
            fill_rows(data, notes.value, lines.rows, columns, state)
        block += 1
        state[NEXT], state[STAGE], state[EXPECTED] = block, FRESH, UNJUDGED


BLOCK_BYTES = 256 << 10
FOREVER = (1 << 62, 0)
"""A restart after all data."""
_NO_JSON = ord("x")
_NO_DATA, _NO_COLUMNS = np.empty(0, np.uint8), allocate_columns([])
_KEPT_BYTES, _KEPT_NOTES = 4 * BLOCK_BYTES, 1 << 23
_SHORT_LINE = 64


class BlockMemory:
    """Memory for one block, with a maximum of bytes and lines."""

    def __init__(self, size: int, n_lines: int) -> None:
        self.size, self.n_lines = size, n_lines
        self.data = np.empty(size + 1 + 2 * BYTES_AFTER, np.uint8)
        self.index: Index = allocate_index(size + 1)
        self.rows, self.suspects = np.empty((2, 3 * n_lines), np.int64)
        self.key = np.empty(size + BYTES_AFTER, np.uint8)
        self.stack = np.empty(MAX_DEPTH, np.uint8)


_judged = lru_cache(1 << 12)(fault_of)
"""Cached, because many invalid lines are equal."""


def _most_lines(size: int) -> int:
    """Return the maximum number of lines in a block of a size."""
    return size // 2 + 2


def _notes(size: int) -> Notes:
    # unwritten memory uses no pages
    return Notes(np.empty(size, np.uint64), *(np.empty(size, np.int32) for _ in range(2)))


class _ThreadMemory(threading.local):
    """Memory that a thread reuses for its next block."""

    def __init__(self) -> None:
        self.memory, self.notes = BlockMemory(BLOCK_BYTES, _most_lines(BLOCK_BYTES)), _notes(0)


_own = _ThreadMemory()


def own_memory(size: int, n_lines: int = 0) -> BlockMemory:
    """Return the thread's memory for a block; memory of large blocks is not reused."""
    if size > _KEPT_BYTES:
        return BlockMemory(size, n_lines)
    if size > _own.memory.size:
        _own.memory = BlockMemory(size, _most_lines(size))
    return _own.memory


def block_ends(data: UInt8Array, size: int = BLOCK_BYTES) -> Int64Array:
    """Split data at line ends into blocks of about a size, or of one longer line."""
    view, begin = data.data, 0
    ends: list[int] = []
    while begin < data.size:
        length, cut = size, 0
        while not cut and begin + length < data.size:
            cut = last_end(view[begin : begin + length])
            length *= 2
        begin = begin + cut if cut else data.size
        ends.append(begin)
    return np.array(ends, np.int64)


@dataclass
class Walker:
    """The walk over blocks of data."""

    plan: Plan  # the values wanted of each line
    roots: int  # allowed types of a line: `walk.OBJECTS`, `CONTAINERS` or `VALUES`
    restarts: Int64Array  # see `walk.Lines`
    is_utf8: bool = False  # whether the data are known to be UTF-8
    arrays: int = 0  # the slot for lines that are arrays, 0 without one
    state: Int64Array = field(default_factory=lambda: np.zeros(STATE_ITEMS, np.int64))
    faults: "array[int]" = field(default_factory=lambda: array("q"))
    """The items of each faulty line, `fill.FAULT`; bytes are those of the data."""
    notes: Notes = field(default_factory=lambda: _own.notes)
    """Notes of the last block; of all blocks if none are put into slots."""
    memory: BlockMemory = field(default_factory=lambda: _own.memory)

    def __post_init__(self) -> None:
        self.state[NUMBER], self.state[ROOTS], self.state[ARRAYS] = 1, self.roots, self.arrays

    def walk(self, data: UInt8Array, ends: Int64Array, columns: Columns) -> Columns:
        """Fill columns from blocks of complete lines; return them, with more memory if needed."""
        self.state[NEXT], self.state[EXPECTED] = 0, UNJUDGED
        while True:
            self._go_on(data, ends, columns)
            block = int(self.state[NEXT])
            if block == ends.size:
                return columns
            if self.state[STAGE] == FRESH:
                begin = int(ends[block - 1]) if block else 0
                self._fit(data[begin : ends[block]])
            elif self.state[N_SUSPECTS] != max(self.state[EXPECTED], 0):
                self._judge()
            else:
                columns = with_capacity(columns, self.state[N_ROWS], int(ends[block]), data.size)

    def walk_reserved(self, size: int) -> None:
        """Walk a block that is already in the reserved memory."""
        self.state[STAGE], self.state[SIZE], self.state[BEGIN] = IN_PLACE, size, 0
        self.walk(_NO_DATA, np.array([size]), _NO_COLUMNS)

    def _go_on(self, data: UInt8Array, ends: Int64Array, columns: Columns) -> None:
        """Walk blocks until all are walked or Python must decide something."""
        memory, plan = self.memory, self.plan
        memory.index.is_utf8[0] = self.is_utf8
        latest = np.full(plan.elements.size, -1, np.int32)
        lines = Lines(memory.rows, memory.suspects, self.restarts)
        walk = Walk(plan, self.notes, lines, Scratch(memory.stack, memory.key, latest))
        walk_blocks(data, ends, memory.data, memory.index, walk, columns, self.state)

    def _fit(self, block: UInt8Array) -> None:
        """Reserve memory for a block, and for all smaller blocks if the memory is reused."""
        # a large block is one line, with at most a few short lines after it
        is_kept = block.size <= _KEPT_BYTES
        memory = self.reserve(block.size, 0 if is_kept else count_line_ends(block) + 2)
        fits = memory.n_lines >= _most_lines(memory.size)
        self.state[FITS], self.state[ONCE] = memory.size if fits else 0, block.size

    def reserve(self, size: int, n_lines: int = 2) -> BlockMemory:
        """Reserve memory for a block and its notes; ``n_lines`` is used for large blocks only."""
        if size >= MOST_BYTES:
            raise ValueError(f"a line of {size} bytes; expected fewer than {MOST_BYTES}")
        memory = self.memory
        # memory for a long line has room for few lines
        n_lines = n_lines if size > _KEPT_BYTES else _most_lines(size)
        if size > memory.size or n_lines > memory.n_lines:
            memory = own_memory(size, n_lines)
        in_slots = self.plan.n_slots > 0
        kept = 0 if in_slots else int(self.state[N_NOTES])
        needed = self.plan.n_slots * memory.n_lines if in_slots else kept + memory.size + 1
        if self.notes.value.size < needed:
            wide = _notes(needed + kept)
            wide.value[:kept] = self.notes.value[:kept]
            wide.place[:kept] = self.notes.place[:kept]
            wide.parent[:kept] = self.notes.parent[:kept]
            self.notes = wide
            if wide.value.size <= _KEPT_NOTES:
                _own.notes = wide
        self.memory = memory
        return memory

    def _judge(self) -> None:
        """Record the faults of suspected lines; mend lines without faults, to be walked again."""
        memory, state = self.memory, self.state
        if state[EXPECTED] != UNJUDGED:
            raise RuntimeError("the index refuses a line that is JSON")
        begin, good = int(state[BEGIN]), 0
        suspects = memory.suspects[: 3 * state[N_SUSPECTS]].reshape(-1, 3)
        for number, start, end in suspects.tolist():
            line = memory.data[start:end].tobytes()
            judge = _judged if len(line) <= _SHORT_LINE else fault_of
            fault = judge(line, arrays=self.roots == CONTAINERS, values=self.roots == VALUES)
            if fault is None:
                memory.data[start:end] = np.frombuffer(spaces_for_white(line), np.uint8)
                good += 1
            else:
                # no quote or bracket of it can affect the next line
                memory.data[start:end] = _NO_JSON
                status, at = fault
                place = begin + start
                self.faults.extend((number, place, begin + end, status, place + at, 0, 0))
        state[EXPECTED] = len(suspects) - good
        if good:
            state[NUMBER : NUMBER + N_COUNTED] = state[BEFORE : BEFORE + N_COUNTED]
            state[STAGE] = IN_PLACE


MOST_VIEWED = 1 << 31
"""String views address data shorter than this."""


def scan_jsonl(
    data: UInt8Array,
    keys: Sequence[bytes],
    *,
    restarts: Sequence[tuple[int, int]] | Int64Array = (),
    array_key: bytes | None = None,
    fill: Mapping[bytes, int] | None = None,
) -> LineScan:
    """Scan a buffer of JSON Lines in one pass, for the values of top-level keys.

    ``restarts`` are ascending ``(position, line)`` pairs: the line at a position has that number.
    Lines that are arrays are values of ``array_key``, faults without it. ``fill`` has the kinds of
    keys whose values become Arrow columns, such as `fill.TEXT`, of data shorter than 2 GiB.
    """
    data = as_vector("data", data, np.uint8)
    if fill and data.size >= MOST_VIEWED:
        raise ValueError(f"string views reach 2 GiB of data, found {data.size} bytes")
    plan = plan_of_keys(tuple(keys))
    table = np.append(np.asarray(restarts, np.int64).reshape(-1), FOREVER)
    roots, arrays = (OBJECTS, 0) if array_key is None else (CONTAINERS, 1 + keys.index(array_key))
    walker = Walker(plan, roots, table, arrays=arrays)
    columns = allocate_columns([(fill or {}).get(key, PLACES) for key in keys])
    columns = walker.walk(data, block_ends(data), columns)
    counts = walker.state[[N_LINES, N_BLANK, NUMBER]].tolist()
    return scan_of(data, columns, np.frombuffer(walker.faults, FAULT), counts)


_TEXT_BYTES = 512 << 10
_line_ends = byte_marks(b"\n\r")


def _walk_texts(
    data: npt.ArrayLike, starts: npt.ArrayLike, ends: npt.ArrayLike, plan: Plan, is_utf8: bool
) -> tuple[Walker, Int64Array]:
    """Walk some texts; return the walker and the good texts.

    Of a good text there are its number, and the offset from its noted bytes to its bytes in the
    data, int64 (n, 2). Notes are valid until the thread's next walk.
    """
    data = as_vector("data", data, np.uint8)
    starts, ends = as_vector("starts", starts, np.int64), as_vector("ends", ends, np.int64)
    same_length("starts", starts.size, "ends", ends.size)
    wrong = (starts < 0) | (ends < starts) | (ends > data.size)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"`starts` and `ends` hold {starts[at]} and {ends[at]} at position {at}; "
            f"expected ranges within 0 and {data.size}"
        )
    walker, n = Walker(plan, VALUES, np.array(FOREVER), is_utf8), starts.size
    # a byte after each
    after = np.cumsum(ends - starts + 1)
    lines = np.empty((n, 2), np.int64)
    first = n_good = 0
    while first < n:
        before = int(after[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(after, before + _TEXT_BYTES, side="right")))
        size = int(after[last - 1]) - before
        memory = walker.reserve(size)
        _gather(data, starts[first:last], ends[first:last], memory.data)
        walker.state[NUMBER] = first
        walker.walk_reserved(size)
        number = memory.rows[: 3 * walker.state[N_ROWS]].reshape(-1, 3)[:, LINE]
        good = lines[n_good : n_good + number.size]
        good[:, 0] = number
        # where a text begins in the block
        good[:, 1] = ends[number] - (after[number] - 1 - before)
        first, n_good = last, n_good + number.size
    return walker, lines[:n_good]


@kernel("uint8[:], int64[:], int64[:], out(uint8[:])", fastmath=False, allocates=False)
def _gather(data: Any, starts: Any, ends: Any, out: Any) -> None:
    """Concatenate texts, each followed by a line end.

    Line ends within a text become tabs.
    """
    to = 0
    for text in range(starts.size):
        at = item_at(starts, text)
        length = item_at(ends, text) - at
        done = 0
        while length >= BLOCK and done < length:
            # the last block overlaps the one before
            done = min(done, length - BLOCK)
            put_block(out, to + done, data, at + done)
            line_ends = _line_ends(block_at(data, at + done))
            while line_ends != 0:
                put_byte(out, to + done + trailing_zeros(line_ends), TAB)
                line_ends &= line_ends - np.uint64(1)
            done += BLOCK
        for place in range(done, length):
            byte = byte_at(data, at + place)
            put_byte(out, to + place, TAB if ends_line(byte) else byte)
        put_byte(out, to + length, NEWLINE)
        to += length + 1


@dataclass(frozen=True, slots=True)
class Place:
    """The values at one place of a shape."""

    # type of each value, as in `lines`, uint8 (n,); `ABSENT` if the object or its member is missing
    tags: UInt8Array
    # byte range of each value, without the quotes of strings, int64 (n,); undefined if absent
    start: Int64Array
    end: Int64Array
    # For each value, the row of the array that contains it (or its object), ascending, int64 (n,).
    # For the root and its members, the row itself.
    owner: Int64Array
    members: dict[str, "Place"]  # the places of its members, each of n values
    elements: "Place | None"  # the place of its elements if its shape is a list


def find_places(
    data: npt.ArrayLike,
    starts: npt.ArrayLike,
    ends: npt.ArrayLike,
    shape: Shape,
    *,
    is_utf8: bool = False,
) -> tuple[Place, Int64Array]:
    """Find the values of a shape in byte ranges that hold one JSON value each, or are blank.

    Return the root's place, and the indices of ranges that are not one value, whose root is absent.
    Validity is as in `scan_jsonl`; bytes that are known to be UTF-8 are not checked. The last of
    equal keys counts.
    """
    plan, n = plan_of(shape), np.size(starts)
    walker, lines = _walk_texts(data, starts, ends, plan, is_utf8)
    faulty = np.frombuffer(walker.faults, FAULT)["line"].copy()
    noted, held = slice(walker.state[N_NOTES]), walker.notes
    notes = Notes(held.value[noted], held.place[noted], held.parent[noted])
    return _places_of(notes, lines, plan, shape, n), faulty


class Values(NamedTuple):
    """The values of all places, those of a place from its first row on; see `Place`."""

    first: Int64Array
    tags: UInt8Array
    start: Int64Array
    end: Int64Array
    owner: Int64Array  # written for elements only


def _places_of(notes: Notes, lines: Int64Array, plan: Plan, shape: Shape, n: int) -> Place:
    """Make places of the notes of some texts, in the order of the plan."""
    n_places = plan.elements.size
    counts = np.bincount(notes.place + 1, minlength=n_places + 1)[1:].tolist()
    sizes: list[int] = []

    def add_sizes(shape: Shape, size: int) -> None:
        sizes.append(size)
        if isinstance(shape, Mapping):
            for below in shape.values():
                add_sizes(below, size)
        elif shape is not None:
            add_sizes(shape[0], counts[len(sizes)])

    add_sizes(shape, n)
    is_element = np.zeros(n_places, np.bool_)
    is_element[plan.elements[plan.elements >= 0]] = True
    first = np.cumsum([0, *sizes])
    total = int(first[-1])
    start, end = np.zeros((2, total), np.int64)
    values = Values(first, np.zeros(total, np.uint8), start, end, np.empty(total, np.int64))
    _place_notes(notes, lines, is_element, values, first[:-1].copy(), np.empty_like(notes.place))
    numbers = iter(range(n_places))

    def place(shape: Shape, owner: Int64Array | None) -> Place:
        """Return the next place, and the places below it; without owners, of elements."""
        number = next(numbers)
        rows = slice(first[number], first[number + 1])
        owner = values.owner[rows] if owner is None else owner
        members: dict[str, Place] = {}
        elements = None
        if isinstance(shape, Mapping):
            members = {key: place(below, owner) for key, below in shape.items()}
        elif shape is not None:
            elements = place(shape[0], None)
        tags, start, end = values.tags[rows], values.start[rows], values.end[rows]
        return Place(tags, start, end, owner, members, elements)

    return place(shape, np.arange(n))


@kernel(
    "Notes(uint64[:], int32[:], int32[:]), int64[:, :], bool[:], "
    "Values(int64[:], out(uint8[:]), out(int64[:]), out(int64[:]), out(int64[:])), "
    "out(int64[:]), out(int32[:])",
    fastmath=False,
    allocates=False,
)
def _place_notes(
    notes: Notes, lines: Any, is_element: Any, values: Values, free: Any, rows: Any
) -> None:
    """Put each note into the row of its object; into the next free one if it is an element.

    ``rows`` has room for the row of each note within its place. Notes of texts follow each other.
    """
    text, shift = 0, signed(0)
    for note in range(rows.size):
        place = signed(item_at(notes.place, note))
        if place < 0:
            continue
        if place == 0:
            row, shift = lines[text, 0], lines[text, 1]
            text += 1
        else:
            row = signed(item_at(rows, signed(item_at(notes.parent, note))))
        at = item_at(values.first, place) + row
        if item_at(is_element, place):
            at = item_at(free, place)
            put_item(free, place, at + 1)
            put_item(values.owner, at, row)
            row = at - item_at(values.first, place)
        put_item(rows, note, row)
        tag, start, end = note_of(item_at(notes.value, note))
        put_item(values.tags, at, tag)
        put_item(values.start, at, start + shift)
        put_item(values.end, at, end + shift)
