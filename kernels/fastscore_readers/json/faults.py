"""The faults of suspected lines and their positions, by Python's rules, in Python.

A line is read as ``json.loads(line.strip())`` reads it, with two differences. Values nest at most
`MAX_DEPTH` deep, and integers may have any number of digits.
"""

import re

from fastscore_readers.json.tokens import MAX_DEPTH

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
