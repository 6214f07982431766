"""Object files of kernels for other systems, and the symbols they need there.

    python -m tests.jit.lowered FOLDER [KERNEL ...]

It is run with the settings of `SETTINGS`: what is compiled into kernels depends on the processor.
"""

import struct
import sys
from pathlib import Path

SETTINGS = {
    "FASTSCORE_PROCESSOR": "x86-64",
    "NUMBA_CPU_NAME": "x86-64",
    "NUMBA_CPU_FEATURES": "",
    "NUMBA_DISABLE_INTEL_SVML": "1",
}
TRIPLES = {
    "aarch64-unknown-linux-gnu": "generic",
    "aarch64-unknown-linux-musl": "generic",
    "arm64-apple-darwin": "generic",
    "x86_64-apple-darwin": "x86-64-v3",
    "x86_64-pc-windows-msvc": "x86-64-v3",
}


def main(folder: str, *identities: str) -> None:
    """Write an object file for each kernel and system."""
    import llvmlite.binding as llvm
    from fastscore_jit.building import emit, optimised_module
    from fastscore_jit.objects import kernel_named

    from fastscore.run.kernels import every_kernel

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for kernel in map(kernel_named, identities) if identities else every_kernel():
        text = str(optimised_module(kernel))
        for triple, processor in TRIPLES.items():
            code = emit(llvm.parse_assembly(text), processor, triple=triple)
            Path(folder, f"{kernel.identity.replace(':', '.')}-{triple}.o").write_bytes(code)


def undefined(code: bytes) -> set[str]:
    """Return the names that an object file needs and does not have: ELF, Mach-O or COFF."""
    return {name for name, is_here in symbols(code) if not is_here}


def defined(code: bytes) -> set[str]:
    """Return the names that an object file has for others."""
    return {name for name, is_here in symbols(code) if is_here}


def symbols(code: bytes) -> list[tuple[str, bool]]:
    """Return the external names of an object file, and whether each is defined there."""
    if code[:4] == b"\x7fELF":
        return _elf(code)
    if code[:4] == b"\xcf\xfa\xed\xfe":
        return _macho(code)
    return _coff(code)


def _name(table: bytes, at: int) -> str:
    return table[at : table.index(b"\0", at)].decode()


def _elf(code: bytes) -> list[tuple[str, bool]]:
    start, count = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + 64 * at) for at in range(count)]
    (table,) = (each for each in sections if each[1] == 2)
    names = code[sections[table[6]][4] :]
    found = []
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section, _, _ = struct.unpack_from("<IBBHQQ", code, at)
        if info >> 4 and name:
            found.append((_name(names, name), section != 0))
    return found


def _macho(code: bytes) -> list[tuple[str, bool]]:
    at, commands = 32, struct.unpack_from("<I", code, 16)[0]
    for _ in range(commands):
        command, size = struct.unpack_from("<II", code, at)
        if command == 2:
            first, count, names, _ = struct.unpack_from("<IIII", code, at + 8)
        at += size
    found = []
    for number in range(count):
        name, kind, _, _, value = struct.unpack_from("<IBBHQ", code, first + 16 * number)
        if kind & 1:  # what is common has a size and no section
            text = _name(code[names:], name)
            found.append((text.removeprefix("_"), bool(kind & 0x0E) or value > 0))
    return found


def _coff(code: bytes) -> list[tuple[str, bool]]:
    first, count = struct.unpack_from("<II", code, 8)
    names, at, found = code[first + 18 * count :], 0, []
    while at < count:
        short, value, section, _, kind, more = struct.unpack_from("<8sIhHBB", code, first + 18 * at)
        at += 1 + more
        if kind in (2, 105):  # external, and weak with a definition of its own
            long = struct.unpack("<II", short)
            name = _name(names, long[1]) if not long[0] else short.rstrip(b"\0").decode()
            found.append((name, section != 0 or value > 0 or kind == 105))
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
