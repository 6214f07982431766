"""Stores of vectors: reading, compaction, trust, damage and the commands that list them."""

import json
import os
import re
from collections import Counter
from pathlib import Path

import faiss
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.errors import StoreError
from fastscore.settings.options import TRUST_VARIABLE
from fastscore.vectors.embedder import Embedder
from fastscore.vectors.segments import list_segments
from fastscore.vectors.store import VectorStore, embed_missing
from fastscore.vectors.view import text_ids
from tests.conftest import fastscore_command, python_process
from tests.vectors.conftest import WORDS
from tests.vectors.stores import DIM, append_texts, files_of, open_store, vectors_of, window_ids

SEGMENT = re.compile(r"seg-\d{20}-\d+-[0-9a-f]{8}\.(ids|faiss)")


@pytest.fixture
def store(tmp_path):
    """A store of one window of texts."""
    made = open_store(tmp_path)
    append_texts(made, 0)
    return made


def test_files_are_two_a_segment_and_a_description(store):
    append_texts(store, 1)
    names = files_of(store)
    assert "store.json" in names
    segments = names - {"store.json"}
    assert len(segments) == 4
    assert all(SEGMENT.fullmatch(name) for name in segments)
    assert len({name.split(".")[0] for name in segments}) == 2


def test_a_segment_is_a_plain_faiss_index(store):
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


def test_compact_removes_old_garbage_only(store):
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
    shown = python_process(program, tmp_path, cwd=Path(__file__).parents[2], check=True)
    assert shown.stdout.strip() == "False"


# --- embedding of what a store lacks


ASKED = [f"{first} {second}" for first in WORDS[:8] for second in WORDS[:7]]


class Counting:
    """An embedder that counts how often each text goes through the model."""

    def __init__(self, embedder):
        self.embedder, self.seen = embedder, Counter()

    def encode(self, texts, **options):
        self.seen.update(list(texts))
        return self.embedder.encode(texts, **options)


@pytest.fixture
def tiny_store(tmp_path, tiny):
    return VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)


def test_each_distinct_text_is_embedded_once(tiny_store, tiny):
    counting = Counting(tiny)
    texts = pl.Series([*ASKED, None, *ASKED[:9], ""])
    assert embed_missing(texts, counting, tiny_store) == len(ASKED) + 1
    assert embed_missing(texts, counting, tiny_store) == 0
    assert embed_missing([*ASKED, "w1 w2 w3"], counting, tiny_store) == 1
    assert counting.seen == Counter([*ASKED, "", "w1 w2 w3"])
    view = tiny_store.view(texts)
    codes = view.codes(texts)
    np.testing.assert_allclose(view.matrix[codes[: len(ASKED)]], tiny.encode(ASKED), atol=1e-6)


def test_a_killed_run_keeps_its_windows(tiny_store, tiny):
    class Killed(Counting):
        def encode(self, texts, **options):
            if sum(self.seen.values()) >= 30:
                raise KeyboardInterrupt
            return super().encode(texts, **options)

    with pytest.raises(KeyboardInterrupt):
        embed_missing(ASKED, Killed(tiny), tiny_store, texts_per_append=10)
    assert tiny_store.stats().vectors == 30
    assert embed_missing(ASKED, tiny, tiny_store) == len(ASKED) - 30


def test_the_order_of_texts_does_not_matter(tmp_path, tiny):
    files = []
    for number, texts in enumerate((ASKED, ASKED[::-1])):
        tiny_store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path / str(number))
        embed_missing(texts, tiny, tiny_store)
        files.append(next(tiny_store.folder.glob("*.faiss")).read_bytes())
    assert files[0] == files[1]


# --- stores of a folder


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


FEW = ["w1", "w2 w3", "w4 w5 w6"]


def flip(content):
    return content[:600] + bytes([content[600] ^ 1]) + content[601:]


@pytest.mark.parametrize(("suffix", "damage"), [(".ids", flip), (".faiss", None)])
def test_verify_fails_on_damage_that_opening_finds(tmp_path, tiny_cache, suffix, damage):
    tiny = Embedder("tiny", cache_dir=tiny_cache)
    store = VectorStore.open(tiny.fingerprint, tiny.dim, root=tmp_path)
    # enough texts that byte 600 lies within ids, and a second segment that stays intact
    embed_missing([f"{text} w{number}" for text in FEW for number in range(10)], tiny, store)
    (path,) = store.folder.glob(f"*{suffix}")
    embed_missing(FEW, tiny, store)
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    command = ["vectors", "verify", "--embedder", "tiny", "--store", tmp_path]
    done = fastscore_command(command, FASTSCORE_CACHE=str(tiny_cache))
    assert done.returncode == 1
    assert done.stdout == "3 vectors in 1 segments are intact\n"
    assert f"{path.stem}: " in done.stderr


# --- stores that others could have written


FINGERPRINT = "a" * 64


@pytest.fixture
def trusted(tmp_path, monkeypatch):
    monkeypatch.delenv(TRUST_VARIABLE, raising=False)
    return VectorStore.open(FINGERPRINT, 4, root=tmp_path / "vectors").folder


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("above", [0, 1])
def test_one_that_others_can_write_to_is_refused(trusted, monkeypatch, above, mode):
    folder = (trusted, trusted.parent)[above]
    folder.chmod(mode)
    with pytest.raises(StoreError, match="trust_store") as refused:
        VectorStore.open(FINGERPRINT, 4, root=trusted.parent)
    assert str(trusted) in str(refused.value)
    monkeypatch.setenv(TRUST_VARIABLE, "1")
    assert VectorStore.open(FINGERPRINT, 4, root=trusted.parent).folder == trusted


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_one_of_another_user_is_refused(trusted):
    os.chown(trusted, 12345, 12345)
    with pytest.raises(StoreError, match="another user"):
        VectorStore.open(FINGERPRINT, 4, root=trusted.parent)


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

    def read():
        trusted = VectorStore.open(FINGERPRINT, 4, root=tmp_path / "vectors")
        return trusted.gather(np.array([[1, 2]], np.uint64)).tolist()[0]

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


# --- refusals and damage


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


def test_damage_is_reported_set_aside_and_healed_by_embedding_again(store):
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
def test_a_cut_file_is_set_aside_on_opening(store, tmp_path, suffix, keep):
    (path,) = store.folder.glob(f"*{suffix}")
    path.write_bytes(path.read_bytes()[:keep])
    reopened = open_store(tmp_path)
    assert reopened.missing(window_ids(0)).all()
    assert reopened.stats().damaged == 1


def test_another_kind_of_store_is_refused_untouched(store, tmp_path):
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


def test_a_damaged_description_can_be_removed_without_losing_vectors(store, tmp_path):
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


def test_an_index_that_vanishes_while_it_is_verified_is_no_damage(store, tmp_path, monkeypatch):
    append_texts(store, 1)
    plain = faiss.read_index

    def compact_before_reading(*arguments):
        monkeypatch.setattr(faiss, "read_index", plain)
        open_store(tmp_path).compact()
        return plain(*arguments)

    monkeypatch.setattr(faiss, "read_index", compact_before_reading)
    assert store.verify().damaged == ()
    assert store.verify().vectors == 100


def test_an_index_that_is_cut_while_the_store_is_open_is_damage(store):
    (path,) = store.folder.glob("*.faiss")
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(StoreError, match="Embed them again"):
        store.gather(window_ids(0))
    assert store.missing(window_ids(0)).all()
