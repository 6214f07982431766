"""Lazily scanned logs against plain reading: a query's columns change no row."""

import json
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastscore
from fastscore.errors import InputError
from fastscore.logs.read import lines
from fastscore.logs.read import rows as log_rows
from fastscore.logs.score_input import RejectsWarning, ScoreInput, scan_rejects, scan_rows
from fastscore.suites.declarations import REJECTS_TABLE, Source
from tests.conftest import often
from tests.logs.read.test_rows import SOURCE, files
from tests.oracles.logs import comparable, naive_read

PREDICATES = {
    "none": (None, lambda row: True),
    "step": (pl.col("step") > 0, lambda row: row["step"] is not None and row["step"] > 0),
    "line": (pl.col("line") % 2 == 0, lambda row: row["line"] % 2 == 0),
    "text": (pl.col("text").is_not_null(), lambda row: row["text"] is not None),
    "both": (
        pl.col("extra").is_null() & (pl.col("id") == "d"),
        lambda row: row["extra"] is None and row["id"] == "d",
    ),
}
COLUMNS = ["file", "line", "byte_offset", *(column.name for column in SOURCE.columns)]


def scanned(
    paths: list[Path], threads: int, source: Source = SOURCE
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    logs = ScoreInput.of(paths)

    def read(declared: Source) -> Any:
        return logs.read(declared, threads=threads)

    return scan_rows(read, source, "logs"), scan_rejects(read, source, "logs")


@settings(max_examples=often(40, 600), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    contents=st.lists(files(), min_size=1, max_size=3),
    block=st.sampled_from([40, 1 << 20]),
    names=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=4, unique=True),
    predicate=st.sampled_from(sorted(PREDICATES)),
    head=st.one_of(st.none(), st.integers(0, 9)),
    order=st.sampled_from(["filter, head", "head, filter"]),
    engine=st.sampled_from(["in-memory", "streaming"]),
    threads=st.sampled_from([1, 2]),
)
def test_equals_plain_reading(
    tmp_path, monkeypatch, contents, block, names, predicate, head, order, engine, threads
):
    paths = []
    for index, content in enumerate(contents):
        paths.append(tmp_path / f"{index}.jsonl")
        paths[-1].write_bytes(content)
    read = [
        naive_read(str(path), content, SOURCE)
        for path, content in zip(paths, contents, strict=True)
    ]
    expected = [row for file in read for row in file[0]]
    expression, holds = PREDICATES[predicate]
    with monkeypatch.context() as patch:
        patch.setattr(lines, "BLOCK_BYTES", block)
        patch.setattr(log_rows, "BLOCK_BYTES", block)
        query, rejects = scanned(paths, threads)
        if order == "head, filter" and head is not None:
            query, expected = query.head(head), expected[:head]
        if expression is not None:
            query = query.filter(expression)
        expected = [row for row in expected if holds(row)]
        if order == "filter, head" and head is not None:
            query, expected = query.head(head), expected[:head]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RejectsWarning)
            found = query.select(names).collect(engine=engine)
        refused = rejects.collect(engine=engine)
    assert shown(found.rows(named=True), names) == shown(expected, names)
    assert refused.schema == REJECTS_TABLE
    places = refused.select("file", "line", "byte_offset", "field", "reason").rows()
    assert places == [reject for file in read for reject in file[1]]


def shown(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Write some columns of rows so that equal rows are equal texts."""
    whole = [dict.fromkeys(COLUMNS) | row for row in rows]
    return [
        comparable({**dict.fromkeys(COLUMNS), **{n: row[n] for n in names}}, SOURCE)
        for row in whole
    ]


LINES = [
    {"id": "a", "text": "x" * 50, "step": 1},
    {"id": "b", "text": ["no text"], "step": 2},
    {"id": "c", "text": "y", "step": 3},
]


def write(folder: Path, name: str = "log.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return path


def test_a_column_nobody_asks_for_still_refuses_its_row(tmp_path):
    rows, rejects = scanned([write(tmp_path)], 1)
    with pytest.warns(RejectsWarning, match=r"1 of 3 lines.*log.jsonl:2, field text"):
        assert rows.select("step").collect()["step"].to_list() == [1, 3]
    assert rejects.filter(pl.col("line") > 1).select("field").collect().rows() == [("text",)]


def test_what_is_asked_for_is_all_that_is_read(tmp_path):
    path = write(tmp_path)
    seen: list[tuple[str, ...]] = []

    def read(declared: Any) -> Any:
        seen.append(tuple(column.name for column in declared.columns))
        return ScoreInput.of(path).read(declared)

    scan_rows(read, SOURCE, "logs").select("line").head(1).collect()
    asked = {"event", "index", "text", "label", "flag", "score", "plain", "done", "said", "count"}
    assert set(seen[0]) == asked | {"id"}


def test_a_row_limit_ends_the_reading(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", 64)
    path = tmp_path / "log.jsonl"
    path.write_text('{"id":"a"}\n' * 10_000)
    parts = 0

    def read(declared: Any) -> Any:
        nonlocal parts
        for part in ScoreInput.of(path).read(declared):
            parts += 1
            yield part

    assert scan_rows(read, SOURCE, "logs").head(5).collect().height == 5
    assert parts < 10


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_what_goes_wrong_while_reading_names_the_file(tmp_path, engine):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"no parquet")
    rows, _ = scanned([path], 1)
    with pytest.raises(InputError, match=r"a\.parquet' cannot be read"):
        rows.collect(engine=engine)


def test_rows_that_are_turns_scan_as_turns(tmp_path):
    turns = [("d1", "user", "A drama?"), ("d1", "assistant", "Watch Heat.")]
    path = tmp_path / "turns.jsonl"
    with path.open("w") as out:
        for number, (id, speaker, text) in enumerate(turns):
            row = {"conversation_id": id, "speaker": speaker, "text": text, "at": number}
            out.write(json.dumps(row) + "\n")
    for options in ({}, {"sort_by": "at"}):
        rows = fastscore.scan(path, "preference_shift", layout="turns", **options)
        found = rows.collect()
        assert found.schema == rows.collect_schema()
        assert found.select("session_id", "text").rows() == [(id, text) for id, _, text in turns]
        assert rows.select("text").collect()["text"].to_list() == [text for _, _, text in turns]
