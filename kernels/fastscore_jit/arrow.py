"""String columns as flat buffers: UTF-8 bytes and offsets, copied only if Arrow requires it."""

import ctypes
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_jit.addressed_texts import gather_rows, locate_rows
from fastscore_jit.arrays import Mask
from fastscore_jit.arrow_memory import arrow_array, arrow_column, present_rows, viewed_strings
from fastscore_jit.memory import Views
from fastscore_jit.validation import read_only

_VIEW_BYTES, _WORD_BYTES = 16, 8
_NO_OFFSETS, _NO_VIEWS = read_only(np.zeros(0, np.int64)), read_only(np.zeros(0, np.uint8))


@dataclass(frozen=True, slots=True)
class StringColumn:
    """A column of strings without nulls, which polars and other Arrow libraries accept.

    Attributes
    ----------
    data : uint8 (bytes,)
        UTF-8 of all rows, read-only.
    offsets : int64 (rows + 1,)
        Row ``i`` is ``data[offsets[i]:offsets[i + 1]]``; read-only.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]

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
    """Read a column of strings.

    Parameters
    ----------
    name
        The argument's name, for messages.
    strings
        Anything that exports the Arrow PyCapsule interface (a polars Series, an array of pyarrow),
        or a sequence of ``str``. Types string, large_string, string_view and dictionaries of them.

    Raises
    ------
    TypeError
        The values are not strings.
    ValueError
        A value is null.
    """
    if isinstance(strings, StringColumn):
        return strings
    column = addressed_strings(name, strings)
    if isinstance(column.owner, StringColumn):
        return column.owner
    rows = column.rows(0, len(column))
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(rows.lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]) + _WORD_BYTES, np.uint8)
    gather_rows(Views(read_only(rows.addresses), read_only(rows.lengths)), read_only(offsets), data)
    return StringColumn(read_only(data[:-_WORD_BYTES]), read_only(offsets))


@dataclass(frozen=True, slots=True)
class AddressedStrings:
    """A column of strings whose bytes stay in Arrow's memory.

    Attributes
    ----------
    owner
        The owner of the memory. Keep it while the addresses are used.
    buffers
        The buffers with the bytes, int64 (buffers,) each.
    offsets : int64 (rows + 1,)
        Where each row begins in the only buffer; empty for a column of views.
    string_views : uint8 (16 * rows,)
        Arrow's views of the rows; empty for a column of offsets.
    present : bool (rows,) or None
        Which rows are not null; None for all.
    """

    owner: Any
    buffers: Views
    offsets: npt.NDArray[np.int64]
    string_views: npt.NDArray[np.uint8]
    present: Mask | None

    def __len__(self) -> int:
        return self.string_views.size // _VIEW_BYTES or max(self.offsets.size - 1, 0)

    def rows(self, start: int, stop: int) -> Views:
        """Return the bytes of each row from ``start`` to ``stop``."""
        return locate_rows(self.buffers, self.offsets, self.string_views, start, stop)

    def to_list(self) -> list[str]:
        """Copy the rows to a list, from a column without nulls."""
        rows = TextRows(self.owner, *self.rows(0, len(self))).to_list()
        return [row or "" for row in rows]


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
    """The rows of a column of strings, one by one.

    Attributes
    ----------
    owner
        The owner of the memory. Keep it while the addresses are used.
    addresses : int64 (rows,)
        Where each row's UTF-8 begins; undefined for a null.
    lengths : int64 (rows,)
        Its size in bytes; -1 for a null.
    """

    owner: Any
    addresses: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def views(self) -> Views:
        """The rows as kernels take them, valid while this object exists."""
        return Views(read_only(self.addresses), read_only(self.lengths))

    def take(self, rows: npt.NDArray[np.int64]) -> "TextRows":
        """Return some rows; a negative row number gives null."""
        if not len(self):
            return TextRows(self.owner, np.zeros(rows.size, np.int64), np.full(rows.size, -1))
        lengths = np.where(rows >= 0, self.lengths[rows], -1)
        return TextRows(self.owner, self.addresses[rows], lengths)

    def to_list(self) -> list[str | None]:
        """Copy the rows to a list. Slow: for few rows."""
        places = zip(self.addresses.tolist(), self.lengths.tolist(), strict=True)
        return [
            None if length < 0 else ctypes.string_at(address, length).decode()
            for address, length in places
        ]


def join_rows(parts: Sequence[TextRows]) -> TextRows:
    """Concatenate rows."""
    addresses = np.concatenate([part.addresses for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    return TextRows([part.owner for part in parts], addresses, lengths)


def text_rows(name: str, strings: Any, *, nulls: bool = False) -> TextRows:
    """Return the rows of a column of strings, or ``strings`` itself if it is rows already.

    Nulls are an error unless ``nulls`` is set.

    Raises
    ------
    TypeError, ValueError
        As `string_column` raises them.
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
