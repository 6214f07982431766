"""Files, folders and globs: found files, their order, and refusals."""

import gzip
import json
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from fastscore.errors import InputError
from fastscore.logs.inputs import files
from fastscore.logs.inputs.files import UNKNOWN_SUFFIX, InputFile, list_left_aside, resolve_inputs
from fastscore.logs.plan.shards import plan_shards
from fastscore.logs.samples.records import first_row, records
from fastscore.suites.declarations import Source
from tests.run.mounts import same_file


def pack(content: bytes, suffix: str) -> bytes:
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.compress,
        ".zst": zstandard.compress,
    }
    return packers.get(suffix, bytes)(content)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.jsonl", "a.ndjson.gz", "sub/c.json", "sub/deep/d.parquet", "e.JSONL.zst"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack(b"{}\n", path.suffix))
    (tmp_path / "logs" / "notes.txt").write_text("x")
    (tmp_path / "logs" / ".hidden.jsonl").write_text("x")
    return tmp_path


def paths(*patterns: str, formats: tuple[str, ...] = ("jsonl", "parquet")) -> list[str]:
    return [file.path for file in resolve_inputs(patterns, formats)]


def test_a_file_is_described(folder):
    assert resolve_inputs(["logs/a.ndjson.gz"]) == (
        InputFile("logs/a.ndjson.gz", "jsonl", "gz", len(gzip.compress(b"{}\n"))),
    )


names_alike = pytest.mark.parametrize(
    "names",
    [("caf\u00e9.jsonl", "cafe\u0301.jsonl"), ("Log.jsonl", "log.jsonl")],
    ids=["NFC and NFD", "case"],
)


@names_alike
def test_names_that_another_system_takes_for_one_are_the_files_of_the_disk(
    tmp_path, monkeypatch, names
):
    monkeypatch.chdir(tmp_path)
    for name in names:
        Path(name).write_text("{}\n")
    on_disk = sorted(os.listdir())  # one name where the disk takes both for the same
    assert paths("*.jsonl") == on_disk
    assert paths(".") == [f"./{name}" for name in on_disk]
    if len(on_disk) == 2:
        assert sorted(paths(*names)) == on_disk


@names_alike
def test_a_file_counts_once_under_all_names_that_the_disk_takes_for_it(
    tmp_path, monkeypatch, names
):
    monkeypatch.chdir(tmp_path)
    first, second = map(Path, names)
    first.write_text("{}\n")
    with same_file(first, second):
        assert paths(*names) == [names[0]]
        assert paths(*reversed(names)) == [names[1]]


def test_an_archive_counts_once_under_two_names_and_each_member_by_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("one.jsonl", "{}\n")
        archive.writestr("sub/two.jsonl", "{}\n")
    with same_file(Path("a.zip"), Path("A.zip")):
        found = ["a.zip/one.jsonl", "a.zip/sub/two.jsonl"]
        assert paths("a.zip", "A.zip", "A.zip/sub/two.jsonl") == found


def test_hard_links_are_files_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text("{}\n")
    os.link("a.jsonl", "b.jsonl")
    os.symlink("b.jsonl", "c.jsonl")
    assert paths("a.jsonl", "b.jsonl", "c.jsonl") == ["a.jsonl", "b.jsonl"]


def test_the_order_is_as_given_and_a_file_counts_once(folder):
    os.symlink("b.jsonl", "logs/z.jsonl")
    assert paths("logs/sub", "logs/b.jsonl", "logs", "./logs/b.jsonl") == [
        "logs/sub/c.json",
        "logs/sub/deep/d.parquet",
        "logs/b.jsonl",
        "logs/a.ndjson.gz",
        "logs/e.JSONL.zst",
    ]


def test_globs(folder):
    assert paths("logs/*.jsonl", "logs/**/*.json") == ["logs/b.jsonl", "logs/sub/c.json"]
    assert paths("logs/s*") == ["logs/sub/c.json", "logs/sub/deep/d.parquet"]
    assert paths("logs/*") == [
        "logs/a.ndjson.gz",
        "logs/b.jsonl",
        "logs/e.JSONL.zst",
        "logs/sub/c.json",
        "logs/sub/deep/d.parquet",
    ]


