"""Looking ids up in segments, on several threads where there are many."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from fastscore.processors import available_processors
from fastscore.vectors.segments import Segment
from fastscore.vectors.text_ids import IdIndex, TextIds, distinct_ids

_IDS_PER_THREAD = 1 << 16


def find_each(index: IdIndex, segments: list[Segment]) -> list[npt.NDArray[np.intp]]:
    """Find each segment's ids among those wanted.

    Returns
    -------
    list of intp (n,)
        For each segment, the place of each of its ids in the index; -1 where it is not there.
    """
    threads = min(available_processors(), sum(map(len, segments)) // _IDS_PER_THREAD)
    if threads <= 1:
        return [index.find(*segment.ids) for segment in segments]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda segment: index.find(*segment.ids), segments))


def absent_ids(ids: TextIds, segments: list[Segment]) -> npt.NDArray[np.bool_]:
    """Say which ids, in any order, no segment holds.

    Returns
    -------
    bool (n,)
    """

    def look_up(some: TextIds) -> npt.NDArray[np.bool_]:
        wanted, _, inverse = distinct_ids(some)
        index = IdIndex(wanted)
        absent = np.ones(len(wanted.first), bool)
        for segment in segments:
            found = index.find(*segment.ids)
            absent[found[found >= 0]] = False
        missing: npt.NDArray[np.bool_] = absent[inverse]
        return missing

    threads = min(available_processors(), len(ids) // _IDS_PER_THREAD)
    if threads <= 1:
        return look_up(ids)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(look_up, np.array_split(ids, threads))))
