"""The sizes of row groups, from the footer of a Parquet file, a structure of compact Thrift."""

import os
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import IO, Any

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    *(1, 2, 3),
    *range(7, 14),
)
_FIXED = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_ROW_GROUPS, _COLUMNS, _ROWS, _META_DATA, _PATH, _UNPACKED = 4, 1, 3, 3, 3, 6
"""The numbers of the fields that are read."""


def group_sizes(source: Any, columns: Collection[str] | None = None) -> list[tuple[int, int]]:
    """Return the rows of each row group, and the unpacked bytes of its columns.

    Parameters
    ----------
    source
        The file's path, or its bytes as an open file.
    columns
        The columns that count, None for all.

    Raises
    ------
    OSError
        The footer cannot be read.
    """
    wanted = None if columns is None else frozenset(name.encode() for name in columns)
    if not isinstance(source, str):
        return _sizes(source, wanted)
    state = os.stat(source)
    return _sizes_at(source, (state.st_size, state.st_mtime_ns), wanted)


@lru_cache(maxsize=16)
def _sizes_at(
    path: str, state: tuple[int, int], wanted: frozenset[bytes] | None
) -> list[tuple[int, int]]:
    """Read a file's footer once for all shards; another state is another file."""
    with open(path, "rb") as file:
        return _sizes(file, wanted)


def _sizes(file: IO[bytes], wanted: frozenset[bytes] | None) -> list[tuple[int, int]]:
    try:
        return list(_groups(_Footer(_footer(file)), wanted))
    except (IndexError, RecursionError) as error:
        raise OSError("its footer is damaged") from error


def _footer(file: IO[bytes]) -> bytes:
    size = file.seek(0, 2)
    file.seek(max(size - _TAIL_BYTES, 0))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length + _TAIL_BYTES > size:
        raise OSError("its footer is damaged")
    file.seek(size - _TAIL_BYTES - length)
    return file.read(length)


class _Footer:
    """Values of compact Thrift, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield number and kind of each field of a structure; its value must be taken."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 15

    def items(self) -> range:
        """Begin a list of structures; return a range of its length."""
        return range(self._list()[1])

    def integer(self) -> int:
        """Take an integer."""
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def binary(self) -> bytes:
        """Take a text."""
        size = self._varint()
        self._at += size
        return self._data[self._at - size : self._at]

    def skip(self, kind: int) -> None:
        """Pass over a value."""
        if kind == _BINARY:
            size = self._varint()
            self._at += size
        elif kind == _STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            inner, length = self._list()
            for _ in range(length):
                # a truth value in a list has a byte, in a structure it is the kind
                self.skip(_BYTE if inner in (_TRUE, _FALSE) else inner)
        elif kind == _MAP:
            self._skip_map()
        elif kind in _FIXED:
            self._at += _FIXED[kind]
        elif kind not in (_TRUE, _FALSE):
            self._varint()

    def _skip_map(self) -> None:
        length = self._varint()
        kinds = self._byte() if length else 0
        for _ in range(length):
            self.skip(kinds >> 4)
            self.skip(kinds & 15)

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        return head & 15, head >> 4 if head >> 4 < 15 else self._varint()

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        data, value, shift = self._data, 0, 0
        while True:
            byte = data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7


def _groups(footer: _Footer, wanted: frozenset[bytes] | None) -> Iterator[tuple[int, int]]:
    for number, kind in footer.fields():
        if number != _ROW_GROUPS:
            footer.skip(kind)
            continue
        for _ in footer.items():
            yield _group(footer, wanted)


def _group(footer: _Footer, wanted: frozenset[bytes] | None) -> tuple[int, int]:
    rows = size = 0
    for number, kind in footer.fields():
        if number == _COLUMNS:
            size = sum(_column(footer, wanted) for _ in footer.items())
        elif number == _ROWS:
            rows = footer.integer()
        else:
            footer.skip(kind)
    return rows, size


def _column(footer: _Footer, wanted: frozenset[bytes] | None) -> int:
    """Return the unpacked bytes of a column, 0 for one that does not count."""
    size = 0
    for number, kind in footer.fields():
        if number != _META_DATA:
            footer.skip(kind)
            continue
        path = b""
        for inner, of in footer.fields():
            if inner == _PATH:
                path, *_ = [footer.binary() for _ in footer.items()] or [b""]
            elif inner == _UNPACKED:
                size = footer.integer()
            else:
                footer.skip(of)
        if wanted is not None and path not in wanted:
            size = 0
    return size
