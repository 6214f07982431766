"""Stores of a folder: listed with their models, and removed if no exported model is theirs."""

import json
from pathlib import Path

import numpy as np
import pytest

from fastscore.vectors.embedder import Embedder
from fastscore.vectors.store import VectorStore
from tests.conftest import fastscore_command


@pytest.fixture
def root(tiny_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FASTSCORE_CACHE", str(tiny_cache))
    tiny = Embedder("tiny", cache_dir=tiny_cache)
    for fingerprint, dim, texts in ((tiny.fingerprint, tiny.dim, 2), ("0" * 64, 3, 1)):
        store = VectorStore.open(fingerprint, dim, root=tmp_path / "stores")
        ids = np.arange(2 * texts, dtype=np.uint64).reshape(texts, 2)
        store.append(ids, np.ones((texts, dim), np.float32))
    return tmp_path / "stores"


def test_stores_are_listed_with_their_models(root: Path) -> None:
    done = fastscore_command(["vectors", "list", "--store", root, "--json"])
    found = {row["model"]: row for row in json.loads(done.stdout)}
    assert found["tiny"]["vectors"] == 2
    assert found["tiny"]["precision"] == "fp32"
    assert found[None]["vectors"] == 1
    plain = fastscore_command(["vectors", "list", "--store", root]).stdout
    assert "tiny fp32" in plain
    assert "no exported model" in plain


def test_stores_of_no_model_are_removed_when_asked(root: Path) -> None:
    assert fastscore_command(["vectors", "prune", "--store", root]).returncode == 0
    assert len([*root.iterdir()]) == 2
    done = fastscore_command(["vectors", "prune", "--store", root, "--yes", "--json"])
    assert [row["vectors"] for row in json.loads(done.stdout)] == [1]
    (left,) = root.iterdir()
    assert left.name != "0" * 64
