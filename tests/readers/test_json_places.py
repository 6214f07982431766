"""Places in nested JSON against a walk over Python's json objects."""

import json
from typing import Any

import numpy as np
import pytest
from fastscore_readers.json import lines, tokens
from fastscore_readers.json.lines import find_places
from hypothesis import example, given
from hypothesis import strategies as st

from tests.readers.json_texts import ranges
from tests.readers.test_json_lines import tag_of

MISSING = object()

KEYS = ["a", "key of many bytes", "key of many letters", "é", ""]


def shapes_below(inner):
    return st.dictionaries(st.sampled_from(KEYS), inner, max_size=3) | inner.map(lambda s: [s])


SHAPES = st.recursive(st.none(), shapes_below, max_leaves=6)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70)


class Members(list[tuple[str, Any]]):
    """An object as it is written, equal keys and all."""


def values_of(inner):
    keys = st.sampled_from([*KEYS, "other"])
    return st.lists(inner, max_size=3) | st.lists(st.tuples(keys, inner), max_size=4).map(Members)


VALUES = st.recursive(SCALARS, values_of, max_leaves=12)


def written(value, ascii):
    if isinstance(value, Members):
        parts = [f"{json.dumps(k, ensure_ascii=ascii)} : {written(v, ascii)}" for k, v in value]
        return "{ " + " ,\t".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(element, ascii) for element in value) + " ]"
    return json.dumps(value, ensure_ascii=ascii)


def naive_place(values, owner, shape):
    """Collect the values of a shape from parsed values; `MISSING` if there is none."""
    found = {"values": values, "owner": owner}
    if isinstance(shape, dict):
        found["members"] = {
            key: naive_place(
                [v.get(key, MISSING) if isinstance(v, dict) else MISSING for v in values],
                owner,
                below,
            )
            for key, below in shape.items()
        }
    elif shape is not None:
        pairs = [
            (element, row)
            for row, value in enumerate(values)
            if isinstance(value, list)
            for element in value
        ]
        found["elements"] = naive_place([e for e, _ in pairs], [r for _, r in pairs], shape[0])
    return found


def check(place, expected, data):
    assert place.owner.tolist() == expected["owner"]
    assert len(place.tags) == len(expected["values"])
    for row, value in enumerate(expected["values"]):
        tag = int(place.tags[row])
        if value is MISSING:
            assert tag == tokens.ABSENT
            continue
        assert tag in tag_of(value)
        raw = data[place.start[row] : place.end[row]]
        if tag in (tokens.STRING, tokens.ESCAPED):
            assert (b"\\" in raw) == (tag == tokens.ESCAPED)
            raw = b'"' + raw + b'"'
        assert json.dumps(json.loads(raw)) == json.dumps(value)
    assert place.members.keys() == expected.get("members", {}).keys()
    for key, below in expected.get("members", {}).items():
        check(place.members[key], below, data)
    assert (place.elements is None) == ("elements" not in expected)
    if place.elements is not None:
        check(place.elements, expected["elements"], data)


def is_valid(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def find(texts, shape):
    is_utf8 = all(is_valid(text) for text in texts)
    place, faulty = find_places(*ranges(texts), shape, is_utf8=is_utf8)
    return place, faulty.tolist(), b"".join(texts)


@given(st.lists(VALUES, max_size=4), SHAPES, st.booleans())
def test_oracle(values, shape, ascii):
    texts = [written(value, ascii) for value in values]
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    place, faulty, data = find(encoded, shape)
    assert faulty == []
    parsed = [json.loads(text) for text in texts]
    check(place, naive_place(parsed, list(range(len(values))), shape), data)


@given(st.binary(max_size=200), SHAPES)
@example(b'"', None)
def test_values_of_any_bytes_lie_within_them(text, shape):
    place, _, data = find([text, b"[]"], shape)
    found = place.tags != tokens.ABSENT
    assert ((place.start <= place.end) & (place.end <= len(data)))[found].all()


@given(VALUES, SHAPES, st.data())
def test_values_that_are_no_json_are_absent_and_leave_the_others(value, shape, data):
    text = written(value, True)
    place = data.draw(st.integers(0, len(text)))
    broken = data.draw(
        st.sampled_from([text[:place], text[:place] + "\n" + text[place:], text + "]", text[1:]])
    ).encode()
    sound = b'{"a": [1, {"a": "x"}], "a": [[2]]}'
    found, faulty, whole = find([sound, broken, sound], shape)
    try:
        parsed = json.loads(broken) if broken.strip() else MISSING
        expected_faults = []
    except ValueError:
        parsed, expected_faults = MISSING, [1] if broken.strip(b" \t\n") else []
    assert faulty == expected_faults
    values = [json.loads(sound), parsed, json.loads(sound)]
    check(found, naive_place(values, [0, 1, 2], shape), whole)


def test_more_values_than_expected():
    """Room is made while the walk goes on, and a value that found none is walked again."""
    rows = [b'{"a":[' + b",".join([b"[1]"] * n) + b"]}" for n in (3, 5_000, 0, 700)]
    place, faulty, _ = find(rows, {"a": [[None]]})
    assert faulty == []
    arrays = place.members["a"].elements
    assert np.bincount(arrays.owner).tolist() == [3, 5_000, 0, 700]
    assert arrays.elements.owner.tolist() == list(range(5_703))


def test_keys_must_be_distinct_shapes_whole():
    with pytest.raises(ValueError, match="values to unpack"):
        find([b"[]"], [None, None])


@given(
    st.lists(st.lists(st.sampled_from(b"\n\r\t ax"), max_size=200).map(bytes), max_size=5),
    st.integers(0, 70),
)
def test_texts_are_gathered_with_tabs_for_line_ends(gathered, between):
    gap = b"\n" * between
    ends = np.cumsum([len(text) + between for text in gathered], dtype=np.int64) - between
    starts = ends - np.array([len(text) for text in gathered], np.int64)
    out = np.zeros(sum(map(len, gathered)) + len(gathered), np.uint8)
    lines._gather(np.frombuffer(gap.join(gathered), np.uint8), starts, ends, out)
    tabs = bytes.maketrans(b"\n\r", b"\t\t")
    assert out.tobytes() == b"".join(text.translate(tabs) + b"\n" for text in gathered)
