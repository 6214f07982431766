"""Kernels as libraries of Windows, called under Wine as tests call them here.

    python -m tests.jit.wine FOLDER [TEST ...]

Calls that tests make of kernels are kept with all that they write. What they write beyond their
results depends on the level of the processor: ``FASTSCORE_PROCESSOR`` must be that of `SETTINGS`.
The kernels are emitted for Windows, linked by lld and called by a program of Windows, which must
write the same to the last bit.
"""

import os
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastscore_jit.compiling import Kernel, word_formats
from fastscore_jit.declaring import ArrayType, NamedTupleType
from fastscore_readers import csv_records

from tests.jit.lowered import SETTINGS

PLACE, MOST_BYTES, MOST_CALLS = 0x2000_0000_0000, 4 << 20, 5
LINKER, COMPILER = "lld-link", "x86_64-w64-mingw32-gcc"
WINE = "/usr/lib/wine/wine64"  # of Debian, which has no command for it
SOURCE = Path(__file__).with_name("wine.c")
LIBRARIES = Path("/usr/x86_64-w64-mingw32/lib")
TARGET = "x86_64-pc-windows-msvc"
BY_DESCRIPTOR = {"fastscore_kernels.file_rows:_read_rows"}
"""Kernels that read open files, which another process has not."""

_CALL = Kernel.__call__
"""As it is before calls are recorded."""


def main(name: str, *tests: str) -> None:
    """Keep the calls of tests, make them again under Wine and print what differs."""
    folder, recorder = Path(name).resolve(), Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "__call__", lambda *given: recorder.call(*given))
        patch.setattr(csv_records, "prepared", lambda *given: lambda: recorder.call(*given))
        assert pytest.main(["-q", "-p", "no:cacheprovider", *tests]) == 0
    names = sorted({call.kernel.identity for call in recorder.calls})
    command = [sys.executable, "-m", "tests.jit.lowered", str(folder), *names]
    subprocess.run(command, env={**os.environ, **SETTINGS}, check=True)
    differing = run_under_wine(folder, recorder.calls)
    print(f"wine: {len(names)} kernels, {len(recorder.calls)} calls, differing: {differing}")
    print(f"wine: bound to this process: {sorted(recorder.skipped - set(names))}")
    assert not differing


