"""Declarations of compiled functions: kernels, their types, inlined functions, instructions.

A kernel is an entry point with declared types. Numba compiles it once for a level of processors,
into a library that is loaded without Numba (`objects`).

A signature is a list of types. ``int64`` or another numpy type is a scalar. ``uint8[:]`` or
``int64[:, :]`` is a C-contiguous array that is read, ``out(uint8[:])`` an array that is written.
``(uint8[:], int64)`` is a tuple, ``Index(uint32[:], out(int64[:]))`` a NamedTuple. Other names are
looked up in the module that declares the kernel: such a class, or the dtype of a structured array.
"""

import ast
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

CHECKED = os.environ.get("FASTSCORE_CHECKED", "0") not in ("", "0")

COMPILE_OPTIONS = "__compile_options__"
ENTRY = "fastscore_kernel"
"""The C function of a kernel's library."""


class CompilationError(RuntimeError):
    """A kernel could not be compiled or loaded."""


class Declaration:
    """A kernel as `compiling.kernel` declares it: what compiles, finds and loads its library."""

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

    def types(self) -> "tuple[tuple[Type, ...], tuple[Type, ...]]":
        """Return the types of the parameters, and of the returned values."""
        names = self.function.__globals__
        return parse(self.parameters, names), parse(self.returns, names)

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
    """A function that emits LLVM IR when a kernel calls it."""

    def __init__(self, emit: Callable[..., Any], types: str) -> None:
        self.emit, self.types = emit, types
        self.__name__, self.__doc__, self.__module__ = emit.__name__, emit.__doc__, emit.__module__

    def __call__(self, *arguments: Any) -> Any:
        """Refuse a call from Python."""
        raise TypeError(f"`{self.__name__}` exists in compiled kernels only")


def instruction(types: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function that emits LLVM IR.

    Parameters
    ----------
    types
        Types of parameters and result, ``"int64, int64 -> uint64"``, with nothing after the arrow
        if nothing is returned. ``array`` is any array, passed by address. ``bytes(8)`` is two
        parameters, a base (an array or a `memory.View`) and an index, passed as the address of
        eight bytes. ``bytes(any)`` has a third parameter, the number of bytes.
    """
    return lambda emit: Instruction(emit, types)


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
