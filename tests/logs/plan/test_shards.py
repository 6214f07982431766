"""Plans: whole dialogues, the same rows for any cut, and what is refused."""

import gzip
import itertools
import json
import pickle
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import xxhash
import zstandard

from fastscore.errors import InputError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan.byte_ranges import Damage
from fastscore.logs.plan.shards import Plan, plan_shards
from fastscore.logs.read import batches, unpacking
from fastscore.logs.read import blocks as log_blocks
from fastscore.logs.read.lines import read_lines
from fastscore.logs.read.rows import Rows, read_shard
from fastscore.suites.declarations import Column, Source

SOURCE = Source(
    columns=(
        Column(name="index", kind="integer"),
        Column(name="text", kind="text"),
        Column(name="uid", kind="text", accepts=("integer",)),
        Column(name="miner", kind="text", accepts=("integer",)),
    ),
    dialogue_key=("uid", "miner"),
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_blocks, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(batches, "BLOCK_BYTES", 4096)


def dialogue(uid: Any, rows: int, miner: Any = 1) -> list[str]:
    lines = []
    for index in range(rows):
        row = {"index": index, "text": f"text {index} of {uid}", "uid": uid, "miner": miner}
        lines.append(json.dumps({name: value for name, value in row.items() if value is not None}))
    return lines


def log(n_dialogues: int, seed: int = 0) -> bytes:
    """Dialogues of 1 to 30 rows, some pairs interleaved, with faulty and blank lines between."""
    rng = random.Random(seed)
    lines: list[str] = []
    for number in range(n_dialogues):
        rows = dialogue(f"s{seed}-{number}", rng.randint(1, 30), miner=number % 3)
        if number % 5 == 4:
            other = dialogue(f"s{seed}-{number}b", len(rows))
            rows = [line for pair in zip(rows, other, strict=True) for line in pair]
        lines += rows
        lines += ["", "{broken"][: rng.randint(0, 2)]
    return "\n".join(lines).encode() + b"\n"


def plan(tmp_path: Path, *patterns: str, shard_bytes: int = 32 << 20, threads: int = 1) -> Plan:
    files = resolve_inputs(patterns)
    scratch = tmp_path / "scratch"
    return plan_shards(files, SOURCE, shard_bytes=shard_bytes, scratch=scratch, threads=threads)


def read(planned: Plan, threads: int = 1) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, int]]:
    rows: list[Rows] = [read_shard(shard, SOURCE, threads=threads) for shard in planned.shards]
    counts = {name: sum(part.counts[name] for part in rows) for name in rows[0].counts}
    return (
        pl.concat([part.frame for part in rows]),
        pl.concat([part.rejects for part in rows]),
        counts,
    )


