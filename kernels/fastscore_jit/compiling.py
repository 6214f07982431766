"""How compiled functions are declared: kernels, what is compiled into them, instructions.

A kernel is an entry point with declared types. Numba compiles it, once for a level of processors,
into a library that is loaded without Numba (`objects`); a process that finds all its kernels
compiled never imports Numba. Where ``NUMBA_DISABLE_JIT`` is set, everything is plain Python.
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
    """A kernel could not be compiled, or not be loaded."""


class Kernel:
    """A compiled entry point: loaded when it is first called, compiled before if need be.

    Parameters
    ----------
    function
        The plain function.
    parameters, returns
        Declared types, as in `signatures`.
    fastmath, allocates
        As `kernel` has them.
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
        """Module and name: what processes call the kernel by."""
        return f"{self.module}:{self.__name__}"

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel; other threads go on meanwhile."""
        return (self._loaded or self.load())(*arguments)

    def prepared(self, *arguments: Any) -> Callable[[], Any]:
        """Return a call with these arguments, which are looked at once: see `prepared`."""
        return (self._loaded or self.load()).prepared(*arguments)

    def __repr__(self) -> str:
        return f"<kernel {self.identity}({self.parameters}) -> {self.returns or 'None'}>"

    def load(self) -> "LoadedKernel":
        """Return the compiled function, loaded once in a process; compiled if need be."""
        from fastscore_jit.calling import load_kernel
        from fastscore_jit.workers import compiled_library

        with self._lock:
            if self._loaded is None:
                self._loaded = load_kernel(self, compiled_library(self))
        return self._loaded


def prepared(kernel: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call of a kernel with some arguments, for calling it often.

    To look at arguments takes some microseconds an array. Arrays are kept alive and stay where
    they are; what they hold may change between calls, numbers may not.
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
        Types of what is returned, in the same words; arrays are then new ones.
    fastmath
        ``False``, or the set of LLVM flags whose freedom the kernel can bear; never flags that
        assume the absence of NaN or infinity.
    allocates
        Without it no references to arrays are counted, which in functions that take many arrays
        can cost more than all else; then neither the kernel nor what it calls makes an array.
    """

    def declare(function: Function) -> Function:
        if JIT_DISABLED:
            return function
        made = Kernel(function, parameters, returns, fastmath, allocates)
        _declared[made.identity] = made
        return cast("Function", made)

    return declare


def inlined(function: Function) -> Function:
    """Declare a function that kernels call: compiled into each of them."""
    setattr(function, COMPILE_OPTIONS, {})
    return function


def always_inlined(function: Function) -> Function:
    """Declare a small function of an inner loop: no call is left of it in the kernels."""
    setattr(function, COMPILE_OPTIONS, {"forceinline": True})
    return function


class Instruction:
    """A function that emits LLVM IR where a kernel calls it; elsewhere its plain form is called."""

    def __init__(self, emit: Callable[..., Any], types: str, plain: Any) -> None:
        self.emit, self.types, self.plain = emit, types, plain
        self.__name__, self.__doc__, self.__module__ = emit.__name__, emit.__doc__, emit.__module__

    def __call__(self, *arguments: Any) -> Any:
        """Do in plain Python what the instruction does."""
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
        Types of parameters and result, ``"int64, int64 -> uint64"``: numbers, ``array`` for any
        array, whose address is passed on; and nothing after the arrow where nothing is returned.
        ``bytes(8)`` stands for two parameters, a base (an array or a `memory.View`)
        and an index, of which the address is passed on where eight bytes are touched;
        ``bytes(any)`` for a third, the number of bytes.
    plain
        What is called where nothing is compiled.
    """

    def declare(emit: Callable[..., Any]) -> Callable[..., Any]:
        if JIT_DISABLED and plain is not None:
            return plain
        return Instruction(emit, types, plain)

    return declare
