"""String columns as flat buffers: UTF-8 bytes and offsets, copied only where Arrow demands it."""

import ctypes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastscore_jit.addressed_texts import locate_rows
from fastscore_jit.arrays import Mask
from fastscore_jit.memory import Views
from fastscore_jit.validation import read_only


@dataclass(frozen=True, slots=True)
class StringColumn:
    """A column of strings without nulls.

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


def string_column(name: str, strings: Any) -> StringColumn:
    """Read a column of strings.

    Parameters
    ----------
    name
        The argument's name, for messages.
    strings
        A pyarrow array or chunked array, anything that exports the Arrow PyCapsule interface (a
        polars Series), or a sequence of ``str``. Types string, large_string, string_view and
        dictionaries of them.

    Raises
    ------
    TypeError
        The values are not strings.
    ValueError
        A value is null.
    """
    import pyarrow as pa

    if isinstance(strings, StringColumn):
        return strings
    array = _checked_strings(name, strings)
    if not pa.types.is_large_string(array.type):
        array = array.cast(pa.large_string())
    return _from_large_string(array)


@dataclass(frozen=True, slots=True)
class AddressedStrings:
    """A column of strings without nulls, its bytes left where Arrow has them.

    Attributes
    ----------
    array
        The Arrow array that owns the memory: alive as long as the addresses are used.
    buffers
        The buffers that hold the bytes, int64 (buffers,) each.
    offsets : int64 (rows + 1,)
        Where each row begins in the only buffer; empty for a column of views.
    string_views : uint8 (16 * rows,)
        Arrow's views of the rows; empty for a column of offsets.
    """

    array: Any
    buffers: Views
    offsets: npt.NDArray[np.int64]
    string_views: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.array)


def addressed_strings(name: str, strings: Any, *, nulls: bool = False) -> AddressedStrings:
    """Read a column of strings as `string_column` does, copying nothing of a string view.

    Nulls are an error unless ``nulls``; their rows are then unspecified.
    """
    import pyarrow as pa

    array = _checked_strings(name, strings, nulls=nulls)
    if len(array) and pa.types.is_string_view(array.type):
        _, views, *data = array.buffers()
        own = np.frombuffer(views, np.uint8, 16 * len(array), 16 * array.offset)
        buffers = _views([(buffer.address, buffer.size) for buffer in data])
        return AddressedStrings(array, buffers, read_only(np.zeros(0, np.int64)), read_only(own))
    if not pa.types.is_large_string(array.type):
        array = array.cast(pa.large_string())
    column = _from_large_string(array)
    size = column.data.size
    buffers = _views([(column.data.ctypes.data if size else 0, size)])
    return AddressedStrings(array, buffers, column.offsets, read_only(np.zeros(0, np.uint8)))


def _views(places: Sequence[tuple[int, int]]) -> Views:
    """Return the views of some buffers, by address and size."""
    addresses, lengths = np.array(places, np.int64).reshape(-1, 2).T.copy()
    return Views(read_only(addresses), read_only(lengths))


@dataclass(frozen=True, slots=True)
class TextRows:
    """The rows of a column of strings, one by one.

    Attributes
    ----------
    owner
        What owns the memory: alive as long as the addresses are used.
    addresses : int64 (rows,)
        Where each row's UTF-8 begins; anything for a null.
    lengths : int64 (rows,)
        Its bytes; -1 for a null.
    """

    owner: Any
    addresses: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def views(self) -> Views:
        """The rows as kernels take them: good as long as these are kept, which own the memory."""
        return Views(read_only(self.addresses), read_only(self.lengths))

    def take(self, rows: npt.NDArray[np.int64]) -> "TextRows":
        """Return some rows; a negative one is null."""
        if not len(self):
            return TextRows(self.owner, np.zeros(rows.size, np.int64), np.full(rows.size, -1))
        lengths = np.where(rows >= 0, self.lengths[rows], -1)
        return TextRows(self.owner, self.addresses[rows], lengths)

    def to_list(self) -> list[str | None]:
        """Copy the rows out, for a few of them."""
        places = zip(self.addresses.tolist(), self.lengths.tolist(), strict=True)
        return [
            None if length < 0 else ctypes.string_at(address, length).decode()
            for address, length in places
        ]


def join_rows(parts: Sequence[TextRows]) -> TextRows:
    """Return rows one part after another."""
    addresses = np.concatenate([part.addresses for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    return TextRows([part.owner for part in parts], addresses, lengths)


def text_rows(name: str, strings: Any, *, nulls: bool = False) -> TextRows:
    """Read the rows of a column of strings, which may have nulls if ``nulls``; or take them.

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
    addresses, lengths = locate_rows(column, 0, len(column))
    if nulls and column.array.null_count:
        lengths[_nulls(column.array)] = -1
    return TextRows(column.array, addresses, lengths)


