"""Pieces of LLVM IR that several instructions share."""

from typing import Any

from llvmlite import ir

I64 = ir.IntType(64)


def integer(value: int) -> Any:
    """Return a 64-bit constant."""
    return ir.Constant(I64, value)


def load(builder: Any, address: Any, kind: Any, align: int = 1) -> Any:
    """Load a value of any kind from an address."""
    loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
    loaded.align = align
    return loaded


def broadcast(builder: Any, value: Any, lanes: int) -> Any:
    """Repeat a value over the lanes of a vector."""
    kind = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    places = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, undefined, places)
