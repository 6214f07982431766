"""Kinds of JSON values, against Python's json."""

import json
from typing import Any

import numpy as np
from fastscore_readers.json import tokens
from fastscore_readers.json.located_values import value_kinds
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.test_json_lines import tag_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def ranges(texts: list[str]) -> tuple[bytes, np.ndarray, np.ndarray, np.ndarray]:
    written = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in written], dtype=np.int64)
    starts = ends - np.array([len(text) for text in written], np.int64)
    data = b"".join(written)
    return data, np.frombuffer(data, np.uint8), starts, ends


def python_value(data: bytes, tag: int, start: int, end: int) -> Any:
    raw = data[start:end]
    return json.loads(b'"' + raw + b'"' if tag in (tokens.STRING, tokens.ESCAPED) else raw)


@given(st.lists(VALUES, max_size=4), st.sampled_from(["", " ", "\n\t"]))
def test_value_kinds_oracle(values: list[Any], blank: str) -> None:
    data, buffer, starts, ends = ranges([blank + json.dumps(value) + blank for value in values])
    tags, begins, finishes = value_kinds(buffer, starts, ends)
    for value, tag, begin, end in zip(values, tags, begins, finishes, strict=True):
        assert tag in tag_of(value)
        assert python_value(data, tag, begin, end) == value


def test_blank_ranges_hold_nothing() -> None:
    _, buffer, starts, ends = ranges([" ", "", "[]"])
    tags, _, _ = value_kinds(buffer, starts, ends)
    assert tags.tolist() == [tokens.ABSENT, tokens.ABSENT, tokens.ARRAY]
