import numpy as np
import pytest
from fastscore_kernels import checksum_rows, read_rows
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.kernels import checksum

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


def test_wrong_arguments_are_refused():
    sums, out = np.zeros(3, np.uint64), np.empty((2, 8), np.uint8)
    with pytest.raises(IndexError, match="`rows` holds 3"):
        read_rows(-1, 0, np.array([3]), sums, out, np.array([0]))
    with pytest.raises(IndexError, match="`places` holds 2"):
        read_rows(-1, 0, np.array([0]), sums, out, np.array([2]))
    with pytest.raises(ValueError, match="`places` has 2"):
        read_rows(-1, 0, np.array([0]), sums, out, np.array([0, 1]))
    with pytest.raises(ValueError, match="C-contiguous uint8"):
        read_rows(-1, 0, np.array([0]), sums, out.view(np.float32), np.array([0]))
    with pytest.raises(ValueError, match="C-contiguous uint8"):
        checksum_rows(out.T)
