"""Work done once per process, for any number of tasks, and compilation once per machine."""

import os
from collections import Counter

import pytest
from fastscore_jit.objects import cache_folder

from tests.engines.clusters import dask_cluster
from tests.engines.runs import SEMANTIC, finish, start_run
from tests.run.running import contents

MISSING = ("fastscore_kernels.segments._first_argmax",)

AT_START = """
import os, sys
from importlib.abc import MetaPathFinder

WATCHED = {
    "fastscore.vectors.embedder": ["load_inference"],
    "fastscore_jit.compiling": ["make_library", "load_kernel"],
}


class Watching(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in WATCHED:
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        sys.meta_path.insert(0, self)
        if spec is not None:
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (run(module), watch(module))
        return spec


def watch(module):
    for name in WATCHED[module.__name__]:
        watch_function(module, name)


def watch_function(module, name):
    real = getattr(module, name, None)
    if real is None:
        return
    def watched(*given, **named):
        what = getattr(given[0], "identity", "model")
        with open(os.environ["LOADED"], "a") as file:
            file.write(f"{name} {what} {os.getpid()}\\n")
        return real(*given, **named)
    setattr(module, name, watched)


sys.meta_path.insert(0, Watching())
"""


@pytest.mark.slow
def test_a_worker_loads_the_model_once_and_a_machine_compiles_a_kernel_once(
    place, semantic, cache, tmp_path, monkeypatch
):
    seen, path = tmp_path / "loaded", tmp_path / "path"
    path.mkdir()
    (path / "sitecustomize.py").write_text(AT_START)
    monkeypatch.setenv("LOADED", str(seen))
    workers = tmp_path / "cluster" / "cache-of-workers"
    without(MISSING, workers)
    words = (*SEMANTIC, "--engine", "dask", "--store", str(tmp_path / "store"))
    with dask_cluster(tmp_path / "cluster", path=path) as cluster:
        run = tmp_path / "run"
        process = start_run(
            place, run, *words, "--address", cluster.address, FASTSCORE_CACHE=str(cache)
        )
        finish(process)
        processes = {str(worker.pid) for worker in cluster.workers}
    assert contents(run) == semantic
    loaded = Counter(seen.read_text().splitlines())
    assert set(loaded.values()) == {1}
    by_kind = {}
    for line in loaded:
        kind, what, process_id = line.split()
        by_kind.setdefault(kind, []).append(process_id if kind == "load_inference" else what)
    assert set(by_kind["load_inference"]) <= processes
    assert sorted(name.replace(":", ".") for name in by_kind["make_library"]) == sorted(MISSING)


def without(kernels, cache):
    """Let a cache have all compiled kernels of this one but some."""
    there = cache_folder()
    folder = cache / "kernels" / there.name
    folder.mkdir(parents=True)
    for library in there.iterdir():
        if library.is_file() and not library.name.startswith(kernels):
            os.link(library, folder / library.name)
