"""Arrow columns without copies: made of buffers, or read from other libraries as rows of texts."""

import ctypes
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import nanoarrow
import numpy as np
import numpy.typing as npt

from fastscore_jit.arrays import Indices, Int64Array, Mask, UInt8Array
from fastscore_jit.compiling import kernel
from fastscore_jit.memory import (
    View,
    Views,
    address_of,
    load_int32,
    load_short,
    load_word,
    store_word,
)
from fastscore_jit.validation import read_only

_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_NAME = b"arrow_array"
_NULLS, _BUFFERS, _PLACES = 1, 3, 5
"""Fields of an array's structure: the numbers of nulls and buffers, and the buffers' addresses."""


def arrow_array(column: Any) -> Any:
    """Return a column that exports Arrow's capsules as nanoarrow's array; None for many chunks."""
    if not hasattr(column, "__arrow_c_stream__"):
        return nanoarrow.c_array(column)
    chunks = iter(nanoarrow.c_array_stream(column))
    first = next(chunks, None)
    return first if next(chunks, None) is None else None


def present_rows(array: Any) -> Mask | None:
    """Return which values of an array are not null; None for all."""
    if not array.length or not array.buffers[0] or not array.null_count:
        return None
    bits, end = np.frombuffer(array.view().buffer(0), np.uint8), array.offset + array.length
    present = np.unpackbits(bits, count=end, bitorder="little")[array.offset :].view(np.bool_)
    return None if present.all() else present


@dataclass(frozen=True, slots=True)
class ViewedStrings:
    """An array of string views."""

    array: Any  # nanoarrow's, which owns the memory
    views: npt.NDArray[np.int32]  # Arrow's views of the rows (rows, 4)
    present: Mask | None  # which rows are not null; None for all
    addresses: Int64Array  # of the buffers that the views name
    sizes: Int64Array

    def buffer(self, number: int) -> UInt8Array:
        """Return one of the buffers."""
        return np.frombuffer(self.array.view().buffer(2 + number), np.uint8)


def viewed_strings(array: Any) -> ViewedStrings:
    """Return the buffers of an array of string views."""
    view = array.view()
    views = np.frombuffer(view.buffer(1), np.int32).reshape(-1, 4)[array.offset :][: array.length]
    sizes = np.frombuffer(view.buffer(view.n_buffers - 1), np.int64)
    addresses = np.array(array.buffers[2:-1], np.int64)
    return ViewedStrings(array, views, present_rows(array), addresses, sizes)


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """A column made of buffers. One consumer must import it while this object exists.

    nanoarrow 0.9 exports copies of an array's structure with wrong buffers of views. So the
    structure itself is exported. nanoarrow releases it, in whichever thread the last reference
    ends.
    """

    array: Any  # nanoarrow's

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """Return the capsules."""
        return self.array.schema.__arrow_c_schema__(), _capsule(self.array._addr(), _NAME, None)


@cache
def _schema(kind: str) -> Any:
    return nanoarrow.c_schema(getattr(nanoarrow, kind)())


def arrow_column(kind: str, length: int, buffers: Sequence[Any]) -> ArrowColumn:
    """Return a column of a type of nanoarrow (``"int64"``) and its buffers, validity first.

    None is a buffer that is not needed.
    """
    schema = _schema(kind)
    array = nanoarrow.c_array_from_buffers(schema, length, buffers, validation_level="none")
    return ArrowColumn(array)


def list_column(items: Any, offsets: Indices) -> ArrowColumn:
    """Return a column of the lists of items between offsets; nanoarrow's items are consumed."""
    edges = np.ascontiguousarray(offsets, np.int64)
    array = nanoarrow.c_array_from_buffers(
        nanoarrow.large_list(items.schema),
        len(edges) - 1,
        [None, edges],
        children=[items],
        validation_level="none",
        move=True,
    )
    return ArrowColumn(array)


class _MemoryOwner(np.ndarray[Any, Any]):
    """Memory that keeps other memory alive."""

    kept: Any = None


