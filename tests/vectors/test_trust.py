"""Stores that others could have written are refused unless told."""

import os
from pathlib import Path

import pytest

from fastscore.errors import StoreError
from fastscore.vectors.description import TRUST_VARIABLE
from fastscore.vectors.store import VectorStore

FINGERPRINT = "a" * 64


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    return VectorStore.open(FINGERPRINT, 4, root=tmp_path / "vectors").folder


def test_our_own_is_opened_again(store: Path) -> None:
    assert VectorStore.open(FINGERPRINT, 4, root=store.parent).folder == store


@pytest.mark.parametrize("above", [0, 1])
def test_one_that_others_can_write_to_is_refused(
    store: Path, monkeypatch: pytest.MonkeyPatch, above: int
) -> None:
    folder = (store, store.parent)[above]
    folder.chmod(0o777)
    with pytest.raises(StoreError, match="trust_store") as refused:
        VectorStore.open(FINGERPRINT, 4, root=store.parent)
    assert str(store) in str(refused.value)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert VectorStore.open(FINGERPRINT, 4, root=store.parent).folder == store


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_one_of_another_user_is_refused(store: Path) -> None:
    os.chown(store, 12345, 12345)
    with pytest.raises(StoreError, match="another user"):
        VectorStore.open(FINGERPRINT, 4, root=store.parent)
