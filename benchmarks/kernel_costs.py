"""Cost of kernels: time and memory by rows, and processor seconds of compilation.

``growth``: each point is measured in a separate process, on one thread: the median CPU time of some
calls, and the process's peak memory during them, including inputs.

``compile``: Numba's own compilation beside ours. Both sides compile the same functions to
equivalent object files, each in a separate process. Numba itself runs all of LLVM and emits machine
code for every function that a kernel calls, and searches it for closures, array expressions and the
like. `fastscore_jit.building` does neither.

``instructions``: instructions per row, counted by valgrind, independent of the machine's load. Two
processes differ by ten calls of the kernel, so the start of Python is excluded.

Usage: python -m benchmarks.kernel_costs growth|compile|instructions
"""

import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import Figure, describe_host, publish
from benchmarks.harness import SEED, host

STATUS = Path("/proc/self/status")
REPETITIONS = 3
DIMENSION = 64
TEXTS = 20_000


@dataclass(frozen=True)
class Point:
    """Cost of one kernel at one number of rows."""

    kernel: str
    rows: int
    cpu_ns: float
    wall_ns: float
    input_mb: float
    peak_mb: float
    call_mb: float


def levenshtein(rows: int) -> Callable[[], Any]:
    """Make two columns of sentences of 15 to 60 characters, with different bytes in each row."""
    import numpy as np
    import pyarrow as pa
    from fastscore_kernels import levenshtein_pairs

    rng = np.random.default_rng(SEED)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz      "))
    texts = min(TEXTS, rows)
    pool = pa.array(
        ["".join(rng.choice(letters, size)) for size in rng.integers(15, 61, texts)],
        pa.large_string(),
    )
    a, b = (pool.take(pa.array(rng.integers(0, texts, rows))) for _ in range(2))
    return lambda: levenshtein_pairs(a, b, threads=1)


def cosine(rows: int) -> Callable[[], Any]:
    """Make a matrix of 20,000 vectors and pairs of its rows."""
    import numpy as np
    from fastscore_kernels import cosine_pairs

    rng = np.random.default_rng(SEED)
    matrix = rng.normal(size=(TEXTS, DIMENSION)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    a, b = rng.integers(0, TEXTS, (2, rows))
    return lambda: cosine_pairs(matrix, a, b, threads=1)


def jaccard(rows: int) -> Callable[[], Any]:
    """Make two columns of sets of 2 to 23 members."""
    import numpy as np
    from fastscore_kernels import jaccard_csr

    rng = np.random.default_rng(SEED)
    columns = []
    for _ in range(2):
        sizes = rng.integers(2, 24, rows)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        # A running sum of steps of at least one ascends strictly over the whole column.
        steps = rng.integers(1, 4, offsets[-1], np.int32)
        members = np.cumsum(steps, dtype=np.int32)
        for start in range(0, rows, 1 << 16):
            stop = min(rows, start + (1 << 16))
            part = slice(offsets[start], offsets[stop])
            members[part] -= np.repeat(members[offsets[start:stop]], sizes[start:stop])
        columns.append((members, offsets))
    return lambda: jaccard_csr(*columns, threads=1)


def gini(rows: int) -> Callable[[], Any]:
    """Make groups of 10 values."""
    import numpy as np
    from fastscore_kernels import gini_ragged

    values = np.random.default_rng(SEED).gamma(2, 1, rows)
    offsets = np.append(np.arange(0, rows, 10), rows)
    return lambda: gini_ragged(values, offsets, threads=1)


KERNELS: dict[str, tuple[str, Callable[[int], Callable[[], Any]]]] = {
    "levenshtein": ("Levenshtein, 15-60 characters", levenshtein),
    "cosine": (f"pair cosine, {DIMENSION} columns", cosine),
    "jaccard": ("Jaccard, 2-23 members", jaccard),
    "gini": ("Gini, groups of 10 (a row is a value)", gini),
}


def memory(field: str) -> float:
    """Return a field of this process's status in 10^6 bytes, or its peak if there is none."""
    if STATUS.exists():
        lines = STATUS.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field))
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def measure_here(kernel: str, rows: int) -> Point:
    """Measure one point in this process."""
    _, make = KERNELS[kernel]
    make(100)()
    call = make(rows)
    forget_peak = Path("/proc/self/clear_refs")
    if forget_peak.exists():
        forget_peak.write_text("5")
    before = memory("VmRSS")
    cpu, wall = [], []
    for _ in range(REPETITIONS):
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        call()
        cpu.append(time.process_time() - cpu_start)
        wall.append(time.perf_counter() - wall_start)
    peak = memory("VmHWM")
    per_row = 1e9 / rows
    return Point(
        kernel,
        rows,
        statistics.median(cpu) * per_row,
        statistics.median(wall) * per_row,
        before,
        peak,
        peak - before,
    )


