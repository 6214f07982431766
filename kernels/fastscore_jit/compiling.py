"""Kernels: declared functions that run compiled, without the GIL.

A process with all kernels compiled never imports Numba.
"""

import threading
from collections.abc import Callable
from typing import Any, cast

from fastscore_jit.calling import Loaded, load_kernel
from fastscore_jit.declaring import Declaration, Function, register
from fastscore_jit.workers import compiled_library


class Kernel(Declaration):
    """A compiled entry point, loaded (and if necessary compiled) at its first call."""

    def __init__(self, *declared: Any) -> None:
        super().__init__(*declared)
        self._loaded: Loaded | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel without the GIL."""
        pack, run = self._loaded or self.load()
        words, _held = pack(arguments)
        return run(words)

    def load(self) -> Loaded:
        """Return the compiled function, compiled if necessary and loaded once per process."""
        with self._lock:
            if self._loaded is None:
                self._loaded = load_kernel(self, compiled_library(self))
        return self._loaded


def prepared(kernel: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """Return a call of a kernel with fixed arguments, for repeated calls.

    Conversion of an array argument takes some microseconds. Arrays are kept alive and must stay in
    place. Their contents may change between calls; numbers may not.
    """
    assert isinstance(kernel, Kernel)
    pack, run = kernel.load()
    words, held = pack(arguments)

    def call() -> Any:
        assert held is not None
        return run(words)

    return call


def kernel(
    parameters: str, *, returns: str = "", fastmath: bool | set[str], allocates: bool = True
) -> Callable[[Function], Function]:
    """Declare a compiled entry point.

    Parameters
    ----------
    parameters
        Types of the parameters, as in `declaring`: ``"uint8[:], int64, out(int64[:, :])"``.
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
        made = Kernel(function, parameters, returns, fastmath, allocates)
        register(made)
        return cast("Function", made)

    return declare
