"""Finding a dialogue that two files hold rows of, by ranges of keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from fastscore.logs.plan.file_groups import KEY_COLUMNS, GroupArrays


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The dialogues whose key's high word lies in ``[low, high]``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class SplitDialogue:
    """A dialogue that two files hold: file and line of either, and where it begins in the second.

    In the order of the second, `min` is the first that a reader would meet.
    """

    file: int
    first: int
    line: int
    earlier_file: int
    earlier_line: int

    @property
    def place(self) -> tuple[int, int]:
        """Where a reader meets it again."""
        return self.file, self.first


def split_dialogue(keys: KeyRange, *, folder: Path, groups: Sequence[int]) -> SplitDialogue | None:
    """Find the first dialogue of a range of keys that stands in two files, among some groups."""
    parts = []
    for group in groups:
        found = GroupArrays(folder, group).load("keys")
        low = np.searchsorted(found[0], np.uint64(keys.low), side="left")
        high = np.searchsorted(found[0], np.uint64(keys.high), side="right")
        parts.append(np.asarray(found[:, low:high]))
    columns = np.concatenate(parts, axis=1)
    key = pl.struct("key_high", "key_low")
    named = pl.DataFrame(dict(zip(KEY_COLUMNS, columns, strict=True)))
    twice = named.filter(key.is_duplicated()).sort("file", "first")
    if twice.is_empty():
        return None
    again = twice.filter(~key.is_first_distinct()).head(1)
    both = twice.join(again, on=("key_high", "key_low"), how="semi").sort("file", "first")
    (earlier_file, earlier_line), *_ = both.select("file", "line").rows()
    file, first, line = again.select("file", "first", "line").row(0)
    return SplitDialogue(file, first, line, earlier_file, earlier_line)
