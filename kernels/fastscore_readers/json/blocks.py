"""Blocks of lines, each indexed and walked while it is in the cache.

A block is copied to where spaces and line ends can stand after it; what is noted of it is put
into columns before the next one comes. Lines that the index suspects are judged in Python: one that
is good after all (white space of other kinds stands around it, or the character before it is cut
off) is mended and the block is walked again.
"""

import threading
from array import array
from dataclasses import dataclass, field

import numpy as np
from fastscore_machine.arrays import Bytes, Longs
from fastscore_machine.compiling import prepared

from fastscore_readers.json.faults import fault_of, spaces_for_white
from fastscore_readers.json.index import (
    BYTES_AFTER,
    IS_UTF8,
    N_BAD,
    NUMBERED,
    POSITION,
    Index,
    index_block,
    index_room,
)
from fastscore_readers.json.line_ends import count_line_ends
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
_NEWLINE, _RETURN, _SPACE = 10, 13, 32
_KEPT_BYTES, _KEPT_NOTES = 4 * BLOCK_BYTES, 1 << 23
_STATE_ITEMS = 10
_SHORT_LINE = 64
_COUNTED = [NUMBER, RESTART, N_LINES, N_BLANK, N_NOTES]


class Room:
    """Memory for one block of at most as many bytes and lines."""

    def __init__(self, size: int, n_lines: int) -> None:
        self.size, self.n_lines = size, n_lines
        self.data = np.empty(size + 1 + 2 * BYTES_AFTER, np.uint8)
        self.index: Index = index_room(size + 1)
        self.rows, self.suspects = np.empty((2, 3 * n_lines), np.int64)
        self.key = np.empty(size + BYTES_AFTER, np.uint8)
        self.stack = np.empty(MAX_DEPTH, np.uint8)

    @property
    def numbered(self) -> bool:
        r"""Whether the block has an escape that begins with ``\u``."""
        return bool(self.index.counts[NUMBERED])


def _most_lines(size: int) -> int:
    """Bound the lines of a block of as many bytes."""
    return size // 2 + 2


def _notes(size: int, others: int) -> Notes:
    return Notes(np.empty(size, np.uint64), *(np.empty(others, np.int32) for _ in range(2)))


class _Own(threading.local):
    """What a thread keeps for its next block."""

    def __init__(self) -> None:
        self.room, self.notes = Room(BLOCK_BYTES, _most_lines(BLOCK_BYTES)), _notes(0, 0)


_own = _Own()


def own_room(size: int, n_lines: int = 0) -> Room:
    """Return the thread's room for a block; one for a large block is not kept."""
    if size > _KEPT_BYTES:
        return Room(size, n_lines)
    if size > _own.room.size:
        _own.room = Room(size, _most_lines(size))
    return _own.room


def block_ends(data: Bytes, size: int = BLOCK_BYTES) -> list[int]:
    """Cut data after line ends, into blocks of about a size or of one longer line."""
    ends: list[int] = []
    begin = 0
    while begin < data.size:
        end = min(begin + size, data.size)
        while end < data.size:
            cut = _last_line_end(data, begin, end)
            if cut:
                end = cut
                break
            end = min(2 * end - begin, data.size)
        ends.append(end)
        begin = end
    return ends


