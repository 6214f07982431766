"""Parquet: equal to JSON Lines of the same values, checked by type, damage named."""

import gzip
import json
import random
from pathlib import Path

import polars as pl
import pytest

from fastscore.errors import InputError, MemoryLimitError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.file_state import FileRange
from fastscore.logs.integrity.limits import MAX_RECORD_BYTES, Limits
from fastscore.logs.integrity.rejects import reason_of
from fastscore.logs.plan.shards import Plan
from fastscore.logs.read import parquet
from fastscore.logs.read.rows import Rows
from fastscore.logs.samples import records as sampled
from fastscore.suites.declarations import Column, Source
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of

SOURCE = Source(
    columns=(
        Column(name="event", kind="text", otherwise="null"),
        Column(name="index", kind="integer", accepts=("boolean", "number", "string")),
        Column(name="step", kind="integer", otherwise="null"),
        Column(name="text", kind="text", accepts=("falsy",), aliases=("prediction",)),
        Column(name="score", kind="number"),
        Column(name="done", kind="boolean"),
        Column(name="extra", kind="json"),
        Column(name="uid", kind="text", accepts=("integer",)),
    ),
    dialogue_key=("uid",),
)


def plan(path: Path, shard_bytes: int = 32 << 20, source: Source = SOURCE) -> Plan:
    return plan_of(path.parent, path, source=source, shard_bytes=shard_bytes)


def read(planned: Plan, source: Source = SOURCE) -> Rows:
    return Rows(*read_of(planned, source))


def records(n_dialogues: int) -> list[dict[str, object]]:
    rng = random.Random(1)
    return [
        {
            "event": rng.choice(["predicted", None]),
            "index": rng.randrange(100),
            "step": step,
            "text": rng.choice(["", "text é", None, "a text longer than twelve"]),
            "score": rng.choice([0.5, None]),
            "done": rng.choice([True, False, None]),
            "extra": {"a": [1, None], "b": "x"},
            "uid": f"d{number}",
        }
        for number in range(n_dialogues)
        for step in range(rng.randrange(1, 9))
    ]


@pytest.mark.parametrize("shard_bytes", [400, 32 << 20])
def test_equals_json_lines(tmp_path, monkeypatch, shard_bytes):
    rows = records(60)
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pl.DataFrame(rows).write_parquet(tmp_path / "b.parquet")
    expected = read(plan(tmp_path / "a.jsonl"))
    monkeypatch.setattr(parquet.read_parquet, "__kwdefaults__", {"rows": 7})
    planned = plan(tmp_path / "b.parquet", shard_bytes)
    assert (len(planned.shards) > 1) == (shard_bytes == 400)
    assert planned.n_dialogues == 60
    found = read(planned)
    apart = ["file", "byte_offset", "extra"]
    assert found.frame.drop(apart).equals(expected.frame.drop(apart))
    for text, other in zip(found.frame["extra"], expected.frame["extra"], strict=True):
        assert json.loads(text) == json.loads(other)
    assert found.counts == expected.counts


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_strings_of_which_one_read_has_none(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(parquet, "MOST_ROWS", rows)
    path = str(tmp_path / "a.parquet")
    values = ["1", "2", None, None, "3", None, None]
    pl.DataFrame({"index": pl.Series(values, dtype=pl.String)}).write_parquet(path)
    file_range = FileRange(path, path, "parquet", "none", 0, len(values))
    parts = list(parquet.read_parquet(file_range, SOURCE.columns))
    assert pl.concat([frame for _, frame, _ in parts])["index"].to_list() == [
        None if value is None else int(value) for value in values
    ]


def test_a_field_is_read_only_where_its_row_uses_it(tmp_path):
    source = Source(
        columns=(
            Column(name="event", kind="text"),
            Column(name="guess", kind="text", accepts=("falsy",), only_where=("event", "guess")),
            Column(name="truth", kind="integer", otherwise="required", only_where=("event", "end")),
            Column(name="step", kind="integer", otherwise="null"),
        )
    )
    frame = pl.DataFrame(
        {
            "event": ["guess", "guess", "end", "end", None],
            "guess": [[], ["x"], ["x"], [], ["x"]],
            "truth": [None, None, 3, None, 4],
            "step": pl.Series([0, 2**63, 2**64 - 1, 1, None], dtype=pl.UInt64),
        }
    )
    frame.write_parquet(tmp_path / "a.parquet")
    found = read(plan(tmp_path / "a.parquet", source=source), source)
    assert (found.frame["line"].to_list(), found.rejects["line"].to_list()) == ([1, 3, 5], [2, 4])
    lines = frame.with_columns(pl.col("step").cast(pl.Int128)).to_dicts()
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, lines)))
    plain = read(plan(tmp_path / "b.jsonl", source=source), source)
    apart = ["file", "byte_offset"]
    assert plain.frame.drop(apart).equals(found.frame.drop(apart))
    told = ["line", "field", "reason"]
    assert plain.rejects.select(told).equals(found.rejects.select(told))


