"""The wheels of ``$FASTSCORE_WHEELS``: each has the right tag, and scores the examples alone."""

import functools
import json
import os
import platform
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fastscore_jit.objects import LEVELS, processor_level

from benchmarks.install_size import CORE, install, score_suites

FOLDER = os.environ.get("FASTSCORE_WHEELS")
WHEELS = sorted(Path(FOLDER).glob("*.whl")) if FOLDER else []
PURE = [wheel for wheel in WHEELS if wheel.stem.endswith("-none-any")]
COMPILED = [wheel for wheel in WHEELS if wheel not in PURE]

OWN = processor_level()
RUNNABLE = [level.name for level in LEVELS[LEVELS.index(OWN) :]] if OWN in LEVELS else []

pytestmark = pytest.mark.skipif(not FOLDER, reason="run by `make check-wheels`")


def libraries(wheel):
    """Return folder and kernel of each compiled kernel in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        paths = map(Path, archive.namelist())
        return {
            (path.parent.name, path.name.split("-")[0])
            for path in paths
            if path.parent.parent.name == "compiled"
        }


def test_there_is_something_to_check():
    assert WHEELS


@pytest.mark.parametrize("wheel", PURE, ids=lambda wheel: wheel.name)
def test_a_pure_wheel_has_no_machine_code(wheel):
    assert not libraries(wheel)


@pytest.mark.parametrize("wheel", COMPILED, ids=lambda wheel: wheel.name)
def test_a_wheel_has_every_kernel_for_every_level(wheel):
    found = libraries(wheel)
    levels = {folder for folder, _ in found}
    kernels = {kernel for _, kernel in found}
    assert len(kernels) >= 60
    assert found == {(folder, kernel) for folder in levels for kernel in kernels}
    if "x86_64" in wheel.name or "amd64" in wheel.name:
        lowest = LEVELS[-1].name
        assert any(folder.endswith(f"-{lowest}") for folder in levels)


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel reads ELF")
@pytest.mark.parametrize("wheel", COMPILED, ids=lambda wheel: wheel.name)
def test_the_code_needs_no_later_linux_than_the_tag_promises(wheel):
    shown = json.loads(ran("auditwheel", "show", "--json", str(wheel)))
    assert glibc_of(shown["overall_tag"]) <= glibc_of(wheel.stem.rpartition("-")[2])
    assert (shown["pure"], shown["external_libs"], shown["unsupported_isa"]) == (False, {}, False)


def glibc_of(tag):
    """Return the version of the C library that a tag names."""
    major, minor = re.match(r"manylinux_(\d+)_(\d+)_", tag).groups()
    return int(major), int(minor)


@pytest.mark.skipif(sys.platform != "darwin", reason="delocate reads Mach-O")
@pytest.mark.parametrize("wheel", COMPILED, ids=lambda wheel: wheel.name)
def test_the_code_needs_no_later_macos_than_the_tag_promises(wheel, tmp_path):
    ran("delocate-wheel", "--require-archs", platform.machine(), "-w", str(tmp_path), str(wheel))
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def ran(program, *words):
    """Run a program of this environment and return its output."""
    found = Path(sys.executable).with_name(program)
    return subprocess.run([found, *words], check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a function that installs a wheel once, a pure one with its compiler."""

    @functools.cache
    def python_with(wheel):
        folder = tmp_path_factory.mktemp("installed") / "venv"
        return install(wheel.resolve(), "compile" if wheel in PURE else CORE, folder)

    return python_with


@pytest.mark.parametrize("wheel", WHEELS, ids=lambda wheel: wheel.name)
def test_installed_alone_it_scores_the_examples(wheel, installed, tmp_path):
    score_suites(installed(wheel), tmp_path)
    assert bool(list(tmp_path.rglob("fastscore_*-*"))) == (wheel in PURE)


@pytest.mark.parametrize("level", RUNNABLE)
@pytest.mark.parametrize("wheel", COMPILED, ids=lambda wheel: wheel.name)
def test_every_level_finds_kernels_that_it_can_run(wheel, installed, level, tmp_path):
    settings = {"FASTSCORE_PROCESSOR": level, "FASTSCORE_CACHE": str(tmp_path)}
    words = [str(installed(wheel)), "-I", "-m", "fastscore", "kernels", "list"]
    if os.name == "nt":
        settings["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    shown = subprocess.run(words, check=True, capture_output=True, text=True, env=settings).stdout
    paths = [line.split(maxsplit=1)[1] for line in shown.splitlines()]
    assert len(paths) >= 60
    expected = "x86-64" if level == "x86-64-v2" else level
    assert {Path(path).parent.name.split("-", 2)[2] for path in paths} == {expected}
