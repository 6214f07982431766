"""Kernels: declared functions that run compiled, without the GIL, and their compilation.

Arguments and results are passed by ctypes as eight-byte words. A shared library is loaded by the
system, object code (where there was no linker) by LLVM.

A process first looks for a kernel's library, and loads it without waiting. Missing kernels are
compiled by as many processes as there are processors (`main`). The calling process never imports
Numba, and continues until it calls a kernel that is not ready. A lock on each kernel lets other
runs wait for it instead of compiling it, too. After a timeout they compile it themselves, as the
owner of the lock may be suspended.
"""

import contextlib
import ctypes
import gc
import importlib.util
import itertools
import os
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np

from fastscore_jit import objects
from fastscore_jit.declaring import (
    CHECKED,
    ENTRY,
    ArrayType,
    CompilationError,
    Declaration,
    Function,
    NamedTupleType,
    Type,
    declared_kernels,
    register,
)
from fastscore_jit.system import (
    c_library,
    lock_if_supported,
    make_private_folder,
    open_descriptor,
    read_at,
)
from fastscore_jit.threads import result_of, thread_count

# Calls: libraries, and the words that are passed to them

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
    objects.check_processor()
    parameters, returns = kernel.types()
    writers = [
        writer(kind, f"kernel `{kernel.__name__}`, argument {place + 1},")
        for place, kind in enumerate(parameters)
    ]
    given = struct.Struct("=" + "".join("".join(word_formats(kind)) for kind in parameters))
    result_format = "=" + "".join("".join(_result_formats(kind)) for kind in returns)
    result = struct.Struct(result_format)
    size = max(result.size, 8 * _FAULT_WORDS)
    with objects.opened_library(library) as descriptor:
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
    if library.suffix == objects.OBJECT:
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


# Kernels


class Kernel(Declaration):
    """A compiled entry point, loaded (and if necessary compiled) at its first call."""

    def __init__(self, *declared: Any) -> None:
        super().__init__(*declared)
        self._loaded: Loaded | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel without the GIL."""
        pack, run = self._loaded or self.load()
        words, _held = pack(arguments)
        return run(words)

    def load(self) -> Loaded:
        """Return the compiled function, compiled if necessary and loaded once per process."""
        with self._lock:
            if self._loaded is None:
                self._loaded = load_kernel(self, compiled_library(self))
        return self._loaded


def prepared(kernel: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call of a kernel with fixed arguments, for repeated calls.

    Conversion of an array argument takes some microseconds. Arrays are kept alive and must stay in
    place. Their contents may change between calls; numbers may not.
    """
    assert isinstance(kernel, Kernel)
    pack, run = kernel.load()
    words, held = pack(arguments)

    def call() -> Any:
        assert held is not None
        return run(words)

    return call


def kernel(
    parameters: str, *, returns: str = "", fastmath: bool | set[str], allocates: bool = True
) -> Callable[[Function], Function]:
    """Declare a compiled entry point.

    Parameters
    ----------
    parameters
        Types of the parameters, as in `declaring`: ``"uint8[:], int64, out(int64[:, :])"``.
    returns
        Types of the returned values, in the same syntax. Returned arrays are new.
    fastmath
        ``False``, or the set of LLVM flags that the kernel tolerates. Never flags that assume the
        absence of NaN or infinity.
    allocates
        Whether the kernel or its callees create arrays. If not, references to arrays are not
        counted, which can dominate the time of functions with many arrays.
    """

    def declare(function: Function) -> Function:
        made = Kernel(function, parameters, returns, fastmath, allocates)
        register(made)
        return cast("Function", made)

    return declare


# Compilation in other processes

_PROGRAM = "from fastscore_jit.compiling import main; main()"
_MOST_QUOTED = 2_000
_NOTICE_SECONDS = 1.0
_TIMEOUT_VARIABLE = "FASTSCORE_COMPILE_PATIENCE"
_POLL_SECONDS = 0.05
_OBJECTS_PER_COLLECTION = 500_000  # few cycles, but 5 % of the time

_lock = threading.Lock()
_requested: dict[str, Future[Path]] = {}