@pytest.fixture
def one_log(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(log(200))
    return path


@pytest.mark.parametrize("n_shards", [2, 7, 64])
def test_any_number_of_shards_gives_the_same_rows(
    tmp_path: Path, one_log: Path, n_shards: int
) -> None:
    whole = plan(tmp_path, str(one_log))
    assert len(whole.shards) == 1
    cut = plan(tmp_path, str(one_log), shard_bytes=one_log.stat().st_size // n_shards)
    assert len(cut.shards) >= n_shards
    frame, rejects, counts = read(whole)
    frame_again, rejects_again, counts_again = read(cut, threads=2)
    assert frame.equals(frame_again)
    assert rejects.equals(rejects_again)
    assert counts == counts_again
    assert counts["lines"] == one_log.read_bytes().count(b"\n")
    lines = json.loads(f"[{one_log.read_bytes().splitlines()[0].decode()}]")
    assert frame["text"][0] == lines[0]["text"]


def test_shards_hold_whole_dialogues_and_every_byte_once(tmp_path: Path, one_log: Path) -> None:
    cut = plan(tmp_path, str(one_log), shard_bytes=5000)
    assert len(cut.shards) > 20
    seen: set[tuple[str, str]] = set()
    at = 0
    for shard in cut.shards:
        (byte_range,) = shard.byte_ranges
        assert byte_range.start == at
        assert shard.n_bytes == byte_range.stop - byte_range.start
        at = byte_range.stop
        keys = set(read_shard(shard, SOURCE).frame.select("uid", "miner").unique().rows())
        assert not keys & seen
        seen |= keys
    assert at == one_log.stat().st_size
    assert len(seen) == cut.n_dialogues == 240
    data = one_log.read_bytes()
    for shard in cut.shards:
        byte_range = shard.byte_ranges[0]
        assert data[: byte_range.start].count(b"\n") + 1 == byte_range.first_line


@pytest.mark.parametrize("threads", [2, 4])
def test_the_plan_does_not_depend_on_threads(tmp_path: Path, threads: int) -> None:
    for number in range(20):
        (tmp_path / f"{number:02d}.jsonl").write_bytes(log(number, seed=number))
    pattern = str(tmp_path / "*.jsonl")
    expected = plan(tmp_path, pattern, shard_bytes=20_000)
    assert plan(tmp_path, pattern, shard_bytes=20_000, threads=threads) == expected


def test_the_last_shards_are_smaller(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / f"{number:02d}.jsonl").write_bytes(b" " * 99 + b"\n")
    packed = plan(tmp_path, str(tmp_path), shard_bytes=2400)
    # half of the 2800 that are left, which is not much more than half a shard: parted no more
    assert [shard.n_bytes for shard in packed.shards] == [2400, 2400, 2400, 1400, 1400]


def test_small_files_are_packed(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"{number}.jsonl").write_bytes(log(3, seed=number))
    packed = plan(tmp_path, str(tmp_path))
    assert len(packed.shards) == 1
    assert [Path(byte_range.file).stem for byte_range in packed.shards[0].byte_ranges] == list(
        "0123456789"
    )


def test_a_file_without_keys_is_one_dialogue(tmp_path: Path) -> None:
    for name in ("a", "b"):
        lines = dialogue(None, 400)
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
    cut = plan(tmp_path, str(tmp_path), shard_bytes=1000)
    assert [len(shard.byte_ranges) for shard in cut.shards] == [1, 1]
    assert cut.n_dialogues == 2


def test_keyless_rows_hold_their_file_together(tmp_path: Path) -> None:
    lines = ['{"index":1}', *dialogue("a", 90), *dialogue("b", 90), '{"index":2}']
    lines += dialogue("c", 90)
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    cut = plan(tmp_path, str(tmp_path), shard_bytes=100)
    assert [shard.byte_ranges[0].first_line for shard in cut.shards] == [1, 183]


def test_null_and_empty_key_parts_differ(tmp_path: Path) -> None:
    lines = dialogue("a", 2, miner=None) + dialogue("a", 2, miner="") + dialogue("a", 2, miner=0)
    lines += ['{"uid":"a","miner":"0"}', '{"uid":"","miner":"a"}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    assert plan(tmp_path, str(tmp_path)).n_dialogues == 4


def test_a_dialogue_in_two_files_names_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(dialogue("x", 3) + dialogue("shared", 3)))
    (tmp_path / "b.jsonl").write_text("\n".join(["", *dialogue("y", 1), *dialogue("shared", 1)]))
    message = f"{tmp_path}/a.jsonl:4 and {tmp_path}/b.jsonl:3"
    with pytest.raises(InputError, match=message):
        plan(tmp_path, str(tmp_path))


def test_fingerprints_follow_content_and_names(tmp_path: Path, one_log: Path) -> None:
    def prints() -> list[str]:
        cut = plan(tmp_path, str(one_log), shard_bytes=20_000)
        return [shard.fingerprint for shard in cut.shards]

    first = prints()
    assert len(set(first)) == len(first) > 3
    one_log.touch()
    assert prints() == first
    data = bytearray(one_log.read_bytes())
    place = data.index(b"text", len(data) // 2)
    data[place : place + 4] = b"Text".swapcase()[:4].lower().replace(b"t", b"T", 1)
    one_log.write_bytes(data)
    second = prints()
    assert sum(a != b for a, b in zip(first, second, strict=True)) == 1
    renamed = one_log.rename(tmp_path / "renamed.jsonl")
    cut = plan(tmp_path, str(renamed), shard_bytes=20_000)
    assert not set(second) & {shard.fingerprint for shard in cut.shards}


def test_inputs_carry_their_content_hash(tmp_path: Path, one_log: Path) -> None:
    (content,) = plan(tmp_path, str(one_log)).inputs
    data = one_log.read_bytes()
    assert content.name == str(one_log)
    assert content.n_bytes == len(data)
    assert content.content_hash == xxhash.xxh3_128_hexdigest(data)


def test_shards_travel(tmp_path: Path, one_log: Path) -> None:
    for shard in plan(tmp_path, str(one_log), shard_bytes=20_000).shards:
        assert pickle.loads(pickle.dumps(shard)) == shard


def test_empty_files(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(b""))
    frame, rejects, counts = read(plan(tmp_path, str(tmp_path)))
    assert (frame.height, rejects.height) == (0, 0)
    assert set(counts.values()) == {0}


def compress(data: bytes, suffix: str) -> bytes:
    return gzip.compress(data) if suffix == "gz" else zstandard.compress(data)


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("shard_bytes", [20_000, 32 << 20])
def test_compressed_equals_plain(
    tmp_path: Path, one_log: Path, suffix: str, shard_bytes: int
) -> None:
    frame, rejects, counts = read(plan(tmp_path, str(one_log)))
    data = one_log.read_bytes()
    half = data.index(b"\n", len(data) // 2) - 5
    packed = tmp_path / f"packed.jsonl.{suffix}"
    # two members or frames, the cut within a line
    packed.write_bytes(compress(data[:half], suffix) + compress(data[half:], suffix))
    cut = plan(tmp_path, str(packed), shard_bytes=shard_bytes)
    assert (len(cut.shards) > 1) == (shard_bytes < len(data))
    assert {byte_range.file for shard in cut.shards for byte_range in shard.byte_ranges} == {
        str(packed)
    }
    frame_again, rejects_again, counts_again = read(cut)
    assert frame.drop("file").equals(frame_again.drop("file"))
    assert rejects.drop("file").equals(rejects_again.drop("file"))
    assert set(frame_again["file"]) == {str(packed)}
    assert counts == counts_again


@pytest.mark.parametrize("scale", [1.1, 1.25, 1.5])
def test_a_compressed_file_within_a_shard_is_not_cut(tmp_path: Path, scale: float) -> None:
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
    byte_ranges = [byte_range for shard in planned.shards for byte_range in shard.byte_ranges]
    for name, data in zip(names, contents, strict=True):
        own = [
            byte_range
            for byte_range in byte_ranges
            if byte_range.file == str(tmp_path / "mixed" / name)
        ]
        assert own[0].start == 0
        assert own[-1].stop == len(data)
        for before, after in itertools.pairwise(own):
            assert before.stop == after.start
        for byte_range in own:
            assert data[: byte_range.start].count(b"\n") + 1 == byte_range.first_line
        if any(byte_range.compression != "none" for byte_range in own):
            assert len(own) == 1
    for shard in planned.shards:
        assert shard.n_bytes == sum(
            byte_range.stop - byte_range.start for byte_range in shard.byte_ranges
        )
        keys = set(read_shard(shard, SOURCE).frame.select("uid", "miner").unique().rows())
        others = [other for other in planned.shards if other is not shard]
        for other in others:
            assert not keys & set(read_shard(other, SOURCE).frame.select("uid", "miner").rows())


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("shard_bytes", [5_000, 32 << 20])
def test_a_truncated_archive_gives_what_it_holds(
    tmp_path: Path, one_log: Path, suffix: str, shard_bytes: int
) -> None:
    rng = random.Random(3)
    expected, _, _ = read(plan(tmp_path, str(one_log)))
    packed = compress(one_log.read_bytes(), suffix)
    path = tmp_path / f"cut.jsonl.{suffix}"
    for _ in range(12):
        path.write_bytes(packed[: rng.randrange(1, len(packed))])
        frame, rejects, counts = read(plan(tmp_path, str(path), shard_bytes=shard_bytes))
        assert frame.drop("file").equals(expected.drop("file").head(frame.height))
        assert rejects["reason"].to_list().count("truncated_compression") == 1
        assert rejects["reason"][-1] == "truncated_compression"
        assert counts["lines"] == counts["blank"] + counts["rows"] + counts["rejects"]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_damaged_archives_never_raise(tmp_path: Path, one_log: Path, suffix: str) -> None:
    rng = random.Random(5)
    packed = compress(one_log.read_bytes(), suffix)
    path = tmp_path / f"bad.jsonl.{suffix}"
    for _ in range(12):
        damaged = bytearray(packed)
        damaged[rng.randrange(len(damaged))] ^= 0xFF
        path.write_bytes(damaged)
        _, _, counts = read(plan(tmp_path, str(path)))
        assert counts["lines"] == counts["blank"] + counts["rows"] + counts["rejects"]
    path.write_bytes(b"no archive at all")
    frame, rejects, _ = read(plan(tmp_path, str(path)))
    assert frame.height == 0
    assert rejects["reason"].to_list() == ["damaged_compression"]


@pytest.mark.parametrize("suffix", ["gz", "zst"])
@pytest.mark.parametrize("shard_bytes", [2_000, 32 << 20])
def test_the_reason_does_not_hang_on_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, shard_bytes: int
) -> None:
    cut, fault = Damage("truncated_compression", "cut"), Damage("damaged_compression", "early")
    monkeypatch.setattr(unpacking, "_truncated", lambda _: cut)
    monkeypatch.setattr(unpacking, "_damaged", lambda *_: fault)
    path = tmp_path / f"early.jsonl.{suffix}"
    packed = compress(log(20), suffix)
    for damage, content in [(cut, packed[:-9]), (fault, packed + b"nothing packed")]:
        path.write_bytes(content)
        planned = plan(tmp_path, str(path), shard_bytes=shard_bytes)
        _, rejects, _ = read(planned)
        told = rejects.select("reason", "found").rows()[-1]
        assert told == (damage.reason, damage.found)
        for shard in planned.shards:
            assert pickle.loads(pickle.dumps(shard)) == shard


def test_zero_padding_behind_gzip_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "padded.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"index":1}\n') + b"\0" * 70_000)
    frame, rejects, _ = read(plan(tmp_path, str(path)))
    assert (frame.height, rejects.height) == (1, 0)


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_bomb_is_unpacked_in_bounded_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.undo()
    path = tmp_path / f"bomb.jsonl.{suffix}"
    path.write_bytes(compress(bytes(100 << 20), suffix))
    largest = max(
        map(len, log_blocks.read_blocks(str(path), "gz" if suffix == "gz" else "zst", limits=None))
    )
    assert largest <= 80 << 20
    lines = list(
        read_lines(
            log_blocks.read_blocks(str(path), "gz" if suffix == "gz" else "zst", limits=None)
        )
    )
    assert [line.long_line for line in lines] == [100 << 20]
    assert sum(len(line.data) for line in lines) < 1 << 20


def test_progress_ends_at_the_total(tmp_path: Path, one_log: Path) -> None:
    seen: list[tuple[int, int]] = []
    files = resolve_inputs([str(one_log)])
    plan_shards(
        files, SOURCE, scratch=tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (one_log.stat().st_size, one_log.stat().st_size)


def test_blocks_end_at_line_ends_and_hold_every_byte_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_blocks, "_PASSING_BYTES", 64)
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
            for block in log_blocks.passing_lines(
                str(path), lambda block, to=observed: to.append(bytes(block))
            )
        ]
        assert b"".join(block for block, _ in blocks) == b"".join(observed) == data
        assert all(block[-1:] in b"\n\r" for block, is_view in blocks if is_view)
        lines = [
            replace(lines, data=bytes(lines.data))
            for lines in read_lines(log_blocks.passing_lines(str(path), lambda _: None))
        ]
        assert b"".join(line.data for line in lines) == data
        begun = 0
        for line in lines:
            assert line.offset == begun
            assert line.line == 1 + len(data[:begun].splitlines())
            begun += len(line.data)
