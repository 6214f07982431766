"""Contents of logs and suites that can read them, by two small sources made for the tests."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from fastscore.logs.inputs.column_map import ColumnMap
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.samples.inspection import InspectedFile, Trial, as_json, inspect_logs, shapes
from fastscore.logs.samples.profile import fold_maps, profile_of
from fastscore.suites.declarations import ALL_METRICS, Column, Needed, Source, Vocabulary

SAID = Source(
    columns=(
        Column(name="text", kind="text", needed=Needed(ALL_METRICS)),
        Column(name="mood", kind="text", needed=Needed(("M1",))),
        Column(name="place", kind="text", needed=Needed(affects=("M2",))),
    )
)
EVENTS = Source(
    columns=(
        Column(
            name="event",
            kind="text",
            needed=Needed(ALL_METRICS),
            vocabulary=Vocabulary(known=("guess",), needed=("guess",)),
        ),
    ),
    formats=("jsonl", "csv"),
)
SOURCES = {"said": SAID, "events": EVENTS}


def scored_all(file: InputFile, suite: str, columns: ColumnMap) -> Trial:
    """Take every row as scored."""
    return Trial(1, 0)


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def inspected(path: Path, *rows: dict[str, Any]) -> InspectedFile:
    (file,) = inspect_logs([write(path, *rows)], SOURCES, scored_all).files
    return file


def test_the_first_thousand_rows_are_counted(tmp_path):
    rows = [{"text": "a"}] * 1_001
    assert inspected(tmp_path / "a.jsonl", *rows[:1_000]).is_whole
    file = inspected(tmp_path / "b.jsonl", *rows)
    assert (file.found.rows, file.is_whole) == (1_000, False)


def test_files_of_one_shape_are_grouped(tmp_path):
    write(tmp_path / "a.jsonl", {"text": "a"})
    write(tmp_path / "b.jsonl", {"text": "b"}, {"text": "c"})
    write(tmp_path / "c.jsonl", {"text": "a", "mood": "b"})
    pl.DataFrame({"text": ["a"]}).write_parquet(tmp_path / "d.parquet")
    groups = shapes(inspect_logs([str(tmp_path)], SOURCES, scored_all).files)
    names = [[Path(each.file.path).stem for each in group] for group in groups]
    assert names == [["a", "b"], ["c"], ["d"]]


def test_objects_whose_keys_are_ids_are_one_key():
    rows = [
        {"dialogue": k, "usage": {f"m{k}_{i}": {"n": i, "at": None} for i in range(8)}}
        for k in range(5)
    ]
    found = profile_of(rows)
    assert len(found.keys) == 2 + 40 * 3
    folded = fold_maps(found.keys)
    assert list(folded) == ["dialogue", "usage", "usage.*", "usage.*.n", "usage.*.at"]
    assert (folded["usage.*"].count, folded["usage.*.n"].count) == (40, 40)
    assert (folded["usage.*.at"].nulls, folded["usage.*.n"].types) == (40, {"integer": 40})


def test_few_objects_whose_keys_are_uuids_are_one_key():
    ids = [f"7ceb5efa-c9b2-4e81-acae-7b5c48a309{k:02d}" for k in range(3)]
    row = {"mapping": {"client-created-root": {"children": []}} | {id: {"id": id} for id in ids}}
    assert list(fold_maps(profile_of([row]).keys)) == [
        "mapping",
        "mapping.*",
        "mapping.*.children",
        "mapping.*.id",
    ]


def test_a_document_whose_keys_are_ids_is_one_key():
    found = profile_of([{f"d{i}.json": {"log": [{"text": "a"}]} for i in range(40)}])
    assert list(found.keys) == ["*", "*.log", "*.log[].text"]
    assert found.keys["*.log[].text"].count == 40
    assert len(profile_of([{f"d{i}": {} for i in range(29)}]).keys) == 29
    assert len(profile_of([{f"d{i}": {} for i in range(40)} | {"version": 1}]).keys) == 41


def test_of_many_files_with_the_same_keys_the_first_are_tried(tmp_path):
    tried: list[str] = []

    def read_as(file: InputFile, suite: str, columns: ColumnMap) -> Trial:
        tried.append(Path(file.path).stem)
        return Trial(1, int(file.path.endswith("05.jsonl")))

    for number in range(25):
        write(tmp_path / f"{number:02d}.jsonl", {"content": f"{number}"})
    inspection = inspect_logs([str(tmp_path)], SOURCES, read_as)
    assert tried == [f"{n:02d}" for n in (0, 1, 2, 3, 4, 5, 5, *range(6, 20))]
    assert {fit.flags for each in inspection.files for fit in each.fits} == {
        ("--column", "text=content")
    }
    trials = [each.fits[0].trial for each in inspection.files]
    assert trials == [*(Trial(1, int(n == 5)) for n in range(20)), *[None] * 5]
    shown = as_json(inspection, {})["files"]
    assert [each["fits"][0]["scored_of_the_first_rows"] for each in shown[18:22]] == [
        1,
        1,
        None,
        None,
    ]
