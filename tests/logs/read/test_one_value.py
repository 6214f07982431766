"""One value in every format: the same rows or the same rejects, whatever they are written in."""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fastscore.logs.read.rows import join_parts
from fastscore.logs.score_input import ScoreInput
from fastscore.suites.declarations import Coercion, Column, ColumnKind, Source
from tests.conftest import often
from tests.logs.planned import plan, read

FORMATS = ("csv", "jsonl", "parquet")
NUMBERS = st.sampled_from([1.0, -0.0, 2.5, -7.0, 1e300, 2.0**63, -(2.0**63), math.inf, math.nan])
STRINGS = st.sampled_from(["", "x", "5", " 7 ", "1.0", "true", "nan", str(2**70)])
VALUES: dict[str, tuple[st.SearchStrategy[Any], pl.DataType]] = {
    "integers": (st.sampled_from([0, 1, -5, 2**62, -(2**63)]), pl.Int64()),
    "doubles": (NUMBERS | st.floats(width=32), pl.Float64()),
    "booleans": (st.booleans(), pl.Boolean()),
    "strings": (STRINGS, pl.String()),
    "lists": (st.lists(st.integers(0, 3), max_size=2), pl.List(pl.Int64())),
}
ACCEPTS: dict[str, tuple[tuple[Coercion, ...], ...]] = {
    "text": ((), ("integer",), ("boolean",), ("falsy",), ("integer", "falsy")),
    "integer": ((), ("boolean",), ("number",), ("string",), ("number", "string")),
    "number": ((), ("boolean",), ("string",)),
    "boolean": ((),),
}
Told = tuple[list[Any], list[Any]]


@st.composite
def columns(draw: st.DrawFn) -> tuple[Column, str, list[Any]]:
    kind: ColumnKind = draw(st.sampled_from(["text", "integer", "number", "boolean"]))
    column = Column(
        name="a",
        kind=kind,
        accepts=draw(st.sampled_from(ACCEPTS[kind])),
        otherwise=draw(st.sampled_from(["reject", "null", "required"])),
    )
    of = draw(st.sampled_from(sorted(VALUES)))
    return column, of, draw(st.lists(st.none() | VALUES[of][0], min_size=1, max_size=6))


def frame_of(of: str, values: list[Any]) -> pl.DataFrame:
    return pl.DataFrame({"a": pl.Series(values, dtype=VALUES[of][1])})


def write_csv(path: Path, values: list[Any]) -> None:
    out = io.StringIO(newline="")
    rows = [["" if value is None else value, "x"] for value in values]
    csv.writer(out).writerows([["a", "b"], *rows])
    path.write_bytes(out.getvalue().encode())


def told(rows: pl.DataFrame, rejects: pl.DataFrame) -> Told:
    values = [repr(value) for value in rows["a"].to_list()]
    return [*zip(rows["line"].to_list(), values, strict=True)], rejects.select(
        "line", "field", "reason"
    ).rows()


def read_file(path: Path, source: Source, scratch: Path) -> Told:
    good, bad = told(*read(plan(scratch, path, source=source), source)[:2])
    header = int(path.suffix == ".csv")  # a line of its own
    return [(line - header, *more) for line, *more in good], [
        (line - header, *more) for line, *more in bad
    ]


@settings(
    max_examples=often(40, 600),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(column=columns())
@example(
    column=(Column(name="a", kind="text", accepts=("integer",)), "doubles", [-(2.0**63), 2.0**63])
)
def test_every_format_takes_and_rejects_the_same(tmp_path, column):
    declared, of, values = column
    source = Source(columns=(declared,), formats=FORMATS, row_dialogues=FORMATS)
    frame = frame_of(of, values)
    writers: dict[str, Callable[[Path], object]] = {
        "jsonl": lambda path: path.write_text("".join(json.dumps({"a": v}) + "\n" for v in values)),
        "parquet": frame.write_parquet,
        "arrow": frame.write_ipc,
    }
    # cells have no types: what is text in one is a number where one is declared
    if (of == "strings" and declared.kind == "text" and None not in values) or (
        of in ("integers", "doubles", "booleans") and declared.kind != "text"
    ):
        writers["csv"] = lambda path: write_csv(path, values)
    found = {}
    for name, write in writers.items():
        path = tmp_path / f"log.{name}"
        write(path)
        found[name] = read_file(path, source, tmp_path / "scratch")
    for name, memory in (("frame", frame), ("rows", [{"a": value} for value in values])):
        rows = join_parts(ScoreInput.of(memory).read(source), source)
        found[name] = told(rows.frame, rows.rejects)
    assert all(each == found["jsonl"] for each in found.values()), found


@pytest.mark.parametrize("name", ["jsonl", "csv", "parquet", "arrow"])
def test_whole_doubles_are_integers_and_nan_is_missing(tmp_path, name):
    source = Source(columns=(Column(name="a", kind="integer"),), formats=FORMATS)
    values = [1.0, math.nan, 2.5, 3.0]
    path = tmp_path / f"log.{name}"
    if name == "jsonl":
        path.write_text("".join(json.dumps({"a": value}) + "\n" for value in values))
    elif name == "csv":
        write_csv(path, values)
    else:
        getattr(frame_of("doubles", values), "write_" + name.replace("arrow", "ipc"))(path)
    rows, rejects = read_file(path, source, tmp_path / "scratch")
    assert [value for _, value in rows] == ["1", "None", "3"]
    assert [reason for _, _, reason in rejects] == ["wrong_type"]
