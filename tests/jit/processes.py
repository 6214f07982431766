"""Processes with a home and a cache of their own, and kernels that they compile."""

import os
import subprocess
import sys
from pathlib import Path

import fastscore_jit
import fastscore_kernels
import fastscore_readers

PACKAGES = (fastscore_kernels, fastscore_jit, fastscore_readers)
FOLDERS = [Path(package.__file__).parent for package in PACKAGES]


def start(program, folder, **environment):
    """Start Python with a cache, home and temporary folder of its own."""
    home = {name: str(folder / name.lower()) for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR")}
    for path in home.values():
        Path(path).mkdir(exist_ok=True)
    settings = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(FOLDERS[0].parent),
        **home,
        **environment,
    }
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(run):
    shown, said = run.communicate(timeout=300)
    return shown, said, run.returncode
