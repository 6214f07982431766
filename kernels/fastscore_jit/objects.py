"""Compiled kernels on disk: target processors, digests of sources, and paths.

The name of a library contains its kernel, a digest of all compiled sources, and a digest of its
content. So neither code of other sources nor a damaged file is ever loaded. Libraries depend on
neither Python nor Numba. An installed wheel contains some (``compiled/`` beside this file). Others
are compiled once into ``$FASTSCORE_CACHE``, by default the user's cache folder.
"""

import contextlib
import errno
import functools
import hashlib
import importlib
import os
import platform
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fastscore_jit.declaring import (
    CHECKED,
    COMPILE_OPTIONS,
    CompilationError,
    Declaration,
    Instruction,
)
from fastscore_jit.system import make_private_folder, open_descriptor, open_private, processor_flags

SHIPPED = Path(__file__).with_name("compiled")
LIBRARY = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
OBJECT = ".o"

_HERE = Path(__file__).parent
_COMPILER_SOURCES = ("building.py", "declaring.py", "runtime.ll", "windows.ll")
_DIGEST_BYTES = 10


@dataclass(frozen=True, slots=True)
class Level:
    """A level of processors: the instruction sets that code for it may use."""

    name: str
    processor: str  # and features: its names in LLVM
    features: str
    flags: frozenset[str]  # that a processor must have, by Linux's names


_V2 = frozenset(("cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"))
_V3 = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_V4B = _V4 | {"avx512vbmi", "avx512_vbmi2"}

# https://gitlab.com/x86-psABIs/x86-64-ABI, and v4 with what its second generation added
LEVELS = (
    Level("x86-64-v4b", "x86-64-v4", "+avx512vbmi,+avx512vbmi2", _V4B),
    Level("x86-64-v4", "x86-64-v4", "", _V4),
    Level("x86-64-v3", "x86-64-v3", "", _V3),
    Level("x86-64-v2", "x86-64-v2", "", _V2),
    Level("x86-64", "x86-64", "", frozenset()),
)
_GENERIC = Level("generic", "generic", "", frozenset())


@functools.cache
def processor_level() -> Level:
    """Return the highest level that this processor has.

    ``FASTSCORE_PROCESSOR`` sets another level, for tests and for builds for other processors.
    """
    named = os.environ.get("FASTSCORE_PROCESSOR")
    levels = _levels()
    for level in levels:
        if named == level.name or (not named and processor_flags() >= level.flags):
            return level
    expected = ", ".join(level.name for level in levels)
    raise CompilationError(f"FASTSCORE_PROCESSOR is {named!r}, expected one of: {expected}.")


def _levels() -> tuple[Level, ...]:
    """Return the levels of this architecture. All 64-bit ARM processors have NEON."""
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return LEVELS if is_x86 else (_GENERIC,)


@functools.cache
def check_processor() -> None:
    """Refuse to load code that this processor cannot run, as ``FASTSCORE_PROCESSOR`` may name."""
    lacking = processor_level().flags - processor_flags()
    if lacking:
        raise CompilationError(
            f"FASTSCORE_PROCESSOR is {processor_level().name!r}, but this processor lacks "
            f"{', '.join(sorted(lacking))}. Unset it to run kernels here."
        )


def has_feature(name: str) -> bool:
    """Return whether the target processor has an instruction set, by Linux's name."""
    return name in processor_level().flags


def platform_folder(level: str | None = None) -> str:
    """Return the name of the folder with code for this platform and processor level."""
    checked = "-checked" if CHECKED else ""
    return f"{sys.platform}-{platform.machine()}-{level or processor_level().name}{checked}"


def user_cache_folder() -> Path:
    """Return the platform's cache folder for fastscore; RuntimeError for a user without home."""
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "fastscore"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home)) / "fastscore" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "fastscore"


def _candidate_folders() -> Iterator[Path]:
    named = os.environ.get("FASTSCORE_CACHE")
    if named:
        yield Path(named).expanduser()
    with contextlib.suppress(RuntimeError):
        yield user_cache_folder()
    yield Path(tempfile.gettempdir()) / f"fastscore-{getattr(os, 'getuid', int)()}"


@functools.cache
def _cache() -> tuple[Path, str]:
    """Return the cache folder, and why the first candidate is not used."""
    refusal = ""
    for candidate in _candidate_folders():
        folder = candidate / "kernels" / platform_folder()
        try:
            make_private_folder(folder)
            os.close(open_private(folder))
            with tempfile.TemporaryFile(dir=folder):
                return folder, refusal
        except OSError as error:
            refusal = refusal or f"{error.filename}: {error.strerror}"
    return Path(tempfile.mkdtemp(prefix="fastscore-kernels-")), refusal


def cache_folder() -> Path:
    """Return the cache folder of kernels compiled for this processor, creating it if missing."""
    return _cache()[0]


def cache_note() -> str:
    """Return where kernels are kept if the expected cache is refused, and why; else nothing."""
    folder, refusal = _cache()
    return f", into {folder}, because of {refusal}" if refusal else ""


@functools.cache
def stem(kernel: Declaration) -> str:
    """Return the common beginning of the names of a kernel's files."""
    return f"{kernel.module}.{kernel.__name__}-{source_digest(kernel)}"


