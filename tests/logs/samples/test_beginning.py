"""The first rows of large files, written to small ones that `inspect` looks at."""

import csv
import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.feather
import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.integrity import limits
from fastscore.logs.samples.records import beginning_of, records

ROWS = [{"id": str(n), "text": f"{n} " + 'said "so"\n' * 100} for n in range(3_000)]


def _jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))


def _packed(path: Path) -> None:
    texts = (hashlib.sha256(row["text"].encode()).hexdigest() for row in ROWS)
    text = "".join(json.dumps({"text": each}) + "\n" for each in texts)
    path.write_bytes(gzip.compress(text.encode() * 8))


def _csv(path: Path) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, ROWS[0])
        table.writeheader()
        table.writerows(ROWS)


def _arrow(path: Path) -> None:
    pyarrow.feather.write_feather(pl.DataFrame(ROWS).to_arrow(), path, compression="uncompressed")


WRITTEN: dict[str, Callable[[Path], Any]] = {
    "log.jsonl": _jsonl,
    "array.json": lambda path: path.write_text(json.dumps(ROWS, indent=2)),
    "log.csv": _csv,
    "log.feather": _arrow,
    "log.parquet": lambda path: pl.DataFrame(ROWS).write_parquet(path, compression="uncompressed"),
    "log.jsonl.gz": _packed,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_large_file_is_looked_at_by_its_first_rows(tmp_path, name):
    path = tmp_path / name
    WRITTEN[name](path)
    (file,) = resolve_inputs([path], ("json", "jsonl", "csv", "parquet"))
    (tmp_path / "heads").mkdir()
    head = beginning_of(file, tmp_path / "heads")
    assert (head.path, head.compression) == (file.path, "none")
    assert head.size < 3 << 20
    found = list(records(head))
    expected = list(records(file))
    assert 100 < len(found) < len(expected)
    assert found == expected[: len(found)]


def test_of_a_large_object_the_first_entries_are_looked_at(tmp_path):
    path = tmp_path / "map.json"
    path.write_text(json.dumps({row["id"]: [row] * 2 for row in ROWS}))
    (file,) = resolve_inputs([path], ("json",))
    (found,) = records(beginning_of(file, tmp_path))
    assert found == {row["id"]: [row] * 2 for row in ROWS[:200]}


def test_small_files_and_damaged_ones_are_looked_at_themselves(tmp_path):
    (tmp_path / "small.json").write_text("[]")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1" * (1 << 19))
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(b"{}\n")[:-1] + b"x" * (1 << 17))
    for name in ("small.json", "damaged.parquet"):
        (file,) = resolve_inputs([tmp_path / name], ("json", "parquet"))
        assert beginning_of(file, tmp_path) is file


def test_a_value_that_is_too_long_is_refused_by_name(tmp_path, monkeypatch):
    for module in ("samples.records", "read.lines"):
        monkeypatch.setattr(f"fastscore.logs.{module}.MAX_RECORD_BYTES", 1 << 20)
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"samples": ROWS}))
    (file,) = resolve_inputs([path], ("json",))
    with pytest.raises(InputError, match=r"one\.json: a JSON value of more than 1 MiB") as refused:
        beginning_of(file, tmp_path)
    assert refused.value.hint is not None
    assert limits.MAX_RECORD_BYTES == 64 << 20
