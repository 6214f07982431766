"""Arrow columns without copies: read from other libraries, or made of buffers."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import nanoarrow
import numpy as np
import numpy.typing as npt

from fastscore_jit.arrays import Indices, Mask, UInt8Array

_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_NAME = b"arrow_array"
_NULLS, _BUFFERS, _PLACES = 1, 3, 5
"""Fields of an array's structure: the numbers of nulls and buffers, and the buffers' addresses."""


def arrow_array(column: Any) -> Any:
    """Return a column of another library as nanoarrow's array; None if it has several chunks.

    Parameters
    ----------
    column
        Anything that exports the Arrow PyCapsule interface.
    """
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
    """An array of string views.

    Attributes
    ----------
    array
        nanoarrow's array, which owns the memory.
    views : int32 (rows, 4)
        Arrow's views of the rows.
    present : bool (rows,) or None
        Which rows are not null; None for all.
    addresses, sizes : int64 (buffers,)
        The buffers that the views name.
    """

    array: Any
    views: npt.NDArray[np.int32]
    present: Mask | None
    addresses: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

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

    Attributes
    ----------
    array
        nanoarrow's array.
    """

    array: Any

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """Return the capsules."""
        return self.array.schema.__arrow_c_schema__(), _capsule(self.array._addr(), _NAME, None)


@cache
def _schema(kind: str) -> Any:
    return nanoarrow.c_schema(getattr(nanoarrow, kind)())


def arrow_column(kind: str, length: int, buffers: Sequence[Any]) -> ArrowColumn:
    """Return a column of some buffers, the bits of validity first.

    Parameters
    ----------
    kind
        The type, by its name in nanoarrow: ``"int64"``.
    length
        The number of rows.
    buffers
        Arrays, and None for a buffer that is not needed.
    """
    schema = _schema(kind)
    array = nanoarrow.c_array_from_buffers(schema, length, buffers, validation_level="none")
    return ArrowColumn(array)


def list_column(items: Any, offsets: Indices) -> ArrowColumn:
    """Return a column of the lists between offsets.

    Parameters
    ----------
    items
        nanoarrow's array of all items, which is consumed.
    offsets : int64 (lists + 1,)
        Where each list begins.
    """
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
    """Return a column of string views.

    Parameters
    ----------
    present : bool (rows,) or None
        Which rows are not null; None for all.
    views : int32 (rows, 4)
        Arrow's views of the rows.
    data
        The buffers that the views name.
    """
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
