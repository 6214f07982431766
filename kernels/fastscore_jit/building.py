"""Machine code of kernels, compiled by Numba: the only module that imports it.

All that is used of Numba's inner parts is here. `tests/jit/test_numba.py` names each, and what
breaks without it.

A kernel and all functions that it calls become one LLVM module with one C function,
``fastscore_kernel``. Its arguments and results are eight-byte words: pointers and lengths of
arrays, and numbers. The parts of Numba's runtime that kernels need (memory of new arrays) are
defined in the module itself, so the code has no other dependencies. With ``FASTSCORE_CHECKED``,
addresses are checked.
"""

import types as python_types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.core import cgutils, codegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.runtime import nrtdynmod
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic
from numba.np import arrayobj

from fastscore_jit.declaring import (
    CHECKED,
    COMPILE_OPTIONS,
    ENTRY,
    ArrayType,
    Declaration,
    Instruction,
    NamedTupleType,
    Type,
)
from fastscore_jit.llvm import integer, load
from fastscore_jit.objects import Level, names_in

I64 = ir.IntType(64)
_FAULT = "fastscore_fault"
_FAULT_KIND = ir.ArrayType(I64, 3)


def first_item(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Return the address of an array's first item."""
    struct = arrayobj.make_array(kind)(context, builder, array)
    return builder.ptrtoint(struct.data, I64)


def address_of(context: Any, builder: Any, kind: Any, base: Any, index: Any, width: Any) -> Any:
    """Return the address ``index`` bytes after a base, where ``width`` bytes are accessed.

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
    """Leave the kernel with an error if ``width`` items from ``index`` on pass the end."""
    within = builder.and_(
        builder.icmp_signed(">=", index, integer(0)),
        builder.icmp_signed("<=", index, builder.sub(length, width)),
    )
    with builder.if_then(builder.not_(within), likely=False):
        fault = _fault(builder.module)
        for member, word in enumerate((index, length, width)):
            builder.store(word, builder.gep(fault, [integer(0), integer(member)]))
        context.call_conv.return_user_exc(builder, IndexError, ("out of bounds",))


def fault_words(builder: Any) -> list[Any]:
    """Return index, length and width of the last failed access."""
    fault = _fault(builder.module)
    return [builder.load(builder.gep(fault, [integer(0), integer(place)])) for place in range(3)]


def _fault(module: Any) -> Any:
    """Return the module's record of a failed access, shared by all linked modules."""
    found = module.globals.get(_FAULT)
    if found is None:
        found = ir.GlobalVariable(module, _FAULT_KIND, _FAULT)
        found.linkage = "linkonce_odr"
        found.initializer = ir.Constant(_FAULT_KIND, [0, 0, 0])
    return found


def _checked_index(context: Any, builder: Any, index: Any, length: Any, axis: Any = None) -> None:
    check(context, builder, index, length, integer(1))


_SHAPE, _DATA = 24, 40  # of numpy's PyArrayInterface
ANY = "bytes(any)"
_WORDS = I64.as_pointer()
_RUNTIME = Path(__file__).with_name("runtime.ll")
_WINDOWS = Path(__file__).with_name("windows.ll")


def build(kernel: Declaration, level: Level) -> bytes:
    """Compile a kernel to an object file, for the level that Numba was imported for."""
    return emit(optimised_module(kernel), level.processor, level.features)


@global_compiler_lock
def optimised_module(kernel: Declaration) -> Any:
    """Return the LLVM module of a kernel and of all that it calls except the C library."""
    _disable_function_passes()
    module = _compiled(kernel)
    module.link_in(llvm.parse_assembly(_RUNTIME.read_text()))
    return module


def emit(module: Any, processor: str, features: str = "", triple: str = "") -> bytes:
    """Emit position-independent machine code of a module, by default for this system.

    All supported systems are 64-bit and little-endian.
    """
    triple = triple or llvm.get_process_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=processor, features=features, opt=3, reloc="pic", codemodel="default"
    )
    if "windows" in triple:
        module.link_in(llvm.parse_assembly(_WINDOWS.read_text()))
    module.triple, module.data_layout = triple, str(machine.target_data)
    code: bytes = machine.emit_object(module)
    return code


def _compiled(kernel: Declaration) -> Any:
    """Return the kernel's LLVM module, with its entry."""
    parameters, returns = kernel.types()
    given = tuple(_numba_type(kind) for kind in parameters)
    counted = kernel.allocates or CHECKED
    options = {} if counted else {"_nrt": False}
    dispatcher = _jit(kernel.fastmath, options)(_compilable_function(kernel.function, counted))
    dispatcher.compile(given)
    result = dispatcher.overloads[given]
    _check_returned(kernel, returns, result.signature.return_type)
    library = result.target_context.codegen().create_library(ENTRY)
    library.add_linking_library(result.library)
    module = library.create_ir_module(ENTRY)
    _write_entry(module, result, given)
    library.add_ir_module(module)
    library.finalize()
    return library.module


