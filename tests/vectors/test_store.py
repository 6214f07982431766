import os
import re
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.errors import StoreError, UsageError
from fastscore.vectors import VectorStore
from fastscore.vectors.segments import list_segments
from fastscore.vectors.text_ids import text_ids
from tests.vectors.stores import DIM, append_texts, files_of, open_store, vectors_of, window_ids

SEGMENT = re.compile(r"seg-\d{20}-\d+-[0-9a-f]{8}\.(ids|faiss)")


def test_what_is_appended_is_there(tmp_path):
    store = open_store(tmp_path)
    ids = window_ids(0)
    assert store.missing(ids).all()
    store.append(ids, vectors_of(ids))
    assert not store.missing(ids).any()
    np.testing.assert_array_equal(store.gather(ids), vectors_of(ids))
    assert store.gather(ids).flags.c_contiguous


def test_files_are_two_a_segment_and_a_description(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    append_texts(store, 1)
    names = files_of(store)
    assert "store.json" in names
    segments = names - {"store.json"}
    assert len(segments) == 4
    assert all(SEGMENT.fullmatch(name) for name in segments)
    assert len({name.split(".")[0] for name in segments}) == 2


def test_a_segment_is_a_plain_faiss_index(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    (path,) = store.folder.glob("*.faiss")
    index = faiss.read_index(str(path))
    assert isinstance(index, faiss.IndexFlatIP)
    ordered = np.array(sorted(map(tuple, window_ids(0).tolist())), np.uint64)
    np.testing.assert_array_equal(index.reconstruct_n(0, index.ntotal), vectors_of(ordered))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    appends=st.lists(st.lists(st.integers(0, 15), max_size=8), max_size=5),
    wanted=st.lists(st.integers(0, 15), max_size=20),
    compact=st.booleans(),
    data=st.data(),
)
def test_behaves_as_a_dictionary(tmp_path_factory, appends, wanted, compact, data):
    store = open_store(tmp_path_factory.mktemp("store"))
    ids = text_ids([str(number) for number in range(16)])
    known = {}
    for round_, numbers in enumerate(appends):
        vectors = np.full((len(numbers), DIM), round_ + 1, np.float32)
        vectors += np.arange(len(numbers), dtype=np.float32)[:, None] / 100
        store.append(ids[numbers], vectors)
        for number, vector in zip(numbers, vectors.tolist(), strict=True):
            known.setdefault(number, vector)
    if compact:
        store.compact()
    store = data.draw(st.sampled_from([store, open_store(store.folder.parent)]))
    absent = store.missing(ids[wanted])
    assert absent.tolist() == [number not in known for number in wanted]
    present = [number for number in wanted if number in known]
    expected = np.array([known[number] for number in present], np.float32).reshape(-1, DIM)
    np.testing.assert_array_equal(store.gather(ids[present]), expected)
    if absent.any():
        with pytest.raises(StoreError, match=f"{len(set(wanted) - set(known))} of "):
            store.gather(ids[wanted])


def test_half_precision(tmp_path):
    store = open_store(tmp_path, "fp16")
    ids = window_ids(0)
    store.append(ids, vectors_of(ids))
    found = store.gather(ids)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, vectors_of(ids), rtol=2**-10)
    assert store.folder != open_store(tmp_path).folder
    assert store.verify().vectors == 50
    full = open_store(tmp_path)
    full.append(ids, vectors_of(ids))
    assert store.stats().bytes < full.stats().bytes


def test_a_large_append_becomes_several_segments(tmp_path, monkeypatch):
    monkeypatch.setattr("fastscore.vectors.store._SEGMENT_BYTES", 20 * 4 * DIM)
    store = open_store(tmp_path)
    ids = window_ids(0)
    store.append(ids, vectors_of(ids))
    assert store.stats().segments == 3
    np.testing.assert_array_equal(store.gather(ids), vectors_of(ids))


def test_chunks_do_not_show(tmp_path, monkeypatch):
    monkeypatch.setattr("fastscore.vectors.segments._ROWS_PER_CHUNK", 7)
    store = open_store(tmp_path)
    ids = window_ids(0)
    store.append(ids, vectors_of(ids))
    np.testing.assert_array_equal(store.gather(ids[::-1]), vectors_of(ids[::-1]))


