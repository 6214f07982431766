"""Files of stored columns, read in batches of rows: Parquet; Arrow (Feather among it) as Parquet.

polars reads what the files contain. Footers of Parquet are walked here, so that neither a damaged
file nor a large one takes memory for what it claims to hold.
"""

import itertools
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import polars as pl

from fastscore.errors import InputError
from fastscore.files import committed, explain, hash_bytes
from fastscore.logs.inputs.files import ARROW_FILE, ARROW_STREAM
from fastscore.logs.inputs.frames import storable
from fastscore.logs.integrity.file_state import FileRange
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES
from fastscore.logs.integrity.rejects import UNREADABLE_PARQUET, Reject, reason_of
from fastscore.logs.read.columns import check_stored, convert_stored
from fastscore.settings.extras import load
from fastscore.suites.declarations import Column

MOST_ROWS = 1 << 18
_READ_BYTES = 64 << 20
_DECODED = 2
"""Memory of rows while they are read: unpacked, and as columns."""


def parquet_rows(path: str, name: str) -> int:
    """Count the rows of the file at ``path``, called ``name`` in errors."""
    with _faults_named(name):
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
        group_sizes(file_range.path, ())  # checks the footer
        schema = pl.scan_parquet(file_range.path, glob=False).collect_schema()
    return check_stored(file_range.file, schema, columns, _ADVICE)


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


_ROWS_TOGETHER = 1 << 16
_PURPOSE = "Reading Arrow files"
_ADVICE = "Write the file again with that type."


def is_arrow(source: Any) -> bool:
    """Tell whether a path, or an open file, holds Arrow's format of files or of streams."""
    with _opened(source) as file:
        file.seek(0)
        return bool(file.read(len(ARROW_FILE)).startswith((ARROW_FILE, ARROW_STREAM)))


def arrow_frames(source: Any) -> Iterator[pl.DataFrame]:
    """Yield the rows of an Arrow file or stream, one frame at least."""
    pyarrow: Any = load("pyarrow", _PURPOSE)
    ipc: Any = load("pyarrow.ipc", _PURPOSE)
    waiting: list[Any] = []
    n_rows = n_bytes = 0  # of those that wait
    with _opened(source) as file:
        file.seek(0)
        is_file = file.read(len(ARROW_FILE)) == ARROW_FILE
        file.seek(0)
        try:
            reader = ipc.open_file(file) if is_file else ipc.open_stream(file)
            numbers = range(reader.num_record_batches) if is_file else ()
            for batch in map(reader.get_batch, numbers) if is_file else reader:
                batch.validate(full=True)
                waiting.append(batch)
                n_rows, n_bytes = n_rows + len(batch), n_bytes + batch.nbytes
                if n_rows >= _ROWS_TOGETHER or n_bytes >= _READ_BYTES:
                    yield pl.DataFrame(pyarrow.Table.from_batches(waiting))
                    waiting, n_rows, n_bytes = [], 0, 0
            yield pl.DataFrame(pyarrow.Table.from_batches(waiting, reader.schema))
        except pyarrow.ArrowException as error:
            raise OSError(f"its Arrow data are damaged ({error})") from error


def arrow_as_parquet(path: str, name: str, columns: Sequence[Column], folder: Path) -> str:
    """Write the wanted columns of the Arrow file at ``path`` as Parquet; return that file's path.

    A batch of a stream has no place of its own, so no shard could begin at it.
    """
    frames = _named(arrow_frames(path), name)
    first = next(frames)
    names = check_stored(name, first.schema, columns, _ADVICE)
    parquet: Any = load("pyarrow.parquet", _PURPOSE)
    written = folder / f"{hash_bytes(path.encode())}.parquet"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with committed(written) as file, ExitStack() as opened:
            writer = None
            for frame in itertools.chain([first], frames):
                table = storable(frame, names).to_arrow(compat_level=pl.CompatLevel.oldest())
                writer = writer or opened.enter_context(parquet.ParquetWriter(file, table.schema))
                writer.write_table(table)
    except OSError as error:
        raise explain(written, error) from error
    return str(written)


def _named(frames: Iterator[pl.DataFrame], name: str) -> Iterator[pl.DataFrame]:
    with _faults_named(name):
        yield from frames


@contextmanager
def _opened(source: Any) -> Iterator[Any]:
    # not mapped: a file that shrinks meanwhile would end the process
    if isinstance(source, str):
        with open(source, "rb") as file:
            yield file
    else:
        yield source
