"""Plans: whole dialogues, equal rows for any cut, and refusals."""

import gzip
import json

import polars as pl
import pytest

from fastscore.errors import InputError
from fastscore.logs.inputs.files import InputFile, resolve_inputs
from fastscore.logs.plan.shards import KEY_SCHEMA, check_split_dialogues, plan_shards
from fastscore.logs.read.rows import read_shard
from tests.logs.planned import SOURCE, dialogue, plan, read

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.mark.parametrize("n_shards", [2, 64])
def test_any_number_of_shards_gives_the_same_rows(tmp_path, one_log, n_shards):
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


def test_shards_hold_whole_dialogues_and_every_byte_once(tmp_path, one_log):
    cut = plan(tmp_path, str(one_log), shard_bytes=5000)
    assert len(cut.shards) > 20
    seen: set[tuple[str, str]] = set()
    at = 0
    for shard in cut.shards:
        (file_range,) = shard.file_ranges
        assert file_range.start == at
        assert shard.n_bytes == file_range.stop - file_range.start
        at = file_range.stop
        keys = set(read_shard(shard, SOURCE).frame.select("uid", "miner").unique().rows())
        assert not keys & seen
        seen |= keys
    assert at == one_log.stat().st_size
    assert len(seen) == cut.n_dialogues == 240
    data = one_log.read_bytes()
    for shard in cut.shards:
        file_range = shard.file_ranges[0]
        assert data[: file_range.start].count(b"\n") + 1 == file_range.first_line


def test_the_last_shards_are_smaller(tmp_path):
    for number in range(100):
        (tmp_path / f"{number:02d}.jsonl").write_bytes(b" " * 99 + b"\n")
    packed = plan(tmp_path, str(tmp_path), shard_bytes=2400)
    # half of the 2800 that are left, which is not much more than half a shard: parted no more
    assert [shard.n_bytes for shard in packed.shards] == [2400, 2400, 2400, 1400, 1400]


def test_keyless_rows_hold_their_file_together(tmp_path):
    lines = ['{"index":1}', *dialogue("a", 90), *dialogue("b", 90), '{"index":2}']
    lines += dialogue("c", 90)
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    cut = plan(tmp_path, str(tmp_path), shard_bytes=100)
    assert [shard.file_ranges[0].first_line for shard in cut.shards] == [1, 183]


def test_null_and_empty_key_parts_differ(tmp_path):
    lines = dialogue("a", 2, miner=None) + dialogue("a", 2, miner="") + dialogue("a", 2, miner=0)
    lines += ['{"uid":"a","miner":"0"}', '{"uid":"","miner":"a"}']
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    assert plan(tmp_path, str(tmp_path)).n_dialogues == 4


def test_a_dialogue_in_two_files_names_both_places(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(dialogue("x", 3) + dialogue("shared", 3)))
    (tmp_path / "b.jsonl").write_text("\n".join(["", *dialogue("y", 1), *dialogue("shared", 1)]))
    message = f"{tmp_path}/a.jsonl:4 and {tmp_path}/b.jsonl:3"
    with pytest.raises(InputError, match=message):
        plan(tmp_path, str(tmp_path))


def test_a_packed_copy_beside_its_file_is_named(tmp_path):
    log = "\n".join(dialogue("x", 3)).encode()
    (tmp_path / "a.jsonl").write_bytes(log)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(log))
    with pytest.raises(
        InputError, match=r"a\.jsonl\.gz seems to be .*a\.jsonl, compressed: remove"
    ):
        plan(tmp_path, str(tmp_path))


def test_fingerprints_follow_content_and_names(tmp_path, one_log):
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


def test_empty_files(tmp_path):
    for name in ("a.jsonl", "b.jsonl.gz", "c.jsonl.zst"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "d.jsonl.gz").write_bytes(gzip.compress(b""))
    frame, rejects, counts = read(plan(tmp_path, str(tmp_path)))
    assert (frame.height, rejects.height) == (0, 0)
    assert set(counts.values()) == {0}


def test_progress_ends_at_the_total(tmp_path, one_log):
    seen: list[tuple[int, int]] = []
    files = resolve_inputs([str(one_log)])
    plan_shards(
        files, SOURCE, scratch=tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (one_log.stat().st_size, one_log.stat().st_size)


FILES = [InputFile(f"{number}.jsonl", "jsonl", "none", 0) for number in range(3)]


def split(*keys: tuple[int, int, int, int, int]) -> str | None:
    """Check dialogues: high and low word of the key, file, first byte, line."""
    try:
        check_split_dialogues(pl.DataFrame(keys, KEY_SCHEMA, orient="row"), FILES)
    except InputError as error:
        return error.message
    return None


def test_keys_are_equal_in_both_words_or_not_at_all():
    assert split((5, 1, 0, 0, 1), (6, 2, 0, 9, 2), (5, 2, 1, 0, 1), (6, 1, 1, 9, 2)) is None


def test_words_that_are_exchanged_are_another_key():
    # the exclusive or of the words is the same
    assert split((5, 1, 0, 0, 1), (1, 5, 1, 0, 1)) is None
    assert split() is None
    high = 2**64 - 1
    assert split((high, 0, 0, 9, 2), (4, 0, 0, 0, 1), (high, 0, 1, 9, 3)) == (
        "One dialogue is in two files: 0.jsonl:2 and 1.jsonl:3."
    )
