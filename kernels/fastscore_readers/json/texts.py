"""JSON texts that stand anywhere in a buffer, one behind another in blocks that are walked.

Each text is a line of the walk. Line ends within a text become tabs, which are as good between
values and as bad within strings.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from fastscore_machine.compiling import kernel
from fastscore_machine.validation import as_vector, same_length
from fastscore_machine.views import BLOCK, byte_at, item_at, put_block, put_byte, put_item

from fastscore_readers.json.blocks import FOREVER, Room, Walker, room_for
from fastscore_readers.json.line_ends import count_line_ends
from fastscore_readers.json.walk import LINE, NUMBER, VALUES, Plan

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

BLOCK_BYTES = 512 << 10
_NEWLINE, _RETURN, _TAB = 10, 13, 9


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block of texts that was walked.

    Parameters
    ----------
    room
        What was noted.
    n_texts, n_notes
        How many texts and notes there are.
    lines : int64 (2 * n,)
        Of each good text its number in the block and how far its bytes stand behind those of the
        block.
    """

    room: Room
    n_texts: int
    n_notes: int
    lines: Longs


class TextWalker:
    """The walk over some texts.

    Parameters
    ----------
    data : uint8
        Where they stand.
    starts, ends : int64 (n,)
        Their bytes.
    plan
        What is wanted of each.
    is_utf8
        Whether the texts are known to be UTF-8.
    """

    def __init__(
        self,
        data: npt.ArrayLike,
        starts: npt.ArrayLike,
        ends: npt.ArrayLike,
        plan: Plan,
        is_utf8: bool,
    ) -> None:
        self.data: Bytes = as_vector("data", data, np.uint8)
        self.starts: Longs = as_vector("starts", starts, np.int64)
        self.ends: Longs = as_vector("ends", ends, np.int64)
        same_length("starts", self.starts.size, "ends", self.ends.size)
        wrong = (self.starts < 0) | (self.ends < self.starts) | (self.ends > self.data.size)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"`starts` and `ends` hold {self.starts[at]} and {self.ends[at]} at position {at}; "
                f"expected ranges within 0 and {self.data.size}"
            )
        self._walker = Walker(plan, VALUES, np.array(FOREVER), is_utf8)
        self.numbered = False
        r"""Whether an escape that begins with ``\u`` was seen in the blocks so far."""

    @property
    def faulty(self) -> Longs:
        """The numbers of the texts so far that are no JSON."""
        return np.array([number for number, *_ in self._walker.faults], np.int64)

    def blocks(self) -> Iterator[TextBlock]:
        """Walk block by block; each is used no more once the next is asked for."""
        walker, n = self._walker, self.starts.size
        # a byte behind each
        behind = np.cumsum(self.ends - self.starts + 1)
        first = 0
        while first < n:
            before = int(behind[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(behind, before + BLOCK_BYTES, side="right")))
            size = int(behind[last - 1]) - before
            room = room_for(size)
            own = slice(first, last)
            places = np.empty(last - first, np.int64)
            _gather(self.data, self.starts[own], self.ends[own], room.data, places)
            _without_line_ends(room.data[:size], places[1:] - 1)
            walker.state[NUMBER] = first
            walker.walk_room(room, size, 0)
            self.numbered |= room.numbered
            number = room.rows[: 3 * walker.n_rows].reshape(-1, 3)[:, LINE] - first
            shift = self.starts[own][number] - places[number]
            lines = np.stack((number, shift), axis=1).reshape(-1)
            yield TextBlock(room, last - first, walker.n_notes, lines)
            first = last


def _without_line_ends(block: Bytes, behind_texts: Longs) -> None:
    """Make tabs of line ends but those behind texts, and behind the last one.

    A return that ends a text is one line end with that behind it, which does no harm.
    """
    if count_line_ends(block) != behind_texts.size + 1:
        block[(block == _NEWLINE) | (block == _RETURN)] = _TAB
        block[behind_texts] = block[-1] = _NEWLINE


@kernel(
    "uint8[:], int64[:], int64[:], out(uint8[:]), out(int64[:])", fastmath=False, allocates=False
)
def _gather(data: Any, starts: Any, ends: Any, out: Any, places: Any) -> None:
    """Copy texts one behind another, each with a line end behind it.

    ``out`` has room for a block of 64 bytes more.
    """
    to = 0
    for text in range(starts.size):
        put_item(places, text, to)
        at, end = item_at(starts, text), item_at(ends, text)
        behind = to + end - at
        while at < end and at + BLOCK <= data.size:
            put_block(out, to, data, at)
            at += BLOCK
            to += BLOCK
        while at < end:
            put_byte(out, to, byte_at(data, at))
            at += 1
            to += 1
        put_byte(out, behind, _NEWLINE)
        to = behind + 1
