"""Compiled kernels: caches, processes, locks, digests, and kernels written for tests."""

import os
import signal
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fastscore_jit import compiling, objects
from fastscore_jit.declaring import CompilationError
from fastscore_kernels import (
    levenshtein_pairs,
    mean_pair_cosine_groups,
    segment_first_argmax,
    text_hash128,
)

from tests.conftest import often, python_process
from tests.jit.processes import FOLDERS, outcome, start
from tests.run.mounts import small_disk

ONE_KERNEL = (
    "from fastscore_kernels import gini_ragged as kernel;"
    "print([round(4 * value) for value in kernel([1.0, 3.0], [0, 2])])"
)


def libraries(folder):
    return [path for path in folder.rglob("*") if path.suffix in (objects.LIBRARY, objects.OBJECT)]


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    """Return a cache in which `ONE_KERNEL` is compiled."""
    folder = tmp_path_factory.mktemp("warm")
    shown, _, code = outcome(start(ONE_KERNEL, folder, FASTSCORE_CACHE=str(folder / "cache")))
    assert (shown, code) == ("[1]\n", 0)
    return folder / "cache"


@pytest.mark.parametrize("turn", range(often(1, 25)))
def test_several_processes_on_an_empty_cache(tmp_path, turn):
    cache = tmp_path / "cache"
    runs = [start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(cache)) for _ in range(often(3, 8))]
    outcomes = [outcome(run) for run in runs]
    assert [(shown, code) for shown, _, code in outcomes] == [("[1]\n", 0)] * len(runs)
    # who comes when it is compiled already has nothing to say
    assert any(said.startswith("fastscore: compiling kernels") for _, said, _ in outcomes)
    assert [path.name.split("-")[0] for path in libraries(cache)] == [
        "fastscore_kernels.inequality._gini"
    ]
    assert not list(cache.rglob("*.lock"))


def test_a_long_wait_is_announced_again(monkeypatch, capsys):
    # kernels that are done at once after an idle hour are not waited for
    seconds = iter([0.0, 5.0, 40.0, 41.0, 60.0, 60.0, 3660.0, 3661.0])
    monkeypatch.setattr(compiling, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(compiling, "_announced", {})
    monkeypatch.setattr(compiling, "_clock", {"spent": 0.0, "began": 0.0})
    for done in (*range(5), 9, 0, 1):
        compiling._announce(compiling.Progress(done, 9, 0.1))
    first, *more = capsys.readouterr().err.splitlines()
    assert first.startswith("fastscore: compiling kernels for this processor, once")
    assert more == [f"fastscore: still compiling after {n} s" for n in (40, 60)]


def test_what_is_compiled_is_loaded_without_numba(tmp_path, warm_cache):
    program = (
        f"{ONE_KERNEL}; import sys;"
        "print([m for m in ('numba', 'llvmlite', 'scipy', 'polars', 'fastscore')"
        " if m in sys.modules])"
    )
    run = start(program, tmp_path, FASTSCORE_CACHE=str(warm_cache))
    assert outcome(run) == ("[1]\n[]\n", "", 0)


def test_a_kernel_without_a_linker_is_loaded_by_llvm(tmp_path):
    run = start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(tmp_path / "cache"), PATH="/nowhere")
    assert outcome(run)[0] == "[1]\n"
    assert [path.suffix for path in libraries(tmp_path / "cache")] == [objects.OBJECT]


def test_llvm_loads_kernels_from_a_cache_that_is_mounted_noexec(tmp_path):
    with small_disk(tmp_path / "cache", "16m", "noexec") as cache:
        for said in ("compiling kernels", ""):
            shown, notes, code = outcome(start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(cache)))
            assert (shown, code) == ("[1]\n", 0)
            assert said in notes
        assert [path.suffix for path in libraries(cache)] == [objects.OBJECT]


