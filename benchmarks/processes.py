"""Run a command as a whole process and measure it: wall time, CPU time, peak memory.

A small separate process (this file, run as a script) starts the command: the kernel counts the
memory of the parent as part of the new process's peak.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

QUOTED_LINES = 20


class ProcessFailedError(Exception):
    """A measured command ended with an error; the message quotes the end of its output."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a process.

    Parameters
    ----------
    wall
        Seconds from start to end.
    cpu
        User and system seconds over all its threads and awaited children.
    peak_mb
        Largest resident memory, 10^6 bytes.
    """

    wall: float
    cpu: float
    peak_mb: float


def measure(command: Sequence[str], *, cwd: Path) -> Cost:
    """Run a command to its end and return its cost.

    Earlier writes are flushed to the disk first, so that the command does not wait for them.

    Raises
    ------
    ProcessFailedError
        The command's exit code is not 0.
    """
    with tempfile.TemporaryDirectory() as folder:
        log, result = Path(folder) / "log", Path(folder) / "result.json"
        os.sync()
        with log.open("wb") as stream:
            launcher = [sys.executable, "-S", "-E", __file__, str(result), *command]
            subprocess.run(launcher, cwd=cwd, stdout=stream, stderr=stream, check=False)
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        outcome = json.loads(result.read_text()) if result.exists() else {"exit_code": "unknown"}
    if outcome.pop("exit_code") != 0:
        quoted = "\n".join(lines[-QUOTED_LINES:])
        raise ProcessFailedError(f"Failed: {' '.join(command)}\n{quoted}")
    return Cost(**outcome)


def launch(result: Path, command: Sequence[str]) -> None:
    """Run a command and write its exit code and cost to a JSON file."""
    start = time.perf_counter()
    # modules are compiled once and kept, as they are where a package is installed
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    unit = 1 if sys.platform == "darwin" else 1024
    outcome = {
        "exit_code": os.waitstatus_to_exitcode(status),
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss * unit / 1e6,
    }
    result.write_text(json.dumps(outcome))


if __name__ == "__main__":
    launch(Path(sys.argv[1]), sys.argv[2:])