def view_column(present: Mask | None, views: Any, data: Sequence[UInt8Array]) -> ArrowColumn:
    """Return a column of string views (rows, 4) of some buffers; ``present`` is None for all."""
    bits = None if present is None else np.packbits(present, bitorder="little")
    used = (views, *data)
    places = np.array(
        [0, *(each.ctypes.data for each in used), 0, *(each.nbytes for each in data)], np.int64
    ).view(_MemoryOwner)
    places.kept = (bits, used)
    places[0] = 0 if bits is None else bits.ctypes.data
    places[len(used) + 1] = places[len(used) + 2 :].ctypes.data
    column = arrow_column("string_view", len(views), [None, places])
    # nanoarrow takes at most one buffer of texts: it owns the addresses, these own the buffers
    fields = (ctypes.c_int64 * 6).from_address(column.array._addr())
    fields[_BUFFERS], fields[_PLACES] = len(used) + 2, places.ctypes.data
    fields[_NULLS] = 0 if bits is None else -1
    return column


# Strings

_VIEW_BYTES, _INLINE_BYTES, _WORD_BYTES = 16, 12, 8
_NO_OFFSETS, _NO_VIEWS = read_only(np.zeros(0, np.int64)), read_only(np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class StringColumn:
    """A column of strings without nulls, which polars and other Arrow libraries accept.

    Row ``i`` is ``data[offsets[i]:offsets[i + 1]]`` in UTF-8; both arrays are read-only.
    """

    data: UInt8Array
    offsets: Int64Array

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """Return the column as Arrow's capsules; nothing is copied."""
        column = arrow_column("large_string", len(self), [None, self.offsets, self.data])
        return column.array.__arrow_c_array__(requested_schema)

    def to_list(self) -> list[str]:
        """Copy the rows to a list."""
        text = self.data.tobytes()
        edges = self.offsets.tolist()
        return [text[start:end].decode() for start, end in itertools.pairwise(edges)]


def string_column(name: str, strings: Any) -> StringColumn:
    """Read a column of strings without nulls; messages call it ``name``.

    It is anything that exports the Arrow PyCapsule interface (a polars Series, an array of
    pyarrow), or a sequence of ``str``. Types string, large_string, string_view and dictionaries of
    them.
    """
    if isinstance(strings, StringColumn):
        return strings
    column = addressed_strings(name, strings)
    if isinstance(column.owner, StringColumn):
        return column.owner
    return copied_texts(*column.rows(0, len(column)))


def texts_in_place(column: Any) -> tuple[UInt8Array, Indices, Indices] | None:
    """Return the buffer of a column of string views, and where each text begins and ends in it.

    None if texts are in several buffers, or short enough to be in their views. Nulls are empty.
    """
    array = arrow_array(column)
    if array is None or array.schema.format != "vu" or not array.length:
        return None
    viewed = viewed_strings(array)
    length, buffer, start = viewed.views[:, [0, 2, 3]].T.astype(np.int64)
    if viewed.present is not None:
        length[~viewed.present] = 0
    has_text = length > 0
    buffers = np.unique(buffer[has_text])
    if (length[has_text] <= _INLINE_BYTES).any() or buffers.size != 1:
        return None
    start[~has_text] = 0
    return read_only(viewed.buffer(int(buffers[0]))), start, start + length


def copied_texts(addresses: Int64Array, lengths: Int64Array) -> StringColumn:
    """Copy texts to one buffer, from where the UTF-8 of each begins, of a size in bytes.

    The caller keeps the memory alive.
    """
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]) + _WORD_BYTES, np.uint8)
    _gather_rows(Views(read_only(addresses), read_only(lengths)), read_only(offsets), data)
    return StringColumn(read_only(data[:-_WORD_BYTES]), read_only(offsets))


