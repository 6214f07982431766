"""Encodings, separators and archives: the rows are those of the plain file, whatever it is in."""

import bz2
import codecs
import csv
import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard

import fastscore
from fastscore.errors import InputError
from fastscore.logs.inputs.files import InputFile, list_left_aside, resolve_inputs
from fastscore.logs.plan.shards import Plan
from fastscore.logs.samples.records import records
from fastscore.suites.declarations import Column, Source
from tests.logs.planned import plan as plan_of
from tests.logs.planned import read as read_of

SOURCE = Source(
    columns=(
        Column(name="id", kind="text"),
        Column(name="text", kind="text", otherwise="required"),
    ),
    dialogue_key=("id",),
    formats=("csv", "jsonl", "parquet"),
)
ROWS = [("a", "héllo"), ("a", 'two\nlines; "quoted",\tand 日本'), ("b", "x" * 300), ("c", "𝄞")]
LOG = "".join(json.dumps({"id": a, "text": b}, ensure_ascii=False) + "\n" for a, b in ROWS)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gz": gzip.compress,
    "zst": zstandard.compress,
}
ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]


plan = partial(plan_of, source=SOURCE)
read = partial(read_of, source=SOURCE)


def rows_of(planned: Plan) -> list[tuple[str, str]]:
    frame, rejects, _ = read(planned)
    assert rejects.is_empty()
    return frame.select("id", "text").rows()


def written(rows: list[tuple[str, str]], separator: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=separator).writerows([("id", "text"), *rows])
    return out.getvalue()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("packer", "shard_bytes"), [("none", 64), ("gz", 64), ("zst", 32 << 20)])
def test_json_lines_in_any_encoding_packed_in_any_way(tmp_path, packer, encoding, shard_bytes):
    path = tmp_path / "log.jsonl"  # the name says nothing of it
    path.write_bytes(PACKERS[packer](LOG.encode(encoding)))
    (file,) = resolve_inputs([path])
    is_recoded = packer == "none" and "8" not in encoding
    assert file.compression == (encoding[:6] if is_recoded else packer)
    assert rows_of(plan(tmp_path, path, shard_bytes=shard_bytes)) == ROWS
    assert [(row["id"], row["text"]) for row in records(file)] == ROWS


@pytest.mark.parametrize(
    ("separator", "encoding"), [(",", "utf-16"), (";", "utf-8"), ("\t", "utf-16-le")]
)
@pytest.mark.parametrize("begin", ["", "sep={}\r\n", '"sep={}"\n', "\ufeff", "\ufeffsep={}\n"])
def test_csv_of_any_separator(tmp_path, separator, begin, encoding):
    path = tmp_path / "log.csv"
    begin = begin if encoding != "utf-16" else begin.lstrip("\ufeff")  # it writes its own
    text = begin.format(separator) + written(ROWS, separator)
    path.write_bytes(text.encode(encoding))
    planned = plan(tmp_path, path, shard_bytes=100)
    assert rows_of(planned) == ROWS
    (file,) = resolve_inputs([path], SOURCE.formats)
    assert [(row["id"], row["text"]) for row in records(file)] == ROWS
    frame, *_ = read(planned)
    header = 2 if "sep" in begin else 1
    assert frame["line"].to_list() == [header + after for after in (1, 2, 4, 5)]
    if encoding == "utf-8":
        begins = [path.read_bytes()[at:].decode()[:1] for at in frame["byte_offset"]]
        assert begins == ["a", "a", "b", "c"]