def _nulls(array: Any) -> Mask:
    """Return which values are null; pyarrow's way imports pandas where that is installed."""
    valid = np.frombuffer(array.buffers()[0], np.uint8)
    bits = np.unpackbits(valid, count=array.offset + len(array), bitorder="little")
    return np.equal(bits[array.offset :], 0)


def _checked_strings(name: str, strings: Any, *, nulls: bool = False) -> Any:
    """Return an Arrow array of strings of any layout, without nulls unless ``nulls``."""
    import pyarrow as pa

    array = _arrow_array(name, strings)
    if pa.types.is_dictionary(array.type):
        values = array.dictionary
        if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
            values = values.cast(pa.large_string())
        array = values.take(array.indices)
    if pa.types.is_null(array.type):
        array = array.cast(pa.large_string())
    if not (
        pa.types.is_string(array.type)
        or pa.types.is_large_string(array.type)
        or pa.types.is_string_view(array.type)
    ):
        raise TypeError(f"`{name}` has Arrow type {array.type}; expected strings")
    if array.null_count and not nulls:
        at = array.is_null().index(True).as_py()
        raise ValueError(
            f"`{name}` holds {array.null_count} null(s), the first at position {at}; expected "
            "none: leave those rows out or fill them first"
        )
    return array


def _arrow_array(name: str, strings: Any) -> Any:
    import pyarrow as pa

    if isinstance(strings, pa.Array):
        return strings
    if isinstance(strings, pa.ChunkedArray):
        chunked = strings
    elif hasattr(strings, "__arrow_c_stream__"):
        chunked = pa.chunked_array(strings)
    elif hasattr(strings, "__arrow_c_array__"):
        return pa.array(strings)
    else:
        try:
            return _of_texts(strings)
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"`{name}` is {type(strings).__name__} of values that are not all strings "
                f"({error}); expected a pyarrow array, a polars Series or a sequence of str"
            ) from None
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def _of_texts(texts: Iterable[str | None]) -> Any:
    """Return an Arrow array; `pyarrow.array` imports pandas where that is installed."""
    import pyarrow as pa

    if isinstance(texts, str):
        raise TypeError("one text")
    encoded = [None if text is None else text.encode() for text in texts]
    sizes = [0 if text is None else len(text) for text in encoded]
    present = np.array([text is not None for text in encoded], np.bool_)
    valid = np.packbits(present, bitorder="little")
    offsets = np.cumsum([0, *sizes], dtype=np.int64)
    data = b"".join(text for text in encoded if text is not None)
    buffers = [pa.py_buffer(each) for each in (valid, offsets, data)]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def _from_large_string(array: Any) -> StringColumn:
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0:
        return StringColumn(read_only(np.zeros(0, np.uint8)), read_only(np.zeros(1, np.int64)))
    offsets = np.frombuffer(
        offset_buffer, dtype=np.int64, count=len(array) + 1, offset=array.offset * 8
    )
    if data_buffer is None or data_buffer.size == 0:
        data = np.zeros(0, np.uint8)
    else:
        data = np.frombuffer(data_buffer, dtype=np.uint8)
    return StringColumn(read_only(data), read_only(offsets))
