"""Kernels: declared functions that run compiled, without the GIL.

A process with all kernels compiled never imports Numba.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from fastscore_jit.calling import LoadedKernel, load_kernel
from fastscore_jit.declaring import JIT_DISABLED, Declaration, Function, register
from fastscore_jit.workers import compiled_library


class Kernel(Declaration):
    """A compiled entry point, loaded (and if necessary compiled) at its first call."""

    def __init__(self, *declared: Any) -> None:
        super().__init__(*declared)
        self._loaded: LoadedKernel | None = None
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel without the GIL."""
        return (self._loaded or self.load())(*arguments)

    def prepared(self, *arguments: Any) -> Callable[[], Any]:
        """Return a call with these arguments, which are converted once: see `prepared`."""
        return (self._loaded or self.load()).prepared(*arguments)

    def load(self) -> LoadedKernel:
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
    return (
        kernel.prepared(*arguments) if isinstance(kernel, Kernel) else partial(kernel, *arguments)
    )


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
        register(made)
        return cast("Function", made)

    return declare
