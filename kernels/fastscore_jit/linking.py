"""From object code to what can be called: a shared library, or LLVM's loader where no linker is."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from fastscore_jit.objects import LIBRARY

_held: list[Any] = []


def link(code: Path) -> Path:
    """Make a shared library of an object file; return the object file where that is impossible.

    What the code calls of the C library is found in the process that loads it.
    """
    library = code.with_suffix(LIBRARY)
    commands = [[name, "-shared", "-o", str(library), str(code)] for name in ("ld", "ld.lld")]
    lookup = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else ["-nostdlib"]
    commands += [
        [name, "-shared", *lookup, *command[2:]]
        for name in ("cc", "gcc", "clang")
        for command in commands[:1]
    ]
    for command in commands:
        program = shutil.which(command[0])
        if program is None or (sys.platform == "darwin" and command[0].startswith("ld")):
            continue
        done = subprocess.run([program, *command[1:]], capture_output=True, check=False)
        if done.returncode == 0:
            code.unlink()
            return library
    return code


def entry_address(code: Path, name: str) -> int:
    """Load object code by LLVM and return a function's address; it stays loaded."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_path(str(code)))
    engine.finalize_object()
    _held.append(engine)
    address: int = engine.get_function_address(name)
    return address
