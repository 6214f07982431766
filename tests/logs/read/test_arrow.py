"""Arrow files and streams, Feather and saved data sets: the rows of the same Parquet file."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.files import list_left_aside, resolve_inputs
from fastscore.logs.read.parquet import arrow_frames
from fastscore.logs.samples.records import records
from fastscore.suites.declarations import Column, Source
from tests.conftest import NIGHTLY, often
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of

SOURCE = Source(
    columns=(
        Column(name="id", kind="text"),
        Column(name="index", kind="integer"),
        Column(name="turns", kind="json"),
    ),
    dialogue_key=("id",),
)


def table(n: int = 900) -> pa.Table:
    rng = random.Random(n)
    rows = [
        {
            "id": f"d{number // 9}",
            "index": rng.choice([None, number]),
            "turns": [{"who": "A", "text": "é" * rng.randrange(30)}],
            "unread": number * 0.5,
        }
        for number in range(n)
    ]
    found = pa.Table.from_pylist(rows)
    dictionary = found["id"].dictionary_encode()
    return found.set_column(0, "id", dictionary)


def file(path: Path, rows: pa.Table, compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, rows.schema, options=options) as out:
        out.write_table(rows, max_chunksize=77)


def stream(path: Path, rows: pa.Table) -> None:
    with pa.ipc.new_stream(path, rows.schema) as out:
        out.write_table(rows, max_chunksize=77)


def of_polars(path: Path, rows: pa.Table) -> None:
    """Write as polars does, whose files have no message of the schema."""
    pl.DataFrame(rows).write_ipc(path, compression="zstd", record_batch_size=77)


WRITERS: dict[str, Callable[[Path, pa.Table], Any]] = {
    "file": file,
    "lz4": lambda path, rows: file(path, rows, "lz4"),
    "zstd": lambda path, rows: file(path, rows, "zstd"),
    "stream": stream,
    "polars": of_polars,
    "feather": lambda path, rows: feather.write_feather(rows, str(path), chunksize=50),
}

NAMES = ("log.arrow", "log.feather", "log.ipc", "log.parquet")
NAMED = [
    (name, writer)
    for place, name in enumerate(NAMES)
    for number, writer in enumerate(WRITERS)
    # by day two writers for each name, and every writer
    if NIGHTLY or (number - place) % len(WRITERS) < 2
]


def read(tmp_path: Path, *paths: Path, source: Source = SOURCE, shard: int = 1 << 13) -> Any:
    planned = plan_of(tmp_path, *paths, source=source, shard_bytes=shard)
    frame, rejects, _ = read_of(planned, source)
    assert rejects.is_empty()
    return planned, frame


@pytest.mark.parametrize(("name", "writer"), NAMED)
def test_the_rows_are_those_of_parquet(tmp_path, writer, name):
    (tmp_path / "other").mkdir()
    pl.DataFrame(table()).write_parquet(tmp_path / "other" / "log.parquet")
    path = tmp_path / name
    WRITERS[writer](path, table())
    planned, found = read(tmp_path, path)
    assert len(planned.shards) > 1
    assert planned.n_dialogues == 100
    _, expected = read(tmp_path, tmp_path / "other" / "log.parquet")
    assert found.drop("file").equals(expected.drop("file"))
    (input_file,) = resolve_inputs([path])
    assert input_file.kind.startswith("Arrow IPC")
    (first, *_), rows = records(input_file), table().to_pylist()
    assert first == rows[0]


def test_rows_without_a_column_are_counted(tmp_path):
    stream(tmp_path / "log.arrow", table(50))
    source = Source(columns=(), row_dialogues=("parquet",))
    planned, found = read(tmp_path, tmp_path / "log.arrow", source=source)
    assert (planned.n_dialogues, found.height) == (50, 50)


def test_a_data_set_that_was_saved_to_disk(tmp_path):
    """As the Hugging Face library writes one with two splits: data, descriptions, a cache."""
    for split, begin in (("test", 0), ("train", 450)):
        folder = tmp_path / "ds" / split
        folder.mkdir(parents=True)
        names = [f"data-{part:05}-of-00002.arrow" for part in range(2)]
        for part, name in enumerate(names):
            stream(folder / name, table().slice(begin + part * 225, 225))
        stream(folder / "cache-1f.arrow", table(9))
        state = {"_data_files": [{"filename": name} for name in names], "_split": split}
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "dataset_info.json").write_text('{"features": {}}')
    (tmp_path / "ds" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    _, found = read(tmp_path, tmp_path / "ds")
    rows = table().select(["id", "index"]).to_pylist()
    assert found.select("id", "index").to_dicts() == rows
    assert list_left_aside([tmp_path / "ds"], ("parquet",)) == {}


def test_a_dictionary_that_changes_within_a_stream(tmp_path):
    kind = pa.schema({"id": pa.dictionary(pa.int32(), pa.string())})
    words = ([0, 1], ["a", "b"]), ([0, 1], ["b", "c"])
    with pa.ipc.new_stream(tmp_path / "log.arrow", kind) as out:
        for codes, names in words:
            codes = pa.array(codes, pa.int32())
            out.write_batch(pa.record_batch([pa.DictionaryArray.from_arrays(codes, names)], kind))
    path = str(tmp_path / "log.arrow")
    (frame,) = arrow_frames(path)
    assert frame["id"].to_list() == ["a", "b", "b", "c"]


@pytest.mark.parametrize("writer", ["lz4", "zstd"])
def test_a_packed_buffer_of_an_impossible_size(tmp_path, writer):
    """The unpacked size stated in a packed buffer is not allocated."""
    path = tmp_path / "log.arrow"
    WRITERS[writer](path, table())
    whole = path.read_bytes()
    mark = b"\x04\x22\x4d\x18" if writer == "lz4" else b"\x28\xb5\x2f\xfd"
    place = whole.index(mark) - 8
    path.write_bytes(whole[:place] + (1 << 60).to_bytes(8, "little") + whole[place + 8 :])
    with pytest.raises(OSError, match="Arrow data are damaged"):
        list(arrow_frames(str(path)))


@pytest.mark.parametrize("writer", ["file", "stream", "lz4", "polars"])
def test_a_damaged_file_is_named(tmp_path, writer):
    path = tmp_path / "log.arrow"
    WRITERS[writer](path, table())
    whole = path.read_bytes()
    rng = random.Random(3)
    refused = 0
    for content in (
        whole[:3000],
        whole[:40],
        whole[:8],
        *(_flipped(whole, rng) for _ in range(often(8, 40))),
    ):
        path.write_bytes(content)
        try:
            read(tmp_path, path)
        except InputError as error:
            refused += str(path) in error.message
    assert refused >= 3


def _flipped(whole: bytes, rng: random.Random) -> bytes:
    changed = bytearray(whole)
    changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    return bytes(changed)
