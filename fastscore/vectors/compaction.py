"""What compaction decides: which vectors are held twice, which segments to merge, what is garbage.

Everything here only reads, but for `remove_garbage`.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fastscore.durable import is_temporary
from fastscore.vectors.segments import DAMAGED_SUFFIX, IDS_SUFFIX, INDEX_SUFFIX, Segment
from fastscore.vectors.text_ids import distinct_ids

Keep = npt.NDArray[np.bool_]

# Bounds memory: ids are compared one range of first words at a time.
_IDS_PER_RANGE = 2**22


def first_occurrences(segments: Sequence[Segment]) -> list[Keep]:
    """Mark the ids that no earlier segment has.

    Returns
    -------
    list of bool (n,)
        For each segment, whether each of its ids is kept.
    """
    if not segments:
        return []
    keep = [np.ones(len(segment), bool) for segment in segments]
    ranges = 1 + sum(map(len, segments)) // _IDS_PER_RANGE
    bounds = [np.uint64(2**64 * step // ranges) for step in range(1, ranges)]
    starts = [0] * len(segments)
    for step in range(ranges):
        stops = [
            int(np.searchsorted(segment.ids.first, bounds[step]))
            if step < len(bounds)
            else len(segment)
            for segment in segments
        ]
        ids = np.concatenate(
            [
                np.column_stack((segment.ids.first[start:stop], segment.ids.second[start:stop]))
                for segment, start, stop in zip(segments, starts, stops, strict=True)
            ]
        )
        _, positions, _ = distinct_ids(ids)
        fresh = np.zeros(len(ids), bool)
        fresh[positions] = True
        at = 0
        for mask, start, stop in zip(keep, starts, stops, strict=True):
            mask[start:stop] = fresh[at : at + stop - start]
            at += stop - start
        starts = stops
    return keep


def merge_groups(
    segments: Sequence[Segment], keep: Sequence[Keep], rows: int
) -> list[list[tuple[Segment, Keep]]]:
    """Group the segments worth rewriting: smaller than half of `rows`, or with repeats.

    Returns
    -------
    list of groups
        Each keeps at most `rows` vectors; a lone segment without repeats is left alone.
    """
    groups: list[list[tuple[Segment, Keep]]] = []
    total = 0
    for segment, mask in zip(segments, keep, strict=True):
        kept = int(mask.sum())
        if kept == len(segment) and 2 * kept >= rows:
            continue
        if not groups or total + kept > rows:
            groups.append([])
            total = 0
        groups[-1].append((segment, mask))
        total += kept
    return [group for group in groups if len(group) > 1 or not group[0][1].all()]


def remove_garbage(folder: Path, age: float) -> None:
    """Remove what is older than `age` seconds and no reader opens.

    That is unfinished files, indexes without ids, and the files of segments set aside as damaged.
    """
    names = set(os.listdir(folder))
    oldest = time.time() - age
    for name in names:
        orphan = name.startswith("seg-") and name.endswith(INDEX_SUFFIX)
        if orphan and name.removesuffix(INDEX_SUFFIX) + IDS_SUFFIX in names:
            continue
        if not orphan and not is_temporary(name) and not name.endswith(DAMAGED_SUFFIX):
            continue
        # Another process may be cleaning as well.
        with contextlib.suppress(FileNotFoundError):
            if (folder / name).stat().st_mtime < oldest:
                (folder / name).unlink()
