"""Columns of buffers: their rows, how long their memory lives, and where it lies."""

import gc
import threading
import weakref
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from fastscore_jit.arrow import (
    StringColumn,
    arrow_array,
    arrow_column,
    list_column,
    string_column,
    text_rows,
    texts_in_place,
    view_column,
    viewed_strings,
)

SHORT, LONG, OTHER = "short", "a text beyond its view", "and another of these"


class Kept(np.ndarray[Any, Any]):
    """An array that can be watched."""


def column():
    """Make a column of views in two buffers: SHORT, LONG, null, OTHER."""
    first, second = (np.frombuffer(text.encode(), np.uint8).view(Kept) for text in (LONG, OTHER))
    views = np.zeros(4, "S16")
    views[0] = len(SHORT).to_bytes(4, "little") + SHORT.encode()
    for row, text, buffer in ((1, LONG, 0), (3, OTHER, 1)):
        head = len(text).to_bytes(4, "little") + text[:4].encode()
        views[row] = head + buffer.to_bytes(4, "little")
    present = np.array([True, True, False, True])
    made = view_column(present, views.view(np.int32).reshape(-1, 4), (first, second))
    return pl.Series(made), weakref.ref(first), weakref.ref(second)


def test_rows_of_views_in_several_buffers():
    series, *_ = column()
    assert series.to_list() == [SHORT, LONG, None, OTHER]
    assert text_rows("texts", series, nulls=True).to_list() == [SHORT, LONG, None, OTHER]
    assert series.drop_nulls().sort().to_list() == [LONG, OTHER, SHORT]


def test_texts_of_one_buffer_stay_in_place():
    series, *_ = column()
    rows = series[[3, 2, 3]]
    found = texts_in_place(rows)
    del series
    gc.collect()
    data, start, end = found
    texts = [data[begin:until].tobytes().decode() for begin, until in zip(start, end, strict=True)]
    assert texts == [OTHER, "", OTHER]


@pytest.mark.parametrize("rows", [[0, 1], [1, 3], [2], []])
def test_texts_within_views_or_of_several_buffers_have_no_common_place(rows):
    series, *_ = column()
    assert texts_in_place(series[rows]) is None


def test_memory_lives_as_long_as_a_slice_and_no_longer():
    series, first, second = column()
    rest = series.slice(3, 1)
    del series
    gc.collect()
    assert second() is not None
    assert rest.to_list() == [OTHER]
    del rest
    assert (first(), second()) == (None, None)


def test_threads_let_go_of_columns():
    left = []

    def work():
        for _ in range(300):
            series, first, _ = column()
            series.str.len_bytes().sum()
            del series
            left.append(first())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(left) == {None}


def test_nothing_is_copied():
    values = np.arange(4)
    bits = np.array([0b1011], np.uint8)
    series = pl.Series(arrow_column("int64", 4, [bits, values]))
    assert series.to_list() == [0, 1, None, 3]
    values[0] = 7
    assert series[0] == 7
    read = viewed_strings(arrow_array(pl.Series([LONG, OTHER])))
    again = viewed_strings(arrow_array(pl.Series([LONG])))
    assert read.buffer(0).tobytes().startswith(LONG.encode())
    assert again.present is None


@pytest.mark.parametrize(
    "items",
    [
        pl.Series([SHORT, LONG, None, OTHER]),
        pl.Series([SHORT, LONG, None, OTHER], dtype=pl.Categorical),
        pl.Series([{"text": LONG, "of": [1]}, {"text": None, "of": []}, None, {"text": SHORT}]),
        pl.Series([1, None, 3, 4]),
    ],
    ids=lambda items: str(items.dtype),
)
def test_lists_of_any_items(items):
    lists = pl.Series(list_column(arrow_array(items), np.array([0, 1, 1, 4])))
    values = items.to_list()
    assert lists.to_list() == [values[:1], [], values[1:]]
    assert lists.dtype == pl.List(items.dtype)


def test_a_string_column_is_taken_by_other_libraries():
    texts = [SHORT, "", "é", LONG]
    found = string_column("texts", texts)
    assert isinstance(found, StringColumn)
    assert found.to_list() == texts
    assert pa.array(found).to_pylist() == texts
    for _ in range(2):
        assert pl.Series(found).to_list() == texts
