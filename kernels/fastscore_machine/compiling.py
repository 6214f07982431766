"""Compilation: the flags of every kernel, and a cache folder that always works.

Compiled code is kept under ``$FASTSCORE_CACHE`` (else the user's cache folder, else a private
temporary one), in a folder named after a digest of the sources of all kernels and of the versions
of Numba and Python: an installed package may be read-only, and code of another version is never
loaded. The folder is set while our kernels are declared only; other users of Numba keep theirs.
"""

import contextlib
import functools
import hashlib
import importlib.util
import os
import platform
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import llvmlite.binding
import numba
from numba.extending import intrinsic

config: Any = numba.config

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_DISABLED = bool(config.DISABLE_JIT)

CHECKED = os.environ.get("FASTSCORE_CHECKED") == "1"
"""Whether readers check the bounds of every access, see `views`."""

PACKAGES = ("fastscore_kernels", "fastscore_machine", "fastscore_readers")

_PATIENCE_SECONDS = 180

_lock = threading.Lock()
_topic_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
_ready: set[str] = set()


def _candidate_folders() -> Iterator[Path]:
    named = os.environ.get("FASTSCORE_CACHE")
    if named:
        yield Path(named)
    with contextlib.suppress(RuntimeError):
        home = Path.home()
        if sys.platform == "darwin":
            yield home / "Library" / "Caches" / "fastscore"
        elif sys.platform == "win32":
            yield Path(os.environ.get("LOCALAPPDATA", home)) / "fastscore" / "Cache"
        else:
            yield Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "fastscore"
    yield Path(tempfile.gettempdir()) / f"fastscore-{getattr(os, 'getuid', int)()}"


def _is_ours_and_writable(folder: Path) -> bool:
    """Tell whether files can be made in the folder, and by nobody else: code is loaded from it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def cache_folder() -> Path:
    """Return the folder that compiled kernels are kept in, made if need be."""
    digest = hashlib.sha256(
        f"{numba.__version__} {platform.python_version()} {platform.machine()} {CHECKED}".encode()
    )
    for package in PACKAGES:
        for source in sorted((Path(__file__).parents[1] / package).rglob("*.py")):
            digest.update(source.name.encode())
            digest.update(source.read_bytes())
    for candidate in _candidate_folders():
        folder = candidate / "kernels" / digest.hexdigest()[:16]
        if _is_ours_and_writable(folder):
            return folder
    return Path(tempfile.mkdtemp(prefix="fastscore-kernels-"))


def kernel(*, fastmath: bool | set[str], allocates: bool = True) -> Callable[[Function], Function]:
    """Declare a compiled entry point: releases the GIL, cached on disk, flags stated.

    Parameters
    ----------
    fastmath
        ``False``, or the set of LLVM flags whose freedom the kernel can bear; never flags that
        assume the absence of NaN or infinity.
    allocates
        Without it no references to arrays are counted, which in functions that take many arrays
        can cost more than all else; then neither the kernel nor what it calls makes an array.
    """
    options: dict[str, Any] = {} if allocates or CHECKED else {"_nrt": False}

    def declare(function: Function) -> Function:
        with _lock:
            previous = config.CACHE_DIR
            config.CACHE_DIR = str(cache_folder())
            try:
                compiled: Any = numba.njit(
                    nogil=True,
                    cache=True,
                    fastmath=fastmath,
                    error_model="numpy",
                    boundscheck=CHECKED or None,
                    **options,
                )(function)
                return cast("Function", _naming(compiled) if CHECKED else compiled)
            finally:
                config.CACHE_DIR = previous

    return declare


def _naming(compiled: Any) -> Callable[..., Any]:
    """Let an access out of bounds name the kernel."""

    @functools.wraps(compiled.py_func)
    def checked(*arguments: Any) -> Any:
        try:
            return compiled(*arguments)
        except IndexError as error:
            found = " ".join(map(str, error.args))
            raise IndexError(f"{compiled.py_func.__qualname__} touches {found}") from error

    return checked


def has_feature(name: str) -> bool:
    """Whether code is compiled for a processor with a feature, by LLVM's name for it.

    Of named processors (``NUMBA_CPU_NAME``) the levels of x86-64 are known.
    """
    if config.CPU_NAME:
        named = (config.CPU_FEATURES or "").split(",")
        return f"+{name}" in named or (config.CPU_NAME == "x86-64-v4" and name == "avx512bw")
    return bool(llvmlite.binding.get_host_cpu_features().get(name, False))


def inlined(function: Function) -> Function:
    """Declare a function that kernels call: compiled into them, with no cache of its own."""
    compiled: Any = numba.njit(
        nogil=True, fastmath=False, error_model="numpy", boundscheck=CHECKED or None
    )(function)
    return cast("Function", compiled)


def always_inlined(function: Function) -> Function:
    """Declare a small function of an inner loop: no call is left of it in the kernels."""
    compiled: Any = numba.njit(
        nogil=True,
        fastmath=False,
        error_model="numpy",
        forceinline=True,
        boundscheck=CHECKED or None,
    )(function)
    return cast("Function", compiled)


def instruction(emit: Callable[..., Any]) -> Callable[..., Any]:
    """Declare a function that emits LLVM IR where a kernel calls it."""
    return cast("Callable[..., Any]", intrinsic(emit))


def instruction_or(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare an instruction; ``plain`` is called instead where nothing is compiled."""

    def declare(emit: Callable[..., Any]) -> Callable[..., Any]:
        return plain if JIT_DISABLED else instruction(emit)

    return declare


def _lock_file(handle: IO[str]) -> None:
    """Wait for the lock as long as a compilation may take; then go on without it, which is safe."""
    try:
        import fcntl
    except ImportError:
        return
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        except OSError:
            return
        else:
            return


@functools.cache
def _load_numba_without_scipy() -> None:
    """Import Numba's array functions, which would import SciPy only to see whether it is there.

    That costs every start 0.2 s, and no kernel of ours calls BLAS. For others nothing changes:
    Numba imports SciPy when it compiles a call of BLAS.
    """
    asked = "scipy.linalg.cython_blas"
    if "numba.np.arraymath" in sys.modules or asked in sys.modules:
        return
    sys.modules[asked] = cast("Any", None)  # an import of it fails at once
    try:
        from numba.np import arraymath
    finally:
        del sys.modules[asked]
    arraymath._HAVE_BLAS = importlib.util.find_spec("scipy") is not None


def first_use(topic: str, compile_all: Callable[[], object]) -> None:
    """Run ``compile_all`` once in this process, one process at a time for each topic.

    The first process compiles and fills the cache; the others wait and load from it, so that a
    cold start of many workers costs one compilation. What is cached already is never waited for
    behind another topic's compilation.

    Parameters
    ----------
    topic
        What is compiled; the module's name.
    compile_all
        Calls each kernel with arguments of the types that it gets; uses no other topic.
    """
    if topic in _ready:
        return
    with _lock:
        topic_lock = _topic_locks[topic]
    with topic_lock:
        if topic in _ready:
            return
        if not JIT_DISABLED:
            _load_numba_without_scipy()
            with (cache_folder() / f"lock-{topic}").open("a") as handle:
                _lock_file(handle)
                compile_all()
        _ready.add(topic)
