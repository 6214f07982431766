"""Searching JSON strings where they stand, against Python's json and `in`."""

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from fastscore_kernels import jsonl
from fastscore_kernels.json_paths import find_places
from fastscore_kernels.json_texts import halved_strings, joined_contain
from hypothesis import given
from hypothesis import strategies as st

LETTERS = st.text(alphabet='ab\n"\\波动é😀', max_size=8)
LONG = st.lists(LETTERS, max_size=40).map("".join)
VALUES = st.none() | st.booleans() | LETTERS | LONG
PAIRS = st.lists(st.tuples(st.lists(VALUES, max_size=3), st.lists(LETTERS | LONG, max_size=4)))


def strings_of(rows: list[Any], *, ascii: bool) -> tuple[Any, ...]:
    """Write JSON arrays and find their elements: data, tags, starts, ends, offsets."""
    texts = [json.dumps(row, ensure_ascii=ascii).encode() for row in rows]
    ends = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
    data = np.frombuffer(b"".join(texts), np.uint8)
    place, _ = find_places(data, ends[:-1], ends[1:], [None])
    assert place.elements is not None
    values = place.elements
    offsets = np.searchsorted(values.owner, np.arange(len(rows) + 1))
    return data, values.tags, values.start, values.end, offsets


@given(PAIRS, st.booleans())
def test_joined_contain_oracle(pairs: list[tuple[list[Any], list[str]]], ascii: bool) -> None:
    found = strings_of([parts for parts, _ in pairs], ascii=ascii)
    haystacks = [row for row, (_, needles) in enumerate(pairs) for _ in needles]
    needles = pl.Series([text for _, wanted in pairs for text in wanted], dtype=pl.String)
    texts = ["\n".join(p if isinstance(p, str) else "" for p in parts) for parts, _ in pairs]
    expected = [n in texts[h] for h, n in zip(haystacks, needles.to_list(), strict=True)]
    assert joined_contain(*found, np.array(haystacks, np.int64), needles).tolist() == expected


@given(LONG, st.integers(0, 400), st.integers(1, 200))
def test_what_stands_in_a_text_is_found_wherever_it_stands(text: str, at: int, size: int) -> None:
    text = "波ab" * 100 + text
    needle = text[at : at + size]
    found = strings_of([[text]], ascii=False)
    pair = np.zeros(2, np.int64)
    needles = pl.Series([needle, needle + "!"])
    assert joined_contain(*found, pair, needles).tolist() == [True, False]


def test_as_many_needles_as_haystacks_are_wanted() -> None:
    found = strings_of([["a"]], ascii=True)
    with pytest.raises(ValueError, match="needles are 1, haystacks 2"):
        joined_contain(*found, np.zeros(2, np.int64), pl.Series(["a"]))


@given(st.lists(st.lists(st.sampled_from(["\\ud83d", "\\uDE00", "\\n", "é", "x" * 70, "\\\\ud8"]))))
def test_halves_of_surrogate_pairs_are_found(parts: list[list[str]]) -> None:
    inside = ["".join(part) for part in parts]
    ends = np.cumsum([len(text.encode()) for text in inside], dtype=np.int64)
    starts = ends - np.array([len(text.encode()) for text in inside], np.int64)
    data = np.frombuffer("".join(inside).encode(), np.uint8)
    expected = []
    for text in inside:
        try:
            json.loads(f'"{text}"').encode()
            expected.append(False)
        except UnicodeEncodeError:
            expected.append(True)
    assert halved_strings(data, starts, ends).tolist() == expected
    _, _, found = jsonl.unescaped(data, starts, ends)
    assert (found < 0).tolist() == expected
