"""Pieces of LLVM IR that instructions share; llvmlite is imported when one is emitted."""

from typing import Any


def number(bits: int) -> Any:
    """Return the integer type with a number of bits."""
    from llvmlite import ir

    return ir.IntType(bits)


def vector(bits: int, lanes: int) -> Any:
    """Return the type of a vector of integers."""
    from llvmlite import ir

    return ir.VectorType(ir.IntType(bits), lanes)


def constant(kind: Any, value: Any) -> Any:
    """Return a constant of a type: a list of values for a vector, or one for all its lanes."""
    from llvmlite import ir

    if isinstance(kind, ir.VectorType) and not isinstance(value, list):
        value = [value] * kind.count
    return ir.Constant(kind, value)


def integer(value: int) -> Any:
    """Return a 64-bit constant."""
    return constant(number(64), value)


def load(builder: Any, address: Any, kind: Any, align: int = 1) -> Any:
    """Load a value of any kind from an address."""
    loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
    loaded.align = align
    return loaded


def store(builder: Any, value: Any, address: Any, align: int = 1) -> None:
    """Store a value of any kind to an address."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer())).align = align


def broadcast(builder: Any, value: Any, lanes: int) -> Any:
    """Repeat a value over the lanes of a vector."""
    from llvmlite import ir

    kind = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, undefined, places)


def float32(lanes: int = 0) -> Any:
    """Return the type of a 32-bit float, or of a vector of them."""
    from llvmlite import ir

    return ir.VectorType(ir.FloatType(), lanes) if lanes else ir.FloatType()


def void() -> Any:
    """Return the void type."""
    from llvmlite import ir

    return ir.VoidType()


def undefined(kind: Any) -> Any:
    """Return a value of a type whose content does not matter."""
    from llvmlite import ir

    return ir.Constant(kind, ir.Undefined)


def loop(builder: Any, count: Any) -> Any:
    """Open a loop, ``with loop(...) as at``: ``at.index`` runs from 0 to ``count`` - 1."""
    from numba.core import cgutils

    return cgutils.for_range(builder, count)


def variable(builder: Any, kind: Any) -> Any:
    """Make a place on the stack for a value that a loop changes."""
    from numba.core import cgutils

    return cgutils.alloca_once(builder, kind)


def call(builder: Any, name: str, returns: Any, arguments: list[Any]) -> Any:
    """Call a function of LLVM or of the C library."""
    from llvmlite import ir
    from numba.core import cgutils

    kind = ir.FunctionType(returns, [each.type for each in arguments])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, arguments)


def pointer(builder: Any, address: Any, kind: Any) -> Any:
    """Return an address as a pointer to a value of a type."""
    return builder.inttoptr(address, kind.as_pointer())