class _Functions(codegen.JITCodeLibrary):
    """Functions to be linked into a kernel. Only the kernel is optimised and compiled."""

    @property
    def module(self) -> Any:
        """The LLVM module."""
        return self._final_module

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # nothing is called here

    def _optimize_final_module(self) -> None:
        if self.name == ENTRY:
            super()._optimize_final_module()

    def _finalize_specific(self) -> None:
        pass


class _Codegen(codegen.JITCPUCodegen):
    """Numba's code generator without machine code for each function, which takes most time."""

    _library_class = _Functions

    def _add_module(self, module: Any) -> None:
        pass

    def set_env(self, env_name: str, env: Any) -> None:
        pass


@cache
def _disable_function_passes() -> None:
    """Make Numba link the functions of a kernel, instead of optimising each by LLVM.

    Numba's runtime is compiled first. Its reference counting is linked unoptimised, as emitting
    machine code would change it to this processor's instructions.
    """
    if CHECKED:
        cgutils.do_boundscheck = _checked_index  # Numba's own error does not say which index
    context = cpu_target.target_context
    context.refresh()
    rtsys.initialize(context)
    context._internal_codegen = _Codegen("kernels")
    rtsys._library = nrtdynmod.compile_nrt_functions(context)


def _check_returned(kernel: Declaration, declared: tuple[Type, ...], found: Any) -> None:
    """Refuse a kernel whose return types differ from its declaration."""
    members = _members(found)
    wanted = [_numba_type(kind) for kind in declared]
    same = len(members) == len(wanted) and all(
        one == other
        or (isinstance(one, types.Array) and one.copy(readonly=True) == other.copy(readonly=True))
        for one, other in zip(members, wanted, strict=True)
    )
    if not same:
        raise TypeError(f"{kernel.identity} returns {found}; expected {kernel.returns or 'None'}")


def _members(returned: Any) -> list[Any]:
    """Return the types of the returned values."""
    if returned == types.none:
        return []
    several: Any = isinstance(returned, types.BaseTuple)
    return [*returned] if several else [returned]


def _numba_type(kind: Type) -> Any:
    if isinstance(kind, tuple):
        return types.Tuple([_numba_type(member) for member in kind])
    if isinstance(kind, NamedTupleType):
        return types.NamedTuple([_numba_type(member) for member in kind.members], kind.named)
    if isinstance(kind, ArrayType):
        item = from_dtype(kind.dtype)
        return types.Array(item, kind.dimensions, "C", readonly=not kind.written)
    return from_dtype(kind)


# Functions called by name become Numba's here. In our modules they are plain functions with a mark,
# so declaring them takes no time.


def _compilable_function(function: Callable[..., Any], counted: bool) -> Callable[..., Any]:
    """Copy a function, with those that it calls as Numba knows them."""
    names = dict(function.__globals__)
    for name in names_in(function.__code__):
        if name in names:
            names[name] = _compilable(names[name], counted)
    copied = python_types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copied.__module__, copied.__qualname__ = function.__module__, function.__qualname__
    return copied


def _compilable(value: Any, counted: bool) -> Any:
    if isinstance(value, Declaration):
        fastmath = frozenset(value.fastmath) if value.fastmath else False
        return _callable(value.function, fastmath, counted)
    if isinstance(value, Instruction):
        return _intrinsic(value)
    if hasattr(value, COMPILE_OPTIONS):
        return _callable(value, False, counted)
    return value


@cache
def _callable(function: Callable[..., Any], fastmath: Any, counted: bool) -> Any:
    """Return the version of a function that kernels call, with or without reference counting."""
    return _jit(fastmath, getattr(function, COMPILE_OPTIONS, {}))(
        _compilable_function(function, counted)
    )


def _jit(fastmath: Any, options: dict[str, Any]) -> Any:
    unwrapped: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(
        nogil=True,
        fastmath=fastmath,
        error_model="numpy",
        boundscheck=CHECKED,
        **unwrapped,
        **options,
    )


@cache
def _intrinsic(declared: Instruction) -> Any:
    """Make Numba's intrinsic of an instruction: its types, and the IR that it emits."""
    before, _, after = declared.types.partition("->")
    wanted = [each.strip() for each in before.split(",") if each.strip()]
    results = [getattr(types, name.strip()) for name in after.split(",") if name.strip()]
    returned = types.Tuple(results) if len(results) > 1 else [*results, types.void][0]

    def typed(given: tuple[Any, ...]) -> Any:
        kinds: list[Any] = []
        for name in wanted:
            kind = given[len(kinds)]
            if name.startswith("bytes("):
                if not isinstance(kind, types.BaseNamedTuple | types.Array):
                    raise numba.TypingError(
                        f"{declared.__name__} of {kind}; expected an array or a view"
                    )
                kinds += [kind, types.int64, *[types.int64] * (name == ANY)]
            else:
                kinds.append(kind if name == "array" else getattr(types, name))
        return returned(*kinds)

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, at = [], 0
        for name in wanted:
            if name.startswith("bytes("):
                kind, base, index = signature.args[at], arguments[at], arguments[at + 1]
                at += 2
                width = integer(int(name[6:-1])) if name != ANY else arguments[at]
                at += name == ANY
                values.append(address_of(context, builder, kind, base, index, width))
            elif name == "array":
                values.append(first_item(context, builder, signature.args[at], arguments[at]))
                at += 1
            else:
                values.append(arguments[at])
                at += 1
        found = declared.emit(builder, *values)
        if len(results) > 1:
            return context.make_tuple(builder, returned, found)
        return context.get_dummy_value() if found is None else found

    count = len(wanted) + sum(name.startswith("bytes(") for name in wanted) + wanted.count(ANY)
    return _of_arity(declared.__name__, count, typed, emit)


