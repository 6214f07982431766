"""Planning as a map over files: any executor, any order, and the work of the planner."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.errors import InputError
from fastscore.logs.inputs.files import resolve_inputs
from fastscore.logs.plan import shards
from fastscore.logs.plan.shards import Plan, plan_shards
from tests.logs.planned import SOURCE, dialogue, log


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, size in enumerate((0, 30, 3, 0, 200, 1)):
        (folder / f"{number}.jsonl").write_bytes(log(size, seed=number))
    return folder


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(shards, "MOST_GROUP_FILES", 2)
    monkeypatch.setattr(shards, "SHARDS_PER_TASK", 2)


class Elsewhere:
    """Runs tasks like another process, the last first; records the data sent."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    def __call__(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterable[Any]:
        for item in reversed(items):
            result = pickle.dumps(
                pickle.loads(pickle.dumps(task))(pickle.loads(pickle.dumps(item)))
            )
            self.results.append(result)
            yield pickle.loads(result)


def planned(folder: Path, scratch: Path, **how: Any) -> Plan:
    return plan_shards(resolve_inputs([folder]), SOURCE, scratch=scratch, **how)


@pytest.mark.parametrize("shard_bytes", [500, 4000, 1 << 20])
def test_the_plan_is_the_same_whoever_does_the_tasks(logs, tmp_path, shard_bytes, small_groups):
    elsewhere = Elsewhere()
    here = planned(logs, tmp_path / "here", shard_bytes=shard_bytes)
    there = planned(
        logs, tmp_path / "there", shard_bytes=shard_bytes, threads=4, map_tasks=elsewhere
    )
    assert there == here
    # three groups of files, and shards
    assert len(elsewhere.results) >= 4
    assert not (tmp_path / "there").exists()


def test_what_the_planner_is_told_is_less_than_100_bytes_a_dialogue(tmp_path):
    told = []
    for dialogues in (20, 2000):
        folder = tmp_path / str(dialogues)
        folder.mkdir()
        for number in range(2):
            (folder / f"{number}.jsonl").write_bytes(log(dialogues, seed=number))
        elsewhere = Elsewhere()
        planned(folder, tmp_path / "scratch", map_tasks=elsewhere)
        told.append(sum(map(len, elsewhere.results)))
    # each fifth dialogue of the log has a second one between its lines
    assert told[1] - told[0] < 100 * 1980 * 2 * 6 / 5


def test_the_first_dialogue_in_two_files_is_named_whoever_finds_it(tmp_path, small_groups):
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(6):
        lines = [line for each in range(9) for line in dialogue(f"{number}-{each}", 2)]
        if number in (2, 4):
            lines += dialogue("1-5", 1)
        if number == 5:
            lines = dialogue("0-0", 1) + lines
        (folder / f"{number}.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError) as caught:
        planned(folder, tmp_path / "scratch", threads=4, map_tasks=Elsewhere())
    expected = f"{folder}/1.jsonl:11 and {folder}/2.jsonl:19."
    assert caught.value.message.endswith(expected)


def test_a_file_is_read_no_further_when_its_task_is_to_end(logs, tmp_path):
    read = []

    def stop() -> None:
        read.append(1)
        if len(read) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planned(logs, tmp_path / "scratch", check_cancelled=stop)
    assert len(read) == 3
    assert not (tmp_path / "scratch").exists()


@given(st.lists(st.lists(st.integers(1, 40), max_size=8), max_size=8), st.integers(1, 200))
def test_shards_are_ranges_of_whole_files_and_of_parts(tmp_path_factory, files, shard_bytes):
    """Dialogues of some lines: every line is in one range, which begins and ends between them."""
    folder = tmp_path_factory.mktemp("logs")
    begins: list[set[int]] = []
    for number, lengths in enumerate(files):
        texts = [
            "".join(f'{{"uid": "{number}-{at}", "miner": "m"}}\n' for _ in range(length))
            for at, length in enumerate(lengths)
        ]
        sizes = [len(text) for text in texts]
        begins.append({sum(sizes[:at]) for at in range(len(sizes) + 1)})
        (folder / f"{number}.jsonl").write_text("".join(texts))
    paths = [folder / f"{number}.jsonl" for number in range(len(files))]
    if not paths:
        return
    plan = plan_shards(resolve_inputs(paths), SOURCE, scratch=folder, shard_bytes=shard_bytes)
    assert [shard.index for shard in plan.shards] == list(range(len(plan.shards)))
    ranges = [part for shard in plan.shards for part in shard.file_ranges]
    for number, path in enumerate(paths):
        own = [part for part in ranges if part.path == str(path)]
        edges = [own[0].start, *(part.stop for part in own)]
        assert (edges[0], edges[-1]) == (0, path.stat().st_size)
        assert [part.start for part in own] == edges[:-1]
        assert set(edges) <= begins[number]
        before = [path.read_bytes()[: part.start].count(b"\n") for part in own]
        assert [part.first_line for part in own] == [count + 1 for count in before]
    for shard in plan.shards:
        assert shard.n_bytes == sum(part.stop - part.start for part in shard.file_ranges)
        assert len({part.path for part in shard.file_ranges}) == len(shard.file_ranges)