@dataclass(frozen=True, slots=True)
class AddressedStrings:
    """A column of strings whose bytes stay in Arrow's memory."""

    owner: Any  # of the memory: keep it while the addresses are used
    buffers: Views
    offsets: Int64Array  # where each row begins in the only buffer; empty for a column of views
    string_views: UInt8Array  # Arrow's (16 * rows,); empty for a column of offsets
    present: Mask | None  # which rows are not null; None for all

    def __len__(self) -> int:
        return self.string_views.size // _VIEW_BYTES or max(self.offsets.size - 1, 0)

    def rows(self, start: int, stop: int) -> Views:
        """Return the bytes of each row from ``start`` to ``stop``."""
        rows = Views(np.empty(stop - start, np.int64), np.empty(stop - start, np.int64))
        if self.string_views.size:
            _rows_of_views(self.buffers.addresses, self.string_views, start, rows)
        else:
            _rows_of_offsets(self.buffers, self.offsets, start, rows)
        return rows


def addressed_strings(name: str, strings: Any, *, nulls: bool = False) -> AddressedStrings:
    """Read a column of strings as `string_column` does, without copying string views.

    Nulls are an error unless ``nulls`` is set. The contents of null rows are then undefined.
    """
    if isinstance(strings, StringColumn):
        return _of_offsets(strings, None)
    if not hasattr(strings, "__arrow_c_stream__") and not hasattr(strings, "__arrow_c_array__"):
        try:
            column, present = _of_texts(strings)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"`{name}` is {type(strings).__name__} of values that are not all strings "
                f"({error}); expected a pyarrow array, a polars Series or a sequence of str"
            ) from None
        return _without_nulls(name, _of_offsets(column, present), nulls=nulls)
    array = arrow_array(strings)
    if array is None or array.schema.format not in ("vu", "U", "u"):
        array = arrow_array(_by_polars(name, strings))
    if array.schema.format != "vu" or not array.length:
        found = _of_offsets(_of_array(array), present_rows(array))
        return _without_nulls(name, found, nulls=nulls)
    viewed = viewed_strings(array)
    buffers = Views(read_only(viewed.addresses), read_only(viewed.sizes))
    own = read_only(viewed.views.view(np.uint8).reshape(-1))
    found = AddressedStrings(array, buffers, _NO_OFFSETS, own, viewed.present)
    return _without_nulls(name, found, nulls=nulls)


def _without_nulls(name: str, column: AddressedStrings, *, nulls: bool) -> AddressedStrings:
    """Return the column; refuse nulls unless ``nulls``."""
    if column.present is not None and not nulls:
        rows = np.flatnonzero(~column.present)
        raise ValueError(
            f"`{name}` holds {rows.size} null(s), the first at position {rows[0]}; expected "
            "none: leave those rows out or fill them first"
        )
    return column


def _of_offsets(column: StringColumn, present: Mask | None) -> AddressedStrings:
    """Return the rows of a column with offsets."""
    size = column.data.size
    places = np.array([[column.data.ctypes.data if size else 0], [size]], np.int64)
    buffers = Views(read_only(places[0]), read_only(places[1]))
    return AddressedStrings(column, buffers, column.offsets, _NO_VIEWS, present)


def _of_array(array: Any) -> StringColumn:
    """Return the buffers of an Arrow array of strings with offsets."""
    if not array.length:
        return StringColumn(read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64)))
    view = array.view()
    kind = np.int64 if array.schema.format == "U" else np.int32
    offsets = np.frombuffer(view.buffer(1), kind)[array.offset :][: array.length + 1]
    data = np.frombuffer(view.buffer(2), np.uint8)
    return StringColumn(read_only(data), read_only(offsets.astype(np.int64, copy=False)))


def _by_polars(name: str, strings: Any) -> Any:
    """Convert strings of other types, or in several chunks, by polars."""
    import polars as pl

    series = pl.Series(strings)
    if series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Null):
        raise TypeError(f"`{name}` has type {series.dtype}; expected strings")
    return series.cast(pl.String).rechunk()


