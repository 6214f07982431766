"""Kernels written for tests: the access named in errors, and the scope of their digest."""

import os

from tests.jit.processes import FOLDERS, outcome, start

SUM_OF_BYTES = """
import numpy as np
from fastscore_jit.compiling import kernel
from fastscore_jit.declaring import inlined
from fastscore_jit.memory import load_byte, subview

STEP = 1

@inlined
def _at(view, index):
    return load_byte(view, index)

@kernel("uint8[:], int64", returns="int64", fastmath=False)
def total(data, stop):
    view, found = subview(data, 0, data.size), 0
    for index in range(0, stop, STEP):
        found += _at(view, index)
    return found

@kernel("uint8[:], int64", returns="int64", fastmath=False)
def item(data, place):
    return np.int64(data[place])
"""


def run_module(tmp_path, source, program, **environment):
    (tmp_path / "made.py").write_text(source)
    folders = os.pathsep.join([str(tmp_path), str(FOLDERS[0].parent)])
    run = start(program, tmp_path, PYTHONPATH=folders, **environment)
    return outcome(run)


def test_an_access_after_the_end_is_named(tmp_path):
    program = (
        "import numpy as np, made; data = np.ones(5, np.uint8);"
        "print(made.total(data, 5)); made.total(data, 7)"
    )
    environment = {"FASTSCORE_CHECKED": "1", "FASTSCORE_CACHE": str(tmp_path / "cache")}
    shown, said, code = run_module(tmp_path, SUM_OF_BYTES, program, **environment)
    assert (shown, code) == ("5\n", 1)
    assert "IndexError" in said
    assert "kernel `made:total` touches 1 items at index 5 of 5" in said


def test_a_kernel_that_cannot_be_compiled_is_named(tmp_path):
    source = SUM_OF_BYTES.replace("np.int64(data[place])", "data.nothing")
    program = "import numpy as np, made; made.item(np.ones(5, np.uint8), 9)"
    environment = {"FASTSCORE_CACHE": str(tmp_path / "cache")}
    said = run_module(tmp_path, source, program, **environment)[1]
    assert "made:item was not compiled" in said


def test_a_digest_covers_what_a_kernel_is_made_of(tmp_path):
    program = (
        "import made; from fastscore_jit.objects import source_digest as digest;"
        "print(digest(made.total), digest(made.item))"
    )
    before = run_module(tmp_path, SUM_OF_BYTES, program)[0].split()
    other = SUM_OF_BYTES.replace("STEP = 1", "STEP = 2")
    after = run_module(tmp_path, other, program)[0].split()
    assert len({*before, *after}) == 4


def test_a_digest_is_the_same_wherever_packages_are_installed(tmp_path):
    texts = {
        "made": "from fastscore_jit.compiling import kernel\nfrom part import after\n\n"
        '@kernel("int64", returns="int64", fastmath=False)\n'
        "def second_after(number):\n    return after(after(number))\n",
        "part": "from fastscore_jit.declaring import inlined\n\n"
        "@inlined\ndef after(number):\n    return number + 1\n",
    }
    program = (
        "import made; from fastscore_jit.objects import source_digest as digest;"
        "print(digest(made.second_after))"
    )
    digests = set()
    for order in ("az", "za"):
        folders = [tmp_path / order / name for name in order]
        for folder, (module, text) in zip(folders, texts.items(), strict=True):
            folder.mkdir(parents=True)
            (folder / f"{module}.py").write_text(text)
        paths = os.pathsep.join(map(str, [*folders, FOLDERS[0].parent]))
        shown, said, code = outcome(start(program, tmp_path, PYTHONPATH=paths))
        assert code == 0, said
        digests.add(shown)
    assert len(digests) == 1
