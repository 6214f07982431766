"""Searching JSON strings in place, against Python's json and `in`."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.suites.memory_finance.events import (
    ESCAPED,
    NUMBERED,
    PLAIN,
    joined_contain,
)

LETTERS = st.text(alphabet='abn/\n"\\波动é😀', max_size=8)
LONG = st.lists(LETTERS, max_size=40).map("".join)
PAIRS = st.lists(
    st.tuples(st.lists(LETTERS | LONG, max_size=3), st.lists(LETTERS | LONG, max_size=4))
)


def kind_of(inside: str) -> int:
    """How a string is written."""
    escaped = NUMBERED if "\\u" in inside else ESCAPED
    return escaped if "\\" in inside else PLAIN


def written(rows: list[list[str]], *, ascii: bool) -> tuple[Any, ...]:
    """Write texts as the insides of JSON strings: these, how they are written, offsets."""
    inside = [json.dumps(text, ensure_ascii=ascii)[1:-1] for texts in rows for text in texts]
    inside = [text.replace("/", "\\/") for text in inside]
    escaped = np.array([kind_of(text) for text in inside], np.uint8)
    offsets = np.cumsum([0, *(len(texts) for texts in rows)], dtype=np.int64)
    return pl.Series(inside, dtype=pl.String), escaped, offsets


@given(PAIRS, st.booleans())
def test_joined_contain_oracle(pairs: list[tuple[list[str], list[str]]], ascii: bool) -> None:
    found = written([texts for texts, _ in pairs], ascii=ascii)
    haystacks = [row for row, (_, wanted) in enumerate(pairs) for _ in wanted]
    needles = [needle for _, wanted in pairs for needle in wanted]
    joined = ["\n".join(texts) for texts, _ in pairs]
    expected = [needle in joined[row] for row, needle in zip(haystacks, needles, strict=True)]
    column = pl.Series(needles, dtype=pl.String)
    assert joined_contain(*found, np.array(haystacks, np.int64), column).tolist() == expected


@given(LONG, st.integers(0, 400), st.integers(1, 200))
def test_what_stands_in_a_text_is_found_wherever_it_stands(text: str, at: int, size: int) -> None:
    text = "波ab" * 100 + text
    needle = text[at : at + size]
    needles = pl.Series([needle, needle + "!"])
    pairs = np.zeros(2, np.int64)
    assert joined_contain(*written([[text]], ascii=False), pairs, needles).tolist() == [True, False]


def test_a_lone_surrogate_makes_the_empty_text() -> None:
    parts = pl.Series(["a", "b\\ud83d", "c"])
    escaped, offsets = np.array([0, 2, 0], np.uint8), np.array([0, 3])
    needles = pl.Series(["a\n\nc", "b", ""])
    found = joined_contain(parts, escaped, offsets, np.zeros(3, np.int64), needles)
    assert found.tolist() == [True, False, True]


def test_as_many_needles_as_haystacks_are_wanted() -> None:
    with pytest.raises(ValueError, match="`needles` has 1 rows"):
        joined_contain(*written([["a"]], ascii=True), np.zeros(2, np.int64), pl.Series(["a"]))