def _last_line_end(data: Bytes, begin: int, end: int) -> int:
    """Position after the last line end that surely is one, 0 without any."""
    step = 1 << 10
    while True:
        first = max(begin, end - step)
        part = data[first:end].tobytes()
        # a return at the very end may be half of a line end
        at = max(part.rfind(b"\n"), part.rfind(b"\r", 0, len(part) - 1))
        if at >= 0:
            # nor does a block begin between the halves of one
            return first + at + 1 + (part[at : at + 2] == b"\r\n")
        if first == begin:
            return 0
        step *= 8


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
    room: Room = field(default_factory=lambda: _own.room)

    def __post_init__(self) -> None:
        self.state[NUMBER], self.state[ROOTS] = 1, self.roots
        self._prepare()

    def walk(self, block: Bytes, begin: int) -> Room:
        """Walk a block of whole lines that begins at a position; the room says what was noted."""
        room = self.room_for(block.size, block)
        room.data[: block.size] = block
        self.walk_room(block.size, begin)
        return room

    def room_for(self, size: int, block: Bytes | None = None) -> Room:
        """Have room for a block and its notes; a large one is given if it is more than a line."""
        if size >= MOST_BYTES:
            raise ValueError(f"a line of {size} bytes; expected fewer than {MOST_BYTES}")
        is_kept = size <= _KEPT_BYTES
        if is_kept:
            n_lines = _most_lines(size)
        else:
            # a large block is one line, or one and a few after it
            n_lines = 2 if block is None else int(count_line_ends(block)) + 2
        lacks_room = size > self.room.size or n_lines > self.room.n_lines
        if lacks_room:
            self.room = own_room(size, n_lines)
        cells, count = max(self.plan.n_cells, 0), int(self.state[N_NOTES])
        needed = cells * self.room.n_lines if cells else count + self.room.size + 1
        others = 0 if cells else needed
        lacks_notes = self.notes.value.size < needed or self.notes.place.size < others
        if lacks_notes:
            count = 0 if cells else count
            wide = _notes(
                max(needed + others, self.notes.value.size),
                max(2 * others, self.notes.place.size),
            )
            wide.value[:count] = self.notes.value[:count]
            wide.place[:count], wide.parent[:count] = (
                self.notes.place[:count],
                self.notes.parent[:count],
            )
            self.notes = wide
            if wide.value.size <= _KEPT_NOTES:
                _own.notes = wide
        if lacks_room or lacks_notes:
            self._prepare()
        return self.room

    def _prepare(self) -> None:
        """Prepare the calls of the kernels."""
        room = self.room
        scratch = Scratch(room.stack, room.key, np.full(self.plan.elements.size, -1, np.int32))
        lines = Lines(room.rows, room.suspects, self.restarts)
        self._index = prepared(index_block, room.data, room.index, self.state)
        self._walk = prepared(
            walk_lines, room.data, room.index, self.plan, self.notes, lines, scratch, self.state
        )

    def walk_room(self, size: int, begin: int) -> None:
        """Walk a block that stands in the room."""
        room, state = self.room, self.state
        rounded = -(-(size + 1) // BYTES_AFTER) * BYTES_AFTER
        room.data[size] = _NEWLINE
        room.data[size + 1 : rounded] = _SPACE
        room.data[rounded : rounded + BYTES_AFTER] = _NEWLINE
        room.index.counts[IS_UTF8] = self.is_utf8
        state[SIZE], state[BEGIN] = size, begin
        if self.plan.n_cells > 0:
            state[N_NOTES] = 0
        counted = state[_COUNTED]
        self._index()
        self._walk()
        if state[N_SUSPECTS]:
            good = self._judge(room, begin)
            if good:
                state[_COUNTED] = counted
                self._index()
                self._clear(room.index, good)
                expected = int(state[N_SUSPECTS]) - len(good)
                self._walk()
                if state[N_SUSPECTS] != expected:
                    raise RuntimeError("the index refuses a line that is JSON")

    def _judge(self, room: Room, begin: int) -> list[tuple[int, int]]:
        """Note the faults of suspected lines; mend those that have none, and return their bytes."""
        good = []
        suspects = room.suspects[: 3 * self.state[N_SUSPECTS]].reshape(-1, 3)
        # of very many bad lines most are alike
        judged: dict[bytes, tuple[int, int] | None] = {}
        for number, start, end in suspects.tolist():
            line = room.data[start:end].tobytes()
            if line in judged:
                fault = judged[line]
            else:
                fault = fault_of(line, arrays=self.roots == CONTAINERS, values=self.roots == VALUES)
                if len(line) <= _SHORT_LINE:
                    judged[line] = fault
            if fault is None:
                room.data[start:end] = np.frombuffer(spaces_for_white(line), np.uint8)
                good.append((start, end))
            else:
                status, at = fault
                place = (number, begin + start, begin + end, status, begin + start + at)
                self.faults.extend(place)
        return good

    @staticmethod
    def _clear(index: Index, good: list[tuple[int, int]]) -> None:
        """Take the bad bytes of good lines out of an index."""
        bad = index.bad[: index.counts[N_BAD]]
        kept = np.ones(bad.size, np.bool_)
        for start, end in good:
            kept[np.searchsorted(bad, start) : np.searchsorted(bad, end, side="right")] = False
        left = bad[kept]
        index.bad[: left.size], index.bad[left.size] = left, POSITION
        index.counts[N_BAD] = left.size

    @property
    def n_rows(self) -> int:
        """How many good lines the last block has."""
        return int(self.state[N_ROWS])

    @property
    def n_notes(self) -> int:
        """How many notes there are of the last block."""
        return int(self.state[N_NOTES])
