"""What logs hold and which suites can read them, by two small sources made up for it."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.inspection import InspectedFile, as_json, inspect_logs, key_rows, shapes
from fastscore.suites.declarations import ALL_METRICS, Column, Source

SAID = Source(
    columns=(
        Column(name="text", kind="text", needed_by=ALL_METRICS),
        Column(name="mood", kind="text", needed_by=("M1",)),
        Column(name="place", kind="text", affects=("M2",)),
    ),
)
EVENTS = Source(
    columns=(
        Column(
            name="event", kind="text", needed_by=ALL_METRICS, expects=("guess",), knows=("guess",)
        ),
    ),
    formats=("jsonl", "csv"),
)
SOURCES = {"said": SAID, "events": EVENTS}


def write(path: Path, *rows: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def inspected(path: Path, *rows: dict[str, Any]) -> InspectedFile:
    (file,) = inspect_logs([write(path, *rows)], SOURCES).files
    return file


def test_a_suite_fits_by_the_flags_that_its_messages_name(tmp_path: Path) -> None:
    file = inspected(tmp_path / "a.jsonl", {"content": "a", "mood": "b", "place": "c"})
    (fit,) = file.fits
    assert (fit.suite, fit.flags, fit.lacking) == ("said", ("--column", "text=content"), ())
    assert set(file.unfit) == {"events"}
    assert "event: absent or null in 1 row" in file.unfit["events"]


def test_suites_without_a_flag_come_first(tmp_path: Path) -> None:
    row = {"event": "guess", "content": "a"}
    assert [fit.suite for fit in inspected(tmp_path / "a.jsonl", row).fits] == ["events", "said"]
    row = {"event": "hypothesis", "text": "a"}
    fits = inspected(tmp_path / "b.jsonl", row).fits
    assert [(fit.suite, fit.flags) for fit in fits] == [
        ("said", ()),
        ("events", ("--value", "event:hypothesis=guess")),
    ]


def test_columns_that_stand_nowhere_are_named_with_what_they_serve(tmp_path: Path) -> None:
    inspection = inspect_logs([write(tmp_path / "a.jsonl", {"text": "a", "mood": None})], SOURCES)
    (file,) = inspection.files
    assert [need.place for need in file.fits[0].lacking] == ["mood", "place"]
    shown = as_json(inspection, {"said": "score"})
    (fit,) = shown["files"][0]["fits"]
    assert fit["null_for_want_of"] == {"mood": ["M1"]}
    assert fit["scored_without"] == {"place": ["M2"]}
    assert shown["commands"] == {"said": "score"}


def test_formats_are_those_of_each_suite(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("event,text\nguess,a\n")
    (file,) = inspect_logs([str(tmp_path / "a.csv")], SOURCES).files
    assert [fit.suite for fit in file.fits] == ["events"]
    assert "csv" in file.unfit["said"].lower()


def test_what_is_no_log_is_told_with_its_reason(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"text": "a"})
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / "b.parquet").write_bytes(b"damaged")
    inspection = inspect_logs([str(tmp_path)], SOURCES)
    assert [Path(each.file.path).name for each in inspection.files] == ["a.jsonl"]
    reasons = {Path(path).name: reason for path, reason in inspection.others.items()}
    assert set(reasons) == {"notes.txt", "b.parquet"}
    assert reasons["notes.txt"] == "its suffix names no format that is read"
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError):
        inspect_logs([str(tmp_path / "none")], SOURCES)


def test_a_file_of_no_row_fits_nothing(tmp_path: Path) -> None:
    file = inspected(tmp_path / "a.jsonl")
    assert file.fits == ()
    assert all("no row was found" in reason for reason in file.unfit.values())
    assert (file.found.rows, file.is_whole) == (0, True)


def test_the_first_thousand_rows_are_counted(tmp_path: Path) -> None:
    rows = [{"text": "a"}] * 1_001
    assert inspected(tmp_path / "a.jsonl", *rows[:1_000]).is_whole
    file = inspected(tmp_path / "b.jsonl", *rows)
    assert (file.found.rows, file.is_whole) == (1_000, False)


def test_examples_are_short_and_of_one_line(tmp_path: Path) -> None:
    rows = [{"text": "a\n b" + "c" * 60, "mood": None, "n": [1, 2]}, {"text": "d"}]
    keys = {key["path"]: key for key in key_rows(inspected(tmp_path / "a.jsonl", *rows).found)}
    assert keys["text"]["example"] == "a b" + "c" * 56 + "…"
    assert keys["n"]["example"] == "[1, 2]"
    assert keys["mood"]["null_share"] == 1.0
    assert keys["n"]["types"] == {"array": 1}


def test_files_of_one_shape_are_grouped(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", {"text": "a"})
    write(tmp_path / "b.jsonl", {"text": "b"}, {"text": "c"})
    write(tmp_path / "c.jsonl", {"text": "a", "mood": "b"})
    pl.DataFrame({"text": ["a"]}).write_parquet(tmp_path / "d.parquet")
    groups = shapes(inspect_logs([str(tmp_path)], SOURCES).files)
    names = [[Path(each.file.path).stem for each in group] for group in groups]
    assert names == [["a", "b"], ["c"], ["d"]]
