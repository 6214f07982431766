"""Pieces of LLVM IR that instructions share; llvmlite is imported when one is emitted."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _ir() -> Any:
    from llvmlite import ir

    return ir


def number(bits: int) -> Any:
    """Return the integer type with a number of bits."""
    return _ir().IntType(bits)


def vector(bits: int, lanes: int) -> Any:
    """Return the type of a vector of integers."""
    return _ir().VectorType(number(bits), lanes)


def float32(lanes: int = 0) -> Any:
    """Return the type of a 32-bit float, or of a vector of them."""
    return _ir().VectorType(_ir().FloatType(), lanes) if lanes else _ir().FloatType()


def void() -> Any:
    """Return the void type."""
    return _ir().VoidType()


def constant(kind: Any, value: Any) -> Any:
    """Return a constant of a type: a list of values for a vector, or one for all its lanes."""
    if isinstance(kind, _ir().VectorType) and not isinstance(value, list):
        value = [value] * kind.count
    return _ir().Constant(kind, value)


def integer(value: int) -> Any:
    """Return a 64-bit constant."""
    return constant(number(64), value)


def undefined(kind: Any) -> Any:
    """Return a value of a type whose content does not matter."""
    return _ir().Constant(kind, _ir().Undefined)


def pointer(builder: Any, address: Any, kind: Any) -> Any:
    """Return an address as a pointer to a value of a type."""
    return builder.inttoptr(address, kind.as_pointer())


def load(builder: Any, address: Any, kind: Any, align: int = 1) -> Any:
    """Load a value of any kind from an address."""
    loaded = builder.load(pointer(builder, address, kind))
    loaded.align = align
    return loaded


def store(builder: Any, value: Any, address: Any, align: int = 1) -> None:
    """Store a value of any kind to an address."""
    builder.store(value, pointer(builder, address, value.type)).align = align


def broadcast(builder: Any, value: Any, lanes: int) -> Any:
    """Repeat a value over the lanes of a vector."""
    unset = undefined(_ir().VectorType(value.type, lanes))
    first = builder.insert_element(unset, value, constant(number(32), 0))
    return builder.shuffle_vector(first, unset, constant(vector(32, lanes), 0))


def variable(builder: Any, kind: Any) -> Any:
    """Make a place on the stack for a value that a loop changes."""
    with builder.goto_entry_block():
        return builder.alloca(kind)


@contextmanager
def loop(builder: Any, count: Any) -> Iterator[Any]:
    """Open a loop, ``with loop(...) as index``: from 0 to ``count`` - 1."""
    start = builder.block
    head, body, end = (builder.append_basic_block(f"loop.{at}") for at in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(count.type)
    builder.cbranch(builder.icmp_signed("<", index, count), body, end)
    builder.position_at_end(body)
    yield index
    index.add_incoming(constant(count.type, 0), start)
    index.add_incoming(builder.add(index, constant(count.type, 1)), builder.block)
    builder.branch(head)
    builder.position_at_end(end)


def call(builder: Any, name: str, returns: Any, arguments: list[Any]) -> Any:
    """Call a function of LLVM or of the C library."""
    kind = _ir().FunctionType(returns, [each.type for each in arguments])
    function = builder.module.globals.get(name) or _ir().Function(builder.module, kind, name)
    return builder.call(function, arguments)
