"""Kinds and texts of JSON values at places of lines, against Python's json."""

import json

import numpy as np
from fastscore_readers import fill
from fastscore_readers.fill import value_kinds
from fastscore_readers.json import tokens
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.json_texts import LONG_TEXT, ranges
from tests.readers.test_json_lines import tag_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


def python_value(data, tag, start, end):
    raw = data[start:end]
    return json.loads(b'"' + raw + b'"' if tag in (tokens.STRING, tokens.ESCAPED) else raw)


@given(st.lists(VALUES, max_size=4), st.sampled_from(["", " ", "\n\t"]))
def test_value_kinds_oracle(values, blank):
    texts = [(blank + json.dumps(value) + blank).encode() for value in values]
    tags, begins, finishes = value_kinds(*ranges(texts))
    data = b"".join(texts)
    for value, tag, begin, end in zip(values, tags, begins, finishes, strict=True):
        assert tag in tag_of(value)
        assert python_value(data, tag, begin, end) == value


def test_blank_ranges_hold_nothing():
    tags, _, _ = value_kinds(*ranges([b" ", b"", b"[]"]))
    assert tags.tolist() == [tokens.ABSENT, tokens.ABSENT, tokens.ARRAY]


@given(st.lists(st.text(max_size=9) | st.sampled_from(["\ud83d\ude00", "\ud800", "a\udfff"])))
def test_unescaped(texts):
    raw = [json.dumps(text)[1:-1].encode() for text in texts]
    out, starts, ends = fill.unescaped(*ranges(raw))
    for text, start, end in zip(texts, starts, ends, strict=True):
        meant = json.loads(json.dumps(text))
        if any("\ud800" <= character <= "\udfff" for character in meant):
            assert end == -1
        else:
            assert out[start:end].tobytes().decode() == meant


@given(st.lists(st.text(max_size=30)), st.lists(st.text(max_size=30)))
def test_views_make_string_columns(first, second):
    import polars as pl
    import pyarrow as pa

    views = np.zeros((len(first) + len(second), 4), np.int32)
    data, starts, ends = ranges([text.encode() for text in first])
    none = np.full(len(second), -1, np.int64)
    fill.views(data, np.concatenate((starts, none)), np.concatenate((ends, none)), 0, views)
    other, starts, ends = ranges([text.encode() for text in second])
    none = np.full(len(first), -1, np.int64)
    fill.views(other, np.concatenate((none, starts)), np.concatenate((none, ends)), 1, views)
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data), pa.py_buffer(other)]
    column = pa.Array.from_buffers(pa.string_view(), len(views), buffers)
    column.validate(full=True)
    assert pl.from_arrow(column).to_list() == first + second


@given(LONG_TEXT, LONG_TEXT)
def test_long_texts_are_unescaped_in_blocks(left, right):
    texts = [b"".join(pieces) for pieces in (left, right)]
    texts = [text for text in texts if is_string(text)]
    plain, at, until = fill.unescaped(*ranges(texts))
    for text, start, end in zip(texts, at, until, strict=True):
        assert plain[start:end].tobytes().decode() == json.loads(b'"' + text + b'"')


def is_string(inside):
    try:
        return isinstance(json.loads(b'"' + inside + b'"'), str)
    except ValueError:
        return False
