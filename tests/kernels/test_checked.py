"""Kernels with bounds checks: one of every kind of access names the index out of range."""

from importlib import import_module

import numpy as np
import pytest
from fastscore_jit.declaring import CHECKED
from fastscore_jit.memory import Views
from fastscore_kernels.ngrams import _allocate_scratch
from fastscore_kernels.shared import _Texts

pytestmark = pytest.mark.skipif(not CHECKED, reason="kernels are compiled without checks")

KERNELS = "fastscore_kernels"
_HELD = []


def longs(*values):
    return np.array(values, np.int64)


def octets(text):
    return np.frombuffer(text, np.uint8)


def rows(*texts):
    """Return the views of texts, which are kept."""
    held = [octets(text) for text in texts]
    _HELD.extend(held)
    return Views(longs(*[each.ctypes.data for each in held]), longs(*map(len, texts)))


def empty(shape, dtype=np.int64):
    return np.zeros(shape, dtype)


CUT = b"\xe4"  # the first of three bytes

CASES = {
    "fastscore_jit.arrow:_rows_of_views": (
        lambda: (empty(0), empty(16, np.uint8), 1, Views(empty(1), empty(1))),
        "4 items at index 16 of 16",
    ),
    f"{KERNELS}._lanes:lane_distances": (
        lambda: (rows(CUT), rows(b"b"), empty(1, np.int32)),
        "1 items at index 1 of 1",
    ),
    f"{KERNELS}.ids:_hash_rows": (
        lambda: (rows(b"abc"), 0, 2, empty((2, 2), np.uint64)),
        "1 items at index 1 of 1",
    ),
    f"{KERNELS}.strings:_mark_changes": (
        lambda: (rows(b"abc", b"abd"), empty(1, np.bool_)),
        "1 items at index 1 of 1",
    ),
    f"{KERNELS}.words:_count_phrases": (
        lambda: (
            (octets(b"ab"), longs(0, 5), longs(0), longs(0)),
            (octets(b"b"), longs(0, 1), longs(0), longs(0, 1)),
            longs(1),
            empty((3, 1)),
        ),
        "5 items at index 0 of 2",
    ),
    f"{KERNELS}.sets:_intersections": (
        lambda: (empty(1, np.int32), longs(0, 4), empty(1, np.int32), longs(0, 1), empty(1), 0, 1),
        "16 items at index 0 of 4",
    ),
    f"{KERNELS}.file_rows:_read_rows": (
        lambda: (
            0,
            0,
            longs(0),
            empty(1, np.uint64),
            empty(1, np.uint64),
            empty(1, np.uint64),
            empty((2, 8), np.uint8),
            longs(5),
        ),
        "8 items at index 40 of 16",
    ),
    f"{KERNELS}.shared:_count_ngrams": (
        lambda: (
            _Texts(octets(CUT), longs(0, 1)),
            _Texts(octets(b"b"), longs(0, 1)),
            2,
            empty((3, 1)),
            0,
            1,
        ),
        "1 items at index 1 of 1",
    ),
    f"{KERNELS}.ngrams:_copy_ratios": (
        lambda: (
            (octets(b"ab"), longs(0, 5)),
            (octets(b"ab"), longs(0, 2)),
            longs(1),
            *_allocate_scratch(5),
            empty(1, np.float64),
            0,
            1,
        ),
        "5 items at index 0 of 2",
    ),
}


@pytest.mark.parametrize("identity", CASES)
def test_a_view_out_of_range_is_named(identity):
    arguments, touched = CASES[identity]
    module, _, name = identity.partition(":")
    kernel = getattr(import_module(module), name)
    with pytest.raises(IndexError) as raised:
        kernel(*arguments())
    assert str(raised.value) == f"kernel `{identity}` touches {touched}"
