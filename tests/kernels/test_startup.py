"""Cold starts: where compiled code is kept, several processes at once, threads, declared flags."""

import ast
import os
import subprocess
import sys
import threading
from pathlib import Path

import fastscore_kernels
import fastscore_readers
import numba
import numpy as np
import pytest
from fastscore_kernels import levenshtein_pairs, mean_pair_cosine_groups, text_hash128
from fastscore_machine import compiling

PACKAGE = Path(fastscore_kernels.__file__).parent
PACKAGES = (PACKAGE, Path(compiling.__file__).parent, Path(fastscore_readers.__file__).parent)
ALLOWED_FASTMATH = {"reassoc", "contract", "arcp", "afn", "nsz"}
ONE_KERNEL = (
    "from fastscore_kernels import segment_first_argmax as kernel;"
    "print(kernel([1.0, 3.0, 2.0], [0, 3]).tolist())"
)
ESSENTIALS = [
    "--hypothesis-profile",
    "kernels-brief",
    "-k",
    "oracle or json or by_hand or known or layout",
]
compiled_only = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled or cached"
)


def start(program, folder, **environment):
    """Start Python with a cache, home and temporary folder of its own."""
    home = {name: str(folder / name.lower()) for name in ("HOME", "XDG_CACHE_HOME", "TMPDIR")}
    for path in home.values():
        Path(path).mkdir(exist_ok=True)
    settings = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PACKAGE.parent),
        **home,
        **environment,
    }
    return subprocess.Popen(
        [sys.executable, "-c", program],
        env=settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def compiled_files(folder):
    return [path for path in folder.rglob("*.nb?") if path.suffix in (".nbi", ".nbc")]


@compiled_only
def test_several_processes_on_an_empty_cache(tmp_path):
    cache = tmp_path / "cache"
    runs = [start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=str(cache)) for _ in range(3)]
    assert [(run.communicate()[0], run.returncode) for run in runs] == [("[1]\n", 0)] * 3
    assert len(compiled_files(cache)) == 2
    assert not [path for path in compiled_files(PACKAGE) if path.name.startswith("segments")]


@compiled_only
def test_no_usable_home_or_cache(tmp_path):
    run = start(
        ONE_KERNEL,
        tmp_path,
        HOME="/dev/null/home",
        XDG_CACHE_HOME="/dev/null/cache",
        FASTSCORE_CACHE="/dev/null/named",
    )
    assert run.communicate()[0] == "[1]\n"
    assert compiled_files(tmp_path / "tmpdir")


def test_other_users_of_numba_keep_their_cache_folder(tmp_path):
    program = (
        "import numba; before = numba.config.CACHE_DIR; import fastscore_kernels.segments;"
        "assert numba.config.CACHE_DIR == before"
    )
    assert start(program, tmp_path).wait() == 0


def test_importing_the_package_costs_nothing(tmp_path):
    program = (
        "import sys, fastscore_kernels; dir(fastscore_kernels);"
        "print([m for m in ('numba', 'numpy', 'pyarrow', 'polars') if m in sys.modules])"
    )
    assert start(program, tmp_path).communicate()[0] == "[]\n"


@compiled_only
def test_kernels_do_not_import_polars_or_fastscore(tmp_path):
    program = (
        "import sys; from fastscore_kernels import levenshtein_pairs, cosine_pairs;"
        "print([m for m in ('polars', 'fastscore') if m in sys.modules])"
    )
    assert start(program, tmp_path).communicate()[0] == "[]\n"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = fastscore_kernels.nothing


def test_every_public_name_exists_and_is_documented():
    for name in fastscore_kernels.__all__:
        assert getattr(fastscore_kernels, name).__doc__


def test_warm_compiles_every_module():
    fastscore_kernels.warm()
    topics = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for package in PACKAGES
        for path in package.rglob("*.py")
        if "def compile_kernels" in path.read_text()
    }
    assert topics == compiling._ready


@compiled_only
def test_a_cached_topic_does_not_wait_for_another_to_compile(tmp_path):
    cache = str(tmp_path / "cache")
    assert start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=cache).wait() == 0
    compiling = start(
        "from fastscore_machine.compiling import first_use; import sys;"
        "first_use('other', lambda: (print('locked', flush=True), sys.stdin.read()))",
        tmp_path,
        FASTSCORE_CACHE=cache,
    )
    assert compiling.stdout.readline() == "locked\n"
    run = start(ONE_KERNEL, tmp_path, FASTSCORE_CACHE=cache)
    assert run.communicate()[0] == "[1]\n"
    assert compiling.poll() is None
    compiling.communicate()
    assert compiling.returncode == 0


@compiled_only
@pytest.mark.parametrize(
    "chosen",
    [
        pytest.param(ESSENTIALS, id="essentials"),
        pytest.param([], id="all", marks=pytest.mark.slow),
    ],
)
def test_kernels_agree_with_the_oracles_where_nothing_is_compiled(chosen):
    tests = Path(__file__).parents[1]
    folders = [str(tests / "kernels"), str(tests / "readers")]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *folders, *chosen],
        cwd=tests.parent,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
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


def decorators():
    """Yield file name and node of every decorator and call in the package."""
    for path in sorted(path for package in PACKAGES for path in package.rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                for decorator in node.decorator_list:
                    yield path.name, node.name, decorator


def test_every_kernel_declares_its_flags():
    declared = 0
    for file, name, decorator in decorators():
        if isinstance(decorator, ast.Name):
            assert decorator.id != "kernel", f"{file}: {name} declares no flags"
        if not (isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "kernel"):
            continue
        flags = {keyword.arg: ast.literal_eval(keyword.value) for keyword in decorator.keywords}
        assert set(flags) - {"allocates"} == {"fastmath"}, f"{file}: {name}"
        assert flags["fastmath"] is False or flags["fastmath"] <= ALLOWED_FASTMATH, (
            f"{file}: {name}"
        )
        declared += 1
    assert declared >= 15


def test_numba_is_called_in_one_module_only():
    for path in (path for package in PACKAGES for path in package.rglob("*.py")):
        if path.name != "compiling.py":
            source = path.read_text()
            assert "njit" not in source, path.name
            assert "prange" not in source, path.name


def test_entry_points_release_the_gil_and_are_cached():
    tree = ast.parse(Path(compiling.__file__).read_text())
    calls = [
        {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "numba.njit"
    ]
    assert all(call["nogil"] == "True" for call in calls)
    assert all("fastmath" in call for call in calls)
    assert sum(call.get("cache") == "True" for call in calls) == 1


def test_loading_a_kernel_does_not_load_scipy():
    program = (
        "import sys, pyarrow, fastscore_kernels; "
        "fastscore_kernels.text_hash128(pyarrow.array(['a'])); "
        "print('scipy.linalg' in sys.modules)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "False"


@compiled_only
def test_others_still_call_blas_through_numba():
    program = (
        "import numba, numpy as np, pyarrow, fastscore_kernels; "
        "fastscore_kernels.text_hash128(pyarrow.array(['a'])); "
        "print(numba.njit(lambda a: np.dot(a, a))(np.eye(3)).sum())"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "3.0"
