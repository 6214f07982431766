"""Arrow IPC files and streams, Feather among them: their rows, some at a time.

Of a file its messages alone are walked here. What they hold is read by polars, which checks it: the
wanted batches are handed over as a stream of their own, after the schema and the dictionaries.
"""

import io
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from fastscore.logs.inputs.first_bytes import ARROW_FILE, ARROW_STREAM

ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 64 << 20
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_END = ARROW_STREAM + bytes(4)
_LZ4 = 0
_LZ4_RATIO = 256
_MOST_UNPACKED = 1 << 31


class DamagedArrowError(OSError):
    """The messages of an Arrow file do not fit it."""


@dataclass(frozen=True, slots=True)
class _Message:
    """Where a message begins, how long its description and its body are, and what it holds."""

    offset: int
    head: int
    body: int
    kind: int
    rows: int


def is_arrow(source: Any) -> bool:
    """Tell whether a path, or an open file, holds Arrow's format of files or of streams."""
    if isinstance(source, str):
        with open(source, "rb") as file:
            head = file.read(len(ARROW_FILE))
    else:
        head = source.read(len(ARROW_FILE))
        source.seek(0)
    return head.startswith((ARROW_FILE, ARROW_STREAM))


def arrow_schema(source: Any) -> pl.Schema:
    """Return the columns of an Arrow file and their types, as polars has them."""
    with _opened(source) as file:
        schema, _ = _walk(file)
        return _read(file, schema, (), None).schema


def arrow_rows(source: Any) -> int:
    """Count the rows of an Arrow file."""
    with _opened(source) as file:
        return sum(message.rows for message in _walk(file)[1])


def arrow_frames(
    source: Any, columns: Sequence[str] | None = None, start: int = 0, stop: int | None = None
) -> Iterator[pl.DataFrame]:
    """Yield rows of an Arrow file, in order."""
    with _opened(source) as file:
        schema, walk = _walk(file)
        for messages, first, n_rows in _together(walk, start, stop):
            low, high = max(start - first, 0), n_rows if stop is None else min(stop - first, n_rows)
            if columns is not None and not columns:
                for begin in range(low, high, ROWS_AT_ONCE):
                    yield pl.DataFrame(height=min(high - begin, ROWS_AT_ONCE))
                continue
            frame = _read(file, schema, messages, columns)
            for begin in range(low, high, ROWS_AT_ONCE):
                yield frame.slice(begin, min(high - begin, ROWS_AT_ONCE))


def _together(
    messages: Iterator[_Message], start: int, stop: int | None
) -> Iterator[tuple[list[_Message], int, int]]:
    """Yield the messages that are read together, the number of their first row, and of rows."""
    before: list[_Message] = []
    batches: list[_Message] = []
    first = last = 0
    for message in messages:
        full = last - first >= ROWS_AT_ONCE or sum(each.body for each in batches) >= _BYTES_AT_ONCE
        if batches and (message.kind != _BATCH or full):
            yield [*before, *batches], first, last - first
            batches = []
        if message.kind != _BATCH:
            before.append(message)
            continue
        if stop is not None and last >= stop:
            break
        last += message.rows
        if last > start:
            first = first if batches else last - message.rows
            batches.append(message)
    if batches:
        yield [*before, *batches], first, last - first


@contextmanager
def _opened(source: Any) -> Iterator[Any]:
    # not mapped: a file that shrinks meanwhile would end the process
    if isinstance(source, str):
        with open(source, "rb") as file:
            yield file
    else:
        yield source


def _walk(file: Any) -> tuple[bytes, Iterator[_Message]]:
    """Return the schema of a file or a stream, as a message, and its other messages."""
    with _damage_named():
        file.seek(0)
        if file.read(len(ARROW_FILE)) == ARROW_FILE:
            footer = _footer(file)
            return _schema_of_footer(footer), _of_footer(file, footer)
        messages = _of_stream(file, 0)
        schema = next(messages, None)
        if schema is None or schema.kind != _SCHEMA:
            raise DamagedArrowError("it has no schema")
        file.seek(0)
        return file.read(schema.head), messages


@contextmanager
def _damage_named() -> Iterator[None]:
    """Turn a place beyond the data into the error of a damaged file."""
    try:
        yield
    except (struct.error, OverflowError) as error:
        raise DamagedArrowError("its messages do not fit it") from error


def _of_stream(file: Any, offset: int) -> Iterator[_Message]:
    size = file.seek(0, io.SEEK_END)
    with _damage_named():
        while offset < size:
            message = _message(file, offset)
            if message is None:
                return
            if message.offset + message.head + message.body > size:
                raise DamagedArrowError("it ends within a message")
            yield message
            offset += message.head + message.body


def _footer(file: Any) -> "_Table":
    size = file.seek(-(4 + len(ARROW_FILE)), io.SEEK_END)
    length, magic = struct.unpack("<i6s", file.read())
    if magic != ARROW_FILE or not 0 < length <= size:
        raise DamagedArrowError("it has no footer")
    file.seek(size - length)
    return _Table.root(file.read(length))


