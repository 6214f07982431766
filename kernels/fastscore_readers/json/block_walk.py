"""The blocks of some data, one after another: each is copied, indexed, walked and put into columns.

One call goes on until something is Python's to decide, so that threads seldom wait for each other.
"""

from typing import Any, NamedTuple

from fastscore_jit.compiling import inlined, kernel
from fastscore_jit.views import BLOCK, item_at, put_block, put_byte, put_item, signed

from fastscore_readers.fill import COLUMNS, ROWS, Columns, fill_rows
from fastscore_readers.json.index import BYTES_AFTER, INDEX, Index, index_block
from fastscore_readers.json.tokens import ARRAY, NEWLINE, SPACE, Keys  # noqa: F401 `PLAN` has keys
from fastscore_readers.json.walk import (
    BEGIN,
    LINES,
    N_NOTES,
    N_ROWS,
    N_SUSPECTS,
    NOTES,
    NUMBER,
    PLAN,
    SCRATCH,
    SIZE,
    Lines,
    Notes,
    Plan,
    Scratch,
    kind_of,
    walk_lines,
)

NEXT, STAGE, EXPECTED, FITS, ONCE, ARRAYS, BEFORE = range(10, 17)
"""What `state` tells besides what that of `walk` does: which block is next and what was done of it;
how many of its lines are known to be no JSON, or `UNJUDGED`; which size of blocks the memory takes,
and which one besides, once; the slot that takes lines that are arrays, 0 for none; and, from
`BEFORE` on, what was counted before the block was walked."""
N_COUNTED = N_NOTES + 1 - NUMBER
STATE_ITEMS = BEFORE + N_COUNTED
UNJUDGED = -1
FRESH, IN_PLACE, WALKED = range(3)
"""What was done of a block: nothing; it stands in the memory; it was walked."""


class Walk(NamedTuple):
    """What `walk_lines` walks by and writes to."""

    plan: Plan
    notes: Notes
    lines: Lines
    scratch: Scratch


@inlined
def _copy(data: Any, source: Any, begin: Any, size: Any) -> None:
    """Copy a block to where anything can stand after it."""
    at = signed(0)
    while at + BLOCK <= size:
        put_block(data, at, source, begin + at)
        at += BLOCK
    while at < size:
        put_item(data, at, item_at(source, begin + at))
        at += 1


@inlined
def _close(data: Any, size: Any) -> None:
    """Put after a block what `index_block` and its walk look for."""
    put_byte(data, size, NEWLINE)
    at = size + 1
    while at % BYTES_AFTER != 0:
        put_byte(data, at, SPACE)
        at += 1
    for after in range(BYTES_AFTER):
        put_byte(data, at + after, NEWLINE)


@inlined
def _put_arrays(values: Any, n_rows: Any, width: Any, slot: Any) -> None:
    """Put lines that are arrays into a slot of theirs."""
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
    """Walk blocks that end at ``ends``, until memory is wanted or lines are suspected.

    That is said by the stage of the block: ``FRESH`` where it does not fit into ``data``; otherwise
    other than `EXPECTED` many lines are suspected, or the columns have no room for its rows.
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
