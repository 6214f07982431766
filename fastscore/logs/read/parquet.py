"""Files of stored columns, Parquet and Arrow (Feather among them), read in batches of rows.

polars reads what the files contain. Footers of Parquet and messages of Arrow are walked here, so
that neither a damaged file nor a large one takes memory for what it claims to hold.
"""

import io
import os
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any

import polars as pl

from fastscore.errors import InputError
from fastscore.logs.inputs.files import ARROW_FILE, ARROW_STREAM
from fastscore.logs.integrity.file_state import FileRange
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import UNREADABLE_PARQUET, Reject, reason_of
from fastscore.logs.read.columns import check_stored, convert_stored
from fastscore.suites.declarations import Column

MOST_ROWS = 1 << 18
_READ_BYTES = 64 << 20
_DECODED = 2
"""Memory of rows while they are read: unpacked, and as columns."""


def parquet_rows(path: str, name: str) -> int:
    """Count the rows of the file at ``path``, called ``name`` in errors."""
    with _faults_named(name):
        if is_arrow(path):
            return arrow_rows(path)
        return sum(rows for rows, _ in group_sizes(path, ()))


def read_parquet(
    file_range: FileRange, columns: Sequence[Column]
) -> Iterator[tuple[int, pl.DataFrame, list[Reject]]]:
    """Read a byte range's rows in batches."""
    for start, whole in _frames(file_range, _stored(file_range, columns)):
        for raw in bounded(whole):
            file_range.limits.check_memory(file_range.file)
            frame, rejects = convert_stored(file_range.file, raw, columns, start + 1)
            long = _too_long(file_range.file, raw, start + 1)
            if long:
                lines = {reject.line for reject in long}
                frame = frame.filter(~pl.col("line").is_in(lines))
                rejects = [*long, *(reject for reject in rejects if reject.line not in lines)]
                rejects.sort(key=lambda reject: reject.line)
            yield raw.height, frame, rejects
            start += raw.height


