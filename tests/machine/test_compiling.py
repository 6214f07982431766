"""Compiled kernels: where they are kept, several processes at once, damage, declared types."""

import ast
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import fastscore_kernels
import fastscore_machine
import fastscore_readers
import numpy as np
import pytest
from fastscore_kernels import levenshtein_pairs, mean_pair_cosine_groups, text_hash128
from fastscore_machine import objects
from fastscore_machine.compiling import JIT_DISABLED, Kernel, prepared
from fastscore_readers.json.line_ends import _count_ends

import fastscore.suites
from fastscore.run.kernels import every_kernel
from tests.conftest import BRIEF, often

PACKAGES = (fastscore_kernels, fastscore_machine, fastscore_readers)
FOLDERS = [Path(package.__file__).parent for package in PACKAGES]
SUITES = Path(fastscore.suites.__file__).parent
NUMBA_ALONE = {"building.py", "bounds.py", "llvm.py"}
ALLOWED_FASTMATH = {"reassoc", "contract", "arcp", "afn", "nsz"}
ONE_KERNEL = (
    "from fastscore_kernels import segment_first_argmax as kernel;"
    "print(kernel([1.0, 3.0, 2.0], [0, 3]).tolist())"
)
ESSENTIALS = [
    "--hypothesis-profile",
    BRIEF,
    "-k",
    # the last ones read megabytes, which is for the night
    "(oracle or json or by_hand or known or layout) and not (long_lines or many_blocks or closer)",
]
compiled_only = pytest.mark.skipif(JIT_DISABLED, reason="nothing is compiled")


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


def libraries(folder):
    return [path for path in folder.rglob("*") if path.suffix in (objects.LIBRARY, objects.OBJECT)]


@pytest.fixture(scope="module")
def warm_cache(tmp_path_factory):
    """Return a cache in which `ONE_KERNEL` is compiled."""
    folder = tmp_path_factory.mktemp("warm")
    shown, _, code = outcome(start(ONE_KERNEL, folder, FASTSCORE_CACHE=str(folder / "cache")))
    assert (shown, code) == ("[1]\n", 0)
    return folder / "cache"


@compiled_only
@pytest.mark.parametrize("turn", range(often(1, 25)))
def test_several_processes_on_an_empty_cache(tmp_path, turn):
    cache = tmp_path / "cache"
    runs = [start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(cache)) for _ in range(often(3, 8))]
    outcomes = [outcome(run) for run in runs]
    assert [(shown, code) for shown, _, code in outcomes] == [("[1]\n", 0)] * len(runs)
    # who comes when it is compiled already has nothing to say
    assert any(said.startswith("fastscore: compiling 1 kernel") for _, said, _ in outcomes)
    assert [path.name.split("-")[0] for path in libraries(cache)] == [
        "fastscore_kernels.segments._first_argmax"
    ]
    assert not list(cache.rglob("*.lock"))


@compiled_only
def test_what_is_compiled_is_loaded_without_numba(tmp_path, warm_cache):
    program = (
        f"{ONE_KERNEL}; import sys;"
        "print([m for m in ('numba', 'llvmlite', 'scipy', 'polars', 'fastscore')"
        " if m in sys.modules])"
    )
    run = start(program, tmp_path, FASTSCORE_CACHE=str(warm_cache))
    assert outcome(run) == ("[1]\n[]\n", "", 0)


@compiled_only
def test_a_kernel_without_a_linker_is_loaded_by_llvm(tmp_path):
    run = start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(tmp_path / "cache"), PATH="/nowhere")
    assert outcome(run)[0] == "[1]\n"
    assert [path.suffix for path in libraries(tmp_path / "cache")] == [objects.OBJECT]


@compiled_only
@pytest.mark.parametrize("damage", [lambda code: code[:-1], lambda code: b"\0" + code[1:]])
def test_a_damaged_library_is_compiled_again(tmp_path, warm_cache, damage):
    (library,) = libraries(warm_cache)
    sound = library.read_bytes()
    library.write_bytes(damage(sound))
    shown, said, code = outcome(start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(warm_cache)))
    assert (shown, code) == ("[1]\n", 0)
    assert "compiling" in said
    library.unlink(missing_ok=True)
    for other in libraries(warm_cache):
        other.unlink()
    library.write_bytes(sound)


@compiled_only
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


@compiled_only
def test_a_cache_that_others_can_write_to_is_not_used(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    run = start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(shared / "cache"))
    assert outcome(run)[0] == "[1]\n"
    assert not libraries(shared)
    assert libraries(tmp_path / "xdg_cache_home")


