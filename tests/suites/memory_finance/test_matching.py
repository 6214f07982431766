"""Matches of the suite in texts and in JSON columns, against Python."""

import json
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from fastscore.suites.json_values import column_values, elements
from fastscore.suites.memory_finance import replies
from fastscore.suites.memory_finance.replies import contains, match_groups
from tests.suites.memory_finance.tracing import dialog, first_turn, turn

letters = st.text(alphabet="ab波动é😀", max_size=8)
words = st.text(alphabet="ab波动é😀", min_size=1, max_size=3)
groups_of_words = st.lists(st.lists(words, max_size=3), max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(texts=st.lists(letters, max_size=6), groups=groups_of_words, repeat=st.sampled_from((1, 40)))
def test_groups_are_matched_as_python_matches_them(
    texts: list[str], groups: list[list[str]], repeat: int
) -> None:
    groups = groups * repeat
    found = match_groups(pl.Series("texts", texts, dtype=pl.String), groups)
    for group, keywords in enumerate(groups):
        expected = [any(keyword in text for keyword in keywords) for text in texts]
        assert found.of_group(group).tolist() == expected
        rows = np.arange(len(texts))
        assert found.of_pairs(rows, np.full(len(texts), group)).tolist() == expected


@given(pairs=st.lists(st.tuples(letters, letters), min_size=1))
def test_pairs_are_searched_as_python_searches_them(pairs: list[tuple[str, str]]) -> None:
    texts, needles = (pl.Series(list(column)) for column in zip(*pairs, strict=True))
    assert contains(texts, needles).tolist() == [needle in text for text, needle in pairs]


@given(
    rows=st.lists(st.lists(json_values, max_size=4), min_size=1, max_size=4), indent=st.booleans()
)
def test_arrays_are_split_as_python_reads_them(rows: list[list[Any]], indent: bool) -> None:
    written = [json.dumps(row, indent=2 if indent else None, ensure_ascii=indent) for row in rows]
    found, owner = elements(column_values(pl.Series("x", written)))
    assert owner.tolist() == [row for row, items in enumerate(rows) for _ in items]
    assert [found.python(row) for row in range(len(found))] == [v for row in rows for v in row]
    paths = [f"x[{position}]" for items in rows for position in range(len(items))]
    assert [found.path(row) for row in range(len(found))] == paths


def test_phrases_beyond_one_automaton_are_found_too(monkeypatch: Any) -> None:
    monkeypatch.setattr(replies, "LARGEST_AUTOMATON", 4)
    phrases = ["甲", "保本保收益", "没有的话"]
    row = first_turn(
        dialog(turn("甲保本保收益", rubric=phrases), blueprint={"forbidden_list": phrases})
    )
    assert row["forbidden_hits"] == ["甲", "保本保收益"]
    assert row["rubric_hit_items"] == ["甲", "保本保收益"]
