"""A store on this machine, and a cache of a test's own for copies of runs."""

import pytest

from fastscore.logs import objects
from fastscore.run.remote import log, runs
from tests.logs.stores import environment_of, served
from tests.run.logs import write_logs

pytest.importorskip("obstore")


@pytest.fixture
def store(monkeypatch, tmp_path):
    with served() as store:
        for name, value in environment_of(store).items():
            monkeypatch.setenv(name, value)
        store.objects["bucket/another-object"] = b""
        monkeypatch.setattr(runs, "cache_root", lambda: tmp_path / "cache")
        monkeypatch.setattr(objects, "_known", {})
        monkeypatch.setattr(log, "PAUSE_SECONDS", 0.002)
        monkeypatch.setattr(log, "BEAT_SECONDS", 0.1)
        monkeypatch.setattr(log, "STILL_SECONDS", 0.5)
        objects.open_bucket.cache_clear()
        yield store
        objects.open_bucket.cache_clear()


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs", files=4)
