"""Offsets that 32 bits do not hold: two gigabytes of memory each, so only run when asked for."""

import numpy as np
import pyarrow as pa
import pytest
from fastscore_kernels import levenshtein_pairs, ngram_copy_ratio, text_hash128

pytestmark = pytest.mark.slow

SIZE = (1 << 31) + 64
TEXTS = ("kitten one two three", "abc")


@pytest.fixture(scope="module")
def column():
    """Return two texts after a row of two gigabytes, which the slice leaves out."""
    data = np.zeros(SIZE, np.uint8)
    ends = "".join(TEXTS).encode()
    data[-len(ends) :] = np.frombuffer(ends, np.uint8)
    offsets = np.array([0, SIZE - len(ends), SIZE - len(TEXTS[1]), SIZE], np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), 3, buffers).slice(1)


def test_levenshtein(column):
    other = ["sitting one two three", "abd"]
    assert levenshtein_pairs(column, other).tolist() == [3, 1]
    assert levenshtein_pairs(other, column).tolist() == [3, 1]


def test_copy_ratio(column):
    other = ["One two THREE", "abc"]
    # of (kitten one two) and (one two three) the second is copied; no word triple in "abc"
    assert ngram_copy_ratio(column, other, (3,)).tolist() == [0.5, 0.0]


def test_text_hash(column):
    assert text_hash128(column).tolist() == text_hash128(list(TEXTS)).tolist()