def bounded(frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Split rows until each part has at most `_READ_BYTES`, or one row.

    A value that is stored once for many rows takes its size in each row only when it is copied.
    """
    if frame.height < 2 or frame.estimated_size() <= _READ_BYTES:
        yield frame
        return
    half = frame.height // 2
    yield from bounded(frame[:half])
    yield from bounded(frame[half:])


def _frames(file_range: FileRange, names: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
    """Yield rows of the wanted columns, with the number of rows before them."""
    path, check_memory = file_range.path, file_range.limits.check_memory
    with _faults_named(file_range.file):
        start = file_range.start
        if is_arrow(path):
            for frame in arrow_frames(path, names, start, file_range.stop):
                check_memory(file_range.file)
                yield start, frame
                start += frame.height
            return
        # the rows of each row group, and the unpacked bytes of the wanted columns
        sizes = group_sizes(path, names)
        n_rows, n_bytes = sum(rows for rows, _ in sizes), sum(size for _, size in sizes)
        rows = min(max(_READ_BYTES * n_rows // max(n_bytes, 1), 1), MOST_ROWS)
        for start in range(file_range.start, file_range.stop, rows):
            count = min(rows, file_range.stop - start)
            check_memory(file_range.file, _DECODED * _slice_size(sizes, start, count))
            if not names:
                yield start, pl.DataFrame(height=count)
                continue
            scan = pl.scan_parquet(path, glob=False).slice(start, count)
            frame = scan.select(*names).collect()
            if frame.height != count:
                raise OSError(
                    f"it has {frame.height:,} rows of the {count:,} from {start + 1:,} on"
                )
            yield start, frame


def _too_long(file: str, raw: pl.DataFrame, first_line: int) -> list[Reject]:
    texts = [name for name, dtype in raw.schema.items() if dtype == pl.String]
    if not texts:
        return []
    sizes = raw.select(pl.sum_horizontal(pl.col(texts).str.len_bytes().cast(pl.Int64))).to_series()
    most = f"at most {MAX_RECORD_BYTES} bytes a row"
    return [
        Reject(file, first_line + row, None, None, "line_too_long", f"{sizes[row]} bytes", most, "")
        for row in (sizes > MAX_RECORD_BYTES).arg_true().to_list()
    ]


@contextmanager
def _faults_named(name: str) -> Iterator[None]:
    try:
        yield
    except UNREADABLE_PARQUET as error:
        raise InputError(
            f"The file {name!r} cannot be read: {reason_of(error)}.",
            "Write it again from its source.",
        ) from error


def _stored(file_range: FileRange, columns: Sequence[Column]) -> list[str]:
    with _faults_named(file_range.file):
        if is_arrow(file_range.path):
            schema = arrow_schema(file_range.path)
        else:
            group_sizes(file_range.path, ())  # checks the footer
            schema = pl.scan_parquet(file_range.path, glob=False).collect_schema()
    return check_stored(file_range.file, schema, columns, "Write the file again with that type.")


def _slice_size(sizes: Sequence[tuple[int, int]], start: int, count: int) -> int:
    """Estimate the unpacked bytes of some rows, by their share of each row group."""
    total = first = 0
    for rows, size in sizes:
        inside = min(start + count, first + rows) - max(start, first)
        total += size * inside // rows if inside > 0 else 0
        first += rows
    return total


_MAGIC = b"PAR1"
_TAIL_BYTES = 8
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    *(1, 2, 3),
    *range(7, 14),
)
_FIXED = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_SCHEMA, _ALL_ROWS, _ROW_GROUPS, _CHILDREN = 2, 3, 4, 5
_COLUMNS, _ROWS, _META_DATA, _PATH, _VALUES, _UNPACKED = 1, 3, 3, 3, 5, 6
_WANTED: dict[int, Any] = {
    _SCHEMA: {_CHILDREN: int},
    _ALL_ROWS: int,
    _ROW_GROUPS: {
        _COLUMNS: {_META_DATA: {_PATH: bytes, _VALUES: int, _UNPACKED: int}},
        _ROWS: int,
    },
}
"""The fields of a footer that are read, by their numbers: of structures, or of lists of these."""
_MOST_DEEP, _MOST_GROUPS = 100, 1 << 15
_MOST_VARINT = 10
_VALUE_BYTES = 16
"""Memory of a value, however small it is stored."""


def group_sizes(source: Any, columns: Collection[str] | None = None) -> list[tuple[int, int]]:
    """Check a footer; return the rows of each row group, and the unpacked bytes of its columns.

    polars follows nested columns by recursion, and reads no rows beyond those that a footer tells.
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
        return _checked(_Thrift(_footer(file)).structure(_WANTED), wanted)
    except (AttributeError, IndexError, RecursionError, TypeError) as error:
        # a field of another type than the format has is damage, too
        raise OSError("its footer is damaged") from error


def _checked(footer: Mapping[int, Any], wanted: frozenset[bytes] | None) -> list[tuple[int, int]]:
    groups, told = footer.get(_ROW_GROUPS, []), footer.get(_ALL_ROWS, 0)
    if len(groups) > _MOST_GROUPS:
        raise OSError(f"it has {len(groups):,} row groups, more than {_MOST_GROUPS:,}")
    _check_depth(footer.get(_SCHEMA, []))
    sizes = [
        (group.get(_ROWS, 0), sum(_size(each, wanted) for each in group.get(_COLUMNS, [])))
        for group in groups
    ]
    found = sum(rows for rows, _ in sizes)
    if found != told or any(rows < 0 for rows, _ in sizes):
        raise OSError(f"its footer tells {told:,} rows, its row groups {found:,}")
    return sizes


def _check_depth(schema: Sequence[Mapping[int, Any]]) -> None:
    """Refuse a schema, a tree in the order of its branches, that is nested too deeply."""
    left: list[int] = []
    for element in schema:
        while left and not left[-1]:
            left.pop()
        if left:
            left[-1] -= 1
        left.append(element.get(_CHILDREN, 0))
        if len(left) > _MOST_DEEP:
            raise OSError(f"its columns are nested in more than {_MOST_DEEP} levels")


def _size(column: Mapping[int, Any], wanted: frozenset[bytes] | None) -> int:
    """Return the unpacked bytes of a column, 0 for one that does not count."""
    stored = column.get(_META_DATA, {})
    if wanted is not None and next(iter(stored.get(_PATH, [])), b"") not in wanted:
        return 0
    size: int = max(stored.get(_UNPACKED, 0), _VALUE_BYTES * stored.get(_VALUES, 0), 0)
    return size


def _footer(file: IO[bytes]) -> bytes:
    size = file.seek(0, 2)
    file.seek(max(size - _TAIL_BYTES, 0))
    tail = file.read()
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or length + _TAIL_BYTES > size:
        raise OSError("its footer is damaged")
    file.seek(size - _TAIL_BYTES - length)
    return file.read(length)


class _Thrift:
    """Values of compact Thrift, one after another. Those that are not wanted are passed over."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def structure(self, wanted: Mapping[int, Any]) -> dict[int, Any]:
        """Take a structure; return its wanted fields by number."""
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            value = self._value(head & 15, wanted.get(number))
            if number in wanted:
                found[number] = value
        return found

    def _value(self, kind: int, wanted: Any) -> Any:
        """Take a value. A wanted one of another kind than the format says is damage."""
        if kind in (_LIST, _SET):
            return self._items(wanted)
        if isinstance(wanted, Mapping) != (kind == _STRUCT) and wanted is not None:
            raise IndexError
        if kind == _STRUCT:
            return self.structure(wanted or {})
        value = self._scalar(kind)
        if wanted is not None and not isinstance(value, wanted):
            raise IndexError
        return value

    def _items(self, wanted: Any) -> list[Any]:
        head = self._byte()
        # a truth value in a list has a byte, in a structure it is the kind
        inner = _BYTE if head & 15 in (_TRUE, _FALSE) else head & 15
        items = []
        for _ in range(head >> 4 if head >> 4 < 15 else self._length()):
            item = self._value(inner, wanted)
            if wanted is not None:
                items.append(item)
        return items

    def _scalar(self, kind: int) -> bytes | int | None:
        if kind == _BINARY:
            size = self._length()
            self._at += size
            return self._data[self._at - size : self._at]
        if kind == _MAP:
            length = self._length()
            kinds = self._byte() if length else 0
            for _ in range(length):
                self._value(kinds >> 4, None)
                self._value(kinds & 15, None)
        elif kind in _FIXED:
            self._at += _FIXED[kind]
        elif kind not in (_TRUE, _FALSE):
            return self._integer()
        return None

    def _length(self) -> int:
        """Take a length, whose items have a byte each at least."""
        length = self._varint()
        if length > len(self._data) - self._at:
            raise IndexError
        return length

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        data, value = self._data, 0
        for shift in range(0, 7 * _MOST_VARINT, 7):
            byte = data[self._at]
            self._at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise IndexError


ROWS_AT_ONCE = 1 << 16
_BYTES_AT_ONCE = 64 << 20
_OF_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
_END = ARROW_STREAM + bytes(4)
_LZ4 = 0
_LZ4_RATIO = 256
_MOST_UNPACKED = 1 << 31


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
    with _opened(source) as file:
        file.seek(0)
        return bool(file.read(len(ARROW_FILE)).startswith((ARROW_FILE, ARROW_STREAM)))


def arrow_schema(source: Any) -> pl.Schema:
    """Return the columns of an Arrow file and their types, as polars has them."""
    with _opened(source) as file:
        schema, _ = _walk(file)
        return _read_batches(file, schema, (), None).schema


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
            frame = _read_batches(file, schema, messages, columns)
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
    file.seek(0)
    if file.read(len(ARROW_FILE)) == ARROW_FILE:
        footer = _footer_of_arrow(file)
        return _schema_of_footer(footer), _of_footer(file, footer)
    messages = _of_stream(file)
    schema = next(messages, None)
    if schema is None or schema.kind != _OF_SCHEMA:
        raise OSError("it has no schema")
    file.seek(0)
    return file.read(schema.head), messages


def _of_stream(file: Any) -> Iterator[_Message]:
    size, offset = file.seek(0, io.SEEK_END), 0
    while offset < size:
        message = _message(file, offset)
        if message is None:
            return
        if message.offset + message.head + message.body > size:
            raise OSError("it ends within a message")
        yield message
        offset += message.head + message.body


def _footer_of_arrow(file: Any) -> "_Table":
    size = file.seek(-(4 + len(ARROW_FILE)), io.SEEK_END)
    length, magic = struct.unpack("<i6s", file.read())
    if magic != ARROW_FILE or not 0 < length <= size:
        raise OSError("it has no footer")
    file.seek(size - length)
    return _Table.root(file.read(length))


def _schema_of_footer(footer: "_Table") -> bytes:
    """Return the schema as a message, which the file need not have: a table before the footer's."""
    names = struct.pack("<I5H2x", 16, 10, 12, 4, 6, 8)
    # the table begins at 16, the footer at 32: places count from the field that has them, at 24
    table = struct.pack("<ihBxI4x", 12, footer.number(0, "h"), _OF_SCHEMA, footer.table(1).at + 8)
    data = names + table + footer.data
    data += bytes(-len(data) % 8)
    return ARROW_STREAM + struct.pack("<i", len(data)) + data


def _of_footer(file: Any, footer: "_Table") -> Iterator[_Message]:
    """Yield the messages that the footer of a file lists: dictionaries, then batches."""
    size = file.seek(0, io.SEEK_END)
    for field, kind in ((2, _DICTIONARY), (3, _BATCH)):
        for place in footer.structs(field, 24):
            offset, head, body = struct.unpack_from("<qi4xq", footer.data, place)
            message = _message(file, offset)
            if message is None or (message.body, message.kind) != (body, kind):
                raise OSError("its footer does not fit its messages")
            if offset + head + body > size:
                raise OSError("it ends within a message")
            yield message


def _message(file: Any, offset: int) -> _Message | None:
    """Return the message at an offset; None for the end of a stream."""
    file.seek(offset)
    mark, length = struct.unpack("<4si", file.read(8))
    if mark != ARROW_STREAM or length < 0:
        raise OSError(f"no message begins at byte {offset}")
    if not length:
        return None
    data = file.read(length)
    if len(data) < length:
        raise OSError("it ends within a message")
    table = _Table.root(data)
    kind, body = table.number(1, "B"), table.number(3, "q")
    rows = table.table(2).number(0, "q") if kind == _BATCH else 0
    if body < 0 or rows < 0:
        raise OSError(f"the message at byte {offset} is damaged")
    return _Message(offset, 8 + length, body, kind, rows)


def _read_batches(
    file: Any, schema: bytes, messages: Sequence[_Message], columns: Sequence[str] | None
) -> pl.DataFrame:
    """Read batches, the last of some messages."""
    if columns is not None and not columns:
        return pl.DataFrame(height=sum(message.rows for message in messages))
    stream = io.BytesIO()
    stream.write(schema)
    for message in messages:
        file.seek(message.offset)
        data = file.read(message.head + message.body)
        _check_unpacked(data, message)
        stream.write(data)
    stream.write(_END)
    stream.seek(0)
    names = None if columns is None else [*columns]
    try:
        frame = pl.read_ipc_stream(stream, columns=names)
    except pl.exceptions.PanicException as error:
        raise OSError("it is damaged, or polars lacks the type of a column") from error
    return frame if names is None else frame.select(names)


def _check_unpacked(data: bytes, message: _Message) -> None:
    """Refuse packed buffers of an impossible size, for which polars would take memory at once."""
    batch = _Table.root(data[8 : message.head]).table(2)
    if message.kind == _DICTIONARY:
        batch = batch.table(1)
    if not batch.place(3):
        return
    codec = batch.table(3)
    for place in batch.structs(2, 16):
        offset, length = struct.unpack_from("<qq", batch.data, place)
        packed = data[message.head + offset :][:length]
        if len(packed) <= 8:
            continue
        size = int.from_bytes(packed[:8], "little", signed=True)
        if size > _most_unpacked(codec.number(0, "b"), packed[8:]):
            raise OSError("a packed buffer is damaged")


def _most_unpacked(codec: int, packed: bytes) -> int:
    if codec == _LZ4:
        return _LZ4_RATIO * len(packed)
    import zstandard

    try:
        size = zstandard.frame_content_size(packed)
    except zstandard.ZstdError as error:
        raise OSError("a packed buffer is damaged") from error
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

    def table(self, field: int) -> "_Table":
        """Return a table inside this."""
        place = self.place(field)
        if not place:
            raise OSError("a message is damaged")
        return _Table(self.data, place + struct.unpack_from("<I", self.data, place)[0])

    def structs(self, field: int, size: int) -> range:
        """Return where the structures of a list stand, each of so many bytes."""
        place = self.place(field)
        if not place:
            return range(0)
        first = place + struct.unpack_from("<I", self.data, place)[0]
        count = struct.unpack_from("<I", self.data, first)[0]
        if first + 4 + count * size > len(self.data):
            raise OSError("a message is damaged")
        return range(first + 4, first + 4 + count * size, size)
