"""Rows, rejects and counts against the plain-Python reader, whatever the batches and threads."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.logs.integrity.file_state import FileRange, Shard, whole_file
from fastscore.logs.read import lines
from fastscore.logs.read import rows as log_rows
from fastscore.logs.read.rows import Rows, read_shard, row_schema
from fastscore.suites.declarations import REJECT_REASONS, REJECTS_TABLE, Column, Source
from tests.conftest import often
from tests.oracles.logs import comparable, naive_read

SOURCE = Source(
    columns=(
        Column(name="event", kind="text", otherwise="null"),
        Column(name="index", kind="integer", accepts=("boolean", "number", "string")),
        Column(name="step", kind="integer", accepts=("boolean",), otherwise="null"),
        Column(name="text", kind="text", accepts=("falsy",), aliases=("prediction", "reply")),
        Column(name="label", kind="text", accepts=("integer",)),
        Column(name="flag", kind="text", accepts=("falsy", "boolean")),
        Column(name="score", kind="number", accepts=("boolean", "string")),
        Column(name="plain", kind="number"),
        Column(name="done", kind="boolean"),
        Column(name="extra", kind="json"),
        Column(name="said", kind="text", otherwise="required", only_where=("event", "x")),
        Column(name="count", kind="integer", accepts=("number",), only_where=("event", "3")),
        Column(name="id", kind="text", otherwise="required"),
    ),
    dialogue_key=("id",),
)
SMALL = st.sampled_from(
    [
        *(0, -0.0, 1, 2.5, 1.7, -1.7, 1e300, float("inf"), float("nan"), 2**63, -(2**63), 10**400),
        *("", "x", "3", " 3 ", "1_0", "½", "nan", "1e3", "\ud83d", 'é\n"'),
        *("a longer text that no view holds inline", "same \\ but escaped 😀"),
        *(True, False, None, [], {}, [1], {"a": [None]}),
    ]
)
NAMES = [*(column.name for column in SOURCE.columns), "prediction", "reply", "other"]


@st.composite
def log_lines(draw: st.DrawFn) -> bytes:
    kind = draw(st.integers(0, 12))
    if kind == 0:
        return draw(st.sampled_from([b"", b"  ", b"nope", b"[1]", b'"x"', b"\xff", b'{"id":']))
    members: dict[str, Any] = {"id": "d"}
    for name in draw(st.lists(st.sampled_from(NAMES), max_size=6)):
        members[name] = draw(SMALL)
    text = json.dumps(members, ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "replace")


@st.composite
def files(draw: st.DrawFn) -> bytes:
    ends = st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"])
    parts = [b"\xef\xbb\xbf"] if draw(st.integers(0, 4)) == 0 else []
    for line in draw(st.lists(log_lines(), max_size=8)):
        parts += [line, draw(ends)]
    if parts and draw(st.booleans()):
        parts.pop()
    return b"".join(parts)


def shard_of(folder: Path, contents: list[bytes]) -> Shard:
    file_ranges = []
    for index, content in enumerate(contents):
        path = folder / f"{index}.jsonl"
        path.write_bytes(content)
        file_ranges.append(FileRange(str(path), str(path), "jsonl", "none", 0, len(content)))
    return Shard(0, tuple(file_ranges), sum(map(len, contents)), "")


def check(rows: Rows, contents: list[tuple[str, bytes]], source: Source) -> None:
    expected = [naive_read(name, content, source) for name, content in contents]
    assert rows.frame.schema == row_schema(source)
    assert rows.rejects.schema == REJECTS_TABLE
    found = [comparable(row, source) for row in rows.frame.rows(named=True)]
    assert found == [comparable(row, source) for file in expected for row in file[0]]
    places = rows.rejects.select("file", "line", "byte_offset", "field", "reason").rows()
    assert places == [reject for file in expected for reject in file[1]]
    assert set(rows.rejects["reason"]) <= set(REJECT_REASONS)
    for name in ("lines", "blank", "rows", "rejects"):
        assert rows.counts[name] == sum(file[2][name] for file in expected)


@settings(max_examples=often(40, 600), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    contents=st.lists(files(), min_size=1, max_size=4), block=st.sampled_from([40, 200, 1 << 20])
)
def test_equals_the_plain_reader(tmp_path, monkeypatch, contents, block):
    with monkeypatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        patch.setattr(log_rows, "BLOCK_BYTES", block)
        shard = shard_of(tmp_path, contents)
        rows = read_shard(shard, SOURCE)
        named = [
            (file_range.file, content)
            for file_range, content in zip(shard.file_ranges, contents, strict=True)
        ]
        check(rows, named, SOURCE)
        again = read_shard(shard, SOURCE, threads=2)
    assert again.frame.equals(rows.frame)
    assert again.rejects.equals(rows.rejects)
    assert again.counts == rows.counts


def read_one(tmp_path: Path, content: bytes, source: Source = SOURCE) -> Rows:
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    return read_shard(whole_file(str(path)), source)


def test_rejects_say_what_was_found(tmp_path):
    rows = read_one(tmp_path, b'{"id":"a","index":"x"}\n{"id":3}\n{"index":1}\nnot json\n{"id"')
    told = rows.rejects.select("line", "field", "reason", "found", "expected", "raw").rows()
    assert told == [
        (1, "index", "wrong_type", 'string "x"', "an integer", '{"id":"a","index":"x"}'),
        (2, "id", "wrong_type", "integer 3", "a string", '{"id":3}'),
        (3, "id", "missing_field", "absent", "a string", '{"index":1}'),
        (4, None, "not_json", "'n' at byte 1 of the line", "one JSON object a line", "not json"),
        (5, None, "not_json", "the end of the line", "one JSON object a line", '{"id"'),
    ]


def test_raw_text_is_cut(tmp_path):
    rows = read_one(tmp_path, b'{"id": 1, "x": "' + "é".encode() * 500 + b'"}')
    assert len(rows.rejects["raw"][0]) == 200
    rows = read_one(tmp_path, b'{"id": [' + b"1," * 500 + b"2]}")
    assert len(rows.rejects["found"][0]) <= len("array ") + 80


@pytest.mark.parametrize("block", [5, 7, 64])
def test_a_line_beyond_the_limit_is_a_reject(tmp_path, monkeypatch, block):
    monkeypatch.setattr(lines, "BLOCK_BYTES", block)
    monkeypatch.setattr(lines, "_LARGEST_WHOLE", 1)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", block)
    monkeypatch.setattr("fastscore.logs.read.lines.MAX_RECORD_BYTES", 64)
    long_one = b'{"id":"' + b"x" * 100 + b'"}'
    for end in (b"\n", b"\r\n", b"\r"):
        parts = [
            b'{"id":"a"}',
            long_one,
            b'{"id":"b"}',
            long_one,
            long_one,
            b'{"id":"c"}',
            long_one,
        ]
        data = end.join(parts)
        rows = read_one(tmp_path, data)
        assert rows.frame["line"].to_list() == [1, 3, 6]
        assert rows.rejects["line"].to_list() == [2, 4, 5, 7]
        assert set(rows.rejects["reason"]) == {"line_too_long"}
        starts = [10 + len(end), data.index(b'"b"') + 4 + len(end)]
        assert rows.rejects["byte_offset"].to_list()[:2] == starts
        assert set(rows.rejects["found"]) == {f"{len(long_one)} bytes"}
        assert rows.counts["lines"] == 7


def test_truncation_loses_at_most_the_last_line(tmp_path):
    import random

    rng = random.Random(7)
    lines = [
        json.dumps(
            {"id": f"d{i}", "index": i, "text": "tëxt 😀 " * (i % 5)}, ensure_ascii=i % 2 == 0
        )
        for i in range(often(400, 15_000))
    ]
    data = "\n".join(lines).encode() + b"\n"
    for _ in range(often(300, 1_000)):
        cut = rng.randrange(len(data) + 1)
        whole = data[:cut].count(b"\n")
        rows = read_one(tmp_path, data[:cut])
        assert rows.frame.height in (whole, whole + 1)
        assert rows.rejects.height <= 1
        assert rows.frame["index"].to_list() == list(range(rows.frame.height))


def test_file_names_are_given_as_they_were(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_bytes(b'{"id":"a"}\n')
    file_range = FileRange("logs/./shown.jsonl.gz", "a.jsonl", "jsonl", "none", 0, 11)
    rows = read_shard(Shard(0, (file_range,), 11, ""), SOURCE)
    assert rows.frame["file"].to_list() == ["logs/./shown.jsonl.gz"]
