"""A process that compiles kernels: reads their names from stdin, writes results to stdout."""

import contextlib
import gc
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fastscore_jit import objects
from fastscore_jit.calling import entry_of, link
from fastscore_jit.declaring import Declaration
from fastscore_jit.system import lock_file, make_private_folder, open_descriptor

_NOTICE_SECONDS = 1.0
LOCK_TIMEOUT_SECONDS = float(os.environ.get("FASTSCORE_COMPILE_PATIENCE", "30"))
_POLL_SECONDS = 0.05
_OBJECTS_PER_COLLECTION = 500_000  # few cycles, but 5 % of the time


def main() -> None:
    """Compile the kernels named on stdin until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # keep the output of libraries off stdout
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    for line in sys.stdin:
        try:
            answers.write(f"done {_compiled(line.strip(), answers)}\n")
        except Exception as error:
            import traceback

            traceback.print_exc()
            answers.write(f"failed {type(error).__name__}: {str(error).splitlines()[0:1]}\n")


def _compiled(identity: str, answers: IO[str]) -> Path:
    kernel = objects.kernel_named(identity)
    with _lock_of(kernel, answers):
        found = objects.find_library(kernel)
        return found if found is not None else make_library(kernel, objects.cache_folder())


def make_library(kernel: Declaration, folder: Path) -> Path:
    """Compile a kernel into a folder and return the library."""
    from fastscore_jit.building import build

    make_private_folder(folder)
    with tempfile.TemporaryDirectory(prefix=".made-", dir=folder) as made:
        code = Path(made) / f"kernel{objects.OBJECT}"
        code.write_bytes(build(kernel, objects.processor_level()))
        library = link(code)
        try:
            _check_loads(library)  # its references must resolve
        except OSError:
            if library == code:
                raise
            _check_loads(code)
            library = code  # not loadable from here, as on `noexec`
        return objects.keep_library(kernel, folder, library)


def _check_loads(library: Path) -> None:
    descriptor = open_descriptor(library)
    try:
        entry_of(library, descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _lock_of(kernel: Declaration, answers: IO[str]) -> Iterator[None]:
    """Lock a kernel, or continue without the lock after a timeout."""
    path = objects.cache_folder() / f"{objects.stem(kernel)}.lock"
    with path.open("a+") as handle:
        started, notified, held = time.monotonic(), False, False
        while not held and (waited := time.monotonic() - started) <= LOCK_TIMEOUT_SECONDS:
            with contextlib.suppress(OSError):  # a file system without locks
                held = lock_file(handle.fileno())
            if not held:
                if objects.find_library(kernel) is not None:
                    break
                if waited > _NOTICE_SECONDS and not notified:
                    notified = True
                    answers.write(f"waiting {_holder(handle, kernel)}\n")
                time.sleep(_POLL_SECONDS)
        if held:
            handle.truncate(0)
            handle.write(f"{os.getpid()}\n")
            handle.flush()
        try:
            yield
        finally:
            if held:
                with contextlib.suppress(OSError):  # Windows does not remove open files
                    path.unlink(missing_ok=True)


def _holder(handle: IO[str], kernel: Declaration) -> str:
    handle.seek(0)
    process = handle.read().strip() or "of unknown number"
    return (
        f"waiting for process {process}, which compiles {kernel.__name__}; "
        f"for {LOCK_TIMEOUT_SECONDS:.0f} s at most"
    )
