"""Calls of compiled kernels by ctypes: arguments and results are passed as eight-byte words.

Object code is linked to a shared library, or loaded by LLVM if there is no linker.
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
from typing import Any, cast

import numpy as np

from fastscore_jit.declaring import CHECKED, Declaration
from fastscore_jit.objects import LIBRARY, OBJECT, check_processor, opened_library
from fastscore_jit.signatures import ArrayType, Type, parse, word_formats, writer
from fastscore_jit.system import c_library, read_at

_held: list[Any] = []
_loads = itertools.count(1)
_ENTRY = "fastscore_kernel"
_FAULT_WORDS = 3
C_FUNCTIONS = ("_get_osfhandle", "free", "malloc", "memcpy", "memset")
"""Functions of the Windows C library that kernels call."""
_free = c_library().free
_free.argtypes = (ctypes.c_void_p,)


def link(code: Path) -> Path:
    """Link an object file to a shared library; return the object file if that is impossible.

    Its references to the C library are resolved in the process that loads it.
    """
    import subprocess

    library = code.with_suffix(LIBRARY)
    for command in _link_commands(str(library), str(code)):
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode == 0:
            return library
    return code


def _link_commands(library: str, code: str) -> Iterator[list[str]]:
    """Yield commands that link an object file, one for each installed linker."""
    import shutil

    given = ["-shared", "-o", library, code]
    if sys.platform == "darwin":
        # a Mac without developer tools answers any compiler's name with an install dialog
        if not Path("/Library/Developer/CommandLineTools/usr/bin/ld").exists():
            return
        commands = [["cc", "-undefined", "dynamic_lookup", *given]]
    elif sys.platform == "win32":
        commands = [
            [name, "/dll", "/noentry", "/nologo", f"/export:{_ENTRY}", f"/out:{library}", code]
            + [f"{each}.lib" for each in _WINDOWS_LIBRARIES]
            for name in ("link", "lld-link")
        ]
    else:
        commands = [[name, *given] for name in ("ld", "ld.lld")]
        commands += [[name, "-nostdlib", *given] for name in ("cc", "gcc", "clang")]
    for name, *options in commands:
        program = shutil.which(name)
        if program is not None:
            yield [program, *options]


_WINDOWS_LIBRARIES = ("ucrt", "vcruntime", "kernel32")


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


class LoadedKernel:
    """A compiled kernel, loaded from a library.

    Parameters
    ----------
    pack
        Converts arguments to words, and returns them with the objects that must outlive the call.
    run
        Calls the kernel with words.
    """

    def __init__(
        self,
        pack: Callable[[tuple[Any, ...]], tuple[bytes, list[Any]]],
        run: Callable[[bytes], Any],
    ) -> None:
        self.pack, self.run = pack, run

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        words, held = self.pack(arguments)
        found = self.run(words)
        del held
        return found

    def prepared(self, *arguments: Any) -> Callable[[], Any]:
        """Return a call with these arguments, whose arrays must stay in place."""
        words, held = self.pack(arguments)

        def call() -> Any:
            assert held is not None
            return self.run(words)

        return call


def load_kernel(kernel: Declaration, library: Path) -> LoadedKernel:
    """Load a compiled kernel from its library."""
    check_processor()
    names = kernel.function.__globals__
    parameters, returns = parse(kernel.parameters, names), parse(kernel.returns, names)
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

    return LoadedKernel(pack, run)


def entry_of(library: Path, descriptor: int) -> Callable[[bytes, Any], int]:
    """Load an open library and return its function of words."""
    if library.suffix == OBJECT:
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_char_p)
        return kind(entry_address(_content(descriptor), _ENTRY))
    entry = getattr(_load(library, descriptor), _ENTRY)
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
