"""Plans of compressed logs: equal rows to those of plain logs, and the rows of a damaged one."""

import gzip
import random
import zlib

import pytest
import zstandard

from fastscore.logs.read import lines as log_blocks
from fastscore.logs.read.lines import read_lines
from tests.logs.planned import log, plan, read

pytestmark = pytest.mark.usefixtures("small_blocks")


def compress(data: bytes, suffix: str) -> bytes:
    return gzip.compress(data) if suffix == "gz" else zstandard.compress(data)


@pytest.mark.parametrize(
    ("suffix", "shard_bytes"), [("gz", 20_000), ("zst", 20_000), ("zst", 32 << 20)]
)
def test_compressed_equals_plain(tmp_path, one_log, suffix, shard_bytes):
    frame, rejects, counts = read(plan(tmp_path, str(one_log)))
    data = one_log.read_bytes()
    half = data.index(b"\n", len(data) // 2) - 5
    packed = tmp_path / f"packed.jsonl.{suffix}"
    # two members or frames, the cut within a line
    packed.write_bytes(compress(data[:half], suffix) + compress(data[half:], suffix))
    cut = plan(tmp_path, str(packed), shard_bytes=shard_bytes)
    assert (len(cut.shards) > 1) == (shard_bytes < len(data))
    assert {file_range.file for shard in cut.shards for file_range in shard.file_ranges} == {
        str(packed)
    }
    frame_again, rejects_again, counts_again = read(cut)
    assert frame.drop("file").equals(frame_again.drop("file"))
    assert rejects.drop("file").equals(rejects_again.drop("file"))
    assert set(frame_again["file"]) == {str(packed)}
    assert counts == counts_again


@pytest.mark.parametrize("scale", [1.1, 1.5])
def test_a_compressed_file_within_a_shard_is_not_cut(tmp_path, scale):
    """Files of near sizes: what is left of a shard would hold some dialogues of the next file."""
    contents = [log(12, seed=seed) for seed in range(5)]
    names = ["a.jsonl", "b.jsonl.gz", "c.jsonl.zst", "d.jsonl", "e.jsonl.gz"]
    for folder in ("plain", "mixed"):
        (tmp_path / folder).mkdir()
    for name, data in zip(names, contents, strict=True):
        suffix = name.rpartition(".")[2]
        packed = data if suffix == "jsonl" else compress(data, suffix)
        (tmp_path / "mixed" / name).write_bytes(packed)
        (tmp_path / "plain" / f"{name[0]}.jsonl").write_bytes(data)
    expected = read(plan(tmp_path, str(tmp_path / "plain")))
    planned = plan(tmp_path, str(tmp_path / "mixed"), shard_bytes=round(len(contents[0]) * scale))
    assert len(planned.shards) > 2
    found = read(planned)
    assert found[0].drop("file").equals(expected[0].drop("file"))
    assert found[1].drop("file").equals(expected[1].drop("file"))
    assert found[2] == expected[2]
    ranges = [part for shard in planned.shards for part in shard.file_ranges]
    packed_ones = [part.file for part in ranges if part.compression != "none"]
    assert len(packed_ones) == len(set(packed_ones)) == 3


@pytest.mark.parametrize("shard_bytes", [1_000, 32 << 20])
def test_what_a_truncated_archive_lacks_begins_after_its_last_line(tmp_path, shard_bytes):
    data = log(12)
    packer = zlib.compressobj(wbits=31)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH))
    _, rejects, _ = read(plan(tmp_path, str(path), shard_bytes=shard_bytes))
    last = rejects.row(-1, named=True)
    assert (last["reason"], last["byte_offset"]) == ("truncated_compression", len(data))
    assert last["line"] == data.count(b"\n") + 1


@pytest.mark.parametrize(("suffix", "shard_bytes"), [("gz", 5_000), ("zst", 32 << 20)])
def test_a_truncated_archive_gives_what_it_holds(tmp_path, one_log, suffix, shard_bytes):
    rng = random.Random(3)
    expected, _, _ = read(plan(tmp_path, str(one_log)))
    packed = compress(one_log.read_bytes(), suffix)
    path = tmp_path / f"cut.jsonl.{suffix}"
    for _ in range(8):
        path.write_bytes(packed[: rng.randrange(1, len(packed))])
        frame, rejects, counts = read(plan(tmp_path, str(path), shard_bytes=shard_bytes))
        assert frame.drop("file").equals(expected.drop("file").head(frame.height))
        assert rejects["reason"].to_list().count("truncated_compression") == 1
        assert rejects["reason"][-1] == "truncated_compression"
        assert counts["lines"] == counts["blank"] + counts["rows"] + counts["rejects"]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_damaged_archives_never_raise(tmp_path, one_log, suffix):
    rng = random.Random(5)
    packed = compress(one_log.read_bytes(), suffix)
    path = tmp_path / f"bad.jsonl.{suffix}"
    for _ in range(8):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(damaged))] ^= 0xFF
        path.write_bytes(damaged)
        _, _, counts = read(plan(tmp_path, str(path)))
        assert counts["lines"] == counts["blank"] + counts["rows"] + counts["rejects"]
    path.write_bytes(bytes(range(64)))
    frame, rejects, _ = read(plan(tmp_path, str(path)))
    assert frame.height == 0
    assert rejects["reason"].to_list() == ["damaged_compression"]


def test_zero_padding_behind_gzip_is_no_damage(tmp_path):
    path = tmp_path / "padded.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"index":1}\n') + b"\0" * 70_000)
    frame, rejects, _ = read(plan(tmp_path, str(path)))
    assert (frame.height, rejects.height) == (1, 0)


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_bomb_is_unpacked_in_bounded_steps(tmp_path, monkeypatch, suffix):
    monkeypatch.undo()
    path = tmp_path / f"bomb.jsonl.{suffix}"
    path.write_bytes(compress(bytes(100 << 20), suffix))
    packing = "gz" if suffix == "gz" else "zst"
    largest = max(map(len, log_blocks.read_blocks(str(path), packing, limits=None)))
    assert largest <= 80 << 20
    lines = list(read_lines(log_blocks.read_blocks(str(path), packing, limits=None), ""))
    assert [line.refused and line.refused.found for line in lines] == [f"{100 << 20} bytes"]
    assert sum(len(line.data) for line in lines) < 1 << 20
