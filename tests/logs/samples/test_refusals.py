"""Messages about files that are not logs of a suite."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.samples.file_samples import FileSample
from fastscore.logs.samples.profile import ColumnSample, RequiredColumn, required_columns
from fastscore.logs.samples.refusals import (
    beginning,
    describe_no_row,
    foreign_error,
    lacking_error,
    words_error,
)
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


SEEN = [sample(NEED_TEXT, ColumnSample())]


def absence(seen: FileSample, need: RequiredColumn = NEED_TEXT) -> str:
    """Return what is told of the place of a need."""
    lines = lacking_error("toy", SOURCE, [need], [seen]).message.splitlines()
    return lines[1].strip()


def test_a_beginning_is_the_first_line_of_what_is_no_row(tmp_path: Path) -> None:
    assert beginning(written(tmp_path, b"[1,\n 2]\n")) == "[1,"
    assert beginning(written(tmp_path, b"x" * 40)) == "x" * 40
    assert beginning(written(tmp_path, b"x" * 41)) == "x" * 39 + "…"
    assert beginning(written(tmp_path, b"a,b\n", "csv")) == ""
    with_rows = written(tmp_path, b"{}\n")
    with_rows.rows = 1
    assert beginning(with_rows) == ""


@pytest.mark.parametrize(
    ("format", "content", "what", "hint"),
    [
        ("jsonl", b"[\n{}]\n", "no line is a JSON object; it begins with '['", "jq -c '.[]'"),
        ("jsonl", b"{\n}\n", "no line is a JSON object; it begins with '{'", "`jq -c .` writes"),
        ("json", b"7", "no JSON object; it begins with '7'", "holds an object, or an array"),
    ],
)
def test_a_file_without_a_row_says_how_it_begins(
    format: Format, content: bytes, what: str, hint: str, tmp_path: Path
) -> None:
    seen = written(tmp_path, content, format)
    assert describe_no_row(seen) == what
    error = foreign_error("toy", SOURCE, [seen])
    assert error.message == f"{seen.file.path}: {what}."
    assert hint in (error.hint or "")


def test_files_that_begin_alike_are_counted(tmp_path: Path) -> None:
    seen = written(tmp_path, b"7")
    seen.alike = [seen.file] * 1_233
    assert f"{seen.file.path} and 1,233 more: " in foreign_error("toy", SOURCE, [seen]).message


def test_of_files_some_of_which_have_rows_those_are_told(tmp_path: Path) -> None:
    empty = written(tmp_path, b"7")
    rows = sample(NEED_TEXT, ColumnSample(asked=1), {"other": 1}, needs=(NEED_TEXT, NEED_EVENT))
    error = foreign_error("toy", SOURCE, [empty, rows])
    assert error.message.splitlines() == [
        "log.jsonl: no row has what toy needs.",
        "  text: absent or null in 1 row",
        "    looked for: text, said",
        "    found: other (1)",
    ]


def test_absence_is_told_by_what_was_looked_at() -> None:
    asked = ColumnSample(asked=1_200)
    assert absence(sample(NEED_TEXT, asked)) == "text: absent or null in 1,200 rows"
    part = sample(NEED_TEXT, asked)
    part.is_whole = False
    assert absence(part) == "text: absent or null in all rows"
    assert absence(sample(NEED_TEXT, asked, format="csv")) == "text: no such column"
    null = ColumnSample(asked=2, keyed=2)
    assert absence(sample(NEED_TEXT, null, format="csv")) == "text: absent or null in 2 rows"
    other = ColumnSample(asked=3, keyed=3, unusable=Counter(array=2, object=1))
    assert absence(sample(NEED_TEXT, other)) == (
        "text: found arrays (2), objects (1), expected strings, in 3 rows"
    )


def test_a_key_that_probably_is_the_column_is_named_with_its_flag() -> None:
    rows = sample(NEED_TEXT, ColumnSample(asked=1), {"content": "a"})
    error = lacking_error("toy", SOURCE, [NEED_TEXT], [rows])
    assert error.message.splitlines()[-1] == "    nearest: content"
    assert error.hint == "Type --column text=content."


def test_words_under_another_name_are_told_with_their_numbers() -> None:
    foreign = ColumnSample(asked=9, given=9, known={"end"}, words=Counter(note=2, hypothesis=5))
    error = words_error("toy", SOURCE, NEED_EVENT, foreign, SEEN)
    assert error is not None
    assert error.message.splitlines() == [
        "log.jsonl: no row has what toy needs: event is never 'guess'.",
        "  looked for: guess, end",
        "  found: 'hypothesis' (5), 'note' (2)",
    ]
    # both words mean what a model wrote
    assert error.hint == "Type --value event:hypothesis=guess."
    strange = words_error("toy", SOURCE, NEED_EVENT, ColumnSample(words=Counter(qqq=1)), SEEN)
    assert strange is not None
    assert strange.hint == "Say what they mean: --value event:WORD=guess."


def test_without_foreign_words_or_absent_ones_there_is_no_error() -> None:
    assert words_error("toy", SOURCE, NEED_EVENT, ColumnSample(known={"end"}), SEEN) is None
    known = ColumnSample(known={"guess", "end"}, words=Counter(note=1))
    assert words_error("toy", SOURCE, NEED_EVENT, known, SEEN) is None


def test_where_any_of_several_words_is_enough_all_are_told() -> None:
    column = Column(
        name="role",
        kind="text",
        needed=Needed(ALL_METRICS),
        vocabulary=Vocabulary(
            known=("user", "guest", "waiter"),
            any_needed=(("role", "user"), ("role", "guest"), ("name", "guest_*")),
        ),
    )
    need = RequiredColumn("role", None, column)
    error = words_error(
        "toy", SOURCE, need, ColumnSample(known={"waiter"}, words=Counter(human=3)), SEEN
    )
    assert error is not None
    assert error.message.splitlines() == [
        "log.jsonl: no row has what toy needs: role is never 'user' or 'guest', and name never "
        "begins with 'guest_'.",
        "  found: 'human' (3), 'waiter'",
    ]
    assert error.hint == "Type --value role:human=user."
    assert (
        words_error("toy", SOURCE, need, ColumnSample(known={"waiter"}, any_expected=True), SEEN)
        is None
    )
    assert words_error("toy", SOURCE, need, ColumnSample(), SEEN) is None
    assert words_error("toy", SOURCE, NEED_TEXT, ColumnSample(words=Counter(x=1)), SEEN) is None