def test_a_column_that_can_never_serve_is_named_with_its_file(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"uid": ["a"], "done": [b"x"]}).write_parquet(path)
    message = f"{path}: the column 'done' is of type Binary; expected Boolean"
    with pytest.raises(InputError, match=message):
        read(plan(path))


def test_a_compressed_file_is_unpacked(tmp_path):
    pl.DataFrame(records(5)).write_parquet(tmp_path / "a.parquet")
    packed = tmp_path / "b.parquet.gz"
    packed.write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    plain, unpacked = read(plan(tmp_path / "a.parquet")), read(plan(packed))
    assert unpacked.frame.drop("file").equals(plain.frame.drop("file"))
    assert set(unpacked.frame["file"]) == {str(packed)}
    packed.write_bytes(packed.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"b\.parquet\.gz.*ends early"):
        plan(packed)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame(records(50)).write_parquet(path)
    data = path.read_bytes()
    for content in (b"", b"PAR1", data[: len(data) // 2], data[:-4] + b"XXXX", b"x" * 100):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a\.parquet"):
            read(plan(path))
    rng = random.Random(2)
    for _ in range(15):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 0xFF
        path.write_bytes(damaged)
        told = ""
        try:
            read(plan(path))
        except InputError as error:
            told = str(error)
        assert not told or "a.parquet" in told


def test_rows_that_take_more_than_there_may_be_are_refused_before_they_are_read(
    tmp_path, monkeypatch
):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"uid": ["a"], "text": ["x" * (80 << 20)]}).write_parquet(path)
    # whatever other tests have taken, and freed meanwhile
    monkeypatch.setattr("fastscore.logs.integrity.limits.own_memory", lambda: 0)
    limits = Limits(memory=120)
    file_range = FileRange(str(path), str(path), "parquet", "none", 0, 1, limits=limits)
    with pytest.raises(MemoryLimitError, match=r"Reading .*log\.parquet takes"):
        list(parquet.read_parquet(file_range, SOURCE.columns))
    # what is not asked for takes nothing
    uid = [column for column in SOURCE.columns if column.name == "uid"]
    ((count, frame, _),) = parquet.read_parquet(file_range, uid)
    assert (count, frame["uid"].to_list()) == (1, ["a"])


def test_no_sample_is_taken_of_rows_that_are_too_long(tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"uid": ["a"], "text": ["x" * (MAX_RECORD_BYTES + 1)]}).write_parquet(path)
    given_up: list[bool] = []
    (file,) = resolve_inputs([str(path)])
    assert list(sampled.records(file, given_up=lambda: given_up.append(True))) == []
    assert given_up == [True]


def test_a_panic_of_polars_is_a_damaged_footer():
    found = reason_of(pl.exceptions.PanicException("slice"))
    assert found == "its footer does not fit its content"