def test_formats_are_those_of_the_source(folder):
    assert "logs/sub/deep/d.parquet" not in paths("logs", formats=("jsonl",))
    with pytest.raises(InputError, match=r"is a Parquet file, which this suite does not read"):
        paths("logs/sub/deep/d.parquet", formats=("jsonl",))


def test_logs_of_other_formats_are_named(folder):
    for name in ("logs/y.csv", "logs/sub/x.csv.gz", "logs/notes.txt", "logs/.hidden.csv"):
        Path(name).write_text("a")
    formats = ("jsonl", "parquet")
    csv, json = (f"a {name} file, which this suite does not read" for name in ("CSV", "JSON"))
    aside = {"logs/notes.txt": UNKNOWN_SUFFIX, "logs/sub/x.csv.gz": csv, "logs/y.csv": csv}
    assert list_left_aside(["logs"], formats) == aside
    assert list_left_aside(["logs/*", "logs/b.jsonl", "logs/sub"], formats) == aside
    assert list_left_aside(["logs/*.jsonl", "logs/b.jsonl"], formats) == {}
    assert list_left_aside(["logs/sub"], ("csv", "parquet")) == {"logs/sub/c.json": json}


def test_a_json_document_is_told_from_json_lines_by_the_source(folder):
    for formats, expected in [
        (("jsonl",), "jsonl"),
        (("json", "jsonl"), "json"),
        (("csv", "json"), "json"),
    ]:
        (file,) = resolve_inputs(["logs/sub/c.json"], formats)
        assert file.format == expected
    with pytest.raises(InputError, match="is a JSON file, which this suite does not read"):
        resolve_inputs(["logs/sub/c.json"], ("csv",))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("logs/c*.csv", r"glob 'logs/c\*.csv' matched nothing"),
        ("logs/*.txt", "1 name but no file .* To read 'logs/notes.txt', name the file itself and"),
        ("empty", "folder 'empty' holds no file"),
        ("logs/rows.jsonl", r"No such file or folder: 'logs/rows.jsonl'\.$"),
        ("logs/bb.jsonl", r"No such file or folder: 'logs/bb.jsonl'.*Did you mean 'b.jsonl'"),
        ("ftp://host/*.jsonl", r"'ftp://host/\*.jsonl' is an address.*s3://, .*input -"),
        ("nowhere/at/all", "folder 'nowhere/at' does not exist either"),
        (
            "logs/notes.txt",
            r"suffix of 'logs/notes.txt' names no format.*\.jsonl.*- < logs/notes.txt`",
        ),
        ("logs/dangling.jsonl", "cannot be read: No such file"),
        ("logs/pipe.jsonl", "neither a file nor a folder"),
    ],
)
def test_what_is_refused(folder, pattern, message):
    Path("empty").mkdir()
    os.symlink("gone.jsonl", "logs/dangling.jsonl")
    os.mkfifo("logs/pipe.jsonl")
    with pytest.raises(InputError, match=message):
        paths(pattern)


def test_no_input(folder):
    with pytest.raises(InputError, match="No input was given"):
        resolve_inputs([])


def test_a_link_to_a_folder_around_it_is_passed_over(folder):
    expected = paths("logs")
    os.symlink("..", "logs/sub/up")
    assert paths("logs") == expected
    assert paths("logs/**/*.json") == ["logs/sub/c.json"]


def test_each_folder_is_searched_once_however_many_links_lead_to_it(folder):
    """Fifty links, two from each folder to the next: 2^25 paths lead to one log."""
    for depth in range(26):
        Path(f"deep/{depth}").mkdir(parents=True)
    for depth in range(25):
        for name in "ab":
            os.symlink(f"../{depth + 1}", f"deep/{depth}/{name}")
    Path("deep/25/log.jsonl").write_text("{}")
    nested = "deep/0/" + "a/" * 25 + "log.jsonl"
    assert paths("deep/0") == [nested]
    assert paths("deep/0/**") == [nested]