NO_COMPILER = (
    "Compiling kernels for this processor needs the packages numba and llvmlite. "
    "Run: pip install 'fastscore-dialogue[compile]'"
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a compilation: kernels that are done, of those that were missing."""

    done: int
    total: int
    share: float  # of the code: half of the time is for one kernel in ten
    note: str = ""  # why it waits


Listener = Callable[[Progress], object]


def missing_kernels(kernels: Iterable[Declaration] | None = None) -> list[Declaration]:
    """Return the kernels without a library here, of some kernels or of all that are declared."""
    chosen = declared_kernels() if kernels is None else kernels
    return [kernel for kernel in chosen if objects.find_library(kernel) is None]


def compiled_library(kernel: Declaration) -> Path:
    """Return a kernel's library. If it is missing, compile the missing kernels of its module."""
    found = objects.find_library(kernel)
    if found is not None:
        return found
    beside = [each for each in declared_kernels() if each.module == kernel.module]
    others = [each for each in missing_kernels(beside) if each is not kernel]
    return result_of(request([kernel, *others], _announce)[0])


def request(kernels: Iterable[Declaration], listener: Listener) -> list[Future[Path]]:
    """Start to compile kernels and return at once; ``listener`` is called after each.

    A kernel that this process requested before is not compiled again. Returned are the future
    libraries, one for each kernel.
    """
    wanted = list(kernels)
    if importlib.util.find_spec("llvmlite") is None or importlib.util.find_spec("numba") is None:
        raise CompilationError(NO_COMPILER)
    lock_timeout_seconds()  # a wrong value is told here, not by the process that compiles
    with _lock:
        new = [each for each in wanted if each.identity not in _requested]
        for kernel in new:
            _requested[kernel.identity] = Future()
        futures = [_requested[each.identity] for each in wanted]
    if new:
        _Compilation(new, listener).start()
    return futures


def lock_timeout_seconds() -> float:
    """Return how long to wait for another process that compiles the same kernel."""
    value = os.environ.get(_TIMEOUT_VARIABLE, "30")
    with contextlib.suppress(ValueError):
        if (seconds := float(value)) >= 0:
            return seconds
    raise CompilationError(f"{_TIMEOUT_VARIABLE} is {value!r}, expected seconds from 0 on.")


def compiling_note(count: int | None = None) -> str:
    """Return the message about kernels that are being compiled."""
    kernels = "1 kernel" if count == 1 else f"{count} kernels" if count else "kernels"
    return f"compiling {kernels} for this processor, once{objects.cache_note()}"


_announced: dict[str, float] = {}
"""Messages on stderr, each printed once, and after how many seconds of compiling."""
_LONGEST_SILENCE = 15.0  # seconds
_clock = {"spent": 0.0, "began": 0.0}
"""Seconds that ended batches of kernels took, and when the one that is compiled began."""


def _announce(progress: Progress) -> None:
    message, now = progress.note or compiling_note(), time.monotonic()
    if not progress.done:
        _clock["began"] = now
    spent = _clock["spent"] + now - _clock["began"]
    if progress.done == progress.total:
        _clock["spent"] = spent
        return
    if message in _announced and spent - max(_announced.values()) > _LONGEST_SILENCE:
        message = f"still compiling after {spent:.0f} s"
    if message not in _announced:
        _announced[message] = spent
        print(f"fastscore: {message}", file=sys.stderr, flush=True)


_SIZE_OF_ANY = 500
"""Bytes of code that take as long to compile as what every kernel has beside its own code."""


class _Compilation:
    """Kernels compiled by processes, each of which takes the next kernel when it is done."""

    def __init__(self, kernels: list[Declaration], listener: Listener) -> None:
        self._total, self._done, self._listener = len(kernels), 0, listener
        self._notifying, self._taking = threading.Lock(), threading.Lock()
        self._sizes = {kernel: objects.code_size(kernel) + _SIZE_OF_ANY for kernel in kernels}
        self._running: set[Declaration] = set()
        # large kernels come first, to keep the last ones short
        self._open = sorted(kernels, key=lambda kernel: self._sizes[kernel])

    def start(self) -> None:
        self._notify()
        for number in range(min(thread_count(None), self._total)):
            threading.Thread(
                target=self._run_worker, name=f"fastscore-compile-{number}", daemon=True
            ).start()

    def _next_kernel(self) -> Declaration | None:
        with self._taking:
            kernel = self._open.pop() if self._open else None
            if kernel is not None:
                self._running.add(kernel)
            return kernel

    def _share(self) -> float:
        """Return the share of the code that is compiled; what is being compiled counts as half."""
        with self._taking:
            left = sum(map(self._sizes.__getitem__, self._open))
            running = sum(map(self._sizes.__getitem__, self._running))
        return 1.0 - (left + running / 2) / max(sum(self._sizes.values()), 1)

    def _notify(self, note: str = "", compiled: Declaration | None = None) -> None:
        with self._notifying:
            if compiled is not None:
                self._done += 1
                self._running.discard(compiled)
            self._listener(Progress(self._done, self._total, self._share(), note))

    def _run_worker(self) -> None:
        with tempfile.TemporaryFile("w+") as errors:
            worker = None
            while (kernel := self._next_kernel()) is not None:
                try:
                    if worker is None or worker.poll() is not None:
                        worker = _started_worker(errors.fileno())
                    library, failure = self._compiled(worker, kernel), None
                except Exception as error:
                    errors.seek(0)
                    tail = errors.read()[-_MOST_QUOTED:]
                    failure = CompilationError(
                        f"{kernel.identity} was not compiled: {error}\n{tail}"
                    )
                # notify the listener before any waiting thread continues
                self._notify(compiled=kernel)
                if failure is None:
                    _requested[kernel.identity].set_result(library)
                else:
                    with _lock:  # it may be requested again
                        future = _requested.pop(kernel.identity)
                    future.set_exception(failure)
            if worker is not None and worker.stdin is not None:
                worker.stdin.close()
                worker.wait()

    def _compiled(self, worker: "subprocess.Popen[str]", kernel: Declaration) -> Path:
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(f"{kernel.identity}\n")
        worker.stdin.flush()
        for line in worker.stdout:
            kind, _, text = line.rstrip("\n").partition(" ")
            if kind == "done":
                return Path(text)
            if kind == "failed":
                raise CompilationError(text)
            self._notify(note=text)
        raise CompilationError(f"its process ended with {worker.wait()}")


def _started_worker(errors: int) -> "subprocess.Popen[str]":
    """Start a process that compiles requested kernels, for this process's processor level."""
    level = objects.processor_level()
    settings = {
        **os.environ,
        "FASTSCORE_PROCESSOR": level.name,
        "NUMBA_CPU_NAME": level.processor,
        "NUMBA_CPU_FEATURES": level.features,
        "NUMBA_DISABLE_INTEL_SVML": "1",
        "NUMBA_DISABLE_JIT": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


# In such a process: names of kernels on stdin, results on stdout.


def main() -> None:
    """Compile the kernels named on stdin until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep the output of libraries off stdout
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    for line in sys.stdin:
        try:
            answers.write(f"done {_compiled(line.strip(), answers)}\n")
        except Exception as error:
            import traceback

            traceback.print_exc()
            answers.write(f"failed {type(error).__name__}: {_first_line(error)}\n")


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0]


def _compiled(identity: str, answers: IO[str]) -> Path:
    kernel = objects.kernel_named(identity)
    with _lock_of(kernel, answers):
        found = objects.find_library(kernel)
        return found if found is not None else make_library(kernel, objects.cache_folder())


def make_library(kernel: Declaration, folder: Path) -> Path:
    """Compile a kernel into a folder and return the library."""
    from fastscore_jit.building import build

    make_private_folder(folder)
    with tempfile.TemporaryDirectory(prefix=".made-", dir=folder) as made:
        code = Path(made) / f"kernel{objects.OBJECT}"
        code.write_bytes(build(kernel, objects.processor_level()))
        library = _link(code)
        try:
            _check_loads(library)  # its references must resolve
        except OSError:
            if library == code:
                raise
            _check_loads(code)
            library = code  # not loadable from here, as on `noexec`
        return objects.keep_library(kernel, folder, library)


def _check_loads(library: Path) -> None:
    with open(open_descriptor(library), "rb") as file:
        entry_of(library, file.fileno())


@contextlib.contextmanager
def _lock_of(kernel: Declaration, answers: IO[str]) -> Iterator[None]:
    """Lock a kernel, or continue without the lock after a timeout."""
    path = objects.cache_folder() / f"{objects.stem(kernel)}.lock"
    with path.open("a+") as handle:
        started, notified, held = time.monotonic(), False, False
        timeout = lock_timeout_seconds()
        while not held and (waited := time.monotonic() - started) <= timeout:
            held = lock_if_supported(handle.fileno())
            if not held:
                if objects.find_library(kernel) is not None:
                    break
                if waited > _NOTICE_SECONDS and not notified:
                    notified = True
                    answers.write(f"waiting {_holder(handle, kernel)}\n")
                time.sleep(_POLL_SECONDS)
        if held:
            handle.truncate(0)
            handle.write(f"{os.getpid()}\n")
            handle.flush()
        try:
            yield
        finally:
            if held:
                with contextlib.suppress(OSError):  # Windows does not remove open files
                    path.unlink(missing_ok=True)


def _holder(handle: IO[str], kernel: Declaration) -> str:
    handle.seek(0)
    process = handle.read().strip() or "of unknown number"
    return (
        f"waiting for process {process}, which compiles {kernel.__name__}; "
        f"for {lock_timeout_seconds():.0f} s at most"
    )


def _link(code: Path) -> Path:
    """Link an object file to a shared library; return the object file if that is impossible.

    Its references to the C library are resolved in the process that loads it.
    """
    library = code.with_suffix(objects.LIBRARY)
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
            [name, "/dll", "/noentry", "/nologo", f"/export:{ENTRY}", f"/out:{library}", code]
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
