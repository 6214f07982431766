"""Tables of very many shards have folders of a thousand parts; runs without them are continued."""

from pathlib import Path

import polars as pl
import pytest

from fastscore import open_run
from fastscore.run import commit
from fastscore.run.commit import part_name
from tests.run.logs import write_logs
from tests.run.running import contents, run_lexical

FLAT, FEW = 1_000_000, 5
TABLES = ("steps", "utterances", "dialogues", "rejects")


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs")


@pytest.fixture
def flat(logs, tmp_path, monkeypatch):
    """A run of twelve shards with all parts of a table in one folder, as earlier releases wrote."""
    monkeypatch.setattr(commit, "PARTS_PER_FOLDER", FLAT)
    assert run_lexical(logs, tmp_path / "flat", shard_bytes=1).manifest.shards == 12
    monkeypatch.setattr(commit, "PARTS_PER_FOLDER", FEW)
    return tmp_path / "flat"


def parts(run: Path, table: str) -> list[str]:
    return sorted(path.relative_to(run / table).as_posix() for path in (run / table).rglob("*.p*"))


def rows(run: Path, *, verify: bool = True) -> dict[str, pl.DataFrame]:
    opened = open_run(run, verify=verify)
    return {**{name: opened.tables[name] for name in opened.tables}, "rejects": opened.rejects}


def same_rows(run: Path, other: Path, *, verify: bool = True) -> bool:
    found, expected = rows(run, verify=verify), rows(other)
    return all(found[name].equals(frame, null_equal=True) for name, frame in expected.items())


def test_the_first_thousand_parts_are_in_the_folder_of_the_table():
    assert part_name(0) == "part-00000.parquet"
    assert part_name(999) == "part-00999.parquet"
    assert part_name(1000) == "00001/part-01000.parquet"
    assert part_name(123_456) == "00123/part-123456.parquet"


def test_parts_in_folders_have_the_rows_of_parts_in_one(logs, flat, tmp_path):
    run = tmp_path / "run"
    run_lexical(logs, run, shard_bytes=1)
    names = [f"part-{index:05d}.parquet" for index in range(12)]
    for table in TABLES:
        assert parts(flat, table) == names
        assert parts(run, table) == sorted(
            [*names[:5], *(f"00001/{name}" for name in names[5:10])]
            + [f"00002/{name}" for name in names[10:]]
        )
    assert same_rows(run, flat)
    assert same_rows(run, flat, verify=False)
    for name in ("summary.parquet", "dialogues/part-00004.parquet"):
        assert (run / name).read_bytes() == (flat / name).read_bytes()
    assert open_run(run).damaged() == []


def test_a_run_with_all_parts_in_one_folder_is_read_and_continued(logs, flat, tmp_path):
    before = contents(flat)
    run_lexical(logs, flat, shard_bytes=1)
    assert contents(flat) == before
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    assert same_rows(flat, tmp_path / "run")
    assert same_rows(flat, tmp_path / "run", verify=False)


def test_a_damaged_part_of_such_a_run_is_made_again_in_its_folder(logs, flat, tmp_path):
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    (flat / "steps" / "part-00007.parquet").write_bytes(b"PAR1")
    run_lexical(logs, flat, shard_bytes=1)
    for table in TABLES:
        again = [name for name in parts(flat, table) if "7" in name]
        assert again == ["00001/part-00007.parquet"]
    assert same_rows(flat, tmp_path / "run")
    assert open_run(flat).damaged() == []


def test_parts_of_an_earlier_plan_are_removed_from_all_folders(logs, tmp_path, monkeypatch):
    monkeypatch.setattr(commit, "PARTS_PER_FOLDER", FEW)
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    run_lexical(logs, tmp_path / "run", shard_bytes=1 << 20)
    assert [parts(tmp_path / "run", table) for table in TABLES] == [["part-00000.parquet"]] * 4