def test_a_damaged_library_is_compiled_again(tmp_path, warm_cache):
    (library,) = libraries(warm_cache)
    sound = library.read_bytes()
    library.write_bytes(b"\0" + sound[1:])
    shown, said, code = outcome(start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(warm_cache)))
    assert (shown, code) == ("[1]\n", 0)
    assert "compiling" in said
    library.unlink(missing_ok=True)
    for other in libraries(warm_cache):
        other.unlink()
    library.write_bytes(sound)


def test_no_usable_home_or_cache(tmp_path):
    run = start(
        ONE_KERNEL,
        tmp_path,
        HOME="/dev/null/home",
        XDG_CACHE_HOME="/dev/null/cache",
        FASTSCORE_CACHE="/dev/null/named",
    )
    assert outcome(run)[0] == "[1]\n"
    assert libraries(tmp_path / "tmpdir")


def test_a_cache_that_others_can_write_to_is_not_used(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    run = start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(shared / "cache"))
    shown, said, _ = outcome(run)
    assert shown == "[1]\n"
    assert not libraries(shared)
    assert libraries(tmp_path / "xdg_cache_home")
    assert f"because of {shared}: others may write it (run: chmod go-w {shared})" in said


def test_a_link_that_a_group_put_into_a_cache_is_not_followed(tmp_path, warm_cache):
    """A member of the group replaces `kernels/LEVEL`; the library has the digest of its bytes."""
    (sound,) = libraries(warm_cache)
    cache, planted = tmp_path / "team", tmp_path / "planted"
    (cache / "kernels").mkdir(parents=True)
    planted.mkdir(mode=0o700)
    content = sound.read_bytes() + b"planted"
    name = f"{sound.stem.rpartition('-')[0]}-{objects._digest(content)}{sound.suffix}"
    (planted / name).write_bytes(content)
    (cache / "kernels" / sound.parent.name).symlink_to(planted)
    program = f"{ONE_KERNEL}; print('planted' in open('/proc/self/maps').read())"
    run = start(program, tmp_path, FASTSCORE_CACHE=str(cache))
    assert outcome(run)[0] == "[1]\nTrue\n"  # nobody else can write there: it is the user's own
    (cache / "kernels").chmod(0o775)
    run = start(program, tmp_path, FASTSCORE_CACHE=str(cache))
    assert outcome(run)[0] == "[1]\nFalse\n"


def test_what_is_compiled_is_loaded_again_whatever_the_umask(tmp_path):
    program = f"import os; os.umask(0o002); {ONE_KERNEL}"
    for said in ("compiling kernels", ""):
        shown, notes, code = outcome(start(program, tmp_path))
        assert (shown, code) == ("[1]\n", 0)
        assert notes.startswith(f"fastscore: {said}" if said else "")
        assert bool(notes) == bool(said)
    (library,) = libraries(tmp_path / "xdg_cache_home")
    library.chmod(0o775)
    assert "compiling kernels" in outcome(start(program, tmp_path))[1]
    assert outcome(start(program, tmp_path))[1] == ""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_each_library_is_loaded_from_its_own_descriptor():
    """Descriptors have the same number in turn, and the C library knows libraries by name."""
    levenshtein_pairs(["ab"], ["ac"])
    segment_first_argmax([1.0], [0, 1])
    mapped = Path("/proc/self/maps").read_text()
    assert "lane_distances-" in mapped
    assert "segments._first_argmax-" in mapped


