"""Hive partitions: rows have the values of their folders' names, and no contradicting ones."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.inputs.folders import partition_of
from fastscore.logs.plan.shards import Plan
from fastscore.logs.samples.records import records
from fastscore.suites.declarations import Column, Source
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of

FORMATS = ("csv", "json", "jsonl", "parquet")
SOURCE = Source(
    columns=(
        Column(name="id", kind="text"),
        Column(name="model", kind="text", aliases=("model_name",)),
        Column(name="step", kind="integer"),
    ),
    dialogue_key=("id", "model"),
    formats=FORMATS,
)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("hive/model=m1/step=2/log.jsonl", {"model": "m1", "step": "2"}),
        ("a=b.jsonl", {}),
        ("model=a%2Fb%20c/x.csv", {"model": "a/b c"}),
        ("model=__HIVE_DEFAULT_PARTITION__/x.csv", {}),
        ("model=/x.csv", {"model": ""}),
        ("model=a=b/x.csv", {"model": "a=b"}),
        ("=a/x.csv", {}),
        ("logs.zip/model=m/x.csv", {"model": "m"}),
        ("-", {}),
    ],
)
def test_what_folders_give(path: str, found: dict[str, str]) -> None:
    assert dict(partition_of(path)) == found


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows))
    elif path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_ipc(path)


def plan(folder: Path, source: Source = SOURCE) -> Plan:
    return plan_of(folder.parent, folder, source=source, shard_bytes=10)


def read(planned: Plan, source: Source = SOURCE) -> list[dict[str, Any]]:
    frame, rejects, _ = read_of(planned, source)
    assert rejects.is_empty()
    return frame.drop("file", "line", "byte_offset").to_dicts()


@pytest.mark.parametrize("name", ["log.csv", "log.json", "log.jsonl", "log.parquet", "log.arrow"])
def test_rows_have_what_their_folders_give(tmp_path: Path, name: str) -> None:
    """Each folder contains one id, which the folder's model makes a separate dialogue."""
    rows = [{"id": "a"}, {"id": "b"}]
    for model in ("m1", "m%202", "__HIVE_DEFAULT_PARTITION__"):
        write(tmp_path / "hive" / f"model={model}" / "step=3" / name, rows)
    planned = plan(tmp_path / "hive")
    assert planned.n_dialogues == 6
    models = [None, "m 2", "m1"]
    expected = [{"id": key, "model": model, "step": 3} for model in models for key in "ab"]
    assert read(planned) == expected
    for file in resolve_inputs([tmp_path / "hive"], FORMATS):
        model = dict(partition_of(file.path)).get("model")
        assert [row.get("model") for row in records(file)] == [model, model]


@pytest.mark.parametrize("name", ["log.jsonl", "log.parquet"])
def test_a_value_of_the_row_counts_and_must_agree(tmp_path: Path, name: str) -> None:
    path = tmp_path / "hive" / "model=m1" / name
    write(path, [{"id": "a", "model": "m1"}, {"id": "b", "model": None}])
    assert [row["model"] for row in read(plan(tmp_path / "hive"))] == ["m1", "m1"]
    write(path, [{"id": "a", "model": None}, {"id": "b", "model": "m2"}])
    with pytest.raises(InputError, match=r":2: model is 'm2', but the file's folder says 'm1'"):
        read(plan(tmp_path / "hive"))


def test_a_folder_may_give_what_is_required_and_must_give_its_kind(tmp_path: Path) -> None:
    required = replace(SOURCE.columns[1], otherwise="required")
    source = replace(SOURCE, columns=(SOURCE.columns[0], required, SOURCE.columns[2]))
    write(tmp_path / "a" / "model_name=m1" / "log.csv", [{"id": "a"}])
    assert read(plan(tmp_path / "a", source), source)[0]["model"] == "m1"
    write(tmp_path / "b" / "step=one" / "log.csv", [{"id": "a"}])
    with pytest.raises(InputError, match="folders give step the value 'one', expected one of the"):
        plan(tmp_path / "b")


def test_a_column_at_a_path_has_its_own_value_first(tmp_path: Path) -> None:
    model = SOURCE.columns[1].remapped(path="meta.model")
    source = replace(SOURCE, columns=(SOURCE.columns[0], model, SOURCE.columns[2]))
    path = tmp_path / "hive" / "model=m1" / "log.jsonl"
    write(path, [{"id": "a", "meta": {"model": "m1"}}, {"id": "b"}])
    assert [row["model"] for row in read(plan(tmp_path / "hive", source), source)] == ["m1", "m1"]
    write(path, [{"id": "a", "meta": {"model": "other"}}])
    with pytest.raises(InputError, match="model is 'other'"):
        read(plan(tmp_path / "hive", source), source)
