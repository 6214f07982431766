"""What the lines of a JSON Lines file name, found while its blocks pass by."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from fastscore_readers.json.jsonl_names import NamedLines, named_lines, named_runs

from fastscore.logs.read.streams import Lines


def line_names(
    blocks: Iterable[Lines], keys: Sequence[bytes], *, one_by_one: bool
) -> Iterator[NamedLines]:
    """Find what lines name; their starts are those in the file.

    Parameters
    ----------
    blocks
        The file's lines; each block is used no more once the next is asked for.
    keys
        What names something.
    one_by_one
        Whether every line counts for itself; otherwise neighbours that name the same may be one.
    """
    find = named_lines if one_by_one else named_runs
    for lines in blocks:
        if lines.long_line or lines.refused is not None:
            continue
        data = np.frombuffer(lines.data, np.uint8)
        found = find(data, keys, line=lines.line, n_ends=lines.n_ends)
        if found.line.size:
            start, last = found.start + lines.offset, found.last + lines.offset
            yield replace(found, start=start, last=last)


def join_names(found: Sequence[NamedLines]) -> NamedLines:
    """Put what was found in several blocks one after another."""
    sizes = [names.data.size for names in found]
    shifts = np.cumsum([0, *sizes[:-1]])

    def shifted(arrays: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
        moved = [array + shift for array, shift in zip(arrays, shifts, strict=True)]
        return np.concatenate(moved, axis=1)

    return NamedLines(
        data=np.concatenate([names.data for names in found]),
        line=np.concatenate([names.line for names in found]),
        start=np.concatenate([names.start for names in found]),
        last=np.concatenate([names.last for names in found]),
        tags=np.concatenate([names.tags for names in found], axis=1),
        value_start=shifted(names.value_start for names in found),
        value_end=shifted(names.value_end for names in found),
    )