class Call:
    """A call of a kernel in memory that another process can have at the same place."""

    def __init__(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        self.kernel, self.status = kernel, 0
        self.parameters, self.returns = (
            [each for kind in kinds for each in _leaves(kind)] for kinds in kernel.types()
        )
        given = [each for argument in arguments for each in _flat(argument)]
        self.written: list[tuple[int, Any]] = []
        self.memory = bytearray(8 * 64)
        pairs = zip(self.parameters, given, strict=True)
        words = b"".join([self._word(kind, value) for kind, value in pairs])
        results = list(_result_places(self.returns))
        head = [self._put(words), self._put(bytes(8 * 64)), 0, len(results)]
        head += [number for place in results for number in place]
        self.memory[: 8 * len(head)] = struct.pack(f"={len(head)}Q", *head)

    def _word(self, kind: Any, value: Any) -> bytes:
        if not isinstance(kind, ArrayType):
            (form,) = word_formats(kind)
            return struct.pack(f"={form}", value)
        data = self._put(value.tobytes())
        if kind.written:
            self.written.append((data, value))
        shape = self._put(struct.pack(f"={value.ndim}q", *value.shape))
        strides = self._put(struct.pack(f"={value.ndim}q", *value.strides))
        size = value.dtype.itemsize
        described = (2, value.ndim, kind.dtype.kind.encode(), size, 0, shape, strides, data, 0)
        return struct.pack("=Q", self._put(struct.pack("=iic3xii4xQQQQ", *described)))

    def _put(self, content: bytes) -> int:
        self.memory += bytes(-len(self.memory) % 64)
        place = PLACE + len(self.memory)
        self.memory += content + bytes(64)
        return place

    def keep_results(self, returned: Any) -> None:
        """Keep what the call has written and returned here."""
        found = list(_flat(returned)) if self.returns else []
        self.arrays = [value.copy() for _, value in self.written]
        self.arrays += [each.copy() for each in found if isinstance(each, np.ndarray)]
        self.numbers = [
            struct.pack(f"={next(iter(word_formats(kind)))}", value)
            for kind, value in zip(self.returns, found, strict=True)
            if not isinstance(kind, ArrayType)
        ]

    def is_alike(self, memory: bytes) -> bool:
        """Whether another process found the same."""
        words = struct.unpack_from("=64Q", memory)
        out, found = words[1] - PLACE, []
        for place, value in self.written:
            found.append(memory[place - PLACE :][: value.nbytes])
        at = len(self.memory)
        for value in self.arrays[len(self.written) :]:
            found.append(memory[at : at + value.nbytes])
            at += value.nbytes
        numbers = []
        for kind in self.returns:
            if not isinstance(kind, ArrayType):
                numbers.append(memory[out : out + 8])
            out += 8 * (2 + kind.dimensions if isinstance(kind, ArrayType) else 1)
        is_same = found == [value.tobytes() for value in self.arrays] and at == len(memory)
        return is_same and words[2] == 0 and numbers == self.numbers


class Recorder:
    """Calls of kernels, some of each, with what they return here."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.skipped: set[str] = set()
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def call(self, kernel: Kernel, *arguments: Any) -> Any:
        """Call a kernel, and keep the call if it is small and any process can make it."""
        with self._lock:
            given = [each for argument in arguments for each in _flat(argument)]
            size = sum(each.nbytes for each in given if isinstance(each, np.ndarray))
            is_kept = self._counts[kernel.identity] < MOST_CALLS and size <= MOST_BYTES
            call = Call(kernel, arguments) if is_kept else None
            returned = _CALL(kernel, *arguments)
            is_bound = kernel.identity in BY_DESCRIPTOR
            if is_kept and (is_bound or _hold_addresses([*given, *_flat(returned)])):
                self.skipped.add(kernel.identity)
            elif call is not None:
                call.keep_results(returned)
                self.calls.append(call)
                self._counts[kernel.identity] += 1
            return returned


def run_under_wine(folder: Path, calls: list[Call]) -> list[str]:
    """Return the kernels of which a call differs under Wine."""
    program, words = folder / "wine.exe", []
    subprocess.run([COMPILER, "-O1", "-o", program, SOURCE], check=True)
    for number, call in enumerate(calls):
        code = folder / f"{call.kernel.identity.replace(':', '.')}-{TARGET}.o"
        library = code.with_suffix(".dll")
        if not library.exists():
            command = [LINKER, "/dll", "/noentry", "/nologo", "/export:fastscore_kernel"]
            needed = [LIBRARIES / f"lib{name}.a" for name in ("ucrtbase", "kernel32")]
            subprocess.run([*command, f"/out:{library}", code, *needed], check=True)
        memory = folder / f"{number}.memory"
        memory.write_bytes(call.memory)
        words += [library.name, memory.name]
    settings = {**os.environ, "WINEPREFIX": str(folder / "prefix"), "WINEDEBUG": "-all"}
    subprocess.run([WINE, program, *words], cwd=folder, env=settings, check=True)
    memories = ((folder / f"{number}.memory").read_bytes() for number in range(len(calls)))
    alike = map(Call.is_alike, calls, memories)
    return sorted(
        {call.kernel.identity for call, same in zip(calls, alike, strict=True) if not same}
    )


def _leaves(kind: Any) -> Iterator[Any]:
    if isinstance(kind, NamedTupleType):
        kind = kind.members
    if isinstance(kind, tuple):
        for member in kind:
            yield from _leaves(member)
    else:
        yield kind


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for member in value:
            yield from _flat(member)
    else:
        yield value


def _result_places(returns: list[Any]) -> Iterator[tuple[int, int, int]]:
    """Yield of each array its first word, the bytes of an item and its dimensions."""
    at = 0
    for kind in returns:
        if isinstance(kind, ArrayType):
            yield at, kind.dtype.itemsize, kind.dimensions
        at += 2 + kind.dimensions if isinstance(kind, ArrayType) else 1


def _hold_addresses(values: list[Any]) -> bool:
    """Whether whole numbers among values lead into memory of this process."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    places = [int(part, 16) for line in lines for part in line.split()[0].split("-")]
    bounds = np.array([place for place in places if place >= 1 << 32], np.uint64)
    for value in values:
        whole = np.atleast_1d(value)
        if whole.dtype.kind in "iu" and whole.itemsize == 8:
            inside = np.searchsorted(bounds, whole.astype(np.uint64), side="right") % 2
            if inside.any():
                return True
    return False


if __name__ == "__main__":
    main(*sys.argv[1:])
