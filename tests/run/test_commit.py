"""A table appears complete and unchanged, or not at all."""

import io
from typing import Any

import polars as pl
import pytest

from fastscore import files
from fastscore.errors import RunError
from fastscore.run.commit import commit_table

FRAME = pl.DataFrame({"value": [1, 2, 3]})


def test_what_the_disk_does_not_keep_is_no_table(tmp_path, monkeypatch):
    path = tmp_path / "part.parquet"
    commit_table(path, FRAME, {})
    before = path.read_bytes()

    class FlipsABit(io.BufferedRandom):
        def write(self, data: Any) -> int:
            flipped = bytearray(data)
            flipped[len(flipped) // 2] ^= 1
            return super().write(flipped)

    monkeypatch.setattr(files, "open_new", lambda path: FlipsABit(io.FileIO(path, "xb+")))
    with pytest.raises(RunError, match="what was read back is not what was written"):
        commit_table(path, FRAME.reverse(), {})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
