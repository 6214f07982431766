"""Numbers of distinct rows, against a dictionary of them."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from fastscore.suites.distinct import distinct_rows

numbers = st.sampled_from([0, 1, 2, 1 << 20, (1 << 31) - 1])


@given(st.lists(st.tuples(numbers, numbers, numbers), max_size=12))
@example([(1 << 31, 1 << 31, 0), (0, 0, 1 << 31), (1 << 31, 1 << 31, 0)])
def test_distinct_rows_are_numbered_by_first_appearance(rows):
    columns = [np.array([row[place] for row in rows], np.int64) for place in range(3)]
    codes, firsts = distinct_rows(columns)
    known = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    assert codes.tolist() == [known[row] for row in rows]
    assert firsts.tolist() == [rows.index(row) for row in known]
