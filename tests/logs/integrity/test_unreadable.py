"""Errors from reading a damaged file are caught and reported in a few words."""

from pathlib import Path

import polars as pl
import pytest

from fastscore.logs.integrity.rejects import UNREADABLE_PARQUET, reason_of


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (FileNotFoundError(2, "No such file", "a.parquet"), "No such file"),
        (pl.exceptions.ComputeError("not a Parquet file\n  in a plan\n"), "not a Parquet file"),
        (OSError("the disk is gone"), "the disk is gone"),
        (OSError(), "OSError"),
        (pl.exceptions.PanicException("slice"), "its footer does not fit its content"),
    ],
)
def test_a_reason_is_one_line(error: BaseException, told: str) -> None:
    assert reason_of(error) == told


def test_a_file_cut_anywhere_raises_what_is_caught(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.parquet", tmp_path / "cut.parquet"
    pl.DataFrame({"a": range(100)}).write_parquet(whole)
    data = whole.read_bytes()
    for length in range(0, len(data), len(data) // 7):
        path.write_bytes(data[:length])
        with pytest.raises(UNREADABLE_PARQUET) as caught:
            pl.read_parquet(path)
        assert reason_of(caught.value)
