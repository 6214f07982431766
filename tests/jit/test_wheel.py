"""A wheel that carries compiled kernels says of what platform it is."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def hook():
    pytest.importorskip("hatchling")
    found = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "filled", "marked"),
    [("standard", True, True), ("standard", False, False), ("editable", True, False)],
)
def test_the_tag_names_a_platform_where_there_is_machine_code(
    hook, tmp_path, version, filled, marked
):
    folder = tmp_path / hook.COMPILED / "linux-x86_64-x86-64-v3"
    folder.mkdir(parents=True)
    if filled:
        (folder / "kernel.so").touch()
    data = {}
    hook.KernelsHook.initialize(SimpleNamespace(root=str(tmp_path)), version, data)
    assert data == ({"pure_python": False, "tag": hook.TAG} if marked else {})
