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
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import prepared

from fastscore_readers.json.faults import fault_of, spaces_for_white
from fastscore_readers.json.index import (
    BYTES_AFTER,
    IS_UTF8,
    NUMBERED,
    Index,
    allocate_index,
    index_block,
)
from fastscore_readers.json.line_ends import count_line_ends, last_end
from fastscore_readers.json.tokens import MAX_DEPTH
from fastscore_readers.json.walk import (
    BEGIN,
    CONTAINERS,
    MOST_BYTES,
    N_BLANK,
    N_LINES,
    N_NOTES,
    N_ROWS,
    N_SUSPECTS,
    NUMBER,
    RESTART,
    ROOTS,
    SIZE,
    VALUES,
    Lines,
    Notes,
    Plan,
    Scratch,
    walk_lines,
)

BLOCK_BYTES = 256 << 10
FOREVER = (1 << 62, 0)
"""A restart after all data."""
_NEWLINE, _SPACE, _NO_JSON = b"\n x"
_KEPT_BYTES, _KEPT_NOTES = 4 * BLOCK_BYTES, 1 << 23
_STATE_ITEMS = 10
_SHORT_LINE = 64
_COUNTED = [NUMBER, RESTART, N_LINES, N_BLANK, N_NOTES]


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


def block_ends(data: Bytes, size: int = BLOCK_BYTES) -> list[int]:
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
    return ends


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
    """

    plan: Plan
    roots: int
    restarts: Longs
    is_utf8: bool = False
    state: Longs = field(default_factory=lambda: np.zeros(_STATE_ITEMS, np.int64))
    faults: "array[int]" = field(default_factory=lambda: array("q"))
    """Number, start, end, status and position of each faulty line; bytes are those of the data."""
    notes: Notes = field(default_factory=lambda: _own.notes)
    """Notes of the last block; of all blocks if none are put into cells."""
    memory: BlockMemory = field(default_factory=lambda: _own.memory)

    def __post_init__(self) -> None:
        self.state[NUMBER], self.state[ROOTS] = 1, self.roots
        self._prepare()

    def walk(self, block: Bytes, begin: int) -> BlockMemory:
        """Walk a block of whole lines that begins at a position; it says what was noted."""
        # a large block is one line, or one and a few after it
        is_kept = block.size <= _KEPT_BYTES
        memory = self.reserve(block.size, 0 if is_kept else count_line_ends(block) + 2)
        memory.data[: block.size] = block
        self.walk_reserved(block.size, begin)
        return memory

    def reserve(self, size: int, n_lines: int = 2) -> BlockMemory:
        """Reserve memory for a block and its notes; of a large one the lines are given."""
        if size >= MOST_BYTES:
            raise ValueError(f"a line of {size} bytes; expected fewer than {MOST_BYTES}")
        memory = self.memory
        # one for a long line has memory for few
        n_lines = n_lines if size > _KEPT_BYTES else _most_lines(size)
        if size > memory.size or n_lines > memory.n_lines:
            memory = own_memory(size, n_lines)
        in_cells = self.plan.n_cells > 0
        kept = 0 if in_cells else self.n_notes
        needed = self.plan.n_cells * memory.n_lines if in_cells else kept + memory.size + 1
        lacks_notes = self.notes.value.size < needed
        if lacks_notes:
            wide = _notes(needed + kept)
            wide.value[:kept] = self.notes.value[:kept]
            wide.place[:kept] = self.notes.place[:kept]
            wide.parent[:kept] = self.notes.parent[:kept]
            self.notes = wide
            if wide.value.size <= _KEPT_NOTES:
                _own.notes = wide
        if memory is not self.memory or lacks_notes:
            self.memory = memory
            self._prepare()
        return memory

    def _prepare(self) -> None:
        """Prepare the calls of the kernels."""
        memory = self.memory
        scratch = Scratch(memory.stack, memory.key, np.full(self.plan.elements.size, -1, np.int32))
        lines = Lines(memory.rows, memory.suspects, self.restarts)
        data, index, state = memory.data, memory.index, self.state
        self._index = prepared(index_block, data, index, state)
        self._walk = prepared(walk_lines, data, index, self.plan, self.notes, lines, scratch, state)

    def walk_reserved(self, size: int, begin: int) -> None:
        """Walk a block that stands in memory."""
        memory, state = self.memory, self.state
        rounded = -(-(size + 1) // BYTES_AFTER) * BYTES_AFTER
        memory.data[size] = _NEWLINE
        memory.data[size + 1 : rounded] = _SPACE
        memory.data[rounded : rounded + BYTES_AFTER] = _NEWLINE
        memory.index.counts[IS_UTF8] = self.is_utf8
        state[SIZE], state[BEGIN] = size, begin
        if self.plan.n_cells > 0:
            state[N_NOTES] = 0
        counted = state[_COUNTED]
        self._index()
        self._walk()
        if state[N_SUSPECTS]:
            good = self._judge(memory, begin)
            if good:
                state[_COUNTED] = counted
                expected = int(state[N_SUSPECTS]) - good
                self._index()
                self._walk()
                if state[N_SUSPECTS] != expected:
                    raise RuntimeError("the index refuses a line that is JSON")

    def _judge(self, memory: BlockMemory, begin: int) -> int:
        """Note the faults of suspected lines; mend those that have none, and return how many."""
        good = 0
        suspects = memory.suspects[: 3 * self.state[N_SUSPECTS]].reshape(-1, 3)
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
        return good

    @property
    def n_rows(self) -> int:
        """How many good lines the last block has."""
        return int(self.state[N_ROWS])

    @property
    def n_notes(self) -> int:
        """How many notes there are of the last block."""
        return int(self.state[N_NOTES])
