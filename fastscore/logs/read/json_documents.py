"""JSON documents as lines: the elements of an array, or values one after another.

A document is read whole, so one that is larger than `MAX_DOCUMENT_BYTES` is a reject: JSON Lines
is the format for logs of that size.
"""

from collections.abc import Iterator

import numpy as np
from fastscore_readers.json.documents import JsonElements, elements

from fastscore.logs.integrity.rejects import Reject, decode
from fastscore.logs.plan.byte_ranges import Damage
from fastscore.logs.read.streams import BOM, DamageError, Lines

MAX_DOCUMENT_BYTES = 1 << 30

_SHOWN_BYTES = 1 << 10
_EXPECTED = "a JSON object or an array"


def read_document(
    blocks: Iterator[bytes], file: str, *, whole_array: bool, damage: Damage | None = None
) -> Iterator[Lines]:
    """Part a document into lines.

    Parameters
    ----------
    blocks
        The stream.
    file
        What rejects call it.
    whole_array
        Whether an array is one line.
    damage
        Damage that is known to stand past the stream's end.

    Yields
    ------
    Lines
        The elements; then the reject that stands for what follows a fault between two of them.
    """
    joined: list[bytes] = []
    size = 0
    try:
        for block in blocks:
            size += len(block)
            if size <= MAX_DOCUMENT_BYTES:
                joined.append(block)
    except DamageError as error:
        damage = error.damage
    text = b"".join(joined)
    if size > MAX_DOCUMENT_BYTES:
        yield Lines(b"", 0, 1, refused=_too_long(file, size, text))
        return
    if not text.removeprefix(BOM).strip() and damage is None:
        yield Lines(b"", 0, 1, refused=_empty(file))
        return
    offset = len(BOM) if text.startswith(BOM) else 0
    found = elements(np.frombuffer(text, np.uint8)[offset:], whole_array=whole_array)
    if found.start.size or damage is not None:
        first = int(found.start[0]) if found.start.size else found.data.size
        numbers = np.stack([found.start - first, found.line], 1)
        data = found.data[first:].tobytes()
        line = int(found.line[0]) if found.start.size else 1
        yield Lines(data, offset + first, line, damage=damage, numbers=numbers)
    if found.fault >= 0 and damage is None:
        refused = _broken(file, found, text[offset:], offset)
        yield Lines(b"", offset + found.fault, found.fault_line, refused=refused)


def _too_long(file: str, size: int, text: bytes) -> Reject:
    """Name a document that is not read for its length."""
    return Reject(
        file,
        1,
        0,
        None,
        "line_too_long",
        f"a document of {size} bytes",
        f"at most {MAX_DOCUMENT_BYTES} bytes; JSON Lines may be of any length",
        decode(text[:_SHOWN_BYTES]),
    )


def _empty(file: str) -> Reject:
    """Name a document that holds nothing."""
    return Reject(file, 1, 0, None, "not_json", "an empty file", _EXPECTED, "")


def _broken(file: str, found: JsonElements, text: bytes, offset: int) -> Reject:
    """Name the fault between two elements of a document; what follows it is left aside."""
    rest = text[found.fault :]
    what = "the end of the document"
    if rest:
        byte = rest[:4].decode(errors="replace")[:1]
        what = f"{byte!r}, from which on {len(rest)} bytes are left aside"
    return Reject(
        file,
        found.fault_line,
        offset + found.fault,
        None,
        "not_json",
        what,
        "elements parted by commas up to a closing bracket",
        decode(rest[:_SHOWN_BYTES]),
    )
