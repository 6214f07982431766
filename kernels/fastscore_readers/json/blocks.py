"""Blocks of lines, each indexed and walked while it is in the cache.

A block is copied to where spaces and line ends can stand after it; what is noted of it is put
into columns before the next one comes. Lines that the index suspects are judged in Python: one that
is good after all (white space of other kinds stands around it, or the character before it is cut
off) is mended and the block is walked again.
"""

import threading
from array import array
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from fastscore_jit.arrays import Int64Array, UInt8Array

from fastscore_readers.fill import Columns, allocate_columns, with_capacity
from fastscore_readers.json.block_walk import (
    ARRAYS,
    BEFORE,
    EXPECTED,
    FITS,
    FRESH,
    IN_PLACE,
    N_COUNTED,
    NEXT,
    ONCE,
    STAGE,
    STATE_ITEMS,
    UNJUDGED,
    Walk,
    walk_blocks,
)
from fastscore_readers.json.faults import fault_of, spaces_for_white
from fastscore_readers.json.index import (
    BYTES_AFTER,
    IS_UTF8,
    NUMBERED,
    Index,
    allocate_index,
)
from fastscore_readers.json.line_ends import count_line_ends, last_end
from fastscore_readers.json.tokens import MAX_DEPTH
from fastscore_readers.json.walk import (
    BEGIN,
    CONTAINERS,
    MOST_BYTES,
    N_NOTES,
    N_ROWS,
    N_SUSPECTS,
    NUMBER,
    ROOTS,
    SIZE,
    VALUES,
    Lines,
    Notes,
    Plan,
    Scratch,
)

BLOCK_BYTES = 256 << 10
FOREVER = (1 << 62, 0)
"""A restart after all data."""
_NO_JSON = ord("x")
_NO_DATA, _NO_COLUMNS = np.empty(0, np.uint8), allocate_columns([])
_KEPT_BYTES, _KEPT_NOTES = 4 * BLOCK_BYTES, 1 << 23
_SHORT_LINE = 64


class BlockMemory:
    """Memory for one block of at most as many bytes and lines."""

    def __init__(self, size: int, n_lines: int) -> None:
        self.size, self.n_lines = size, n_lines
        self.data = np.empty(size + 1 + 2 * BYTES_AFTER, np.uint8)
        self.index: Index = allocate_index(size + 1)
        self.rows, self.suspects = np.empty((2, 3 * n_lines), np.int64)
        self.key = np.empty(size + BYTES_AFTER, np.uint8)
        self.stack = np.empty(MAX_DEPTH, np.uint8)

    @property
    def numbered(self) -> bool:
        r"""Whether the block has an escape that begins with ``\u``."""
        return bool(self.index.counts[NUMBERED])


_judged = lru_cache(1 << 12)(fault_of)
"""Of very many bad lines most are alike."""


def _most_lines(size: int) -> int:
    """Bound the lines of a block of as many bytes."""
    return size // 2 + 2


def _notes(size: int) -> Notes:
    # memory that is not written to costs nothing
    return Notes(np.empty(size, np.uint64), *(np.empty(size, np.int32) for _ in range(2)))


class _Own(threading.local):
    """What a thread keeps for its next block."""

    def __init__(self) -> None:
        self.memory, self.notes = BlockMemory(BLOCK_BYTES, _most_lines(BLOCK_BYTES)), _notes(0)


_own = _Own()


def own_memory(size: int, n_lines: int = 0) -> BlockMemory:
    """Return the thread's memory for a block; what a large block takes is not kept."""
    if size > _KEPT_BYTES:
        return BlockMemory(size, n_lines)
    if size > _own.memory.size:
        _own.memory = BlockMemory(size, _most_lines(size))
    return _own.memory


