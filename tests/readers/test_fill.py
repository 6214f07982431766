"""Texts that are filled while their block is in the cache, against Python's json."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
from fastscore_readers.fill import Filled
from fastscore_readers.json import lines
from hypothesis import example, given
from hypothesis import strategies as st

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**19), 10**19),
    st.sampled_from([0, 1.5, [], {}, [1], {"t": "x"}]),
    st.text(max_size=20),
    st.integers(0, 200).map(lambda length: "ab" * length),
    st.sampled_from(["\ud800", 'a"b', "é" * 40, "\n" * 70, "\U0001f600" * 9, "x" * 12, "x" * 13]),
)
rows = st.lists(
    st.dictionaries(st.sampled_from(["t", "d", "other"]), values, max_size=3), max_size=40
)


def taken(row: dict[str, Any], key: str) -> tuple[str | None, bool]:
    """What a row's value becomes, and whether it is odd."""
    value = row.get(key)
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        return None, value is not None
    return value, False


def as_list(filled: Filled) -> list[str | None]:
    bits = pa.py_buffer(np.packbits(filled.valid, bitorder="little"))
    buffers = [bits, pa.py_buffer(filled.values), pa.py_buffer(filled.texts)]
    column = pa.Array.from_buffers(pa.string_view(), filled.valid.size, buffers)
    column.validate(full=True)
    return column.to_pylist()


@given(rows, st.booleans())
@example([{"t": "y" * 30}] * 3 + [{"t": "y" * 29 + "z"}, {"t": "y" * 30}], True)
def test_columns_equal_json(table: list[dict[str, Any]], ascii_only: bool) -> None:
    texts = [json.dumps(row, ensure_ascii=ascii_only) for row in table]
    data = "\n".join(texts).encode("utf-8", "surrogatepass")
    scan = lines.scan_jsonl(np.frombuffer(data, np.uint8), (b"t", b"d"), fill=(b"t", b"d"))
    good = [row for row, text in zip(table, texts, strict=True) if is_utf8(text)]
    for number, key in enumerate("td"):
        expected = [taken(row, key) for row in good]
        filled = scan.filled[number]
        assert as_list(filled) == [value for value, _ in expected]
        assert filled.odd == sum(odd for _, odd in expected)
        texts_there = [value for value, _ in expected]
        # a change may be marked where there is none, but none is left out
        for row, changed in enumerate(filled.changes.tolist()):
            assert changed or row == 0 or texts_there[row] == texts_there[row - 1]
        assert not (filled.changes[1:] & (texts_there[1:] == texts_there[:-1])).any()


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_texts_of_many_blocks_stand_in_one_buffer() -> None:
    texts = [f"{row % 7} " * 20 for row in range(20_000)]
    data = "\n".join(json.dumps({"t": text}) for text in texts).encode()
    scan = lines.scan_jsonl(np.frombuffer(data, np.uint8), (b"t",), fill=(b"t",))
    assert as_list(scan.filled[0]) == texts
