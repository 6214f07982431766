"""Input that can be read only once is spooled unchanged, so that it can be read again."""

import gzip
import io
import json
from pathlib import Path

import polars as pl
import pytest
import zstandard

from fastscore.errors import RunError, UsageError
from fastscore.logs.inputs.files import InputFile
from fastscore.logs.inputs.frames import spool_frame, spool_rows, spool_stdin
from fastscore.suites.declarations import Column, Mapped, MappedColumn

STDIN = InputFile("-", "jsonl", "none", 0)
LINES = b'{"a": 1}\n' * 300_000


class Piped:
    """Standard input to which bytes are piped, or a terminal."""

    def __init__(self, data: bytes, *, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(data)
        self.buffer.isatty = lambda: terminal  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("data", "compression"),
    [
        (LINES, "none"),
        (gzip.compress(LINES), "gz"),
        (zstandard.compress(LINES), "zst"),
        (b"", "none"),
        (b"\x1f", "none"),
    ],
)
def test_standard_input_is_kept_byte_for_byte(data, compression, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", Piped(data))
    kept = spool_stdin(STDIN, tmp_path / "new" / "folder")
    assert Path(kept.stored).read_bytes() == data
    assert (kept.path, kept.size, kept.compression) == ("-", len(data), compression)


def test_nothing_is_read_from_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", Piped(LINES, terminal=True))
    with pytest.raises(UsageError, match="nothing is piped"):
        spool_stdin(STDIN, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for spool in (
        lambda folder: spool_rows([{"a": 1}], folder),
        lambda folder: spool_frame(pl.DataFrame({"a": [1]}), [], folder),
    ):
        with pytest.raises(RunError, match=r"cannot be kept in '.*/file/below': Not a directory"):
            spool(tmp_path / "file" / "below")


def test_rows_are_lines(tmp_path):
    rows = [{"a": "é", "b": [1, None]}, {}, {"a": 2**60}]
    kept = spool_rows(iter(rows), tmp_path)
    lines = Path(kept.stored).read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert (kept.format, kept.size) == ("jsonl", sum(len(line.encode()) + 1 for line in lines))


def test_of_a_frame_the_wanted_columns_are_kept(tmp_path):
    columns = [
        Column(name="text", kind="text", aliases=("said",)),
        MappedColumn(name="uid", kind="text", mapped=Mapped(path="meta.uid")),
        MappedColumn(name="turns", kind="json", mapped=Mapped(path="rounds[].turns")),
        Column(name="absent", kind="text"),
    ]
    frame = pl.DataFrame(
        {"said": ["a"], "meta": [{"uid": "u"}], "rounds": [[{"turns": 1}]], "other": [1]}
    )
    kept = spool_frame(frame, columns, tmp_path)
    assert pl.read_parquet(kept.stored).equals(frame.drop("other"))


def test_objects_without_a_field_are_kept_as_their_text(tmp_path):
    empty = pl.Struct([])
    frame = pl.DataFrame(
        {
            "bare": pl.Series([{}, None], dtype=empty),
            "listed": pl.Series([[{}], []], dtype=pl.List(empty)),
            "inside": pl.Series([{"x": {}}, None], dtype=pl.Struct({"x": empty})),
        }
    )
    columns = [Column(name=name, kind="json") for name in frame.columns]
    kept = pl.read_parquet(spool_frame(frame, columns, tmp_path).stored)
    assert kept.to_dict(as_series=False) == {
        "bare": ["{}", None],
        "listed": ["[{}]", "[]"],
        "inside": ['{"x":{}}', None],
    }