HOLD = """
import fcntl, os, sys
from fastscore_kernels import segments
from fastscore_machine import objects
kernel = segments._first_argmax
handle = (objects.cache_folder() / f"{objects.stem(kernel)}.lock").open("a+")
fcntl.flock(handle, fcntl.LOCK_EX)
handle.write(f"{os.getpid()}\\n")
handle.flush()
print("held", flush=True)
sys.stdin.read()
"""


@compiled_only
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
    assert f"waiting for process {holder.pid}, which compiles _first_argmax" in said


@compiled_only
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


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastscore_kernels.nothing


def test_every_public_name_exists_and_is_documented():
    for name in fastscore_kernels.__all__:
        assert getattr(fastscore_kernels, name).__doc__


def test_a_prepared_call_reads_what_its_arrays_hold_now():
    data = np.zeros(100, np.uint8)
    count = prepared(_count_ends, data)
    assert count() == 0
    data[::10] = ord("\n")
    del data
    assert count() == 10


def test_an_argument_of_another_type_is_refused():
    kernel = Kernel(lambda: None, "uint8[:], out(int64[:, :])", "", False)
    from fastscore_machine.signatures import parse, writer

    read, written = parse(kernel.parameters, {})
    words = []
    writer(read, "argument 1,")(np.zeros(3, np.uint8), words, [])
    assert len(words) == 1
    for kind, wrong, found in (
        (read, np.zeros(3, np.int8), "int8 of shape"),
        (read, np.zeros((3, 1), np.uint8), r"shape \(3, 1\)"),
        (read, np.zeros(6, np.uint8)[::2], "not C-contiguous"),
        (written, np.broadcast_to(np.int64(0), (1, 1)), "read-only"),
    ):
        with pytest.raises(TypeError, match=found):
            writer(kind, "argument 1,")(wrong, [], [])


@pytest.mark.parametrize("text", ["uint8[3]", "text", "int64[:]:", "f(int64)"])
def test_what_is_no_type_is_refused(text):
    from fastscore_machine.signatures import parse

    with pytest.raises((TypeError, SyntaxError)):
        parse(text, {})


