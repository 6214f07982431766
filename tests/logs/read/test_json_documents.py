"""JSON documents: objects, arrays of rows, arrays that are one row, and their faults."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fastscore_readers.json.documents import elements
from hypothesis import given
from hypothesis import strategies as st

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.read import lines
from fastscore.logs.read import rows as log_rows
from fastscore.logs.read.rows import Rows, read_shard
from fastscore.suites.declarations import Column, Source

ROWS = Source(
    columns=(
        Column(name="id", kind="text"),
        Column(name="index", kind="integer"),
        Column(name="turns", kind="json"),
    ),
    dialogue_key=("id",),
    formats=("json", "jsonl"),
    row_dialogues=("json", "jsonl"),
)
WHOLE = Source(
    columns=ROWS.columns,
    dialogue_key=("id",),
    formats=("json", "jsonl"),
    row_dialogues=("json", "jsonl"),
    array_column="turns",
)
VALUES = st.recursive(
    st.sampled_from([None, True, 0, -1.5, "", "x", '"]},[{"', "é😀\n", "\\", "a\\", "\x7f"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from('ab"]\\'), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from(["id", "index", "turns", "x"]), VALUES, max_size=4)


def read(tmp_path: Path, data: bytes | str, source: Source = ROWS, name: str = "log.json") -> Rows:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    format = "json" if name.endswith("json") else "jsonl"
    return read_shard(whole_file(str(path), format), source)  # type: ignore[arg-type]


def as_lines(data: bytes, whole_array: bool = False) -> list[tuple[int, int, bytes]]:
    """Start, line and text of each element."""
    found = elements(np.frombuffer(data, np.uint8), whole_array=whole_array)
    assert found.fault == -1
    text = found.data.tobytes()
    bounds = [*(int(start) for start in found.start), len(text)]
    return [
        (start, int(line), text[start:stop])
        for start, stop, line in zip(bounds, bounds[1:], found.line, strict=False)
    ]


@given(
    st.lists(VALUES, max_size=6),
    st.sampled_from([None, 0, 1, "\t"]),
    st.booleans(),
    st.sampled_from(["", " ", "\n", "\r\n \t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
def test_oracle_elements(values, indent, ascii_only, space, line_end):
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only).replace("\n", line_end)
    data = f"{space}{text}{space}".encode()
    found = as_lines(data)
    assert [json.loads(line) for _, _, line in found] == values
    for start, line, element in found:
        assert len(data[:start].splitlines() or [b""]) in (line, line - 1)
        assert data[start : start + 1] == element[:1]
        assert b"\n" not in element.rstrip(b"\n")
        ends = data[:start].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        assert line == ends + 1
    (whole,) = as_lines(data, whole_array=True)
    assert json.loads(whole[2]) == values


@given(st.lists(OBJECTS, max_size=6), st.sampled_from(["\n", " ", "\r\n\n"]))
def test_oracle_values_one_behind_another(values, between):
    data = between.join(json.dumps(value, indent=1) for value in values).encode()
    assert [json.loads(line) for _, _, line in as_lines(data)] == values


def test_an_array_is_one_row_in_its_column(tmp_path):
    turns = [{"text": "hi, \n]["}, {"text": "bye"}]
    text = json.dumps(turns, indent=2)
    rows = read(tmp_path, f"\n{text}\n", WHOLE)
    (row,) = rows.frame.rows(named=True)
    assert (row["line"], row["byte_offset"], row["id"]) == (2, 1, None)
    assert json.loads(row["turns"]) == turns
    (row,) = read(tmp_path, '{"id": "a", "turns": [1]}', WHOLE).frame.rows(named=True)
    assert (row["id"], row["turns"]) == ("a", "[1]")


def test_an_array_as_a_line(tmp_path):
    lines = '[{"a": 1}]\n{"id": "x", "turns": []}\n[1,]\n"text"\n[]\n'
    rows = read(tmp_path, lines, WHOLE, "log.jsonl")
    assert rows.frame.select("line", "id", "turns").rows() == [
        (1, None, '[{"a": 1}]'),
        (2, "x", "[]"),
        (5, None, "[]"),
    ]
    assert rows.rejects.select("line", "reason").rows() == [(3, "not_json"), (4, "not_an_object")]
    refused = read(tmp_path, lines, ROWS, "log.jsonl").rejects
    assert refused["reason"].to_list() == ["not_an_object", "not_json", *["not_an_object"] * 2]


def test_every_faulty_element_names_its_place(tmp_path):
    bad = [
        ('{"id": True}', "not_json", None, "'T' at byte 8 of the line"),
        ('{"id": "x\ny"}', "not_json", None, "a line end within a string at byte 10 of the line"),
        ('{"id": "x",}', "not_json", None, "'}' at byte 12 of the line"),
        (b'{"id": "\xff"}', "not_utf8", None, "byte 0xff at byte 9 of the line"),
        ("[1,\n 2]", "not_an_object", None, "[1,  2]"),
        ("3", "not_an_object", None, "3"),
        ('{"id": "\\ud800"}', "lone_surrogate", "id", 'string "\\ud800"'),
        ('{"index": "x"}', "wrong_type", "index", 'string "x"'),
        ('{"x": ' + "[" * 600 + "]" * 600 + "}", "nested_too_deeply", None, None),
    ]
    texts = [text if isinstance(text, bytes) else text.encode() for text, *_ in bad]
    data = b"[\n" + b",\n".join(b'{"id": "good"}, ' + text for text in texts) + b'\n, {"id":"z"}]'
    rows = read(tmp_path, data)
    assert rows.frame["id"].to_list() == ["good"] * len(bad) + ["z"]
    assert rows.counts["lines"] == 2 * len(bad) + 1
    told = rows.rejects.rows(named=True)
    for reject, (_, reason, field, found), text in zip(told, bad, texts, strict=True):
        assert (reject["reason"], reject["field"]) == (reason, field)
        assert found is None or reject["found"] == found
        at = data.index(text)
        assert reject["byte_offset"] == at
        assert reject["line"] == data[:at].count(b"\n") + 1
    assert told[0]["expected"] == "a JSON object"


@pytest.mark.parametrize(
    ("text", "ids", "line", "offset", "found"),
    [
        ('[{"id":"a"},\n{"id":"b"}', ["a", "b"], 2, 23, "the end of the document"),
        ('[{"id":"a"},\n', ["a"], 2, 13, "the end of the document"),
        ('[{"id":"a"},]', ["a"], 1, 12, "']', from which on 1 bytes are left aside"),
        ('[{"id":"a"} {"id":"b"}]', ["a"], 1, 12, "'{', from which on 11 bytes are left aside"),
        ('[{"id":"a"}]\n{"id":"b"}', ["a"], 2, 13, "'{', from which on 10 bytes are left aside"),
        ("[,]", [], 1, 1, "',', from which on 2 bytes are left aside"),
        ("[", [], 1, 1, "the end of the document"),
        ("]", [], 1, 0, "']', from which on 1 bytes are left aside"),
        ("", [], 1, 0, "an empty file"),
        ("\ufeff", [], 1, 0, "an empty file"),
        (" \n", [], 1, 0, "an empty file"),
    ],
)
def test_a_fault_between_elements_leaves_the_rest_aside(tmp_path, text, ids, line, offset, found):
    rows = read(tmp_path, text)
    assert rows.frame["id"].to_list() == ids
    (reject,) = rows.rejects.rows(named=True)
    assert (reject["line"], reject["byte_offset"]) == (line, offset)
    is_whole = found == "an empty file" or "from which on 1 b" in found
    reason = "not_json" if is_whole else "broken_document"
    assert (reject["reason"], reject["found"]) == (reason, found)
    assert rows.counts == {"lines": len(ids) + 1, "blank": 0, "rows": len(ids), "rejects": 1}


@pytest.mark.parametrize("block", [1, 3, 7, 1 << 20])
def test_an_element_that_is_too_long_leaves_the_others(tmp_path, monkeypatch, block):
    monkeypatch.setattr(lines, "MAX_RECORD_BYTES", 10)
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    long = '{"id":\n"b]\\"}{,\r\n"}'
    rows = read(tmp_path, f'[{{"id":"a"}},\n{long},\n {{"id":"c"}} , {{"id":"d"}}\n]')
    assert rows.frame.select("id", "line").rows() == [("a", 1), ("c", 5), ("d", 5)]
    (reject,) = rows.rejects.rows(named=True)
    assert (reject["line"], reject["byte_offset"], reject["reason"]) == (2, 13, "line_too_long")
    assert reject["found"] == f"{len(long)} bytes"
    assert rows.counts == {"lines": 4, "blank": 0, "rows": 3, "rejects": 1}


DOCUMENTS = (
    '[{"id":"a","turns":[1,"]",{"x":"\\\\"}]},\r\n\t{"id":"b"} ,{"id":"c\\""}\n]\n',
    '{"id":"a"}\r\n{"id":"b"}{"id":"c"}\r\n\r\n {"id":"d"}',
    '[{"id":"a"},{"id":"b"} {"id":"c"}]',
    '[{"id":"a"},',
    "\ufeff[ ]\r\n ",
    '[{"id":"a"},1,"x",null]',
    '[{"id":"a"}] , {"id":"b"}',
)


@pytest.mark.parametrize("text", DOCUMENTS)
@pytest.mark.parametrize("whole_array", [False, True])
def test_blocks_do_not_change_what_is_read(tmp_path, monkeypatch, text, *, whole_array):
    source = WHOLE if whole_array else ROWS
    expected = read(tmp_path, text, source)
    for block in range(3, 12):  # a byte order mark is in one block
        monkeypatch.setattr(lines, "BLOCK_BYTES", block)
        found = read(tmp_path, text, source)
        assert found.frame.equals(expected.frame)
        assert found.rejects.equals(expected.rejects)
        assert found.counts == expected.counts


def test_documents_and_lines_are_packed_and_scored_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 512)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", 512)
    rows = [{"id": f"d{index}", "index": index, "turns": [index]} for index in range(300)]
    for number in range(0, 100, 10):
        (tmp_path / f"a{number:02d}.json").write_text(
            json.dumps(rows[number : number + 10], indent=1)
        )
    (tmp_path / "b.json").write_text(json.dumps(rows[100:200]))
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(row) for row in rows[200:]))
    files = resolve_inputs([str(tmp_path)], ROWS.formats)
    for shard_bytes in (500, 3000, 1 << 20):
        planned = plan_shards(files, ROWS, shard_bytes=shard_bytes, scratch=tmp_path / "scratch")
        assert planned.n_dialogues == 300
        read_back = [read_shard(shard, ROWS, threads=2) for shard in planned.shards]
        ids = [name for part in read_back for name in part.frame["id"]]
        assert ids == [row["id"] for row in rows]
        # documents are cut between elements, and every place stays what it is
        whole = [read_shard(whole_file(file.path, file.format), ROWS).frame for file in files]
        assert pl.concat([part.frame for part in read_back]).equals(pl.concat(whole))
        assert not any(part.rejects.height for part in read_back)
        starts = [file_range.start for shard in planned.shards for file_range in shard.file_ranges]
        assert (len(planned.shards) == 1) == (shard_bytes == 1 << 20)
        assert any(starts) == (shard_bytes < 5000)
