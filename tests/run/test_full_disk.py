"""A disk that fills while a run writes, and is read-only, on file systems of their own."""

import os
import shutil

import polars as pl
import pytest

from fastscore.errors import FastscoreError
from fastscore.run.commit import load_receipt
from tests.conftest import fastscore_command, often
from tests.run.logs import write_logs
from tests.run.mounts import make_read_only, small_disk
from tests.run.running import contents, run_lexical


def failure_of_a_run(logs, run):
    try:
        run_lexical(logs, run, shard_bytes=1)
    except FastscoreError as error:
        return str(error)
    return None


def leave_free(disk, pages):
    """Fill a disk but for some pages."""
    filler = disk / "filler"
    usage = os.statvfs(disk)
    filler.write_bytes(bytes((usage.f_bavail - pages) * usage.f_frsize))
    return filler


def test_a_disk_that_is_full_at_any_point_is_named_and_nothing_is_cut(tmp_path):
    logs = write_logs(tmp_path / "logs", files=2, dialogues=2)
    run_lexical(logs, tmp_path / "expected", shard_bytes=1)
    expected = contents(tmp_path / "expected")
    failed = 0
    with small_disk(tmp_path / "disk", "1m") as disk:
        for pages in range(0, 200, often(9, 1)):
            run = disk / "run"
            filler = leave_free(disk, pages)
            failure = failure_of_a_run(logs, run)
            filler.unlink()
            if failure is None:
                break
            failed += 1
            assert "disk is full" in failure
            assert all(load_receipt(path) for path in run.glob("receipts/score-*.json"))
            for part in run.rglob("part-*.parquet"):
                pl.read_parquet(part)
            run_lexical(logs, run, shard_bytes=1)
            assert contents(run) == expected
            shutil.rmtree(run)
    assert failed > often(2, 20)


def test_the_command_ends_with_4_on_a_full_disk_and_with_0_when_there_is_room(tmp_path):
    logs = write_logs(tmp_path / "logs", files=4, dialogues=20)
    with small_disk(tmp_path / "disk", "64m") as disk:
        words = ["score", "score_dialogue", *logs, "-o", disk / "run", "--lex-weight", "1"]
        filler = leave_free(disk, 4)
        done = fastscore_command(words)
        assert done.returncode == 4, done.stderr
        assert "disk is full" in done.stderr
        assert "Traceback" not in done.stderr
        filler.unlink()
        done = fastscore_command(words)
        assert done.returncode == 0, done.stderr
        run_lexical(logs, tmp_path / "expected")
        found, expected = contents(disk / "run"), contents(tmp_path / "expected")
        assert {name for name in found if name.endswith(".parquet")} == {
            name for name in expected if name.endswith(".parquet")
        }


def test_a_run_on_a_read_only_disk_is_read_and_not_touched(tmp_path):
    logs = write_logs(tmp_path / "logs", files=2, dialogues=2)
    with small_disk(tmp_path / "disk", "4m") as disk:
        run_lexical(logs, disk / "run", shard_bytes=1)
        before = contents(disk / "run")
        make_read_only(disk)
        summary = fastscore_command(["summary", disk / "run", "--json"])
        assert summary.returncode == 0, summary.stderr
        words = ["score", "score_dialogue", *logs, "-o", disk / "run", "--lex-weight", "1"]
        again = fastscore_command([*words, "--overwrite"])
        assert again.returncode != 0
        assert "no permission to write there" in again.stderr
        assert "Traceback" not in again.stderr
        assert contents(disk / "run") == before
        with pytest.raises(FastscoreError, match="no permission to write there"):
            run_lexical(logs, disk / "other")