def block_ends(data: UInt8Array, size: int = BLOCK_BYTES) -> Int64Array:
    """Cut data after line ends, into blocks of about a size or of one longer line."""
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
    """The walk over the blocks of some data.

    Parameters
    ----------
    plan
        What is wanted of each line.
    roots
        What a line may be: `walk.OBJECTS`, `CONTAINERS` or `VALUES`.
    restarts
        See `walk.Lines`.
    is_utf8
        Whether the data are known to be UTF-8.
    arrays
        The slot that takes lines that are arrays, 0 where none does.
    """

    plan: Plan
    roots: int
    restarts: Int64Array
    is_utf8: bool = False
    arrays: int = 0
    state: Int64Array = field(default_factory=lambda: np.zeros(STATE_ITEMS, np.int64))
    faults: "array[int]" = field(default_factory=lambda: array("q"))
    """Number, start, end, status and position of each faulty line; bytes are those of the data."""
    notes: Notes = field(default_factory=lambda: _own.notes)
    """Notes of the last block; of all blocks if none are put into slots."""
    memory: BlockMemory = field(default_factory=lambda: _own.memory)

    def __post_init__(self) -> None:
        self.state[NUMBER], self.state[ROOTS], self.state[ARRAYS] = 1, self.roots, self.arrays

    def walk(self, data: UInt8Array, ends: Int64Array, columns: Columns) -> Columns:
        """Walk blocks of whole lines that end at some bytes; return the columns they were put into.

        Parameters
        ----------
        data
            The blocks.
        ends
            Where each ends, ascending.
        columns
            What is filled; with more memory, where that is needed, it is returned.
        """
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
                columns = with_capacity(columns, self.n_rows, int(ends[block]), data.size)

    def walk_reserved(self, size: int) -> None:
        """Walk a block that stands in memory."""
        self.state[STAGE], self.state[SIZE], self.state[BEGIN] = IN_PLACE, size, 0
        self.walk(_NO_DATA, np.array([size]), _NO_COLUMNS)

    def _go_on(self, data: UInt8Array, ends: Int64Array, columns: Columns) -> None:
        """Walk blocks until all are, or one is to be decided on."""
        memory, plan = self.memory, self.plan
        memory.index.counts[IS_UTF8] = self.is_utf8
        latest = np.full(plan.elements.size, -1, np.int32)
        lines = Lines(memory.rows, memory.suspects, self.restarts)
        walk = Walk(plan, self.notes, lines, Scratch(memory.stack, memory.key, latest))
        walk_blocks(data, ends, memory.data, memory.index, walk, columns, self.state)

    def _fit(self, block: UInt8Array) -> None:
        """Reserve memory for a block, and for any that is no larger if that is kept."""
        # a large block is one line, or one and a few after it
        is_kept = block.size <= _KEPT_BYTES
        memory = self.reserve(block.size, 0 if is_kept else count_line_ends(block) + 2)
        fits = memory.n_lines >= _most_lines(memory.size)
        self.state[FITS], self.state[ONCE] = memory.size if fits else 0, block.size

    def reserve(self, size: int, n_lines: int = 2) -> BlockMemory:
        """Reserve memory for a block and its notes; of a large one the lines are given."""
        if size >= MOST_BYTES:
            raise ValueError(f"a line of {size} bytes; expected fewer than {MOST_BYTES}")
        memory = self.memory
        # one for a long line has memory for few
        n_lines = n_lines if size > _KEPT_BYTES else _most_lines(size)
        if size > memory.size or n_lines > memory.n_lines:
            memory = own_memory(size, n_lines)
        in_slots = self.plan.n_slots > 0
        kept = 0 if in_slots else self.n_notes
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
        """Note the faults of suspected lines; mend those that have none, to be walked again."""
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
                # nothing of it reaches into the line after it any more
                memory.data[start:end] = _NO_JSON
                status, at = fault
                place = (number, begin + start, begin + end, status, begin + start + at)
                self.faults.extend(place)
        state[EXPECTED] = len(suspects) - good
        if good:
            state[NUMBER : NUMBER + N_COUNTED] = state[BEFORE : BEFORE + N_COUNTED]
            state[STAGE] = IN_PLACE

    @property
    def n_rows(self) -> int:
        """How many good lines the last block has."""
        return int(self.state[N_ROWS])

    @property
    def n_notes(self) -> int:
        """How many notes there are of the last block."""
        return int(self.state[N_NOTES])
