"""Linux on aarch64, under emulation: kernels, the examples of all suites, and tests of kernels.

    python -m tests.aarch64 FOLDER [TEST ...]

It needs Debian's `qemu-user` and `debootstrap`, and the rights of root. FOLDER keeps a system of
Debian (Python 3.11), the locked packages for aarch64, and compiled kernels for the next time.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
from polars.testing import assert_frame_equal

from benchmarks.install_size import SUITES, WITHOUT_MODEL
from fastscore.files import cache_root

ROOT = Path(__file__).parents[1]
MODEL = "minilm-l6-v2"
GLIBC = (17, 26, 27, 28)
TESTED = ("pytest", "pytest-xdist", "hypothesis", "scikit-learn")
WITH_VECTORS = 1e-6
INTERVALS = 1e-12
"""Confidence intervals of summaries are computed by numpy, whose sums differ by processor."""
PYTHON = """#!/bin/sh
export PYTHONHOME='{root}/usr' PYTHONPATH='{paths}'
exec qemu-aarch64 -0 "$0" -L '{root}' '{root}/usr/bin/python3.11' "$@"
"""


def main(folder: Path, tests: list[str]) -> None:
    """Create missing files, then compile, score, compare and test."""
    folder = folder.resolve()
    python = make_python(folder)
    for step, work in (
        ("kernels compiled", lambda: run(folder, python, "fastscore", "kernels", "compile")),
        ("suites scored alike", lambda: compare_suites(folder, python)),
        ("tests", lambda: run(folder, python, "pytest", "-q", *tests) if tests else None),
    ):
        started = time.monotonic()
        work()
        print(f"aarch64: {step} in {time.monotonic() - started:.0f} s", flush=True)


def make_python(folder: Path) -> Path:
    """Return a program that runs Python for aarch64, with fastscore and all that it needs."""
    system, packages, python = folder / "system", folder / "packages", folder / "python"
    if not (system / "usr/bin/python3.11").exists():
        shutil.rmtree(system, ignore_errors=True)
        system.mkdir(parents=True)
        wanted = ["--arch=arm64", "--variant=minbase", "--download-only", "--include=python3.11"]
        subprocess.run(["debootstrap", *wanted, "bookworm", system], check=True)
        for package in sorted((system / "var/cache/apt/archives").glob("*.deb")):
            subprocess.run(["dpkg", "-x", package, system], check=True)
    if not (packages / "fastscore").exists():
        shutil.rmtree(packages, ignore_errors=True)
        locked = ROOT / "requirements" / "run.lock"
        tags = ["manylinux2014_aarch64", *(f"manylinux_2_{each}_aarch64" for each in GLIBC)]
        foreign = ["--python-version", "3.11", "--only-binary", ":all:"]
        foreign += [word for tag in tags for word in ("--platform", tag)]
        install(packages, *foreign, "--no-deps", "--require-hashes", "-r", str(locked))
        install(packages, *foreign, *TESTED)
        install(packages, "--no-deps", "--no-build-isolation", str(ROOT))
    paths = os.pathsep.join(str(ROOT / name) for name in ("", "kernels", "models"))
    python.write_text(PYTHON.format(root=system, paths=f"{paths}:{packages}"))
    python.chmod(0o755)
    return python


def install(target: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", str(target), *words], check=True)


def run(folder: Path, python: Path, *words: str) -> None:
    settings = {**os.environ, "FASTSCORE_CACHE": str(folder / "cache")}
    subprocess.run([str(python), "-m", *words], check=True, cwd=ROOT, env=settings)


def compare_suites(folder: Path, python: Path) -> None:
    """Score each example on both machines: equal to the last bit, or nearly so with vectors."""
    model = folder / "cache" / "models" / MODEL
    shutil.copytree(cache_root() / "models" / MODEL, model, dirs_exist_ok=True)
    with_vectors = ("score_dialogue", [], WITH_VECTORS)
    lexical = [(suite, options, 0.0) for suite, options in SUITES.items()]
    for number, (suite, options, most) in enumerate([*lexical, with_vectors]):
        example = folder / "examples" / suite
        words = [word.format(example) for word in options]
        words += ["--embedder", "none"] if suite in WITHOUT_MODEL else []
        runs = [folder / "runs" / f"{number}-{suite}-{name}" for name in ("here", "there")]
        for program, output in zip((Path(sys.executable), python), runs, strict=True):
            shutil.rmtree(output, ignore_errors=True)
            if not example.exists():
                run(folder, program, "fastscore", "example", suite, "-o", str(example))
            score = ["score", suite, str(example / "logs"), "-o", str(output), "-q", *words]
            run(folder, program, "fastscore", *score)
        compare_runs(*runs, most)


def compare_runs(here: Path, there: Path, most: float) -> None:
    """Compare all tables of two runs."""
    names = sorted(path.relative_to(here) for path in here.rglob("*.parquet"))
    assert names == sorted(path.relative_to(there) for path in there.rglob("*.parquet"))
    assert names
    for name in names:
        frames = pl.read_parquet(here / name), pl.read_parquet(there / name)
        allowed = max(most, INTERVALS) if name.name == "summary.parquet" else most
        assert_frame_equal(*frames, check_exact=not allowed, abs_tol=allowed, rel_tol=0.0)
    print(f"aarch64: {here.name}: {len(names)} tables alike", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