def test_a_separator_that_only_the_first_line_names(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("sep=|\nid|text\na|x,y;z\n")
    assert rows_of(plan(tmp_path, path)) == [("a", "x,y;z")]


def test_marks_at_the_beginning_of_lines_are_passed_over(tmp_path):
    """Files that begin with one were put one after another."""
    lines = LOG.splitlines(keepends=True)
    path = tmp_path / "log.jsonl"
    path.write_bytes("".join("\ufeff" + line for line in lines).encode())
    frame, rejects, _ = read(plan(tmp_path, path))
    assert (frame.select("id", "text").rows(), rejects.height) == (ROWS, 0)
    parts = written(ROWS[:2], ",").encode(), written(ROWS[2:], ",").encode()
    path = tmp_path / "log.csv"
    path.write_bytes(codecs.BOM_UTF8 + parts[0] + codecs.BOM_UTF8 + parts[1].partition(b"\r\n")[2])
    frame, rejects, _ = read(plan(tmp_path, path))
    assert (frame.select("id", "text").rows(), rejects.height) == (ROWS, 0)
    found = path.read_bytes()
    assert [found[at : at + 1] for at in frame["byte_offset"]] == [b"a", b"a", b"b", b"c"]


def test_half_a_character_and_lone_surrogates_are_rejects(tmp_path):
    path = tmp_path / "log.jsonl"
    good, lone = '{"id":"a","text":"x"}\n', '{"id":"a","text":"\ud800"}\n'
    path.write_bytes((good + lone + good).encode("utf-16", "surrogatepass") + b"\x7b")
    frame, rejects, _ = read(plan(tmp_path, path))
    assert frame["line"].to_list() == [1, 3]
    assert rejects.select("line", "reason").rows() == [(2, "not_utf8"), (4, "not_utf8")]


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in members.items():
            out.writestr(name, content)
    return path


@pytest.mark.parametrize("shard_bytes", [64, 32 << 20])
def test_each_member_of_an_archive_is_an_input(tmp_path, shard_bytes):
    other = '{"id":"d","text":"other"}\n'
    members = {
        "logs/b.jsonl": LOG.encode(),
        "a.jsonl": other.encode("utf-16"),
        "notes.txt": b"no log",
        ".hidden.jsonl": b"{}",
        "__MACOSX/b.jsonl": b"\x00",
        "sheet.csv": written([("e", "cell")], ";").encode(),
    }
    path = archive(tmp_path / "a.zip", members)
    planned = plan(tmp_path, path, shard_bytes=shard_bytes)
    frame, rejects, _ = read(planned)
    assert rejects.is_empty()
    inside = [f"{path}/{each}" for each in ("a.jsonl", "logs/b.jsonl", "sheet.csv")]
    assert [file.name for file in planned.inputs] == inside
    rows = [("d", "other"), *ROWS, ("e", "cell")]
    assert frame.select("id", "text").rows() == rows
    assert frame["file"].unique(maintain_order=True).to_list() == inside
    assert rows_of(plan(tmp_path, Path(inside[1]))) == ROWS
    with pytest.raises(InputError, match=r"notes\.txt' is read in that archive"):
        plan(tmp_path, path / "notes.txt")


def test_archives_in_archives_are_refused(tmp_path):
    path = archive(tmp_path / "a.zip", {"b.jsonl": b"{}", "in.zip": b"PK\x03\x04"})
    with pytest.raises(InputError, match=r"holds 'in\.zip', which is packed once more"):
        resolve_inputs([path])


def test_an_encrypted_archive_is_refused(tmp_path):
    path = archive(tmp_path / "a.zip", {"b.jsonl": b"{}"})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"is encrypted \('b\.jsonl'\)"):
        resolve_inputs([path])


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd.jsonl",
        "../b.jsonl",
        "in/../../b.jsonl",
        "..\\b.jsonl",
        "C:b.jsonl",
        "//h/b.csv",
    ],
)
def test_a_member_whose_name_leaves_its_archive_is_refused(tmp_path, name):
    (tmp_path / "b.jsonl").write_text(LOG)
    path = archive(tmp_path / "a.zip", {"a.jsonl": b"{}\n", name: b"{}\n"})
    with pytest.raises(InputError, match="a name that leaves the archive"):
        resolve_inputs([path])


def test_no_local_file_is_read_for_a_member(tmp_path):
    """An absolute name joined to the archive's path was the local file of that name."""
    (tmp_path / "local.jsonl").write_text(LOG)
    path = archive(tmp_path / "a.zip", {str(tmp_path / "local.jsonl"): b"{}\n"})
    with pytest.raises(InputError, match="a name that leaves the archive"):
        plan(tmp_path, path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        for text in ("first", "second"):
            out.writestr("log.jsonl", json.dumps({"id": "a", "text": text}))
    with pytest.raises(InputError, match=r"holds 'log\.jsonl', twice"):
        resolve_inputs([tmp_path / "a.zip"])


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("a.jsonl.xz", "xz -dk"),
        ("a.jsonl.bz2", "bzip2 -dk"),
        *((f"a{suffix}", "tar -xf") for suffix in (".tar", ".tar.gz", ".tgz", ".tar.xz")),
    ],
)
def test_what_is_packed_in_another_way_is_refused_with_what_to_type(tmp_path, name, command):
    path = tmp_path / "logs" / name
    path.parent.mkdir()
    if command.startswith("tar"):
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w:" + name[6:]) as out:
            out.addfile(tarfile.TarInfo("a.jsonl"), io.BytesIO())
    else:
        path.write_bytes({".xz": lzma.compress, ".bz2": bz2.compress}[path.suffix](LOG.encode()))
    expected = command.replace("tar -xf", "xz -dk") if name.endswith("tar.xz") else command
    with pytest.raises(InputError, match=f"{expected} {re.escape(str(path))}"):
        resolve_inputs([path])
    with pytest.raises(InputError, match="which is not read"):
        resolve_inputs([path.parent])
    (path.parent / "log.jsonl").write_text(LOG)
    (aside,) = list_left_aside(
        [path.parent], SOURCE.formats, frozenset([f"{path.parent}/log.jsonl"])
    )
    assert aside == str(path)


