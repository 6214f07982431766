"""Declared types of kernels, and the words by which their values are passed to compiled code.

A signature is a list of types. ``int64`` or another numpy type is a scalar. ``uint8[:]`` or
``int64[:, :]`` is a C-contiguous array that is read, ``out(uint8[:])`` an array that is written.
``(uint8[:], int64)`` is a tuple, ``Index(uint32[:], out(int64[:]))`` a NamedTuple. Other names are
looked up in the module that declares the kernel: such a class, or the dtype of a structured array.
"""

import ast
import ctypes
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

_SCALARS = frozenset(
    (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    )
)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A C-contiguous array: its dtype, its number of dimensions, and whether it is written."""

    dtype: np.dtype[Any]
    dimensions: int
    written: bool

    def __str__(self) -> str:
        shown = f"{self.dtype}[{', '.join(':' * self.dimensions)}]"
        return f"out({shown})" if self.written else shown


@dataclass(frozen=True, slots=True)
class NamedTupleType:
    """A NamedTuple: its class, and the types of its members."""

    named: type
    members: "tuple[Type, ...]"

    def __str__(self) -> str:
        return f"{self.named.__name__}({', '.join(map(str, self.members))})"


Type: TypeAlias = "np.dtype[Any] | ArrayType | NamedTupleType | tuple[Type, ...]"


def parse(text: str, names: Mapping[str, Any]) -> tuple[Type, ...]:
    """Parse a signature; ``names`` are those of the module that declares it."""
    if not text.strip():
        return ()
    tree = ast.parse(f"({text},)", mode="eval").body
    assert isinstance(tree, ast.Tuple)
    return tuple(_type(node, names, False) for node in tree.elts)


def _type(node: ast.expr, names: Mapping[str, Any], written: bool) -> Type:
    match node:
        case ast.Name(name):
            return _dtype(name, names)
        case ast.Subscript(ast.Name(name), ast.Slice()):
            return ArrayType(_dtype(name, names), 1, written)
        case ast.Subscript(ast.Name(name), ast.Tuple(slices)):
            return ArrayType(_dtype(name, names), len(slices), written)
        case ast.Tuple(nodes):
            return tuple(_type(each, names, written) for each in nodes)
        case ast.Call(ast.Name("out"), [inner]):
            return _type(inner, names, True)
        case ast.Call(ast.Name(name), nodes) if isinstance(names.get(name), type):
            return NamedTupleType(names[name], tuple(_type(each, names, written) for each in nodes))
    raise TypeError(
        f"`{ast.unparse(node)}` is no type of a kernel; expected for example int64, uint8[:], "
        "out(int64[:, :]) or a tuple of such"
    )


def _dtype(name: str, names: Mapping[str, Any]) -> np.dtype[Any]:
    if name in _SCALARS:
        return np.dtype(name)
    found = names.get(name)
    if not isinstance(found, np.dtype):
        raise TypeError(f"`{name}` is {found!r}; expected a numpy type or a numpy.dtype's name")
    return found


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

Words: TypeAlias = "list[Any]"
Writer: TypeAlias = "Callable[[Any, Words, list[Any]], None]"


def word_formats(kind: Type) -> Iterator[str]:
    """Yield the `struct` format of each eight-byte word of a value of a type.

    An array is passed by the address of numpy's ``PyArrayInterface``.
    """
    if isinstance(kind, NamedTupleType):
        kind = kind.members
    if isinstance(kind, tuple):
        for member in kind:
            yield from word_formats(member)
    elif isinstance(kind, ArrayType):
        yield "Q"
    else:
        yield {"f": "d", "u": "Q"}.get(kind.kind, "q")


def writer(kind: Type, where: str) -> Writer:
    """Return a function that appends the words of a value, after checking its type.

    Objects that must outlive the words are appended to a second list.
    """
    if isinstance(kind, NamedTupleType):
        kind = kind.members
    if isinstance(kind, tuple):
        return _tuple_writer(kind, where)
    if isinstance(kind, ArrayType):
        return _array_writer(kind, where)
    convert = float if kind.kind == "f" else int

    def write(value: Any, words: Words, held: list[Any]) -> None:
        words.append(convert(value))

    return write


def _tuple_writer(kind: tuple[Type, ...], where: str) -> Writer:
    members = [writer(member, where) for member in kind]

    def write(value: Any, words: Words, held: list[Any]) -> None:
        for member, each in zip(members, value, strict=True):
            member(each, words, held)

    return write


def _array_writer(kind: ArrayType, where: str) -> Writer:
    dtype, dimensions, written = kind.dtype, kind.dimensions, kind.written

    def write(value: Any, words: Words, held: list[Any]) -> None:
        flags = value.flags
        if (
            value.dtype != dtype
            or value.ndim != dimensions
            or not flags.c_contiguous
            or (written and not flags.writeable)
        ):
            raise TypeError(f"{where} got {_described(value)}; expected {kind}")
        described = value.__array_struct__
        held.append(described)
        words.append(_pointer(described, None))

    return write


def _described(value: Any) -> str:
    order = "" if value.flags.c_contiguous else ", not C-contiguous"
    right = "" if value.flags.writeable else ", read-only"
    return f"{value.dtype} of shape {value.shape}{order}{right}"
