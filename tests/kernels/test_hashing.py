"""Hashes, ids of 128 bits and rows of files against plain Python."""

import tracemalloc

import numpy as np
import pytest
from fastscore_kernels import checksum_rows, distinct_ids, index_ids, read_rows, text_hash128
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import checksum, distinct, find, murmur3_x64_128


def test_published_vectors():
    texts = ["", "hello", "The quick brown fox jumps over the lazy dog"]
    assert [f"{high:016x}{low:016x}" for high, low in text_hash128(texts).tolist()] == [
        "00000000000000000000000000000000",
        "cbd8a7b341bd9b025b1e906a48ae1d19",
        "e34bbc7bbc071b6c7a433ca9c49a9347",
    ]


@pytest.mark.parametrize("length", [*range(34), 1_000, 100_003])
def test_every_length_of_tail(length):
    text = "".join(chr(33 + at % 90) for at in range(length))
    assert text_hash128([text]).tolist() == [murmur3_x64_128(text.encode())]


# --- ids


TOP = 2**64 - 1
# Few words, so that many ids share one, or both.
FEW = st.sampled_from([0, 1, 2, 2**63, TOP])
WORD = FEW | st.integers(0, TOP)
IDS = st.lists(st.tuples(WORD, FEW), max_size=40)


def as_ids(pairs):
    return np.array(pairs, np.uint64).reshape(-1, 2)


def columns(pairs):
    return np.ascontiguousarray(as_ids(pairs).T)


def found(wanted, among):
    return index_ids([tuple(columns(among))]).find(as_ids(wanted)).tolist()


@given(IDS)
def test_distinct_ids_equal_the_oracle(pairs):
    first, second, positions, inverse = distinct_ids(as_ids(pairs))
    expected = distinct(pairs)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected[0]
    assert positions.tolist() == expected[1]
    assert inverse.tolist() == expected[2]


@given(IDS, IDS)
def test_found_ids_equal_the_oracle(wanted, among):
    wanted = wanted + among[::2]
    among = sorted(set(among))
    assert found(wanted, among) == find(wanted, among)


@given(IDS, st.lists(IDS, max_size=6), st.integers(0, 6))
def test_ids_of_groups_that_came_one_by_one_are_found_in_the_first(wanted, groups, known):
    """An index of the first groups finds what it found, though a larger one shares its slots."""
    groups = [tuple(columns(sorted(set(group)))) for group in groups]
    few = index = index_ids(groups[:known])
    for stop in range(known, len(groups) + 1):
        index = index_ids(groups[:stop], index)
    for held, of in ((groups, index), (groups[:known], few)):
        pairs = [list(zip(*(words.tolist() for words in group), strict=True)) for group in held]
        wanted = wanted + [pair for group in pairs for pair in group]
        expected = {
            pair: (number << 32) + row
            for number, group in reversed(list(enumerate(pairs)))
            for row, pair in enumerate(group)
        }
        assert of.find(as_ids(wanted)).tolist() == [expected.get(pair, -1) for pair in wanted]


def test_a_look_up_of_few_ids_allocates_as_much_in_any_index():
    ids = np.random.default_rng(1).integers(0, 2**64, (2, 200_000), np.uint64)
    index, few = index_ids([tuple(ids)]), np.ascontiguousarray(ids[:, :100].T)
    tracemalloc.start()
    assert index.find(few).tolist() == list(range(100))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000


# --- rows of files


HEADER = b"seven.."


def rows_of(count, size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size), dtype=np.uint8)


def write(path, rows):
    path.write_bytes(HEADER + rows.tobytes())


def read(path, wanted, checksums, size, places=None, height=None):
    """Read rows into a matrix of 255; return the number of intact rows, and the matrix."""
    wanted = np.array(wanted, np.int64)
    places = np.arange(len(wanted)) if places is None else np.array(places, np.int64)
    out = np.full((len(wanted) if height is None else height, size), 255, np.uint8)
    with path.open("rb") as file:
        return read_rows(file.fileno(), len(HEADER), wanted, checksums, out, places), out


@given(st.lists(st.binary(min_size=21, max_size=21), min_size=1, max_size=4), st.integers(1, 21))
def test_checksums_equal_the_oracle(contents, size):
    rows = np.array([list(content[:size]) for content in contents], np.uint8)
    assert checksum_rows(rows).tolist() == [checksum(bytes(row)) for row in rows.tolist()]


def test_checksum_tells_any_change_within_a_word():
    row = rows_of(1, 44)
    seen = {int(checksum_rows(row)[0])}
    for place in range(44):
        for bit in range(8):
            changed = row.copy()
            changed[0, place] ^= 1 << bit
            seen.add(int(checksum_rows(changed)[0]))
    assert len(seen) == 1 + 44 * 8
    flipped = row.copy()
    flipped[0, [7, 15]] ^= 128  # the top bits of two words cancel in a plain sum
    assert int(checksum_rows(flipped)[0]) not in seen


@given(
    st.integers(1, 19), st.lists(st.integers(0, 9), max_size=12), st.randoms(use_true_random=False)
)
def test_rows_read_equal_the_oracle(tmp_path_factory, size, wanted, random):
    path = tmp_path_factory.mktemp("rows") / "file"
    rows = rows_of(10, size)
    write(path, rows)
    places = random.sample(range(len(wanted) + 3), len(wanted))
    count, out = read(path, wanted, checksum_rows(rows), size, places, len(wanted) + 3)
    assert count == len(wanted)
    expected = np.full((len(wanted) + 3, size), 255, np.uint8)
    for row, place in zip(wanted, places, strict=True):
        expected[place] = rows[row]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("wanted", [[0, 1, 2, 3, 4, 5], [5, 3, 1, 4], [4], [2, 4, 4, 0]])
def test_the_first_row_that_is_not_as_written_is_told(tmp_path, wanted):
    rows = rows_of(6, 12)
    sums = checksum_rows(rows)
    rows[4, 11] ^= 1
    write(tmp_path / "file", rows)
    assert read(tmp_path / "file", wanted, sums, 12)[0] == wanted.index(4)


@pytest.mark.parametrize("wanted", [[0, 1, 2, 3], [0, 3], [3]])
def test_a_cut_file_is_told(tmp_path, wanted):
    """A run that ends after the file's end counts as unread from its start."""
    rows = rows_of(4, 16)
    write(tmp_path / "file", rows)
    content = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(content[:-1])
    assert read(tmp_path / "file", wanted, checksum_rows(rows), 16)[0] < len(wanted)


def test_a_descriptor_that_cannot_be_read_is_told():
    rows = rows_of(2, 8)
    out = np.empty((2, 8), np.uint8)
    assert read_rows(-1, 0, np.arange(2), checksum_rows(rows), out, np.arange(2)) == 0