@dataclass(frozen=True, slots=True)
class TextRows:
    """The rows of a column of strings, one by one."""

    owner: Any  # of the memory: keep it while the addresses are used
    addresses: Int64Array  # where each row's UTF-8 begins; undefined for a null
    lengths: Int64Array  # its size in bytes; -1 for a null

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def views(self) -> Views:
        """The rows as kernels take them, valid while this object exists."""
        return Views(read_only(self.addresses), read_only(self.lengths))

    def to_list(self) -> list[str | None]:
        """Copy the rows to a list. Slow: for few rows."""
        places = zip(self.addresses.tolist(), self.lengths.tolist(), strict=True)
        return [
            None if length < 0 else ctypes.string_at(address, length).decode()
            for address, length in places
        ]


def text_rows(name: str, strings: Any, *, nulls: bool = False) -> TextRows:
    """Return the rows of a column of strings, or ``strings`` itself if it is rows already.

    Nulls are an error unless ``nulls`` is set.
    """
    if isinstance(strings, TextRows):
        if not nulls and (strings.lengths < 0).any():
            raise ValueError(f"`{name}` holds nulls; expected none: leave those rows out")
        return strings
    column = addressed_strings(name, strings, nulls=nulls)
    addresses, lengths = column.rows(0, len(column))
    if column.present is not None:
        lengths[~column.present] = -1
    return TextRows(column.owner, addresses, lengths)


def _of_texts(texts: Iterable[str | None]) -> tuple[StringColumn, Mask | None]:
    """Return texts as a column, and which are not None; None if all are."""
    if isinstance(texts, str):
        raise TypeError("one text")
    encoded = [None if text is None else text.encode() for text in texts]
    present = np.array([text is not None for text in encoded], np.bool_)
    sizes = [0 if text is None else len(text) for text in encoded]
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    data = np.frombuffer(b"".join(text for text in encoded if text is not None), np.uint8)
    column = StringColumn(read_only(data), read_only(offsets))
    return column, None if present.all() else present


@kernel("Views(int64[:], int64[:]), int64[:], out(uint8[:])", fastmath=False)
def _gather_rows(rows, offsets, out):  # type: ignore[no-untyped-def]
    """Copy the bytes of each row to its offset, in order; eight bytes more may be written."""
    addresses, lengths = rows
    for row in range(addresses.size):
        text, begin, at = View(addresses[row], lengths[row]), offsets[row], np.int64(0)
        while at + 8 <= lengths[row]:
            store_word(out, begin + at, load_word(text, at))
            at += 8
        if at < lengths[row]:
            store_word(out, begin + at, load_short(text, int(at), int(lengths[row] - at)))


@kernel(
    "Views(int64[:], int64[:]), int64[:], int64, Views(out(int64[:]), out(int64[:]))",
    fastmath=False,
)
def _rows_of_offsets(buffers, offsets, start, rows):  # type: ignore[no-untyped-def]
    """Write the byte ranges of rows from ``start`` of a column with offsets."""
    data = View(buffers.addresses[0], buffers.lengths[0])
    addresses, lengths = rows
    for row in range(addresses.size):
        first = offsets[start + row]
        lengths[row] = offsets[start + row + 1] - first
        addresses[row] = address_of(data, first, lengths[row])


@kernel("int64[:], uint8[:], int64, Views(out(int64[:]), out(int64[:]))", fastmath=False)
def _rows_of_views(starts, views, start, rows):  # type: ignore[no-untyped-def]
    """Write the byte ranges of rows from ``start`` of a column of string views.

    Only the buffer number of a view that is not null is validated.
    """
    addresses, lengths = rows
    for row in range(addresses.size):
        at = _VIEW_BYTES * (start + row)
        length = load_int32(views, at)
        lengths[row] = length
        addresses[row] = address_of(views, at + 4, 0)
        buffer = load_int32(views, at + 8)
        # the view of a null may refer to a buffer or a position that does not exist
        if length > _INLINE_BYTES and 0 <= buffer < starts.size:
            addresses[row] = starts[buffer] + load_int32(views, at + 12)
