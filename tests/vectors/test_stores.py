"""Stores of a folder: listed with their models, verified, and removed if no model is theirs."""

import json

import numpy as np
import pytest

from fastscore.vectors.embedder import Embedder
from fastscore.vectors.store import VectorStore, embed_missing
from tests.conftest import fastscore_command


@pytest.fixture
def root(tiny_cache, tmp_path, monkeypatch):
    monkeypatch.setenv("FASTSCORE_CACHE", str(tiny_cache))
    tiny = Embedder("tiny", cache_dir=tiny_cache)
    for fingerprint, dim, texts in ((tiny.fingerprint, tiny.dim, 2), ("0" * 64, 3, 1)):
        store = VectorStore.open(fingerprint, dim, root=tmp_path / "stores")
        ids = np.arange(2 * texts, dtype=np.uint64).reshape(texts, 2)
        store.append(ids, np.ones((texts, dim), np.float32))
    return tmp_path / "stores"


def test_stores_are_listed_with_their_models(root):
    done = fastscore_command(["vectors", "list", "--store", root, "--json"])
    found = {row["model"]: row for row in json.loads(done.stdout)}
    assert found["tiny"]["vectors"] == 2
    assert found["tiny"]["precision"] == "fp32"
    assert found[None]["vectors"] == 1
    plain = fastscore_command(["vectors", "list", "--store", root]).stdout
    assert "tiny fp32" in plain
    assert "no exported model" in plain


def test_stores_of_no_model_are_removed_when_asked(root):
    assert fastscore_command(["vectors", "prune", "--store", root]).returncode == 0
    assert len([*root.iterdir()]) == 2
    done = fastscore_command(["vectors", "prune", "--store", root, "--yes", "--json"])
    assert [row["vectors"] for row in json.loads(done.stdout)] == [1]
    (left,) = root.iterdir()
    assert left.name != "0" * 64


TEXTS = ["w1", "w2 w3", "w4 w5 w6"]


def flip(content):
    return content[:600] + bytes([content[600] ^ 1]) + content[601:]


@pytest.mark.parametrize(("suffix", "damage"), [(".ids", flip), (".faiss", None)])
def test_verify_fails_on_damage_that_opening_finds(tmp_path, tiny_cache, suffix, damage):
    tiny = Embedder("tiny", cache_dir=tiny_cache)
    store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)
    # enough texts that byte 600 lies within ids, and a second segment that stays intact
    embed_missing([f"{text} w{number}" for text in TEXTS for number in range(10)], tiny, store)
    (path,) = store.folder.glob(f"*{suffix}")
    embed_missing(TEXTS, tiny, store)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    command = ["vectors", "verify", "--embedder", "tiny", "--store", tmp_path]
    done = fastscore_command(command, FASTSCORE_CACHE=str(tiny_cache))
    assert done.returncode == 1
    assert done.stdout == "3 vectors in 1 segments are intact\n"
    assert f"{path.stem}: " in done.stderr
