"""A table of malformed lines, each with its one reason, between good lines that all survive."""

import json
from pathlib import Path

import pytest

from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import REJECT_REASONS, Column, Source

SOURCE = Source(
    columns=(
        Column(name="event", kind="text", otherwise="null"),
        Column(name="index", kind="integer", accepts=("boolean", "number", "string")),
        Column(name="text", kind="text", accepts=("falsy",)),
        Column(name="score", kind="number"),
        Column(name="done", kind="boolean"),
        Column(name="id", kind="text", otherwise="required"),
    )
)

BAD = [
    (b"not json", "not_json", None),
    (b"{", "not_json", None),
    (b'{"id"', "not_json", None),
    (b'{"id":', "not_json", None),
    (b'{"id":"a"', "not_json", None),
    (b'{"id":"a', "not_json", None),
    (b'{"id":"a\\', "not_json", None),
    (b'{"id":"a",}', "not_json", None),
    (b'{"id":"a"}}', "not_json", None),
    (b'{"id":"a"} {"id":"b"}', "not_json", None),
    (b'{"id":"a"};', "not_json", None),
    (b"{'id':'a'}", "not_json", None),
    (b'{id:"a"}', "not_json", None),
    (b'{"id":"a" "b":1}', "not_json", None),
    (b'{"id":"a","index":01}', "not_json", None),
    (b'{"id":"a","index":+1}', "not_json", None),
    (b'{"id":"a","index":.5}', "not_json", None),
    (b'{"id":"a","index":1.}', "not_json", None),
    (b'{"id":"a","index":0x1}', "not_json", None),
    (b'{"id":"a","done":True}', "not_json", None),
    (b'{"id":"a","x":nan}', "not_json", None),
    (b'{"id":"a","x":[1,2}', "not_json", None),
    (b'{"id":"a","x":[1,]}', "not_json", None),
    (b'{"id":"tab\there"}', "not_json", None),
    (b'{"id":"nul\x00here"}', "not_json", None),
    (b"\x00\x00\x00\x00", "not_json", None),
    (b'{"id":"\\x41"}', "not_json", None),
    (b'{"id":"\\u12G4"}', "not_json", None),
    (b'{"id":"a"} // comment', "not_json", None),
    (b'{"id":"\xff"}', "not_utf8", None),
    (b'{"id":"caf\xe9"}', "not_utf8", None),
    (b'{"id":"\xed\xa0\x80"}', "not_utf8", None),
    (b'{"id":"\xc0\xaf"}', "not_utf8", None),
    (b"broken and \xfe too", "not_utf8", None),
    ('{"id":"a"}'.encode("utf-16"), "not_utf8", None),
    (b"[1,2]", "not_an_object", None),
    (b'"text"', "not_an_object", None),
    (b"3", "not_an_object", None),
    (b"null", "not_an_object", None),
    (b"NaN", "not_an_object", None),
    (b'{"id":"a","x":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "nested_too_deeply", None),
    (b'{"id":"\\ud800"}', "lone_surrogate", "id"),
    (b'{"id":"a","text":"\\udc00\\ud800"}', "lone_surrogate", "text"),
    (b'{"id":3}', "wrong_type", "id"),
    (b'{"id":"a","text":["x"]}', "wrong_type", "text"),
    (b'{"id":"a","text":1}', "wrong_type", "text"),
    (b'{"id":"a","index":"x"}', "wrong_type", "index"),
    (b'{"id":"a","index":""}', "wrong_type", "index"),
    (b'{"id":"a","index":[]}', "wrong_type", "index"),
    (b'{"id":"a","score":"0.5"}', "wrong_type", "score"),
    (b'{"id":"a","done":1}', "wrong_type", "done"),
    (b'{"id":"a","index":9223372036854775808}', "out_of_range", "index"),
    (b'{"id":"a","index":-Infinity}', "out_of_range", "index"),
    (b'{"id":"a","index":1e19}', "out_of_range", "index"),
    (b'{"id":"a","score":1' + b"0" * 400 + b"}", "out_of_range", "score"),
    (b"{}", "missing_field", "id"),
    (b'{"id":null}', "missing_field", "id"),
]

GOOD = [
    (b'{"id":"a","index":1e18}', {"index": 10**18}),
    (b'{"id":"a","index":"\\u0033"}', {"index": 3}),
    (b'{"id":"a","index":" 3_0 "}', {"index": 30}),
    (b'\xef\xbb\xbf{"id":"a"}', {"id": "a"}),
    (b'{"id":"a","index":-1.9}', {"index": -1}),
    (b'{"id":"a","index":NaN}', {"index": None}),
    (b'{"id":"a","text":NaN}', {"text": None}),
    (b'{"id":"a","index":true}', {"index": 1}),
    (b'{"id":"a","index":-9223372036854775808}', {"index": -(2**63)}),
    (b'{"id":"a","text":false}', {"text": ""}),
    (b'{"id":"a","text":[ ]}', {"text": ""}),
    (b'{"id":"a","text":-0.0e5}', {"text": ""}),
    (b'{"id":"a","text":null}', {"text": None}),
    (b'{"id":"a","event":5}', {"event": None}),
    (b'{"id":"a","event":"\\ud83d\\ude00"}', {"event": "\U0001f600"}),
    (b'{"id":"a","score":1e400}', {"score": float("inf")}),
    (b'{"id":"a","score":0.1}', {"score": 0.1}),
    (b'{"id":"a","score":123456789.123456789123456789}', {"score": 123456789.123456789123456789}),
    (b'{"id":"a","id":"last"}', {"id": "last"}),
    (b'{"\\u0069d":"escaped"}', {"id": "escaped"}),
    (b' \t{"id" : "a" , "x" : [ ] }\xc2\xa0', {"id": "a"}),
    (b'{"id":"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa6"}', {"id": "👩\u200d👦"}),
    (b'{"id":"","unknown":"\\ud800"}', {"id": ""}),
]


def read(tmp_path: Path, *lines: bytes):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return read_shard(whole_file(str(path)), SOURCE)


def test_every_bad_line_in_one_file(tmp_path):
    good = [json.dumps({"id": f"good {number}"}).encode() for number in range(len(BAD))]
    lines = [line for pair in zip(good, (bad for bad, _, _ in BAD), strict=True) for line in pair]
    rows = read(tmp_path, *lines)
    assert rows.frame["id"].to_list() == [f"good {number}" for number in range(len(BAD))]
    assert rows.rejects["line"].to_list() == [2 * number + 2 for number in range(len(BAD))]
    told = rows.rejects.select("reason", "field").rows()
    assert told == [(reason, field) for _, reason, field in BAD]
    assert set(rows.rejects["reason"]) <= set(REJECT_REASONS)
    data = b"\n".join(lines)
    for offset, (bad, _, _) in zip(rows.rejects["byte_offset"], BAD, strict=True):
        assert data[offset : offset + len(bad)] == bad


@pytest.mark.parametrize(("line", "expected"), GOOD)
def test_odd_lines_that_are_good(tmp_path, line, expected):
    rows = read(tmp_path, line)
    assert rows.rejects.height == 0
    (row,) = rows.frame.rows(named=True)
    assert {name: row[name] for name in expected} == expected
