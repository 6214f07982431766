"""Stores of vectors: appended vectors are found after any reading, compaction or opening."""

import os
import re
import subprocess
import sys
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.errors import StoreError
from fastscore.vectors.view import text_ids
from tests.vectors.stores import DIM, append_texts, files_of, open_store, vectors_of, window_ids

SEGMENT = re.compile(r"seg-\d{20}-\d+-[0-9a-f]{8}\.(ids|faiss)")


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
