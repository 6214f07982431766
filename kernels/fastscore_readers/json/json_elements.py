"""JSON documents as JSON Lines: the elements of an array, each on a line of its own."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from fastscore_machine.validation import read_only

from fastscore_readers.json._json_elements import LINE_END_IN_STRING, number_lines, part_elements

__all__ = ["LINE_END_IN_STRING", "JsonElements", "elements"]

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

_NEWLINE = 0x0A
_BETWEEN = b" \t\n"


@dataclass(frozen=True, slots=True)
class JsonElements:
    """A document of n elements as JSON Lines; positions are those in the document.

    Parameters
    ----------
    data
        The document, uint8, with a line end before each element and none elsewhere: white space
        and what parts the elements are spaces, a line end in a string is `LINE_END_IN_STRING`.
    start, line
        Where each element starts, and its line in the document, int64 (n,).
    fault, fault_line
        Position and line at which the document goes wrong between two elements; its size when an
        array is not closed; -1 and 0 when nothing is wrong. No element behind it is listed.
    """

    data: Bytes
    start: Longs
    line: Longs
    fault: int
    fault_line: int


def elements(data: Bytes, *, whole_array: bool) -> JsonElements:
    """Part a JSON document: the elements of its array, or values one behind another.

    Elements are told apart by brackets and strings alone, so one that is faulty mostly leaves the
    others whole.

    Parameters
    ----------
    data
        The document without a byte order mark, uint8; read-only is fine.
    whole_array
        Whether an array is one element.
    """
    parted = data.copy()
    fault = int(part_elements(parted, whole_array))
    size = parted.size if fault < 0 else fault
    begins = np.flatnonzero(parted[:size] == _NEWLINE) + 1
    if size and parted[0] not in _BETWEEN:
        begins = np.insert(begins, 0, 0)
    places = np.append(begins, max(fault, 0))
    lines = np.empty(places.size, np.int64)
    number_lines(read_only(data), read_only(places), 1, lines)
    return JsonElements(
        parted[:size], begins, lines[:-1], fault, int(lines[-1]) if fault >= 0 else 0
    )
