"""Addresses of what an instruction touches, checked where ``FASTSCORE_CHECKED`` asks for it."""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.np import arrayobj

from fastscore_jit.compiling import CHECKED
from fastscore_jit.llvm import integer

I64 = ir.IntType(64)
_FAULT = "fastscore_fault"
_FAULT_KIND = ir.ArrayType(I64, 3)


def first_item(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return the address of an array's first item."""
    struct = arrayobj.make_array(kind)(context, builder, array)
    return builder.ptrtoint(struct.data, I64)


def address_of(context: Any, builder: Any, kind: Any, base: Any, index: Any, width: Any) -> Any:
    """Return the address ``index`` bytes after a base; as many bytes are touched there.

    The base is an array or a view (`memory.View`).
    """
    if isinstance(kind, types.Array):
        struct = arrayobj.make_array(kind)(context, builder, base)
        address = builder.ptrtoint(struct.data, I64)
        length = builder.mul(struct.nitems, struct.itemsize)
    else:
        address, length = (builder.extract_value(base, member) for member in (0, 1))
    if CHECKED:
        check(context, builder, index, length, width)
    return builder.add(address, index)


def check(context: Any, builder: Any, index: Any, length: Any, width: Any) -> None:
    """Leave the kernel with an error where ``width`` items from ``index`` on pass the end."""
    within = builder.and_(
        builder.icmp_signed(">=", index, integer(0)),
        builder.icmp_signed("<=", index, builder.sub(length, width)),
    )
    with cgutils.if_unlikely(builder, builder.not_(within)):
        fault = _fault(builder.module)
        for member, word in enumerate((index, length, width)):
            builder.store(word, builder.gep(fault, [integer(0), integer(member)]))
        context.call_conv.return_user_exc(builder, IndexError, ("out of bounds",))


def fault_words(builder: Any) -> list[Any]:
    """Return index, length and width of what failed last."""
    fault = _fault(builder.module)
    return [builder.load(builder.gep(fault, [integer(0), integer(place)])) for place in range(3)]


def _fault(module: Any) -> Any:
    """Return the module's note of a failed access, one for all modules that are linked."""
    found = module.globals.get(_FAULT)
    if found is None:
        found = ir.GlobalVariable(module, _FAULT_KIND, _FAULT)
        found.linkage = "linkonce_odr"
        found.initializer = ir.Constant(_FAULT_KIND, [0, 0, 0])
    return found


def _checked_index(context: Any, builder: Any, index: Any, length: Any, axis: Any = None) -> None:
    check(context, builder, index, length, integer(1))


if CHECKED:
    cgutils.do_boundscheck = _checked_index  # Numba's own error does not say which index
