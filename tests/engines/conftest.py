"""Logs of many shards, a cache with a tiny model, and a local run of the logs."""

import pytest

from fastscore.run.engines.engine import ENGINES
from tests.engines.clusters import dask_cluster
from tests.engines.runs import LEXICAL, SEMANTIC, run_here
from tests.models.tiny_bert import link_kernels, tiny_cache
from tests.run.logs import WORDS, write_varied_logs
from tests.run.running import contents


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    (place / "logs").mkdir()
    write_varied_logs(place / "logs", files=12, dialogues=12)
    return place


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """A cache that holds a tiny model, which knows the logs' words, and the compiled kernels."""
    return tiny_cache(tmp_path_factory.mktemp("cache"), WORDS, max_tokens=16)


@pytest.fixture(scope="session")
def lexical(place, tmp_path_factory):
    run = tmp_path_factory.mktemp("local") / "run"
    run_here(place, run, *LEXICAL)
    return contents(run)


@pytest.fixture(scope="session")
def semantic(place, cache, tmp_path_factory):
    """The local engine's run of the logs with vectors."""
    run = tmp_path_factory.mktemp("local") / "run"
    run_here(place, run, *SEMANTIC, FASTSCORE_CACHE=str(cache))
    return contents(run)


@pytest.fixture(scope="session", params=["dask", "ray"])
def engine(request):
    pytest.importorskip(ENGINES[request.param])
    return str(request.param)


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """A Dask cluster of two workers that others started, once: one module has all that use it."""
    pytest.importorskip("distributed")
    folder = tmp_path_factory.mktemp("cluster")
    link_kernels(folder / "cache-of-workers")
    with dask_cluster(folder) as cluster:
        yield cluster
