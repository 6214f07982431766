"""Declarations of compiled functions: kernels, inlined functions, instructions.

A kernel is an entry point with declared types. Numba compiles it once for a level of processors,
into a library that is loaded without Numba (`objects`). A process with all kernels compiled never
imports Numba. With ``NUMBA_DISABLE_JIT`` set, everything is plain Python.
"""

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from fastscore_jit.calling import LoadedKernel

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
CHECKED = os.environ.get("FASTSCORE_CHECKED", "0") not in ("", "0")

COMPILE_OPTIONS = "__compile_options__"


class CompilationError(RuntimeError):
    """A kernel could not be compiled or loaded."""


class Kernel:
    """A compiled entry point, loaded (and if necessary compiled) at its first call.

    Parameters
    ----------
    function
        The plain function.
    parameters, returns
        Declared types, as in `signatures`.
    fastmath, allocates
        See `kernel`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        parameters: str,
        returns: str,
        fastmath: Any,
        allocates: bool = True,
    ) -> None:
        self.function, self.fastmath, self.allocates = function, fastmath, allocates
        self.parameters, self.returns = parameters, returns
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.__wrapped__ = function
        self._loaded: LoadedKernel | None = None
        self._lock = threading.Lock()

    @property
    def module(self) -> str:
        """Name of the module that declares the kernel."""
        return self.function.__module__

    @property
    def identity(self) -> str:
        """Module and name, by which processes request the kernel."""
        return f"{self.module}:{self.__name__}"

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel without the GIL."""
        return (self._loaded or self.load())(*arguments)

    def prepared(self, *arguments: Any) -> Callable[[], Any]:
        """Return a call with these arguments, which are converted once: see `prepared`."""
        return (self._loaded or self.load()).prepared(*arguments)

    def __repr__(self) -> str:
        return f"<kernel {self.identity}({self.parameters}) -> {self.returns or 'None'}>"

    def load(self) -> "LoadedKernel":
        """Return the compiled function, compiled if necessary and loaded once per process."""
        from fastscore_jit.calling import load_kernel
        from fastscore_jit.workers import compiled_library

        with self._lock:
            if self._loaded is None:
                self._loaded = load_kernel(self, compiled_library(self))
        return self._loaded


def prepared(kernel: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call of a kernel with fixed arguments, for repeated calls.

    Conversion of an array argument takes some microseconds. Arrays are kept alive and must stay in
    place. Their contents may change between calls; numbers may not.
    """
    return (
        kernel.prepared(*arguments) if isinstance(kernel, Kernel) else partial(kernel, *arguments)
    )


_declared: dict[str, Kernel] = {}


def declared_kernels() -> list[Kernel]:
    """Return the kernels of all modules that are imported."""
    return list(_declared.values())


def kernel(
    parameters: str, *, returns: str = "", fastmath: bool | set[str], allocates: bool = True
) -> Callable[[Function], Function]:
    """Declare a compiled entry point.

    Parameters
    ----------
    parameters
        Types of the parameters, as in `signatures`: ``"uint8[:], int64, out(int64[:, :])"``.
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
        if JIT_DISABLED:
            return function
        made = Kernel(function, parameters, returns, fastmath, allocates)
        _declared[made.identity] = made
        return cast("Function", made)

    return declare


def inlined(function: Function) -> Function:
    """Declare a function that kernels call, compiled into each of them."""
    setattr(function, COMPILE_OPTIONS, {})
    return function


def always_inlined(function: Function) -> Function:
    """Declare a small function for inner loops, always inlined into kernels."""
    setattr(function, COMPILE_OPTIONS, {"forceinline": True})
    return function


class Instruction:
    """A function that emits LLVM IR when a kernel calls it. Python calls its plain form."""

    def __init__(self, emit: Callable[..., Any], types: str, plain: Any) -> None:
        self.emit, self.types, self.plain = emit, types, plain
        self.__name__, self.__doc__, self.__module__ = emit.__name__, emit.__doc__, emit.__module__

    def __call__(self, *arguments: Any) -> Any:
        """Run the plain Python form of the instruction."""
        if self.plain is None:
            raise TypeError(f"`{self.__name__}` exists in compiled kernels only")
        return self.plain(*arguments)


def instruction(
    types: str, *, plain: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function that emits LLVM IR.

    Parameters
    ----------
    types
        Types of parameters and result, ``"int64, int64 -> uint64"``, with nothing after the arrow
        if nothing is returned. ``array`` is any array, passed by address. ``bytes(8)`` is two
        parameters, a base (an array or a `memory.View`) and an index, passed as the address of
        eight bytes. ``bytes(any)`` has a third parameter, the number of bytes.
    plain
        The function to call in plain Python.
    """

    def declare(emit: Callable[..., Any]) -> Callable[..., Any]:
        if JIT_DISABLED and plain is not None:
            return plain
        return Instruction(emit, types, plain)

    return declare
