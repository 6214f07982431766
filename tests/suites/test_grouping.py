"""Numbers of distinct rows, numbers and texts, against a dictionary or a set of them."""

import json

import numpy as np
import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.suites.grouping import factorize_rows
from fastscore.suites.json_values import (
    Problems,
    column_values,
    python_texts,
    texts,
)

numbers = st.sampled_from([0, 1, 2, 1 << 20, (1 << 31) - 1])


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
@example([(1 << 31, 1 << 31, 0), (0, 0, 1 << 31), (1 << 31, 1 << 31, 0)])
def test_distinct_rows_are_numbered_by_first_appearance(rows):
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    codes, firsts = factorize_rows(columns)
    known = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    assert codes.tolist() == [known[row] for row in rows]
    assert firsts.tolist() == [rows.index(row) for row in known]


scalars = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(alphabet='ab波"\\\n😀', max_size=9)
)


@given(st.lists(scalars, max_size=8), st.booleans())
def test_texts_are_what_python_makes_of_values(values, ascii):
    written = pl.Series(
        [json.dumps(value, ensure_ascii=ascii) for value in values], dtype=pl.String
    )
    found = column_values(written)
    strings = [value if isinstance(value, str) else None for value in values]
    assert texts(found, Problems()).to_list() == strings
    assert texts(found, Problems(), or_empty=True).to_list() == [text or "" for text in strings]
    for falsy_is_empty in (False, True):
        made = [
            str(value or "") if falsy_is_empty else None if value is None else str(value)
            for value in values
        ]
        read = python_texts(found, Problems(), falsy_is_empty=falsy_is_empty)
        assert read.to_list() == made