def test_folders_may_be_nested_deeply(folder):
    for depth in range(1, 1_201):
        os.mkdir("d/" * depth)
    nested = "d/" * 1_200
    Path(nested, "log.jsonl").write_text("{}")
    try:
        assert paths("d") == paths("d/**/*.jsonl") == [f"{nested}log.jsonl"]
        assert list(list_left_aside(["d"], ("csv",))) == [f"{nested}log.jsonl"]
    finally:
        subprocess.run(["rm", "-r", "d"], check=True)  # rmtree of Python 3.11 recurses


def all_formats(place: str) -> tuple[Source, tuple[InputFile, ...]]:
    source = Source(columns=(), formats=("csv", "json", "jsonl", "parquet"))
    return source, resolve_inputs([place], source.formats)


@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz", "d.parquet"])
@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no such file here")
def test_a_file_that_opens_but_fails_to_read(folder, name):
    """A process's memory is a regular file to whom reading its first byte is an error."""
    Path("broken").mkdir()
    os.symlink("/proc/self/mem", f"broken/{name}")
    source, files = all_formats("broken")
    with pytest.raises(InputError, match=rf"'broken/{name}' cannot be read: Input/output error"):
        plan_shards(files, source, scratch=folder)


@pytest.mark.parametrize("name", ["x.csv", "x.json", "x.jsonl.zst"])
def test_a_file_that_goes_after_it_was_listed(folder, name):
    Path(name).write_bytes(b"")
    source, files = all_formats(name)
    Path(name).unlink()
    with pytest.raises(InputError, match=f"'{name}' cannot be read: No such file"):
        plan_shards(files, source, scratch=folder)


def test_a_folder_named_like_a_log_is_searched(folder):
    Path("logs/x.jsonl").mkdir()
    Path("logs/x.jsonl/y.jsonl").write_text("{}")
    assert "logs/x.jsonl/y.jsonl" in paths("logs")
    assert paths("logs/x.jsonl") == ["logs/x.jsonl/y.jsonl"]
    Path("logs/x.jsonl/y.jsonl").unlink()
    with pytest.raises(InputError, match="holds no file"):
        paths("logs/x.jsonl")


def test_outputs_of_fastscore_are_no_logs(folder):
    """A run, judgements and an analysis lie among the logs, and none of their files is read."""
    expected = paths("logs")
    manifest = '{"signature": "fastscore=0.1.0", "suite_version": 3, "parts_hash": "00"}'
    for name, content in (
        ("run/manifest.json", manifest),
        ("run/dialogues/part-00000.parquet", "PAR1"),
        ("judged/judgements.jsonl", "{}\n"),
        ("judged/repeats.parquet", "PAR1"),
        ("run-analysis/analysis.html", "<html>"),
        ("run-analysis/tables/means.parquet", "PAR1"),
    ):
        path = folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert paths("logs") == expected
    aside = list_left_aside(["logs"], ("jsonl", "parquet"))
    assert {path: reason for path, reason in aside.items() if "fastscore" in reason} == {
        "logs/judged": "judgements of fastscore",
        "logs/run": "a run of fastscore",
        "logs/run-analysis": "an analysis of fastscore",
    }
    with pytest.raises(InputError, match="'logs/run' is a run of fastscore, no log"):
        paths("logs/run")
    (folder / "logs" / "run" / "manifest.json").write_text('{"signature": "another program"}')
    assert "logs/run/manifest.json" in paths("logs")


def test_first_lines_are_kept_up_to_a_size(tmp_path, monkeypatch):
    """Screening reads them from there; a long line, and those beyond the size, from the file."""
    monkeypatch.setattr(files, "_FIRST_LINES_BYTES", 20)
    texts = {"a": '{"a": 1}\n{}\n', "b": f'{{"b": "{"x" * 2_000}"}}\n', "c": '{"c": 1}\n'}
    texts["d"] = '{"d": 1}\n'
    for name, text in texts.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    found = resolve_inputs([str(tmp_path)], ("jsonl",))
    assert [file.first_line for file in found] == [b'{"a": 1}', b"", b'{"c": 1}', b""]
    rows = [json.loads(text.split("\n")[0]) for text in texts.values()]
    assert [first_row(file) for file in found] == [rows[0], None, rows[2], None]
    assert [next(records(file)) for file in found] == rows
