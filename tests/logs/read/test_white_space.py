"""White space around a line is defined as in `str.strip`, as the public scripts strip lines."""

import json
from pathlib import Path

import pytest

from fastscore.logs.file_ranges import whole_file
from fastscore.logs.read.rows import read_shard
from fastscore.suites.declarations import Column, Source

SOURCE = Source(
    columns=(Column(name="a", kind="integer"),), dialogue_key=(), formats=("json", "jsonl")
)
AROUND = ("\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f", "\x85", "\xa0", "\u2003", "\u3000")


@pytest.mark.parametrize("space", AROUND)
def test_around_a_line(tmp_path: Path, space: str) -> None:
    log = tmp_path / "log.jsonl"
    lines = [f'{space}{{"a": 1}}', f'{{"a": 2}}{space}', '{"a": 3}']
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    rows = read_shard(whole_file(str(log), "jsonl"), SOURCE)
    assert rows.frame["a"].to_list() == [json.loads(line.strip())["a"] for line in lines]
    assert rows.counts["rejects"] == 0


@pytest.mark.parametrize("space", AROUND)
def test_within_a_value(tmp_path: Path, space: str) -> None:
    log = tmp_path / "log.jsonl"
    line = f'{{"a":{space}1}}'
    with pytest.raises(ValueError, match="Expecting value"):
        json.loads(line)
    log.write_text(line + "\n", encoding="utf-8")
    rows = read_shard(whole_file(str(log), "jsonl"), SOURCE)
    assert rows.rejects["reason"].to_list() == ["not_json"]
