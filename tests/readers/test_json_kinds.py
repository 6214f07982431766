"""Kinds of JSON values, against Python's json."""

import json
from typing import Any

from fastscore_readers.json import tokens
from fastscore_readers.json.located_values import value_kinds
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.json_texts import ranges
from tests.readers.test_json_lines import tag_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def python_value(data: bytes, tag: int, start: int, end: int) -> Any:
    raw = data[start:end]
    return json.loads(b'"' + raw + b'"' if tag in (tokens.STRING, tokens.ESCAPED) else raw)


@given(st.lists(VALUES, max_size=4), st.sampled_from(["", " ", "\n\t"]))
def test_value_kinds_oracle(values: list[Any], blank: str) -> None:
    texts = [(blank + json.dumps(value) + blank).encode() for value in values]
    tags, begins, finishes = value_kinds(*ranges(texts))
    data = b"".join(texts)
    for value, tag, begin, end in zip(values, tags, begins, finishes, strict=True):
        assert tag in tag_of(value)
        assert python_value(data, tag, begin, end) == value


def test_blank_ranges_hold_nothing() -> None:
    tags, _, _ = value_kinds(*ranges([b" ", b"", b"[]"]))
    assert tags.tolist() == [tokens.ABSENT, tokens.ABSENT, tokens.ARRAY]