def test_the_compiler_imports_nothing_from_the_folder_of_its_user(tmp_path):
    for name in ("numba", "llvmlite", "fastscore_jit", "tempfile"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')")
    program = (
        f"import os, tempfile; {ONE_KERNEL.replace(';', f'; os.chdir({str(tmp_path)!r});', 1)}"
    )
    assert outcome(start(program, tmp_path))[0] == "[1]\n"
    assert not (tmp_path / "imported").exists()


def test_a_kernel_that_is_being_compiled_counts_as_half(monkeypatch):
    """The largest come first: without it the first time left was three times the true one."""
    kernels, told = [text_hash128, segment_first_argmax, levenshtein_pairs], []
    sizes = dict(zip(kernels, (1_500, 500, 5_500), strict=True))
    monkeypatch.setattr(objects, "code_size", sizes.__getitem__)
    compilation = compiling._Compilation(kernels, told.append)
    compilation._notify()
    assert [compilation._next_kernel(), compilation._next_kernel()] == kernels[::-2]
    compilation._notify(compiled=levenshtein_pairs)
    # of 2,000 + 1,000 + 6,000: the largest, and half of the next
    assert [(each.done, each.share) for each in told] == [(0, 0.0), (1, pytest.approx(7 / 9))]


def test_a_failure_is_answered_with_the_first_line_of_its_message():
    program = """
from unittest import mock
from fastscore_jit import compiling
failure = ValueError("first line\\nsecond line")
with mock.patch("fastscore_jit.objects.kernel_named", side_effect=[failure, ValueError()]):
    compiling.main()
"""
    done = python_process(program, input="a\nb\n", check=True)
    assert done.stdout.splitlines() == ["failed ValueError: first line", "failed ValueError: "]


HOLD = """
import fcntl, os, sys
from fastscore_kernels import inequality
from fastscore_jit import compiling, objects
kernel = inequality._gini
handle = (objects.cache_folder() / f"{objects.stem(kernel)}.lock").open("a+")
fcntl.flock(handle, fcntl.LOCK_EX)
handle.write(f"{os.getpid()}\\n")
handle.flush()
print("held", flush=True)
sys.stdin.read()
"""


def test_a_stopped_process_that_compiles_stops_nobody(tmp_path):
    cache = {"FASTSCORE_CACHE": str(tmp_path / "cache"), "FASTSCORE_COMPILE_PATIENCE": "3"}
    holder = start(HOLD, tmp_path, **cache)
    try:
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        shown, said, code = outcome(start(ONE_KERNEL, tmp_path, **cache))
    finally:
        holder.kill()
        holder.communicate()
    assert (shown, code) == ("[1]\n", 0)
    assert f"waiting for process {holder.pid}, which compiles _gini" in said


@pytest.mark.parametrize("value", ["x", "-1", "nan", ""])
def test_a_patience_that_is_no_number_of_seconds_is_refused(monkeypatch, value):
    monkeypatch.setenv("FASTSCORE_COMPILE_PATIENCE", value)
    with pytest.raises(CompilationError, match=f"PATIENCE is '{value}', expected seconds from 0"):
        compiling.request([], print)


def test_loading_waits_for_no_lock(tmp_path, warm_cache):
    holder = start(HOLD, tmp_path, FASTSCORE_CACHE=str(warm_cache))
    try:
        assert holder.stdout.readline() == "held\n"
        holder.send_signal(signal.SIGSTOP)
        run = start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(warm_cache))
        assert outcome(run) == ("[1]\n", "", 0)  # after a second's wait it would say so
    finally:
        holder.kill()
        holder.communicate()
    for lock in warm_cache.rglob("*.lock"):
        lock.unlink()


def test_importing_the_package_costs_nothing(tmp_path):
    program = (
        "import sys, fastscore_kernels; dir(fastscore_kernels);"
        "print([m for m in ('numba', 'numpy', 'pyarrow', 'polars') if m in sys.modules])"
    )
    assert outcome(start(program, tmp_path))[0] == "[]\n"


def test_calls_from_several_threads_agree():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc你😀"), size)) for size in rng.integers(0, 30, 400)]
    matrix = rng.normal(size=(50, 40)).astype(np.float32)
    bounds = [0, 10, 30, 50]

    def work():
        return (
            levenshtein_pairs(texts, texts[::-1]).tolist(),
            text_hash128(texts).tolist(),
            mean_pair_cosine_groups(matrix, np.arange(50), bounds, 100, 1).tolist(),
        )

    expected, got = work(), []
    threads = [threading.Thread(target=lambda: got.append(work())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [expected] * 6


# --- kernels written for tests


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
