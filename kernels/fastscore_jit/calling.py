"""Calls of compiled kernels by ctypes: arguments and results are passed as eight-byte words.

A shared library is loaded by the system, object code (where there was no linker) by LLVM.
"""

import ctypes
import itertools
import os
import struct
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from fastscore_jit.declaring import CHECKED, ENTRY, ArrayType, Declaration, NamedTupleType, Type
from fastscore_jit.objects import OBJECT, check_processor, opened_library
from fastscore_jit.system import c_library, read_at

_held: list[Any] = []
_loads = itertools.count(1)
_FAULT_WORDS = 3
C_FUNCTIONS = ("_get_osfhandle", "free", "malloc", "memcpy", "memset")
"""Functions of the Windows C library that kernels call."""
_free = c_library().free
_free.argtypes = (ctypes.c_void_p,)


def entry_address(code: bytes, name: str) -> int:
    """Load object code by LLVM and return a function's address; it stays loaded."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if sys.platform == "win32":  # Windows has several C libraries: kernels call Python's
        for called in C_FUNCTIONS:
            address = ctypes.cast(getattr(c_library(), called), ctypes.c_void_p).value
            llvm.add_symbol(called, address)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _held.append(engine)
    return int(engine.get_function_address(name))


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

Writer: TypeAlias = "Callable[[Any, list[Any], list[Any]], None]"


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

    def write(value: Any, words: list[Any], held: list[Any]) -> None:
        words.append(convert(value))

    return write


def _tuple_writer(kind: tuple[Type, ...], where: str) -> Writer:
    members = [writer(member, where) for member in kind]

    def write(value: Any, words: list[Any], held: list[Any]) -> None:
        for member, each in zip(members, value, strict=True):
            member(each, words, held)

    return write


def _array_writer(kind: ArrayType, where: str) -> Writer:
    dtype, dimensions, written = kind.dtype, kind.dimensions, kind.written

    def write(value: Any, words: list[Any], held: list[Any]) -> None:
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


Packer: TypeAlias = "Callable[[tuple[Any, ...]], tuple[bytes, list[Any]]]"
Loaded: TypeAlias = "tuple[Packer, Callable[[bytes], Any]]"
"""Of a kernel, what converts arguments to words, and what calls it with them.

Beside the words are the objects that must outlive the call.
"""


def load_kernel(kernel: Declaration, library: Path) -> Loaded:
    """Load a compiled kernel from its library."""
    check_processor()
    parameters, returns = kernel.types()
    writers = [
        writer(kind, f"kernel `{kernel.__name__}`, argument {place + 1},")
        for place, kind in enumerate(parameters)
    ]
    given = struct.Struct("=" + "".join("".join(word_formats(kind)) for kind in parameters))
    result_format = "=" + "".join("".join(_result_formats(kind)) for kind in returns)
    result = struct.Struct(result_format)
    size = max(result.size, 8 * _FAULT_WORDS)
    with opened_library(library) as descriptor:
        entry = entry_of(library, descriptor)

    def pack(arguments: tuple[Any, ...]) -> tuple[bytes, list[Any]]:
        words: list[Any] = []
        held: list[Any] = []
        for write, argument in zip(writers, arguments, strict=True):
            write(argument, words, held)
        return given.pack(*words), held

    def run(words: bytes) -> Any:
        out = ctypes.create_string_buffer(size)
        if entry(words, out):
            raise _failure(kernel, out)
        if not returns:
            return None
        found = iter(result.unpack_from(out))
        values = [_result(kind, found) for kind in returns]
        return values[0] if len(values) == 1 else tuple(values)

    return pack, run


def entry_of(library: Path, descriptor: int) -> Callable[[bytes, Any], int]:
    """Load an open library and return its function of words."""
    if library.suffix == OBJECT:
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_char_p)
        return kind(entry_address(_content(descriptor), ENTRY))
    entry = getattr(_load(library, descriptor), ENTRY)
    entry.argtypes, entry.restype = (ctypes.c_char_p, ctypes.c_char_p), ctypes.c_int32
    return entry  # type: ignore[no-any-return]


def _load(library: Path, descriptor: int) -> ctypes.CDLL:
    """Load the very file that is open: by its descriptor, or a copy that is then removed."""
    if sys.platform == "win32":
        return ctypes.CDLL(str(library))
    # the C library takes a name for the library that it was first loaded by
    opened = f"/proc/self/fd{'/' * next(_loads)}{descriptor}"
    if os.path.exists(opened):
        return ctypes.CDLL(opened)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / library.name
        copy.write_bytes(_content(descriptor))
        return ctypes.CDLL(str(copy))


def _content(descriptor: int) -> bytes:
    return read_at(descriptor, os.fstat(descriptor).st_size, 0)


def _result_formats(kind: Type) -> Iterator[str]:
    if isinstance(kind, ArrayType):
        yield "QQ" + "q" * kind.dimensions  # the owner, the first item, the shape
    else:
        yield from word_formats(kind)


def _result(kind: Type, words: Iterator[Any]) -> Any:
    """Read a result from the next words."""
    if isinstance(kind, ArrayType):
        owner, address, *shape = (next(words) for _ in range(2 + kind.dimensions))
        size = int(np.prod(shape)) * kind.dtype.itemsize
        held = (ctypes.c_char * size).from_address(address)
        weakref.finalize(held, _release, owner)
        return np.ndarray(shape, kind.dtype, cast("Any", held))
    assert isinstance(kind, np.dtype)
    word = next(words)
    return bool(word) if kind.kind == "b" else word


def _release(owner: int) -> None:
    """Free the memory of a kernel's array after its last reference ends."""
    owners = ctypes.c_int64.from_address(owner)
    owners.value -= 1
    if owners.value == 0:
        _free(owner)


def _failure(kernel: Declaration, out: Any) -> Exception:
    """Return the exception of a failed kernel: out of memory, or an index out of bounds."""
    index, length, width = struct.unpack_from("=qqq", out)
    if CHECKED and width:
        return IndexError(
            f"kernel `{kernel.identity}` touches {width} items at index {index} of {length}"
        )
    return MemoryError(f"kernel `{kernel.identity}` got no memory for its arrays")