SUM_OF_BYTES = """
import numpy as np
from fastscore_machine.compiling import inlined, kernel
from fastscore_machine.memory import load_byte, part_of

STEP = 1

@inlined
def _at(view, index):
    return load_byte(view, index)

@kernel("uint8[:], int64", returns="int64", fastmath=False)
def total(data, stop):
    view, found = part_of(data, 0, data.size), 0
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


@pytest.mark.parametrize(
    "mode", [pytest.param("FASTSCORE_CHECKED", marks=compiled_only), "NUMBA_DISABLE_JIT"]
)
def test_an_access_after_the_end_is_named(tmp_path, mode):
    program = (
        "import numpy as np, made; data = np.ones(5, np.uint8);"
        "print(made.total(data, 5)); made.total(data, 7)"
    )
    environment = {mode: "1", "FASTSCORE_CACHE": str(tmp_path / "cache")}
    shown, said, code = run_module(tmp_path, SUM_OF_BYTES, program, **environment)
    assert (shown, code) == ("5\n", 1)
    assert "IndexError" in said
    assert "at index 5 of 5" in said
    if mode == "FASTSCORE_CHECKED":
        assert "kernel `made:total` touches 1 items" in said


@compiled_only
def test_a_checked_array_access_is_named(tmp_path):
    program = "import numpy as np, made; made.item(np.ones(5, np.uint8), 9)"
    environment = {"FASTSCORE_CHECKED": "1", "FASTSCORE_CACHE": str(tmp_path / "cache")}
    said = run_module(tmp_path, SUM_OF_BYTES, program, **environment)[1]
    assert "kernel `made:item` touches 1 items at index 9 of 5" in said


@compiled_only
def test_a_kernel_that_cannot_be_compiled_is_named(tmp_path):
    source = SUM_OF_BYTES.replace("np.int64(data[place])", "data.nothing")
    program = "import numpy as np, made; made.item(np.ones(5, np.uint8), 9)"
    environment = {"FASTSCORE_CACHE": str(tmp_path / "cache")}
    said = run_module(tmp_path, source, program, **environment)[1]
    assert "made:item was not compiled" in said


@compiled_only
def test_a_bare_address_does_not_compile(tmp_path):
    source = SUM_OF_BYTES.replace("load_byte(view, index)", "load_byte(view.address, index)")
    program = "import numpy as np, made; made.total(np.ones(5, np.uint8), 5)"
    environment = {"FASTSCORE_CACHE": str(tmp_path / "cache")}
    said = run_module(tmp_path, source, program, **environment)[1]
    assert "load_byte of int64; expected an array or a view" in said


@compiled_only
@pytest.mark.parametrize(
    ("change", "total_changes", "item_changes"),
    [
        (("STEP = 1", "STEP = 2"), True, True),  # one file
        (("", ""), False, False),
    ],
)
def test_a_digest_covers_what_a_kernel_is_made_of(tmp_path, change, total_changes, item_changes):
    program = (
        "import made; from fastscore_machine.objects import source_digest as digest;"
        "print(digest(made.total), digest(made.item))"
    )
    before = run_module(tmp_path, SUM_OF_BYTES, program)[0].split()
    after = run_module(tmp_path, SUM_OF_BYTES.replace(*change), program)[0].split()
    assert [one != other for one, other in zip(before, after, strict=True)] == [
        total_changes,
        item_changes,
    ]


@compiled_only
def test_a_digest_is_the_same_wherever_packages_are_installed(tmp_path):
    texts = {
        "made": "from fastscore_machine.compiling import kernel\nfrom part import after\n\n"
        '@kernel("int64", returns="int64", fastmath=False)\n'
        "def second_after(number):\n    return after(after(number))\n",
        "part": "from fastscore_machine.compiling import inlined\n\n"
        "@inlined\ndef after(number):\n    return number + 1\n",
    }
    program = (
        "import made; from fastscore_machine.objects import source_digest as digest;"
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


@compiled_only
def test_a_digest_covers_constants_of_other_modules(tmp_path):
    (tmp_path / "constants.py").write_text("STEP = 1\n")
    source = SUM_OF_BYTES.replace("STEP = 1", "from constants import STEP")
    program = (
        "import made; from fastscore_machine.objects import source_digest as digest;"
        "print(digest(made.total), digest(made.item))"
    )
    before = run_module(tmp_path, source, program)[0].split()
    (tmp_path / "constants.py").write_text("STEP = 2  # another\n")
    after = run_module(tmp_path, source, program)[0].split()
    assert before[0] != after[0]
    assert before[1] == after[1]


@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(ESSENTIALS, id="essentials"),
        pytest.param([], id="all", marks=pytest.mark.slow),
    ],
)
@compiled_only
def test_kernels_agree_with_the_oracles_where_nothing_is_compiled(chosen):
    tests = Path(__file__).parents[1]
    # a hundred times slower: by night no more often than by day
    environment = {name: os.environ[name] for name in os.environ if name != "FASTSCORE_NIGHTLY"}
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            str(tests / "kernels"),
            str(tests / "readers"),
            *map(str, sorted((tests / "suites").glob("*/kernels"))),
            *chosen,
        ],
        cwd=tests.parent,
        env={**environment, "NUMBA_DISABLE_JIT": "1", "FASTSCORE_EXAMPLES": "100"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:]
    assert " passed" in run.stdout


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


def sources():
    return sorted(path for folder in [*FOLDERS, SUITES] for path in folder.rglob("*.py"))


def test_every_kernel_declares_its_types_and_flags():
    declared = 0
    for path in sources():
        for node in ast.walk(ast.parse(path.read_text())):
            for decorator in getattr(node, "decorator_list", []):
                named = decorator.func if isinstance(decorator, ast.Call) else decorator
                if getattr(named, "id", "") != "kernel":
                    continue
                where = f"{path.name}: {node.name}"
                assert isinstance(decorator, ast.Call), where
                assert len(decorator.args) == 1, where
                given = {word.arg: ast.literal_eval(word.value) for word in decorator.keywords}
                assert given["fastmath"] is False or given["fastmath"] <= ALLOWED_FASTMATH, where
                declared += 1
    assert declared >= 15


def test_every_declared_type_can_be_read():
    from fastscore_machine.signatures import parse

    for kernel in every_kernel():
        names = kernel.function.__globals__
        count = kernel.function.__code__.co_argcount
        assert len(parse(kernel.parameters, names)) == count, kernel
        parse(kernel.returns, names)


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def test_numba_is_the_compiler_alone():
    for path in sources():
        tree = ast.parse(path.read_text())
        found = {name.partition(".")[0] for name in imported(tree)}
        if path.name not in NUMBA_ALONE:
            assert "numba" not in found, path
        if path.name not in {*NUMBA_ALONE, "linking.py"}:
            assert "llvmlite" not in found, path


def test_raw_memory_is_touched_in_one_place():
    for path in sources():
        if path.name not in ("llvm.py", "building.py"):
            assert "inttoptr" not in path.read_text(), path
