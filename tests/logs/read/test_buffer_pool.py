"""Buffers that blocks are read into."""

import tracemalloc

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from fastscore.logs.read.lines import buffers_kept, take_buffer

SIZES = [1 << 20, (8 << 20) + 1, 40 << 20]


@pytest.fixture
def kept():
    with buffers_kept():
        yield


def address(view: memoryview) -> int:
    return np.frombuffer(view, np.uint8).ctypes.data


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("size", SIZES)
def test_a_buffer_is_used_again_when_nothing_uses_it_any_more(size):
    first = take_buffer(size)
    place = address(first)
    assert len(first) == size
    assert address(take_buffer(size)) != place
    del first
    assert place in {address(view) for view in [take_buffer(size) for _ in range(2)]}


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize("size", SIZES)
def test_a_buffer_is_not_used_again_while_a_column_shows_it(size):
    view = take_buffer(size)
    text = b"a text of more than twelve bytes"
    view[100 : 100 + len(text)] = text
    place, data = address(view), np.frombuffer(view[:200], np.uint8)
    views = np.array([[len(text), int.from_bytes(text[:4], "little"), 0, 100]], np.int32)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data[50:][-150:].base)]
    column = pl.Series("", pa.Array.from_buffers(pa.string_view(), 1, buffers))
    del view, data, buffers
    others = [take_buffer(size) for _ in range(20)]
    assert place not in {address(other) for other in others}
    assert column.to_list() == [text.decode()]


def test_nothing_is_kept_when_nothing_reads():
    tracemalloc.start()
    try:
        with buffers_kept():
            view = take_buffer(40 << 20)
            del view
            assert tracemalloc.get_traced_memory()[0] > 64 << 20
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
        take_buffer(40 << 20)
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
