"""What wheels pack: tags of platforms, shipped code, object files of other systems."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastscore_jit import objects

from tests.conftest import NIGHTLY
from tests.jit.lowered import SETTINGS, TRIPLES, defined, undefined

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook():
    pytest.importorskip("hatchling")
    found = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def fill(root, hook, *names):
    for name in names:
        file = root / hook.COMPILED / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


@pytest.mark.parametrize(
    ("version", "filled", "marked"),
    [("standard", True, True), ("standard", False, False), ("editable", True, False)],
)
def test_the_tag_names_a_platform_where_there_is_machine_code(
    hook, tmp_path, version, filled, marked
):
    if filled:
        fill(tmp_path, hook, "linux-x86_64-x86-64-v3/kernel.so")
    data = {}
    hook.KernelsHook.initialize(SimpleNamespace(root=str(tmp_path)), version, data)
    tag = "py3-none-manylinux_2_28_x86_64"
    assert data == ({"pure_python": False, "tag": tag} if marked else {})


@pytest.mark.parametrize(
    ("folder", "library", "tag"),
    [
        ("linux-x86_64-x86-64-v4b", "so", "manylinux_2_28_x86_64"),
        ("linux-aarch64-generic", "so", "manylinux_2_28_aarch64"),
        ("darwin-arm64-generic", "dylib", "macosx_14_0_arm64"),
        ("darwin-x86_64-x86-64-v3", "so", "macosx_14_0_x86_64"),
        ("win32-AMD64-x86-64", "dll", "win_amd64"),
    ],
)
def test_each_platform_has_its_tag(hook, tmp_path, folder, library, tag):
    fill(tmp_path, hook, f"{folder}/kernel.{library}")
    assert hook.platform_tag(tmp_path / hook.COMPILED) == tag


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("linux-x86_64-x86-64/k.so", "linux-aarch64-generic/k.so"), "linux-aarch64, linux-x86_64"),
        (("linux-riscv64-generic/k.so",), "linux-riscv64: expected one of"),
        (("win32-AMD64-x86-64/k.o", "win32-AMD64-x86-64/l.dll"), r"1 files .* k\.o"),
    ],
)
def test_what_no_single_platform_can_load_is_not_packed(hook, tmp_path, names, message):
    fill(tmp_path, hook, *names)
    with pytest.raises(ValueError, match=message):
        hook.platform_tag(tmp_path / hook.COMPILED)


class Fake:
    """A processor level and folders, faked; a kernel with a library in some folders."""

    def __init__(self, monkeypatch, tmp_path, level):
        self.shipped, self.cache = tmp_path / "compiled", tmp_path / "cache"
        monkeypatch.setattr(objects, "SHIPPED", self.shipped)
        monkeypatch.setattr(objects, "stem", lambda kernel: "module.kernel-source")
        monkeypatch.setattr(objects, "_listed", {})
        monkeypatch.setattr(objects, "cache_folder", lambda: self.cache)
        found = next(each for each in objects.LEVELS if each.name == level)
        monkeypatch.setattr(objects, "processor_level", lambda: found)

    def put(self, folder):
        folder.mkdir(parents=True)
        (folder / f"module.kernel-source-{objects._digest(b'code')}.so").write_bytes(b"code")

    def ship(self, *levels):
        for level in levels:
            self.put(self.shipped / objects.platform_folder(level))

    def found(self):
        path = objects.find_library(None)
        return None if path is None else path.parent.name.partition("x86-64")[2]


@pytest.mark.parametrize(
    ("level", "shipped", "found"),
    [
        ("x86-64-v4", ("x86-64", "x86-64-v3", "x86-64-v4", "x86-64-v4b"), "-v4"),
        ("x86-64-v4", ("x86-64", "x86-64-v3", "x86-64-v4b"), "-v3"),
        ("x86-64-v2", ("x86-64", "x86-64-v3", "x86-64-v4"), ""),
        ("x86-64", ("x86-64", "x86-64-v3"), ""),
        ("x86-64-v2", ("x86-64-v3", "x86-64-v4"), None),
    ],
)
def test_a_processor_gets_shipped_code_of_its_level_or_below(
    monkeypatch, tmp_path, level, shipped, found
):
    fake = Fake(monkeypatch, tmp_path, level)
    fake.ship(*shipped)
    assert fake.found() == found


def test_code_compiled_here_is_preferred_to_shipped_code_for_less(monkeypatch, tmp_path):
    fake = Fake(monkeypatch, tmp_path, "x86-64-v2")
    fake.ship("x86-64")
    fake.put(fake.cache)
    assert objects.find_library(None).parent == fake.cache


# --- object files of other systems


SOME = ("fastscore_kernels.file_rows:_read_rows", "fastscore_kernels.inequality:_gini")
C_LIBRARY = {"bzero", "free", "malloc", "memcpy", "memset"}
OF_SYSTEM = {"windows": {"ReadFile", "_get_osfhandle"}, "linux": {"pread"}, "darwin": {"pread"}}


def test_kernels_call_nothing_but_the_c_library(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tests.jit.lowered", str(tmp_path), *(() if NIGHTLY else SOME)],
        env={**os.environ, **SETTINGS},
        cwd=ROOT,
        check=True,
    )
    made = sorted(tmp_path.iterdir())
    assert len(made) >= (60 if NIGHTLY else len(SOME)) * len(TRIPLES)
    for path in made:
        code = path.read_bytes()
        system = next(name for name in OF_SYSTEM if name in path.name)
        assert undefined(code) <= C_LIBRARY | OF_SYSTEM[system], path.name
        assert "fastscore_kernel" in defined(code), path.name
