"""CSV logs: rows, rejects and shards against Python's csv module, whatever the blocks."""

import csv
import gzip
import io
import json
import random
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.file_state import whole_file
from fastscore.logs.read import csv_records
from fastscore.logs.read import lines as log_lines
from fastscore.logs.read import rows as log_rows
from fastscore.logs.read.rows import Rows, join_parts, read_files, read_shard, row_schema
from fastscore.suites.declarations import REJECTS_TABLE, Column, Source
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of
from tests.oracles.logs import naive_read_csv

SOURCE = Source(
    columns=(
        Column(name="id", kind="text"),
        Column(name="text", kind="text", otherwise="required", aliases=("utterance",)),
        Column(name="index", kind="integer"),
        Column(name="count", kind="integer", accepts=("number", "string"), otherwise="null"),
        Column(name="score", kind="number", accepts=("boolean",)),
        Column(name="done", kind="boolean"),
        Column(name="plan", kind="json"),
        Column(name="vote", kind="text", otherwise="required", only_where=("text", "x")),
    ),
    dialogue_key=("id",),
    formats=("csv",),
)
HEADERS = st.one_of(
    st.permutations(["ID ", "Text", "index", " count", "score", "done", "plan", "other"]).map(list),
    st.lists(
        st.sampled_from(["id", "text", "utterance", "index", "Score", "done", "x", '"q', ""]),
        min_size=1,
        max_size=5,
    ),
)
CELLS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "x",
                "a longer text that no view holds inline",
                'say "hi"',
                "two\nlines\r\n",
                ",",
            ),
            *("é😀", "12", "-3.5", "+4", "1e400", "nan", "TRUE", "false", str(2**63), " 7 ", "1_0"),
            '{"days": [1, 2], "who": "Zoë"}',
        ]
    ),
    st.text(st.sampled_from('ab",\n\r é'), max_size=8),
)


def written(rows: list[list[str]], line_end: str = "\r\n") -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    header = draw(HEADERS)
    rows = draw(st.lists(st.lists(CELLS, min_size=len(header), max_size=len(header)), max_size=12))
    text = written([header, *rows], draw(st.sampled_from(["\n", "\r\n", "\r"])))
    data = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n"])) + text.encode()
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from([b'"', b",", b"\n", b"\xff", b"\r"])) + data[at:]
    return data


def as_rows(read: Rows) -> tuple[list[dict[str, Any]], list[tuple[Any, ...]], dict[str, int]]:
    rejects = read.rejects.select("file", "line", "byte_offset", "field", "reason").rows()
    return read.frame.rows(named=True), rejects, read.counts