def measure(kernel: str, rows: int) -> Point:
    """Measure one point in a separate process."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.kernel_costs",
        "growth",
        "--point",
        kernel,
        str(rows),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Point(**json.loads(done.stdout))


def plot(points: list[Point], path: Path) -> None:
    """Plot time and memory by rows."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    with mpl.rc_context({"svg.hashsalt": "growth", "font.size": 9}):
        figure, (time_axes, memory_axes) = pyplot.subplots(1, 2, figsize=(9, 3.6))
        for kernel, (label, _) in KERNELS.items():
            mine = [point for point in points if point.kernel == kernel]
            rows = [point.rows for point in mine]
            time_axes.plot(rows, [p.cpu_ns * p.rows / 1e9 for p in mine], marker="o", label=label)
            memory_axes.plot(rows, [p.peak_mb for p in mine], marker="o", label=label)
        time_axes.set(ylabel="CPU seconds, one thread", title="Time of a call")
        memory_axes.set(ylabel="MB", title="Peak memory, inputs included")
        for axes in (time_axes, memory_axes):
            axes.set(xscale="log", yscale="log", xlabel="rows")
            axes.grid(alpha=0.3)
        time_axes.legend(frameon=False, fontsize=8)
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})


@click.command("growth")
@click.option("--most", default=10_000_000, show_default=True, help="Rows of the last point.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="File for the points.")
@click.option("--plot", "picture", type=click.Path(path_type=Path), help="SVG file to draw.")
@click.option("--point", type=(click.Choice(list(KERNELS)), int), hidden=True)
def growth(
    most: int, output: Path | None, picture: Path | None, point: tuple[str, int] | None
) -> None:
    """Measure time and memory of four kernels by rows."""
    if point is not None:
        click.echo(json.dumps(asdict(measure_here(*point))))
        return
    described = host()
    click.echo(json.dumps(described))
    click.echo("| kernel | rows | CPU ns/row | million rows/s | MB with inputs | MB of the call |")
    click.echo("|---|---|---|---|---|---|")
    points = []
    for kernel, (label, _) in KERNELS.items():
        rows = 10_000
        while rows <= most:
            found = measure(kernel, rows)
            points.append(found)
            publish([Figure(what=label, rows=rows, unit="CPU ns/row", ours=found.cpu_ns)])
            click.echo(
                f"| {label} | {rows:,} | {found.cpu_ns:.0f} | {1e3 / found.cpu_ns:.2f} "
                f"| {found.peak_mb:.0f} | {found.call_mb:.1f} |"
            )
            rows *= 10
    if output is not None:
        content = {"host": described, "points": [asdict(each) for each in points]}
        output.write_text(json.dumps(content, indent=1))
    if picture is not None:
        plot(points, picture)


AIM = 1.5
QUICK = ("fastscore_kernels.numbering:_number_texts", "fastscore_kernels.sets:_jaccard")
_SIDES = ("ours", "numba")
_OURS_ALONE = {
    "_Functions": ("get_pointer_to_function", "_optimize_final_module", "_finalize_specific"),
    "_Codegen": ("_add_module", "set_env"),
}


def seconds_by_kernel(side: str, names: Sequence[str]) -> dict[str, float]:
    """Compile some or all kernels in another process, the largest first.

    Returns
    -------
    dict
        Processor seconds of each.
    """
    from fastscore_jit.objects import processor_level

    level = processor_level()
    settings = {
        **os.environ,
        "NUMBA_CPU_NAME": level.processor,
        "NUMBA_CPU_FEATURES": level.features,
        "NUMBA_DISABLE_INTEL_SVML": "1",
    }
    command = [sys.executable, "-m", "benchmarks.kernel_costs", "compile", "--side", side, *names]
    done = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _compile(side: str, names: Sequence[str]) -> dict[str, float]:
    """Compile kernels in this process, without other work."""
    from fastscore_jit import building
    from fastscore_jit.objects import code_size, processor_level

    from fastscore.run.kernels import every_kernel

    if side == "numba":
        _undo(building)
    kernels = [each for each in every_kernel() if not names or each.identity in names]
    building.build(min(kernels, key=code_size), processor_level())  # objects created only once
    seconds = {}
    for kernel in sorted(kernels, key=code_size, reverse=True):
        started = time.process_time()
        building.build(kernel, processor_level())
        seconds[kernel.identity] = time.process_time() - started
    return seconds


def _undo(building: Any) -> None:
    """Restore Numba's own compilation."""
    for name, methods in _OURS_ALONE.items():
        for method in methods:
            delattr(getattr(building, name), method)


@click.command("compile")
@click.option("--quick", is_flag=True, help="Two small kernels.")
@click.option("--side", type=click.Choice(_SIDES), hidden=True)
@click.argument("kernels", nargs=-1)
def compile_kernels(quick: bool, side: str | None, kernels: tuple[str, ...]) -> None:
    """Compile KERNELS (module:name; default: all) both ways."""
    if side is not None:
        click.echo(json.dumps(_compile(side, kernels)))
        return
    click.echo(describe_host())
    ours, theirs = (seconds_by_kernel(each, QUICK if quick else kernels) for each in _SIDES)
    click.echo("| kernel | Numba's own way, s | ours, s |\n|---|--:|--:|")
    for name in sorted(theirs, key=lambda each: -theirs[each]):
        click.echo(f"| `{name}` | {theirs[name]:.2f} | {ours[name]:.2f} |")
    own, others = sum(ours.values()), sum(theirs.values())
    click.echo(f"| all {len(ours)} | {others:.2f} | {own:.2f} |")
    publish(
        [
            Figure(
                what="kernels compiled",
                rows=len(ours),
                unit="processor s",
                ours=own,
                peer="Numba's own way",
                theirs=others,
                ratio=others / own,
                aim=None if quick or kernels else AIM,
            )
        ]
    )


COUNTED = re.compile(r"Collected : (\d+)")
VALGRIND_LEVEL = "x86-64-v3"
"""Valgrind does not support AVX-512."""


VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
MORE_CALLS = 10


def count(kernel: str, rows: int) -> float:
    """Return the instructions of one call, compiled before."""
    words = [sys.executable, "-m", "benchmarks.kernel_costs", "instructions", "--rows", str(rows)]
    settings = {**os.environ, "PYTHONHASHSEED": "0", "POLARS_MAX_THREADS": "1"}
    settings |= {"OPENBLAS_NUM_THREADS": "1"}
    if platform.machine() == "x86_64":
        settings["FASTSCORE_PROCESSOR"] = VALGRIND_LEVEL

    def run(prefix: Sequence[str], calls: int) -> str:
        command = [*prefix, *words, "--calls", kernel, str(calls)]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
        return done.stderr

    run((), 1)
    once, more = (int(COUNTED.findall(run(VALGRIND, 1 + n))[-1]) for n in (0, MORE_CALLS))
    return (more - once) / MORE_CALLS


@click.command("instructions")
@click.option("--rows", default=2_000, show_default=True, help="Rows of a call.")
@click.option("--calls", type=(click.Choice(list(KERNELS)), int), hidden=True)
def instructions(rows: int, calls: tuple[str, int] | None) -> None:
    """Count the instructions of four kernels at one size."""
    if calls is not None:
        _, make = KERNELS[calls[0]]
        call = make(rows)
        for _ in range(calls[1]):
            call()
        return
    click.echo(describe_host())
    click.echo("| kernel | rows | instructions/row |\n|---|--:|--:|")
    for kernel, (label, _) in KERNELS.items():
        each = count(kernel, rows) / rows
        publish([Figure(what=label, rows=rows, unit="instructions/row", ours=each)])
        click.echo(f"| {label} | {rows:,} | {each:,.1f} |")


main = click.Group("kernel_costs", commands=[growth, compile_kernels, instructions])


if __name__ == "__main__":
    main()
