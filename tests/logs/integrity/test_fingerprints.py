"""Files that change between the plan and the reading of their shards."""

import gzip
import json
import os
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.logs.plan import shards
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Column, Source
from tests.logs.planned import plan as plan_of

SOURCE = Source(
    columns=(Column(name="id", kind="text"), Column(name="text", kind="text")),
    dialogue_key=("id",),
    formats=("csv", "json", "jsonl", "parquet"),
)
ROWS = [{"id": f"d{index // 10}", "text": f"text {index}"} for index in range(400)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
CSV = "id,text\n" + "".join(f"{row['id']},{row['text']}\n" for row in ROWS)
FILES = {
    "log.jsonl": LINES.encode(),
    "log.jsonl.gz": gzip.compress(LINES.encode()),
    "log.csv": CSV.encode(),
    "log.csv.gz": gzip.compress(CSV.encode()),
    "log.json": json.dumps(ROWS).encode(),
}


def write(folder: Path, name: str) -> Path:
    path = folder / name
    if name == "log.parquet":
        pl.DataFrame(ROWS).write_parquet(path)
    else:
        path.write_bytes(FILES[name])
    return path


plan = partial(plan_of, source=SOURCE)


@pytest.mark.parametrize("name", [*FILES, "log.parquet"])
def test_a_changed_file_is_refused(tmp_path, name):
    path = write(tmp_path, name)
    (shard,) = plan(tmp_path, path).shards
    assert read_shard(shard, SOURCE).frame.height == len(ROWS)
    data = bytearray(path.read_bytes())
    # the same size and, but for Parquet, the same time: a bit of the checksum or of a text
    data[-8 if name.endswith("gz") else len(data) // 2] ^= 1
    status = path.stat()
    path.write_bytes(data)
    if not name.endswith("parquet"):
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InputError, match=r"log.* was changed while it was read"):
        read_shard(shard, SOURCE)


@pytest.mark.parametrize("name", [*FILES, "log.parquet"])
def test_a_file_that_went_is_named(tmp_path, name):
    path = write(tmp_path, name)
    (shard,) = plan(tmp_path, path).shards
    path.unlink()
    with pytest.raises(InputError, match=r"log\."):
        read_shard(shard, SOURCE)


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.json"])
def test_a_file_that_grows_is_read_as_it_was_planned(tmp_path, name):
    path = write(tmp_path, name)
    planned = plan(tmp_path, path)
    with path.open("ab") as file:
        file.write(b'{"id": "late", "text": "late"}\n')
    (shard,) = planned.shards
    assert read_shard(shard, SOURCE).frame.height == len(ROWS)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_touched_is_the_same(tmp_path, name):
    path = write(tmp_path, name)
    (shard,) = plan(tmp_path, path).shards
    os.utime(path)
    assert read_shard(shard, SOURCE).frame.height == len(ROWS)


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv"])
def test_of_a_cut_file_only_the_changed_shard_is_refused(tmp_path, name):
    path = write(tmp_path, name)
    planned = plan(tmp_path, path, shard_bytes=path.stat().st_size // 5)
    assert len(planned.shards) > 4
    data = bytearray(path.read_bytes())
    at = data.index(b"text 399")
    data[at] = ord("T")
    path.write_bytes(data)
    *others, last = planned.shards
    for shard in others:
        read_shard(shard, SOURCE)
    with pytest.raises(InputError, match="was changed"):
        read_shard(last, SOURCE)


def test_a_cut_parquet_file_is_refused_in_every_shard(tmp_path):
    path = write(tmp_path, "log.parquet")
    planned = plan(tmp_path, path, shard_bytes=path.stat().st_size // 5)
    pl.DataFrame(ROWS).head(399).write_parquet(path)
    for shard in planned.shards:
        with pytest.raises(InputError, match="was changed"):
            read_shard(shard, SOURCE)


def test_an_unpacked_copy_is_the_runs_own(tmp_path):
    path = write(tmp_path, "log.jsonl.gz")
    planned = plan(tmp_path, path, shard_bytes=4000)
    path.write_bytes(gzip.compress(b"something else"))
    assert sum(read_shard(shard, SOURCE).frame.height for shard in planned.shards) == len(ROWS)


@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "log.parquet"])
def test_a_file_that_changes_while_it_is_planned_is_refused(tmp_path, monkeypatch, name):
    path = write(tmp_path, name)
    pack = shards.pack

    def change(stretched, shard_bytes):  # type: ignore[no-untyped-def]
        path.write_bytes(path.read_bytes() + b"\n")
        return pack(stretched, shard_bytes)

    monkeypatch.setattr(shards, "pack", change)
    with pytest.raises(InputError, match="was changed while it was read"):
        plan(tmp_path, path, shard_bytes=path.stat().st_size // 5)
