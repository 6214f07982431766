"""Stores that others could have written are refused unless told."""

import os

import numpy as np
import pytest

from fastscore.errors import StoreError
from fastscore.vectors.description import TRUST_VARIABLE
from fastscore.vectors.store import VectorStore

FINGERPRINT = "a" * 64


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    return VectorStore.open(FINGERPRINT, 4, root=tmp_path / "vectors").folder


def test_our_own_is_opened_again(store):
    assert VectorStore.open(FINGERPRINT, 4, root=store.parent).folder == store


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("above", [0, 1])
def test_one_that_others_can_write_to_is_refused(store, monkeypatch, above, mode):
    folder = (store, store.parent)[above]
    folder.chmod(mode)
    with pytest.raises(StoreError, match="trust_store") as refused:
        VectorStore.open(FINGERPRINT, 4, root=store.parent)
    assert str(store) in str(refused.value)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert VectorStore.open(FINGERPRINT, 4, root=store.parent).folder == store


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_one_of_another_user_is_refused(store):
    os.chown(store, 12345, 12345)
    with pytest.raises(StoreError, match="another user"):
        VectorStore.open(FINGERPRINT, 4, root=store.parent)


@pytest.mark.parametrize("suffix", [".ids", ".faiss", "store.json"])
@pytest.mark.parametrize("how", ["group", "link"])
def test_a_file_that_others_could_have_written_is_refused(tmp_path, monkeypatch, suffix, how):
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    before = os.umask(0o002)
    try:
        made = VectorStore.open(FINGERPRINT, 4, root=tmp_path / "vectors")
        made.append(np.array([[1, 2]], np.uint64), np.ones((1, 4), np.float32))
    finally:
        os.umask(before)

    def read() -> list[float]:
        store = VectorStore.open(FINGERPRINT, 4, root=tmp_path / "vectors")
        return store.gather(np.array([[1, 2]], np.uint64)).tolist()[0]

    assert read() == [1.0] * 4
    (file,) = [path for path in made.folder.iterdir() if path.name.endswith(suffix)]
    if how == "group":
        file.chmod(0o664)
    else:
        shared = tmp_path / "shared"
        shared.mkdir()
        shared.chmod(0o770)
        file.rename(shared / file.name)
        file.symlink_to(shared / file.name)
    with pytest.raises(StoreError, match="others may write"):
        read()
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert read() == [1.0] * 4