def test_a_damaged_archive_is_named(tmp_path):
    path = archive(tmp_path / "a.zip", {"b.jsonl": LOG.encode() * 50, "c.jsonl": LOG.encode()})
    path.write_bytes(path.read_bytes()[:120])
    with pytest.raises(InputError, match=r"cannot be read|damaged"):
        plan(tmp_path, path)


def test_damage_within_a_zip_is_a_reject(tmp_path):
    path = archive(tmp_path / "a.zip", {"b.jsonl": LOG.encode()})
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)
    _, rejects, _ = read(plan(tmp_path, path))
    assert rejects["reason"][-1] == "damaged_compression"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF"),
        (b"SQLite format 3\x00" + bytes(40), "a SQLite database"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40), r"an old Office file \(\.xls, \.doc\)"),
        (b"\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00}\x94.", "a pickle"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "an image"),
        (b"<!DOCTYPE html><html>", "an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1", "a pointer of Git LFS"),
        (bytes(100), "a file of NUL bytes"),
        (bytes(range(32)) * 4, "binary data"),
    ],
)
def test_what_is_not_read_is_named(tmp_path, content, what):
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "log.csv").write_bytes(content)
    for path in (folder / "log.csv", folder):
        with pytest.raises(InputError, match=what) as raised:
            resolve_inputs([path], SOURCE.formats)
        assert "\x00" not in str(raised.value)
    (folder / "good.jsonl").write_text(LOG)
    assert [Path(file.path).name for file in resolve_inputs([folder])] == ["good.jsonl"]


def test_a_workbook_is_no_archive_of_logs(tmp_path):
    path = archive(tmp_path / "a.zip", {"xl/workbook.xml": b"", "[Content_Types].xml": b""})
    with pytest.raises(InputError, match=r"is an Excel workbook.*Save it as CSV"):
        resolve_inputs([path])


@pytest.mark.parametrize(
    ("content", "format"),
    [(LOG.encode(), "jsonl"), (b'[{"id":"a"}]', "json"), (b"id,text\na,b\n", "csv")],
)
def test_a_packed_file_without_a_suffix_is_told_by_its_content(tmp_path, content, format):
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(content))
    size = path.stat().st_size
    for named in (path, tmp_path):
        (file,) = resolve_inputs([named], ("csv", "json", "jsonl"))
        pattern = "" if named == path else str(tmp_path)
        assert file == InputFile(str(path), format, "gz", size, pattern)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["log.jsonl.zst", "log.json"])
def test_a_large_file_that_ends_early_fails(name: str, tmp_path: Path) -> None:
    rows = [
        {"conversation_id": f"c{place // 4}", "role": role, "content": f"{place * 7919} burgers"}
        for place, role in enumerate(("guest", "assistant") * 2000)
    ]
    text = "\n".join(map(json.dumps, rows)).encode()
    whole = zstandard.compress(text) if name.endswith("zst") else json.dumps(rows).encode()
    path = tmp_path / name
    path.write_bytes(whole)
    assert fastscore.score(path, "guest_simulation", embedder=None).tables["messages"].height
    path.write_bytes(whole[: 9 * len(whole) // 10])
    with pytest.raises(InputError, match=r"ends early or is damaged .* Its rest is missing"):
        fastscore.score(path, "guest_simulation", embedder=None)
    run = fastscore.score(path, "guest_simulation", embedder=None, max_rejects=1)
    assert 1000 < run.tables["messages"].height < 2000
    # a run that is stored fails as well, with its tables
    options = fastscore.GuestSimulation()
    with pytest.raises(InputError, match="Its rest is missing; the others are scored"):
        fastscore.score(path, options, output=tmp_path / "run", embedder=None)
    assert fastscore.open_run(tmp_path / "run").tables["messages"].height
