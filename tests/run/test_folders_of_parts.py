"""Tables of very many shards have folders of a thousand parts."""

import pytest

from fastscore import open_run
from fastscore.run import commit
from fastscore.run.commit import part_name
from tests.run.logs import write_logs
from tests.run.running import run_lexical

FEW = 5
TABLES = ("steps", "utterances", "dialogues", "rejects")


@pytest.fixture
def logs(tmp_path):
    return write_logs(tmp_path / "logs")


def parts(run, table):
    return sorted(path.relative_to(run / table).as_posix() for path in (run / table).rglob("*.p*"))


def rows(run, *, verify=True):
    opened = open_run(run, verify=verify)
    return {**{name: opened.tables[name] for name in opened.tables}, "rejects": opened.rejects}


def test_the_first_thousand_parts_are_in_the_folder_of_the_table():
    assert part_name(0) == "part-00000.parquet"
    assert part_name(999) == "part-00999.parquet"
    assert part_name(1000) == "00001/part-01000.parquet"
    assert part_name(123_456) == "00123/part-123456.parquet"


def test_parts_in_folders_have_the_rows_of_parts_in_one(logs, tmp_path, monkeypatch):
    flat, run = tmp_path / "flat", tmp_path / "run"
    assert run_lexical(logs, flat, shard_bytes=1).manifest.shards == 12
    expected = rows(flat)
    monkeypatch.setattr(commit, "PARTS_PER_FOLDER", FEW)
    run_lexical(logs, run, shard_bytes=1)
    names = [f"part-{index:05d}.parquet" for index in range(12)]
    for table in TABLES:
        assert parts(flat, table) == names
        assert parts(run, table) == sorted(
            [*names[:5], *(f"00001/{name}" for name in names[5:10])]
            + [f"00002/{name}" for name in names[10:]]
        )
    for verify in (True, False):
        found = rows(run, verify=verify)
        assert all(found[name].equals(each, null_equal=True) for name, each in expected.items())
    for name in ("summary.parquet", "dialogues/part-00004.parquet"):
        assert (run / name).read_bytes() == (flat / name).read_bytes()
    assert open_run(run).damaged() == []


def test_parts_of_an_earlier_plan_are_removed_from_all_folders(logs, tmp_path, monkeypatch):
    monkeypatch.setattr(commit, "PARTS_PER_FOLDER", FEW)
    run_lexical(logs, tmp_path / "run", shard_bytes=1)
    run_lexical(logs, tmp_path / "run", shard_bytes=1 << 20)
    assert [parts(tmp_path / "run", table) for table in TABLES] == [["part-00000.parquet"]] * 4
