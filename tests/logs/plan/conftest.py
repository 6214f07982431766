"""A log that is cut in many ways, and blocks that are small enough for it."""

import pytest

from fastscore.logs.read import lines as log_blocks
from fastscore.logs.read import rows as log_rows
from tests.logs.planned import log


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(log_blocks, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(log_rows, "BLOCK_BYTES", 4096)


@pytest.fixture
def one_log(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(200))
    return path