def find_library(kernel: Declaration) -> Path | None:
    """Return the kernel's compiled library if its content matches its digest, else None."""
    begin = f"{stem(kernel)}-"
    for folder in (SHIPPED / platform_folder(), cache_folder(), *_lower_level_folders()):
        for name in _names_in(folder, begin):
            path = folder / name
            if path.suffix in (LIBRARY, OBJECT):
                with contextlib.suppress(OSError), opened_library(path):
                    return path
    return None


def _lower_level_folders() -> Iterator[Path]:
    """Yield the installed wheel's folders of code for lower levels, the highest first.

    This processor runs code for a lower level, too. It is used if its sources are equal: the
    sources of some kernels differ between levels.
    """
    levels = [level.name for level in LEVELS]
    name = processor_level().name
    for lower in levels[levels.index(name) + 1 :] if name in levels else ():
        yield SHIPPED / platform_folder(lower)


_listed: dict[Path, list[str]] = {}


def _names_in(folder: Path, begin: str) -> list[str]:
    """Return the names in a folder with a prefix; without any, the folder is listed again."""
    found = [name for name in _listed.get(folder, ()) if name.startswith(begin)]
    if not found:
        try:
            _listed[folder] = sorted(os.listdir(folder))
        except OSError:
            return []
        found = [name for name in _listed[folder] if name.startswith(begin)]
    return found


@contextlib.contextmanager
def opened_library(path: Path) -> Iterator[int]:
    """Open a library for the block, and yield its descriptor.

    It is an OSError if others may write it, or its content does not match its digest.
    """
    # the wheel's own are trusted as much as the Python code beside them
    is_shipped = SHIPPED in path.parents
    descriptor = open_descriptor(path) if is_shipped else open_private(path)
    try:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            if not path.stem.endswith(f"-{_digest(file.read())}"):
                raise OSError(errno.EILSEQ, "its content does not match its name", str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def keep_library(kernel: Declaration, folder: Path, made: Path) -> Path:
    """Move a compiled file to its name in a folder, atomically."""
    name = f"{stem(kernel)}-{_digest(made.read_bytes())}{made.suffix}"
    made.chmod(0o755)  # whatever the umask: see `open_private`
    return made.replace(folder / name)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()


def source_digest(kernel: Declaration) -> str:
    """Return a digest of the kernel's sources.

    It covers the signature, the source files of all functions that the kernel calls, and the
    constants they use. Other changes in the package do not affect it.
    """
    files: set[str] = set()
    constants: set[str] = set()
    _collect_reachable(kernel.function, files, constants, set())
    flags = sorted(kernel.fastmath) if kernel.fastmath else False
    parts = [kernel.identity, kernel.parameters, kernel.returns]
    parts += [f"{flags} {kernel.allocates} {CHECKED}", *sorted(constants)]
    parts += sorted(map(_file_digest, files))  # independent of the installation path
    parts += [_file_digest(str(_HERE / name)) for name in _COMPILER_SOURCES]
    return _digest("\n".join(parts).encode())


def _collect_reachable(
    function: Callable[..., Any], files: set[str], constants: set[str], seen: set[Any]
) -> None:
    """Collect the files of the functions that a function calls, and the constants it names."""
    if function in seen:
        return
    seen.add(function)
    files.add(function.__code__.co_filename)
    for name, value in _named_values(function):
        if isinstance(value, Declaration):
            _collect_reachable(value.function, files, constants, seen)
        elif isinstance(value, Instruction):
            constants.add(f"{name}={value.types}")
            _collect_reachable(value.emit, files, constants, seen)
        elif isinstance(value, types.FunctionType):
            if hasattr(value, COMPILE_OPTIONS) or _is_own_module(value.__module__):
                _collect_reachable(value, files, constants, seen)
        elif isinstance(value, types.ModuleType):
            if _is_own_module(value.__name__) and value.__file__ is not None:
                files.add(value.__file__)
        elif (constant := _constant(value)) is not None:
            constants.add(f"{name}={constant}")


def _named_values(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that a function's code uses: globals, and enclosing functions' variables."""
    for name in names_in(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


# tuples, as a union type would be created at each of thousands of calls
_SEQUENCES = (list, tuple)
_SETS = (frozenset, set)
_SCALARS = (int, float, str, bytes, np.generic)


def _constant(value: Any) -> str | None:
    """Serialise a constant, identically in every process; None for other values."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{_digest(value.tobytes())}"
    if isinstance(value, _SEQUENCES):
        return f"[{','.join(str(_constant(each)) for each in value)}]"
    if isinstance(value, _SETS):
        return f"{{{','.join(sorted(str(_constant(each)) for each in value))}}}"
    if isinstance(value, _SCALARS):
        return f"{type(value).__name__} {value!r}"
    return None


def code_size(kernel: Declaration) -> int:
    """Return the size of the code of the functions that a kernel is compiled from."""
    seen: set[Any] = set()
    _collect_reachable(kernel.function, set(), set(), seen)
    return sum(len(each.__code__.co_code) for each in seen)


def names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the global names in a function's code, nested functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_in(constant)


def _is_own_module(module: str) -> bool:
    return module.partition(".")[0].startswith("fastscore")


@functools.cache
def _file_digest(file: str) -> str:
    path = Path(file)
    return path.name + _digest(path.read_bytes())


def kernel_named(identity: str) -> Declaration:
    """Import the kernel with an identity."""
    module, _, name = identity.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, Declaration)
    return found
