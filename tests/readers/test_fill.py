"""Columns that are filled while their block is in the cache, against Python's json."""

import json

import numpy as np
import pyarrow as pa
from fastscore_readers.fill import ODD, TEXT, TEXT_OR_WHOLE, WHOLE
from fastscore_readers.json import lines
from fastscore_readers.json.tokens import NULL
from hypothesis import example, given
from hypothesis import strategies as st

KINDS = {b"t": TEXT, b"d": TEXT_OR_WHOLE, b"n": WHOLE}

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**19), 10**19),
    st.sampled_from([0, 10**17, 10**18 - 1, 10**18, -(10**18), 1.5, [], {}, [1], {"t": "x"}]),
    st.text(max_size=20),
    st.integers(0, 200).map(lambda length: "ab" * length),
    st.sampled_from(["\ud800", 'a"b', "é" * 40, "\n" * 70, "\U0001f600" * 9, "x" * 12, "x" * 13]),
)
rows = st.lists(
    st.dictionaries(st.sampled_from(["t", "d", "n", "other"]), values, max_size=4), max_size=16
)


def taken(kind, row, key):
    """The filled value of a row's value, and whether it is odd."""
    value = row.get(key)
    if value is None:
        return None, False
    if kind == WHOLE:
        fits = type(value) is int and len(str(value)) <= 18
        return (value, False) if fits else (None, True)
    if type(value) is int and kind == TEXT_OR_WHOLE:
        return (str(value), False) if value >= 0 else (None, True)
    if not isinstance(value, str) or any("\ud800" <= c <= "\udfff" for c in value):
        return None, True
    return value, False


def as_list(kind, scan, number):
    """Read a filled column, and that odd values have their places."""
    is_odd = scan.columns.tags[number] >= ODD
    valid = (scan.tags[number] > NULL) & ~is_odd
    words = scan.columns.words[number]
    for row in np.flatnonzero(is_odd).tolist():
        start, end = words[row].tolist()
        assert scan.start[row] < start <= end < scan.end[row]
    values = np.where(valid[:, None], words, 0)
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [bits, pa.py_buffer(values[:, 0].copy() if kind == WHOLE else values)]
    if kind != WHOLE:
        buffers.append(pa.py_buffer(scan.columns.texts))
    type_ = pa.int64() if kind == WHOLE else pa.string_view()
    column = pa.Array.from_buffers(type_, valid.size, buffers)
    column.validate(full=True)
    return column.to_pylist()


@given(rows, st.booleans())
@example([{"t": "y" * 30}] * 3 + [{"t": "y" * 29 + "z"}, {"t": "y" * 30}], True)
def test_columns_equal_json(table, ascii_only):
    texts = [json.dumps(row, ensure_ascii=ascii_only) for row in table]
    data = "\n".join(texts).encode("utf-8", "surrogatepass")
    scan = lines.scan_jsonl(np.frombuffer(data, np.uint8), tuple(KINDS), fill=KINDS)
    good = [row for row, text in zip(table, texts, strict=True) if is_utf8(text)]
    for number, (key, kind) in enumerate(KINDS.items()):
        expected = [taken(kind, row, key.decode()) for row in good]
        found = as_list(kind, scan, number)
        pairs = zip(found, expected, strict=True)
        assert all(one == value for one, (value, is_odd) in pairs if not is_odd)
        assert scan.columns.odd[number] == sum(odd for _, odd in expected)


def is_utf8(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_an_integer_with_a_sign_is_no_text():
    data = b'{"d": 10}\n{"d": 0}\n{"d": null}\n{"n": -0}'
    scan = lines.scan_jsonl(np.frombuffer(data, np.uint8), tuple(KINDS), fill=KINDS)
    assert as_list(TEXT_OR_WHOLE, scan, 1) == ["10", "0", None, None]
    assert as_list(WHOLE, scan, 2) == [None, None, None, 0]
    data = b'{"d": -0}\n{"d": -10}\n{"d": 1}'
    scan = lines.scan_jsonl(np.frombuffer(data, np.uint8), tuple(KINDS), fill=KINDS)
    assert scan.columns.odd[1] == 2


def test_texts_of_many_blocks_stand_in_one_buffer():
    texts = [f"{row % 7} " * 20 for row in range(20_000)]
    data = "\n".join(json.dumps({"t": text}) for text in texts).encode()
    scan = lines.scan_jsonl(np.frombuffer(data, np.uint8), (b"t",), fill={b"t": TEXT})
    assert as_list(TEXT, scan, 0) == texts
