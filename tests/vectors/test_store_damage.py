"""Refusals of stores, and damage: detected, reported, set aside and repaired."""

import os
import re

import faiss
import numpy as np
import pytest

from fastscore.errors import StoreError
from fastscore.vectors.segments import list_segments
from fastscore.vectors.store import VectorStore
from tests.vectors.stores import append_texts, files_of, open_store, vectors_of, window_ids


def test_every_flipped_bit_is_found(tmp_path):
    """A flip anywhere in a segment is found by verify, and no wrong vector is ever gathered."""
    rng = np.random.default_rng(0)
    for trial in range(120):
        store = open_store(tmp_path / str(trial))
        append_texts(store, 0)
        path = store.folder / sorted(files_of(store) - {"store.json"})[trial % 2]
        content = bytearray(path.read_bytes())
        content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        reopened = open_store(tmp_path / str(trial))
        try:
            found = reopened.gather(window_ids(0))
        except StoreError:
            pass
        else:
            np.testing.assert_array_equal(found, vectors_of(window_ids(0)))
        check = open_store(tmp_path / str(trial)).verify()
        aside = {name for name in files_of(store) if name.endswith(".damaged")}
        assert len(aside) == 2 or (check.vectors == 50 and path.suffix == ".faiss"), path
        if not aside:
            # FAISS's own header has bytes that nothing reads.
            assert content[45:] == (store.folder / path.name).read_bytes()[45:]


def test_damage_is_reported_set_aside_and_healed_by_embedding_again(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    append_texts(store, 1)
    path = sorted(store.folder.glob("*.faiss"))[0]
    content = bytearray(path.read_bytes())
    content[100] ^= 64
    path.write_bytes(content)
    check = store.verify()
    assert (check.segments, check.vectors) == (1, 50)
    ((name, reason),) = check.damaged
    assert name == path.stem
    assert "not what was written" in reason
    assert store.stats().damaged == 1
    assert store.missing(window_ids(0)).all()
    assert not store.missing(window_ids(1)).any()
    append_texts(store, 0)
    np.testing.assert_array_equal(store.gather(window_ids(0)), vectors_of(window_ids(0)))


@pytest.mark.parametrize("suffix", [".faiss", ".ids"])
@pytest.mark.parametrize("keep", [0, 10, 300, 600, -1])
def test_a_cut_file_is_set_aside_on_opening(tmp_path, suffix, keep):
    store = open_store(tmp_path)
    append_texts(store, 0)
    (path,) = store.folder.glob(f"*{suffix}")
    path.write_bytes(path.read_bytes()[:keep])
    reopened = open_store(tmp_path)
    assert reopened.missing(window_ids(0)).all()
    assert reopened.stats().damaged == 1


def test_another_kind_of_store_is_refused_untouched(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    before = files_of(store)
    with pytest.raises(StoreError, match="'dim': 8"):
        VectorStore.open("f00d", 9, root=tmp_path)
    description = store.folder / "store.json"
    description.write_text(description.read_text().replace('"format": 2', '"format": 99'))
    with pytest.raises(StoreError, match="99"):
        open_store(tmp_path)
    description.write_text("{")
    with pytest.raises(StoreError, match="cannot be read"):
        open_store(tmp_path)
    assert files_of(store) == before


def test_a_store_that_was_removed(tmp_path):
    store = open_store(tmp_path)
    (store.folder / "store.json").unlink()
    store.folder.rmdir()
    with pytest.raises(StoreError, match="No such file"):
        store.missing(window_ids(0))


def flip_vector(path):
    """Change one bit of the first vector of a segment's index."""
    content = bytearray(path.read_bytes())
    content[100] ^= 64
    path.write_bytes(content)


def twice(root):
    """A store that holds one window in two segments, and the older segment's index."""
    first, second = open_store(root), open_store(root)
    append_texts(first, 0)
    append_texts(second, 0)
    return first, sorted(first.folder.glob("*.faiss"))[0]


@pytest.mark.parametrize("suffix", [".faiss", ".ids"])
def test_damage_that_opening_finds_is_still_reported_by_verify(tmp_path, suffix):
    append_texts(open_store(tmp_path), 0)
    (path,) = (tmp_path / "f00d").glob(f"*{suffix}")
    path.write_bytes(path.read_bytes()[:-1])
    store = open_store(tmp_path)
    for _ in range(2):
        check = store.verify()
        assert (check.segments, check.vectors) == (0, 0)
        assert [name for name, _ in check.damaged] == [path.stem]


def test_an_intact_copy_answers_for_a_damaged_one(tmp_path, caplog):
    store, path = twice(tmp_path)
    flip_vector(path)
    np.testing.assert_array_equal(store.gather(window_ids(0)), vectors_of(window_ids(0)))
    assert store.stats().damaged == 1
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("fastscore.vectors", "WARNING")
    assert path.stem in record.getMessage()


def test_compact_removes_segments_set_aside_long_ago(tmp_path):
    store, path = twice(tmp_path)
    for file in store.folder.iterdir():
        os.utime(file, (0, 0))
    flip_vector(path)
    assert len(store.verify().damaged) == 1
    assert store.compact().damaged == 1  # old, but set aside just now
    for file in store.folder.glob("*.damaged"):
        os.utime(file, (0, 0))
    assert store.compact().damaged == 0
    assert len(files_of(store)) == 3


def test_a_damaged_description_can_be_removed_without_losing_vectors(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    description = store.folder / "store.json"
    description.write_text("{")
    with pytest.raises(StoreError, match=f"Remove the file {re.escape(str(description))}"):
        open_store(tmp_path)
    description.unlink()
    np.testing.assert_array_equal(
        open_store(tmp_path).gather(window_ids(0)), vectors_of(window_ids(0))
    )


def test_a_listing_that_compaction_outdates_is_made_again(tmp_path, monkeypatch):
    """Segments that vanish between listing and opening are found in the one that replaced them."""
    compactor, reader = open_store(tmp_path), open_store(tmp_path)
    append_texts(compactor, 0)
    append_texts(compactor, 1)
    listing = list_segments

    def compact_after_listing(folder):
        names = listing(folder)
        monkeypatch.setattr("fastscore.vectors.segments.list_segments", listing)
        compactor.compact()
        return names

    monkeypatch.setattr("fastscore.vectors.segments.list_segments", compact_after_listing)
    assert not reader.missing(window_ids(1)).any()


def test_an_index_that_vanishes_while_it_is_verified_is_no_damage(tmp_path, monkeypatch):
    store = open_store(tmp_path)
    append_texts(store, 0)
    append_texts(store, 1)
    plain = faiss.read_index

    def compact_before_reading(*arguments):
        monkeypatch.setattr(faiss, "read_index", plain)
        open_store(tmp_path).compact()
        return plain(*arguments)

    monkeypatch.setattr(faiss, "read_index", compact_before_reading)
    assert store.verify().damaged == ()
    assert store.verify().vectors == 100


def test_an_index_that_is_cut_while_the_store_is_open_is_damage(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    (path,) = store.folder.glob("*.faiss")
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(StoreError, match="Embed them again"):
        store.gather(window_ids(0))
    assert store.missing(window_ids(0)).all()
