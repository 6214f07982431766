"""Planning as a map over files: by whomever, in whatever order, and what stays with the planner."""

import pickle
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastscore.errors import InputError
from fastscore.logs.inputs.files import InputFile, resolve_inputs
from fastscore.logs.plan import file_groups, shards
from fastscore.logs.plan.file_groups import GroupArrays, IndexedFile, IndexedGroup
from fastscore.logs.plan.packing import Extent, FileStretches, pack
from fastscore.logs.plan.shards import Plan, plan_shards
from tests.logs.plan.planned import SOURCE, dialogue, log


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number, size in enumerate((0, 30, 3, 0, 200, 1)):
        (folder / f"{number}.jsonl").write_bytes(log(size, seed=number))
    return folder


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_groups, "MOST_GROUP_FILES", 2)
    monkeypatch.setattr(shards, "KEYS_PER_TASK", 3)
    monkeypatch.setattr(shards, "SHARDS_PER_TASK", 2)


class Elsewhere:
    """Does tasks as another process would, the last first; keeps what crossed the wire."""

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
def test_the_plan_is_the_same_whoever_does_the_tasks(
    logs: Path, tmp_path: Path, shard_bytes: int, small_groups: None
) -> None:
    elsewhere = Elsewhere()
    here = planned(logs, tmp_path / "here", shard_bytes=shard_bytes)
    there = planned(logs, tmp_path / "there", shard_bytes=shard_bytes, threads=4, mapped=elsewhere)
    assert there == here
    assert len(elsewhere.results) > 4
    assert not list((tmp_path / "there").iterdir())


def test_what_the_planner_is_told_does_not_grow_with_dialogues(tmp_path: Path) -> None:
    told = []
    for dialogues in (20, 2000):
        folder = tmp_path / str(dialogues)
        folder.mkdir()
        for number in range(2):
            (folder / f"{number}.jsonl").write_bytes(log(dialogues, seed=number))
        elsewhere = Elsewhere()
        planned(folder, tmp_path / "scratch", mapped=elsewhere)
        told.append(sum(map(len, elsewhere.results)))
    assert told[1] < told[0] + 100


def test_the_first_dialogue_in_two_files_is_named_whoever_finds_it(
    tmp_path: Path, small_groups: None
) -> None:
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
        planned(folder, tmp_path / "scratch", threads=4, mapped=Elsewhere())
    expected = f"{folder}/1.jsonl:11 and {folder}/2.jsonl:19."
    assert caught.value.message.endswith(expected)


def test_a_file_is_read_no_further_when_its_task_is_to_end(logs: Path, tmp_path: Path) -> None:
    read = []

    def stop() -> None:
        read.append(1)
        if len(read) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planned(logs, tmp_path / "scratch", watch=stop)
    assert len(read) == 3
    assert not list((tmp_path / "scratch").iterdir())


def oracle(files: list[list[int]], shard_bytes: int) -> list[list[Extent]]:
    """Pack the sizes of stretches, one after another, as the rule says it."""
    stretches = [(file, number) for file, sizes in enumerate(files) for number in range(len(sizes))]
    size = {(file, number): files[file][number] for file, number in stretches}
    packed: list[list[Extent]] = []
    waiting = stretches
    while waiting:
        left = sum(size[each] for each in waiting)
        count = max(1, round(left / max(1, shard_bytes // 2)))
        room = min(shard_bytes, max(left // 2, -(-left // count)))
        taken = [waiting[0]]
        for each in waiting[1:]:
            if sum(size[other] for other in taken) + size[each] > room:
                break
            taken.append(each)
        waiting = waiting[len(taken) :]
        parts = []
        for file in sorted({file for file, _ in taken}):
            numbers = [number for other, number in taken if other == file]
            start = sum(files[file][: numbers[0]])
            stop = sum(files[file][: numbers[-1] + 1])
            parts.append(Extent(file, start, stop, numbers[0] + 1, stop - start))
        packed.append(parts)
    return packed


sizes = st.lists(st.integers(0, 40), min_size=1, max_size=8)


@given(st.lists(sizes, max_size=8), st.integers(1, 200), st.data())
def test_packing_is_as_of_all_stretches_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[int]],
    shard_bytes: int,
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("arrays")
    groups = []
    first = 0
    while first < len(files):
        after = data.draw(st.integers(first + 1, len(files)))
        groups.append(stored_group(folder, len(groups), files[first:after]))
        first = after
    found = [list(parts) for parts in pack(FileStretches(groups, folder), shard_bytes)]
    assert found == oracle(files, shard_bytes)


def stored_group(folder: Path, index: int, files: list[list[int]]) -> IndexedGroup:
    """Write what indexing leaves of files: stretches of some sizes, each of one line."""
    columns = []
    for sizes in files:
        ends = np.cumsum(sizes)
        lines = np.arange(1, len(sizes) + 1)
        columns.append(np.stack((ends - np.array(sizes), lines, ends)))
    GroupArrays(folder, index).save("stretches", np.concatenate(columns, axis=1))
    return IndexedGroup(index, tuple(stored_file(sizes) for sizes in files), 0, 0)


def stored_file(sizes: list[int]) -> IndexedFile:
    return IndexedFile(
        file=InputFile("log.jsonl", "jsonl", "none", sum(sizes)),
        path="log.jsonl",
        compression="none",
        size=sum(sizes),
        n_read=sum(sizes),
        content_hash="",
        content=b"",
        damage=None,
        unpacked=False,
        stamp="",
        header=b"",
        n_stretches=len(sizes),
        n_blocks=0,
        n_bytes=sum(sizes),
    )
