"""Time and memory of four kernels over rows: ``python -m benchmarks.growth [--json] [--plot]``.

Each point is measured in a process of its own, on one thread: the median CPU time of some calls,
and the most memory that the process held during them, inputs included.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, publish
from benchmarks.harness import SEED, host

STATUS = Path("/proc/self/status")
REPETITIONS = 3
DIMENSION = 64
TEXTS = 20_000


@dataclass(frozen=True)
class Point:
    """What one kernel cost at one number of rows."""

    kernel: str
    rows: int
    cpu_ns: float
    wall_ns: float
    input_mb: float
    peak_mb: float
    call_mb: float


def levenshtein(rows: int) -> Callable[[], Any]:
    """Make two columns of sentences of 15 to 60 characters, each row with bytes of its own."""
    import numpy as np
    import pyarrow as pa
    from fastscore_kernels import levenshtein_pairs

    rng = np.random.default_rng(SEED)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz      "))
    pool = pa.array(
        ["".join(rng.choice(letters, size)) for size in rng.integers(15, 61, TEXTS)],
        pa.large_string(),
    )
    a, b = (pool.take(pa.array(rng.integers(0, TEXTS, rows))) for _ in range(2))
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
    """Return a field of this process's status in 10^6 bytes, or its peak where there is none."""
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
    """Measure one point in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth", "--point", kernel, str(rows)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Point(**json.loads(done.stdout))


def plot(points: list[Point], path: Path) -> None:
    """Draw time and memory over rows."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--point", nargs=2, metavar=("KERNEL", "ROWS"), help="measure one here")
    parser.add_argument("--most", type=int, default=10_000_000, help="rows of the last point")
    parser.add_argument("--json", type=Path, help="file to write the points to")
    parser.add_argument("--plot", type=Path, help="SVG file to draw")
    options = parser.parse_args()
    if options.point:
        print(json.dumps(asdict(measure_here(options.point[0], int(options.point[1])))))
        return
    described = host()
    print(json.dumps(described))
    print("| kernel | rows | CPU ns/row | million rows/s | MB with inputs | MB of the call |")
    print("|---|---|---|---|---|---|")
    points = []
    for kernel, (label, _) in KERNELS.items():
        rows = 10_000
        while rows <= options.most:
            point = measure(kernel, rows)
            points.append(point)
            publish([Figure(what=label, rows=rows, unit="CPU ns/row", ours=point.cpu_ns)])
            print(
                f"| {label} | {rows:,} | {point.cpu_ns:.0f} | {1e3 / point.cpu_ns:.2f} "
                f"| {point.peak_mb:.0f} | {point.call_mb:.1f} |",
                flush=True,
            )
            rows *= 10
    if options.json:
        found = {"host": described, "points": [asdict(point) for point in points]}
        options.json.write_text(json.dumps(found, indent=1))
    if options.plot:
        plot(points, options.plot)


if __name__ == "__main__":
    main()
