"""Rows that are dialogues of their own: cut anywhere, counted one by one, few places kept."""

import errno
import gzip
import io
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.files import hash_bytes
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity.file_state import FileState
from fastscore.logs.plan.shards import ROW_BYTES, Plan, find_spans, join_spans, plan_shards
from fastscore.logs.read import lines
from fastscore.logs.read import rows as log_rows
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Column, Source

COLUMNS = (Column(name="id", kind="text"), Column(name="text", kind="text"))
KEYLESS = Source(columns=COLUMNS, row_dialogues=("jsonl", "parquet"))
KEYED = Source(columns=COLUMNS, dialogue_key=("id",), row_dialogues=("jsonl", "parquet"))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", 4096)


def write(folder: Path, name: str, ids: list[str | None]) -> Path:
    rows = [{"id": id, "text": f"{index} " + "x" * 60} for index, id in enumerate(ids)]
    path = folder / name
    if name.endswith("parquet"):
        pl.DataFrame(rows, {"id": pl.String, "text": pl.String}).write_parquet(path)
    else:
        path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def plan(folder: Path, path: Path, source: Source, shard_bytes: int, threads: int = 1) -> Plan:
    files = resolve_inputs([str(path)])
    scratch = folder / "scratch"
    return plan_shards(files, source, shard_bytes=shard_bytes, scratch=scratch, threads=threads)


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_large_file_without_keys_is_cut(tmp_path, name, threads):
    path = write(tmp_path, name, [None] * 2000)
    # a compressed Parquet file's few bytes are shared out by its rows, some at a time
    size = max(path.stat().st_size, 2000 * ROW_BYTES)
    whole = plan(tmp_path, path, KEYLESS, 1 << 30)
    cut = plan(tmp_path, path, KEYLESS, size // 16, threads)
    assert cut == plan(tmp_path, path, KEYLESS, size // 16)
    assert cut.inputs[0].content_hash == hash_bytes(path.read_bytes())
    assert (len(whole.shards), whole.n_dialogues) == (1, 2000)
    assert 16 <= len(cut.shards) <= 24
    assert cut.n_dialogues == 2000
    assert max(shard.n_bytes for shard in cut.shards) <= size // 16
    frames = [read_shard(shard, KEYLESS).frame for shard in cut.shards]
    assert pl.concat(frames).equals(read_shard(whole.shards[0], KEYLESS).frame)


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_rows_of_few_bytes_count_for_more(tmp_path, name):
    path, n_rows = tmp_path / name, 20_000
    if name.endswith("parquet"):
        pl.DataFrame({"id": [None] * n_rows, "text": "x"}).write_parquet(path)
    else:
        path.write_text("{}\n" * n_rows)
    cut = plan(tmp_path, path, KEYLESS, n_rows * ROW_BYTES // 8)
    assert 8 <= len(cut.shards) <= 16
    lines = [read_shard(shard, KEYLESS).counts["lines"] for shard in cut.shards]
    assert (sum(lines), max(lines) <= n_rows // 8) == (n_rows, True)


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_one_id_may_name_many_rows_where_there_is_no_key(tmp_path, name):
    path = write(tmp_path, name, ["same"] * 500)
    assert plan(tmp_path, path, KEYLESS, 1 << 30).n_dialogues == 500
    assert plan(tmp_path, path, KEYED, 1 << 30).n_dialogues == 1


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_keyed_rows_stay_together_among_keyless_ones(tmp_path, name):
    ids: list[str | None] = []
    for number in range(60):
        ids += [None] * 3 + [f"d{number}", None] * 12
    path = write(tmp_path, name, ids)
    planned = plan(tmp_path, path, KEYED, path.stat().st_size // 12)
    assert planned.n_dialogues == 60 + ids.count(None)
    assert len(planned.shards) >= 12
    seen: set[str] = set()
    for shard in planned.shards:
        named = set(read_shard(shard, KEYED).frame["id"].drop_nulls())
        assert not named & seen
        seen |= named
    assert len(seen) == 60


def test_other_formats_keep_to_the_file(tmp_path):
    source = Source(columns=COLUMNS, row_dialogues=("jsonl",))
    parquet = write(tmp_path, "log.parquet", [None] * 500)
    assert plan(tmp_path, parquet, source, 500).n_dialogues == 1
    assert len(plan(tmp_path, parquet, source, 500).shards) == 1


def test_places_do_not_grow_with_the_rows(tmp_path):
    path = write(tmp_path, "log.jsonl", [None] * 20_000)
    (file,) = resolve_inputs([str(path)])
    state = FileState(file, path=file.location)
    size = path.stat().st_size
    joined = join_spans(find_spans([state], KEYLESS, size // 2, tmp_path, 1))
    assert joined.height <= 2 * 257
    assert joined["dialogues"].sum() == 20_000


@pytest.mark.parametrize("threads", [1, 3])
def test_a_block_that_cannot_be_read_ends_the_plan(tmp_path, monkeypatch, threads):
    path = write(tmp_path, "log.jsonl", [None] * 500)

    class Broken(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            if self.tell() >= 5000:
                raise OSError(errno.EIO, "Input/output error")
            return super().readinto(buffer)

    monkeypatch.setattr(lines, "open_file", lambda path, stop: Broken(path))
    with pytest.raises(InputError, match=r"log\.jsonl.*cannot be read: Input/output error"):
        plan(tmp_path, path, KEYLESS, 1 << 20, threads)


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_lines_of_any_kind_are_read_whole_and_once(tmp_path, name):
    lines = []
    for number in range(300):
        lines.append(json.dumps({"id": "x", "text": f"{number} " + "y" * (number % 90)}))
        lines += ["", "{broken", " ", "[1]"][: number % 5]
    ends = ["\n", "\r\n", "\r"]
    text = "".join(line + ends[at % 3] for at, line in enumerate(lines))
    data = b"\xef\xbb\xbf" + text.encode() + b'{"id": "last"}'
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    whole = read_shard(plan(tmp_path, path, KEYLESS, 1 << 30).shards[0], KEYLESS)
    planned = plan(tmp_path, path, KEYLESS, 2000)
    assert len(planned.shards) > 8
    parts = [read_shard(shard, KEYLESS) for shard in planned.shards]
    assert pl.concat([part.frame for part in parts]).equals(whole.frame)
    assert pl.concat([part.rejects for part in parts]).equals(whole.rejects)
    summed = {key: sum(part.counts[key] for part in parts) for key in whole.counts}
    assert summed == whole.counts
