"""A dialogue that stands in two files is found by its key, among groups and in any range."""

from pathlib import Path

import numpy as np

from fastscore.logs.plan.file_groups import GroupArrays
from fastscore.logs.plan.shards import KeyRange, SplitDialogue, split_dialogue

ALL = KeyRange(0, 2**64 - 1)


def save(folder: Path, *groups: list[tuple[int, int, int, int, int]]) -> None:
    """Write the dialogues of groups: high and low word of the key, file, first byte, line."""
    for group, dialogues in enumerate(groups):
        columns = np.array(sorted(dialogues), np.uint64).reshape(-1, 5).T
        GroupArrays(folder, group).save("keys", columns)


def test_two_files_of_two_groups_hold_rows_of_one_dialogue(tmp_path: Path) -> None:
    save(tmp_path, [(5, 1, 0, 30, 2), (9, 9, 0, 60, 4)], [(5, 1, 1, 70, 8), (7, 1, 1, 0, 1)])
    found = split_dialogue(ALL, folder=tmp_path, groups=(0, 1))
    assert found == SplitDialogue(file=1, first=70, line=8, earlier_file=0, earlier_line=2)
    assert found.place == (1, 70)


def test_keys_are_equal_in_both_words_or_not_at_all(tmp_path: Path) -> None:
    save(tmp_path, [(5, 1, 0, 0, 1), (6, 2, 0, 9, 2)], [(5, 2, 1, 0, 1), (6, 1, 1, 9, 2)])
    assert split_dialogue(ALL, folder=tmp_path, groups=(0, 1)) is None


def test_groups_that_are_not_asked_hold_nothing(tmp_path: Path) -> None:
    save(tmp_path, [(5, 1, 0, 0, 1)], [], [(5, 1, 2, 0, 1)])
    assert split_dialogue(ALL, folder=tmp_path, groups=(0, 1)) is None
    assert split_dialogue(ALL, folder=tmp_path, groups=(0, 1, 2)) is not None


def test_both_ends_of_a_range_belong_to_it(tmp_path: Path) -> None:
    high = 2**64 - 1
    save(tmp_path, [(4, 0, 0, 0, 1), (high, 0, 0, 9, 2)], [(4, 0, 1, 0, 1), (high, 0, 1, 9, 2)])

    def place(low: int, to: int) -> tuple[int, int] | None:
        found = split_dialogue(KeyRange(low, to), folder=tmp_path, groups=(0, 1))
        return found.place if found else None

    assert place(0, 3) is None
    assert place(0, 4) == place(4, 4) == (1, 0)
    assert place(5, high - 1) is None
    assert place(5, high) == place(high, high) == (1, 9)


def test_the_dialogue_is_told_that_a_reader_meets_again_first(tmp_path: Path) -> None:
    first, second, third = (
        [(8, 1, file, 20, 3), (1, 1, file, 40, 5), (9, 1, file, 10, 2)][: 3 - file]
        for file in range(3)
    )
    save(tmp_path, first, second, third)
    # of file 1, the dialogue of byte 20 comes before that of byte 40; both stand in file 0
    found = split_dialogue(ALL, folder=tmp_path, groups=(0, 1, 2))
    assert found == SplitDialogue(file=1, first=20, line=3, earlier_file=0, earlier_line=3)
    found = split_dialogue(ALL, folder=tmp_path, groups=(1, 2))
    assert found == SplitDialogue(file=2, first=20, line=3, earlier_file=1, earlier_line=3)