def test_dim_truncates_then_normalises(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    cut = vectors_of(window_ids(0))[:, :3].astype(np.float64)
    cut /= np.sqrt((cut**2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(store.gather(window_ids(0), 3), cut, atol=1e-6)
    with pytest.raises(UsageError, match="1 to 8"):
        store.gather(window_ids(0), 9)


def test_view_holds_each_text_once(tmp_path):
    store = open_store(tmp_path)
    texts = ["b", "a", "b", None, "c"]
    ids = text_ids(["a", "b", "c", "d"])
    store.append(ids, vectors_of(ids))
    view = store.view(pl.Series(texts))
    assert len(view) == 3
    codes = view.codes(texts)
    assert codes[3] == -1
    np.testing.assert_array_equal(view.matrix[codes[[0, 1, 2, 4]]], vectors_of(ids)[[1, 0, 1, 2]])
    with pytest.raises(StoreError, match="1 of 2 texts"):
        store.view(["a", "unseen"])


def test_two_open_stores_see_each_others_vectors(tmp_path):
    first, second = open_store(tmp_path), open_store(tmp_path)
    append_texts(first, 0)
    assert not second.missing(window_ids(0)).any()
    append_texts(second, 1)
    np.testing.assert_array_equal(first.gather(window_ids(1)), vectors_of(window_ids(1)))


def test_the_first_segment_by_name_answers_and_compact_drops_the_other(tmp_path):
    first, second = open_store(tmp_path), open_store(tmp_path)
    ids = window_ids(0)
    first.append(ids, vectors_of(ids))
    second.append(ids, vectors_of(ids) + np.float32(1e-7))
    assert second.stats().vectors == 100
    for store in (first, second):
        np.testing.assert_array_equal(store.gather(ids), vectors_of(ids))
    assert second.compact().vectors == 50
    for store in (first, second, open_store(tmp_path)):
        np.testing.assert_array_equal(store.gather(ids), vectors_of(ids))


def test_compact_merges_small_segments_under_a_reader(tmp_path):
    store, reader, lazy = (open_store(tmp_path) for _ in range(3))
    for window in range(12):
        append_texts(store, window)
    ids = np.concatenate([window_ids(window) for window in range(12)])
    assert not lazy.missing(ids).any()  # lists the segments, reads no vector
    np.testing.assert_array_equal(reader.gather(ids), vectors_of(ids))
    stats = store.compact()
    assert (stats.segments, stats.vectors, stats.damaged) == (1, 600, 0)
    assert len(files_of(store)) == 3
    for each in (store, reader, lazy):
        np.testing.assert_array_equal(each.gather(ids), vectors_of(ids))
    assert store.compact() == stats


def test_a_segment_that_vanishes_between_listing_and_reading(tmp_path, monkeypatch):
    store = open_store(tmp_path)
    append_texts(store, 0)
    append_texts(store, 1)
    reader = open_store(tmp_path)
    listing = reader._refresh

    def compact_after_listing():
        listing()
        monkeypatch.setattr(reader, "_refresh", listing)
        store.compact()

    monkeypatch.setattr(reader, "_refresh", compact_after_listing)
    np.testing.assert_array_equal(reader.gather(window_ids(1)), vectors_of(window_ids(1)))


def test_compact_leaves_full_segments_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("fastscore.vectors.store._SEGMENT_BYTES", 60 * 4 * DIM)
    store = open_store(tmp_path)
    for window in range(3):
        append_texts(store, window)
    before = files_of(store)
    store.compact()
    assert files_of(store) == before


def test_compact_removes_old_garbage_only(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    kept = files_of(store)
    garbage = {"seg-0-1-a.faiss", "seg-0-1-a.ids.7-0000000b.tmp", "seg-0-2-a.faiss.7-0000000b.tmp"}
    for name in garbage:
        (store.folder / name).write_bytes(b"half")
    (store.folder / "notes.txt").write_text("not ours")
    store.compact()
    assert files_of(store) == kept | garbage | {"notes.txt"}
    for name in garbage:
        os.utime(store.folder / name, (0, 0))
    store.compact()
    assert files_of(store) == kept | {"notes.txt"}


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


def test_a_lost_index_is_set_aside(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    next(store.folder.glob("*.faiss")).unlink()
    assert open_store(tmp_path).missing(window_ids(0)).all()


def test_an_index_without_ids_is_ignored(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    next(store.folder.glob("*.ids")).unlink()
    reopened = open_store(tmp_path)
    assert reopened.missing(window_ids(0)).all()
    assert reopened.stats().damaged == 0


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


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "f00d").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(tmp_path)


def test_a_store_that_was_removed(tmp_path):
    store = open_store(tmp_path)
    (store.folder / "store.json").unlink()
    store.folder.rmdir()
    with pytest.raises(StoreError, match="No such file"):
        store.missing(window_ids(0))


def test_unknown_dtype_and_wrong_shape(tmp_path):
    with pytest.raises(UsageError, match="fp8"):
        open_store(tmp_path, "fp8")
    with pytest.raises(ValueError, match="expected"):
        open_store(tmp_path).append(window_ids(0), np.zeros((50, 3), np.float32))


def test_nothing_appended_leaves_nothing(tmp_path):
    store = open_store(tmp_path)
    store.append(np.empty((0, 2), np.uint64), np.empty((0, DIM), np.float32))
    assert files_of(store) == {"store.json"}
    assert store.gather(np.empty((0, 2), np.uint64)).shape == (0, DIM)
    assert store.verify().segments == 0


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


def test_verify_reads_ids_again(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    (path,) = store.folder.glob("*.ids")
    content = bytearray(path.read_bytes())
    content[600] ^= 1
    path.unlink()  # the open store's map keeps the intact content
    path.write_bytes(content)
    ((name, reason),) = store.verify().damaged
    assert name == path.stem
    assert "ids differ" in reason


def test_an_intact_copy_answers_for_a_damaged_one(tmp_path, caplog):
    store, path = twice(tmp_path)
    flip_vector(path)
    np.testing.assert_array_equal(store.gather(window_ids(0)), vectors_of(window_ids(0)))
    assert store.stats().damaged == 1
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("fastscore.vectors", "WARNING")
    assert path.stem in record.getMessage()


def test_damage_without_a_copy_names_what_is_absent(tmp_path):
    store = open_store(tmp_path)
    append_texts(store, 0)
    append_texts(store, 1)
    flip_vector(sorted(store.folder.glob("*.faiss"))[0])
    both = np.concatenate([window_ids(0), window_ids(1)])
    with pytest.raises(StoreError, match=r"50 of 100 texts have no vector.* Embed them again"):
        store.gather(both)
    append_texts(store, 0)
    np.testing.assert_array_equal(store.gather(both), vectors_of(both))


def test_more_damaged_segments_than_attempts(tmp_path):
    store = open_store(tmp_path)
    for _ in range(12):
        append_texts(open_store(tmp_path), 0)
    for path in sorted(store.folder.glob("*.faiss"))[:-1]:
        flip_vector(path)
    np.testing.assert_array_equal(store.gather(window_ids(0)), vectors_of(window_ids(0)))
    assert store.stats().damaged == 11


def test_compact_merges_what_is_intact(tmp_path):
    store, path = twice(tmp_path)
    append_texts(store, 1)
    flip_vector(path)
    stats = store.compact()
    assert (stats.segments, stats.vectors, stats.damaged) == (1, 100, 1)
    both = np.concatenate([window_ids(0), window_ids(1)])
    np.testing.assert_array_equal(store.gather(both), vectors_of(both))


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


def test_stats_while_another_process_compacts(tmp_path, monkeypatch):
    store = open_store(tmp_path)
    append_texts(store, 0)
    append_texts(store, 1)
    listing = os.listdir

    def compact_then_list(folder):
        names = listing(folder)
        if len(store._segments.now()) == 2:  # listed, not yet measured
            monkeypatch.setattr(os, "listdir", listing)
            open_store(tmp_path).compact()
        return names

    monkeypatch.setattr(os, "listdir", compact_then_list)
    stats = store._segments.retrying(store._segments.count)
    assert (stats.segments, stats.vectors) == (1, 100)


def test_a_listing_that_compaction_outdates_is_made_again(tmp_path, monkeypatch):
    """Segments that vanish between listing and opening are found in the one that replaced them."""
    compactor, reader = open_store(tmp_path), open_store(tmp_path)
    append_texts(compactor, 0)
    append_texts(compactor, 1)
    listing = list_segments

    def compact_after_listing(folder):
        names = listing(folder)
        monkeypatch.setattr("fastscore.vectors.open_segments.list_segments", listing)
        compactor.compact()
        return names

    monkeypatch.setattr("fastscore.vectors.open_segments.list_segments", compact_after_listing)
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


def test_reading_vectors_does_not_load_faiss(tmp_path):
    append_texts(open_store(tmp_path), 0)
    program = (
        "import sys; from pathlib import Path; from tests.vectors.stores import *;"
        "open_store(Path(sys.argv[1])).gather(window_ids(0)); print('faiss' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    shown = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "False"
