"""Blocks of lines: their ends, and the file's content in them."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from fastscore.logs.read import lines as log_blocks
from fastscore.logs.read.lines import read_lines


def test_blocks_end_at_line_ends_and_hold_every_byte_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_blocks, "BLOCK_BYTES", 64)
    rng = random.Random(5)
    for _ in range(300):
        ends = rng.choices([b"\n", b"\r", b"\r\n", b"\n\n"], k=40)
        data = b"".join(b"x" * rng.choice([0, 1, 5, 9, 63, 64, 200]) + end for end in ends)
        data += rng.choice([b"", b"\r", b"rest"])
        path = tmp_path / "log.jsonl"
        path.write_bytes(data)
        observed: list[bytes] = []
        blocks = [
            (bytes(block), isinstance(block, memoryview))
            for block in log_blocks.read_blocks(
                str(path), "none", observe=lambda block, to=observed: to.append(bytes(block))
            )
        ]
        assert b"".join(block for block, _ in blocks) == b"".join(observed) == data
        assert all(block[-1:] in b"\n\r" for block, is_view in blocks[:-1] if is_view)
        lines = [
            replace(lines, data=bytes(lines.data))
            for lines in read_lines(log_blocks.read_blocks(str(path), "none"), "")
        ]
        assert b"".join(line.data for line in lines) == data
        begun = 0
        for line in lines:
            assert line.offset == begun
            assert line.line == 1 + len(data[:begun].splitlines())
            begun += len(line.data)
