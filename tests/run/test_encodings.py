"""The probable encoding of text that is not UTF-8, and the command that converts it."""

import gzip

import pytest

from fastscore.logs.samples.refusals import likely_encoding, suggest_conversion


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
        f" Its encoding is probably WINDOWS-1252. Type iconv -f WINDOWS-1252 -t UTF-8 '{path}' > "
        f"'{tmp_path}/my log.utf8.csv'."
    )
    packed = tmp_path / "log.csv.gz"
    packed.write_bytes(gzip.compress(text.encode("cp1252")))
    assert suggest_conversion(str(packed), 120_001) == (
        " Its encoding is probably WINDOWS-1252. Unpack it and convert it to UTF-8."
    )
    assert suggest_conversion(str(tmp_path / "gone.csv"), 0) == ""