def _of_arity(name: str, count: int, typed: Any, emit: Any) -> Any:
    """Give an intrinsic a number of parameters, which Numba reads from the function's code."""
    parameters = ", ".join(f"p{place}" for place in range(count))
    names: dict[str, Any] = {"typed": typed, "emit": emit}
    exec(  # the only way to make a function whose number of parameters is known at run time
        f"def {name}(context, {parameters}):\n    return typed(({parameters},)), emit\n", names
    )
    return intrinsic(names[name])


# The entry: words in, words out.


def _write_entry(module: Any, result: Any, given: tuple[Any, ...]) -> None:
    """Emit the C function that unpacks a kernel's arguments from words and stores its results."""
    kind = ir.FunctionType(ir.IntType(32), [_WORDS, _WORDS])
    entry = ir.Function(module, kind, name=ENTRY)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = _words(builder, entry.args[0])
    context = result.target_context
    values = [_value(context, builder, each, words) for each in given]
    called = context.declare_function(module, result.fndesc)
    returned = result.signature.return_type
    status, found = context.call_conv.call_function(builder, called, returned, given, values)
    out = iter(range(1 << 20))
    with builder.if_then(status.is_ok):
        if returned != types.none:
            found = context.get_returned_value(builder, returned, found)
            for place, member in enumerate(_members(returned)):
                one = isinstance(returned, types.BaseTuple)
                value = builder.extract_value(found, place) if one else found
                for word in _result_words(context, builder, member, value):
                    builder.store(word, builder.gep(entry.args[1], [integer(next(out))]))
    if CHECKED:
        with builder.if_then(status.is_error):
            for place, word in enumerate(fault_words(builder)):
                builder.store(word, builder.gep(entry.args[1], [integer(place)]))
    builder.ret(status.code)


def _words(builder: Any, pointer: Any) -> Iterator[Any]:
    place = 0
    while True:
        yield builder.load(builder.gep(pointer, [integer(place)]))
        place += 1


def _word_at(builder: Any, address: Any, offset: int) -> Any:
    return load(builder, builder.add(address, integer(offset)), I64, align=8)


def _value(context: Any, builder: Any, kind: Any, words: Iterator[Any]) -> Any:
    """Build a Numba value from the next words."""
    if isinstance(kind, types.BaseTuple):
        members = [_value(context, builder, member, words) for member in _members(kind)]
        return context.make_tuple(builder, kind, members)
    if isinstance(kind, types.Array):
        array = arrayobj.make_array(kind)(context, builder)
        described = next(words)
        lengths, first = (_word_at(builder, described, place) for place in (_SHAPE, _DATA))
        data = builder.inttoptr(first, array.data.type)
        shape = [_word_at(builder, lengths, 8 * axis) for axis in range(kind.ndim)]
        size = integer(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        strides = [size]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        arrayobj.populate_array(
            array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None
        )
        return array._getvalue()
    word = next(words)
    if isinstance(kind, types.Float):
        number = builder.bitcast(word, ir.DoubleType())
        return number if kind.bitwidth == 64 else builder.fptrunc(number, ir.FloatType())
    if isinstance(kind, types.Boolean):
        return builder.icmp_unsigned("!=", word, integer(0))
    return word if kind.bitwidth == 64 else builder.trunc(word, ir.IntType(kind.bitwidth))


def _result_words(context: Any, builder: Any, kind: Any, value: Any) -> Iterator[Any]:
    """Yield the words of a result. An array's are its owner, data pointer and shape."""
    if isinstance(kind, types.Array):
        array = arrayobj.make_array(kind)(context, builder, value)
        yield builder.ptrtoint(array.meminfo, I64)
        yield builder.ptrtoint(array.data, I64)
        yield from (builder.extract_value(array.shape, axis) for axis in range(kind.ndim))
    elif isinstance(kind, types.Float):
        wide = value if kind.bitwidth == 64 else builder.fpext(value, ir.DoubleType())
        yield builder.bitcast(wide, I64)
    elif isinstance(kind, types.Boolean):
        yield builder.zext(value, I64)
    elif kind.bitwidth == 64:
        yield value
    else:
        yield builder.sext(value, I64) if kind.signed else builder.zext(value, I64)


assert np.dtype(np.intp).itemsize == 8, "a word is eight bytes"
