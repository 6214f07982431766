"""Messages about files that are not logs of a suite."""

from pathlib import Path
from typing import Any

import pytest

from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.samples.file_samples import FileSample
from fastscore.logs.samples.profile import ColumnSample, RequiredColumn, required_columns
from fastscore.logs.samples.refusals import describe_no_row, foreign_error
from fastscore.suites.declarations import ALL_METRICS, Column, Needed, Source, Vocabulary

TEXT = Column(name="text", kind="text", needed=Needed(ALL_METRICS), aliases=("said",))
EVENT = Column(
    name="event",
    kind="text",
    needed=Needed(ALL_METRICS),
    vocabulary=Vocabulary(needed=("guess", "end")),
)
SOURCE = Source(columns=(TEXT, EVENT))
NEED_TEXT, NEED_EVENT = required_columns(SOURCE)


def written(folder: Path, content: bytes, format: Format = "jsonl") -> FileSample:
    path = folder / f"log.{format}"
    path.write_bytes(content)
    return FileSample(InputFile(str(path), format, "none", len(content)), lambda: iter([]))


def sample(
    need: RequiredColumn,
    counts: ColumnSample,
    *rows: dict[str, Any],
    format: Format = "jsonl",
    **more: Any,
) -> FileSample:
    file = InputFile(f"log.{format}", format, "none", 0)
    seen = FileSample(file, lambda: iter(rows), rows=len(rows), is_whole=True, **more)
    seen.samples = {NEED_TEXT.place: ColumnSample(), NEED_EVENT.place: ColumnSample()}
    seen.samples[need.place] = counts
    return seen


@pytest.mark.parametrize(
    ("format", "content", "what", "hint"),
    [
        ("jsonl", b"[\n{}]\n", "no line is a JSON object; it begins with '['", "jq -c '.[]'"),
        ("jsonl", b"{\n}\n", "no line is a JSON object; it begins with '{'", "Type jq -c . "),
        (
            "jsonl",
            b'{"a": 1},\n{"a": 2},\n',
            "no line is a JSON object; it begins with '{\"a\": 1},'",
            "Each line ends with a comma. Type sed 's/,[[:space:]]*$//' ",
        ),
        (
            "json",
            b'[7]\n[{"a": 2}]\n',
            "no JSON object; it begins with '[7]'",
            "Arrays follow each other. Type jq -c '.[]' ",
        ),
        ("json", b"7", "no JSON object; it begins with '7'", "holds an object, or an array"),
    ],
)
def test_a_file_without_a_row_says_how_it_begins(format, content, what, hint, tmp_path):
    seen = written(tmp_path, content, format)
    assert describe_no_row(seen) == what
    error = foreign_error("toy", SOURCE, [seen])
    assert error.message == f"{seen.file.path}: {what}."
    assert hint in (error.hint or "")


def test_files_that_begin_alike_are_counted(tmp_path):
    seen = written(tmp_path, b"7")
    seen.alike = [seen.file] * 1_233
    assert f"{seen.file.path} and 1,233 more: " in foreign_error("toy", SOURCE, [seen]).message


def test_of_files_some_of_which_have_rows_those_are_told(tmp_path):
    empty = written(tmp_path, b"7")
    rows = sample(NEED_TEXT, ColumnSample(asked=1), {"other": 1}, needs=(NEED_TEXT, NEED_EVENT))
    error = foreign_error("toy", SOURCE, [empty, rows])
    assert error.message.splitlines() == [
        "log.jsonl: no row has what toy needs.",
        "  text: absent or null in 1 row",
        "    looked for: text, said",
        "    found: other (1)",
    ]
