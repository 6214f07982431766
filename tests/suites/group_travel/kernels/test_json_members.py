"""Members of JSON objects, against Python's json."""

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.suites.group_travel.json_members import find_members
from tests.readers.test_json_kinds import VALUES, ranges

OBJECTS = st.dictionaries(st.text(max_size=70), VALUES | st.text('"\\{}[], a', max_size=140))
Found = list[tuple[int, bytes, bytes]]


def members_of(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Found:
    found = find_members(data, starts, ends)
    raw = data.tobytes()
    return [
        (owner, raw[key:key_end], raw[start:end])
        for owner, key, key_end, start, end in zip(*map(np.ndarray.tolist, found), strict=True)
    ]


@given(st.lists(OBJECTS | VALUES, max_size=4), st.sampled_from([None, 1]))
def test_members_oracle(values: list[Any], indent: int | None) -> None:
    texts = [json.dumps(value, indent=indent) for value in values]
    _, data, starts, ends = ranges(texts)
    expected = [
        (row, json.dumps(key)[1:-1], json.dumps(value, indent=indent))
        for row, value in enumerate(values)
        if isinstance(value, dict)
        for key, value in value.items()
    ]
    read = [
        (row, key.decode(), json.dumps(json.loads(value), indent=indent))
        for row, key, value in members_of(data, starts, ends)
    ]
    assert read == expected


def test_equal_keys_are_all_there_and_white_space_is_none() -> None:
    _, data, starts, ends = ranges([' {"a" :\t1 ,\n"a": [2 ] }\r', "{ }", "", '"{"', "[{}]"])
    assert members_of(data, starts, ends) == [(0, b"a", b"1"), (0, b"a", b"[2 ]")]


def test_more_members_than_usual() -> None:
    many = {str(number): number for number in range(1000)}
    _, data, starts, ends = ranges([json.dumps(many), '{"a": {}}'])
    data.flags.writeable = False
    found = members_of(data, starts, ends)
    assert len(found) == 1001
    assert found[-2:] == [(0, b"999", b"999"), (1, b"a", b"{}")]


@given(st.binary(max_size=200).map(b'{"'.__add__) | st.text('{}[]":,\\ a1').map(str.encode))
def test_no_byte_is_read_beyond_a_range(raw: bytes) -> None:
    data = np.frombuffer(raw + b'"}]', np.uint8)
    found = find_members(data, np.zeros(1, np.int64), np.array([len(raw)]))
    for start, end in ((found.key_start, found.key_end), (found.start, found.end)):
        assert ((start >= 0) & (start <= end) & (end <= len(raw))).all()


def test_no_ranges() -> None:
    empty = np.zeros(0, np.int64)
    assert all(len(column) == 0 for column in find_members(np.zeros(0, np.uint8), empty, empty))
    with pytest.raises(ValueError, match="starts"):
        find_members(np.zeros(2, np.uint8), np.zeros(1, np.int64), np.array([3]))
