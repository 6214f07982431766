"""JSON documents as lines: the elements of an array, or consecutive values.

Elements are yielded while they are read, so a document may have any size. An element longer than
`MAX_RECORD_BYTES` is skipped and reported. An element that the blocks cut is scanned again after
the data read have doubled, so a long element is scanned at most twice.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from fastscore_readers.json.documents import (
    AFTER_COMMA,
    AFTER_ELEMENT,
    AT_START,
    BETWEEN_VALUES,
    JsonElements,
    elements,
    skip_value,
)

from fastscore.files import Compression, Damage, DamageError
from fastscore.logs.inputs.document_values import load_json
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import Reject, decode
from fastscore.logs.read.lines import (
    BOM,
    MOST_LINES,
    Block,
    BlockStream,
    Lines,
    read_blocks,
    too_long,
)
from fastscore.suites.declarations import RejectReason

_SHOWN_BYTES, _FIRST_BYTES = 1 << 10, 1 << 14


def read_document(
    blocks: Iterator[Block],
    file: str,
    *,
    holds_rows: Callable[[Any], bool],
    offset: int = 0,
    line: int = 1,
    in_array: bool = False,
    goes_on: bool = False,
    damage: Damage | None = None,
) -> Iterator[Lines]:
    """Split a document into lines, from an element on: whether it is in the document's array.

    If the document goes on after the blocks, more elements follow.
    """
    stream = BlockStream(blocks, offset == 0, damage)
    place = AT_START if offset == 0 else AFTER_COMMA if in_array else BETWEEN_VALUES
    pending: Block = b""
    wanted = 0
    ended = False
    # a document that is read from its middle is an array of rows, or consecutive values
    whole_array = None if place == AT_START else not in_array
    while not ended:
        pending = stream.more(wanted - len(pending), pending)
        offset, stream.mark = offset + stream.mark, 0
        ended = stream.ended
        if whole_array is None:
            whole_array = _is_whole(bytes(pending), holds_rows, final=ended)
            if whole_array is None:
                wanted = 2 * len(pending)
                continue
        found = elements(
            np.frombuffer(pending, np.uint8),
            whole_array=whole_array,
            place=place,
            line=line,
            final=ended and not goes_on,
        )
        yield from _element_lines(found, file, pending, offset, stream.damage if ended else None)
        if found.fault >= 0 and (stream.damage is None or not ended):
            yield _after_fault(stream, found, file, pending, offset)
            return
        pending, place, line = pending[found.stop :], found.place, found.next_line
        offset += found.stop
        wanted = min(2 * len(pending), MAX_RECORD_BYTES + 1)
        if len(pending) > MAX_RECORD_BYTES and not ended:
            blocks_left = itertools.chain([pending], iter(stream.next, None))
            n_bytes, after, rest = skip_value(blocks_left, line)
            refused = too_long(file, line, offset, n_bytes, pending)
            yield Lines(b"", offset, line, refused=refused)
            pending, line, wanted = rest, after, 0
            offset += n_bytes
            place = BETWEEN_VALUES if place in (AT_START, BETWEEN_VALUES) else AFTER_ELEMENT
    if place == AT_START and stream.damage is None:
        what = "an empty file", "a JSON object or an array", ""
        yield Lines(b"", 0, 1, refused=Reject(file, 1, 0, None, "not_json", *what))


def _is_whole(text: bytes, holds_rows: Callable[[Any], bool], *, final: bool) -> bool | None:
    """Return whether an array is one line; None if its first element is incomplete."""
    if text.lstrip(b" \t\r\n")[:1] != b"[":
        return True if text.strip(b" \t\r\n") or final else None
    found = elements(
        np.frombuffer(text, np.uint8), whole_array=False, place=AT_START, line=1, final=final
    )
    if not found.start.size:
        return not holds_rows(None) if final or len(text) > MAX_RECORD_BYTES else None
    end = int(found.start[1]) if found.start.size > 1 else found.data.size
    try:
        return not holds_rows(load_json(found.data[found.start[0] : end].tobytes().strip()))
    except ValueError:
        return not holds_rows({})


def is_array_of_rows(path: str, holds_rows: Callable[[Any], bool]) -> bool:
    """Return whether an uncompressed document is an array of rows."""
    text = b""
    for block in read_blocks(path, "none"):
        text += block if text else bytes(block).removeprefix(BOM)
        whole = _is_whole(text, holds_rows, final=False)
        if whole is not None:
            return not whole and text.lstrip(b" \t\r\n")[:1] == b"["
    return _is_whole(text, holds_rows, final=True) is False


def first_text(path: str, compression: Compression) -> bytes:
    """Return the first bytes of a file after white space, empty if they are damaged."""
    blocks = read_blocks(path, compression, limits=None, block_bytes=_FIRST_BYTES)
    with suppress(DamageError):
        for block in blocks:
            text = bytes(block).removeprefix(BOM).lstrip(b" \t\r\n")
            if text:
                return text
    return b""


def _element_lines(
    found: JsonElements, file: str, text: Block, offset: int, damage: Damage | None
) -> Iterator[Lines]:
    """Yield elements as lines, many of them in several parts; damage follows the last."""
    ends = np.append(found.start, found.data.size)[1:]
    is_long = {
        element: size
        for element in np.flatnonzero(ends - found.start > MAX_RECORD_BYTES).tolist()
        if (
            size := len(found.data[found.start[element] : ends[element]].tobytes().rstrip(b" \t\n"))
        )
        > MAX_RECORD_BYTES
    }
    long, many_edges = np.array([*is_long], np.int64), np.arange(0, ends.size, MOST_LINES)
    edges = np.unique(np.concatenate((many_edges, long, long + 1, [ends.size])))
    for first, after in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        begin, line = int(found.start[first]), int(found.line[first])
        end = int(found.start[after]) - 1 if after < found.start.size else found.data.size
        if first in is_long:
            refused = too_long(file, line, offset + begin, is_long[first], text[begin:end])
            yield Lines(b"", offset + begin, line, refused=refused)
            continue
        numbers = np.stack([found.start[first:after] - begin, found.line[first:after]], 1)
        own = damage if after == found.start.size else None
        data = found.data[begin:end].tobytes()
        many = len(many_edges) > 1
        found_at = offset + begin
        yield Lines(data, found_at, line, damage=own, numbers=numbers, dense=many, in_document=True)
    if damage is not None and not found.start.size:
        numbers = np.empty((0, 2), np.int64)
        yield Lines(b"", offset + found.data.size, 1, damage=damage, numbers=numbers)


def _after_fault(
    stream: BlockStream, found: JsonElements, file: str, pending: Block, offset: int
) -> Lines:
    """Read the rest after a fault between two elements: it is ignored, or damaged."""
    rest = bytes(pending[found.fault :])
    left = len(rest)
    while (block := stream.next()) is not None:  # the reader hashes the whole file
        left += len(block)
        rest += block[: max(0, _SHOWN_BYTES - len(rest))]
    offset += found.fault
    if stream.damage is not None:
        numbers = np.empty((0, 2), np.int64)
        return Lines(b"", offset, found.next_line, damage=stream.damage, numbers=numbers)
    what = "the end of the document"
    if rest:
        byte = rest[:4].decode(errors="replace")[:1]
        what = f"{byte!r}, from which on {left} bytes are left aside"
    expected = "elements separated by commas up to a closing bracket"
    raw = decode(rest[:_SHOWN_BYTES])
    # nothing is lost between a last comma and the bracket
    reason: RejectReason = "not_json" if rest.strip() == b"]" else "broken_document"
    refused = Reject(file, found.next_line, offset, None, reason, what, expected, raw)
    return Lines(b"", offset, found.next_line, refused=refused)