def _schema_of_footer(footer: "_Table") -> bytes:
    """Return the schema as a message, which the file need not have: a table before the footer's."""
    names = struct.pack("<I5H2x", 16, 10, 12, 4, 6, 8)
    # the table begins at 16, the footer at 32: places count from the field that has them, at 24
    table = struct.pack("<ihBxI4x", 12, footer.number(0, "h"), _SCHEMA, footer.table(1).at + 8)
    data = names + table + footer.data
    data += bytes(-len(data) % 8)
    return ARROW_STREAM + struct.pack("<i", len(data)) + data


def _of_footer(file: Any, footer: "_Table") -> Iterator[_Message]:
    """Yield the messages that the footer of a file lists: dictionaries, then batches."""
    with _damage_named():
        size = file.seek(0, io.SEEK_END)
        for field, kind in ((2, _DICTIONARY), (3, _BATCH)):
            for place in footer.structs(field, 24):
                offset, head, body = struct.unpack_from("<qi4xq", footer.data, place)
                message = _message(file, offset)
                if message is None or (message.body, message.kind) != (body, kind):
                    raise DamagedArrowError("its footer does not fit its messages")
                if offset + head + body > size:
                    raise DamagedArrowError("it ends within a message")
                yield message


def _message(file: Any, offset: int) -> _Message | None:
    """Return the message at an offset; None for the end of a stream."""
    file.seek(offset)
    mark, length = struct.unpack("<4si", file.read(8))
    if mark != ARROW_STREAM or length < 0:
        raise DamagedArrowError(f"no message begins at byte {offset}")
    if not length:
        return None
    data = file.read(length)
    if len(data) < length:
        raise DamagedArrowError("it ends within a message")
    table = _Table.root(data)
    kind, body = table.number(1, "B"), table.number(3, "q")
    rows = table.table(2).number(0, "q") if kind == _BATCH else 0
    if body < 0 or rows < 0:
        raise DamagedArrowError(f"the message at byte {offset} is damaged")
    return _Message(offset, 8 + length, body, kind, rows)


def _read(
    file: Any, schema: bytes, messages: Sequence[_Message], columns: Sequence[str] | None
) -> pl.DataFrame:
    """Read batches, the last of some messages."""
    stream = io.BytesIO()
    stream.write(schema)
    for message in messages:
        file.seek(message.offset)
        data = file.read(message.head + message.body)
        with _damage_named():
            _check_unpacked(data, message)
        stream.write(data)
    stream.write(_END)
    stream.seek(0)
    names = None if columns is None else [*columns]
    try:
        frame = pl.read_ipc_stream(stream, columns=names)
    except pl.exceptions.PanicException as error:
        raise DamagedArrowError("it is damaged, or polars lacks the type of a column") from error
    return frame if names is None else frame.select(names)


def _check_unpacked(data: bytes, message: _Message) -> None:
    """Refuse packed buffers of an impossible size, for which polars would take memory at once."""
    batch = _Table.root(data[8 : message.head]).table(2)
    if message.kind == _DICTIONARY:
        batch = batch.table(1)
    codec = batch.table(3, optional=True)
    if codec is None:
        return
    for place in batch.structs(2, 16):
        offset, length = struct.unpack_from("<qq", batch.data, place)
        packed = data[message.head + offset :][:length]
        if len(packed) <= 8:
            continue
        size = int.from_bytes(packed[:8], "little", signed=True)
        if size > _most_unpacked(codec.number(0, "b"), packed[8:]):
            raise DamagedArrowError("a packed buffer is damaged")


def _most_unpacked(codec: int, packed: bytes) -> int:
    if codec == _LZ4:
        return _LZ4_RATIO * len(packed)
    import zstandard

    try:
        size = zstandard.frame_content_size(packed)
    except zstandard.ZstdError as error:
        raise DamagedArrowError("a packed buffer is damaged") from error
    return _MOST_UNPACKED if size < 0 else size


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of FlatBuffers, in which messages are described."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        """Return the table that all of the data is."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def place(self, field: int) -> int:
        """Return where a field stands, 0 if it is absent."""
        names = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if names < 0 or 4 + 2 * field >= struct.unpack_from("<H", self.data, names)[0]:
            return 0
        shift: int = struct.unpack_from("<H", self.data, names + 4 + 2 * field)[0]
        return self.at + shift if shift else 0

    def number(self, field: int, kind: str) -> int:
        """Return a number, 0 if it is absent."""
        place = self.place(field)
        return struct.unpack_from(f"<{kind}", self.data, place)[0] if place else 0

    def table(self, field: int, *, optional: bool = False) -> Any:
        """Return a table inside this; None if it is absent and ``optional``."""
        place = self.place(field)
        if not place:
            if optional:
                return None
            raise DamagedArrowError("a message is damaged")
        return _Table(self.data, place + struct.unpack_from("<I", self.data, place)[0])

    def structs(self, field: int, size: int) -> range:
        """Return where the structures of a list stand, each of so many bytes."""
        place = self.place(field)
        if not place:
            return range(0)
        first = place + struct.unpack_from("<I", self.data, place)[0]
        count = struct.unpack_from("<I", self.data, first)[0]
        if first + 4 + count * size > len(self.data):
            raise DamagedArrowError("a message is damaged")
        return range(first + 4, first + 4 + count * size, size)
