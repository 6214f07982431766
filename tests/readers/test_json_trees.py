"""Trees of JSON values against a walk over what Python's json reads."""

import json
from typing import Any

import numpy as np
import pytest
from fastscore_readers.json import tokens
from fastscore_readers.json.trees import Nodes, find_nodes
from hypothesis import given
from hypothesis import strategies as st

from tests.readers.test_json_lines import tag_of
from tests.readers.test_json_places import VALUES, Members, written

Node = tuple[int, str | None, Any]
"""The place of a value's parent among the nodes, its key, and the value."""


def naive_nodes(value: Any, parent: int = -1, key: str | None = None) -> list[Node]:
    """List a value and all below it, parents counted from the value on."""
    found: list[Node] = [(parent, key, value)]
    if isinstance(value, list):
        members = value if isinstance(value, Members) else [(None, part) for part in value]
        for name, part in members:
            below = naive_nodes(part, 0, name)
            found += [(up + len(found) if n else 0, k, v) for n, (up, k, v) in enumerate(below)]
    return found


def plain(value: Any) -> Any:
    """Return a value with its objects as dictionaries."""
    if isinstance(value, Members):
        return {key: plain(part) for key, part in value}
    return [plain(part) for part in value] if isinstance(value, list) else value


def find(texts: list[bytes]) -> tuple[Nodes, bytes]:
    data = b"".join(texts)
    lengths = np.array([len(text) for text in texts], np.int64)
    ends = np.cumsum(lengths)
    return find_nodes(np.frombuffer(data, np.uint8), ends - lengths, ends), data


def text_of(raw: bytes, tag: int) -> Any:
    if tag in (tokens.STRING, tokens.ESCAPED):
        assert (b"\\" in raw) == (tag == tokens.ESCAPED)
        raw = b'"' + raw + b'"'
    return json.loads(raw)


def check(nodes: Nodes, document: int, value: Any, data: bytes) -> None:
    first, last = nodes.offsets[document], nodes.offsets[document + 1]
    expected = naive_nodes(value)
    assert last - first == len(expected)
    for node, (parent, key, part) in enumerate(expected, start=int(first)):
        assert nodes.parent[node] == (-1 if parent < 0 else first + parent)
        tag = int(nodes.tags[node])
        assert tag in tag_of(plain(part))
        raw = data[nodes.start[node] : nodes.end[node]]
        assert json.dumps(text_of(raw, tag)) == json.dumps(plain(part))
        if key is None:
            assert nodes.key_start[node] == -1
        else:
            raw = data[nodes.key_start[node] : nodes.key_end[node]]
            assert json.loads(b'"' + raw + b'"') == key


@given(st.lists(VALUES, max_size=4), st.booleans(), st.sampled_from(["", " ", "\r\n\t"]))
def test_oracle(values: list[Any], ascii: bool, space: str) -> None:
    texts = [f"{space}{written(value, ascii)}{space}" for value in values]
    nodes, data = find([text.encode("utf-8", "surrogatepass") for text in texts])
    assert len(nodes.offsets) == len(values) + 1
    for document, text in enumerate(texts):
        again = json.JSONDecoder(object_pairs_hook=Members).decode(text)
        check(nodes, document, again, data)


@given(VALUES, st.data())
def test_documents_that_are_no_json_have_one_node_and_leave_the_others(
    value: Any, data: st.DataObject
) -> None:
    text = written(value, True)
    place = data.draw(st.integers(0, len(text)))
    broken = data.draw(
        st.sampled_from([text[:place], text[:place] + "\x01" + text[place:], text + "]", text[1:]])
    )
    sound = [{"a": [1, {"b": "x"}]}, [[]]]
    texts = [json.dumps(sound[0]), broken, json.dumps(sound[1])]
    nodes, found = find([text.encode() for text in texts])
    for document, text in enumerate(texts):
        try:
            again = json.JSONDecoder(object_pairs_hook=Members).decode(text)
        except ValueError:
            first = nodes.offsets[document]
            assert nodes.offsets[document + 1] == first + 1
            assert nodes.tags[first] == tokens.ABSENT
            assert nodes.parent[first] == -1
        else:
            check(nodes, document, again, found)


def test_nesting_of_any_depth_and_documents_of_many_values() -> None:
    deep = b"[" * 100_000 + b"]" * 100_000
    nodes, _ = find([deep, b"[" + b"1," * 50_000 + b"1]", b"", b" \n"])
    assert np.diff(nodes.offsets).tolist() == [100_000, 50_002, 1, 1]
    assert nodes.parent[:100_000].tolist() == list(range(-1, 99_999))
    assert (nodes.end - nodes.start)[:100_000:50_000].tolist() == [200_000, 100_000]
    assert nodes.tags[-2:].tolist() == [tokens.ABSENT, tokens.ABSENT]


def test_documents_of_many_keys() -> None:
    names = [f"key {number % 3000}" for number in range(10_000)]
    nodes, data = find([json.dumps({name: 0}).encode() for name in names])
    spans = zip(nodes.key_start[1::2], nodes.key_end[1::2], strict=True)
    assert [data[start:end].decode() for start, end in spans] == names


def test_no_document() -> None:
    nodes, _ = find([])
    assert nodes.offsets.tolist() == [0]
    assert len(nodes.tags) == 0


@pytest.mark.parametrize(("starts", "ends"), [([-1], [0]), ([1], [0]), ([0], [3]), ([0], [1, 2])])
def test_ranges_outside_of_the_bytes_are_refused(starts: list[int], ends: list[int]) -> None:
    with pytest.raises(ValueError, match="starts"):
        find_nodes(np.zeros(2, np.uint8), np.array(starts), np.array(ends))
