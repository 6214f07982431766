"""Messages about files that are not logs of a suite, and the encoding of those not in UTF-8."""

import gzip
from pathlib import Path

import pytest

from fastscore.logs.inputs.files import Format, InputFile
from fastscore.logs.samples.file_samples import FileSample
from fastscore.logs.samples.refusals import (
    describe_no_row,
    foreign_error,
    likely_encoding,
    suggest_conversion,
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


def written(folder: Path, content: bytes, format: Format = "jsonl") -> FileSample:
    path = folder / f"log.{format}"
    path.write_bytes(content)
    return FileSample(InputFile(str(path), format, "none", len(content)), lambda: iter([]))


@pytest.mark.parametrize(
    ("format", "content", "what", "hint"),
    [
        ("jsonl", b"[\n{}]\n", "no line is a JSON object; it begins with '['", "jq -c '.[]'"),
        ("jsonl", b"{\n}\n", "no line is a JSON object; it begins with '{'", "Type jq -c . "),
        *(
            ("jsonl", line.encode(), f"no line is a JSON object; it begins with {line!r}", hint)
            for line, hint in (
                ('[{"role": "user"}]', "Type jq -c '{messages: .}' "),
                ('[{"id": 1, "messages": [{"role": 1}]}]', "of dialogues. Type jq -c '.[]' "),
                ('[{"dialogue": "a", "text": "b"}]', "of rows. Type jq -c '.[]' "),
            )
        ),
        ("jsonl", b"not json\n[1]\n", "no line is a JSON object; it begins with 'not json'", "one"),
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


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        ("id,text\na,Größe: schön, für Müller\n", "cp1252", "WINDOWS-1252"),
        ("un niño pequeño — “sí”\n", "cp1252", "WINDOWS-1252"),
        ("Привет, как дела? Посоветуй фильм на вечер\n", "cp1251", "WINDOWS-1251"),
        ("Zażółć gęślą jaźń, proszę polecić film\n", "cp1250", "WINDOWS-1250"),
        ("你好，请推荐一部电影，谢谢你的帮助\n", "gb18030", "GB18030"),
        ("こんにちは、映画を勧めてください\n", "shift_jis", "SHIFT_JIS"),
        ("안녕하세요 영화를 추천해 주세요\n", "euc_kr", "EUC-KR"),
    ],
)
def test_the_encoding_is_named(text, encoding, name):
    assert likely_encoding(text.encode(encoding)) == name


def test_the_command_converts_the_file(tmp_path):
    text = "plain\n" * 20_000 + "Größe: schön, für Müller\n"
    path = tmp_path / "my log.csv"
    path.write_bytes(text.encode("cp1252"))
    said = suggest_conversion(str(path), 120_001)
    assert said == (
        f" The encoding of {path} is probably WINDOWS-1252. Type iconv -f WINDOWS-1252 -t UTF-8 "
        f"'{path}' > '{tmp_path}/my log.utf8.csv'."
    )
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(text.encode("cp1252")))
    assert suggest_conversion(str(packed), 120_001) == (
        f" The encoding of {packed} is probably WINDOWS-1252. Unpack it and convert it to UTF-8."
    )
    assert suggest_conversion(str(tmp_path / "gone.csv"), 0) == ""
