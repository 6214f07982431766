"""Declarations of compiled functions: kernels, inlined functions, instructions.

A kernel is an entry point with declared types. Numba compiles it once for a level of processors,
into a library that is loaded without Numba (`objects`). With ``NUMBA_DISABLE_JIT`` set, everything
is plain Python.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
CHECKED = os.environ.get("FASTSCORE_CHECKED", "0") not in ("", "0")

COMPILE_OPTIONS = "__compile_options__"


class CompilationError(RuntimeError):
    """A kernel could not be compiled or loaded."""


class Declaration:
    """A kernel as it is declared: what compiles, finds and loads its library.

    Parameters
    ----------
    function
        The plain function.
    parameters, returns
        Declared types, as in `signatures`.
    fastmath, allocates
        See `compiling.kernel`.
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

    @property
    def module(self) -> str:
        """Name of the module that declares the kernel."""
        return self.function.__module__

    @property
    def identity(self) -> str:
        """Module and name, by which processes request the kernel."""
        return f"{self.module}:{self.__name__}"

    def __repr__(self) -> str:
        return f"<kernel {self.identity}({self.parameters}) -> {self.returns or 'None'}>"


_declared: dict[str, Declaration] = {}


def register(kernel: Declaration) -> None:
    """Note a kernel of a module, so that it can be compiled before it is called."""
    _declared[kernel.identity] = kernel


def declared_kernels() -> list[Declaration]:
    """Return the kernels of all modules that are imported."""
    return list(_declared.values())


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