@given(csv_files(), st.sampled_from([7, 64, 8 << 20]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_oracle_rows_rejects_and_counts(tmp_path, monkeypatch, data, block):
    monkeypatch.setattr(log_lines, "BLOCK_BYTES", block)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", block)
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    read = read_shard(whole_file(str(path), "csv"), SOURCE)
    assert read.frame.schema == row_schema(SOURCE)
    assert read.rejects.schema == REJECTS_TABLE
    rows, rejects, counts = as_rows(read)
    expected_rows, expected_rejects, expected_counts = naive_read_csv(str(path), data, SOURCE)
    assert repr(rows) == repr(expected_rows)
    assert rejects == expected_rejects
    assert counts == expected_counts


@given(
    HEADERS,
    st.lists(st.lists(CELLS, min_size=1, max_size=8), max_size=12),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([3, 64, 1 << 14]),
)
def test_cells_of_samples_are_those_of_pythons_reader(header, rows, end, block):
    text = written([header, *rows], end)
    data = text.encode()
    blocks = (data[at : at + block] for at in range(0, len(data), block))
    names = [name.strip().lower() for name in header]
    expected = [
        dict(zip(names, row, strict=True))
        for row in list(csv.reader(io.StringIO(text, newline="")))[1:]
        if len(row) == len(header) and row != header
    ]
    assert list(csv_records.read_cells(blocks)) == expected


def read(tmp_path: Path, data: bytes | str, source: Source = SOURCE) -> Rows:
    path = tmp_path / "log.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_shard(whole_file(str(path), "csv"), source)


BAD = [
    ('"c,1"x,2\n', "bad_quoting", None, "text at byte 6 of the record after a closing quote"),
    ("a,1,2\n", "wrong_cell_count", None, "3 cells"),
    ("a\n", "wrong_cell_count", None, "1 cell"),
    (b"a\xff,1\n", "not_utf8", None, "byte 0xff at byte 2 of the line"),
    ("a,one\n", "wrong_type", "index", "cell 'one'"),
    ("a,1.5\n", "wrong_type", "index", "cell '1.5'"),
    ("a,9223372036854775808\n", "out_of_range", "index", "cell '9223372036854775808'"),
]


def test_every_bad_record_names_its_place(tmp_path):
    good = b'"good\n""row""",7\n'
    bad = [text.encode() if isinstance(text, str) else text for text, *_ in BAD]
    data = b"text,index\n" + b"".join(good + each for each in bad) + good
    rows = read(tmp_path, data)
    assert rows.frame["text"].to_list() == ['good\n"row"'] * (len(BAD) + 1)
    told = rows.rejects.select("reason", "field", "found").rows()
    assert told == [tuple(rest) for _, *rest in BAD]
    assert rows.rejects["line"].to_list() == [4 + 3 * index for index in range(len(BAD))]
    for offset, each in zip(rows.rejects["byte_offset"], bad, strict=True):
        assert data[offset : offset + len(each)] == each


def test_cells_of_required_columns_are_values(tmp_path):
    names = (("id", "text"), ("turns", "json"))
    columns = tuple(Column(name, kind, otherwise="required") for name, kind in names)
    source = Source(columns=columns, dialogue_key=("id",), formats=("csv",))
    rows = read(tmp_path, 'id,turns\na,"[1, ""x""]"\n,[2]\nb,\nc,[]\n', source)
    assert rows.frame.select("id", "turns").rows() == [("a", '[1, "x"]'), ("c", "[]")]
    told = rows.rejects.select("line", "field", "reason", "found").rows()
    assert told == [(3, "id", "missing_field", "cell ''"), (4, "turns", "missing_field", "cell ''")]


def test_a_quote_that_is_never_closed_costs_one_line(tmp_path):
    rows = read(tmp_path, 'text,index\na,1\n"b,2\nc,3\n"d, e",4\n')
    assert rows.frame["text"].to_list() == ["a", "c", "d, e"]
    (reject,) = rows.rejects.rows(named=True)
    assert (reject["line"], reject["byte_offset"], reject["reason"]) == (3, 15, "bad_quoting")
    assert reject["raw"] == '"b,2'
    rows = read(tmp_path, 'text,index\na,1\nb,"2\nc,3')
    assert rows.frame["text"].to_list() == ["a", "c"]
    assert rows.rejects["found"].to_list() == ["a quote at byte 3 of the line that is not closed"]


@pytest.mark.parametrize(
    ("data", "line", "field", "reason", "found"),
    [
        ("", 1, None, "no_header", "no line that is not empty"),
        ("\ufeff\r\n\n", 1, None, "no_header", "no line that is not empty"),
        ("\nid,index\na,1\n", 2, "text", "missing_column", "the columns 'id', 'index'"),
        ("id|text\na|b\n", 1, "text", "missing_column", "the columns 'id|text'"),
        ("text,index,INDEX \na,1,2\n", 1, "index", "duplicate_column", "2 such columns"),
        ('text,"index\na,1\n', 1, None, "bad_quoting", "a broken quote"),
        (b"text,caf\xe9\na,1\n", 1, None, "not_utf8", "bytes that are not UTF-8"),
    ],
)
def test_a_header_that_cannot_serve_refuses_the_file(tmp_path, data, line, field, reason, found):
    rows = read(tmp_path, data)
    assert rows.frame.is_empty()
    assert rows.counts == {"lines": 1, "blank": 0, "rows": 0, "rejects": 1}
    (reject,) = rows.rejects.rows(named=True)
    assert (reject["line"], reject["field"], reject["reason"]) == (line, field, reason)
    assert reject["found"] == found


def test_cells_of_many_megabytes(tmp_path):
    plan = json.dumps({"days": ["Café, \n"] * 600_000}, ensure_ascii=False)
    assert len(plan.encode()) > log_lines.BLOCK_BYTES // 2
    plans = [plan, plan + " ", plan * 3]
    text = written([["text", "plan"], *([str(index), each] for index, each in enumerate(plans))])
    rows = read(tmp_path, text + "last,{}\n")
    assert rows.rejects.is_empty()
    assert rows.frame["plan"].to_list() == [*plans, "{}"]
    assert rows.frame["text"].to_list() == ["0", "1", "2", "last"]


def test_a_record_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_records, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(log_lines, "BLOCK_BYTES", 100)
    long, lines = "z" * 5000, "e\n" * 900
    data = f'text,index\na,1\n"b{long}",2\r\nc,3\n"d\n{lines}",4\nf,5\n'
    rows = read(tmp_path, data)
    assert rows.frame.filter(pl.col("index").is_not_null())["text"].to_list() == ["a", "c", "f"]
    faults = rows.rejects.filter(reason="line_too_long").select("line", "byte_offset").rows()
    assert faults == [(3, 15), (5, data.index('"d'))]


def log(n_dialogues: int, seed: int = 0, keyed: bool = True) -> bytes:
    """Dialogues of records with embedded lines, broken and blank lines between them."""
    rng = random.Random(seed)
    out = [written([["index", "text", "id", "plan"]])]
    for number in range(n_dialogues):
        name = f"s{seed}-{number}" if keyed else ""
        rows = [
            [str(index), 'lines\n"' + "x" * rng.randint(0, 80), name, '{"a":\r\n1}']
            for index in range(rng.randint(1, 20))
        ]
        out.append(written(rows, rng.choice(["\n", "\r\n"])))
        out.append(rng.choice(["", "\n", "too,few\n", '1,"broken"quote,2,3\n']))
    return "".join(out).encode()


plan = partial(plan_of, source=SOURCE)
read_all = partial(read_of, source=SOURCE)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(log_lines, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", 4096)


@pytest.mark.parametrize(
    ("suffix", "shard_bytes"), [("", 2_000), ("", 30_000), (".gz", 30_000), (".zst", 2_000)]
)
@pytest.mark.usefixtures("small_blocks")
def test_a_large_file_is_cut_between_dialogues(tmp_path, suffix, shard_bytes):
    data = log(80)
    plain = tmp_path / "log.csv"
    plain.write_bytes(data)
    expected = naive_read_csv(str(plain), data, SOURCE)
    whole = plan(tmp_path, str(plain))
    assert len(whole.shards) == 1
    assert repr(read_all(whole)[0].rows(named=True)) == repr(expected[0])
    packed = tmp_path / f"packed.csv{suffix}"
    compress = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}[suffix]
    packed.write_bytes(compress(data))
    cut = plan(tmp_path, str(packed), shard_bytes=shard_bytes, threads=2)
    assert len(cut.shards) > len(data) // shard_bytes // 2
    assert cut.n_dialogues == 80
    frame, rejects, counts = read_all(cut, threads=2)
    assert frame.drop("file").equals(read_all(whole)[0].drop("file"))
    told = rejects.select("line", "byte_offset", "field", "reason").rows()
    assert told == [tuple(each[1:]) for each in expected[1]]
    assert counts == expected[2]
    names = [set(read_shard(shard, SOURCE).frame["id"]) for shard in cut.shards]
    assert sum(len(each) for each in names) == len(set().union(*names)) == 80


def test_a_shard_behind_the_header_depends_on_it(tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(log(100))
    first = plan(tmp_path, str(path), shard_bytes=3000)
    path.write_bytes(path.read_bytes().replace(b'"text"', b'"test"', 1))
    second = plan(tmp_path, str(path), shard_bytes=3000)
    before, after = ({shard.fingerprint for shard in each.shards} for each in (first, second))
    assert not before & after


@pytest.mark.parametrize(("suffix", "shard_bytes"), [("gz", 2_000), ("zst", 32 << 20)])
@pytest.mark.usefixtures("small_blocks")
def test_a_cut_record_of_a_damaged_file_is_no_row(tmp_path, suffix, shard_bytes):
    data = log(60)
    path = tmp_path / f"cut.csv.{suffix}"
    if suffix == "gz":
        path.write_bytes(gzip.compress(data)[:-400])
    else:
        path.write_bytes(zstandard.compress(data[:9000]) + zstandard.compress(data[9000:])[:-30])
    planned = plan(tmp_path, str(path), shard_bytes=shard_bytes)
    frame, rejects, _ = read_all(planned)
    whole, _, _ = naive_read_csv(str(path), data, SOURCE)
    assert 0 < frame.height < len(whole)
    assert frame.rows(named=True) == whole[: frame.height]
    last = rejects.row(-1, named=True)
    assert last["reason"] == "truncated_compression"
    assert last["line"] >= frame["line"][-1] + 1
    assert data[last["byte_offset"] :].startswith(last["raw"][:5].encode())


def test_a_damaged_header_refuses_the_file(tmp_path):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(log(60))[:11])
    _, rejects, counts = read_all(plan(tmp_path, str(path)))
    assert rejects["reason"].to_list() == ["truncated_compression"]
    assert counts == {"lines": 1, "blank": 0, "rows": 0, "rejects": 1}


def test_a_header_takes_memory_for_one_record():
    header = ",".join(f"column {number}" for number in range(2_000)).encode()
    tracemalloc.start()
    try:
        assert csv_records.header_names(header)[-1] == "column 1999"
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_small_files_of_two_separators_are_read_together(tmp_path):
    text = "a longer text that no view holds inline, with a comma; and more"
    for name, mark in (("a", ","), ("b", ";"), ("c", ",")):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file, delimiter=mark)
            rows.writerows([["id", "text"], [name, text], ["", f"{name}{text}"]])
    files = resolve_inputs([tmp_path], ("csv",))
    for order in (files, files[::-1]):
        found = join_parts(read_files(order, SOURCE), SOURCE)
        names = [Path(file.path).stem for file in order]
        expected = [pair for name in names for pair in ((name, text), (None, name + text))]
        assert found.frame.select("id", "text").rows() == expected
        assert found.rejects.is_empty()
